import itertools
from functools import reduce
from operator import add

import numpy as np
import pytest
from block_data import rows, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo import Predictions, reliability_curve
from mcllo._apps.streaming.sums import (
    BinCells,
    Block,
    BlockLayout,
    PickedRows,
    ValidationOptions,
    encode_words,
    log_partition_of_block,
    pick_rows,
    sum_block_bins,
    sum_block_rows,
)
from mcllo._fit.objective import free_parameters
from mcllo._inference.likelihood_tests import _least_class_variance, expected_errors
from mcllo._inference.omnibus import HosmerLemeshow, OmnibusTest
from mcllo._model.kernel import LogPartition
from mcllo._model.likelihood import identity_theta, sufficient_statistic
from mcllo.exceptions import InputError
from mcllo.metrics import (
    accuracy,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    log_loss,
)
from mcllo.metrics._bins import bin_index, equal_width_edges
from mcllo.metrics._row_sums import CleaningCounts, MetricSums


def parts_of(p, at=()):
    ends = [0, *sorted(at), p.n_samples]
    return [
        Block(a, p.take(np.arange(a, b))) for a, b in itertools.pairwise(ends) if b > a
    ]


def test_two_rows_by_hand():
    # x = (.7 .3), (.4 .6), labels 0, 0: one hit; loss -log .7 - log .4; Brier 2 .3^2 + 2 .6^2;
    # expected errors .3 + .4; predicted 1.1 and .9; spread .21 + .24 in both classes
    p = Predictions.from_arrays([[0.7, 0.3], [0.4, 0.6]], [0, 0])
    sums = sum_block_rows(Block(0, p))
    s = sums.metric_sums
    assert (s.weight, s.correct_weight) == (2.0, 1.0)
    assert s.log_loss == pytest.approx(-np.log(0.7) - np.log(0.4))
    assert s.brier == pytest.approx(0.18 + 0.72)
    assert s.expected_errors == pytest.approx(0.7)
    np.testing.assert_allclose(s.predicted_weight, [1.1, 0.9])
    np.testing.assert_allclose(s.spread, [0.45, 0.45])
    assert sums.class_weight.tolist() == [2.0, 0.0]
    assert sums.block_sizes == ((0, 2),)


@pytest.mark.parametrize(("weighted", "zeros"), [(False, False), (True, True)])
def test_sums_are_those_of_the_package(weighted, zeros):
    p = whole(weighted=weighted, zeros=zeros)
    sums = reduce(add, (sum_block_rows(b) for b in parts_of(p, (1, 700, 701, 2500))))
    total, k = p.class_weight.sum(), p.n_classes - 1
    assert sums.n_samples == p.n_samples
    assert sums.metric_sums.correct_weight / total == pytest.approx(
        accuracy(None, p), rel=1e-13
    )
    assert sums.metric_sums.log_loss / total == pytest.approx(
        log_loss(None, p), rel=1e-13
    )
    assert sums.metric_sums.brier / total == pytest.approx(
        brier_score(None, p), rel=1e-13
    )
    assert sums.metric_sums.expected_errors == pytest.approx(
        expected_errors(p), rel=1e-12
    )
    assert sums.metric_sums.spread.min() == pytest.approx(
        _least_class_variance(p), rel=1e-12
    )
    np.testing.assert_allclose(sums.class_weight, p.class_weight)
    expected = sufficient_statistic(p.log_odds, p.model_codes, p.sample_weight)
    np.testing.assert_allclose(sums.statistic, expected, rtol=1e-12)
    null = LogPartition(p.log_odds, p.sample_weight)(identity_theta(k))
    np.testing.assert_allclose(
        sums.identity_log_partition.hessian, null.hessian, rtol=1e-10, atol=1e-9
    )
    assert (sums.has_weights, sums.first_fraction) == (weighted, None)
    np.testing.assert_array_equal(sums.free, free_parameters(p.log_odds))


