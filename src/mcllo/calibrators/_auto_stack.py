r"""The stacked ladder: members, their weights in the pool, and what the pool promises.

====================  ==========================================================================
left-out logs         ``L_ik``: log probability of row i's label by member k fitted without i
weights               `pool_weights` of L, then members fitted to all rows
promise               gain of row i: ``log(sum_k w_k exp L_ik) - L_i,identity`` with weights from
                      the *other* folds; its weighted mean G, and the standard error of that, s
                      (over groups where rows are grouped)
trust                 ``t = G^2 / (G^2 + (s / 3)^2)`` for G > 0, else 0: weights times t, and the
                      rest to the identity; G and s are then those of these weights, where t > 0
evidence              ``E = mean over folds and members of exp(sum_i L_ik - L_i,identity)``
====================  ==========================================================================

Pseudo-counts of the weights are 1/2 for the identity and the temperature and 1/10 for the members
that can overfit. Where the promise is no gain, or with fewer than two rows nothing can be left out,
the identity has weight 1: a repair that does not pay on rows it has not seen is not made.

Were the predictions calibrated, each term of E would have mean 1, given the rows its members were
fitted to: a ratio of probabilities of labels that the denominator draws. So E has mean 1 and
``P(E >= 1 / p) <= p`` at any number of rows (a split likelihood ratio; Wasserman et al. 2020). That
asks that fits to parts know nothing of the labels left out. They begin at the fit to all rows, but
go on until next to nothing of it is left: less than 0.1 in log E (`_auto_members.TRACE`), measured
0.024 at most. Rows that depend on each other, and weights that are no counts, have no such
guarantee and no E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._chunks import one_blas_thread
from .._predictions import Predictions
from ._auto_folds import Folds, assign_folds
from ._auto_members import Ladder, LadderFit
from ._linear_map import transposed_scores
from ._pool import pool_weights, pooled_logs

Floats = NDArray[np.float64]

SCALARS = ("loss", "raw_loss", "gain", "log_evidence")
SIMPLE, RICH = 0.5, 0.1
"""Pseudo-counts of identity and temperature, and of the members after them."""
CAUTION = 1.0 / 3.0
"""Standard errors that the promise is held against."""


@dataclass(frozen=True, eq=False)
class Stack:
    """A fitted pool.

    Attributes
    ----------
    ladder : Ladder
        The members.
    weights : dict of str to float
        Their weights in the pool; sum 1.
    loss, raw_loss : float
        Cross-validated mean log loss of the pool, and the mean log loss of the identity.
    gain, gain_se : float
        Their difference, and its standard error; 0 and infinity when nothing could be left out.
        When it is not positive the identity has weight 1, and it tells what a repair would do.
    log_evidence : float
        ``log E`` against calibration; 0 where there is none.
    """

    ladder: Ladder
    weights: dict[str, float]
    loss: float
    raw_loss: float
    gain: float
    gain_se: float
    log_evidence: float = 0.0

    @property
    def pvalue(self) -> float:
        """``min(1, 1 / E)``, a p-value of calibration."""
        return float(np.exp(-max(0.0, self.log_evidence)))

    def pool(self, scores: Floats, probs: Floats) -> Floats:
        """Return the pooled probabilities, shape (n, c), of transposed scores and their rows."""
        pooled: Floats = self.weights["identity"] * probs
        for name, answer in self.ladder.probabilities(scores).items():
            answer *= self.weights[name]
            pooled += answer.T
        pooled /= pooled.sum(axis=1, keepdims=True)
        return pooled

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "members": self.ladder.to_dict(),
            "weights": self.weights,
            "loss": self.loss,
            "raw_loss": self.raw_loss,
            "gain": self.gain,
            "gain_se": self.gain_se if np.isfinite(self.gain_se) else None,
            "log_evidence": self.log_evidence,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Stack:
        """Return the pool that `to_dict` described."""
        numbers = {key: float(content[key]) for key in SCALARS}
        spread = content["gain_se"]
        weights = {name: float(w) for name, w in content["weights"].items()}
        ladder = Ladder.from_dict(content["members"])
        if set(weights) != set(ladder.names):
            raise ValueError("weights of other members than those that are there")
        return cls(ladder, weights, **numbers, gain_se=np.inf if spread is None else float(spread))


@one_blas_thread()
def fit_stack(predictions: Predictions) -> Stack:
    """Fit the members, leave out folds, and weigh the members."""
    scores, codes = transposed_scores(predictions), predictions.codes
    fit = LadderFit(scores, codes, predictions.sample_weight)
    folds = assign_folds(scores, predictions.sample_weight, predictions.groups)
    names = fit.whole.names
    if folds.n_folds == 0:
        weights = np.eye(len(names))[0]
        raw = float(-fit.whole.logs_of_labels(scores, codes)[folds.rows, 0].mean())
        return Stack(fit.whole, _named(names, weights), raw, raw, 0.0, np.inf)
    folds, counts = folds.enough(), _are_counts(predictions)
    logs = left_out_logs(fit, folds)
    prior = np.where(np.arange(len(names)) < 2, SIMPLE, RICH)
    groups = None if counts else _groups(predictions)[folds.rows]
    pools = _honest_pools(logs, prior, folds)
    gain, spread = _promise(logs, pools, folds, groups)
    trust = _trust(gain, spread)
    pools = trust * pools + (1.0 - trust) * np.eye(len(names))[0]
    if trust > 0.0:
        gain, spread = _promise(logs, pools, folds, groups)
    raw = float(-np.average(logs[:, 0], weights=folds.weight))
    evidence = _log_evidence(logs, folds) if counts else 0.0
    return Stack(fit.whole, _named(names, pools[-1]), raw - gain, raw, gain, spread, evidence)


def _trust(gain: float, spread: float) -> float:
    """Return t of the module's card."""
    return gain**2 / (gain**2 + (CAUTION * spread) ** 2) if gain > 0.0 else 0.0


