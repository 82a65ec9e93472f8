"""
Which recalibration is best here?
=================================

p-value, calibration error and log loss of each method on the rows left aside. The interval at a
log loss is that of its difference from the best: methods whose intervals reach the best cannot be
told from it.
"""

import mcllo

data = mcllo.datasets.load_obesity_forest(clip=0.001)
methods = ["auto", "mcllo", "temperature", "dirichlet", "histogram", "isotonic", "beta"]
comparison = mcllo.compare(data.train, data.holdout, methods=methods, seed=0)

panels = mcllo.plot.comparison_dots(comparison)
print(comparison.recommendation)
