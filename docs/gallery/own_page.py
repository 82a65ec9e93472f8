"""
Several of them on one page
===========================

``ax=`` is an axes, several of them, or a part of a figure. ``layout="constrained"`` makes room
for keys and captions.
"""

import matplotlib.pyplot as plt

import mcllo

images = mcllo.datasets.load_cifar10_vgg().train
assessment = mcllo.assess(images, seed=0)

figure = plt.figure(figsize=(11, 5.4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[0.8, 1])
mcllo.plot.reliability(assessment, ax=left)
mcllo.plot.parameters(assessment.fit, ax=right)
plt.close(figure)
