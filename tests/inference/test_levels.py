"""How often predictions are right at a level: from the rows near it, and by the map."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm, t

import mcllo
from mcllo import Predictions
from mcllo._inference.levels import n_rows_near, observed_levels, wilson_interval


def two_columns(p):
    return np.column_stack([p, 1.0 - p])


def two_levels(**options):
    """40 rows say 0.8 and 30 come true; 40 say 0.6 and 20 come true."""
    x = np.repeat([0.8, 0.6], 40)
    y = np.concatenate([np.arange(40) >= 30, np.arange(40) >= 20]).astype(int)
    return Predictions.from_arrays(two_columns(x), y, **options)


def wilson(hits, n, quantile):
    """Wilson's interval as the roots of its quadratic equation."""
    roots = np.roots(
        [1 + quantile**2 / n, -(2 * hits / n + quantile**2 / n), (hits / n) ** 2]
    )
    return tuple(np.sort(roots))


@pytest.mark.parametrize("n", [60, 93, 107, 186, 214])
def test_where_all_are_right_the_share_is_one_whatever_sums_round_to(n):
    # Shares 1/n add up to 1 - 1e-16 for these n, or for others: the answer must not hang on it.
    x = np.linspace(0.955, 0.965, n)
    rows = Predictions.from_arrays(
        two_columns(x), np.zeros(n, dtype=int), classes=[0, 1]
    )
    (level,) = observed_levels(rows, 0.95)
    assert (level.right, level.high) == (1.0, 1.0)


def test_two_levels_by_hand():
    size = mcllo.assess(two_levels(), seed=0).effect_size
    low, high = size.levels
    assert (low.says, high.says, low.n_samples, high.n_samples) == (0.6, 0.8, 40, 40)
    assert (low.right, high.right) == pytest.approx((0.5, 0.75))
    assert (high.low, high.high) == pytest.approx(wilson(30, 40, norm.isf(0.025)))
    # the map has two parameters and meets both points: a binomial share on the logit scale
    error = norm.isf(0.025) / np.sqrt(40 * 0.75 * 0.25)
    ends = expit(logit(0.75) + np.array([-error, error]))
    assert (high.map_right, high.map_low, high.map_high) == pytest.approx(
        (0.75, *ends), rel=1e-6
    )


def test_the_estimate_is_moved_to_the_level():
    # 100 rows say 0.79 and 70 come true: at 80 % one point more
    x = np.full(100, 0.79)
    (level,) = observed_levels(
        Predictions.from_arrays(two_columns(x), np.arange(100) >= 70), 0.95
    )
    ends = np.array(wilson(70, 100, norm.isf(0.025))) + 0.01
    assert (level.says, level.right) == pytest.approx((0.8, 0.71))
    assert (level.low, level.high) == pytest.approx(tuple(ends))


def test_no_end_leaves_the_unit_interval():
    x = np.full(200, 0.9991)
    (level,) = observed_levels(
        Predictions.from_arrays(two_columns(x), np.zeros(200, int)), 0.95
    )
    assert level.right <= level.high <= 1.0
    assert 0.9 < level.low < 0.999


def test_only_rows_near_the_level_count():
    # far more rows elsewhere, all wrong: the rows at 0.8 are still right in 30 of 40
    x = np.concatenate([np.repeat(0.8, 40), np.repeat(0.55, 400)])
    y = np.concatenate([np.arange(40) >= 30, np.ones(400)]).astype(int)
    last = observed_levels(Predictions.from_arrays(two_columns(x), y), 0.95)[-1]
    assert (last.says, last.right, last.n_samples) == pytest.approx((0.8, 0.75, 40))


def test_rows_taken_grow_more_slowly_than_the_table():
    sizes = [n_rows_near(n) for n in (10, 400, 3200, 8000, 64_000, 10**6)]
    assert sizes == [50, 50, 400, 400, 1600, 10_000]


def test_counts_are_rows_written_out():
    rng = np.random.default_rng(0)
    x = rng.dirichlet(np.ones(3), 600)
    y = rng.integers(3, size=600)
    times = rng.integers(1, 4, 600)
    once = observed_levels(Predictions.from_arrays(x, y, sample_weight=times), 0.95)
    written = Predictions.from_arrays(np.repeat(x, times, axis=0), np.repeat(y, times))
    for level, same in zip(once, observed_levels(written, 0.95), strict=True):
        assert level.says == same.says
        assert abs(level.n_samples - same.n_samples) <= 3  # the last row is taken whole
        assert (level.right, level.low, level.high) == pytest.approx(
            (same.right, same.low, same.high), abs=0.005
        )


def test_unequal_weights_leave_fewer_effective_rows():
    weight = np.tile([1.0, 3.0], 40)  # (4 * 20)^2 / (10 * 20) = 32 of 40 rows
    rows = two_levels(sample_weight=weight, weight_kind="importance")
    _, high = observed_levels(rows, 0.95)
    hits = np.average(np.arange(40) < 30, weights=weight[:40])
    assert high.right == pytest.approx(hits)
    assert (high.low, high.high) == pytest.approx(
        wilson(32 * hits, 32, norm.isf(0.025))
    )


def test_rows_of_one_group_that_agree_count_once():
    # every row four times, in a group with its copies: as many effective rows as groups
    x = np.repeat(np.repeat([0.8, 0.6], 40), 4)
    y = np.repeat(
        np.concatenate([np.arange(40) >= 30, np.arange(40) >= 20]).astype(int), 4
    )
    groups = np.repeat(np.arange(80), 4)
    _, high = observed_levels(
        Predictions.from_arrays(two_columns(x), y, groups=groups), 0.95
    )
    assert high.right == pytest.approx(0.75, abs=0.01)
    n_groups = high.n_samples / 4
    expected = wilson(high.right * n_groups, n_groups, t.isf(0.025, n_groups - 1))
    assert (high.low, high.high) == pytest.approx(expected, abs=0.02)


def test_wilson_against_its_quadratic_equation():
    for hits, n in ((0, 50), (7, 50), (50, 50)):
        assert wilson_interval(hits / n, n, 1.96) == pytest.approx(
            wilson(hits, n, 1.96)
        )


def test_label_noise_is_seen_where_the_map_is_false():
    # 10 % of the labels are anything: what says 99.9 % is right in 91 %, and no map can say so
    rng = np.random.default_rng(3)
    n, c = 4000, 10
    z = rng.normal(size=(n, c))
    z[np.arange(n), rng.integers(c, size=n)] += rng.normal(5.0, 2.5, n)
    x = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    truth = 0.9 * x + 0.01
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    last = mcllo.assess(x, y, seed=1, n_resamples=99).effect_size.levels[-1]
    assert last.says == 0.999
    assert last.low < 0.909 < last.high
    assert last.map_low > 0.95
