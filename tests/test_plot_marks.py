"""Marks of a dot plot and words beside them."""

import numpy as np
from figure_checks import line, words
from matplotlib.figure import Figure

from mcllo._plot.marks import beside, marks


def test_marks_stand_in_their_rows():
    ax = Figure().subplots()
    marks(ax, np.array([5.0, 6.0, 7.0]), np.array([True, False, True]), "o", "black", "_kept")
    np.testing.assert_array_equal(line(ax, "_kept"), [[5.0, 0.0], [7.0, 2.0]])


def test_nothing_to_mark_draws_nothing():
    ax = Figure().subplots()
    marks(ax, np.array([5.0]), np.array([False]), "o", "black", "_kept")
    assert len(ax.lines) == 0


def test_words_begin_beside_the_axes_or_end_where_told():
    ax = Figure().subplots()
    ax.set_ylim(1.5, -0.5)
    beside(ax, ["one", "two"])
    beside(ax, ["1", "2"], right=90.0)
    places = [(text.get_ha(), text.xyann[0]) for text in ax.texts]
    assert places == [("left", 8)] * 2 + [("right", 90.0)] * 2
    assert "two" in words(ax)
