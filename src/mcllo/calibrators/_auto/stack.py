"""`Stack`: members, their weights in a linear pool, and what the pool promises.

====================  ==========================================================================
order of the rows     by ``sum_j (z_j - max_k z_k)``: how sure the prediction is
fold                  the place in that order, modulo the number of folds. A row of whole weight w
                      takes w places, so that it is w equal rows; of any other weight, one; a group
                      takes one, in the order of the first rows
left-out logs         ``L_ik = log P_ik``: of row i's label, by member k fitted without i
weights w             maximise ``sum_i v_i log p_i + sum_k a_k log w_k`` on the simplex,
                      ``p_i = sum_k w_k P_ik``; members are then fitted to all rows
the same w minimises  ``(V + A) sum_k w_k - sum_i v_i log p_i - sum_k a_k log w_k``  over w > 0;
                      A = sum a, V = sum v
gain of row i         ``log(sum_k w_k exp L_ik) - L_i,identity`` with weights from the *other*
                      folds; its weighted mean G, and the standard error of that, s (over groups
                      where rows are grouped)
trust                 ``t = G^2 / (G^2 + (s / 3)^2)`` for G > 0, else 0: weights times t, and the
                      rest to the identity; G and s are then those of these weights, where t > 0
promise               G less what picking a repair by G adds on average (`promise`); G where t = 0
evidence              ``E = mean over folds and members of exp(sum_i L_ik - L_i,identity)``
====================  ==========================================================================

Every fold gets sure and unsure predictions alike. Labels are *not* spread evenly: where they are,
the left-out rows of a class agree with the rest by construction, and cross-validation no longer
sees how far a fit to class frequencies overshoots. Of many rows fewer than five folds are left out,
in the end one; the others are always fitted to.

The pseudo-counts ``a_k`` are 1/2 for the identity and the temperature and 1/10 for the members that
can overfit: a Dirichlet prior with parameters ``1 + a_k``, so that no member is left without any
weight. The form over w > 0 needs no constraint, because its minimum has sum 1, and is convex: by
Newton's method, from the prior. Several weightings v of the same rows, as when folds are left out,
are one problem, the sum of theirs, and share every product.

Where G is no gain, or with fewer than two rows nothing can be left out, the identity has
weight 1: a repair that does not pay on rows it has not seen is not made.

Were the predictions calibrated, each term of E would have mean 1, given the rows its members were
fitted to: a ratio of probabilities of labels that the denominator draws. So E has mean 1 and ``P(E
>= 1 / p) <= p`` at any number of rows (a split likelihood ratio; Wasserman et al. 2020). That asks
that fits to parts know nothing of the labels left out. They begin at the fit to all rows, but go on
until next to nothing of it is left: less than 0.1 in log E (`calibrators/_auto/members.TRACE`),
measured 0.024 at most. Rows that depend on each other, and weights that are no counts, have no such
guarantee and no E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._ground.notebook import ticking
from ..._ground.results import Codes as Rows
from ..._ground.results import Floats, Result
from ..._ground.threads import one_blas_thread
from ..._inference.paired_loss import thinning
from ..._input.predictions import Predictions
from ..._math.kernel import Terms
from ..._math.newton import minimize
from ...metrics._scores import error_of_mean
from .._linear_fit import transposed_scores
from .members import Members, MembersFit, label_logs
from .promise import promise

N_FOLDS = 5
POOLED_AT_ONCE = 2**20
"""Probabilities that are pooled at once: bounds the memory of `Stack.pool`."""
ENOUGH, MANY, ENOUGH_OF_MANY, MORE, ENOUGH_OF_MORE = 4_000, 20, 500, 50, 120
"""Parts left out after which further folds would tell little more; of more classes than `MANY`,
where a fold costs as much as all else; and of more than `MORE`, where half of all parts will do as
well: log losses are .003 to .007 higher, and the time that of structured matrix scaling."""
WIDEST, GRAIN = 1e5, 2.0**30
"""Gaps are cut at the first and counted in units of one over the second."""
SHOWN_CELLS = 20_000
"""Probabilities left out from which the promise takes its shape."""
TOL = 1e-7
NEAREST = 0.95
"""Part of a weight that one step may take away."""
SIMPLE, RICH = 0.5, 0.1
"""Pseudo-counts of identity and temperature, and of the members after them."""
CAUTION = 1.0 / 3.0
"""Standard errors that the gain is held against."""


@dataclass(frozen=True, eq=False)
class Folds:
    """Which part of which row is left out when; a row of large weight is split.

    Each part has a row, a fold, so much of the row's weight (the parts of a row add up to it) and a
    place in the order, of the group where rows are grouped. No folds: nothing to leave out.
    """

    rows: Rows
    folds: Rows
    weight: Floats
    places: Rows
    n_folds: int

    def first(self, enough: int) -> Folds:
        """Return the first folds that hold `enough` parts."""
        sizes = np.cumsum(np.bincount(self.folds, minlength=self.n_folds))
        n_folds = min(self.n_folds, int(np.searchsorted(sizes, enough)) + 1)
        own = self.folds < n_folds
        parts = (self.rows[own], self.folds[own], self.weight[own], self.places[own])
        return Folds(*parts, n_folds)

    def judges(self) -> Rows:
        """Return, for each part, whom it judges: weights come from the parts of other numbers.

        That is its fold, or where there is only one, which half of it: every other place.
        """
        if self.n_folds > 1:
            return self.folds
        _, places = np.unique(self.places, return_inverse=True)
        return places % 2

    def left_out(self, fold: int, n_samples: int) -> Floats:
        """Return the weight that each row loses, shape (n,)."""
        own = self.folds == fold
        lost = np.bincount(self.rows[own], weights=self.weight[own], minlength=n_samples)
        return lost.astype(np.float64, copy=False)


def assign_folds(scores: Floats, weight: Floats | None = None, groups: Rows | None = None) -> Folds:
    """Assign the columns of `scores`, shape (c, n), to folds."""
    full = np.ones(scores.shape[1]) if weight is None else weight
    gaps = scores.max(axis=0) - scores
    np.minimum(gaps, WIDEST, out=gaps)
    gaps *= GRAIN
    sums = gaps.astype(np.int64).sum(axis=0)  # whole numbers: the order of the classes is nothing
    order = np.argsort(-sums, kind="stable")  # from the surest prediction to the least sure
    order = order[full[order] > 0.0]
    if groups is None and weight is not None and (np.floor(full) == full).all():
        return _split_rows(order, full[order].astype(np.intp))
    places = np.arange(len(order))
    if groups is not None:  # the place of each row's group, counted as they first appear
        _, first, inverse = np.unique(groups[order], return_index=True, return_inverse=True)
        places = np.argsort(np.argsort(first))[inverse]
    n_folds = _n_folds(int(places.max(initial=-1)) + 1)
    return Folds(order, places % max(n_folds, 1), full[order], places, n_folds)


def _n_folds(n_places: int) -> int:
    """Return how many folds so many places make; one place cannot be left out."""
    return min(N_FOLDS, n_places) if n_places > 1 else 0


def _split_rows(order: Rows, counts: Rows) -> Folds:
    """Return folds of rows that stand for `counts` rows each, split where they take more places."""
    ends = np.cumsum(counts)
    n_folds = _n_folds(int(ends[-1]))
    size = max(n_folds, 1)
    fold = np.arange(size)
    # places below an end that belong to the fold: ceil((end - fold) / size)
    parts = -((fold - ends[:, None]) // size) + ((fold - (ends - counts)[:, None]) // size)
    row, own = np.nonzero(parts)
    return Folds(order[row], own, parts[row, own].astype(np.float64), row, n_folds)


def pool_weights(logs: Floats, prior: Floats, weight: Floats | None = None) -> Floats:
    """Return w, shape (K,), or (S, K) for S weightings v, from ``log P_ik`` and ``a_k``."""
    v = np.ones(len(logs)) if weight is None else weight
    w: Floats = np.broadcast_to(prior / prior.sum(), (*v.shape[:-1], len(prior)))
    if len(logs) > 0 and len(prior) > 1:
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
        sums = _Barrier(likelihoods, prior, np.atleast_2d(v))
        found = minimize(sums, w.ravel(), tol=TOL, solve=sums.direction, settled=True).x
        w = found.reshape(w.shape)
        w /= w.sum(axis=-1, keepdims=True)
    return w


def pooled_logs(logs: Floats, weights: Floats) -> Floats:
    """Return ``log sum_k w_k P_ik``, shape (n,), with weights of shape (K,) or (n, K)."""
    top = logs.max(axis=1)
    shares = np.exp(logs - top[:, None])
    return np.log((shares * weights).sum(axis=1)) + top


class _Barrier:
    """``w -> Terms`` of the form without a constraint, summed over S weightings v, shape (S, n).

    w holds theirs one after the other; the Hessian is one block for each, shape (S, K, K).
    """

    def __init__(self, likelihoods: Floats, prior: Floats, weight: Floats) -> None:
        self.likelihoods, self.prior, self.weight = likelihoods, prior, weight
        self.total = weight.sum(axis=1, keepdims=True) + prior.sum()

    def __call__(self, x: Floats) -> Terms:
        """Return value, gradient and Hessian."""
        self.w = w = x.reshape(len(self.weight), -1)
        mixed = w @ self.likelihoods.T
        ratio, pull = self.weight / mixed, self.prior / w
        value = (self.total * w).sum() - (np.log(w) @ self.prior).sum()
        value -= np.vdot(self.weight, np.log(mixed))
        gradient = self.total - ratio @ self.likelihoods - pull
        hessian = np.array([(self.likelihoods.T * r) @ self.likelihoods for r in ratio / mixed])
        np.einsum("sjj->sj", hessian)[:] += pull / w
        return Terms(float(value), gradient.ravel(), hessian)

    def direction(self, terms: Terms) -> Floats:
        """Return the Newton directions, found in units of the weights, which stay positive."""
        curved = terms.hessian * (self.w[:, :, None] * self.w[:, None])
        slopes = self.w * terms.gradient.reshape(self.w.shape)
        shares = np.linalg.solve(curved, slopes[..., None])[..., 0]
        shares /= np.maximum(1.0, shares.max(axis=1, keepdims=True) / NEAREST)
        return np.asarray(-self.w * shares, np.float64).ravel()


@dataclass(frozen=True, eq=False)
class Stack(Result):
    """A fitted pool.

    Attributes
    ----------
    members : Members
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
    promise, promise_se : float
        The gain without what choosing by it adds, and its standard error.
    """

    members: Members
    weights: dict[str, float]
    loss: float
    raw_loss: float
    gain: float
    gain_se: float
    log_evidence: float = 0.0
    promise: float = 0.0
    promise_se: float = np.inf

    @property
    def pvalue(self) -> float:
        """``min(1, 1 / E)``, a p-value of calibration."""
        return float(np.exp(-max(0.0, self.log_evidence)))

    def pool(self, scores: Floats, probs: Floats, at_once: int = POOLED_AT_ONCE) -> Floats:
        """Return the pooled probabilities, shape (n, c), of transposed scores and their rows."""
        pooled = self.weights["identity"] * probs
        size = max(1, at_once // probs.shape[1])
        for start in range(0, len(probs), size):
            part = slice(start, start + size)
            for name, answer in self.members.probabilities(scores[:, part]).items():
                answer *= self.weights[name]
                pooled[part] += answer.T
        pooled /= pooled.sum(axis=1, keepdims=True)
        return pooled

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Stack:
        """Return the pool that `to_dict` described."""
        names = ("loss", "raw_loss", "gain", "log_evidence")
        numbers = {name: float(content[name]) for name in names}
        numbers["promise"] = float(content.get("promise", content["gain"]))
        for name in ("gain_se", "promise_se"):
            spread = content.get(name, content["gain_se"])
            numbers[name] = np.inf if spread is None else float(spread)
        weights = {name: float(w) for name, w in content["weights"].items()}
        members = Members.from_dict(content["members"])
        if set(weights) != set(members.names):
            raise ValueError("weights of other members than those that are there")
        return cls(members, weights, **numbers)


@ticking("stacking")
@one_blas_thread()
def fit_stack(predictions: Predictions, enough: int | None = None) -> Stack:
    """Fit the members, leave out folds until `enough` rows were left out, weigh the members."""
    scores, codes = transposed_scores(predictions), predictions.codes
    fit = MembersFit(scores, codes, predictions.sample_weight)
    folds = assign_folds(scores, predictions.sample_weight, predictions.groups)
    names = fit.whole.names
    if folds.n_folds == 0:
        raw = float(-label_logs(fit.whole.answers(scores), codes)[folds.rows, 0].mean())
        weights = dict.fromkeys(names, 0.0) | {"identity": 1.0}
        return Stack(fit.whole, weights, raw, raw, 0.0, np.inf)
    if enough is None:
        enough = ENOUGH if len(scores) <= MANY else ENOUGH_OF_MANY
        enough = enough if len(scores) <= MORE else min(ENOUGH_OF_MORE, len(folds.rows) // 2)
    folds, groups = folds.first(enough), predictions.groups
    counts = predictions.weight_kind == "frequency" and predictions.has_whole_weights
    if groups is None and not counts:
        groups = np.arange(predictions.n_samples)  # each row is one, whatever its weight
    every = thinning(len(folds.rows), len(scores), SHOWN_CELLS)
    logs, tables = left_out(fit, folds, every)
    prior = np.where(np.arange(len(names)) < 2, SIMPLE, RICH)
    groups = None if groups is None else groups[folds.rows]
    # the weights for each judge, from the other judges' parts, and last those of all
    judges = folds.judges()
    others = judges != np.arange(judges.max() + 2)[:, None]
    pools = pool_weights(logs, prior, folds.weight * others)
    gains = pooled_logs(logs, pools[judges]) - logs[:, 0]
    gain, spread = _mean_and_error(gains, folds, groups)
    trust = _trust(gain, spread)
    pools = trust * pools + (1.0 - trust) * np.eye(len(names))[0]
    expected, doubt = gain, spread
    if trust > 0.0:
        gains = pooled_logs(logs, pools[judges]) - logs[:, 0]
        gain, spread = _mean_and_error(gains, folds, groups)
        pooled = np.einsum("kji,ik->ij", tables, pools[judges][::every])
        expected, doubt = promise(gains, tables[0].T, pooled, folds.weight, groups, every)
    raw = float(-np.average(logs[:, 0], weights=folds.weight))
    evidence = _log_evidence(logs, folds) if groups is None else 0.0
    weights = dict(zip(names, pools[-1].tolist(), strict=True))
    return Stack(fit.whole, weights, raw - gain, raw, gain, spread, evidence, expected, doubt)


def _trust(gain: float, spread: float) -> float:
    """Return t of the module's card."""
    return gain**2 / (gain**2 + (CAUTION * spread) ** 2) if gain > 0.0 else 0.0


