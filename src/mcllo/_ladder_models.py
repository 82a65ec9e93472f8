"""The models of the ladder, fitted: restrictions of MCLLO and the full map.

``theta = theta0 + A beta``, where A picks columns of ``theta = (tau_1 .. tau_K, gamma_1 ..
gamma_K)``; a common slope is the sum of the columns of gamma. MCLLO itself is `fit_predictions`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._fit import MCLLOFit, free_parameters
from ._nested_test import WORK
from ._predictions import Predictions
from ._restriction import Family, RestrictedFit, restricted_fit

Floats = NDArray[np.float64]

MODELS = ("identity", "temperature", "shift", "scale", "common_slope", "mcllo", "full")
INSIDE: dict[str, tuple[str, ...]] = {
    "identity": (),
    "temperature": ("identity",),
    "shift": ("identity",),
    "scale": ("identity", "temperature"),
    "common_slope": ("identity", "temperature", "shift"),
    "mcllo": ("identity", "temperature", "shift", "scale", "common_slope"),
    "full": ("identity", "temperature", "shift", "scale", "common_slope", "mcllo"),
}
NEXT = {
    "identity": "temperature",
    "temperature": "common_slope",
    "shift": "common_slope",
    "scale": "mcllo",
    "common_slope": "mcllo",
    "mcllo": "full",
}
MOST_CLASSES = 30
"""Classes beyond which the full map is not fitted."""
FULL_PRICE = 200.0
"""Products of a Hessian of the full map, ``n (c (c - 1))^2``, that a cell of `work` pays for."""


class Models:
    """The fitted models of the ladder; the full map if `work` pays for it (see `_nested_test`)."""

    def __init__(self, predictions: Predictions, fit: MCLLOFit, work: float = WORK) -> None:
        self.mcllo, self.fits = Family(predictions), {}
        for name, basis in mcllo_bases(len(predictions.log_odds)).items():
            if name != "mcllo" or not fit.converged:
                self.fits[name] = restricted_fit(self.mcllo, self.mcllo.identified(basis))
        free = free_parameters(predictions.log_odds)
        theta = np.concatenate([fit.tau, fit.gamma])
        settled = fit.converged or self.fits["mcllo"].settled
        self.fits["mcllo"] = RestrictedFit(
            theta, fit.log_likelihood, np.eye(len(free))[:, free], settled
        )
        weight = predictions.sample_weight
        self.total = float(predictions.n_samples if weight is None else weight.sum())
        self.full_df, self.skipped = 0, _why_no_full(predictions, self.total, work)
        if not self.skipped:
            self.full = Family(predictions, full=True)
            basis = self.full.identified(np.eye(len(self.full.identity)))
            self.fits["full"] = restricted_fit(self.full, basis)
            self.full_df = self.fits["full"].df

    def family(self, model: str) -> Family:
        """Return the family that a model is a restriction of."""
        return self.full if model == "full" else self.mcllo


def mcllo_bases(n_compared: int) -> dict[str, Floats]:
    """Return the free directions of theta = (tau, gamma), for each model up to MCLLO."""
    every = np.eye(2 * n_compared)
    tau, gamma = every[:, :n_compared], every[:, n_compared:]
    common = gamma.sum(axis=1, keepdims=True)
    return {
        "identity": every[:, :0],
        "temperature": common,
        "shift": tau,
        "scale": gamma,
        "common_slope": np.hstack([tau, common]),
        "mcllo": every,
    }


def _why_no_full(predictions: Predictions, total: float, work: float) -> str:
    c = predictions.n_classes
    if c > MOST_CLASSES:
        return f"the full map is left out: more than {MOST_CLASSES} classes"
    if c * (c - 1) >= total:
        return f"the full map is left out: {c * (c - 1)} parameters for {total:g} rows"
    if predictions.n_samples * float(c * (c - 1)) ** 2 > FULL_PRICE * work:
        return "the full map is left out: too much data for its many parameters"
    return ""
