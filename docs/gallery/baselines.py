"""
Does the answer hang on the baseline?
=====================================

The test statistic with every class as the baseline, and by how much recalibrated probabilities
differ from those of the usual one. See :doc:`/explanation/baseline`.
"""

import mcllo

forest = mcllo.datasets.load_obesity_forest().train
found = mcllo.baseline_sensitivity(forest, n_resamples=199, seed=0)

panels = mcllo.plot.baselines(found)
