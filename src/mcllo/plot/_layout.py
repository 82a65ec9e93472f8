"""How parts of a figure stand together: panels, titles, legends, and words under the figure.

Figures are `OwnFigure`, unknown to pyplot: none stays open and none needs a screen. Axes that were
given stay in a figure of their own, which is never resized.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ._style import INK, MUTED, SMALL, TITLE, note


class OwnFigure(Figure):
    """A figure made here: it lays itself out, may be resized, and pyplot does not know it."""

    def __init__(self, width: float, height: float) -> None:
        self.engine = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06)
        super().__init__(figsize=(width, height), layout=self.engine)


@contextmanager
def settled(figure: Figure) -> Iterator[None]:
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
    figure.set_layout_engine("none")
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


def panels(n_panels: int, columns: int | None) -> list[Axes]:
    """Return a figure with this many panels that share both axes."""
    rows, wide = grid(n_panels, columns)
    side = 2.05 if columns is not None else {1: 3.8, 2: 3.0, 3: 2.5}.get(wide, 2.05)
    figure = OwnFigure(side * wide + 0.5, (side + 0.4) * rows + 0.5)
    made = figure.subplots(rows, wide, sharex=True, sharey=True, squeeze=False)
    axes = list(made.flat)
    for ax in axes[n_panels:]:
        ax.remove()
    return axes[:n_panels]


def panel_room(axes: Sequence[Axes]) -> float:
    """Return the points that a title has in one of these panels before it meets the next."""
    figure, spec = axes[0].get_figure(root=True), axes[0].get_subplotspec()
    wide = 1 if spec is None else spec.get_gridspec().ncols
    return 72.0 * float(0.0 if figure is None else figure.get_size_inches()[0] - 0.7) / wide - 8.0


def label_outer(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the axes at the left and at the foot of a grid of panels; others lose their numbers."""
    for i, ax in enumerate(axes):
        spec = ax.get_subplotspec()
        first = spec is None or spec.is_first_col()
        wide = 1 if spec is None else spec.get_gridspec().ncols
        last = i + wide >= len(axes)
        ax.set(xlabel=x if last else "", ylabel=y if first else "")
        ax.tick_params(labelbottom=last, labelleft=first)


def heading(ax: Axes, title: str, below: str = "") -> None:
    """Write a bold title over the axes, flush left, and a lighter line or two between them."""
    lines = below.count("\n") + 1 if below else 0
    ax.set_title(
        title,
        loc="left",
        fontsize=TITLE,
        fontweight="bold",
        color=INK,
        pad=7 + 1.45 * SMALL * lines,
        parse_math=False,
    )
    if below:
        note(ax, below, (0.0, 1.0), (0, 5), va="bottom", color=MUTED, linespacing=1.25)


def side_legend(ax: Axes, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """List the curves beside the axes, or inside where the figure is not ours."""
    place: dict[str, Any] = {"loc": "best"}
    if isinstance(ax.get_figure(), OwnFigure):
        place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}
    legend = ax.legend(handles, names, handlelength=3.2, fontsize=SMALL, **place)
    for text in legend.get_texts():
        text.set(parse_math=False, color=INK)


def footer(ax: Axes, parts: Sequence[str], key: Sequence[Artist] = ()) -> None:
    """Write a key and sentences, wrapped, under the figure, which grows by what they take.

    A figure that was given is not resized: the axes hold the key, and the words stand below them.
    """
    figure, text = ax.get_figure(), " ".join(part for part in parts if part)
    look: dict[str, Any] = {"color": MUTED, "linespacing": 1.3}
    if not isinstance(figure, OwnFigure):
        if key:
            ax.legend(handles=list(key), loc="best", labelcolor=INK, fontsize=SMALL)
        if text:
            inches = ax.get_window_extent().width / ax.get_figure(root=True).dpi  # type: ignore[union-attr]
            note(ax, wrapped(text, inches), (0.0, 0.0), (0, -38), va="top", **look)
        return
    width, height = figure.get_size_inches()
    text, left = wrapped(text, width), 0.1 / width
    caption = (1.52 * SMALL * (text.count("\n") + 1) + 4) / 72 if text else 0.04
    foot = caption + (0.3 if key else 0.0)
    height += foot
    figure.set_size_inches(width, height)
    figure.engine.set(rect=(0.0, foot / height, 1.0, 1.0 - foot / height))
    if text:
        look |= {"va": "bottom", "fontsize": SMALL, "parse_math": False, "in_layout": False}
        figure.text(left, 0.07 / height, text, **look)
    if key:
        legend = figure.legend(
            handles=list(key),
            loc="lower left",
            bbox_to_anchor=(left, caption / height),
            borderaxespad=0.0,
            ncols=len(key),
            handletextpad=0.5,
            columnspacing=1.6,
        )
        legend.set_in_layout(False)


def wrapped(text: str, inches: float) -> str:
    """Return small text in lines of at most this length."""
    return "\n".join(textwrap.wrap(text, max(24, int(inches * 72 / (0.53 * SMALL)))))
