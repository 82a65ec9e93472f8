"""Figures of results: objects in, Axes out.

======================  ============================================================================
`reliability`           the most probable class: predicted against observed frequency, of one model
                        or of several
`reliability_by_class`  the same for each class, the worst first
`ReliabilityDisplay`    both, as a display of scikit-learn: ``from_estimator``
`parameters`            delta and gamma with intervals
`calibration_map`       what the recalibration does to a probability
`nested_models`         what each nested model of miscalibration explains
`baselines`             what changes with the baseline
`comparison`            reliability before and after each method
`comparison_dots`       p-value, ECE and log loss of each method
`subgroups`             slope and size of each subgroup
`decision_value`        what decisions cost, beside what else could be done
`abstention`            error of the answers against the share answered
`decision_curve`        net benefit by threshold
`ternary`               three classes on a triangle, with arrows of the recalibration
`monitor`               evidence, size, classes and reliability over time
`power`, `ece_boxplot`  power studies
======================  ============================================================================

`save` writes a figure, `to_svg` returns it for a page, `caption` says how to read it. A notebook
shows figures by itself, ``plt.show()`` in windows; where there is no screen pyplot is left alone.
Settings are not changed. ``ax=`` is an axes, several of them, or a part of a figure.
The room imports matplotlib (the extra ``plot``) and results of the rooms above it. Reliability
diagrams take arrays too; whatever else is drawn of rows is drawn of a result.
"""

from __future__ import annotations

from .._utils.optional import PLOT_EXTRA, import_optional

import_optional("matplotlib", PLOT_EXTRA)  # before the figures, which all import it

from ._comparison import comparison, comparison_dots
from ._decisions import abstention, decision_curve, decision_value
from ._details import baselines, calibration_map, nested_models, parameters
from ._display import ReliabilityDisplay
from ._files import save, to_svg
from ._monitor import monitor
from ._power import ece_boxplot, ece_difference, power
from ._reliability_diagram import reliability, reliability_by_class
from ._subgroups import subgroups
from ._ternary import ternary
from ._words import caption

__all__ = [
    "ReliabilityDisplay",
    "abstention",
    "baselines",
    "calibration_map",
    "caption",
    "comparison",
    "comparison_dots",
    "decision_curve",
    "decision_value",
    "ece_boxplot",
    "ece_difference",
    "monitor",
    "nested_models",
    "parameters",
    "power",
    "reliability",
    "reliability_by_class",
    "save",
    "subgroups",
    "ternary",
    "to_svg",
]
