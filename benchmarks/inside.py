"""What is measured inside the package: the only place here that imports private names of it.

================  ==================================================================================
`limit_threads`   one thread over the rows, beside the package as it comes
`estimate`        an estimate without standard errors, which no public function leaves out
`one_pass`        value, gradient and Hessian once: the unit in which a fit from a file is counted
================  ==================================================================================

`figures` draws with the canvas of ``mcllo.plot`` and imports that itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def limit_threads(n: int | None) -> None:
    """Let the package start at most `n` threads from here on; None for one to each processor."""
    from mcllo._ground.threads import limit_threads as limit

    limit(n)


def estimate(probs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """Return (tau, gamma), and likelihood and passes: validation and estimate alone."""
    from mcllo import Predictions
    from mcllo._fit.penalty import FreeLikelihood
    from mcllo._math.many_classes import fit_many

    p = Predictions.from_arrays(probs, y, classes=range(probs.shape[1]))
    likelihood = FreeLikelihood(p)
    statistic, start = likelihood.whole.statistic, likelihood.identity
    done = fit_many(p.log_odds, statistic, start=start, free=likelihood.free, hessian=False)
    found = {"nll": done.solution.value, "steps": done.solution.n_iter}
    return likelihood.theta(done.solution.x), found


def one_pass(log_odds: np.ndarray) -> Any:
    """Return the terms of the likelihood at the identity, on one thread; terms can be added."""
    from mcllo._math.likelihood import LogPartition, identity_theta

    return LogPartition(log_odds, n_jobs=1)(identity_theta(len(log_odds)))
