"""
A smooth curve instead of bins
==============================

Bins hide what happens inside them. A spline of the log odds needs none; its band is a 95 %
interval of the curve. See :doc:`/explanation/curves`.
"""

import mcllo

images = mcllo.datasets.load_cifar10_vgg().holdout
assessment = mcllo.assess(images, seed=0)

ax = mcllo.plot.reliability(assessment, curve="smooth")
