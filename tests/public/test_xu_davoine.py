import data
import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo.calibrators import XuDavoine
from mcllo.exceptions import InputError, ZeroProbabilityWarning

QUERY = [[0.4, 0.35, 0.25], [0.7, 0.2, 0.1]]

# methods.md 1.7, TOY, x = (.4, .35, .25): theta_hat, plug-in, Bel, Pl, BetP; tolerance 1e-4.
TABLE = {
    ("log", False): (
        1.38386423,
        (0.42497, 0.35327, 0.22176),
        (0.38657, 0.26018, 0.17268),
        (0.47351, 0.44075, 0.26631),
        (0.43004, 0.35047, 0.21950),
    ),
    ("log", True): (
        0.74594928,
        (0.38322, 0.34689, 0.26989),
        (0.35178, 0.27184, 0.22922),
        (0.41870, 0.41900, 0.30946),
        (0.38524, 0.34542, 0.26934),
    ),
    ("prob", False): (
        3.94131185,
        (0.42109, 0.34577, 0.23314),
        (0.38394, 0.25886, 0.18852),
        (0.46748, 0.42753, 0.27366),
        (0.42571, 0.34320, 0.23109),
    ),
    ("prob", True): (
        2.24546289,
        (0.38346, 0.34274, 0.27380),
        (0.35161, 0.26987, 0.23590),
        (0.41888, 0.41249, 0.31125),
        (0.38524, 0.34118, 0.27358),
    ),
}


def test_log_plug_in_contains_the_identity():
    # Labels in exactly the predicted shares: theta = 1, and nothing changes.
    X = np.repeat([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], 10, axis=0)
    y = np.repeat([0, 1, 2, 0, 1, 2], [5, 3, 2, 1, 6, 3])
    fitted = XuDavoine(scores="log", smooth=False, output="plug_in").fit(X, y)
    np.testing.assert_allclose(fitted.theta_, 1.0)
    np.testing.assert_allclose(fitted.predict_proba(X), X)


def test_uniform_rows_stay_uniform():
    fitted = XuDavoine().fit(np.full((4, 3), 1 / 3), [0, 1, 2, 0])
    answer = fitted.predict_proba([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.3, 0.2]])
    np.testing.assert_allclose(answer, 1 / 3)  # nothing was learned, so nothing is said
    assert (fitted.theta_, fitted.sets_.low.max(), fitted.sets_.high.min()) == (
        0.0,
        -1e8,
        1e8,
    )
    bounds = fitted.belief([[0.5, 0.3, 0.2]])
    np.testing.assert_allclose(bounds.bel, 0.0, atol=1e-12)
    np.testing.assert_allclose(bounds.pl, 1.0)


def test_hand_sized_example():
    # Two classes, x = (.25, .75), three of four rows of class 1: the score differs by .5, so
    # theta = 2 log 3; smoothed, class 1 counts (3 + 1) / (3 + 2) and class 0 (1 + 1) / (1 + 2): the
    # mean target of class 1 is (3 * 4/5 + 1 * 1/3) / 4 = 41/60, so theta = 2 log(41 / 19).
    X, y = np.tile([0.25, 0.75], (4, 1)), [1, 1, 1, 0]
    np.testing.assert_allclose(
        XuDavoine(smooth=False).fit(X, y).theta_, 2 * np.log(3.0)
    )
    np.testing.assert_allclose(XuDavoine().fit(X, y).theta_, 2 * np.log(41 / 19))
    plug_in = XuDavoine(output="plug_in").fit(X, y)
    np.testing.assert_allclose(plug_in.predict_proba(X)[0], [19 / 60, 41 / 60])


@pytest.mark.parametrize(("score", "smooth"), TABLE)
def test_toy(score, smooth):
    theta, plug_in, bel, pl, betp = TABLE[score, smooth]
    options = {"scores": score, "smooth": smooth}
    fitted = XuDavoine(**options).fit(TOY_X, TOY_Y)
    np.testing.assert_allclose(fitted.theta_, theta, atol=1e-7)
    found = fitted.belief(QUERY)
    np.testing.assert_allclose(found.bel[0], bel, atol=1e-5)
    np.testing.assert_allclose(found.pl[0], pl, atol=1e-5)
    np.testing.assert_allclose(found.betp[0], betp, atol=1e-5)
    outputs = {"plug_in": plug_in, "pignistic": betp, "plausibility": pl / np.sum(pl)}
    for output, expected in outputs.items():
        other = XuDavoine(output=output, **options).fit(TOY_X, TOY_Y)
        np.testing.assert_allclose(other.predict_proba(QUERY)[0], expected, atol=1e-5)


