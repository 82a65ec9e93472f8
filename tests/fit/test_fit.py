import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from independent import (
    designs,
    direct_nll,
    draw,
    log_odds_of,
    maps,
    simplex,
)
from scipy.optimize import minimize as scipy_minimize
from toy import TOY_X, TOY_Y

from mcllo import MCLLOMap, Predictions
from mcllo._fit.estimate import (
    MIN_DETERMINED_INFORMATION,
    SEPARATION_CHECK_INFORMATION,
    covariance_from_hessian,
    estimate,
    relative_information,
)
from mcllo._fit.fit import fit_predictions
from mcllo._fit.map import AllBaselinesMap, validate_rows_to_recalibrate
from mcllo._fit.objective import FreeParameterObjective, free_parameters_from_ranges
from mcllo._utils.statements import suppress_warnings
from mcllo.exceptions import (
    ConvergenceWarning,
    InputError,
    MclloWarning,
    SeparationWarning,
)

quick = settings(deadline=None, max_examples=20)
ARGMAX = TOY_X.argmax(axis=1)
TOY = Predictions.from_arrays(TOY_X, TOY_Y)
PERFECT = Predictions.from_arrays(TOY_X, ARGMAX)


def fit(probs, y, penalty=0.0, **options):
    return fit_predictions(
        Predictions.from_arrays(probs, y, **options), penalty=penalty
    )


def quiet_fit(probs, y, **options):
    """Fit where separation is possible and not the point."""
    with suppress_warnings(MclloWarning):
        return fit(probs, y, **options)


def scipy_optimum(log_odds, codes, start=None):
    """Return the smallest negative log likelihood that scipy finds, and where."""
    start = np.repeat([0.0, 1.0], len(log_odds)) if start is None else start
    found = scipy_minimize(
        direct_nll, start, args=(log_odds, codes), method="BFGS", options={"gtol": 1e-9}
    )
    return found.fun, found.x


# --- an independent implementation


@settings(deadline=None, max_examples=10)
@given(designs(min_rows=20, max_rows=60, max_classes=4, max_sharpness=1.5))
def test_scipy_finds_the_same_optimum(design):
    probs, codes = design
    found = quiet_fit(probs, codes, classes=range(probs.shape[1]))
    assume(found.converged and np.abs(found.theta).max() < 20.0)
    value, theta = scipy_optimum(log_odds_of(probs), codes)
    assert -found.log_likelihood == pytest.approx(value, rel=1e-7)
    assert -found.log_likelihood <= value + 1e-9
    np.testing.assert_allclose(found.theta, theta, atol=1e-3)


# --- no maximum


@pytest.mark.parametrize("seed", [3, 61])
def test_the_supremum_equals_a_long_scipy_optimisation(seed):
    # seeds whose 12 rows are separated in part: the supremum lies below 0 and is not attained
    rng = np.random.default_rng(seed)
    probs = simplex(rng, 12, 3, 1.5)
    labels = draw(probs, rng)
    with pytest.warns(SeparationWarning, match="the log odds separate the labels"):
        found = fit(probs, labels)
    value, _ = scipy_optimum(log_odds_of(probs), labels)
    assert found.log_likelihood < -1.0
    assert -found.log_likelihood == pytest.approx(value, abs=2e-6)
    assert -found.log_likelihood <= value + 1e-10


def test_nearly_separated_rows_have_a_huge_maximum():
    # forty sharp rows are right; six rows within 2e-5 of even odds overlap. In units of 1e-5 the
    # six are a plain logit, beside which the sharp rows add nothing
    tiny, labels = (
        np.array([2.0, 2.0, 1.0, -1.0, -2.0, -2.0]),
        np.array([0, 0, 1, 0, 1, 1]),
    )
    odds = np.concatenate([1e-5 * tiny, np.full(20, 8.0), np.full(20, -8.0)])
    codes = np.concatenate([labels, np.repeat([0, 1], 20)])
    with pytest.warns(
        ConvergenceWarning, match="likelihood is all but flat: "
    ) as caught:
        found = fit(None, codes, logits=np.column_stack([odds, np.zeros(46)]))
    assert "statistic holds" in caught[0].message.text()
    assert caught[0].message.numbers["n_iter"] == found.n_iter
    value, theta = scipy_optimum(tiny[None], labels)
    assert (found.separated, found.converged) == (False, False)
    assert np.isnan(found.se_gamma).all()
    assert found.gamma[0] == pytest.approx(1e5 * theta[1], rel=1e-3)
    assert -found.log_likelihood == pytest.approx(value, abs=1e-7)


# --- extreme inputs


