"""MCLLO as a careful user writes it in NumPy: the other side of the timings, and a check of ours.

Rows first, every array whole: value and gradient for an optimiser, the Hessian for standard errors.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtrc

Floats = np.ndarray


class PlainMCLLO:
    """The negative log likelihood of one table; the last class is the baseline."""

    def __init__(self, x: Floats, y: np.ndarray) -> None:
        c = x.shape[1]
        self.k = c - 1
        self.odds = np.log(x[:, :-1] / x[:, -1:])
        hot = np.eye(c)[y][:, :-1] if c <= 100 else (y[:, None] == np.arange(self.k)) * 1.0
        self.s = np.concatenate([hot.sum(axis=0), (hot * self.odds).sum(axis=0)])
        self.start = np.concatenate([np.zeros(self.k), np.ones(self.k)])

    def softmax(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities of the classes but the last, and log of their denominator."""
        eta = theta[: self.k] + theta[self.k :] * self.odds
        top = np.maximum(eta.max(axis=1, keepdims=True), 0.0)
        g = np.exp(eta - top)
        total = g.sum(axis=1, keepdims=True) + np.exp(-top)
        return g / total, top + np.log(total)

    def value(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        g, log_total = self.softmax(theta)
        gradient = np.concatenate([g.sum(axis=0), np.einsum("ij,ij->j", g, self.odds)]) - self.s
        return float(log_total.sum() - theta @ self.s), gradient

    def hessian(self, theta: Floats) -> Floats:
        """Return the Hessian: diagonals less a gram matrix."""
        g, k = self.softmax(theta)[0], self.k
        both = np.hstack([g, g * self.odds])
        found = -both.T @ both
        linear, square = (g * self.odds).sum(axis=0), (g * self.odds**2).sum(axis=0)
        at = np.arange(k)
        found[at, at] += g.sum(axis=0)
        found[at, at + k] += linear
        found[at + k, at] += linear
        found[at + k, at + k] += square
        return found


def fit(x: Floats, y: np.ndarray, solver: str) -> dict[str, float]:
    """Fit, test, and compute standard errors; `solver` is a name scipy knows."""
    model = PlainMCLLO(x, y)
    found = minimize(model.value, model.start, jac=True, method=solver)
    statistic = 2.0 * (model.value(model.start)[0] - found.fun)
    se = np.sqrt(np.diagonal(np.linalg.inv(model.hessian(found.x))))
    pvalue = float(chdtrc(2 * model.k, statistic))
    return {"nll": float(found.fun), "pvalue": pvalue, "se": float(se[0]), "steps": found.nit}


def apply_softmax(theta: Floats, x: Floats) -> Floats:
    """Return recalibrated rows the plain way: the softmax of tau + gamma log odds."""
    k = x.shape[1] - 1
    eta = np.zeros(x.shape)
    eta[:, :-1] = theta[:k] + theta[k:] * np.log(x[:, :-1] / x[:, -1:])
    g = np.exp(eta - eta.max(axis=1, keepdims=True))
    return g / g.sum(axis=1, keepdims=True)


def apply_powers(theta: Floats, x: Floats) -> Floats:
    """Return recalibrated rows as the paper's Eq. (3) is printed: powers of odds."""
    k = x.shape[1] - 1
    g = np.ones(x.shape)
    g[:, :-1] = np.exp(theta[:k]) * (x[:, :-1] / x[:, -1:]) ** theta[k:]
    return g / g.sum(axis=1, keepdims=True)
