"""The pictures of a report, as SVG elements: drawn by `mcllo.plot`, described here.

Panels are drawn twice, four beside each other for a screen and two for a phone; the page shows one
of the two. Figures take text and background from the page, so that they follow its dark mode.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import plot
from ..._assessment.assessment import Assessment
from ..._comparison.comparison import Comparison
from ..._comparison.recommend import UNCALIBRATED
from ..._utils.formatting import ellipsis, format_count, format_number
from ...plot._layout import SelfLayoutFigure
from ...plot._style import BLUE, plot_style, without_display
from ...plot._words import nested_model_label
from .views import Picture

PANELS = {"columns": 4}, {"columns": 2}
"""Panels beside each other, on a screen and on a phone."""


def pictures(
    a: Assessment,
    comparison: Comparison | None,
    order: Sequence[Hashable],
    judged: Mapping[str, Any] | None = None,
) -> Mapping[str, Picture]:
    """Return the pictures of an assessment, and of the comparison if there was one.

    `order` is that of the classes, here and in the tables; subgroups are `judged` by other than the
    usual level and tolerance.
    """
    slopes, base = a.fit.gamma, ellipsis(a.fit.baseline)
    ordered: dict[str, Any] = {"order": order}
    made = {
        "reliability": picture(
            "reliability",
            a,
            "Reliability diagram: predicted probability of the most probable class against how "
            "often it came true.",
            {"error": False},
        ),
        "by_class": picture(
            "reliability_by_class",
            a,
            f"Reliability diagrams class by class, the worst of {a.predictions.n_classes} first.",
            *(ordered | panels for panels in PANELS),
        ),
    }
    if comparison is None:
        made["parameters"] = picture(
            "parameters",
            a.fit,
            f"Forest plot of delta and gamma of {len(slopes)} classes against {base}. Slopes gamma "
            f"run from {format_number(float(slopes.min()))} to "
            f"{format_number(float(slopes.max()))}; 1 is calibrated.",
            ordered,
        )
        made["map"] = picture(
            "calibration_map",
            a.fit,
            f"Curves of the recalibrated against the predicted share of each class, beside {base}.",
            ordered,
        )
    else:
        if comparison.best != UNCALIBRATED:
            after = comparison.best.replace("_", " ")
            made["effect"] = picture(
                "reliability",
                {
                    "as predicted": comparison.recalibrated[UNCALIBRATED],
                    after: comparison.recalibrated[comparison.best],
                },
                f"Reliability of the most probable class as predicted and after {after}.",
                key="effect",
            )
        n_judged = len(comparison.judged)
        made["dots"] = picture(
            "comparison_dots",
            comparison,
            f"Dot plot of p-value, calibration error and log loss of {n_judged} sets of "
            "predictions; the table below has the numbers.",
        )
        made["panels"] = picture(
            "comparison",
            comparison,
            f"Reliability diagrams of {format_count(comparison.holdout.n_samples)} rows as "
            f"predicted and after each of {n_judged - 1} recalibrations.",
            *PANELS,
        )
        return made
    if (divided := a.subgroups) is not None:
        made["subgroups"] = picture(
            "subgroups",
            divided,
            f"Forest plot of slope and size of {len(divided.groups)} subgroups; the table below "
            "has the numbers.",
            judged or {},
        )
    if (value := a.decision_value) is not None:
        made["decision_value"] = picture(
            "decision_value",
            value,
            f"Mean realised cost of {len(value.table)} ways to act; the table below has the "
            "numbers.",
        )
    if (nested_models := a.details.nested_models) is not None:
        made["nested_models"] = picture(
            "nested_models",
            nested_models,
            f"Likelihood ratio statistics of {len(nested_models.rows)} nested models; the "
            f"smallest that is not rejected: {nested_model_label(nested_models.chosen)}. "
            "The table has the numbers.",
            {},
            {"numbers": False},
        )
    if (found := a.details.baselines) is not None:
        low, high = min(found.table["statistic"]), max(found.table["statistic"])
        made["baselines"] = picture(
            "baselines",
            found,
            f"Dot plot of {len(found.table)} baselines: statistics {format_number(low)} to "
            f"{format_number(high)}; recalibrated probabilities move by at most "
            f"{format_number(found.largest_range)}.",
        )
    return made


def small_diagram(a: Assessment) -> str:
    """Return the reliability diagram for a card: its letters are no smaller than on a page."""
    with without_display(), plot_style():
        place = SelfLayoutFigure(4.1, 3.9).subplots()
        # the bins that the assessment holds: showing a result computes nothing
        if a.top_label_curve is None:
            ax = plot.reliability(a, ax=place, curve="bins", error=False)
        else:
            ax = plot.reliability(a.top_label_curve, ax=place, error=False)
    alt = "Reliability diagram: predicted probability against how often the class came true."
    return plot.to_svg(ax, alt=alt, salt="card", themed=True)


def picture(
    kind: str, result: Any, alt: str, *options: Mapping[str, Any], key: str = ""
) -> Picture:
    """Draw with `mcllo.plot`'s function of that name; the second `options` are for a phone.

    `key` names a figure where another of its kind is on the page.
    """
    key = key or kind
    drawn = []
    for each, end in zip(options or [{}], ("", "-phone"), strict=False):
        with without_display():
            axes = getattr(plot, kind)(result, **each)
        for ax in np.ravel(axes):
            for axis in (ax.xaxis, ax.yaxis):
                if not axis.get_label_text():
                    axis.set_label_coords(
                        0.5, 0.5
                    )  # or matplotlib finds a place for no words
        text = plot.to_svg(axes, alt=alt, salt=key + end, themed=True)
        drawn.append(
            text.replace(f": {BLUE}", f": var(--mcllo-blue, {BLUE})")
        )  # on a dark page
    return Picture(key, drawn[0], "".join(drawn[1:]), plot.caption(kind, result), alt)