@pytest.mark.parametrize(("far", "c"), [(50.0, 5), (700.0, 2), (1e5, 3)])
def test_extreme_log_odds_with_random_labels(far, c):
    # every row saturated at the identity, half of them wrong: the estimate is a gentle map
    rng = np.random.default_rng(c)
    logits = far * rng.normal(size=(60, c))
    labels = np.resize(np.arange(c), 60)
    found = fit(None, labels, logits=logits)
    odds = (logits[:, :-1] - logits[:, -1:]).T
    assert found.converged
    assert np.isfinite(found.cov_theta).all()
    assert np.isfinite(found.recalibrate(logits=logits)).all()
    unit = np.repeat([1.0, 1.0 / far], c - 1)
    value, theta = scipy_optimum(odds / far, labels, np.zeros(2 * (c - 1)))
    assert -found.log_likelihood == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(found.theta / unit, theta, atol=1e-4)


# --- properties


@quick
@given(designs(min_rows=2))
def test_the_statistic_is_not_negative(design):
    probs, codes = design
    assert quiet_fit(probs, codes, classes=range(probs.shape[1])).statistic >= 0.0


@quick
@given(designs(min_rows=20, max_sharpness=1.5), st.data())
def test_refitting_recalibrated_training_data_gives_the_identity(design, data):
    probs, codes = design
    classes = range(probs.shape[1])
    baseline = data.draw(st.sampled_from(list(classes)))
    found = quiet_fit(probs, codes, classes=classes, baseline=baseline)
    assume(
        found.converged
        and np.abs(found.theta).max() < 15.0
        and abs(found.gamma).min() > 0.01
    )
    again = fit(
        found.recalibrate(probs), codes, classes=classes, baseline=baseline, clip=0.0
    )
    np.testing.assert_allclose(again.tau, 0.0, atol=1e-5)
    np.testing.assert_allclose(again.gamma, 1.0, atol=1e-5)
    assert again.statistic == pytest.approx(0.0, abs=1e-8)


@quick
@given(designs(min_rows=4, max_classes=2))
def test_for_two_classes_the_baseline_does_not_matter(design):
    probs, codes = design
    last, first = (quiet_fit(probs, codes, classes=(0, 1), baseline=b) for b in (1, 0))
    assert first.statistic == pytest.approx(last.statistic, abs=1e-7)
    assume(last.converged)
    np.testing.assert_allclose(first.gamma, last.gamma, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(first.tau, -last.tau, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        first.recalibrate(probs), last.recalibrate(probs), atol=1e-6
    )


@quick
@given(designs(min_rows=15, max_sharpness=1.5), st.integers(0, 2**32 - 1))
def test_permuting_the_other_classes_permutes_the_parameters(design, seed):
    probs, codes = design
    c = probs.shape[1]
    order = np.append(np.random.default_rng(seed).permutation(c - 1), c - 1)
    place = np.argsort(order)
    found = quiet_fit(probs, codes, classes=range(c))
    assume(found.converged and np.abs(found.theta).max() < 15.0)
    moved = fit(probs[:, order], place[codes], classes=range(c))
    np.testing.assert_allclose(moved.tau, found.tau[order[:-1]], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        moved.gamma, found.gamma[order[:-1]], rtol=1e-5, atol=1e-6
    )
    assert moved.statistic == pytest.approx(found.statistic, rel=1e-7, abs=1e-9)


@quick
@given(designs(min_rows=15, max_sharpness=1.5))
def test_duplicating_the_data_doubles_the_statistic(design):
    probs, codes = design
    classes = range(probs.shape[1])
    once = quiet_fit(probs, codes, classes=classes)
    twice = quiet_fit(
        np.vstack([probs, probs]), np.append(codes, codes), classes=classes
    )
    weighted = quiet_fit(
        probs, codes, classes=classes, sample_weight=np.full(len(codes), 2.0)
    )
    assert twice.statistic == pytest.approx(2.0 * once.statistic, rel=1e-7, abs=1e-8)
    assert weighted.statistic == pytest.approx(twice.statistic, rel=1e-9, abs=1e-10)
    assume(once.converged and np.abs(once.theta).max() < 15.0)
    np.testing.assert_allclose(weighted.se_tau, once.se_tau / np.sqrt(2.0), rtol=1e-5)


@quick
@given(designs(min_rows=15, max_sharpness=1.5), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(design, seed):
    probs, codes = design
    order = np.random.default_rng(seed).permutation(len(codes))
    classes = range(probs.shape[1])
    first = quiet_fit(probs, codes, classes=classes)
    other = quiet_fit(probs[order], codes[order], classes=classes)
    assert other.statistic == pytest.approx(first.statistic, rel=1e-9, abs=1e-9)
    assert other.separated == first.separated


# --- results


def test_a_slope_is_free_where_log_odds_vary_by_more_than_rounding():
    # 1e-12: more than rounding makes of equal log odds of size 1e3, less than digits of a file show
    extent = np.array([0.0, 1e-13, 1e-11, 1.0])
    expected = [True] * 4 + [False, False, True, True]
    np.testing.assert_array_equal(free_parameters_from_ranges(extent), expected)


# --- estimates


def end_of(predictions, penalty=0.0):
    return estimate(
        FreeParameterObjective.from_predictions(predictions),
        predictions,
        penalty,
        "identity",
    )


def left(predictions, penalty=0.0):
    return relative_information(
        end_of(predictions, penalty),
        FreeParameterObjective.from_predictions(predictions),
    )


def test_values_are_without_penalty():
    # methods specification 0.4, TOY: negative log likelihood and its gradient at the identity
    null_value, null_gradient = 12.6033816017, [-0.8, 0.8, -0.77466884, -0.89888965]
    for penalty in (0.0, 1.0, "auto", "firth"):
        end = end_of(TOY, penalty)
        value = direct_nll(end.solution.x, log_odds_of(TOY_X), TOY_Y)
        assert end.value == pytest.approx(value, abs=1e-9), penalty
        assert end.null.value == pytest.approx(null_value, rel=1e-10), penalty
        np.testing.assert_allclose(end.null.gradient, null_gradient, atol=1e-8)


def test_information_vanishes_where_there_is_no_maximum():
    assert left(PERFECT) < MIN_DETERMINED_INFORMATION < SEPARATION_CHECK_INFORMATION
    assert 0.1 < left(TOY) < 1.0
    assert left(PERFECT, 1.0) == left(PERFECT, "firth") == 1.0


def test_information_left_by_hand():
    # constant log odds 0: tau alone, H = n g (1 - g); at the identity g = 1/2, at the estimate 1/5
    predictions = Predictions.from_arrays(np.full((5, 2), 0.5), [0, 1, 1, 1, 1])
    assert left(predictions) == pytest.approx((0.2 * 0.8) / 0.25, rel=1e-6)


def test_a_covariance_by_hand():
    free, diagonal = np.array([True, True]), np.diag([4.0, 2.0])
    np.testing.assert_array_equal(
        covariance_from_hessian(diagonal, free, True), np.diag([0.25, 0.5])
    )
    assert np.isnan(
        covariance_from_hessian(diagonal, free, False)
    ).all()  # not determined
    free = np.array([True, False, True])  # a fixed parameter has none
    found = covariance_from_hessian(diagonal, free, True)
    assert np.isnan(found[1]).all()
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[np.ix_(free, free)], np.diag([0.25, 0.5]))


# --- maps


CLASSES = ("a", "b", "c")
TAU_A, GAMMA_A = np.array([0.2, -0.3]), np.array([0.8, 1.5])
FIRST = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "c")


