"""`AutoCalibrator`: a mean of repairs, from none to a full map, weighed by cross-validation.

Imports what `calibrators` imports.
"""
