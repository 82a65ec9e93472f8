"""Curves without bins: isotonic regression and its parts, the spline and its band, distances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtri

from mcllo import Predictions, smooth_curve
from mcllo.exceptions import InputError
from mcllo.metrics import (
    calibration_distances,
    decompose_isotonic,
    integrated_calibration_index,
)
from mcllo.metrics._isotonic import PooledPredictions
from mcllo.metrics._smooth import (
    MAX_DISTINCT_PREDICTIONS,
    MIN_PROB,
    Spline,
    SplineBasis,
    log_odds,
)


def two(x):
    """Return the table of two classes whose second one has these probabilities."""
    x = np.asarray(x, dtype=float)
    return np.column_stack([1.0 - x, x])


def sample(n, seed=0, slope=0.6, shift=0.3):
    """Return predictions and hits that follow a straight line of log odds."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.02, 0.98, n)
    return x, (rng.random(n) < expit(slope * logit(x) + shift)).astype(int)


# Isotonic regression


def min_max(frequency, weight):
    """Return the isotonic fit by its min-max formula, without pooling anything."""
    m = len(frequency)

    def mean(a, b):
        return np.average(frequency[a : b + 1], weights=weight[a : b + 1])

    return np.array(
        [
            max(min(mean(a, b) for b in range(u, m)) for a in range(u + 1))
            for u in range(m)
        ]
    )


rows = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 1), st.integers(0, 3)),
    min_size=1,
    max_size=14,
).filter(lambda found: any(w for _, _, w in found))


@settings(deadline=None, max_examples=60)
@given(rows)
def test_the_fit_is_that_of_the_min_max_formula(found):
    values, hits, weight = (
        np.array(column, dtype=float) for column in zip(*found, strict=True)
    )
    pooled = PooledPredictions.from_values(values / 10.0, hits, weight)
    np.testing.assert_allclose(
        pooled.curve(), min_max(pooled.frequency, pooled.weight), atol=1e-12
    )
    assert (np.diff(pooled.values) > 0.0).all()
    assert pooled.weight.sum() == weight.sum()


@settings(deadline=None, max_examples=60)
@given(rows, st.sampled_from(["brier", "log_loss"]))
def test_parts_add_up_and_are_not_negative(found, score):
    values, hits, weight = (
        np.array(column, dtype=float) for column in zip(*found, strict=True)
    )
    values = 0.05 + 0.09 * values  # so that the log loss is finite
    y, x = hits.astype(int), two(values)
    parts = decompose_isotonic(
        y, x, label=1, score=score, sample_weight=weight, classes=[0, 1]
    )
    own = np.where(hits == 1.0, values, 1.0 - values)
    rows_ = -np.log(own) if score == "log_loss" else (1.0 - own) ** 2
    assert parts.score == pytest.approx(np.average(rows_, weights=weight), abs=1e-12)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(parts.score, abs=1e-12)
    assert min(parts.miscalibration, parts.discrimination) > -1e-12


def test_parts_by_hand():
    # class 1, sorted: .1:0 .3:0 .4:1 .6:0 .7:1 .8:1 -> curve 0 0 .5 .5 1 1
    # S(x) = (.01 + .09 + .36 + .36 + .09 + .04) / 6 = .95 / 6, S(g) = .5 / 6, S(r) = .25
    x, y = two([0.1, 0.3, 0.8, 0.6, 0.4, 0.7]), [0, 0, 1, 0, 1, 1]
    parts = decompose_isotonic(y, x, label=1)
    assert parts.score == pytest.approx(0.95 / 6)
    assert parts.miscalibration == pytest.approx(0.45 / 6)
    assert parts.discrimination == pytest.approx(0.25 - 0.5 / 6)
    # log loss: the curve's is 2 log 2 / 6, that of the share is log 2
    logs = decompose_isotonic(y, x, label=1, score="log_loss")
    assert logs.discrimination == pytest.approx(np.log(2) * (1 - 2 / 6))
    # the most probable class: .9 .7 .8 .6 .6 .7, right 1 1 1 0 0 1 -> .6: 0, the rest 1
    top = decompose_isotonic(y, x)
    assert top.score - top.miscalibration == pytest.approx(0.0, abs=1e-15)
    assert top.uncertainty == pytest.approx(2 / 9)


