"""
Three classes on a triangle
===========================

Each corner is a class that is certain. Marks are people at their predictions, their look says
what came true; arrows lead from a prediction to its recalibration. The seven levels of the data set
are joined to three: the probability of a joined class is the sum of its parts'.
"""

import numpy as np

import mcllo

rows = mcllo.datasets.load_obesity_forest().train
levels = [str(level).split("_")[0].lower() for level in rows.classes]
joined = {"insufficient": "normal"}
levels = np.array([joined.get(level, level) for level in levels])
names = ["normal", "overweight", "obesity"]
probs = np.column_stack([rows.probs[:, levels == name].sum(axis=1) for name in names])

assessment = mcllo.assess(probs, levels[rows.codes], classes=names, seed=0)
ax = mcllo.plot.ternary(assessment)
