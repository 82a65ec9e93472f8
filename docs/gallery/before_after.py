"""
Before and after each recalibration
===================================

Recalibrations are learned from 8,000 photographs and judged on 2,000 others: a recalibration looks
perfect on its own rows. The p-value in a panel asks whether the recalibrated predictions still
contradict the labels.
"""

import mcllo

data = mcllo.datasets.load_cifar10_vgg()
methods = ["temperature", "mcllo", "isotonic"]
comparison = mcllo.compare(data.train, data.holdout, methods=methods, seed=0)

panels = mcllo.plot.comparison(comparison)