def test_a_zero_that_came_true_costs_everything():
    parts = decompose_isotonic(
        [0, 1, 1], two([0.5, 0.0, 1.0]), label=1, score="log_loss"
    )
    assert parts.score == parts.miscalibration == np.inf
    assert np.isfinite([parts.discrimination, parts.uncertainty]).all()


def test_what_is_no_score_or_class_is_refused():
    with pytest.raises(
        InputError, match="score must be 'brier' or 'log_loss'; got score='auc'"
    ):
        decompose_isotonic([0, 1], two([0.5, 0.2]), score="auc")
    with pytest.raises(InputError, match="label=7 is not a class"):
        decompose_isotonic([0, 1], two([0.5, 0.2]), label=7)


# The spline


def independent(x, y, weight=None, n_knots=5, level=0.95, lapses=True):
    """Return (curve, band at a point) by cardinal splines and general optimisers.

    The departure is a natural cubic spline through its values at the knots, a straight line beyond
    them, and two lapses less their least squares fit by such splines; the pull is half the mean
    square of the spline under the weights w x (1 - x), and half the squares of the lapses.
    """
    w = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=float)
    at = logit(x)
    order = np.argsort(at)
    own = (w * np.sqrt(x * (1 - x)))[order]
    places = (np.cumsum(own) - own / 2) / own.sum()
    knots = np.interp(np.linspace(0.05, 0.95, n_knots), places, at[order])
    info = w * x * (1 - x) / (w * x * (1 - x)).sum()

    def cardinal(points):
        spline = CubicSpline(knots, np.eye(n_knots), bc_type="natural")
        inside = np.clip(points, knots[0], knots[-1])
        return spline(inside) + spline(inside, 1) * (points - inside)[:, None]

    def lapse(points):
        p = expit(points)
        return np.log1p(0.01 * np.stack([(1 - p) / p, p / (1 - p)], axis=1))

    root = np.sqrt(info)[:, None]
    explained = np.linalg.lstsq(root * cardinal(at), root * lapse(at), rcond=None)[0]

    def columns(points):
        spline = cardinal(points)
        return (
            np.hstack([spline, lapse(points) - spline @ explained])
            if lapses
            else spline
        )

    basis = columns(at)
    size = basis.shape[1]

    def objective(values):
        eta = at + basis @ values
        pull = (
            info @ (basis[:, :n_knots] @ values[:n_knots]) ** 2
            + values[n_knots:] @ values[n_knots:]
        )
        return w @ (np.logaddexp(0, eta) - y * eta) + 0.5 * pull

    def slope(values):
        pull = values.copy()
        own = basis[:, :n_knots]
        pull[:n_knots] = own.T @ (info * (own @ values[:n_knots]))
        return basis.T @ (w * (expit(at + basis @ values) - y)) + pull

    best = minimize(
        objective, np.zeros(size), jac=slope, method="BFGS", options={"gtol": 1e-9}
    )

    def curve(points):
        return expit(logit(points) + columns(logit(points)) @ best.x)

    def band(point):
        aim = columns(np.array([logit(point)]))[0]
        room = 0.5 * ndtri(0.5 + level / 2) ** 2 + best.fun
        inside = {
            "type": "ineq",
            "fun": lambda v: room - objective(v),
            "jac": lambda v: -slope(v),
        }
        ends = []
        for sign in (1, -1):
            end = minimize(
                lambda v, sign=sign: sign * aim @ v,
                best.x,
                jac=lambda v, sign=sign: sign * aim,
                method="SLSQP",
                constraints=[inside],
                options={"maxiter": 500, "ftol": 1e-12},
            )
            ends.append(expit(logit(point) + aim @ end.x))
        return ends

    return curve, band


