"""
Answer, or leave it
===================

The error of the answers against the share of the rows that is answered, the surest first. A
threshold that keeps a promise is found by :func:`mcllo.abstention_threshold`. See
:doc:`/explanation/decisions`.
"""

import mcllo

data = mcllo.datasets.load_portal_rodents()
curve = mcllo.abstention_curve(data.holdout, calibrator="temperature")

ax = mcllo.plot.abstention(curve)