def left_out(fit: MembersFit, folds: Folds, every: int) -> tuple[Floats, Floats]:
    """Return L, one row for each part of `folds`, by members that were fitted without its fold; and
    what these make of the parts 0, `every`, ..., shape (K, c, m).
    """
    full = fit.rows.unit
    kept = [full - folds.left_out(fold, len(full)) for fold in range(folds.n_folds)]
    shape = len(fit.whole.names), len(fit.rows.scores), -(-len(folds.rows) // every)
    logs, tables = np.empty((len(folds.rows), shape[0])), np.empty(shape)
    for fold, part in enumerate(fit.parts(kept)):
        own = np.flatnonzero(folds.folds == fold)
        answers = part.answers(fit.rows.scores.take(folds.rows[own], axis=1))
        logs[own] = label_logs(answers, fit.rows.codes[folds.rows[own]])
        shown = own % every == 0
        for table, answer in zip(tables, answers, strict=True):
            table[:, own[shown] // every] = answer[:, shown]
    return logs, tables


def _mean_and_error(gains: Floats, folds: Folds, groups: Rows | None) -> tuple[float, float]:
    """Return the mean of gains by weights that have not seen their rows, and its standard error."""
    gain = float(np.average(gains, weights=folds.weight))
    return gain, error_of_mean(gains - gain, folds.weight, groups)[0]


def _log_evidence(logs: Floats, folds: Folds) -> float:
    """Return log E."""
    ratios = folds.weight[:, None] * (logs[:, 1:] - logs[:, :1])
    sums = [ratios[folds.folds == fold].sum(axis=0) for fold in range(folds.n_folds)]
    return float(np.logaddexp.reduce(sums, axis=None) - np.log(np.size(sums)))
