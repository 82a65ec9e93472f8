"""
Bins instead of a smooth curve
==============================

Grey boxes are where the points of calibrated predictions lie, 95 times out of 100. Nine in ten
rows of this network are in the last bin, so that the others show little; no line runs through
bins of fewer than ten rows. See :doc:`/explanation/curves`.
"""

import mcllo

images = mcllo.datasets.load_cifar10_vgg().holdout
assessment = mcllo.assess(images, seed=0)

ax = mcllo.plot.reliability(assessment, curve="bins")
