"""Figures of results: objects in, Axes out, nothing computed inside.

=========================  ====================================================================
`reliability`              the most probable class: predicted against observed frequency
`reliability_by_class`     the same for each class, the worst first
`parameters`               delta and gamma with intervals
`calibration_map`          what the repair does to a probability
`ladder`                   what each nested model of miscalibration explains
`baselines`                what changes with the baseline
`comparison`               reliability before and after each method
`comparison_dots`          p-value, ECE and log loss of each method
`subgroups`                slope and size of each subgroup
`power`, `ece_boxplot`     power studies
=========================  ====================================================================

`save` writes a figure, `to_svg` returns it for a page, `caption` says how to read it. In a notebook
end the cell with ``.figure``. Nothing needs a screen, pyplot is not used, settings are not changed.
The room imports matplotlib and results of the rooms above it; raw rows reach it through a result.
"""

from __future__ import annotations

from ._comparison import comparison, comparison_dots
from ._details import baselines, ladder
from ._files import save, to_svg
from ._parameters import calibration_map, parameters
from ._power import ece_boxplot, ece_difference, power
from ._reliability import reliability, reliability_by_class
from ._subgroups import subgroups
from ._words import caption

__all__ = [
    "baselines",
    "calibration_map",
    "caption",
    "comparison",
    "comparison_dots",
    "ece_boxplot",
    "ece_difference",
    "ladder",
    "parameters",
    "power",
    "reliability",
    "reliability_by_class",
    "save",
    "subgroups",
    "to_svg",
]
