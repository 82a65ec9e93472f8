"""How much the table of the obesity study moves from forest to forest: one panel a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from _common import column
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from mcllo._plot.layout import OwnFigure, footer, heading
from mcllo._plot.style import BAND, INK, SKY, VERMILION, plain_axes, styled

NAMES = {
    "uncalibrated": "as predicted",
    "mcllo": "MCLLO",
    "histogram": "histogram binning",
    "xu_davoine": "Xu and others",
    "temperature": "temperature scaling",
}
SMALLEST_P = 1e-6
DOTS: dict[str, Any] = {"ls": "none", "marker": "o", "markersize": 3.6, "alpha": 0.75}
MIDDLE: dict[str, Any] = {"ls": "none", "marker": "|", "markersize": 17, "markeredgewidth": 2.2}
PAPER: dict[str, Any] = {"ls": "none", "marker": "D", "markersize": 6.5, "markeredgecolor": "white"}


@styled
def seeds_figure(
    seeds: Sequence[Mapping[str, str]], paper: Mapping[str, Sequence[float | None]]
) -> list[Axes]:
    """Draw p-value, ECE and accuracy of the 132 rows for every forest, and the paper's."""
    figure = OwnFigure(9.6, 3.5)
    axes = list(figure.subplots(1, 3, sharey=True))
    for k, (ax, what) in enumerate(zip(axes, ("p_chi2", "ece", "accuracy"), strict=True)):
        plain_axes(ax)
        for row, name in enumerate(NAMES):
            values = _shown(column(seeds, f"{what}_{name}"), what)
            ax.plot(values, row + _spread(values), color=SKY, zorder=2, **DOTS)
            ax.plot(np.median(values), row, color=INK, zorder=3, **MIDDLE)
            printed = paper.get(name, (None,) * 4)[k]
            if printed is not None:
                mark = _shown(np.array([printed]), what)
                ax.plot(mark, row, color=VERMILION, zorder=4, **PAPER)
    _finish(axes, len(seeds))
    return axes


def _shown(values: np.ndarray, what: str) -> np.ndarray:
    return np.log10(np.maximum(values, SMALLEST_P)) if what == "p_chi2" else values


def _spread(values: np.ndarray) -> np.ndarray:
    """Return a place above or below the row for each point, so that equal values show."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return 0.26 * (((rank * 7) % 11) / 5.0 - 1.0)


def _finish(axes: Sequence[Axes], n_seeds: int) -> None:
    p, ece, accuracy = axes
    axes[0].set_yticks(range(len(NAMES)), list(NAMES.values()))
    axes[0].set_ylim(len(NAMES) - 0.4, -0.6)
    p.axvspan(np.log10(SMALLEST_P) - 0.3, np.log10(0.05), color=BAND, alpha=0.6, lw=0, zorder=0)
    p.set_xlim(np.log10(SMALLEST_P) - 0.3, 0.15)
    p.xaxis.set_major_locator(FixedLocator([-6, -4, -2, 0]))
    words = {-6: "≤ 1e−6", -4: "1e−4", -2: "0.01", 0: "1"}
    p.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words[round(value)]))
    ece.set_xlim(left=0.0)
    accuracy.xaxis.set_major_locator(FixedLocator([0.76, 0.80, 0.84, 0.88, 0.92]))
    accuracy.set_xlim(0.765, 0.945)
    accuracy.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
    for ax, title, below in (
        (p, "p-value", "chi-square, as in the paper"),
        (ece, "ECE", "12 bins"),
        (accuracy, "Accuracy", "one person is 0.8 %"),
    ):
        ax.xaxis.set_minor_locator(NullLocator())
        ax.tick_params(axis="y", length=0)
        heading(ax, title, below)
    key = [
        Line2D([], [], color=SKY, label=f"one of {n_seeds} forests and splits", **DOTS),
        Line2D([], [], color=INK, label="their median", **(MIDDLE | {"markersize": 11})),
        Line2D([], [], color=VERMILION, label="the paper", **PAPER),
    ]
    footer(axes[0], ["132 rows judged each time. Grey: rejected at the level 0.05."], key)
