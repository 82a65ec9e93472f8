"""How parts of a figure stand together: panels, titles, legends, and words under the figure.

Figures are `SelfLayoutFigure`, unknown to pyplot until `_style.hand_to_pyplot` hands them over:
none needs a screen. A place that was given (axes, several of them, or a part of a figure) is filled
and never resized.

===============  ================================================================================
`one_axes`       one axes: new, given, or in a part of a figure
`side_by_side`   several that share their rows
`two_by_two`     four that share nothing
`shared_panels`  a grid that shares both axes
`write_footer`   the key and words: under a figure of ours, at the foot of a part of a figure, or
                 inside axes that were given, where they cover nothing if there is such a place
===============  ================================================================================

Room for words is reckoned in points, 72 to an inch; a line of small text is 1.52 times as high as
its type, leading and all.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.transforms import offset_copy
from numpy.typing import NDArray

from ..exceptions import InputError
from ._style import (
    INK,
    MUTED,
    PAPER,
    SMALL_PT,
    TITLE_PT,
    NotebookAxes,
    set_unit_ticks,
    write_small_text,
)
from ._words import text_width

Place = Axes | Figure | SubFigure | None
"""Where one axes may stand: in a new figure, as given, or in a part of a figure."""
Places = Sequence[Axes] | NDArray[Any] | Figure | SubFigure | None
"""The same of several axes."""
POINTS_PER_INCH = 72.0
SMALL_LINE_PT = 1.52 * SMALL_PT
"""Height of a line of small text with its leading, in points."""
BELOW_AXES_PT = -38.0
"""Where words begin under axes that were given, in points: below ticks and a label."""
KEY_SPACING: dict[str, Any] = {"handletextpad": 0.5, "columnspacing": 1.6}


class SelfLayoutFigure(Figure):
    """A figure made here: it lays itself out, may be resized, and pyplot does not know it."""

    def __init__(self, width: float, height: float) -> None:
        self.engine = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06)
        super().__init__(figsize=(width, height), layout=self.engine)

    def add_subplot(self, *args: Any, **options: Any) -> Axes:
        """Add axes that show themselves in a notebook."""
        return super().add_subplot(*args, **{"axes_class": NotebookAxes} | options)


@contextmanager
def fixed_layout(figure: Figure) -> Iterator[None]:
    """Keep the parts of a figure of ours in place, at rounded positions.

    The solver of the layout starts from where the parts are, so that a figure drawn before would
    differ in the last digits, and its file in the bytes.
    """
    if not isinstance(figure, SelfLayoutFigure):
        yield
        return
    figure.engine.execute(figure)
    for ax in figure.axes:
        bounds = [round(float(value), 4) for value in ax.get_position().bounds]
        ax.set_position((bounds[0], bounds[1], bounds[2], bounds[3]))
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(figure.engine)
        # `set_position` took them out of the layout
        for ax in figure.axes:
            ax.set_in_layout(True)


def grid_shape(n_panels: int, columns: int | None = None) -> tuple[int, int]:
    """Return rows and columns for this many panels: up to four beside each other, few left over."""
    if columns is not None:
        wide = max(1, min(n_panels, columns))
    elif n_panels <= 4:
        wide = n_panels
    else:  # 4, unless 3 leave fewer places of the last row empty
        wide = 3 if -n_panels % 3 < -n_panels % 4 else 4
    return math.ceil(n_panels / wide), wide


def one_axes(ax: Place, width: float, height: float) -> Axes:
    """Return the axes that were given, or one in the place that was, or in a new figure."""
    if ax is None:
        return SelfLayoutFigure(width, height).subplots()
    if isinstance(ax, FigureBase):
        return ax.subplots()
    if not isinstance(ax, Axes):
        raise InputError(
            f"ax must be an Axes, a Figure or a SubFigure; got {type(ax).__name__}. "
            "Pass one element of an array of axes."
        )
    return ax


def side_by_side(ax: Places, n_panels: int, width: float, height: float) -> list[Axes]:
    """Return so many axes beside each other that share their rows."""
    place = SelfLayoutFigure(width, height) if ax is None else ax
    if isinstance(place, FigureBase):
        return list(place.subplots(1, n_panels, sharey=True))
    axes = take_given_axes(place, n_panels)
    for other in axes[1:]:
        other.tick_params(labelleft=False)
    return axes


def two_by_two(ax: Places, width: float, height: float) -> list[Axes]:
    """Return four axes in two rows, each with a scale of its own."""
    place = SelfLayoutFigure(width, height) if ax is None else ax
    if isinstance(place, FigureBase):
        return list(place.subplots(2, 2).flat)
    return take_given_axes(place, 4)


def shared_panels(n_panels: int, columns: int | None, ax: Places = None) -> list[Axes]:
    """Return this many panels that share both axes."""
    n_rows, n_columns = grid_shape(n_panels, columns)
    place = ax
    if place is None:
        side = 2.05  # inches of a panel
        if columns is None:
            side = {1: 3.8, 2: 3.0, 3: 2.5}.get(n_columns, side)
        width = side * n_columns + 0.5
        height = (side + 0.4) * n_rows + 0.5
        place = SelfLayoutFigure(width, height)
    if not isinstance(place, FigureBase):
        return take_given_axes(place, n_panels)
    made = place.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    axes = list(made.flat)
    for spare in axes[n_panels:]:
        spare.remove()
    return axes[:n_panels]


def take_given_axes(ax: Any, n_panels: int) -> list[Axes]:
    """Return the first of the axes that were given; the others are left blank."""
    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    others = [type(each).__name__ for each in axes if not isinstance(each, Axes)]
    if others or len(axes) < n_panels:
        got = others[0] if others else len(axes)
        raise InputError(
            f"ax must hold {n_panels} axes, or be a Figure or a SubFigure; got {got}. "
            f"plt.subplots(1, {n_panels})[1] has as many."
        )
    for spare in axes[n_panels:]:
        spare.set_axis_off()
    return axes[:n_panels]


def count_axes(ax: Places) -> int | None:
    """Return how many axes were given; None where there is no limit."""
    if ax is None or isinstance(ax, FigureBase):
        return None
    return int(np.size(np.asarray(ax, dtype=object)))


def title_width_in_points(axes: Sequence[Axes]) -> float:
    """Return the points that a title has in one of these panels before it meets the next."""
    figure = axes[0].get_figure(root=True)
    if figure is None:
        return 0.0
    if not isinstance(figure, SelfLayoutFigure):
        return POINTS_PER_INCH * float(axes[0].bbox.width) / figure.dpi
    # the layout of a figure of ours is not solved yet: what the labels at its left leave
    spec = axes[0].get_subplotspec()
    n_columns = 1 if spec is None else spec.get_gridspec().ncols
    inches = float(figure.get_size_inches()[0]) - 0.7
    return POINTS_PER_INCH * inches / n_columns - 8.0


def label_outer(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the axes at the left and at the foot of a grid of panels; others lose their numbers.

    Where there are many, and each is small, both axes are divided once.
    """
    lowest_rows = dict[int, int]()  # by column
    for ax in axes:
        spec = ax.get_subplotspec()
        if spec is not None:
            column = spec.colspan.start
            lowest_rows[column] = max(spec.rowspan.start, lowest_rows.get(column, 0))
    for ax in axes:
        spec = ax.get_subplotspec()
        is_left = True  # as of axes that stand in no grid
        is_foot = True
        if spec is not None:
            column = spec.colspan.start
            is_left = column == min(lowest_rows)
            is_foot = spec.rowspan.start == lowest_rows[column]
        ax.set(xlabel=x if is_foot else "", ylabel=y if is_left else "")
        ax.tick_params(labelbottom=is_foot, labelleft=is_left)
        if len(axes) > 3:
            set_unit_ticks(ax, 2)


