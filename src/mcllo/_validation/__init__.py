"""Arrays, frames, labels and weights to `Predictions`, and what a 0 stands for: the only validator.

Imports NumPy, narwhals, `_ground` and the log odds of `_model/likelihood`.
"""
