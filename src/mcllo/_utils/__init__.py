"""Rounding and tables, statements, threads, atomic files, small linear algebra, plain results.

Imports NumPy, SciPy's LAPACK inside functions, and nothing of ours but `exceptions`: it has never
heard of calibration.
"""
