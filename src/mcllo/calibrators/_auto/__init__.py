"""Recalibrations from none to a full map, cross-fitted and pooled: what `AutoCalibrator` learns.

Without scikit-learn, so that an assessment can ask what a recalibration would gain. The room
imports those above it.
"""