@pytest.mark.parametrize("weighted", [False, True])
def test_curve_band_and_distances_are_those_of_another_way(weighted):
    x, y = sample(300)
    weight = np.random.default_rng(1).integers(0, 4, 300) if weighted else None
    used = slice(None) if weight is None else weight > 0
    own = None if weight is None else weight[used]
    curve, band = independent(x[used], y[used], own)
    found = smooth_curve(two(x), y, label=1, sample_weight=weight)
    np.testing.assert_allclose(found.observed, curve(found.predicted), atol=2e-6)
    for point in (0.05, 0.4, 0.9):
        row = found.at(point).rows()[0]
        np.testing.assert_allclose([row["low"], row["high"]], band(point), atol=2e-3)
    away = np.abs(curve(x[used]) - x[used])
    whole = away if own is None else np.repeat(away, own)
    assert found.ici == pytest.approx(whole.mean(), abs=2e-6)
    assert found.emax == pytest.approx(whole.max(), abs=1e-5)
    half, most = np.sort(whole)[[int(np.ceil(q * len(whole))) - 1 for q in (0.5, 0.9)]]
    assert (found.e50, found.e90) == pytest.approx((half, most), abs=1e-5)


def test_one_value_by_hand():
    # 9 of 30 hits at .3: log odds l + b with 30 (expit(l + b) - .3) + b = 0 -> b = 0
    y = [1] * 9 + [0] * 21
    found = smooth_curve(two(np.full(30, 0.3)), y, label=1)
    assert found.observed == pytest.approx([0.3])
    # 15 hits instead: 30 (expit(l + b) - .5) + b = 0, solved by b = .7475
    found = smooth_curve(two(np.full(30, 0.3)), [1] * 15 + [0] * 15, label=1)
    b = float(logit(found.observed[0]) - logit(0.3))
    assert 30 * (expit(logit(0.3) + b) - 0.5) + b == pytest.approx(0.0, abs=1e-8)
    assert b == pytest.approx(0.7475, abs=1e-4)


def test_weights_are_rows():
    x, y = sample(120)
    weight = np.random.default_rng(2).integers(0, 5, 120)
    one = smooth_curve(two(x), y, label=1, sample_weight=weight)
    other = smooth_curve(two(np.repeat(x, weight)), np.repeat(y, weight), label=1)
    for name in ("predicted", "observed", "low", "high", "knots"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-9)
    assert one.ici == pytest.approx(other.ici, abs=1e-12)


def test_two_classes_mirror_each_other():
    x, y = sample(400)
    one, other = (smooth_curve(two(x), y, label=k) for k in (1, 0))
    at = np.array([0.1, 0.35, 0.8])
    a, b = one.at(at), other.at(1.0 - at)
    np.testing.assert_allclose(a["observed"], 1.0 - np.array(b["observed"]), atol=1e-6)
    np.testing.assert_allclose(a["low"], 1.0 - np.array(b["high"]), atol=2e-3)


def test_many_rows_are_pooled_without_a_trace():
    x, y = sample(4000)
    found = smooth_curve(two(x), y, label=1, n_knots=5)
    assert len(found.spline.likelihood.x) < MAX_DISTINCT_PREDICTIONS < len(x)
    curve, band = independent(x, y, lapses=False)  # all rows
    np.testing.assert_allclose(found.observed, curve(found.predicted), atol=5e-6)
    row = found.at(0.3).rows()[0]
    np.testing.assert_allclose([row["low"], row["high"]], band(0.3), atol=1e-3)


