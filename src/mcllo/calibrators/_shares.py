"""Class frequencies of a table of probabilities: shifted, raked, and estimated without labels.

`calibrators/_prior` says what these are for, and has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._model.kernel import Derivatives
from .._model.newton import minimize
from .._utils.results import Floats, Result

OFFSET_RIDGE_SHARE = 1e-9
"""Holds offsets at sum 0; part of the rows' weight."""
MAX_EM_STEPS = 5_000
EM_TOL = 1e-9
PSEUDO_ROW_SHARE = 0.05
"""Rows of the model's own shares that are added to each new row."""
PRIOR_SD_OF_LOG_SHARE_RATIO = 0.5
"""T: standard deviation of the logarithm of what a share is multiplied by. Of .35, .5 and .7 on
170 cases of benchmark sets, learned from 1,000 and 200 rows, none was better everywhere."""
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class ClassShares(Result):
    """Class frequencies estimated from predictions without labels.

    Attributes
    ----------
    shares : ndarray of shape (c,)
        Estimated frequencies, sum 1: between the model's own and the likeliest ones, as far as
        these are known.
    se : ndarray of shape (c,)
        Standard errors of `likeliest`; 0 where that is 0. They include what is not known of the
        map, as if the rows learned from were independent.
    n_samples : int
        Rows they were estimated from.
    n_iter : int
        Steps of EM.
    likeliest : ndarray of shape (c,)
        What the rows say by themselves.
    trust : ndarray of shape (c,)
        How far `shares` go from the model's own frequencies (0) to `likeliest` (1), by logarithms.
    """

    shares: Floats
    se: Floats
    n_samples: int
    n_iter: int
    likeliest: Floats
    trust: Floats

    @property
    def refused(self) -> bool:
        """Whether the rows could not be told from rows with the model's own frequencies."""
        return not self.trust.any()

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> ClassShares:
        """Return the shares that `to_dict` described; files of before have what was likeliest."""
        shares = content["shares"]
        content = {"likeliest": shares, "trust": np.ones(len(shares)), **content}
        names = ("shares", "se", "likeliest", "trust")
        arrays = {name: np.array(content[name], dtype=float) for name in names}
        return cls(**{**content, **arrays})


def match_class_shares(
    q: Floats, shares: Floats, weight: Floats | None = None, ridge: float = 0.0
) -> Floats:
    """Return r, sum 0, such that the weighted mean of ``q e^r / sum`` is `shares`, or nearly so.

    The ridge holds r back where that would take a lot.

    Classes of which `shares` or all of q is 0 get 0.
    """
    offset = np.zeros(len(shares))
    some = np.flatnonzero((shares > 0.0) & (q.max(axis=0, initial=0.0) > 0.0))
    if len(some) < 2:
        return offset
    w = np.ones(len(q)) if weight is None else weight
    total, own = float(w.sum()), np.maximum(q[:, some], TINY)
    target = shares[some] / shares[some].sum()

    def objective(r: Floats) -> Derivatives:
        p = own * np.exp(r - r.max())
        sums = p.sum(axis=1, keepdims=True)
        value = float(w @ np.log(sums[:, 0])) + total * (r.max() - float(target @ r))
        p /= sums
        mean, pull = w @ p, ridge + OFFSET_RIDGE_SHARE * total
        hessian = np.diag(mean + pull) - (p * w[:, None]).T @ p
        gradient = mean - total * target + pull * r
        return Derivatives(value + 0.5 * pull * float(r @ r), gradient, hessian)

    offset[some] = minimize(objective, np.zeros(len(some))).x
    offset[some] -= offset[some].mean()
    return offset


def shift_log_odds(q: Floats, offset: Floats) -> Floats:
    """Return ``q e^offset``, rows divided by their sums; rows whose sum is 0 are left alone."""
    p: Floats = q * np.exp(offset - offset.max())
    sums = p.sum(axis=1, keepdims=True)
    return np.where(sums < TINY, q, p / np.maximum(sums, TINY))


def estimate_class_shares(
    q: Floats, reference: Floats, n_learned: float = np.inf, own: Floats | None = None
) -> ClassShares:
    """Return class frequencies of rows q that are right for those of `reference`.

    q were learned from `n_learned` rows; infinitely many take them as known. `own` are the model's
    own frequencies, by default the reference.
    """
    some = np.flatnonzero(reference > 0.0)
    ratio = q[:, some] / reference[some]
    centre = (reference if own is None else own)[some]
    shares = centre = centre / centre.sum()
    n_iter = 0
    moved = np.inf
    while moved > EM_TOL and n_iter < MAX_EM_STEPS:
        joint = ratio * shares
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), TINY)
        last = shares
        shares = (joint.mean(axis=0) + PSEUDO_ROW_SHARE * centre) / (1.0 + PSEUDO_ROW_SHARE)
        moved, n_iter = float(np.abs(shares - last).max()), n_iter + 1
    inside = np.flatnonzero(shares > 1e-6)
    slopes = ratio[:, inside] / np.maximum(ratio @ shares, TINY)[:, None]
    errors = np.zeros(len(some))
    errors[inside] = _errors_of_shares(slopes, shares[inside], n_learned * reference[some][inside])
    # Empirical Bayes: a change that is small beside its error is taken back, most of it.
    change, change_se = np.log(shares / centre), errors / shares
    known = np.flatnonzero(change_se > 0.0)
    wald = float(((change[known] / change_se[known]) ** 2).sum())
    trust = np.zeros(len(some))
    if wald > len(some) - 1.0:
        trust[known] = PRIOR_SD_OF_LOG_SHARE_RATIO**2 / (
            PRIOR_SD_OF_LOG_SHARE_RATIO**2 + change_se[known] ** 2
        )
    shrunk = centre * np.exp(trust * change)
    full = np.zeros((4, len(reference)))
    full[:, some] = shrunk / shrunk.sum(), errors, shares, trust
    return ClassShares(full[0], full[1], len(q), n_iter, full[2], full[3])


def _errors_of_shares(slopes: Floats, shares: Floats, n_labels: Floats) -> Floats:
    """Return the standard errors of the module's card; `n_labels` are those learned from."""
    basis = np.eye(len(shares))[:, 1:]
    basis[0] = -1.0  # changes that sum to 0
    information = slopes.T @ slopes
    known = basis @ np.linalg.pinv(basis.T @ information @ basis) @ basis.T
    # Row i belongs to class k with chance pi_k S_ik; sums over rows of these, for one pi_k:
    in_class = np.maximum(slopes.sum(axis=0), TINY)
    means = (slopes / in_class).T @ slopes  # of the slopes, in each class
    class_weight = shares**2 / n_labels
    row_weight = slopes @ (class_weight / in_class)
    of_map = (slopes * row_weight[:, None]).T @ slopes - (means.T * class_weight) @ means
    covariance = known + len(slopes) ** 2 * known @ of_map @ known
    return np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