def test_toy_second_row():
    # methods.md 1.7: x = (.7, .2, .1), log x, no smoothing.
    fitted = XuDavoine(scores="log", smooth=False).fit(TOY_X, TOY_Y)
    found = fitted.belief(QUERY)
    np.testing.assert_allclose(found.bel[1], [0.62734, 0.01574, 0.01791], atol=1e-5)
    np.testing.assert_allclose(found.pl[1], [0.91384, 0.35475, 0.14092], atol=1e-5)
    np.testing.assert_allclose(found.betp[1], [0.75884, 0.17350, 0.06767], atol=1e-5)
    plug_in = fitted.set_params(output="plug_in").predict_proba(QUERY)[1]
    np.testing.assert_allclose(plug_in, [0.80365, 0.14195, 0.05440], atol=1e-5)
    bounds = fitted.set_params(order="envelope").belief(QUERY)
    np.testing.assert_allclose(bounds.pl[1], [0.91384, 0.23174, 0.14092], atol=1e-5)
    np.testing.assert_allclose(bounds.bel[1], [0.62734, 0.06825, 0.01791], atol=1e-5)


def test_orders_agree_for_two_classes():
    X, y = data.drawn(50, range(2), 0)
    expected = XuDavoine(order="score").fit(X, y).predict_proba(X)
    for order in ("index", "envelope"):
        answer = XuDavoine(order=order).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(answer, expected, atol=1e-12)


def test_index_order_depends_on_the_columns_and_the_others_do_not():
    mixed = [2, 0, 1]
    where = np.argsort(mixed)
    for order, same in (("score", True), ("envelope", True), ("index", False)):
        one = XuDavoine(order=order).fit(TOY_X, TOY_Y).predict_proba(TOY_X)
        two = XuDavoine(order=order).fit(TOY_X[:, mixed], where[TOY_Y])
        assert (
            np.allclose(two.predict_proba(TOY_X[:, mixed])[:, where], one, atol=1e-9)
            == same
        )


def test_plug_in_never_changes_the_label():
    X, y = data.drawn(200, range(4), 0)
    fitted = XuDavoine(output="plug_in").fit(X, y)
    assert (fitted.predict(X) == X.argmax(axis=1)).all()


def test_log_scores_raise_zeros_and_say_so():
    X, y = np.vstack([TOY_X, [[1.0, 0.0, 0.0]]]), np.append(TOY_Y, 0)
    with pytest.warns(ZeroProbabilityWarning, match="probabilities of 0") as caught:
        fitted = XuDavoine(scores="log").fit(X, y)
    assert caught[0].message.numbers["n_zeros"] == 2
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    floored = XuDavoine(scores="log", clip=1e-3).fit(X, y)
    assert floored.theta_ != fitted.theta_


@pytest.mark.parametrize(("pick", "which"), [("argmax", "most"), ("argmin", "least")])
def test_no_finite_theta_is_refused_and_smoothing_is_the_remedy(pick, which):
    y = getattr(TOY_X, pick)(axis=1)
    words = f"finite estimate; the {which} probable class came true in every row.* Use smooth=True"
    with pytest.raises(InputError, match=words):
        XuDavoine(smooth=False).fit(TOY_X, y)
    fitted = XuDavoine().fit(TOY_X, y)
    assert (fitted.theta_ > 0.0) == (pick == "argmax")


def test_refused_options():
    for options, message in (
        (
            {"scores": "logit"},
            "scores must be one of 'prob', 'log'; got scores='logit'",
        ),
        ({"output": "betp"}, "output must be one of 'pignistic'"),
        ({"order": "random"}, "order must be one of 'score'"),
    ):
        with pytest.raises(InputError, match=message):
            XuDavoine(**options).fit(TOY_X, TOY_Y)
