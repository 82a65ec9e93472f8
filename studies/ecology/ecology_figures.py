"""Figures of the ecology study: rows of its tables in, Axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from mcllo._plot.layout import OwnFigure, footer, heading
from mcllo._plot.style import BAND, BLUE, INK, MUTED, SMALL, VERMILION, plain_axes, styled

Rows = Sequence[dict[str, Any]]

LINES: dict[str, dict[str, Any]] = {
    "observed": {"color": INK, "ls": "none", "marker": "o", "markersize": 4.0},
    "predicted": {"color": VERMILION, "ls": (0, (5, 2)), "lw": 1.6},
    "repaired": {"color": BLUE, "ls": "-", "lw": 1.6},
}
WORDS = {
    "observed": "observed",
    "predicted": "predicted from 1977–1985",
    "repaired": "after MCLLO fitted on 1986–1994",
}
BORDER = 1994.5
YEARS = (1986, 1990, 1994, 1998, 2002)


def _key(names: Sequence[str]) -> list[Line2D]:
    return [Line2D([], [], label=WORDS[name], **LINES[name]) for name in names]


def _years(ax: Axes) -> None:
    plain_axes(ax)
    ax.axvspan(BORDER, 2002.6, color=BAND, alpha=0.45, lw=0, zorder=0)
    ax.set_xlim(1985.4, 2002.6)
    ax.xaxis.set_major_locator(FixedLocator(YEARS))
    ax.xaxis.set_minor_locator(NullLocator())


@styled
def shares_figure(rows: Rows) -> list[Axes]:
    """Draw the share of each genus in the captures, year by year; the largest change first."""
    genera = sorted({row["genus"] for row in rows}, key=lambda genus: -_drift(rows, genus))
    figure = OwnFigure(9.2, 5.2)
    made = figure.subplots(2, 4, sharex=True)
    axes = list(made.flat)
    axes.pop().remove()
    for i, (ax, genus) in enumerate(zip(axes, genera, strict=True)):
        own = [row for row in rows if row["genus"] == genus]
        _years(ax)
        for name, style in LINES.items():
            ax.plot([row["year"] for row in own], [row[name] for row in own], **style)
        top = max(max(row[name] for name in LINES) for row in own)
        ax.set_ylim(0.0, 1.12 * top)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        ax.locator_params(axis="y", nbins=4)
        ax.xaxis.set_major_locator(FixedLocator(YEARS[::2]))
        ax.tick_params(labelbottom=i >= 3)
        heading(ax, genus)
    for ax in (axes[0], axes[4]):
        ax.set_ylabel("Share of captures")
    footer(axes[0], ["Grey: the years the repair was not fitted on."], _key(list(LINES)))
    return axes


def _drift(rows: Rows, genus: str) -> float:
    own = [row for row in rows if row["genus"] == genus]
    return max(abs(row["observed"] - row["predicted"]) for row in own)


@styled
def years_figure(rows: Rows) -> Axes:
    """Draw the log loss of each year before and after the repair."""
    ax = OwnFigure(6.4, 3.9).subplots()
    _years(ax)
    years = [row["year"] for row in rows]
    for name, column, marker in (
        ("predicted", "log_loss", "D"),
        ("repaired", "log_loss_mcllo", "o"),
    ):
        values = [row[column] for row in rows]
        ax.plot(years, values, marker=marker, markersize=5.0, **LINES[name])
    ax.set_ylim(0.0, 1.25)
    ax.set_xlabel("Year of capture")
    ax.set_ylabel("Log loss (nats)")
    heading(
        ax, "The further from the training years, the worse", "log loss of each year's captures"
    )
    note = {"fontsize": SMALL, "color": MUTED, "va": "top"}
    ax.text(1985.7, 1.22, "fitted on", **note)
    ax.text(BORDER + 0.25, 1.22, "judged on", **note)
    key = [
        Line2D([], [], marker=marker, markersize=5.0, label=WORDS[name], **LINES[name])
        for name, marker in (("predicted", "D"), ("repaired", "o"))
    ]
    footer(ax, [], key)
    return ax


@styled
def halves_figure(rows: Rows) -> Axes:
    """Draw both p-values of each random half of the plots."""
    order = sorted(rows, key=lambda row: row["robust_p"])
    ax = OwnFigure(6.4, 4.6).subplots()
    plain_axes(ax)
    place = np.arange(len(order))
    plain = np.log10([max(row["p"], 1e-300) for row in order])
    robust = np.log10([row["robust_p"] for row in order])
    ax.axvspan(plain.min() - 3.0, np.log10(0.05), color=BAND, alpha=0.6, lw=0, zorder=0)
    ax.hlines(place, plain, robust, color=MUTED, lw=0.8, zorder=1)
    marks: tuple[dict[str, Any], ...] = (
        {"marker": "D", "color": VERMILION, "label": "rows called independent"},
        {"marker": "o", "color": BLUE, "label": "plots called independent"},
    )
    for values, mark in zip((plain, robust), marks, strict=True):
        ax.plot(values, place, ls="none", markersize=5.5, clip_on=False, zorder=3, **mark)
    ax.set_xlim(plain.min() - 3.0, 0.5)
    ticks = [t for t in range(-300, 1, 10) if t >= plain.min() - 3.0]
    ax.set_xticks(ticks, ["1" if t == 0 else f"1e{t}".replace("-", "−") for t in ticks])
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_ylim(-0.8, len(order) - 0.2)
    ax.set_xlabel("p-value of the repaired predictions (log scale)")
    heading(
        ax,
        "The same years, other plots",
        f"{len(order)} random halves of the 24 plots: fitted on one half, judged on the other",
    )
    key = [Line2D([], [], ls="none", markersize=5.5, **mark) for mark in marks]
    footer(ax, ["Grey: calibration is rejected at the level 0.05."], key)
    return ax
