"""
Shift and slope of each class
=============================

Delta and gamma with 95 % intervals, each class against the baseline. At 1 there is nothing to
recalibrate; slopes below 1 say that predictions are overconfident. See
:doc:`/explanation/delta-and-gamma`.
"""

import mcllo

images = mcllo.datasets.load_cifar10_vgg().train
calibrator = mcllo.MCLLOCalibrator().fit(images)

panels = mcllo.plot.parameters(calibrator.fit_)
