"""One reliability curve on one axes."""

import numpy as np
import pytest
from figure_checks import line, lines, predictions
from matplotlib.figure import Figure

from mcllo import Predictions, reliability_curve
from mcllo._plot.curves import STRIP, draw_counts, draw_curve, key, short_count


def axes_of(curve, strip=True):
    ax = Figure().subplots()
    draw_curve(ax, curve, strip=strip)
    return ax


def boxes(ax, label):
    (found,) = (bars for bars in ax.containers if bars.get_label() == label)
    return np.array([[b.get_x(), b.get_y(), b.get_width(), b.get_height()] for b in found])


def test_by_hand():
    # confidences .9 .8 | .6 .7 in the bins (.75, 1] and (.5, .75]; hits 1 1 | 1 0
    p = Predictions.from_arrays([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], [0, 0, 1, 1])
    ax = axes_of(reliability_curve(p, n_bins=4))
    np.testing.assert_allclose(line(ax, "_inside"), [[0.65, 0.5], [0.85, 1.0]])
    assert line(ax, "_outside") is None
    np.testing.assert_allclose(boxes(ax, "_boxes"), [[0.5, 0, 0.25, 1], [0.75, 0.5, 0.25, 0.5]])


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_artists_hold_the_numbers_of_the_curve(binning):
    curve = reliability_curve(predictions(3, 500), n_bins=15, binning=binning)
    ax, used, out = axes_of(curve), curve.counts > 0, curve.outside
    points = np.column_stack([curve.mean_predicted, curve.observed])
    np.testing.assert_array_equal(line(ax, "_outside"), points[out])
    np.testing.assert_array_equal(line(ax, "_inside"), points[used & ~out])
    drawn = boxes(ax, "_boxes")
    assert (drawn[:, 0] <= curve.mean_predicted[used]).all()
    assert (drawn[:, 0] + drawn[:, 2] >= curve.mean_predicted[used]).all()
    assert drawn[:, 2].max() <= 0.1 + 1e-12
    np.testing.assert_allclose(drawn[:, 1], curve.band_low[used])
    np.testing.assert_allclose(drawn[:, 1] + drawn[:, 3], curve.band_high[used])
    bars = boxes(ax, "_counts")
    heights = bars[:, 3] / bars[:, 3].max()
    np.testing.assert_allclose(heights, curve.counts[used] / curve.counts.max())
    assert bars[:, 1].tolist() == [-STRIP] * used.sum()
    assert (bars[:, 1] + bars[:, 3]).max() < 0.0


def test_many_points_are_not_joined():
    curve = reliability_curve(predictions(3, 500), n_bins=60)
    ax = axes_of(curve)
    assert line(ax, "_path") is None
    assert len(lines(ax, "_inside", "_outside")) == (curve.counts > 0).sum() > 20


def test_without_bands_there_are_intervals():
    p = predictions(3, 100)
    weighted = Predictions.from_arrays(p.probs, p.codes, sample_weight=np.full(100, 0.5))
    curve = reliability_curve(weighted, n_bins=5)
    ax = axes_of(curve)
    (lines,) = (part for part in ax.collections if part.get_label() == "_intervals")
    used = curve.counts > 0
    ends = np.array([segment[:, 1] for segment in lines.get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([curve.low, curve.high])[used])
    assert [handle.get_label() for handle in key(curve)] == ["with 95 % interval"]


def test_the_key_says_the_level():
    curve = reliability_curve(predictions(3, 100), level=0.9)
    assert key(curve)[0].get_label() == "90 % of points, if calibrated"


def test_counts_carry_their_numbers_where_there_is_room():
    curve = reliability_curve(predictions(3, 400), n_bins=10)
    ax = Figure().subplots()
    draw_counts(ax, curve)
    numbers = [int(text.get_text()) for text in ax.texts if text.get_text()]
    assert numbers == curve.counts[curve.counts > 0].astype(int).tolist()
    narrow = Figure().subplots()
    draw_counts(narrow, reliability_curve(predictions(3, 400), n_bins=40))
    assert not narrow.texts
    assert narrow.yaxis.get_major_locator()().tolist()[0] == 0.0


def test_weights_are_named():
    p = Predictions.from_arrays([[0.9, 0.1], [0.2, 0.8]], [0, 1], sample_weight=[0.5, 1.5])
    ax = Figure().subplots()
    draw_counts(ax, reliability_curve(p, n_bins=2))
    assert ax.get_ylabel() == "Rows"  # the weights of the bin sum to 2
    odd = Predictions.from_arrays([[0.9, 0.1], [0.2, 0.8]], [0, 1], sample_weight=[0.5, 1.25])
    ax = Figure().subplots()
    draw_counts(ax, reliability_curve(odd, n_bins=2))
    assert ax.get_ylabel() == "Weight"
    assert [text.get_text() for text in ax.texts] == ["", "1.8"]


def test_short_count():
    counts = (0, 999, 9999, 10_000, 999_400, 0.5, 3.6e6, 1e12, 250.5)
    words = ["0", "999", "9,999", "10k", "999k", "0.5", "4M", "1000G", "250"]
    assert [short_count(count) for count in counts] == words
