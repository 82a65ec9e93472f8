"""How good recalibrated probabilities are on rows that no method saw, method beside method."""
