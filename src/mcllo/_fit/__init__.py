"""Estimates, their existence and their uncertainty.

Imports SciPy and the rooms above it. It draws nothing at random.
"""
