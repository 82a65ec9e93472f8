"""What lies behind a verdict: the kind of miscalibration, the classes, the baseline, the zeros.

Imports all rooms above it: nested models are tested with the draws of `_inference`.
"""
