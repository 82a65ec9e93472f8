"""The model and its solvers on plain arrays.

==============================  ==============================================================
`kernel`, `compiled`            A(theta) with its derivatives, in NumPy and in C
`likelihood`                    Eq. (1)-(5): log odds, likelihood, recalibrated probabilities
`linear_map`                    the likelihood of ``softmax(W z + b)``
`newton`, `roots`               damped Newton, L-BFGS; a root in one dimension
`temperature`                   one exponent for all classes
`batched`                       many fits at once, and likelihood ratios of many labels
`many_classes`                  inexact Newton by Hessian products
`separable_classes`             classes that leave the fit
==============================  ==============================================================

Imports NumPy and `_utils`. It has never heard of `Predictions`.
"""
