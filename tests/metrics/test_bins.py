"""One bin rule: edges, ties, weights."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from toy import TOY_X, TOY_Y

from mcllo.exceptions import InputError
from mcllo.metrics._bins import (
    bin_index,
    equal_mass_edges,
    equal_width_bin_index,
    equal_width_edges,
    inner_bin_edges,
    midpoint_edges,
    rank_blocks,
    resolve_n_bins,
    top_label,
    weight_and_sums_by_block,
    weighted_quantile,
)

lattice = st.integers(0, 20).map(lambda k: k / 20)
rows = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, n, elements=lattice),
        hnp.arrays(np.int64, n, elements=st.integers(0, 3)).filter(
            lambda w: w.sum() > 0
        ),
    )
)


def test_values_on_an_edge_belong_to_the_bin_below():
    # methods.md 2: "p=0.7,B=10 -> index 6; p=0.5,B=4 -> 1; p=0 -> 0; p=1 -> B-1"; ceil(p*B) fails
    # on the next two (0.28*25 and 0.07*100 round up), linspace edges on the last
    for value, n_bins, index in (
        (0.7, 10, 6), (0.5, 4, 1), (0.0, 10, 0), (1.0, 10, 9), (0.28, 25, 6), (0.07, 100, 6),
        (0.3, 10, 2), (0.30000000000000004, 10, 3),
    ):  # fmt: skip
        assert bin_index(value, equal_width_edges(n_bins)) == index, value
        assert equal_width_bin_index(np.array([[value]]), n_bins).tolist() == [
            [index]
        ], value


@given(st.lists(st.floats(0.0, 1.0), min_size=1), st.integers(1, 4000))
@settings(deadline=None, max_examples=50)
def test_without_a_search_the_bins_are_the_same(values, n_bins):
    edges = equal_width_edges(n_bins)
    near = [np.nextafter(edges, 0.0), np.nextafter(edges, 1.0), [1.0, 1.0 + 1e-9]]
    x = np.concatenate([values, edges, *near])
    np.testing.assert_array_equal(equal_width_bin_index(x, n_bins), bin_index(x, edges))


def test_every_edge_closes_the_bin_below_it():
    for n_bins in range(1, 200):
        edges = equal_width_edges(n_bins)
        np.testing.assert_array_equal(bin_index(edges, edges), np.arange(n_bins - 1))
        np.testing.assert_array_equal(
            bin_index(edges, edges, "left"), np.arange(1, n_bins)
        )


def test_top_label_takes_the_first_of_ties_in_any_layout():
    probs = np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.3, 0.3, 0.4]])
    for table in (probs, np.asfortranarray(probs)):
        index, most = top_label(table)
        assert index.tolist() == [0, 1, 2]
        assert most.tolist() == [0.4, 0.4, 0.4]


def test_sqrt_rounds_up():
    # the paper: 20 bins for n = 396, 12 for n = 132
    assert [resolve_n_bins("sqrt", n) for n in (396, 132, 100, 101, 1, 0.3)] == [
        20,
        12,
        10,
        11,
        1,
        1,
    ]
    assert resolve_n_bins(np.int64(7), 3) == 7


def test_mass_edges_are_quantiles_without_repeats():
    # sorted 0 0 0 0 .2 .4 .6 1: quantiles at positions 1.75, 3.5, 5.25 are 0, .1, .45
    values = np.array([0.0, 0.4, 0.0, 0.0, 1.0, 0.2, 0.0, 0.6])
    np.testing.assert_allclose(equal_mass_edges(values, 4), [0.0, 0.1, 0.45])
    # six of eight are 0: the quantiles 1/4 and 1/2 coincide
    tied = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.9])
    np.testing.assert_allclose(equal_mass_edges(tied, 4), [0.0, 0.125])
    # nothing can lie above 1, so 1 is no inner edge
    assert equal_mass_edges(np.ones(5), 3).size == 0


def test_a_row_of_weight_zero_is_no_quantile():
    values, weight = np.array([3.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0])
    np.testing.assert_array_equal(
        weighted_quantile(values, [0.5, 1.0], weight), [1.5, 2.0]
    )


def test_no_bin_begins_where_values_end():
    assert (
        equal_mass_edges(np.array([0.2, 1.0, 1.0, 1.0]), 2).tolist() == []
    )  # the median is 1


def test_mass_bins_never_part_equal_values():
    confidence = TOY_X.max(axis=1)
    index = bin_index(confidence, inner_bin_edges(confidence, 4, "mass"))
    # sorted: .4 .4 .45 .5 x4 | .6 x3 | .7 x3 | .8 x3
    assert np.bincount(index).tolist() == [7, 3, 3, 3]


def test_midpoint_edges_lie_between_runs():
    # runs of 10 values in 4 parts: 3 3 2 2; cuts between .2|.3, .5|.6, .7|.8
    values = np.arange(10)[::-1] / 10
    np.testing.assert_allclose(midpoint_edges(values, 4), [0.25, 0.55, 0.75])
    np.testing.assert_allclose(midpoint_edges(np.array([0.2, 0.4]), 5), [0.3])


def test_rank_blocks_are_those_of_array_split():
    for n in range(1, 30):
        for k in range(1, 12):
            sizes = [len(part) for part in np.array_split(np.arange(n), k) if len(part)]
            assert np.diff(rank_blocks(n, k)).tolist() == sizes
    np.testing.assert_allclose(rank_blocks(4.5, 3), [0.0, 1.5, 3.0, 4.5])


def test_block_totals_sum_runs_of_sorted_rows():
    key, other = np.array([0.3, 0.1, 0.2]), np.array([1.0, 10.0, 100.0])
    weight, sums = weight_and_sums_by_block(key, other[None], 2)
    assert weight.tolist() == [2.0, 1.0]
    assert sums.tolist() == [[110.0, 1.0]]
    # weights 1, 1, 2 make the rows .1 .2 .2 .3, so the cut parts nothing: 10 + 100 | 100 + 1
    weight, sums = weight_and_sums_by_block(
        key, other[None], 2, np.array([1.0, 1.0, 2.0])
    )
    assert weight.tolist() == [2.0, 2.0]
    assert sums.tolist() == [[110.0, 101.0]]


CONFIDENCE, HIT = TOY_X.max(axis=1), TOY_X.argmax(axis=1) == TOY_Y


def test_top_label_error_of_four_runs():
    # methods.md 4, TOY: top-label equal-mass 4 (array_split) .259375
    _, (predicted, hits) = weight_and_sums_by_block(
        CONFIDENCE, np.stack([CONFIDENCE, HIT]), 4
    )
    assert np.abs(predicted - hits).sum() / 16 == pytest.approx(0.259375, abs=1e-12)


def test_the_side_that_is_closed_matters():
    # methods.md 4, TOY: ECE B=4 right .309375, left .171875; four confidences are exactly .5
    for closed, error in (("right", 0.309375), ("left", 0.171875)):
        index = bin_index(CONFIDENCE, equal_width_edges(4), closed)
        assert np.abs(np.bincount(index, CONFIDENCE - HIT)).sum() / 16 == pytest.approx(
            error
        )


def test_plug_in_error_of_midpoint_bins():
    # methods.md 4, TOY: Kumar's marginal plug-in .14858417, four bins
    squares = []
    for k, column in enumerate(TOY_X.T):
        index = bin_index(column, midpoint_edges(column, 4))
        size, gap = np.bincount(index), np.bincount(index, column - (k == TOY_Y))
        squares.append((gap**2 / size).sum() / 16)
    assert np.sqrt(np.mean(squares)) == pytest.approx(0.14858417, abs=5e-9)


@settings(deadline=None, max_examples=50)
@given(rows, st.integers(1, 12))
def test_a_weight_is_so_many_rows(data, n_bins):
    values, weight = data
    long = np.repeat(values, weight)
    w = weight.astype(np.float64)
    levels = np.arange(n_bins + 1) / n_bins
    np.testing.assert_allclose(
        weighted_quantile(values, levels, w), np.quantile(long, levels), atol=1e-12
    )
    for binning in ("width", "mass"):
        edges = inner_bin_edges(values, n_bins, binning, w)
        np.testing.assert_array_equal(
            np.repeat(bin_index(values, edges), weight),
            bin_index(long, inner_bin_edges(long, n_bins, binning)),
        )
    np.testing.assert_array_equal(
        midpoint_edges(values, n_bins, w), midpoint_edges(long, n_bins)
    )
    weights, sums = weight_and_sums_by_block(values, values[None], n_bins, w)
    np.testing.assert_allclose(
        weight_and_sums_by_block(long, long[None], n_bins)[1], sums, atol=1e-12
    )
    assert weights.sum() == weight.sum()


@settings(deadline=None, max_examples=50)
@given(rows, st.integers(1, 12), st.randoms())
def test_bins_do_not_depend_on_the_order_of_rows(data, n_bins, random):
    values = data[0]
    shuffled = values.copy()
    random.shuffle(shuffled)
    for cut in (equal_mass_edges, midpoint_edges):
        np.testing.assert_array_equal(cut(values, n_bins), cut(shuffled, n_bins))


def test_numbers_of_bins_are_checked():
    for n_bins in (0, 2.5, "square", True, None):
        with pytest.raises(
            InputError, match="n_bins must be a whole number >= 1 or 'sqrt'"
        ):
            resolve_n_bins(n_bins, 10)
    with pytest.raises(
        InputError, match="binning must be 'width' or 'mass'; got binning='wide'"
    ):
        inner_bin_edges(np.ones(3), 2, "wide")