def test_few_sharp_and_separated_rows_have_a_curve():
    for x, y in (
        ([0.3], [1]),
        ([0.3, 0.3], [0, 1]),
        ([0.2, 0.7], [0, 1]),
        (np.linspace(0.01, 0.99, 60), np.repeat([0, 1], 30)),
        (np.linspace(0.01, 0.99, 60), np.repeat([1, 0], 30)),
        (np.repeat([0.0, 1.0], 40), np.repeat([0, 1], 40)),
        (np.repeat([0.0, 1.0], 40), np.repeat([1, 0], 40)),
        (np.repeat([1e-15, 0.5, 1.0], 20), np.tile([0, 1], 30)),
        (np.repeat([0.1, 0.2, 0.3], 20), np.tile([0, 1], 30)),
        (np.full(50, 0.5), np.ones(50, dtype=int)),
    ):
        found = smooth_curve(two(x), y, label=1, classes=[0, 1])
        for curve in (found.low, found.observed, found.high):
            assert np.isfinite(curve).all(), (x, y)
            assert ((curve >= 0.0) & (curve <= 1.0)).all(), (x, y)
        assert (found.low <= found.observed + 1e-9).all(), (x, y)
        assert (found.observed <= found.high + 1e-9).all(), (x, y)
        assert 0.0 <= found.e50 <= found.e90 <= found.emax <= 1.0, (x, y)
        assert found.predicted[0] >= MIN_PROB * (1.0 - 1e-9), (x, y)


def test_the_band_narrows_where_every_row_hits():
    # 400 rows near 1 that all hit: standard errors of log odds would leave [0, 1] open
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(0.2, 0.8, 100), 1.0 - rng.uniform(1e-7, 1e-4, 400)])
    y = (rng.random(500) < x).astype(int)
    assert y[100:].all()
    row = smooth_curve(two(x), y, label=1).at(1.0 - 1e-5).rows()[0]
    assert row["low"] > 0.97


def test_groups_and_survey_weights_widen_the_band():
    x, y = sample(100, seed=4)
    copies = np.repeat(np.arange(100), 8)
    alone = smooth_curve(two(x), y, label=1)
    plain = Predictions.from_arrays(two(x)[copies], y[copies])
    grouped = Predictions.from_arrays(two(x)[copies], y[copies], groups=copies)
    naive, honest = smooth_curve(plain, label=1), smooth_curve(grouped, label=1)
    assert (alone.robust, naive.robust, honest.robust) == (False, False, True)
    width = [np.median(c.high - c.low) for c in (alone, naive, honest)]
    assert width[1] < 0.5 * width[0]  # eight copies are not eight rows
    assert width[2] == pytest.approx(width[0], rel=0.3)
    survey = Predictions.from_arrays(
        two(x), y, sample_weight=np.full(100, 8.0), weight_kind="survey"
    )
    assert np.median(
        (w := smooth_curve(survey, label=1)).high - w.low
    ) == pytest.approx(width[0], rel=0.3)


@pytest.mark.slow
def test_the_band_under_wrong_labels_and_the_null_of_the_ici():
    # 5 % of the labels drawn at random, 2000 rows Beta(.5, .5): a spline alone held the truth in
    # 66 to 78 % of data sets at the outer quantiles; and 5 % of calibrated data sets are above the
    # null (se 3 % of 60)
    held, above, found = [], [], []
    for seed in range(60):
        rng = np.random.default_rng([seed, 36])
        x = rng.beta(0.5, 0.5, 2000)
        truth = 0.025 + 0.95 * x
        uniform = rng.random(2000)
        points = np.quantile(x, [0.01, 0.05, 0.1, 0.9, 0.95, 0.99])
        wrong = smooth_curve(two(x), (uniform < truth).astype(int), label=1)
        at = wrong.at(points)
        right = 0.025 + 0.95 * points
        held.append((np.array(at["low"]) <= right) & (right <= np.array(at["high"])))
        calibrated = smooth_curve(two(x), (uniform < x).astype(int), label=1)
        above.append(calibrated.ici > calibrated.ici_null)
        found.append(wrong.ici > wrong.ici_null)
    assert np.mean(held) > 0.91
    assert np.mean(held, axis=0).min() > 0.85
    assert np.mean(above) < 0.14
    assert np.mean(found) > 0.2


