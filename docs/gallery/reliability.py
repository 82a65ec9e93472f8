"""
Is it right as often as it says?
================================

The probability of the most probable class across, how often that class came true up. A spline of
the log odds with its 95 % band: where the band is below the line, the network is overconfident.
Bars count the rows, those that came true upwards.
"""

import mcllo

images = mcllo.datasets.load_cifar10_vgg().holdout
assessment = mcllo.assess(images, seed=0)

ax = mcllo.plot.reliability(assessment)
