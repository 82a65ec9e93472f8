"""The isotonic curve with its band: draws, exactness, ties, weights, plain values."""

import json

import numpy as np
import pytest

from mcllo import Predictions, isotonic_curve
from mcllo._inference.consistency import (
    MAX_BAND_POINTS,
    band_of_draws,
    select_band_values,
)
from mcllo._inference.monte_carlo import uniform_draws
from mcllo.exceptions import InputError
from mcllo.metrics import decompose_isotonic
from mcllo.metrics._isotonic import PooledPredictions, isotonic_fit


def two(x):
    x = np.asarray(x, dtype=float)
    return np.column_stack([1.0 - x, x])


def test_blocks_and_band_by_hand():
    # one value, .5, five rows: the curve is the share of hits. Of 19 draws at level .8 the second
    # smallest and largest: k = floor(20 * .1) = 2
    curve = isotonic_curve(
        two(np.full(5, 0.5)),
        [0, 1, 1, 1, 1],
        label=1,
        n_resamples=19,
        level=0.8,
        seed=3,
    )
    assert curve.blocks.rows() == [
        {"from": 0.5, "to": 0.5, "counts": 5, "observed": 0.8}
    ]
    shares = np.sort((uniform_draws(3, 0, 19, 5) < 0.5).mean(axis=1))
    assert (curve.band_low[0], curve.band_high[0]) == (shares[1], shares[-2])
    # Brier: (.5 - .8)^2 is what the recalibration gains
    assert curve.brier.miscalibration == pytest.approx(0.09)
    gains = (shares - 0.5) ** 2
    assert curve.null.observed == pytest.approx(0.09)
    assert curve.null.mean == pytest.approx(gains.mean())
    assert curve.null.pvalue == (1 + (gains >= 0.09 - 1e-12).sum()) / 20


def test_too_few_draws_leave_everything_open():
    curve = isotonic_curve(two([0.2, 0.7]), [0, 1], label=1, n_resamples=19, seed=0)
    np.testing.assert_array_equal(curve.band_low, 0.0)
    np.testing.assert_array_equal(curve.band_high, 1.0)


def test_one_more_draw_is_inside():
    # rank by rank: of 39 equal draws plus one, each end is left by 1 in 40
    values = np.arange(40.0)[:, None]
    outside = 0
    for k in range(40):
        low, high = band_of_draws(np.delete(values, k, axis=0), 0.95)
        outside += not low[0] <= values[k, 0] <= high[0]
    assert outside == 2


def test_curves_of_draws_are_refitted():
    rng = np.random.default_rng(0)
    x = rng.random(30).round(1)  # ties
    y = (rng.random(30) < x).astype(int)
    curve = isotonic_curve(two(x), y, label=1, n_resamples=39, seed=5)
    order = np.sort(x)
    drawn = []
    for row in uniform_draws(5, 0, 39, 30) < order:
        pooled = PooledPredictions.from_values(order, row.astype(float))
        drawn.append(isotonic_fit(pooled.frequency, pooled.weight))
    np.testing.assert_allclose(curve.band_low, np.min(drawn, axis=0))
    np.testing.assert_allclose(curve.band_high, np.max(drawn, axis=0))


def test_between_and_beyond_the_blocks():
    curve = isotonic_curve(two([0.2, 0.4, 0.8]), [0, 0, 1], label=1, seed=0)
    np.testing.assert_allclose(
        curve.at([0.0, 0.2, 0.3, 0.6, 0.8, 1.0]), [0, 0, 0, 0.5, 1, 1]
    )
    assert curve.to_table().columns == (
        "predicted",
        "observed",
        "band_low",
        "band_high",
    )


def test_parts_are_those_of_the_metric():
    rng = np.random.default_rng(2)
    x = rng.dirichlet(np.ones(3), 80)
    y = rng.integers(0, 3, 80)
    for label in (None, 2):
        curve = isotonic_curve(x, y, label=label, n_resamples=9, seed=0)
        for score in ("brier", "log_loss"):
            parts = decompose_isotonic(y, x, label=label, score=score)
            assert getattr(curve, score).to_dict() == parts.to_dict()
    assert curve.null.observed == pytest.approx(curve.brier.miscalibration)


def test_whole_weights_are_rows_and_others_have_no_band():
    rng = np.random.default_rng(4)
    x, weight = rng.random(40), rng.integers(0, 4, 40)
    y = (rng.random(40) < x).astype(int)
    one = isotonic_curve(two(x), y, label=1, sample_weight=weight, seed=1)
    other = isotonic_curve(
        two(np.repeat(x, weight)), np.repeat(y, weight), label=1, seed=1
    )
    assert one.blocks.rows() == other.blocks.rows()
    np.testing.assert_array_equal(one.band_low, other.band_low)
    survey = Predictions.from_arrays(
        two(x), y, sample_weight=weight + 0.5, weight_kind="survey"
    )
    curve = isotonic_curve(survey, label=1, seed=1)
    assert np.isnan(curve.band_low).all()
    assert curve.null is None
    assert curve.n_resamples == 0
    assert not curve.outside.any()
    assert np.isfinite(curve.brier.miscalibration)


def test_the_seed_alone_decides():
    x = np.random.default_rng(0).random(60)
    y = (x > 0.4).astype(int)
    a, b, c = (isotonic_curve(two(x), y, n_resamples=99, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.band_low, b.band_low)
    assert (a.band_low != c.band_low).any()
    assert a.seed == 1


def test_points_are_few_and_do_not_ask_labels():
    rng = np.random.default_rng(1)
    x = rng.beta(0.2, 0.2, 5000)
    points = [
        select_band_values(PooledPredictions.from_values(x, hits))
        for hits in (np.zeros(5000), np.ones(5000))
    ]
    np.testing.assert_array_equal(*points)
    assert MAX_BAND_POINTS / 2 <= len(points[0]) <= MAX_BAND_POINTS
    assert points[0][[0, -1]].tolist() == [0, len(np.unique(x)) - 1]
    few = PooledPredictions.from_values(np.array([0.1, 0.1, 0.9]), np.zeros(3))
    assert select_band_values(few).tolist() == [0, 1]


def test_plain_values_and_errors():
    curve = isotonic_curve([[0.9, 0.1], [1.0, 0.0]], [0, 0], classes=[0, 1], seed=0)
    plain = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert plain["blocks"] == [{"from": 0.9, "to": 1.0, "counts": 2, "observed": 1.0}]
    assert plain["null"]["n_resamples"] == plain["n_resamples"] == 999
    assert plain["brier"]["uncertainty"] == 0.0
    assert repr(curve) == "<IsotonicCurve of most probable class: 1 blocks>"
    with pytest.raises(InputError, match="level must lie"):
        isotonic_curve([[0.9, 0.1]], [0], classes=[0, 1], level=0.0)
    with pytest.raises(InputError, match="n_resamples must be at least 1"):
        isotonic_curve([[0.9, 0.1]], [0], classes=[0, 1], n_resamples=0)
