"""Figures of the image study: rows of its tables in, Axes out.

The pictures themselves are not drawn: CIFAR-10 has no licence that lets us pass them on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from _common import column
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from mcllo._plot.layout import OwnFigure, footer, heading
from mcllo._plot.style import BAND, BLUE, INK, MUTED, SKY, VERMILION, plain_axes, styled

Rows = Sequence[Mapping[str, Any]]

NAMES = {
    "uncalibrated": "as predicted",
    "mcllo": "MCLLO",
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "histogram": "histogram binning",
    "xu_davoine": "Xu and others",
}
SMALLEST_P = 1e-8
PRINTED_AS_BELOW = 0.001
"""The paper prints "< 0.001"."""
TOP = 5
DOTS: dict[str, Any] = {"ls": "none", "marker": "o", "markersize": 3.4, "alpha": 0.75}
MIDDLE: dict[str, Any] = {"ls": "none", "marker": "|", "markersize": 15, "markeredgewidth": 2.2}
PAPER: dict[str, Any] = {"ls": "none", "marker": "D", "markersize": 6.5, "markeredgecolor": "white"}
BEFORE: dict[str, Any] = {"ls": "none", "marker": "D", "markersize": 6.0, "color": VERMILION}
AFTER: dict[str, Any] = {"ls": "none", "marker": "o", "markersize": 6.0, "color": BLUE}


@styled
def planes_figure(rows: Rows) -> list[Axes]:
    """Draw the five largest probabilities of the two planes before and after MCLLO."""
    images = list(dict.fromkeys(row["image"] for row in rows))
    figure = OwnFigure(9.0, 2.9)
    axes = list(figure.subplots(1, len(images), sharex=True))
    for ax, image in zip(axes, images, strict=True):
        plain_axes(ax)
        own = [row for row in rows if row["image"] == image][:TOP]
        place = np.arange(len(own))
        ends = [[r[end] for r in own] for end in ("low", "high")]
        ax.hlines(place + 0.16, *ends, color=BLUE, lw=2.2)
        ax.plot([r["before"] for r in own], place - 0.16, zorder=3, **BEFORE)
        ax.plot([r["after"] for r in own], place + 0.16, zorder=3, **AFTER)
        ax.set_yticks(place, [r["class"] for r in own])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(own) - 0.5, -0.6)
        ax.set_xlim(-0.03, 1.03)
        ax.xaxis.set_major_locator(FixedLocator([0.0, 0.25, 0.5, 0.75, 1.0]))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.set_xlabel("Probability")
        first = next(r for r in own if r["class"] == r["label"])
        numbers = f"{first['label']}: {first['before']:.3f}, after MCLLO {first['after']:.3f}"
        heading(ax, f"Test image {image}", numbers)
    key = [
        Line2D([], [], label="as predicted", **BEFORE),
        Line2D([], [], label="after MCLLO, 95 % interval", **(AFTER | {"ls": "-", "lw": 2.2})),
    ]
    footer(axes[0], ["The five classes that the network finds most probable."], key)
    return axes


@styled
def splits_figure(
    rows: Sequence[Mapping[str, str]], paper: Mapping[str, Sequence[float | None]]
) -> list[Axes]:
    """Draw p-value, ECE and log loss of every split, and the paper's."""
    figure = OwnFigure(9.6, 3.9)
    axes = list(figure.subplots(1, 3, sharey=True))
    for ax, what, k in zip(axes, ("p", "ece", "log_loss"), (1, 2, None), strict=True):
        plain_axes(ax)
        for place, name in enumerate(NAMES):
            values = _shown(column(rows, f"{what}_{name}"), what)
            ax.plot(values, place + _spread(values), color=SKY, zorder=2, **DOTS)
            ax.plot(np.median(values), place, color=INK, zorder=3, **MIDDLE)
            printed = None if k is None else paper[name][k]
            if printed is not None:
                below = (
                    {"marker": "<", "markersize": 8.5}
                    if (what, printed) == ("p", PRINTED_AS_BELOW)
                    else {}
                )
                mark = _shown(np.array([printed]), what)
                ax.plot(mark, place, color=VERMILION, zorder=4, **(PAPER | below))
    _finish(axes, len(rows))
    return axes


def _shown(values: np.ndarray, what: str) -> np.ndarray:
    return np.log10(np.maximum(values, SMALLEST_P)) if what == "p" else values


def _spread(values: np.ndarray) -> np.ndarray:
    """Return a place above or below the row for each point, so that equal values show."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return 0.26 * (((rank * 7) % 11) / 5.0 - 1.0)


def _finish(axes: Sequence[Axes], n_splits: int) -> None:
    p, ece, loss = axes
    p.set_yticks(range(len(NAMES)), list(NAMES.values()))
    p.set_ylim(len(NAMES) - 0.4, -0.6)
    left = np.log10(SMALLEST_P) - 0.4
    p.axvspan(left, np.log10(0.05), color=BAND, alpha=0.6, lw=0, zorder=0)
    p.set_xlim(left, 0.2)
    p.xaxis.set_major_locator(FixedLocator([-8, -6, -4, -2, 0]))
    words = {-8: "≤ 1e−8", -6: "1e−6", -4: "1e−4", -2: "0.01", 0: "1"}
    p.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words[round(value)]))
    ece.set_xlim(left=0.0)
    for ax, title, below in (
        (p, "p-value", "chi-square, as in the paper"),
        (ece, "ECE", "45 bins"),
        (loss, "Log loss", "the paper does not give it"),
    ):
        ax.xaxis.set_minor_locator(NullLocator())
        ax.tick_params(axis="y", length=0)
        heading(ax, title, below)
    key = [
        Line2D([], [], color=SKY, label=f"one of {n_splits} splits", **DOTS),
        Line2D([], [], color=INK, label="their median", **(MIDDLE | {"markersize": 11})),
        Line2D([], [], color=VERMILION, label="the paper", **PAPER),
    ]
    note = "2,000 images judged each time; splits share images. Grey: rejected at the level 0.05."
    footer(p, [note, "Triangle: printed as below 0.001."], key)


@styled
def shares_figure(rows: Rows) -> Axes:
    """Draw by how much each class is predicted too often after temperature scaling."""
    ax = OwnFigure(6.4, 3.4).subplots()
    plain_axes(ax)
    order = sorted(rows, key=lambda row: row["observed"] - row["predicted"])
    excess = [100.0 * (row["predicted"] - row["observed"]) for row in order]
    sure = [row["large_adjusted"] <= 0.05 for row in order]
    place = np.arange(len(order))
    ax.axvline(0.0, color=MUTED, lw=0.8, zorder=1)
    ax.hlines(place, 0.0, excess, color=MUTED, lw=1.0, zorder=1)
    for flag, style in ((True, BEFORE), (False, AFTER)):
        kept = [i for i, known in enumerate(sure) if known == flag]
        ax.plot([excess[i] for i in kept], kept, zorder=3, **style)
    ax.set_yticks(place, [row["class"] for row in order])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlabel("Predicted less observed share (percentage points)")
    heading(ax, "After temperature scaling", "10,000 images; each class has a share of 10 %")
    key = [
        Line2D([], [], label="rejected at 0.05 (Holm)", **BEFORE),
        Line2D([], [], label="not rejected", **AFTER),
    ]
    footer(ax, [], key)
    return ax
