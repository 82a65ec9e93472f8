"""
Class by class, the worst first
===============================

The same diagram for each class: how often a bird, of all photographs in which a bird was given 30
%. Classes are sorted by their calibration error, so that what is wrong stands at the top left.
"""

import mcllo

images = mcllo.datasets.load_cifar10_vgg().train
assessment = mcllo.assess(images, seed=0)

panels = mcllo.plot.reliability_by_class(assessment, max_classes=6)
