"""
Which kind of miscalibration?
=============================

Nested models from "nothing is wrong" to a shift and a slope for every class, and how much of the
departure each explains. The first one that the labels do not contradict is enough to say what is
wrong. See :doc:`/explanation/nested-models`.
"""

import mcllo

rodents = mcllo.datasets.load_portal_rodents(groups=None).holdout
steps = mcllo.nested_models(rodents, seed=0)

ax = mcllo.plot.nested_models(steps)
