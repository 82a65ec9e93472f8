"""Estimates, their existence and their uncertainty.

==============================  ==============================================================
`fit`                           `MCLLOFit`: the result, and the functions that make it
`estimate`, `penalty`           maximum likelihood, ridge and Firth
`objective`                     the likelihood of the parameters left free
`separation`                    whether the maximum exists
`covariance`, `profile`         robust standard errors; profile likelihood intervals
`map`                           the fitted map and intervals of what it gives
`linear_fit`                    vector and matrix maps
==============================  ==============================================================

Imports NumPy, SciPy and the packages before it. It draws nothing at random.
"""
