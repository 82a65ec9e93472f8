import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo.calibrators import HistogramBinning, IsotonicCalibration
from mcllo.exceptions import InputError


def test_rows_on_which_it_is_right_stay():
    # Every bin that holds rows says exactly what the rows predicted.
    X = np.array([[0.25, 0.75]] * 4 + [[0.5, 0.5]] * 2)
    for cls in (HistogramBinning, IsotonicCalibration):
        np.testing.assert_allclose(cls().fit(X, [0, 1, 1, 1, 0, 1]).predict_proba(X), X)


def test_hand_sized_example():
    # Class 0, bins (0, .5] and (.5, 1]: .2 and .4 hold labels 1, 1, so 0; .7, .8, .9 hold 1, 0, 0,
    # so 2/3. Class 1: .1, .2, .3 hold 0, 0, 1, so 1/3; .6, .8 hold 1, 1, so 1.
    X = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]]
    fitted = HistogramBinning(n_bins=2).fit(X, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(fitted.table_, [[0.0, 2 / 3], [1 / 3, 1.0]])
    np.testing.assert_array_equal(fitted.counts_, [[2, 3], [3, 2]])
    answer = fitted.predict_proba([[0.6, 0.4], [0.3, 0.7]])
    np.testing.assert_allclose(answer, [[2 / 3, 1 / 3], [0.0, 1.0]])
    # Laplace smoothing, a = 1: class 0 has the share 2/5, so (0 + .4) / (2 + 1) in the first bin
    # and (2 + .4) / (3 + 1) in the second.
    smooth = HistogramBinning(n_bins=2, smoothing=1.0).fit(X, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(smooth.table_[0], [0.4 / 3, 0.6])


@pytest.mark.parametrize("n_bins", [4, 25])
def test_against_a_loop_over_bins(n_bins):
    rng = np.random.default_rng(0)
    X = np.round(rng.dirichlet([1, 1, 1], size=200), 2)
    X[:, 2] = np.round(1.0 - X[:, 0] - X[:, 1], 2)
    X = X[(X >= 0.0).all(axis=1)]
    y = rng.integers(0, 3, len(X))
    raw = np.empty_like(X)
    for k in range(3):
        for m in range(n_bins):
            low, high = m / n_bins, (m + 1) / n_bins
            inside = (X[:, k] > low) & (X[:, k] <= high) | ((m == 0) & (X[:, k] == 0.0))
            if inside.any():
                raw[inside, k] = (y[inside] == k).mean()
    total = raw.sum(axis=1, keepdims=True)
    expected = np.where(total > 0.0, raw / np.where(total > 0.0, total, 1.0), X)
    answer = HistogramBinning(n_bins=n_bins).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(answer, expected, atol=1e-12)


def test_toy_equal_width():
    # methods.md 2, TOY, B = 4 equal width.
    fitted = HistogramBinning(n_bins=4).fit(TOY_X, TOY_Y)
    expected = [
        [0.125, 0.4, 1, 1],
        [0.166667, 0.285714, 0.5, 1],
        [0.111111, 0.25, 1, 1],
    ]
    np.testing.assert_allclose(fitted.table_, expected, atol=5e-7)
    rows = fitted.predict_proba(TOY_X)
    np.testing.assert_allclose(rows[0], [0.782609, 0.130435, 0.086957], atol=5e-7)
    np.testing.assert_allclose(rows[6], [0.239544, 0.547529, 0.212928], atol=5e-7)


def test_toy_equal_mass():
    # methods.md 2, TOY, B = 4 equal mass.
    fitted = HistogramBinning(n_bins=4, binning="mass").fit(TOY_X, TOY_Y)
    expected = [[0, 0.25, 0.5, 0.75], [0, 0.25, 0.666667, 0.5], [0, 0.333333, 0.25, 1]]
    np.testing.assert_allclose(fitted.table_, expected, atol=5e-7)
    np.testing.assert_allclose(fitted.predict_proba(TOY_X)[0], [1, 0, 0], atol=1e-12)


def test_toy_empty_bins():
    # methods.md 2, empty-bin vector, B = 10, midpoint rule.
    fitted = HistogramBinning().fit(TOY_X, TOY_Y)
    counts = [
        (4, 3, 3, 1, 2, 1, 1, 1, 0, 0),
        (1, 4, 4, 2, 2, 1, 1, 1, 0, 0),
        (6, 1, 4, 0, 2, 1, 1, 1, 0, 0),
    ]
    table = [
        (0, 0.333333, 0.666667, 0, 0, 1, 1, 1, 0.85, 0.95),
        (0, 0, 0.25, 0.5, 0.5, 0, 1, 1, 0.85, 0.95),
        (0, 0, 0.5, 0.35, 0, 1, 1, 1, 0.85, 0.95),
    ]
    np.testing.assert_array_equal(fitted.counts_, counts)
    np.testing.assert_allclose(fitted.table_, table, atol=5e-7)
    np.testing.assert_allclose(fitted.predict_proba([[0.95, 0.03, 0.02]]), [[1, 0, 0]])


def test_empty_bin_rules():
    # Bin (.8, .9] of class 0 is empty; 6 of the 16 rows are of class 0.
    rules = {"midpoint": 0.85, "prior": 6 / 16, "zero": 0.0, "identity": np.nan}
    for empty, answer in rules.items():
        fitted = HistogramBinning(empty=empty).fit(TOY_X, TOY_Y)
        np.testing.assert_allclose(fitted.table_[0][8], answer)


def test_row_of_zeros():
    # Class 0 falls in an empty bin, classes 1 and 2 in bins with 0 of 1 and 0 of 6 hits.
    for zero_row, expected in {
        "original": [0.88, 0.07, 0.05],
        "uniform": [1 / 3] * 3,
    }.items():
        fitted = HistogramBinning(empty="zero", zero_row=zero_row).fit(TOY_X, TOY_Y)
        np.testing.assert_allclose(
            fitted.predict_proba([[0.88, 0.07, 0.05]]), [expected]
        )


def test_identity_rule_uses_the_probability_itself():
    # Two bins: class 0 never has x > .5 here, so a query with .8 says .8; class 1's bin (0, .5] is
    # empty too and says .2.
    X, y = [[0.3, 0.7], [0.4, 0.6], [0.2, 0.8]], [0, 1, 1]
    fitted = HistogramBinning(n_bins=2, empty="identity").fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba([[0.8, 0.2]]), [[0.8, 0.2]])


def test_values_on_edges_belong_to_the_bin_below():
    # methods.md 2: p = .7 with ten bins is in bin 6, 0 in bin 0 and 1 in bin 9.
    X = [[0.7, 0.3], [0.0, 1.0], [1.0, 0.0], [0.7, 0.3]]
    fitted = HistogramBinning().fit(X, [0, 1, 0, 1])
    np.testing.assert_array_equal(np.flatnonzero(fitted.counts_[0]), [0, 6, 9])
    assert fitted.table_[0][6] == 0.5


def test_sqrt_bins_count_the_weight():
    assert len(HistogramBinning(n_bins="sqrt").fit(TOY_X, TOY_Y).table_[0]) == 4
    weighted = HistogramBinning(n_bins="sqrt").fit(
        TOY_X, TOY_Y, sample_weight=np.full(16, 4.0)
    )
    assert len(weighted.table_[0]) == 8


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(["width", "mass"])
)
def test_one_class_at_a_time_the_mean_answer_is_the_share(seed, n_bins, binning):
    """Before normalisation the answers of class k average to the share of class k."""
    rng = np.random.default_rng(seed)
    X, y = (
        rng.dirichlet(np.ones(3), size=40),
        np.append([0, 1, 2], rng.integers(0, 3, 37)),
    )
    binned = HistogramBinning(n_bins=n_bins, binning=binning).fit(X, y)
    isotonic = IsotonicCalibration().fit(X, y)
    for k, (at, value) in enumerate(isotonic.knots_):
        share = (y == k).mean()
        np.testing.assert_allclose(
            binned.table_[k] @ binned.counts_[k] / 40, share, atol=1e-12
        )
        assert (np.diff(at) > 0.0).all()
        assert (np.diff(value) >= 0.0).all()
        np.testing.assert_allclose(np.interp(X[:, k], at, value).mean(), share)


