"""Reliability curves: bins, Wilson intervals, bands."""

import json
from statistics import NormalDist

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import binom
from toy import TOY_X, TOY_Y

from mcllo import Predictions, reliability_curve
from mcllo._ground.text import Table
from mcllo._inference.draws import draw_labels
from mcllo.exceptions import InputError
from mcllo.metrics import expected_calibration_error
from mcllo.metrics._bins import bin_index, width_edges
from mcllo.metrics._reliability import central_range, poisson_binomial

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_points_on_the_diagonal_and_far_off():
    curve = reliability_curve([[0.75, 0.25]] * 4, ["a", "a", "a", "b"], n_bins=4)
    assert curve.observed[2] == curve.mean_predicted[2] == 0.75
    assert not curve.outside.any()
    far = reliability_curve([[0.9, 0.1]] * 50, [0] * 20 + [1] * 30)
    assert far.outside.tolist() == [False] * 8 + [True, False]


def test_by_hand():
    # confidences .9 .8 | .6 .7 in the bins (.75, 1] and (.5, .75]; hits 1 1 | 1 0
    p = Predictions.from_arrays([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], [0, 0, 1, 1])
    curve = reliability_curve(p, n_bins=4)
    assert curve.edges.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert curve.counts.tolist() == [0, 0, 2, 2]
    np.testing.assert_allclose(curve.mean_predicted, [np.nan, np.nan, 0.65, 0.85])
    np.testing.assert_allclose(curve.observed, [np.nan, np.nan, 0.5, 1.0])
    # in the last bin no hit has probability .1 * .2 = .02 < .025, one or none .28: at least 1 of 2
    np.testing.assert_allclose(curve.band_low, [np.nan, np.nan, 0.0, 0.5])
    np.testing.assert_allclose(curve.band_high, [np.nan, np.nan, 1.0, 1.0])


def test_wilson_solves_its_equation():
    # both ends q of Wilson's interval satisfy (f - q)^2 = z^2 q (1 - q) / n
    curve = reliability_curve(TOY, n_bins=3, level=0.9)
    z = NormalDist().inv_cdf(0.95)
    used = curve.counts > 0
    for q in (curve.low[used], curve.high[used]):
        f, n = curve.observed[used], curve.counts[used]
        np.testing.assert_allclose((f - q) ** 2, z**2 * q * (1 - q) / n, atol=1e-12)
    assert (curve.low[used] <= curve.observed[used]).all()
    assert (curve.high[used] >= curve.observed[used]).all()


def test_one_class():
    curve = reliability_curve(TOY, label=1, n_bins=4)
    # methods.md 2, TOY B=4: frequencies of class 1 (.166667, .285714, .5, 1)
    np.testing.assert_allclose(curve.observed, [1 / 6, 2 / 7, 1 / 2, 1.0])
    assert curve.label == 1
    assert curve.counts.sum() == 16


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_gaps_make_up_the_expected_calibration_error(binning):
    curve = reliability_curve(TOY, n_bins=10, binning=binning)
    gaps = np.nan_to_num(np.abs(curve.observed - curve.mean_predicted))
    error = expected_calibration_error(TOY_Y, TOY_X, n_bins=10, binning=binning)
    assert curve.counts @ gaps / 16 == pytest.approx(error)


def test_band_is_that_of_simulated_labels():
    rng = np.random.default_rng(13)
    probs = rng.dirichlet(np.ones(3), 200)
    p = Predictions.from_arrays(probs, rng.integers(0, 3, 200))
    curve = reliability_curve(p, label=2, n_bins=5, level=0.9)
    hits = draw_labels(probs, 0, 0, 4000) == 2
    index = bin_index(probs[:, 2], width_edges(5))
    for m in range(5):
        rate = hits[:, index == m].mean(axis=1)
        assert (rate < curve.band_low[m] - 1e-12).mean() < 0.05 + 0.011
        assert (rate > curve.band_high[m] + 1e-12).mean() < 0.05 + 0.011
        assert (rate <= curve.band_low[m] + 1e-12).mean() > 0.05 - 0.011
        assert (rate >= curve.band_high[m] - 1e-12).mean() > 0.05 - 0.011


