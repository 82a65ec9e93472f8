"""Accuracy and calibration over the forests: is one paid for with the other?

=================  ==============================================================================
change             after a method less as predicted, on the 132 rows of a forest
traded             the ECE (the log loss) falls, and so does the accuracy
rank correlation   Spearman's, over the forests, of the accuracy gained with the ECE (log loss)
                   removed; negative where one is paid for with the other
=================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy.stats import spearmanr

from ..figures import BLUE, FAINT, MUTED, SMALL, VERMILION, Canvas, heading, look, ticks
from ..pages import Row, Rows, column
from ..tables import METHODS

RAW, ROWS = "uncalibrated", 132
FARTHEST = 0.4
"""Larger changes of the log loss are drawn as triangles at the edge."""
STYLES: dict[str, dict[str, Any]] = {
    "mcllo": {"color": BLUE, "marker": "o"},
    "histogram": {"color": VERMILION, "marker": "D"},
}
CORNERS = {
    (0.0, 1.0): "better in both",
    (0.0, 0.0): "calibration for accuracy",
    (1.0, 1.0): "accuracy for calibration",
    (1.0, 0.0): "worse in both",
}


def change(seeds: Sequence[Row], what: str, name: str) -> np.ndarray:
    """Return what a method adds to a number of every forest; stored numbers have four digits."""
    return np.round(column(seeds, f"{what}_{name}") - column(seeds, f"{what}_{RAW}"), 4)


def gained(seeds: Sequence[Row], name: str) -> np.ndarray:
    """Return how many more people a method is right for, whole numbers, in every forest."""
    return np.rint(ROWS * change(seeds, "accuracy", name))


def tradeoff(seeds: Sequence[Row], names: Sequence[str]) -> Rows:
    """Return for each method in how many forests accuracy and calibration moved which way."""
    rows = []
    for name in names:
        right = gained(seeds, name)
        row: Row = {"set": name, "forests": len(right)}
        row["accuracy_change"] = float(right.mean()) / ROWS
        row |= {"up": int((right > 0).sum()), "down": int((right < 0).sum())}
        for what in ("ece", "log_loss"):
            moved = change(seeds, what, name)
            row |= {
                f"{what}_change": float(np.median(moved)),
                f"{what}_falls": int((moved < 0).sum()),
            }
            row[f"{what}_traded"] = int(((moved < 0) & (right < 0)).sum())
            row[f"{what}_correlation"] = (
                float(spearmanr(right, -moved)[0]) if right.any() else None
            )
        rows.append(row)
    return rows


@look()
def tradeoff_figure(seeds: Sequence[Row], paper: Mapping[str, Row]) -> list[Axes]:
    """Draw the change of accuracy against that of ECE and log loss, a point for each forest."""
    figure = Canvas(9.6, 3.9)
    axes = figure.panels(1, 2, sharey=True)
    panels = (("ece", "ECE", "12 bins"), ("log_loss", "Log loss", "it counts both"))
    for ax, (what, title, below) in zip(axes, panels, strict=True):
        ax.axhline(0.0, color=FAINT, lw=1.0, zorder=1)
        ax.axvline(0.0, color=FAINT, lw=1.0, zorder=1)
        for k, (name, style) in enumerate(STYLES.items()):
            people = gained(seeds, name) + 0.24 * (k - 0.5)
            moved = change(seeds, what, name)
            far = moved > FARTHEST
            points: dict[str, Any] = {
                "ls": "none",
                "alpha": 0.65,
                "markeredgewidth": 0,
                "zorder": 3,
            }
            ax.plot(moved[~far], people[~far], markersize=5, **style, **points)
            edge = style | {"marker": ">"}
            ax.plot(
                np.full(far.sum(), FARTHEST),
                people[far],
                markersize=6,
                **edge,
                **points,
            )
            printed = paper[name].get(what)
            if printed is not None:
                more = ROWS * (paper[name]["accuracy"] - paper[RAW]["accuracy"])
                mark: dict[str, Any] = {
                    "markerfacecolor": "white",
                    "markeredgewidth": 1.8,
                }
                mark |= {"markeredgecolor": style["color"], "marker": style["marker"]}
                ax.plot(
                    printed - paper[RAW][what],
                    more,
                    markersize=8,
                    ls="none",
                    zorder=4,
                    **mark,
                )
        ax.set_ylim(-7.4, 7.4)
        ax.set_xlabel(f"Change of the {title if title == 'ECE' else title.lower()}")
        heading(ax, title, below)
    axes[0].set_xlim(-0.185, 0.035)
    axes[1].set_xlim(-0.26, 0.43)
    ticks(axes[0].xaxis, [-0.15, -0.1, -0.05, 0.0], signed)
    ticks(axes[1].xaxis, [-0.2, 0.0, 0.2, 0.4], signed)
    ticks(axes[0].yaxis, [-6, -3, 0, 3, 6], signed)
    axes[0].set_ylabel("Change of accuracy (people of 132)")
    for ax in axes:
        for (x, y), words in CORNERS.items():
            if x and ax is axes[0]:  # no forest is there
                continue
            place = {"ha": "right" if x else "left", "va": "top" if y else "bottom"}
            where = (0.99 if x else 0.01, 0.98 if y else 0.02)
            ax.text(
                *where,
                words,
                transform=ax.transAxes,
                fontsize=SMALL,
                color=MUTED,
                **place,
            )
    key = [
        Line2D(
            [],
            [],
            ls="none",
            markersize=5,
            markeredgewidth=0,
            label=METHODS[name],
            **style,
        )
        for name, style in STYLES.items()
    ]
    hollow = {
        "markerfacecolor": "white",
        "markeredgecolor": MUTED,
        "markeredgewidth": 1.8,
    }
    key.append(
        Line2D([], [], ls="none", marker="o", markersize=7, label="the paper", **hollow)
    )
    note = f"A point is one of {len(seeds)} forests; triangles: the log loss rose by more than "
    figure.footer(
        f"{note}{FARTHEST:g}. Temperature scaling and Xu and others change no label.",
        key,
    )
    return axes


def signed(value: float) -> str:
    """Return a number with a true minus or a plus.

    >>> signed(-0.05), signed(4.0), signed(0.0)
    ('−0.05', '+4', '0')
    """
    return f"{value:+g}".replace("-", "−") if value else "0"