def random_map(data, c, baseline):
    delta, gamma = data.draw(maps(c - 1))
    return MCLLOMap(np.log(delta), gamma, tuple(range(c)), baseline)


def test_names_and_log_odds_against_the_baseline_in_column_order():
    middle = MCLLOMap(TAU_A, GAMMA_A, CLASSES, "b")
    assert middle.baseline_index == 1
    assert middle.compared == ("a", "c")
    np.testing.assert_allclose(middle.delta, np.exp(TAU_A))
    np.testing.assert_array_equal(middle.theta, [0.2, -0.3, 0.8, 1.5])
    # (.7, .2, .1) against the middle class: log 3.5 and log 0.5
    odds = middle.log_odds(validate_rows_to_recalibrate(CLASSES, TOY_X))
    assert odds.shape == (2, len(TOY_X))
    np.testing.assert_allclose(odds[:, 0], np.log([3.5, 0.5]), rtol=1e-13)


@quick
@given(designs(max_sharpness=2.0), st.data())
def test_group_laws(design, data):
    probs, _ = design
    c = probs.shape[1]
    baseline = data.draw(st.integers(0, c - 1))
    a, b, d = (random_map(data, c, baseline) for _ in range(3))
    left, right = a.compose(b).compose(d), a.compose(b.compose(d))
    np.testing.assert_allclose(left.theta, right.theta, rtol=1e-10, atol=1e-12)
    unit = np.concatenate([np.zeros(c - 1), np.ones(c - 1)])
    np.testing.assert_allclose(a.compose(a.inverse()).theta, unit, atol=1e-12)
    np.testing.assert_allclose(a.inverse().compose(a).theta, unit, atol=1e-12)
    np.testing.assert_allclose(
        a.inverse().inverse().theta, a.theta, rtol=1e-12, atol=1e-14
    )
    back = a.inverse().recalibrate(a.recalibrate(probs), clip=0.0)
    np.testing.assert_allclose(back, probs, atol=1e-8)


def test_rows_that_are_refused():
    maps_of_both_kinds = FIRST, AllBaselinesMap(np.eye(3), np.zeros(3), CLASSES)
    for rows, words in [
        ({"probs": [[0.5, 0.5]]}, "a column for each of the 3 classes; got 2"),
        ({}, "exactly one of probs and logits"),
        ({"probs": TOY_X, "logits": np.log(TOY_X)}, "exactly one of probs and logits"),
        ({"probs": [[0.5, 0.4, 0.0]]}, "must sum to 1"),
        ({"probs": [[0.5, 0.5, 0.0]], "clip": 0.0}, "must be positive when clip=0"),
    ]:
        for one in maps_of_both_kinds:
            with pytest.raises(InputError, match=words):
                one.recalibrate(**rows)
