"""
The best curve that never falls
===============================

Isotonic regression takes for granted only that higher predictions mean higher frequencies. The
band is where the curve of calibrated predictions lies with 95 % probability.
"""

import mcllo

rodents = mcllo.datasets.load_portal_rodents(groups=None).holdout
assessment = mcllo.assess(rodents, seed=0)

ax = mcllo.plot.reliability(assessment, curve="isotonic")
