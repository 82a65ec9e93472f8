"""
What the recalibration does to a probability
============================================

From the predicted probability of a class to the recalibrated one, with the other classes in the
shares that they have on average. On the diagonal nothing changes.
"""

import mcllo

images = mcllo.datasets.load_cifar10_vgg().train
calibrator = mcllo.MCLLOCalibrator().fit(images)

ax = mcllo.plot.calibration_map(calibrator.fit_)
