"""The pictures of a report, as SVG elements: drawn by `mcllo.plot`, described here.

Panels are drawn twice, four beside each other for a screen and two for a phone; the page shows one
of the two. Figures take text and background from the page, so that they follow its dark mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import plot
from .._assessment.assessment import Assessment
from .._diagnosis.baseline_sensitivity import BaselineSensitivity
from .._diagnosis.ladder import Ladder
from .._ground.text import ellipsis, format_count, format_number
from .._workflows.comparison import Comparison
from ..plot._style import BLUE
from ..plot._words import model_name
from .views import Picture

Draw = Callable[..., Any]

WIDE, NARROW = 4, 2
"""Panels beside each other, on a screen and on a phone."""


def pictures(a: Assessment, comparison: Comparison | None) -> Mapping[str, Picture]:
    """Return the pictures of an assessment, and of the comparison if there was one."""
    made = {
        "reliability": _picture("reliability", plot.reliability, a, _reliability_alt(a)),
        "parameters": _picture("parameters", plot.parameters, a.fit, _parameters_alt(a)),
        "by_class": _picture(
            "reliability_by_class",
            plot.reliability_by_class,
            a,
            _by_class_alt(a),
            panels=True,
        ),
        "map": _picture("calibration_map", plot.calibration_map, a.fit, _map_alt(a)),
    }
    if comparison is None:
        made |= _detail_pictures(a)
    else:
        made["dots"] = _picture(
            "comparison_dots", plot.comparison_dots, comparison, _dots_alt(comparison)
        )
        made["panels"] = _picture(
            "comparison",
            plot.comparison,
            comparison,
            _panels_alt(comparison),
            panels=True,
        )
    return made


def _detail_pictures(a: Assessment) -> dict[str, Picture]:
    """Return the pictures of the details that there are."""
    made, d = {}, a.details
    if d.ladder is not None:
        alt = _ladder_alt(d.ladder)
        made["ladder"] = Picture(
            "ladder",
            _svg(plot.ladder(d.ladder), alt, "ladder"),
            _svg(plot.ladder(d.ladder, numbers=False), alt, "ladder-phone"),
            plot.caption("ladder", d.ladder),
            alt,
        )
    if d.baselines is not None:
        alt = _baselines_alt(d.baselines)
        made["baselines"] = _picture("baselines", plot.baselines, d.baselines, alt)
    return made


def _picture(kind: str, draw: Draw, result: Any, alt: str, panels: bool = False) -> Picture:
    if panels:
        large = _svg(draw(result, columns=WIDE), alt, kind)
        small = _svg(draw(result, columns=NARROW), alt, f"{kind}-phone")
    else:
        large, small = _svg(draw(result), alt, kind), ""
    return Picture(kind, large, small, plot.caption(kind, result), alt)


def _svg(axes: Any, alt: str, salt: str) -> str:
    text = plot.to_svg(axes, alt=alt, salt=salt, themed=True)
    return text.replace(f": {BLUE}", f": var(--mcllo-blue, {BLUE})")  # too dark on a dark page


def _reliability_alt(a: Assessment) -> str:
    return (
        "Reliability diagram: predicted probability of the most probable class against how often "
        f"it came true. Calibration error {format_number(a.metrics['ece'])}."
    )


def _parameters_alt(a: Assessment) -> str:
    slopes = a.fit.gamma
    return (
        f"Forest plot of delta and gamma of {len(slopes)} classes against "
        f"{ellipsis(a.fit.baseline)}. Slopes gamma run from {format_number(float(slopes.min()))} "
        f"to {format_number(float(slopes.max()))}; 1 is calibrated."
    )


def _by_class_alt(a: Assessment) -> str:
    return f"Reliability diagrams class by class, the worst of {a.predictions.n_classes} first."


def _map_alt(a: Assessment) -> str:
    return (
        "Curves of the repaired against the predicted share of each class, beside "
        f"{ellipsis(a.fit.baseline)}."
    )


def _ladder_alt(ladder: Ladder) -> str:
    return (
        f"Likelihood ratio statistics of {len(ladder.rows)} nested models; the smallest that is "
        f"not rejected: {model_name(ladder.chosen)}. The table has the numbers."
    )


def _baselines_alt(found: BaselineSensitivity) -> str:
    low, high = min(found.table["statistic"]), max(found.table["statistic"])
    return (
        f"Dot plot of {len(found.table)} baselines: statistics {format_number(low)} to "
        f"{format_number(high)}; repaired probabilities move by at most "
        f"{format_number(found.largest_range)}."
    )


def _dots_alt(c: Comparison) -> str:
    return (
        f"Dot plot of p-value, calibration error and log loss of {len(c.judged)} sets of "
        "predictions; the table below has the numbers."
    )


def _panels_alt(c: Comparison) -> str:
    return (
        f"Reliability diagrams of {format_count(c.holdout.n_samples)} rows as predicted and after "
        f"each of {len(c.judged) - 1} repairs."
    )
