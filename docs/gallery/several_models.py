"""
Two networks on one diagram
===========================

Assessments by name become lines, up to three of them with bands: this picture compares by eye and
tests no difference.
"""

import mcllo

models = {}
for size in ("large", "small"):
    images = mcllo.datasets.load_cifar10_vgg(network=size).holdout
    models[f"{size} network"] = mcllo.assess(images, seed=0)

ax = mcllo.plot.reliability(models)
