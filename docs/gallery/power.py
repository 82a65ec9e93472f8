"""
How many labelled rows would show it?
=====================================

Predictions are drawn from your own, labels from a map that makes them overconfident (gamma =
0.8): how often does the test reject, by number of labelled rows? Bands are 95 % intervals of the
simulation.
"""

import mcllo

rodents = mcllo.datasets.load_portal_rodents(groups=None).train
study = mcllo.simulate.power_for(
    rodents, gamma=0.8, n_samples=(100, 300, 900), reps=50, n_resamples=99, seed=0
)

ax = mcllo.plot.power(study)
