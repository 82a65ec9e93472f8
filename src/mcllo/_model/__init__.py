"""The model and its solvers on plain arrays: kernel, likelihood, Newton, many classes, many labels.

Imports NumPy and `_ground`. It has never heard of `Predictions`.
"""