def test_weights_are_rows():
    w = np.arange(16) % 4
    short = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=w)
    long = Predictions.from_arrays(np.repeat(TOY_X, w, axis=0), np.repeat(TOY_Y, w))
    for binning in ("width", "mass"):
        a = reliability_curve(short, binning=binning, n_bins="sqrt").to_dict()
        b = reliability_curve(long, binning=binning, n_bins="sqrt").to_dict()
        assert a.keys() == b.keys()
        for name in ("edges", "counts"):
            assert a[name] == b[name]
        for name in ("observed", "mean_predicted", "low", "band_low", "band_high"):
            np.testing.assert_allclose(*(np.array(d[name], dtype=float) for d in (a, b)))


def test_fractional_weights_have_intervals_and_no_band():
    p = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    curve = reliability_curve(p, n_bins=2)
    assert np.isnan(curve.band_low).all()
    assert not np.isnan(curve.low[1])
    assert not curve.outside.any()
    assert reliability_curve(p, n_bins=1).to_table()["counts"] == [8]


def test_tables_and_dicts():
    curve = reliability_curve(TOY)
    table = curve.to_table()
    assert isinstance(table, Table)
    assert len(table) == curve.n_bins == 10
    assert table["counts"] == [0, 0, 0, 2, 5, 3, 3, 3, 0, 0]
    plain = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert plain["observed"][0] is None
    assert plain["level"] == 0.95
    assert plain["label"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "cat"}, "label='cat' is not a class"),
        ({"level": 95}, r"level must lie in \(0, 1\); got level=95"),
        ({"n_bins": 0}, "n_bins must be"),
    ],
)
def test_errors(options, message):
    with pytest.raises(InputError, match=message):
        reliability_curve(TOY, **options)


probabilities = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))


def test_one_row_and_certain_rows():
    np.testing.assert_allclose(poisson_binomial(np.array([0.3])), [0.7, 0.3])
    np.testing.assert_allclose(
        poisson_binomial(np.array([1.0, 0.0, 1.0])), [0, 0, 1, 0], atol=1e-15
    )


@settings(deadline=None, max_examples=50)
@given(probabilities)
def test_one_factor_at_a_time_agrees(probs):
    mass = np.array([1.0])
    for p in probs:
        mass = np.convolve(mass, [1 - p, p])
    np.testing.assert_allclose(poisson_binomial(probs), mass, atol=1e-13)


@pytest.mark.parametrize("n", [7, 64, 1000, 3001])
def test_equal_probabilities_are_binomial(n):
    mass = poisson_binomial(np.full(n, 0.37))
    np.testing.assert_allclose(mass, binom.pmf(np.arange(n + 1), n, 0.37), atol=1e-13)


def test_expected_calibration_error_under_calibration():
    # methods.md 5.3, TOY: E*[ECE] = .2146640625 with 10 bins, by enumeration
    confidence, total = TOY_X.max(axis=1), 0.0
    index = bin_index(confidence, width_edges(10))
    for m in range(10):
        inside = confidence[index == m]
        if len(inside):
            hits = np.arange(len(inside) + 1)
            total += poisson_binomial(inside) @ np.abs(hits - inside.sum())
    assert total / 16 == pytest.approx(0.2146640625, abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(probabilities, st.sampled_from([0.5, 0.9, 0.95]))
def test_central_range_leaves_at_most_half_the_rest_on_each_side(probs, level):
    low, high = central_range(probs, level)
    mass, tail = poisson_binomial(probs), (1 - level) / 2 + 1e-9
    assert 0 <= low <= high <= len(probs)
    assert mass[:low].sum() <= tail
    assert mass[high + 1 :].sum() <= tail
    assert mass[: low + 1].sum() >= tail - 2e-9
    assert mass[high:].sum() >= tail - 2e-9
