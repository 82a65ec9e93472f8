"""
Decision curves
===============

Net benefit of acting on the risk of one class, for any threshold, as predicted and after
recalibration, beside acting always and never. See :doc:`/explanation/decisions`.
"""

import mcllo

data = mcllo.datasets.load_obesity_forest()
worst = data.holdout.classes[-1]
curve = mcllo.decision_curve(data.holdout, positive=worst)

ax = mcllo.plot.decision_curve(curve)
