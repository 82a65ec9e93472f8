"""Axes of estimates with intervals."""

import numpy as np
import pytest
from figure_checks import line
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from mcllo._plot.scales import Estimates, draw_forest, forest_key, log_ticks, plain_ticks, tick_word

NAN = float("nan")


def estimates(values, halves, reference=1.0, cap=10.0):
    value, half = np.array(values, dtype=float), np.array(halves, dtype=float)
    return Estimates(value, value - half, value + half, reference, cap)


def test_limits_hold_everything_ordinary():
    low, high = estimates([0.5, 1.5], [0.2, 0.3]).limits
    assert low < 0.3
    assert high > 1.8
    assert estimates([0.5, 0.5], [0.1, 0.1]).limits[1] > 1.0  # the reference


def test_one_wild_interval_is_cut():
    wild = estimates([0.9, 1.0, 1.1, 1.0], [0.1, 0.1, 0.1, 50.0])
    low, high = wild.limits
    assert low > 0.0
    assert high < 2.0
    left, right = wild.beyond
    assert left.tolist() == right.tolist() == [False, False, False, True]
    ax = Figure().subplots()
    draw_forest(ax, wild, log=False)
    np.testing.assert_allclose(line(ax, "_cut<"), [[low, 3.0]])
    np.testing.assert_allclose(line(ax, "_cut>"), [[high, 3.0]])


def test_marks_say_what_the_interval_says():
    # [.7, .9] excludes 1, [.9, 1.3] does not, the third has none, the fourth lies far outside
    drawn = estimates([0.8, 1.1, 0.9, 99.0], [0.1, 0.2, NAN, NAN])
    assert drawn.excludes.tolist() == [True, False, False, False]
    ax = Figure().subplots()
    draw_forest(ax, drawn, log=False)
    assert line(ax, "_excludes").tolist() == [[0.8, 0.0]]
    assert line(ax, "_includes").tolist() == [[1.1, 1.0]]
    assert line(ax, "_unknown").tolist() == [[0.9, 2.0]]
    assert line(ax, "_cut>")[:, 1].tolist() == [3.0]
    (intervals,) = (part for part in ax.collections if part.get_label() == "_intervals")
    np.testing.assert_allclose(intervals.get_segments()[0], [[0.7, 0.0], [0.9, 0.0]])
    assert ax.get_ylim() == (3.6, -0.6)
    labels = [handle.get_label() for handle in forest_key([drawn])]
    assert labels[0] == "interval includes 1"
    assert labels[1:] == ["interval excludes 1", "no interval", "beyond the axis"]


def test_a_log_axis_takes_logs():
    ax = Figure().subplots()
    tau = np.log([0.5, 2.0])
    draw_forest(ax, Estimates(tau, tau - 0.1, tau + 0.1, 0.0, 7.0), log=True)
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(line(ax, "_excludes")[:, 0], [0.5, 2.0])


@settings(deadline=None, max_examples=50)
@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e9))
def test_log_ticks_are_few_and_inside(low, ratio):
    high = low * ratio
    ticks = log_ticks(low, high)
    assert len(ticks) <= 8
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)
    if low <= 1.0 <= high and ratio < 1e4:
        assert 1.0 in ticks or ratio < 1.1


@pytest.mark.parametrize(("ends", "also"), [((0.4, 1.1), 1.0), ((0.5, 11.0), 1.0), ((-3, 4), None)])
def test_plain_ticks(ends, also):
    ax = Figure().subplots()
    ax.set_xlim(*ends)
    plain_ticks(ax, log=False, also=also)
    ticks = ax.xaxis.get_major_locator()()
    assert 2 <= len(ticks) <= 8
    if also is not None:
        assert also in [round(tick, 9) for tick in ticks]


def test_tick_words():
    assert [tick_word(v) for v in (0.0, 0.30000000000000004, -1.5)] == ["0", "0.3", "−1.5"]
    assert tick_word(3e-6) == "3e-06"
