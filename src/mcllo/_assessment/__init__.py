"""`Assessment`, its lazy `Details`, and its statements: what is said, before it is printed.

Imports all rooms above it.
"""

TOLERANCE = 0.01
"""Mean change of the probabilities that is worth no recalibration: one percentage point."""
