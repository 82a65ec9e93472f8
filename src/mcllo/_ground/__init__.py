"""Rounding and tables, threads, atomic files, small linear algebra, results as plain values.

Imports NumPy, SciPy's LAPACK inside functions, and nothing of ours: it has never heard of
calibration.
"""
