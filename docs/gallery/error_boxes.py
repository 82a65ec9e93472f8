"""
What a recalibration does to the calibration error
==================================================

ECE of simulated data sets before and after recalibration, against how wrong one class is. At
delta = 1 nothing is wrong, and ECE is above 0 all the same: a number without what chance gives is
not an answer.
"""

import mcllo

study = mcllo.simulate.power(
    n_samples=1000, delta_1=(1.0, 1.2, 1.4), n_classes=5, reps=60, seed=0
)

ax = mcllo.plot.ece_boxplot(study)