def test_changes_are_counted_once():
    probs, y, _ = rows(zeros=True)
    p = Predictions.from_arrays(probs, y, clip=1e-6)
    parts = [
        Predictions.from_arrays(q, y[:1000], clip=1e-6) for q in np.split(probs, 3)
    ]
    sums = reduce(add, (sum_block_rows(Block(0, q)) for q in parts)).changes
    assert (sums.n_zeros, sums.n_clipped, sums.clip) == (p.n_zeros, p.n_clipped, 1e-6)
    assert sums.n_zeros > 0


@given(st.lists(st.integers(0, 300), max_size=6), st.booleans())
@settings(deadline=None, max_examples=25)
def test_any_partition_gives_the_same_terms(at, weighted):
    p, theta = whole(n=300, c=3, weighted=weighted), np.array([0.3, -0.2, 0.9, 1.2])
    expected = LogPartition(p.log_odds, p.sample_weight)(theta)
    found = reduce(add, (log_partition_of_block(b, theta) for b in parts_of(p, at)))
    assert found.value == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-12)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-10, atol=1e-12)


def test_a_lost_probability_gives_an_infinite_log_loss():
    logits = [[0.0, 2000.0], [0.0, 1.0]]
    for weight, expected in (
        ([1.0, 1.0], np.inf),
        ([0.0, 2.0], 2.0 * np.log1p(np.exp(-1.0))),
    ):
        p = Predictions.from_arrays(None, [0, 1], logits=logits, sample_weight=weight)
        assert MetricSums.from_rows(p).log_loss == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_picked_rows_are_those_of_the_whole(weighted):
    p = whole(n=50, zeros=True, weighted=weighted)
    blocks = parts_of(p, (10, 30))
    starts = {b.start: b.start for b in blocks}
    chosen = np.array([0, 9, 10, 44])
    changes = reduce(add, (sum_block_rows(b) for b in blocks)).changes
    found = reduce(add, (pick_rows(b, chosen, starts) for b in blocks)).join(changes)
    np.testing.assert_array_equal(found.probs, p.probs[chosen])
    np.testing.assert_array_equal(found.codes, p.codes[chosen])
    every = reduce(add, (pick_rows(b, None, starts) for b in blocks)).join(changes)
    np.testing.assert_array_equal(every.log_odds, p.log_odds)
    np.testing.assert_array_equal(every.raised, p.raised)
    if weighted:
        np.testing.assert_array_equal(every.sample_weight, p.sample_weight)


PLAIN = Predictions.from_arrays([[0.25, 0.75], [0.5, 0.5]], [0, 1])
CHANGED = Predictions.from_arrays(
    [[0.0, 1.0], [0.5, 0.5 + 5e-7]], [0, 1], sample_weight=[0.5, 2.0], clip=1e-6
)
"""No zero, no sum that is not 1, no weight, beside a row with each of them."""
both_orders = pytest.mark.parametrize(
    "parts", [(PLAIN, CHANGED), (CHANGED, PLAIN)], ids="ab"
)


@both_orders
def test_blocks_that_differ_add_to_what_the_whole_says(parts):
    sums = reduce(
        add, (sum_block_rows(Block(2 * k, part)) for k, part in enumerate(parts))
    )
    found = sums.changes
    counts = (
        found.n_zeros,
        found.n_clipped,
        found.n_clipped_true,
        found.n_renormalized,
    )
    assert counts == (1, 1, 1, 1)
    assert found.max_row_error == pytest.approx(5e-7, rel=1e-6)
    assert found.clip == 1e-6
    assert (sums.has_weights, sums.first_fraction) == (True, 0.5)


@both_orders
def test_picked_blocks_that_differ_keep_their_weights_and_zeros(parts):
    found = (PickedRows((parts[0],)) + PickedRows((parts[1],))).join(CleaningCounts())
    weights = {PLAIN: [1.0, 1.0], CHANGED: [0.5, 2.0]}
    raised = {PLAIN: [[False, False]] * 2, CHANGED: [[True, False], [False, False]]}
    assert found.sample_weight.tolist() == weights[parts[0]] + weights[parts[1]]
    assert found.raised.tolist() == raised[parts[0]] + raised[parts[1]]


