"""How parts of a figure stand together: panels, titles, legends, and words under the figure.

Figures are `OwnFigure`, unknown to pyplot until `_show` offers them: none needs a screen. A place
that was given (axes, several of them, or a part of a figure) is filled and never resized.

============================================  ======================================================
`one_axes`                                    one axes: new, given, or in a part of a figure
`side_by_side` several that share their rows
`two_by_two`                                  four that share nothing
`panels`                                      a grid that shares both axes
`footer`                                      the key and words: under a figure of ours, at the foot
                                              of a part of a figure, or inside axes that were given,
                                              where they cover nothing if there is such a place
============================================  ======================================================
"""

from __future__ import annotations

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
from ._style import INK, MUTED, PAPER, SMALL_PT, TITLE_PT, OwnAxes, note, unit_ticks
from ._words import text_width

Place = Axes | Figure | SubFigure | None
"""Where one axes may stand: in a new figure, as given, or in a part of a figure."""
Places = Sequence[Axes] | NDArray[Any] | Figure | SubFigure | None
"""The same of several axes."""
MAX_LARGE_PANELS = 3
"""Panels beyond which each is small."""


class OwnFigure(Figure):
    """A figure made here: it lays itself out, may be resized, and pyplot does not know it."""

    def __init__(self, width: float, height: float) -> None:
        self.engine = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06)
        super().__init__(figsize=(width, height), layout=self.engine)

    def add_subplot(self, *args: Any, **options: Any) -> Axes:
        """Add axes that show themselves in a notebook."""
        return super().add_subplot(*args, **{"axes_class": OwnAxes} | options)


@contextmanager
def fixed_layout(figure: Figure) -> Iterator[None]:
    """Keep the parts of a figure of ours in place, at rounded positions.

    The solver of the layout starts from where the parts are, so that a figure drawn before would
    differ in the last digits, and its file in the bytes.
    """
    if not isinstance(figure, OwnFigure):
        yield
        return
    figure.engine.execute(figure)
    for ax in figure.axes:
        left, bottom, width, height = (round(float(v), 4) for v in ax.get_position().bounds)
        ax.set_position((left, bottom, width, height))
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(figure.engine)
        for ax in figure.axes:
            ax.set_in_layout(True)