def test_the_null_of_the_ici_by_fits():
    # what 150 fits to labels drawn from the predictions show, against one step and no fit
    x, y = sample(300)
    found = smooth_curve(two(x), y, label=1)
    rng = np.random.default_rng(6)
    fits = [
        smooth_curve(
            two(x), (rng.random(300) < x).astype(int), label=1, classes=[0, 1]
        ).ici
        for _ in range(150)
    ]
    assert found.ici_null == pytest.approx(np.quantile(fits, 0.95), rel=0.12)
    assert f"ICI {found.ici:.4g} (calibrated: up to {found.ici_null:.4g})" in repr(
        found
    )
    table = calibration_distances(y, two(x))
    assert table["ici_null"][2] == found.ici_null
    assert np.isnan(table["ici_null"][-1])
    grouped = Predictions.from_arrays(two(x), y, groups=np.arange(300) // 3)
    assert np.isnan(smooth_curve(grouped, label=1).ici_null)


def test_distances_of_all_classes_and_absent_ones():
    rng = np.random.default_rng(3)
    x = rng.dirichlet(np.ones(4), 200)
    y = rng.integers(0, 3, 200)  # the last class never comes true
    table = calibration_distances(y, x, classes=range(4))
    assert table["of"] == ["top label", *["class"] * 4, "mean of classes"]
    assert table["class"] == ["", 0, 1, 2, 3, ""]
    for name in ("ici", "e50", "e90", "emax"):
        assert table[name][-1] == pytest.approx(np.mean(table[name][1:-1]))
    each = [smooth_curve(x, y, label=k, classes=range(4)).ici for k in range(4)]
    assert table["ici"][1:-1] == pytest.approx(each)
    marginal = integrated_calibration_index(y, x, target="marginal", classes=range(4))
    assert marginal == pytest.approx(table["ici"][-1])
    assert integrated_calibration_index(y, x, classes=range(4)) == table["ici"][0]


def test_bad_options_are_refused():
    for options, words in (
        ({"level": 1.0}, r"level must lie in \(0, 1\); got level=1.0"),
        ({"n_knots": 2.5}, "n_knots must be a whole number >= 2; got n_knots=2.5"),
        ({"label": "x"}, "label='x' is not a class"),
    ):
        with pytest.raises(InputError, match=words):
            smooth_curve(two([0.2, 0.4]), [0, 1], **options)
    with pytest.raises(InputError, match="target must be 'top-label' or 'marginal'"):
        integrated_calibration_index([0, 1], two([0.2, 0.4]), target="all")


def test_columns_are_independent_and_knots_do_not_ask_labels():
    x, _ = sample(500)
    basis = SplineBasis.from_values(x, np.ones(500), 6)
    rows_, info = basis(log_odds(x)), x * (1 - x) / (x * (1 - x)).sum()
    np.testing.assert_allclose(rows_.T @ (rows_ * info[:, None]), np.eye(6), atol=1e-9)
    a, b = (
        Spline.fit(x, y, np.ones(500)).basis.knots
        for y in (np.zeros(500), np.ones(500))
    )
    np.testing.assert_array_equal(a, b)


def test_two_knots_are_a_logistic_recalibration():
    # log odds = a + b l; the pull is b0^2 + b1^2 of 1500 rows: next to nothing
    x, y = sample(1500)
    found = smooth_curve(two(x), y, label=1, n_knots=2)
    at = log_odds(found.predicted)
    slope, intercept = np.polyfit(at, logit(found.observed), 1)
    assert np.abs(logit(found.observed) - intercept - slope * at).max() < 1e-6
    assert (slope, intercept) == pytest.approx((0.6, 0.3), abs=0.15)
