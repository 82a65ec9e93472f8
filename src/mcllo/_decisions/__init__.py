"""From a probability to a decision: costs, the best action, what calibration is worth."""