@pytest.mark.parametrize(
    ("weighted", "at"), [(False, (1,)), (True, (20,)), (True, (39,))]
)
def test_ranges_and_squares_of_blocks_are_those_of_the_whole(weighted, at):
    p = whole(n=40, weighted=weighted)
    for rows_ in (p, p.take(np.arange(40)[::-1])):
        sums, odds = (
            reduce(add, map(sum_block_rows, parts_of(rows_, at))),
            rows_.log_odds,
        )
        np.testing.assert_array_equal(sums.min_log_odds, odds.min(axis=1))
        np.testing.assert_array_equal(sums.max_log_odds, odds.max(axis=1))
        weight = np.ones(40) if rows_.sample_weight is None else rows_.sample_weight
        np.testing.assert_allclose(sums.sum_of_squares, odds**2 @ weight, rtol=1e-12)


def test_words_are_columns_by_name_or_nothing_at_all():
    assert encode_words(np.array([1, 0, 1]), ["b", "a"], ("a", "b")).tolist() == [
        0,
        1,
        0,
    ]
    assert (
        encode_words(np.array([0, 1]), ["a", "z"], ("a", "b")) is None
    )  # z is no class
    assert (
        encode_words(np.array([0, -1]), ["a"], ("a", "b")) is None
    )  # a label is missing


LAYOUT = BlockLayout(("a", "b", "c"), 1)


def test_a_block_reads_as_the_whole_does():
    probs, y = [[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]], ["a", "c"]
    block = LAYOUT.read(np.array(probs), y)
    whole = Predictions.from_arrays(
        probs, y, classes=["a", "b", "c"], baseline="b", clip=1e-6
    )
    np.testing.assert_array_equal(block.probs, whole.probs)
    np.testing.assert_array_equal(block.log_odds, whole.log_odds)
    assert (block.classes, block.baseline, block.n_clipped) == (("a", "b", "c"), "b", 1)
    assert Block(7, block).n_samples == 2
    np.testing.assert_array_equal(Block(7, block).log_odds, whole.log_odds)
    shown = BlockLayout.from_first_rows(
        ValidationOptions(baseline=0), np.array([[0.2, 0.8]]), [1]
    )
    assert (shown.classes, shown.baseline) == ((0, 1), 0)


def test_known_codes_need_no_labels_and_logits_are_read_as_logits():
    block = LAYOUT.read(np.array([[0.2, 0.3, 0.5]]), None, [0.5], codes=np.array([2]))
    assert block.codes.tolist() == [2]
    assert block.sample_weight.tolist() == [0.5]
    layout = BlockLayout(("a", "b", "c"), 2, ValidationOptions(logits=True))
    block = layout.read(np.array([[0.0, 1.0, 2.0]]), ["a"])
    np.testing.assert_allclose(block.log_odds[:, 0], [-2.0, -1.0])


ROW = [[0.2, 0.3, 0.5]]


def test_other_labels_weights_and_columns_are_refused():
    assert LAYOUT.read(ROW, ["a"], [0.0]).sample_weight.tolist() == [
        0.0
    ]  # may weigh nothing
    for read, arguments, words in (
        (LAYOUT.read, (ROW, ["a"], [-1.0]), r"sample_weight\[0\]=-1"),
        (LAYOUT.read, (ROW, ["d"]), r"contains 'd' \(row 0\), which is not a class"),
        (LAYOUT.read, ([[0.2, 0.8]], ["a"]), "classes must name each of the 2 columns"),
        (BlockLayout.from_classes, (ValidationOptions(), ("auto", "b")), "reserved"),
        (
            BlockLayout.from_classes,
            (ValidationOptions(baseline="d"), ("a", "b")),
            "baseline='d' is not a class",
        ),
    ):
        with pytest.raises(InputError, match=words):
            read(*arguments)


# --- bins


NO_CUTS = np.empty(0)


def bins_of(p, n_bins, cuts=NO_CUTS, at=(300, 301, 1700)):
    return reduce(add, (sum_block_bins(b, n_bins, cuts) for b in parts_of(p, at)))


