"""Panels, titles and words under figures."""

import pytest
from figure_checks import drawn_texts
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mcllo._plot.layout import (
    OwnFigure,
    footer,
    grid,
    heading,
    label_outer,
    panel_room,
    panels,
    side_legend,
    wrapped,
)
from mcllo._plot.style import look


@pytest.mark.parametrize("n", range(1, 30))
def test_grid_holds_all_panels_and_no_empty_row(n):
    for columns in (None, 1, 2, 5):
        rows, wide = grid(n, columns)
        assert (rows - 1) * wide < n <= rows * wide
        assert wide <= (4 if columns is None else columns)


def test_panels():
    axes = panels(5, None)
    assert len(axes) == len(axes[0].get_figure().axes) == 5
    label_outer(axes, "across", "up")
    assert [ax.get_xlabel() for ax in axes] == ["", "", "across", "across", "across"]
    assert [ax.get_ylabel() for ax in axes] == ["up", "", "", "up", ""]
    assert 100.0 < panel_room(axes) < 72 * 2.5


def test_a_figure_of_ours_grows_by_its_footer():
    with look():
        figure = OwnFigure(4.0, 3.0)
        ax = figure.subplots()
        heading(ax, "Title", "below")
        footer(ax, ["A sentence.", "", "Another one."], [Line2D([], [], label="key")])
    assert figure.get_size_inches()[0] == 4.0
    assert figure.get_size_inches()[1] > 3.3
    found, _ = drawn_texts(figure)
    assert "A sentence. Another one." in [word for word, _ in found]
    lowest = min(box.y0 for word, box in found if word not in ("key", "A sentence. Another one."))
    assert max(box.y1 for word, box in found if word == "key") < lowest


def test_a_given_figure_keeps_its_size():
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.subplots()
    footer(ax, ["Words."], [Line2D([], [], label="key")])
    side_legend(ax, [Line2D([], [])], ["$name"])
    assert figure.get_size_inches().tolist() == [4.0, 3.0]
    found, _ = drawn_texts(figure)
    (box,) = (box for word, box in found if word == "Words.")
    assert box.y0 > -1
    assert box.y1 < ax.get_window_extent().y0
    assert not ax.get_legend().get_texts()[0].get_parse_math()


def test_wrapped():
    # 2 in are 144 pt; 144 / (0.53 * 8.5) = 31 letters
    assert [len(part) for part in wrapped("x " * 40, 2.0).split("\n")] == [31, 31, 15]
    assert wrapped("", 2.0) == ""