def test_refused_options():
    for options, message in (
        ({"empty": "mean"}, "empty must be one of 'midpoint', .* got empty='mean'"),
        ({"zero_row": "nan"}, "zero_row must be one of 'original', 'uniform'"),
        ({"smoothing": -1.0}, "smoothing must be finite and >= 0; got smoothing=-1.0"),
        ({"n_bins": 0}, "n_bins must be a whole number"),
        ({"binning": "area"}, "binning must be 'width' or 'mass'"),
    ):
        with pytest.raises(InputError, match=message):
            HistogramBinning(**options).fit(TOY_X, TOY_Y)


def pool_adjacent_violators(x, y):
    """Return the isotonic fit at each row, by merging blocks that fall; equal x are one block."""
    blocks = [[at, y[x == at].sum(), (x == at).sum()] for at in np.unique(x)]
    merged = []
    for at, total, count in blocks:
        merged.append([[at], total, count])
        while (
            len(merged) > 1
            and merged[-2][1] / merged[-2][2] >= merged[-1][1] / merged[-1][2]
        ):
            upper = merged.pop()
            for part in range(3):
                merged[-1][part] += upper[part]
    value = {at: total / count for members, total, count in merged for at in members}
    return np.array([value[at] for at in x])


def test_hand_sized_example_isotonic():
    # Class 0 by x_0: .2 -> 0, .4 -> 0, .6 -> 1, .8 -> 0, .9 -> 1; .6 and .8 are pooled to 1/2.
    # Class 1 is its mirror image. At .5, halfway from (.4, 0) to (.6, 1/2): 1/4 and 3/4.
    X = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.2, 0.8]]
    fitted = IsotonicCalibration().fit(X, [0, 1, 0, 1, 1])
    answer = fitted.predict_proba([[0.8, 0.2], [0.95, 0.05], [0.5, 0.5]])
    np.testing.assert_allclose(answer, [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])