def grid(n_panels: int, columns: int | None = None) -> tuple[int, int]:
    """Return rows and columns for this many panels: up to four beside each other, few left over."""
    if columns is not None:
        wide = max(1, min(n_panels, columns))
    else:
        wide = n_panels if n_panels <= 4 else min((4, 3), key=lambda c: -n_panels % c)
    return -(-n_panels // wide), wide


def one_axes(ax: Place, width: float, height: float) -> Axes:
    """Return the axes that were given, or one in the place that was, or in a new figure."""
    if ax is None:
        return OwnFigure(width, height).subplots()
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
    place = OwnFigure(width, height) if ax is None else ax
    if isinstance(place, FigureBase):
        return list(place.subplots(1, n_panels, sharey=True))
    axes = given_axes(place, n_panels)
    for other in axes[1:]:
        other.tick_params(labelleft=False)
    return axes


def two_by_two(ax: Places, width: float, height: float) -> list[Axes]:
    """Return four axes in two rows, each with a scale of its own."""
    place = OwnFigure(width, height) if ax is None else ax
    if isinstance(place, FigureBase):
        return list(place.subplots(2, 2).flat)
    return given_axes(place, 4)


def panels(n_panels: int, columns: int | None, ax: Places = None) -> list[Axes]:
    """Return this many panels that share both axes."""
    rows, wide = grid(n_panels, columns)
    place = ax
    if place is None:
        side = 2.05 if columns is not None else {1: 3.8, 2: 3.0, 3: 2.5}.get(wide, 2.05)
        place = OwnFigure(side * wide + 0.5, (side + 0.4) * rows + 0.5)
    if not isinstance(place, FigureBase):
        return given_axes(place, n_panels)
    made = place.subplots(rows, wide, sharex=True, sharey=True, squeeze=False)
    axes = list(made.flat)
    for spare in axes[n_panels:]:
        spare.remove()
    return axes[:n_panels]


def given_axes(ax: Any, n_panels: int) -> list[Axes]:
    """Return the first of the axes that were given; the others are left blank."""
    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    strange = [type(each).__name__ for each in axes if not isinstance(each, Axes)]
    if strange or len(axes) < n_panels:
        raise InputError(
            f"ax must hold {n_panels} axes, or be a Figure or a SubFigure; got "
            f"{strange[0] if strange else len(axes)}. "
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


def panel_room(axes: Sequence[Axes]) -> float:
    """Return the points that a title has in one of these panels before it meets the next."""
    figure, spec = axes[0].get_figure(root=True), axes[0].get_subplotspec()
    wide = 1 if spec is None else spec.get_gridspec().ncols
    if figure is not None and not isinstance(figure, OwnFigure):
        return 72.0 * float(axes[0].bbox.width) / figure.dpi
    return 72.0 * float(0.0 if figure is None else figure.get_size_inches()[0] - 0.7) / wide - 8.0


def label_outer(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the axes at the left and at the foot of a grid of panels; others lose their numbers.

    Where there are many, and each is small, both axes are divided once.
    """
    specs = [ax.get_subplotspec() for ax in axes]
    known = [spec for spec in specs if spec is not None]
    left = min((spec.colspan.start for spec in known), default=0)
    for ax, spec in zip(axes, specs, strict=True):
        first = spec is None or spec.colspan.start == left
        last = spec is None or not any(
            other.colspan.start == spec.colspan.start and other.rowspan.start > spec.rowspan.start
            for other in known
        )
        ax.set(xlabel=x if last else "", ylabel=y if first else "")
        ax.tick_params(labelbottom=last, labelleft=first)
        if len(axes) > MAX_LARGE_PANELS:
            unit_ticks(ax, 2)


def heading(ax: Axes, title: str, below: str = "") -> None:
    """Write a bold title over the axes, flush left, and a lighter line or two between them."""
    lines = below.count("\n") + 1 if below else 0
    ax.set_title(
        title,
        loc="left",
        y=1.0,
        fontsize=TITLE_PT,
        fontweight="bold",
        color=INK,
        pad=7 + 1.45 * SMALL_PT * lines,
        parse_math=False,
    )
    if below:
        note(ax, below, (0.0, 1.0), (0, 5), va="bottom", color=MUTED, linespacing=1.25)


def side_legend(ax: Axes, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """List the curves beside the axes, or inside where the figure is not ours."""
    place: dict[str, Any] = {"loc": "best"}
    if isinstance(ax.get_figure(), OwnFigure):
        place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}
    legend = ax.legend(handles, names, handlelength=3.2, fontsize=SMALL_PT, **place)
    for text in legend.get_texts():
        text.set(parse_math=False, color=INK)


def footer(
    axes: Axes | Sequence[Axes],
    parts: Sequence[str],
    key: Sequence[Artist] = (),
    place: Place | Places = None,
) -> None:
    """Write a key and sentences, wrapped, under the figure, which grows by what they take.

    A `place` that was given is not resized.
    """
    several = [axes] if isinstance(axes, Axes) else list(axes)
    figure, text = several[0].get_figure(), " ".join(part for part in parts if part)
    look: dict[str, Any] = {"color": MUTED, "linespacing": 1.3}
    if not isinstance(figure, OwnFigure):
        if not (text or key):
            return
        if isinstance(place, Figure | SubFigure):
            _part_footer(place, text, key)
        else:
            _given_footer(several, text, key)
        return
    width, height = figure.get_size_inches()
    text, left = wrap_small_text(text, width), 0.1 / width
    caption = (1.52 * SMALL_PT * (text.count("\n") + 1) + 4) / 72 if text else 0.04
    foot = caption + (0.3 if key else 0.0)
    height += foot
    figure.set_size_inches(width, height)
    figure.engine.set(rect=(0.0, foot / height, 1.0, 1.0 - foot / height))
    if text:
        look |= {"va": "bottom", "fontsize": SMALL_PT, "parse_math": False}
        figure.text(left, 0.07 / height, text, **look)
    if key:
        figure.legend(
            handles=list(key),
            loc="lower left",
            bbox_to_anchor=(left, caption / height),
            borderaxespad=0.0,
            ncols=len(key),
            handletextpad=0.5,
            columnspacing=1.6,
        )


def _part_footer(place: Figure | SubFigure, text: str, key: Sequence[Artist]) -> None:
    """Write words and a key at the foot of a part of a figure; its layout makes room for them."""
    root = place.get_figure(root=True)
    inches = place.bbox.width / (100.0 if root is None else root.dpi)
    legend = place.legend(
        handles=list(key),
        loc="outside lower left",
        ncols=max(1, len(key)),
        title=wrap_small_text(text, inches) or None,
        title_fontproperties={"size": SMALL_PT},
        alignment="left",
        fontsize=SMALL_PT,
        labelcolor=INK,
        handletextpad=0.5,
        columnspacing=1.6,
    )
    legend.get_title().set(color=MUTED, linespacing=1.3, parse_math=False)


def _given_footer(axes: Sequence[Axes], text: str, key: Sequence[Artist]) -> None:
    """Put the key inside a single axes, where it covers least; words, and it, below several."""
    lowest = min(axes, key=lambda ax: (round(ax.get_position().y0, 3), ax.get_position().x0))
    root, ends = lowest.get_figure(root=True), [ax.get_window_extent() for ax in axes]
    dpi = 100.0 if root is None else root.dpi
    inches = (max(end.x1 for end in ends) - lowest.get_window_extent().x0) / dpi
    text, one = wrap_small_text(text, inches), len(axes) == 1
    look: dict[str, Any] = {"va": "top", "color": MUTED, "linespacing": 1.3}
    lines = text.count("\n") + 1 if text else 0
    if lines:
        note(lowest, text, (0.0, 0.0), (0, -38), in_layout=one, **look)
    if key and one:
        _mark_occupied(lowest)
        frame: dict[str, Any] = {"frameon": True, "framealpha": 0.85, "facecolor": PAPER}
        frame |= {"edgecolor": "none", "labelcolor": INK, "fontsize": SMALL_PT}
        zero = lowest.transAxes.inverted().transform(lowest.transData.transform((0.0, 0.0)))[1]
        foot = float(zero) if 0.0 < zero < 0.3 else 0.0  # below it are bars
        frame |= {"loc": "best", "bbox_to_anchor": (0.0, foot, 1.0, 1.0 - foot)}
        lowest.legend(handles=list(key), **frame).set_zorder(6)
    if not one:  # wider than its axes, which must make room for its height alone
        room = "\n".join([" "] * (lines + 2 * bool(key)))
        note(lowest, room, (0.0, 0.0), (0, -38), **look)
        below = offset_copy(
            lowest.transAxes, root, 0.0, -38 - 1.52 * SMALL_PT * lines, units="points"
        )
        beside: dict[str, Any] = {"handletextpad": 0.5, "columnspacing": 1.6, "ncols": len(key)}
        beside |= {"bbox_transform": below, "borderaxespad": 0.0, "fontsize": SMALL_PT}
        if key:
            lowest.legend(
                handles=list(key), loc="upper left", bbox_to_anchor=(0.0, 0.0), **beside
            ).set_in_layout(False)


def _mark_occupied(ax: Axes) -> None:
    """Draw nothing along the edges of boxes and bands, which a legend would not see otherwise."""
    gap, corners = np.full((1, 2), np.nan), list[NDArray[Any]]()
    for part in ax.collections:
        if isinstance(part, PolyCollection):
            for path in part.get_paths():
                edge = np.asarray(path.vertices, dtype=np.float64)
                corners += [edge, edge[:1], gap, edge.mean(axis=0, keepdims=True), gap]
    if corners:
        ax.add_line(Line2D(*np.vstack(corners).T, ls="none", label="_occupied"))


def wrap_small_text(text: str, inches: float) -> str:
    """Return small text in lines of at most this length."""
    for most in range(max(24, int(inches * 72 / (0.53 * SMALL_PT))), 23, -2):
        lines = textwrap.wrap(text, most)
        if all(text_width(line) * SMALL_PT / TITLE_PT < 72 * inches - 8.0 for line in lines):
            break
    return "\n".join(lines)
