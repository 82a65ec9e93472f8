"""Intervals for differences in log loss, against binomial likelihoods and simulated quantiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import xlogy
from scipy.stats import norm

from mcllo._inference.paired_loss import PairedLoss, all_pairs_quantile


def equal_rows(n, failed, first=0.01, other=0.05, **options):
    """Return `n` equal rows of which the first `failed` had the event, and what each gains."""
    a, b = (np.tile([1.0 - p, p], (n, 1)) for p in (first, other))
    observed = np.where(np.arange(n) < failed, np.log(first / other), np.log1p(-first))
    observed = observed - np.where(np.arange(n) < failed, 0.0, np.log1p(-other))
    weight = options.pop("weight", np.ones(n))
    return PairedLoss(observed, a, b, (a + b) / 2, weight, **options)


def by_hand(n, failed, quantile, first=0.01, other=0.05):
    """Return the interval of equal rows: the family is the binomial one, of any probability q."""
    sure, event = np.log((1 - first) / (1 - other)), np.log(first / other)
    share, half = (
        failed / n,
        (failed + 0.5) / (n + 1.0),
    )  # Firth's estimate is half an event more
    spread = max(share * (1 - share) / (n - 1), half * (1 - half) / n)
    goal = quantile**2 * spread * n / (half * (1 - half))

    def beyond(q):
        away = xlogy(failed, share) + xlogy(n - failed, 1 - share)
        return 2 * (away - xlogy(failed, q) - xlogy(n - failed, 1 - q)) - goal

    high = brentq(beyond, share, 1 - 1e-12) if failed < n else 1.0
    low = brentq(beyond, 1e-12, share) if failed else 0.0
    return tuple(sure + q * (event - sure) for q in (high, low))


# by hand


def test_equal_rows_are_a_binomial_sample():
    for n, failed in [(50, 0), (50, 1), (400, 12), (8, 8)]:
        for quantile in (1.0, 1.96, 3.2):
            found, expected = (
                equal_rows(n, failed).interval(quantile),
                by_hand(n, failed, quantile),
            )
            assert found == pytest.approx(expected, rel=2e-4, abs=1e-6), (
                n,
                failed,
                quantile,
            )


def test_no_error_seen_is_not_no_error():
    pair = equal_rows(50, 0)
    low, high = pair.interval(1.96)
    assert pair.standard_error < 1e-12
    assert high == pytest.approx(pair.mean)
    assert low < 0.0 < pair.mean


def test_equal_predictions_do_not_differ():
    pair = equal_rows(20, 3, first=0.1, other=0.1)
    assert (pair.mean, pair.error, pair.interval(3.0)) == (0.0, 0.0, (0.0, 0.0))


def test_one_row_says_nothing():
    assert equal_rows(1, 0).interval(2.0) == (-np.inf, np.inf)


# against other ways to compute the same


def random_pair(seed, n=300, c=4):
    rng = np.random.default_rng(seed)
    a = rng.dirichlet(np.ones(c), n) + 1e-4
    b = a * np.exp(0.3 * rng.normal(size=a.shape))
    a, b = a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > a.cumsum(axis=1)[:, :-1]).sum(axis=1)
    rows = np.arange(n)
    return np.log(a[rows, y] / b[rows, y]), a, b, (a + b) / 2


def test_with_many_even_rows_it_is_the_usual_interval():
    observed, *tables = random_pair(0, n=20_000)
    pair = PairedLoss(observed, *tables, np.ones(20_000))
    half = 1.96 * observed.std(ddof=1) / np.sqrt(20_000)
    assert pair.interval(1.96) == pytest.approx(
        (observed.mean() - half, observed.mean() + half), abs=0.03 * half
    )


def test_whole_weights_are_repeated_rows():
    observed, *tables = random_pair(1, n=60)
    count = np.random.default_rng(1).integers(0, 4, 60)
    one = PairedLoss(observed, *tables, count.astype(float))
    tables = [np.repeat(table, count, axis=0) for table in tables]
    two = PairedLoss(np.repeat(observed, count), *tables, np.ones(count.sum()))
    assert one.interval(2.5) == pytest.approx(two.interval(2.5), rel=1e-4)


def test_survey_weights_count_no_rows():
    observed, *tables = random_pair(2)
    w = np.random.default_rng(2).uniform(0.5, 2.0, 300)
    found = [
        PairedLoss(observed, *tables, k * w, groups=np.arange(300)).interval(2.0)
        for k in (1, 10)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_rows_that_repeat_each_other_widen_the_interval():
    observed, *tables = random_pair(3, n=40)
    five = [np.repeat(table, 5, axis=0) for table in tables]
    groups = np.repeat(np.arange(40), 5)
    one = PairedLoss(observed, *tables, np.ones(40)).interval(2.0)
    grouped = PairedLoss(np.repeat(observed, 5), *five, np.ones(200), groups).interval(
        2.0
    )
    assert grouped == pytest.approx(one, rel=0.1)


def test_some_of_many_rows_show_the_shape_of_all():
    observed, a, b, m = random_pair(4, n=4000)
    whole = PairedLoss(observed, a, b, m, np.ones(4000)).interval(2.5)
    tables = a[::4], b[::4], m[::4]
    part = PairedLoss(observed, *tables, np.ones(4000), row_step=4).interval(2.5)
    assert part == pytest.approx(whole, abs=0.05 * (whole[1] - whole[0]))


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 10_000), st.integers(2, 60), st.integers(2, 5), st.floats(0.0, 30.0)
)
def test_the_mean_is_inside_and_wider_quantiles_are_wider(seed, n, c, boldness):
    rng = np.random.default_rng(seed)
    logits = boldness * rng.normal(size=(3, n, c))
    tables = np.exp(logits - logits.max(axis=2, keepdims=True)) + 1e-9
    tables /= tables.sum(axis=2, keepdims=True)
    y = rng.integers(0, c, n)
    a, b, _ = tables
    observed = np.log(a[np.arange(n), y] / b[np.arange(n), y])
    pair = PairedLoss(observed, a, b, tables.mean(axis=0), np.ones(n))
    narrow, wide = pair.interval(1.0), pair.interval(3.0)
    assert narrow[0] <= pair.mean <= narrow[1]
    slack = 1e-3 * (wide[1] - wide[0])
    assert wide[0] <= narrow[0] + slack
    assert wide[1] >= narrow[1] - slack
    assert np.isfinite(wide).all()


def test_all_but_certain_labels():
    for tiny in (1e-300, 1e-12):
        a, b = (np.tile([1.0 - p, p], (30, 1)) for p in (tiny, tiny**0.5))
        for y in (np.zeros(30, dtype=int), np.arange(30) % 2):
            observed = np.log(a[np.arange(30), y] / b[np.arange(30), y])
            pair = PairedLoss(observed, a, b, (a + b) / 2, np.ones(30))
            low, high = pair.interval(3.0)
            assert np.isfinite([low, high, pair.error, pair.dispersion]).all(), tiny
            assert low <= pair.mean <= high, tiny


# all pairs


def test_two_methods_are_one_pair_and_equal_ones_are_none():
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(200, 2))
    assert all_pairs_quantile(losses, np.ones(200)) == pytest.approx(norm.ppf(0.975))
    same = np.repeat(losses[:, :1], 4, axis=1)
    assert all_pairs_quantile(same, np.ones(200)) == pytest.approx(norm.ppf(0.975))
    twice = all_pairs_quantile(losses[:, [0, 1, 1, 1]], np.ones(200))
    assert twice == pytest.approx(norm.ppf(0.975), abs=0.06)


@pytest.mark.parametrize(
    "seed", [2, 9, 22, 48, 55]
)  # where rounding once was a difference
def test_losses_that_differ_by_rounding_alone_are_the_same(seed):
    # As `auto` that leaves the predictions alone: equal to them but for the last digits. Sums of
    # squares round by more than that, differently with each BLAS.
    rng = np.random.default_rng(seed)
    losses = rng.exponential(3.0, (1000, 3))
    rounded = losses[:, :1] * (
        1.0 + np.finfo(float).eps * rng.integers(-4, 5, (1000, 1))
    )
    found = all_pairs_quantile(np.hstack([rounded, losses]), np.ones(1000))
    assert found == pytest.approx(all_pairs_quantile(losses, np.ones(1000)), abs=0.05)


def test_independent_losses_give_the_studentized_range():
    # Tukey: the 95 % quantile of the studentized range of 6 means, many rows, is 4.030
    losses = np.random.default_rng(1).normal(size=(20_000, 6))
    found = all_pairs_quantile(losses, np.ones(20_000))
    assert found == pytest.approx(4.030 / np.sqrt(2.0), abs=0.04)
    assert found < norm.ppf(1 - 0.025 / 15)


def test_groups_weights_and_the_order_of_rows():
    rng = np.random.default_rng(2)
    losses, w = rng.normal(size=(90, 3)), rng.integers(1, 4, 90)
    plain = all_pairs_quantile(losses, w.astype(float))
    repeated = all_pairs_quantile(np.repeat(losses, w, axis=0), np.ones(w.sum()))
    assert plain == pytest.approx(repeated)
    order = rng.permutation(90)
    assert plain == pytest.approx(
        all_pairs_quantile(losses[order], w[order].astype(float))
    )
    own = all_pairs_quantile(losses, np.ones(90), np.arange(90))
    assert own == pytest.approx(all_pairs_quantile(losses, np.ones(90)))
