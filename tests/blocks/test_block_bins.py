from functools import reduce
from operator import add

import numpy as np
import pytest
from block_data import whole
from hypothesis import given, settings
from hypothesis import strategies as st
from test_block_sums import parts_of

from mcllo import Predictions, reliability_curve
from mcllo._blocks.bins import BinCells, bin_sums
from mcllo._blocks.sums import Block
from mcllo._inference.omnibus import HosmerLemeshow
from mcllo.metrics import classwise_calibration_error, expected_calibration_error
from mcllo.metrics._bins import bin_index, width_edges

NO_CUTS = np.empty(0)


def total(p, n_bins, cuts=NO_CUTS, at=(700, 701, 2500)):
    return reduce(add, (bin_sums(b, n_bins, cuts) for b in parts_of(p, at)))


def test_four_rows_by_hand():
    # the docstring of expected_calibration_error: 0.3 in 10 bins, class by class too
    y_prob = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
    sums = bin_sums(Block(0, Predictions.from_arrays(y_prob, [0, 0, 1, 0])), 10, NO_CUTS)
    assert sums.top_label_error() == pytest.approx(0.3)
    assert sums.classwise_error() == pytest.approx(0.3)
    assert sums.top[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("n_bins", [1, 10, 55])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_errors_are_those_of_the_metrics(n_bins, weighted, zeros):
    p = whole(weighted=weighted, zeros=zeros)
    sums = total(p, n_bins)
    expected = expected_calibration_error(None, p, n_bins=n_bins)
    assert sums.top_label_error() == pytest.approx(expected, abs=1e-14)
    expected = classwise_calibration_error(None, p, n_bins=n_bins)
    assert sums.classwise_error() == pytest.approx(expected, abs=1e-14)


@given(st.lists(st.floats(0.0, 1.0), min_size=1), st.integers(1, 4000))
@settings(deadline=None, max_examples=50)
def test_cells_are_the_bins_of_both(values, n_bins):
    # the independent way: one search among all edges
    edges = np.union1d(width_edges(n_bins), width_edges(10))
    x = np.concatenate([values, edges, np.nextafter(edges, 0.0), np.nextafter(edges, 1.0)])
    cells = BinCells.of(n_bins)
    index = cells.index(x)
    np.testing.assert_array_equal(index, bin_index(x, edges))
    for first, own in ((cells.fine, n_bins), (cells.curve, 10)):
        found = np.searchsorted(first, index, side="right") - 1
        np.testing.assert_array_equal(found, bin_index(x, width_edges(own)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("label", [None, 3])
def test_curves_are_those_of_reliability_curve(weighted, label):
    p = whole(n=40_000, weighted=weighted)
    expected = reliability_curve(p, label=label)
    found = total(p, 10).reliability(p.classes)[0 if label is None else 1 + label]
    assert (found.label, found.binning, found.level) == (label, "width", 0.95)
    for name in ("edges", "counts", "mean_predicted", "observed", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    # the band: normal for many rows, binomial (a little wider) for few; one hit is 1 / count
    step = 1.5 / np.maximum(expected.counts, 1.0)
    for name in ("band_low", "band_high"):
        away = np.abs(getattr(found, name) - getattr(expected, name))
        assert (away <= step + 0.002)[expected.counts > 0].all()
    few = (expected.counts > 0) & (expected.counts <= 2000)
    assert (found.band_low <= expected.band_low + 1e-12)[few].all()
    assert (found.band_high >= expected.band_high - 1e-12)[few].all()


def test_fractional_weights_have_no_band():
    p = Predictions.from_arrays([[0.7, 0.3], [0.2, 0.8]], [0, 1], sample_weight=[0.5, 1.0])
    curve = total(p, 10, at=(1,)).reliability(p.classes)[0]
    assert np.isnan(curve.band_low).all()
    assert curve.observed[6] == 1.0


def test_hosmer_lemeshow_with_the_same_groups_is_the_same():
    p = whole(n=2000, baseline=2)
    statistic = HosmerLemeshow(p)
    value = 1.0 - p.probs[:, 2]
    last = [value[statistic.group == k].max() for k in range(9)]
    found = total(p, 10, np.array(last), at=(300, 1700)).hosmer_lemeshow()
    expected = statistic.of_labels(p.codes[None])[0]
    assert found.statistic == pytest.approx(expected, rel=1e-9)
    assert found.expected == statistic.df


def test_empty_groups_do_not_count():
    p = whole(n=500)
    found = total(p, 10, np.array([0.5, 0.5, 2.0]), at=()).hosmer_lemeshow()
    assert found.expected == 2 * (p.n_classes - 1)