def _are_counts(predictions: Predictions) -> bool:
    """Whether rows are independent and weights, if any, say how many rows there are."""
    weight = predictions.sample_weight
    whole = weight is None or bool((np.floor(weight) == weight).all())
    return whole and predictions.groups is None and predictions.weight_kind == "frequency"


def _named(names: tuple[str, ...], weights: Floats) -> dict[str, float]:
    return dict(zip(names, weights.tolist(), strict=True))


def left_out_logs(fit: LadderFit, folds: Folds) -> Floats:
    """Return L, one row for each part of `folds`."""
    n_samples = len(fit.codes)
    full = np.ones(n_samples) if fit.weight is None else fit.weight
    weights = [full - folds.left_out(fold, n_samples) for fold in range(folds.n_folds)]
    logs = np.empty((len(folds.rows), len(fit.whole.names)))
    for fold, part in enumerate(fit.parts(weights)):
        own = np.flatnonzero(folds.folds == fold)
        rows = folds.rows[own]
        logs[own] = part.logs_of_labels(fit.scores[:, rows], fit.codes[rows])
    return logs


def _honest_pools(logs: Floats, prior: Floats, folds: Folds) -> Floats:
    """Return the weights for each judge, from the other judges' parts, and last those of all."""
    judges = folds.judges()
    others = judges != np.arange(judges.max() + 2)[:, None]
    return pool_weights(logs, prior, folds.weight * others)


def _groups(predictions: Predictions) -> NDArray[np.intp]:
    """Return which rows depend on each other; each is a group of its own where none are known."""
    return np.arange(predictions.n_samples) if predictions.groups is None else predictions.groups


def _promise(
    logs: Floats, pools: Floats, folds: Folds, groups: NDArray[np.intp] | None
) -> tuple[float, float]:
    """Return the mean gain by weights that have not seen their rows, and its standard error."""
    gains = pooled_logs(logs, pools[folds.judges()]) - logs[:, 0]
    gain = float(np.average(gains, weights=folds.weight))
    return gain, _spread(gains - gain, folds.weight, groups)


def _log_evidence(logs: Floats, folds: Folds) -> float:
    """Return log E."""
    ratios = folds.weight[:, None] * (logs[:, 1:] - logs[:, :1])
    sums = [ratios[folds.folds == fold].sum(axis=0) for fold in range(folds.n_folds)]
    return float(np.logaddexp.reduce(sums, axis=None) - np.log(np.size(sums)))


def _spread(deviations: Floats, weight: Floats, groups: NDArray[np.intp] | None = None) -> float:
    """Return the standard error of a weighted mean; without groups, weights are counts of rows."""
    total = weight.sum()
    if groups is None:
        n, squares = float(total), float(weight @ deviations**2)
    else:
        sums = np.bincount(groups, weights=weight * deviations)
        n, squares = float(len(np.unique(groups))), float(sums @ sums)
    return float(np.sqrt(squares * n / (n - 1.0)) / total) if n > 1.0 else float("inf")