def test_against_pool_adjacent_violators():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, rng.dirichlet([1, 1, 1], size=150))
    X, y = counts / 20, rng.integers(0, 3, 150)
    fitted = IsotonicCalibration().fit(X, y)
    raw = np.column_stack([pool_adjacent_violators(X[:, k], y == k) for k in range(3)])
    expected = raw / raw.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-9)


def test_toy():
    # methods.md 3: isotonic row 6 raw (.333333, .4, .333333).
    fitted = IsotonicCalibration().fit(TOY_X, TOY_Y)
    raw = np.array([np.interp(TOY_X[6, k], *fitted.knots_[k]) for k in range(3)])
    np.testing.assert_allclose(raw, [1 / 3, 0.4, 1 / 3], atol=1e-12)
    np.testing.assert_allclose(
        fitted.predict_proba(TOY_X)[6], raw / raw.sum(), atol=1e-12
    )


def test_a_row_of_zeros_becomes_uniform():
    # Each class has 0 below its smallest hit: .6, .6 and .7.
    X = np.vstack([np.eye(3) * 0.6 + 0.4 / 3, np.eye(3) * 0.1 + 0.3])
    fitted = IsotonicCalibration().fit(X, [0, 1, 2, 1, 2, 0])
    np.testing.assert_allclose(
        fitted.predict_proba([[0.34, 0.33, 0.33]]), np.full((1, 3), 1 / 3)
    )
