"""Several sets of predictions on one reliability diagram: models, or one model and its
recalibrations.

==========  ======================================================================================
line        one for each set, told by colour, dashes and marks: through the bins (the area of a mark
            is its share of the rows), smooth (with bands while these are few) or isotonic
rows        an outline of the counts for each set, in an axes of their own
key         the name of each set and its ECE, with as many bins as `mcllo.assess` takes
==========  ======================================================================================

There are no boxes of what chance allows: they would hide each other. Draw a set by itself for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .._assessment.assessment import Assessment
from .._comparison.comparison import Comparison
from .._comparison.recommend import UNCALIBRATED
from .._utils.formatting import format_number
from .._validation.predictions import Predictions
from ..exceptions import InputError
from ..metrics._bins import Binning, NBins
from ..metrics._isotonic import pooled_predictions
from ..metrics._reliability import ReliabilityCurve, reliability_curve
from ..metrics._smooth import smooth_curve
from ._curves import MAX_POINT_AREA, MIN_POINT_AREA, draw_agreement, short_count
from ._style import DASHES, MARKERS, SERIES, plain_axes, set_ticks, unit_axes
from ._words import shown_all

MAX_SETS_WITH_BANDS = 3
"""Sets up to which smooth curves have bands."""


class Line(NamedTuple):
    """One set: its name, rows, ECE and bins."""

    name: str
    rows: Predictions
    ece: float
    bins: ReliabilityCurve

    @property
    def entry(self) -> str:
        """What the key says of it."""
        return f"{self.name}: ECE {format_number(self.ece)}"


def collect_lines(
    result: Mapping[str, Assessment] | Comparison, n_bins: NBins, binning: Binning
) -> list[Line]:
    """Return the sets to draw: assessments by name, or a comparison's rows before and after."""
    if isinstance(result, Comparison):
        ranked = sorted(result.ranked, key=lambda row: row.method != UNCALIBRATED)
        sets = [(row.method, result.recalibrated[row.method], row.ece) for row in ranked]
        sets = [(name.replace("_", " "), rows, ece) for name, rows, ece in sets[: len(SERIES)]]
    else:
        sets = [(str(name), a.predictions, a.metrics["ece"]) for name, a in result.items()]
    if not 1 <= len(sets) <= len(SERIES):
        raise InputError(
            f"assessment must hold 1 to {len(SERIES)} assessments by name; got {len(sets)}. "
            "More lines cannot be told apart: draw them in turn."
        )
    names = shown_all([name for name, _, _ in sets])
    return [
        Line(name, rows, ece, reliability_curve(rows, n_bins=n_bins, binning=binning))
        for name, (_, rows, ece) in zip(names, sets, strict=True)
    ]


def draw_lines(ax: Axes, lines: list[Line], curve: str) -> list[Artist]:
    """Draw a line for each set; return what stands for what."""
    plain_axes(ax)
    draw_agreement(ax)
    key: list[Artist] = []
    for k, line in enumerate(lines):
        colour, dashes, marker = SERIES[k], DASHES[k], MARKERS[k]
        look: dict[str, Any] = {"color": colour, "ls": dashes, "zorder": 3 + 0.01 * k}
        if curve == "bins":
            used = line.bins.counts > 0.0
            share = np.sqrt(line.bins.counts[used] / line.bins.counts.max())
            x, y = line.bins.mean_predicted[used], line.bins.observed[used]
            area: Any = MIN_POINT_AREA + (1.4 * MAX_POINT_AREA - MIN_POINT_AREA) * share
            ax.plot(x, y, lw=1.6, label=f"_line{k}", **look)
            points: dict[str, Any] = {"marker": marker, "color": colour, "linewidth": 0.7}
            points |= {"edgecolor": "white", "zorder": 4, "clip_on": False, "label": f"_bins{k}"}
            ax.scatter(x, y, area, **points)
            key.append(Line2D([], [], color=colour, ls=dashes, marker=marker, label=line.entry))
            continue
        if curve == "smooth":
            smooth = smooth_curve(line.rows)
            x, y = smooth.predicted, smooth.observed
            if len(lines) <= MAX_SETS_WITH_BANDS:
                band: dict[str, Any] = {"color": colour, "alpha": 0.13, "lw": 0, "zorder": 1}
                ax.fill_between(x, smooth.low, smooth.high, label=f"_band{k}", **band)
        else:
            pooled = pooled_predictions(line.rows, None)
            x, y = pooled.values, pooled.curve()
        ax.plot(x, y, lw=2.0, label=f"_line{k}", **look)
        key.append(Line2D([], [], color=colour, ls=dashes, lw=2.0, label=line.entry))
    unit_axes(ax)
    return key


def draw_outlines(ax: Axes, lines: list[Line]) -> None:
    """Draw how many rows of each set there are in each bin."""
    plain_axes(ax)
    most = max(float(line.bins.counts.max()) for line in lines)
    for k, line in enumerate(lines):
        look: dict[str, Any] = {"color": SERIES[k], "ls": DASHES[k], "lw": 1.3}
        ax.stairs(line.bins.counts, line.bins.edges, label=f"_rows{k}", **look)
    ax.set_ylim(0.0, 1.1 * most)
    set_ticks(ax.yaxis, [0.0, most], short_count)
    ax.set_ylabel("Rows")