def write_title(ax: Axes, title: str, below: str = "") -> None:
    """Write a bold title over the axes, flush left, and a lighter line or two between them.

    Over axes that were given these are wrapped, or they would run into the next ones.
    """
    if not isinstance(ax.get_figure(), SelfLayoutFigure):
        inches = title_width_in_points([ax]) / POINTS_PER_INCH
        below = "\n".join(wrap_small_text(line, inches) for line in below.split("\n"))
    lines = count_lines(below) if below else 0
    ax.set_title(
        title,
        loc="left",
        y=1.0,
        fontsize=TITLE_PT,
        fontweight="bold",
        color=INK,
        pad=7 + 1.45 * SMALL_PT * lines,
        parse_math=False,  # a title that was there before has its own settings
    )
    if below:
        write_small_text(
            ax, below, (0.0, 1.0), (0, 5), va="bottom", color=MUTED, linespacing=1.25
        )


def draw_side_legend(ax: Axes, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """List the curves beside the axes, or inside where the figure is not ours."""
    place: dict[str, Any] = {"loc": "best"}
    if isinstance(ax.get_figure(), SelfLayoutFigure):
        place = {
            "loc": "upper left",
            "bbox_to_anchor": (1.02, 1.0),
            "borderaxespad": 0.0,
        }
    ax.legend(handles, names, handlelength=3.2, **place)


def write_footer(
    axes: Axes | Sequence[Axes],
    parts: Sequence[str],
    key: Sequence[Artist] = (),
    place: Place | Places = None,
) -> None:
    """Write a key and sentences, wrapped, under the figure, which grows by what they take.

    A `place` that was given is not resized.
    """
    several = [axes] if isinstance(axes, Axes) else list(axes)
    figure = several[0].get_figure()
    text = " ".join(part for part in parts if part)
    if isinstance(figure, SelfLayoutFigure):
        _write_figure_footer(figure, text, key)
    elif not text and not key:
        return
    elif isinstance(place, Figure | SubFigure):
        _write_subfigure_footer(place, text, key)
    elif len(several) == 1:
        _write_axes_footer(several[0], text, key)
    else:
        _write_footer_of_several_axes(several, text, key)


def _write_figure_footer(
    figure: SelfLayoutFigure, text: str, key: Sequence[Artist]
) -> None:
    """Make a figure of ours higher by what words and key take, and put them there."""
    width, height = figure.get_size_inches()
    text = wrap_small_text(text, width)
    left = 0.1 / width
    text_height = 0.04  # in inches
    if text:
        text_height = (SMALL_LINE_PT * count_lines(text) + 4) / POINTS_PER_INCH
    foot = text_height + (0.3 if key else 0.0)
    # The figure grows by its foot, so that panels keep the size that they were made with.
    height += foot
    figure.set_size_inches(width, height)
    figure.engine.set(rect=(0.0, foot / height, 1.0, 1.0 - foot / height))
    if text:
        figure.text(
            left,
            0.07 / height,
            text,
            va="bottom",
            fontsize=SMALL_PT,
            color=MUTED,
            linespacing=1.3,
        )
    if key:
        figure.legend(
            handles=list(key),
            loc="lower left",
            bbox_to_anchor=(left, text_height / height),
            borderaxespad=0.0,
            ncols=len(key),
            **KEY_SPACING,
        )


def _write_subfigure_footer(
    place: Figure | SubFigure, text: str, key: Sequence[Artist]
) -> None:
    """Write words and a key at the foot of a part of a figure; its layout makes room for them."""
    root = place.get_figure(root=True)
    inches = place.bbox.width / (100.0 if root is None else root.dpi)
    legend = place.legend(
        handles=list(key),
        loc="outside lower left",
        ncols=max(1, len(key)),
        title=wrap_small_text(text, inches) or None,
        alignment="left",
        **KEY_SPACING,
    )
    legend.get_title().set(color=MUTED, linespacing=1.3)


def _write_axes_footer(ax: Axes, text: str, key: Sequence[Artist]) -> None:
    """Put words below a single axes that was given, and the key inside, where it covers least."""
    text = wrap_small_text(text, _inches_between(ax, [ax]))
    if text:
        _write_text_below(ax, text, in_layout=True)
    if not key:
        return
    _mark_occupied(ax)
    zero = ax.transAxes.inverted().transform(ax.transData.transform((0.0, 0.0)))[1]
    foot = float(zero) if 0.0 < zero < 0.3 else 0.0  # below it are bars
    legend = ax.legend(
        handles=list(key),
        loc="best",
        bbox_to_anchor=(0.0, foot, 1.0, 1.0 - foot),
        frameon=True,
        framealpha=0.85,
        facecolor=PAPER,
        edgecolor="none",
    )
    legend.set_zorder(6)


def _write_footer_of_several_axes(
    axes: Sequence[Axes], text: str, key: Sequence[Artist]
) -> None:
    """Put words, and the key under them, below the lowest and first of several given axes."""
    lowest = min(
        axes, key=lambda ax: (round(ax.get_position().y0, 3), ax.get_position().x0)
    )
    text = wrap_small_text(text, _inches_between(lowest, axes))
    lines = count_lines(text) if text else 0
    # Words and key are wider than these axes, which must make room for their height alone: lines of
    # spaces hold it.
    if text:
        _write_text_below(lowest, text, in_layout=False)
    _write_text_below(lowest, "\n".join([" "] * (lines + (2 if key else 0))))
    if not key:
        return
    root = lowest.get_figure(root=True)
    below_text = offset_copy(
        lowest.transAxes,
        root,
        0.0,
        BELOW_AXES_PT - SMALL_LINE_PT * lines,
        units="points",
    )
    legend = lowest.legend(
        handles=list(key),
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=below_text,
        borderaxespad=0.0,
        ncols=len(key),
        **KEY_SPACING,
    )
    legend.set_in_layout(False)


def _inches_between(first: Axes, axes: Sequence[Axes]) -> float:
    """Return the inches from the left of one axes to the right of them all."""
    root = first.get_figure(root=True)
    dpi = 100.0 if root is None else root.dpi
    for ax in axes:
        ax.apply_aspect()  # square axes are narrower than their place
    right = max(ax.get_window_extent().x1 for ax in axes)
    return float(right - first.get_window_extent().x0) / dpi


def _write_text_below(ax: Axes, text: str, **look: Any) -> None:
    """Write lines of words below an axes that was given."""
    offset = (0.0, BELOW_AXES_PT)
    write_small_text(
        ax, text, (0.0, 0.0), offset, va="top", color=MUTED, linespacing=1.3, **look
    )


def count_lines(text: str) -> int:
    """Return how many lines a text has."""
    return text.count("\n") + 1


def _mark_occupied(ax: Axes) -> None:
    """Draw nothing along the edges of boxes and bands, which a legend would not see otherwise."""
    gap = np.full((1, 2), np.nan)
    points = list[NDArray[Any]]()
    for part in ax.collections:
        if not isinstance(part, PolyCollection):
            continue
        for path in part.get_paths():
            corners = np.asarray(path.vertices, dtype=np.float64)
            middle = corners.mean(axis=0, keepdims=True)
            points += [corners, corners[:1], gap, middle, gap]
    if points:
        x, y = np.vstack(points).T
        ax.add_line(Line2D(x, y, ls="none", label="_occupied"))


def wrap_small_text(text: str, inches: float) -> str:
    """Return small text in lines of at most this length."""
    points = POINTS_PER_INCH * inches
    usual_letter = 0.53 * SMALL_PT  # mean width of a letter of the font
    n_letters = max(24, int(points / usual_letter))
    for most in range(n_letters, 23, -2):
        lines = textwrap.wrap(text, most)
        widths = [text_width(line) * SMALL_PT / TITLE_PT for line in lines]
        if all(width < points - 8.0 for width in widths):
            break
    return "\n".join(lines)
