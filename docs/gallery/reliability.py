"""
Is it right as often as it says?
================================

The probability of the most probable class across, how often that class came true up. Grey boxes
are where the points of calibrated predictions lie, 95 times out of 100. Points below the line and
outside their boxes: the network is overconfident. Bars count the rows.
"""

import mcllo

images = mcllo.datasets.load_cifar10_vgg().holdout
assessment = mcllo.assess(images, seed=0)

ax = mcllo.plot.reliability(assessment)
