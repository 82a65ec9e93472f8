"""
What decisions cost
===================

Acting on the probabilities as they are, on recalibrated ones, always in the same way, and with
perfect knowledge. The cross is what the probabilities promised. See :doc:`/explanation/decisions`.
"""

import mcllo

data = mcllo.datasets.load_obesity_forest()
worst = data.holdout.classes[-1]
costs = {"miss": {worst: 20}, "default": 1, "abstain": 0.6}
found = mcllo.decision_value(data.holdout, costs=costs)

ax = mcllo.plot.decision_value(found)
