"""Reliability diagrams as plain dictionaries of Vega-Lite, which draws without matplotlib.

Numbers and names only, from curves that were computed: Weights & Biases, notebooks and web pages
draw them, each in its own theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.results import none_for_nonfinite

if TYPE_CHECKING:
    from ._reliability import ReliabilityCurve

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
Chart = dict[str, Any]


def quantitative(field: str, title: str | None = None, **more: Any) -> Chart:
    """Return a channel that shows a number."""
    channel = {"field": field, "type": "quantitative", **more}
    if title is not None:
        channel["title"] = title
    return channel


def bins_of_curve(curve: ReliabilityCurve) -> list[Chart]:
    """Return a row for each bin that holds something."""
    name = "most probable class" if curve.label is None else str(curve.label)
    outside = curve.outside
    rows = []
    for m in np.flatnonzero(curve.counts > 0.0).tolist():
        row = {
            "class": name,
            "bin_start": float(curve.edges[m]),
            "bin_end": float(curve.edges[m + 1]),
            "rows": float(curve.counts[m]),
            "predicted": float(curve.mean_predicted[m]),
            "observed": float(curve.observed[m]),
            "low": float(curve.low[m]),
            "high": float(curve.high[m]),
            "band_low": float(curve.band_low[m]),
            "band_high": float(curve.band_high[m]),
            "outside": bool(outside[m]),
        }
        rows.append(none_for_nonfinite(row))
    return rows


def reliability_chart(curves: Sequence[ReliabilityCurve]) -> Chart:
    """Return the diagram of one curve, or a panel for each of several."""
    rows = [row for curve in curves for row in bins_of_curve(curve)]
    share = {"domain": [0.0, 1.0]}
    x = quantitative("predicted", "Predicted probability", scale=share)
    y = quantitative("observed", "Observed frequency", scale=share)
    band = {
        "mark": {"type": "rect", "color": "gray", "opacity": 0.25},
        "encoding": {
            "x": quantitative("bin_start", "Predicted probability", scale=share),
            "x2": {"field": "bin_end"},
            "y": quantitative("band_low", "Observed frequency", scale=share),
            "y2": {"field": "band_high"},
        },
    }
    agreement = {
        "data": {"values": [{"at": 0.0}, {"at": 1.0}]},
        "mark": {"type": "line", "color": "gray", "strokeDash": [4, 3]},
        "encoding": {"x": quantitative("at"), "y": quantitative("at")},
    }
    interval = {
        "mark": {"type": "rule"},
        "encoding": {
            "x": x,
            "y": quantitative("low", "Observed frequency", scale=share),
            "y2": {"field": "high"},
        },
    }
    outside = {
        "field": "outside",
        "type": "nominal",
        "title": "Outside the band",
        "scale": {"domain": [False, True]},
    }
    points = {
        "mark": {"type": "point", "filled": True, "opacity": 1.0, "tooltip": True},
        "encoding": {
            "x": x,
            "y": y,
            "size": quantitative("rows", "Rows"),
            "color": outside,
            "shape": outside,  # colours alone would not reach every reader
        },
    }
    level = f"{100.0 * curves[0].level:g} %"
    chart: Chart = {
        "$schema": SCHEMA,
        "description": (
            "Reliability: predicted probability and observed frequency in bins. The band is where "
            f"calibrated predictions would lie, bin by bin with probability {level} or more."
        ),
        "data": {"values": rows},
    }
    layers = {"layer": [band, agreement, interval, points]}
    if len(curves) == 1:
        title = f"Reliability of {rows[0]['class']}"
        if curves[0].label is None:
            title = "Reliability of the most probable class"
        return {**chart, "title": title, "width": 320, "height": 320, **layers}
    names = list(dict.fromkeys(row["class"] for row in rows))
    panel = {"field": "class", "type": "nominal", "title": None, "sort": names}
    spec = {"width": 200, "height": 200, **layers}
    return {**chart, "columns": 4, "facet": panel, "spec": spec}
