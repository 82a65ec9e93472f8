"""Class frequencies of a table of probabilities: matched, shifted, and estimated without labels.

q are recalibrated probabilities of rows, S slopes, bars are means over rows.

====================  ==========================================================================
raking                r minimises ``sum_i w_i log sum_j q_ij e^r_j - W t . r``, t the shares that
                      are asked for: then ``mean q e^r / sum = t``; convex, Newton's method
reference rho         frequencies for which q is right
likelihood of pi      ``prod_i sum_j pi_j q_ij / rho_j`` (label shift: what rows of a class look
                      like has not changed), by EM [1]_: ``pi <- mean of the posteriors``, to which
                      for each new row 0.05 rows with the shares kappa are added: where classes are
                      hardly told apart the likelihood alone would rather have none of some
the model's own       kappa: frequencies that need no labels to be believed, by default rho
trust t               ``log(pi_j / kappa_j)`` times ``t_j = T^2 / (T^2 + (s_j / pi_j)^2)``, T = 1/2,
                      s the standard error; pi is then divided by its sum. All t are 0 where
                      ``sum_j (log(pi_j / kappa_j) pi_j / s_j)^2 <= c - 1``: refused
its standard errors   of ``G (S'S + m^2 V) G``, ``G = B (B' S'S B)^-1 B'``: S the slopes of the m
                      rows' logarithms in pi, B a basis of changes that sum to 0; of classes with
                      ``pi > 0``
error of the map V    ``sum_k pi_k^2 / n_k C_k``, C_k the covariance of the slopes in class k, by
                      the new rows, which belong to it with the chances ``pi_k S_ik``; n_k labels
====================  ==========================================================================

The trust is an empirical Bayes factor for a log ratio of shares that is N(0, T^2) before the new
rows are seen. It shrinks to kappa and not to rho, because who asks for an estimate says that rho is
wrong. `docs/explanation/label-shift.md` has what that is worth.

V is what pi would owe to the rows learned from if the slopes were any features of a row, whose
means in each class were estimated from the ``n_k`` labels of it. It is also the influence of the
labels on pi through a map that could take any form; one with few parameters is better known, so
that the standard errors are a little too large for it. It needs neither the rows learned from nor
the covariance of a map, and so holds for every calibrator.

References
----------
.. [1] Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
       probabilities: a simple procedure. Neural Computation 14, 21-41.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._model.kernel import Derivatives
from .._model.newton import minimize
from .._utils.linalg import TINY
from .._utils.results import Floats, Result

PSEUDO_ROW_SHARE = 0.05  # rows of the model's own shares that are added to each new row
PRIOR_SD_OF_LOG_SHARE_RATIO = 0.5
"""T: standard deviation of the logarithm of what a share is multiplied by. Of .35, .5 and .7 on
170 cases of benchmark sets, learned from 1,000 and 200 rows, none was better everywhere."""


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
        """Return the shares that `to_dict` described.

        In files of earlier versions the shares are the likeliest ones.
        """
        shares = np.array(content["shares"], dtype=float)
        return cls(
            shares=shares,
            se=np.array(content["se"], dtype=float),
            n_samples=content["n_samples"],
            n_iter=content["n_iter"],
            likeliest=np.array(content.get("likeliest", shares), dtype=float),
            trust=np.array(content.get("trust", np.ones(len(shares))), dtype=float),
        )


def match_class_shares(
    q: Floats, shares: Floats, weight: Floats | None = None, ridge: float = 0.0
) -> Floats:
    """Return r, sum 0, such that the weighted mean of ``q e^r / sum`` is `shares`, or nearly so.

    The ridge holds r back where that would take a lot. Classes of which `shares` or all of q is 0
    get 0.
    """
    offset = np.zeros(len(shares))
    is_matched = (shares > 0.0) & (q.max(axis=0, initial=0.0) > 0.0)
    matched = np.flatnonzero(is_matched)
    if len(matched) < 2:
        return offset
    row_weight = np.ones(len(q)) if weight is None else weight
    total = float(row_weight.sum())
    q_matched = np.maximum(q[:, matched], TINY)
    target = shares[matched] / shares[matched].sum()
    pull = (
        ridge + 1e-9 * total
    )  # one number added to all of r changes nothing: this holds the sum

    def objective(r: Floats) -> Derivatives:
        p = q_matched * np.exp(r - r.max())  # the largest factor is 1: no overflow
        row_sums = p.sum(axis=1, keepdims=True)
        p /= row_sums
        log_sums = np.log(row_sums[:, 0]) + r.max()
        value = float(row_weight @ log_sums)
        value -= total * float(target @ r)
        value += 0.5 * pull * float(r @ r)

        expected = row_weight @ p
        gradient = expected - total * target + pull * r
        weighted_p = p * row_weight[:, None]
        hessian = np.diag(expected + pull) - weighted_p.T @ p
        return Derivatives(value, gradient, hessian)

    r = minimize(objective, np.zeros(len(matched))).x
    offset[matched] = r - r.mean()
    return offset


def shift_log_odds(q: Floats, offset: Floats) -> Floats:
    """Return ``q e^offset``, rows divided by their sums; rows whose sum is 0 are left alone."""
    p: Floats = q * np.exp(offset - offset.max())
    row_sums = p.sum(axis=1, keepdims=True)
    return np.where(row_sums < TINY, q, p / np.maximum(row_sums, TINY))


def estimate_class_shares(
    q: Floats, reference: Floats, n_learned: float = np.inf, own: Floats | None = None
) -> ClassShares:
    """Return class frequencies of rows q that are right for those of `reference`.

    Parameters
    ----------
    q : ndarray of shape (n, c)
        Recalibrated probabilities of the new rows.
    reference : ndarray of shape (c,)
        rho.
    n_learned : float
        Rows that q were learned from; infinitely many take them as known.
    own : ndarray of shape (c,), optional
        kappa; by default the reference.
    """
    there = np.flatnonzero(reference > 0.0)
    ratio = q[:, there] / reference[there]
    centre = (reference if own is None else own)[there]
    centre = centre / centre.sum()
    shares, n_iter = _maximize_by_em(ratio, centre)

    # Slopes in a share that is all but 0 would decide the standard errors of all others.
    inner = np.flatnonzero(shares > 1e-6)
    row_likelihood = np.maximum(ratio @ shares, TINY)
    slopes = ratio[:, inner] / row_likelihood[:, None]
    n_labels = n_learned * reference[there][inner]
    errors = np.zeros(len(there))
    errors[inner] = _class_share_errors(slopes, shares[inner], n_labels)

    # Empirical Bayes: a change that is small beside its error is taken back, most of it. Of
    # independent rows without a change Wald's statistic has the mean c - 1.
    change = np.log(shares / centre)
    change_se = errors / shares
    known = np.flatnonzero(change_se > 0.0)
    z = change[known] / change_se[known]
    wald = float((z**2).sum())
    trust = np.zeros(len(there))
    if wald > len(there) - 1.0:
        prior_variance = PRIOR_SD_OF_LOG_SHARE_RATIO**2
        trust[known] = prior_variance / (prior_variance + change_se[known] ** 2)
    shrunk = centre * np.exp(trust * change)

    def of_all_classes(values: Floats) -> Floats:
        full = np.zeros(len(reference))
        full[there] = values
        return full

    return ClassShares(
        shares=of_all_classes(shrunk / shrunk.sum()),
        se=of_all_classes(errors),
        n_samples=len(q),
        n_iter=n_iter,
        likeliest=of_all_classes(shares),
        trust=of_all_classes(trust),
    )


def _maximize_by_em(
    ratio: Floats, centre: Floats, tol: float = 1e-9, max_iter: int = 5_000
) -> tuple[Floats, int]:
    """Return the likeliest shares, from `centre`, and the steps; `ratio` is ``q / rho``.

    EM is slow but monotone, and stays inside the simplex.
    """
    shares = centre
    for n_iter in range(1, max_iter + 1):
        posterior = ratio * shares
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), TINY)
        before = shares
        counted = posterior.mean(axis=0) + PSEUDO_ROW_SHARE * centre
        shares = counted / (1.0 + PSEUDO_ROW_SHARE)
        if float(np.abs(shares - before).max()) <= tol:
            return shares, n_iter
    return shares, max_iter


def _class_share_errors(slopes: Floats, shares: Floats, n_labels: Floats) -> Floats:
    """Return the standard errors of the module's table; `n_labels` are those learned from."""
    basis = np.eye(len(shares))[:, 1:]
    basis[0] = -1.0  # changes that sum to 0
    information = slopes.T @ slopes
    inverse = basis @ np.linalg.pinv(basis.T @ information @ basis) @ basis.T  # G

    # V. Row i belongs to class k with chance pi_k S_ik; sums over rows of these, for one pi_k:
    in_class = np.maximum(slopes.sum(axis=0), TINY)
    means = (slopes / in_class).T @ slopes  # of the slopes, in each class
    class_weight = shares**2 / n_labels
    row_weight = slopes @ (class_weight / in_class)
    error_of_map = (slopes * row_weight[:, None]).T @ slopes
    error_of_map -= (means.T * class_weight) @ means

    # G S'S G is G.
    covariance = inverse + len(slopes) ** 2 * inverse @ error_of_map @ inverse
    return np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