def test_four_rows_by_hand():
    # the docstring of expected_calibration_error: 0.3 in 10 bins, class by class too
    y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    sums = sum_block_bins(
        Block(0, Predictions.from_arrays(y_prob, [0, 0, 1, 0])), 10, NO_CUTS
    )
    assert sums.top_label_error() == pytest.approx(0.3)
    assert sums.classwise_error() == pytest.approx(0.3)
    assert sums.top[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("n_bins", "weighted", "zeros"),
    [(1, False, False), (10, True, True), (55, True, False)],
)
def test_errors_are_those_of_the_metrics(n_bins, weighted, zeros):
    p = whole(weighted=weighted, zeros=zeros)
    sums = bins_of(p, n_bins)
    expected = expected_calibration_error(None, p, n_bins=n_bins)
    assert sums.top_label_error() == pytest.approx(expected, abs=1e-14)
    expected = classwise_calibration_error(None, p, n_bins=n_bins)
    assert sums.classwise_error() == pytest.approx(expected, abs=1e-14)


@given(st.lists(st.floats(0.0, 1.0), min_size=1), st.integers(1, 4000))
@settings(deadline=None, max_examples=50)
def test_cells_are_the_bins_of_both(values, n_bins):
    # the independent way: one search among all edges
    edges = np.union1d(equal_width_edges(n_bins), equal_width_edges(10))
    x = np.concatenate(
        [values, edges, np.nextafter(edges, 0.0), np.nextafter(edges, 1.0)]
    )
    cells = BinCells.from_n_bins(n_bins)
    index = cells.index(x)
    np.testing.assert_array_equal(index, bin_index(x, edges))
    for first, own in ((cells.fine, n_bins), (cells.curve, 10)):
        found = np.searchsorted(first, index, side="right") - 1
        np.testing.assert_array_equal(found, bin_index(x, equal_width_edges(own)))


@pytest.mark.parametrize(("weighted", "label"), [(False, None), (True, 3)])
def test_curves_are_those_of_reliability_curve(weighted, label):
    p = whole(n=40_000, weighted=weighted)
    expected = reliability_curve(p, label=label)
    found = bins_of(p, 10).reliability(p.classes)[0 if label is None else 1 + label]
    assert (found.label, found.binning, found.level) == (label, "width", 0.95)
    for name in ("edges", "counts", "mean_predicted", "observed", "low", "high"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-12
        )
    # the band: normal for many rows, binomial (a little wider) for few; one hit is 1 / count
    step = 1.5 / np.maximum(expected.counts, 1.0)
    for name in ("band_low", "band_high"):
        away = np.abs(getattr(found, name) - getattr(expected, name))
        assert (away <= step + 0.002)[expected.counts > 0].all()
    few = (expected.counts > 0) & (expected.counts <= 2000)
    assert (found.band_low <= expected.band_low + 1e-12)[few].all()
    assert (found.band_high >= expected.band_high - 1e-12)[few].all()


def test_fractional_weights_have_no_band():
    p = Predictions.from_arrays(
        [[0.7, 0.3], [0.2, 0.8]], [0, 1], sample_weight=[0.5, 1.0]
    )
    curve = bins_of(p, 10, at=(1,)).reliability(p.classes)[0]
    assert np.isnan(curve.band_low).all()
    assert curve.observed[6] == 1.0


def test_hosmer_lemeshow_with_the_same_groups_is_the_same():
    p = whole(n=2000, baseline=2)
    statistic = HosmerLemeshow(p)
    value = 1.0 - p.probs[:, 2]
    last = [value[statistic.group == k].max() for k in range(9)]
    found = bins_of(p, 10, np.array(last)).hosmer_lemeshow()
    expected = OmnibusTest.large_sample(p)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert (found.df, found.method) == (expected.df, "chi2")
    p = whole(n=20_000, baseline=2)
    some = bins_of(
        p, 10, np.array([0.5, 0.5, 2.0])
    ).hosmer_lemeshow()  # two groups are empty
    assert some.expected == 2 * (p.n_classes - 1)
