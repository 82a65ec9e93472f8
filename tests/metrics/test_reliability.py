"""Reliability curves: bins, Wilson intervals, bands."""

import json

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import binom
from toy import TOY_X, TOY_Y

from mcllo import Predictions, reliability_curve
from mcllo._inference.monte_carlo import draw_labels
from mcllo._utils.formatting import Table
from mcllo.metrics._bins import bin_index, equal_width_edges
from mcllo.metrics._reliability import (
    MAX_RARE_PROB,
    central_range_of_hits,
    poisson_binomial_pmf,
    poisson_binomial_pmf_of_rare_hits,
)

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_band_is_that_of_simulated_labels():
    rng = np.random.default_rng(13)
    probs = rng.dirichlet(np.ones(3), 200)
    p = Predictions.from_arrays(probs, rng.integers(0, 3, 200))
    curve = reliability_curve(p, label=2, n_bins=5, level=0.9)
    hits = draw_labels(probs, 0, 0, 4000) == 2
    index = bin_index(probs[:, 2], equal_width_edges(5))
    for m in range(5):
        rate = hits[:, index == m].mean(axis=1)
        assert (rate < curve.band_low[m] - 1e-12).mean() < 0.05 + 0.011
        assert (rate > curve.band_high[m] + 1e-12).mean() < 0.05 + 0.011
        assert (rate <= curve.band_low[m] + 1e-12).mean() > 0.05 - 0.011
        assert (rate >= curve.band_high[m] - 1e-12).mean() > 0.05 - 0.011


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


probabilities = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))


def test_one_row_and_certain_rows():
    np.testing.assert_allclose(poisson_binomial_pmf(np.array([0.3])), [0.7, 0.3])
    np.testing.assert_allclose(
        poisson_binomial_pmf(np.array([1.0, 0.0, 1.0])), [0, 0, 1, 0], atol=1e-15
    )


@settings(deadline=None, max_examples=50)
@given(probabilities)
def test_one_factor_at_a_time_agrees(probs):
    mass = np.array([1.0])
    for p in probs:
        mass = np.convolve(mass, [1 - p, p])
    np.testing.assert_allclose(poisson_binomial_pmf(probs), mass, atol=1e-13)


@pytest.mark.parametrize(
    "n", [255, 256, 3000, 20_000]
)  # from 256 rare rows on by sums of powers
@pytest.mark.parametrize("n_often", [0, 40])
def test_rows_that_hit_rarely_are_summed_up(n, n_often):
    rng = np.random.default_rng(n + n_often)
    rare = MAX_RARE_PROB * rng.random(n) ** rng.integers(1, 6)
    probs = rng.permutation(
        np.concatenate([rare, rng.uniform(MAX_RARE_PROB, 1.0, n_often)])
    )
    found, mass = poisson_binomial_pmf_of_rare_hits(probs), poisson_binomial_pmf(probs)
    assert len(found) == len(mass) if n < 256 else len(found) < len(mass)
    np.testing.assert_allclose(found, mass[: len(found)], atol=2e-13)
    assert mass[len(found) :].sum() < 1e-13


def test_equal_probabilities_are_binomial():
    for n in (7, 64, 3001):
        mass = poisson_binomial_pmf(np.full(n, 0.37))
        np.testing.assert_allclose(
            mass, binom.pmf(np.arange(n + 1), n, 0.37), atol=1e-13
        )


def test_expected_calibration_error_under_calibration():
    # methods.md 5.3, TOY: E*[ECE] = .2146640625 with 10 bins, by enumeration
    confidence, total = TOY_X.max(axis=1), 0.0
    index = bin_index(confidence, equal_width_edges(10))
    for m in range(10):
        inside = confidence[index == m]
        if len(inside):
            hits = np.arange(len(inside) + 1)
            total += poisson_binomial_pmf(inside) @ np.abs(hits - inside.sum())
    assert total / 16 == pytest.approx(0.2146640625, abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(probabilities, st.sampled_from([0.5, 0.9, 0.95]))
def test_central_range_leaves_at_most_half_the_rest_on_each_side(probs, level):
    low, high = central_range_of_hits(probs, level)
    mass, tail = poisson_binomial_pmf(probs), (1 - level) / 2 + 1e-9
    assert 0 <= low <= high <= len(probs)
    assert mass[:low].sum() <= tail
    assert mass[high + 1 :].sum() <= tail
    assert mass[: low + 1].sum() >= tail - 2e-9
    assert mass[high:].sum() >= tail - 2e-9
