"""`Folds`: which rows are left out together when members of a pool are cross-fitted.

====================  ==========================================================================
order of the rows     by ``sum_j (z_j - max_k z_k)``: how sure the prediction is
fold                  the place in that order, modulo the number of folds. A row of whole weight w
                      takes w places, so that it is w equal rows; of any other weight, one; a group
                      takes one, in the order of the first rows; copies
                      (`_diagnostics/duplicate_rows`) are a group, unless rows have groups
====================  ==========================================================================

Every fold gets sure and unsure predictions alike. Labels are *not* spread evenly: where they are,
the left-out rows of a class agree with the rest by construction, and cross-validation no longer
sees how far a fit to class frequencies overshoots. Of many rows fewer than five folds are left out,
in the end one; the others are always fitted to.

What a pool promises for new rows, given that it was made because it seemed to pay.

Rows left out, of total weight W; x their predictions and p what pools that have not seen them made
of these:

====================  ==========================================================================
gain G                mean of ``log p - log x`` at the labels
cost C                mean of ``sum_y x_y log(x_y / p_y)``: what the recalibration would cost if the
                      predictions were right as they are; needs no labels
chance q              ``min(2, 4.5 exp(-W G / f))``, f the dispersion of the gains
                      (`_inference/paired_loss`)
promise               ``G - q (G + C)``
its standard error    ``sqrt(e^2 + q^2 (G + C)^2)``, e by `_inference/paired_loss`
====================  ==========================================================================

A recalibration is made only where G is positive, which flatters G: on calibrated predictions, where
every recalibration does harm, the recalibrations that are made promise a gain all the same. There
``W G`` follows about an exponential distribution of mean 1, whatever the rows are, while the truth
is about ``-C``; so a q of this form makes the promise right on average. Where predictions are off
and the rows are few, ``W G`` is as small as that in some data sets, though the truth is a gain, and
a q that is right for calibrated predictions alone takes off too much. 4.5 and 2 are a compromise:
over 4 designs that are calibrated and 9 that are off the bias is +.15 C and -.18 C on average; that
of 5 without an upper end, chosen on calibrated rows alone, was -.40 C and -.31 C. Single promises
that rest on little evidence may still be lower than any truth; where ``W G`` is 5 or more, next to
nothing is taken off. `docs/explanation/auto.md` has what was measured.

`Stack`: members, their weights in a linear pool, and what the pool promises.

====================  ==========================================================================
folds                 `folds`
log likelihoods       ``L_ik = log P_ik``: of row i's label, by member k fitted without i
weights w             maximise ``sum_i v_i log p_i + sum_k a_k log w_k`` on the simplex,
                      ``p_i = sum_k w_k P_ik``; members are then fitted to all rows
the same w minimises  ``(V + A) sum_k w_k - sum_i v_i log p_i - sum_k a_k log w_k``  over w > 0;
                      A = sum a, V = sum v
above 100 classes     the weights are ``t w + (1 - t) e``, e the temperature alone and t the
                      shrinkage below of what w gains on e
gain of row i         ``log(sum_k w_k exp L_ik) - L_i,identity`` with weights from the *other*
                      folds; its weighted mean G, and the standard error of that, s (over groups
                      where rows are grouped)
shrinkage             ``t = G^2 / (G^2 + (k s)^2)`` for G > 0, else 0, with k = 4 / sqrt(m), m the
                      rows or groups left out whose most probable class is wrong, 1 at most and 1/3
                      at least: weights times t, and the rest to the identity; G and s are then
                      those of these weights, where t > 0
promise               optimism-corrected gain: G less what picking a recalibration by G adds on
                      average (`promise`); G where t = 0
evidence              ``E = mean over folds and members of exp(sum_i L_ik - L_i,identity)``
====================  ==========================================================================

The pseudo-counts ``a_k`` are 1/2 for the identity and the temperature and 1/10 for the members that
can overfit: a Dirichlet prior with parameters ``1 + a_k``, so that no member is left without any
weight. The form over w > 0 needs no constraint, because its minimum has sum 1, and is convex: by
Newton's method, from the prior. Several weightings v of the same rows, as when folds are left out,
are one problem, the sum of theirs, and share every product.

Where G is no gain, or with fewer than two rows nothing can be left out, the identity has
weight 1: a recalibration that does not pay on rows it has not seen is not made.

Were the predictions calibrated, each term of E would have mean 1, given the rows its members were
fitted to: a ratio of probabilities of labels that the denominator draws. So E has mean 1 and ``P(E
>= 1 / p) <= p`` at any number of rows (a split likelihood ratio; Wasserman et al. 2020). That asks
that fits to parts know nothing of the labels left out. They begin at the fit to all rows, but go on
until next to nothing of it is left: less than 0.1 in log E
(`calibrators/_auto/members.LEFT_OUT_TRACE_TOL`), measured 0.024 at most. Rows that depend on each
other, and weights that are no counts, have no such guarantee and no E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._diagnostics.duplicate_rows import find_copies
from ..._fit.linear_fit import transposed_scores
from ..._inference.paired_loss import PairedLoss, thinning_stride
from ..._model.kernel import Derivatives
from ..._model.newton import minimize
from ..._utils.notebook import show_progress
from ..._utils.parallel import one_blas_thread
from ..._utils.results import Codes, Floats, Result
from ..._utils.results import Codes as Rows
from ..._validation.predictions import Predictions
from ...metrics._scores import error_of_mean
from .boosted import Correction
from .members import MAX_CLASSES_FOR_FULL, Members, MembersFit, label_log_likelihoods

N_FOLDS = 5
MAX_COUNTED_ROWS = 2.0**53
"""Counted rows up to which a row may be split among folds: beyond, counts are not exact."""
MAX_SCORE_GAP = 1e5  # larger gaps between scores are cut
# gaps are counted in whole units of one over this: sums do not depend on order
SCORE_GAP_UNITS = 2.0**30


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

    def take_first(self, enough: int) -> Folds:
        """Return the first folds that hold `enough` parts."""
        sizes = np.cumsum(np.bincount(self.folds, minlength=self.n_folds))
        n_folds = min(self.n_folds, int(np.searchsorted(sizes, enough)) + 1)
        own = self.folds < n_folds
        parts = (self.rows[own], self.folds[own], self.weight[own], self.places[own])
        return Folds(*parts, n_folds)

    def cross_fitting_folds(self) -> Rows:
        """Return a number for each part: its weights in the pool come from parts of other numbers.

        That is its fold, or where there is only one, which half of it: every other place.
        """
        if self.n_folds > 1:
            return self.folds
        _, places = np.unique(self.places, return_inverse=True)
        return places % 2

    def left_out_weight(self, fold: int, n_samples: int) -> Floats:
        """Return the weight that each row loses, shape (n,)."""
        own = self.folds == fold
        lost = np.bincount(self.rows[own], weights=self.weight[own], minlength=n_samples)
        return lost.astype(np.float64, copy=False)


def assign_folds(scores: Floats, weight: Floats | None = None, groups: Rows | None = None) -> Folds:
    """Assign the columns of `scores`, shape (c, n), to folds."""
    full = np.ones(scores.shape[1]) if weight is None else weight
    gaps = scores.max(axis=0) - scores
    np.minimum(gaps, MAX_SCORE_GAP, out=gaps)
    gaps *= SCORE_GAP_UNITS
    sums = gaps.astype(np.int64).sum(axis=0)  # whole numbers: the order of the classes is nothing
    order = np.argsort(-sums, kind="stable")  # from the surest prediction to the least sure
    order = order[full[order] > 0.0]
    counts = (np.floor(full) == full).all() and full.sum() <= MAX_COUNTED_ROWS
    if groups is None and weight is not None and counts:
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


CHANCE_GAIN_FACTOR = 4.5
MAX_CHANCE_GAIN = 2.0
"""No promise is below ``-(G + 2 C)``: single ones of many times C made the mean too low."""
TINY = float(np.finfo(np.float64).tiny)


def promise(
    gains: Floats, raw: Floats, pooled: Floats, weight: Floats, groups: Codes | None, every: int
) -> tuple[float, float]:
    """Return the promise and its standard error.

    `gains` are of all rows left out, `raw` and `pooled`, shape (m, c), of rows 0, `every`, ...
    """
    raw, pooled = np.maximum(raw, TINY), np.maximum(pooled, TINY)
    pair = PairedLoss(gains, pooled, raw, 0.5 * (raw + pooled), weight, groups, every)
    costs = (raw * np.log(raw / pooled)).sum(axis=1)
    cost = float(np.average(costs, weights=weight[::every]))
    evidence = pair.total * pair.mean / pair.dispersion
    chance = min(MAX_CHANCE_GAIN, CHANCE_GAIN_FACTOR * float(np.exp(-max(evidence, 0.0))))
    taken = chance * (pair.mean + cost)
    return pair.mean - taken, float(np.hypot(pair.error, taken))


MAX_PROBS_AT_ONCE = 2**20
"""Probabilities that are pooled at once: bounds the memory of `Stack.pool`."""
MIN_LEFT_OUT_ROWS = 4_000
MAX_CLASSES_FOR_ALL_FOLDS = 20
MIN_LEFT_OUT_ROWS_MANY_CLASSES = 500
MAX_CLASSES_FOR_MOST_FOLDS = 50
MIN_LEFT_OUT_ROWS_MORE_CLASSES = 120
"""Parts left out after which further folds would tell little more; of more classes than
`MAX_CLASSES_FOR_ALL_FOLDS`, where a fold costs as much as all else; and of more than
`MAX_CLASSES_FOR_MOST_FOLDS`, where half of all parts will do as well: log losses are .003 to .007
higher, and the time that of structured matrix scaling."""
MIN_LEFT_OUT_ROWS_VECTOR_SCALING = 700
"""The same of more than `MAX_CLASSES_FOR_FULL` classes, where a temperature is hard to beat:
`MIN_LEFT_OUT_ROWS_MORE_CLASSES` rows gave weights that were up to .015 behind it (simulated logits
of 200 and 1000 classes)."""
MAX_CELLS_FOR_PROMISE = 20_000
"""Probabilities left out from which the promise takes its shape."""
TOL = 1e-7
MAX_WEIGHT_SHARE_PER_STEP = 0.95
"""Part of a weight that one step may take away."""
IDENTITY_MEMBER = 0  # places among the members
TEMPERATURE_MEMBER = 1
PSEUDO_COUNT_SIMPLE = 0.5  # identity and temperature: cannot overfit
PSEUDO_COUNT_RICH = 0.1  # members with many parameters
GAIN_SHRINKAGE_SE = 1.0 / 3.0
"""Standard errors that the gain is held against, of many errors."""
GAIN_SHRINKAGE_SE_FEW_ERRORS = 4.0
"""The same, times the root of the errors left out: 1 standard error of 16 errors and fewer, 1/3
from 144 on. A hundred rows seldom hold one of the sure predictions that fail, so that gain and
standard error are both too good. With 1/3 throughout, recalibrations of 100 rows did harm in 4.3 %
of 788 cases of the quality benchmark; with this in 3.0 %, for .0019 of log loss. 8 over the root of
the rows left out did as much harm and cost .0021, .0117 of it above 50 classes. With 1,000 and
3,000 rows nothing changes (mean below .0001)."""
COPIES_KEPT_TOGETHER_LEVEL = 0.5
"""Chance of so few different labels among equal rows, below which these are left out together. A
hint asks for 1e-6, which sure rows cannot show; here to part copies costs more than to keep others
together. 200 rows of 57 sets, drawn 800 times: harm in 44 % of cases if copies are parted, 19 % at
1e-6, 9 % at 0.1, 5 % at 0.5 and without copies. Of 225 tables of votes, leaves and rounded rows 0
to 7 % are taken for copies, and lose .0007 at most; of 95 cases of 3 to 20 classes two lost .006
and .009, and the mean .0001."""


def fit_pool_weights(logs: Floats, prior: Floats, weight: Floats | None = None) -> Floats:
    """Return w, shape (K,), or (S, K) for S weightings v, from ``log P_ik`` and ``a_k``."""
    v = np.ones(len(logs)) if weight is None else weight
    w: Floats = np.broadcast_to(prior / prior.sum(), (*v.shape[:-1], len(prior)))
    if len(logs) > 0 and len(prior) > 1:
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
        sums = _Barrier(likelihoods, prior, np.atleast_2d(v))
        found = minimize(sums, w.ravel(), tol=TOL, solve=sums.direction).x
        w = found.reshape(w.shape)
        w /= w.sum(axis=-1, keepdims=True)
    return w


def pooled_log_likelihood(logs: Floats, weights: Floats) -> Floats:
    """Return ``log sum_k w_k P_ik``, shape (n,), with weights of shape (K,) or (n, K)."""
    top = logs.max(axis=1)
    shares = np.exp(logs - top[:, None])
    return np.log((shares * weights).sum(axis=1)) + top


class _Barrier:
    """``w -> Derivatives`` of the form without a constraint, summed over S weightings v, shape (S,
    n).

    w holds theirs one after the other; the Hessian is one block for each, shape (S, K, K).
    """

    def __init__(self, likelihoods: Floats, prior: Floats, weight: Floats) -> None:
        self.likelihoods, self.prior, self.weight = likelihoods, prior, weight
        self.total = weight.sum(axis=1, keepdims=True) + prior.sum()

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian."""
        self.w = w = x.reshape(len(self.weight), -1)
        mixed = w @ self.likelihoods.T
        ratio, pull = self.weight / mixed, self.prior / w
        value = (self.total * w).sum() - (np.log(w) @ self.prior).sum()
        value -= np.vdot(self.weight, np.log(mixed))
        gradient = self.total - ratio @ self.likelihoods - pull
        hessian = np.array([(self.likelihoods.T * r) @ self.likelihoods for r in ratio / mixed])
        np.einsum("sjj->sj", hessian)[:] += pull / w
        return Derivatives(float(value), gradient.ravel(), hessian)

    def direction(self, terms: Derivatives) -> Floats:
        """Return the Newton directions, found in units of the weights, which stay positive."""
        curved = terms.hessian * (self.w[:, :, None] * self.w[:, None])
        slopes = self.w * terms.gradient.reshape(self.w.shape)
        shares = np.linalg.solve(curved, slopes[..., None])[..., 0]
        shares /= np.maximum(1.0, shares.max(axis=1, keepdims=True) / MAX_WEIGHT_SHARE_PER_STEP)
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
        When it is not positive the identity has weight 1, and it tells what a recalibration would
        do.
    log_evidence : float
        ``log E`` against calibration; 0 where there is none.
    promise, promise_se : float
        The gain without what choosing by it adds, and its standard error.
    n_copies : int
        Rows learned from that repeat another one, and were left out together with it.
    correction : Correction or None
        Trees on the pool (`flexible`), where they were asked for.
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
    n_copies: int = 0
    correction: Correction | None = None

    @property
    def pvalue(self) -> float:
        """``min(1, 1 / E)``, a p-value of calibration."""
        return float(np.exp(-max(0.0, self.log_evidence)))

    def pool(self, scores: Floats, probs: Floats, at_once: int = MAX_PROBS_AT_ONCE) -> Floats:
        """Return the pooled probabilities, shape (n, c), of transposed scores and their rows."""
        pooled = self.weights["identity"] * probs
        size = max(1, at_once // probs.shape[1])
        for start in range(0, len(probs), size):
            part = slice(start, start + size)
            for name, answer in self.members.probabilities(scores[:, part]).items():
                answer *= self.weights[name]
                pooled[part] += answer.T
        pooled /= pooled.sum(axis=1, keepdims=True)
        return pooled if self.correction is None else self.correction.applied(scores, pooled)

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
        known = content.get("correction")
        correction = None if known is None else Correction.from_dict(known)
        n_copies = int(content.get("n_copies", 0))
        return cls(members, weights, **numbers, n_copies=n_copies, correction=correction)


class CrossFit(NamedTuple):
    """Members fitted without each fold, and what pools of them gain on the rows left out.

    Attributes
    ----------
    folds : Folds
        The parts of rows that were left out.
    groups : ndarray or None
        The group of each part; None where rows are independent.
    n_copies : int
        Rows that repeat another one.
    log_likelihoods : ndarray of shape (n_parts, n_members)
        Of each part's label, by members fitted without its fold.
    left_out_probs : ndarray of shape (n_members, n_classes, m)
        What these members make of every `every`-th part.
    every : int
        See `left_out_probs`.
    fold_of_part : ndarray
        The row of `fold_weights` that has not seen the part.
    fold_weights : ndarray of shape (n_folds, n_members)
        Weights in the pool from all folds but one, after `shrinkage`.
    final_weights : ndarray of shape (n_members,)
        Weights from all folds, after `shrinkage`.
    shrinkage : float
        `gain_shrinkage`; where it is 0 the weights are as if it were 1.
    gain_per_part : ndarray
        By how much the pool that has not seen a part raises its log likelihood.
    gain, gain_se : float
        The mean of these, and its standard error.
    """

    folds: Folds
    groups: Rows | None
    n_copies: int
    log_likelihoods: Floats
    left_out_probs: Floats
    every: int
    fold_of_part: Rows
    fold_weights: Floats
    final_weights: Floats
    shrinkage: float
    gain_per_part: Floats
    gain: float
    gain_se: float

    def pool_left_out(self) -> tuple[Floats, Floats]:
        """Return raw and pooled probabilities of every `every`-th part, shape (m, c)."""
        weights = self.fold_weights[self.fold_of_part][:: self.every]
        raw = self.left_out_probs[IDENTITY_MEMBER].T
        return raw, np.einsum("kji,ik->ij", self.left_out_probs, weights)


class FittedMembers(NamedTuple):
    """Members fitted to all rows, and the rows that must be left out together.

    Attributes
    ----------
    fit : MembersFit
        The members, with the weights of the rows.
    groups : ndarray of shape (n_samples,) or None
        The group of each row: groups of `Predictions`, else rows that are copies of each other.
    n_copies : int
        Rows that repeat another one.
    """

    fit: MembersFit
    groups: Rows | None
    n_copies: int


def fit_members(predictions: Predictions) -> FittedMembers:
    """Fit the members to all rows, where copies of rows count as what they tell together.

    A fit that has seen the copy of a row knows the row's label, so that copies are left out
    together. And 800 rows drawn from 200 with replacement hold less than these 200, so that ridges
    and pseudo-counts must not be held against 800: weights are divided by the design effect.
    """
    scores, codes = transposed_scores(predictions), predictions.codes
    fit = MembersFit(scores, codes, predictions.sample_weight)
    if predictions.groups is not None:
        return FittedMembers(fit, predictions.groups, 0)
    groups, n_copies = group_copies(predictions, fit)
    if groups is None:
        return FittedMembers(fit, None, 0)
    weight = predictions.row_weight / design_effect(predictions.row_weight, groups)
    return FittedMembers(MembersFit(scores, codes, weight), groups, n_copies)


def design_effect(weight: Floats, groups: Rows) -> float:
    """Return by how much equal rows within groups raise the variance of a weighted mean.

    That is ``sum_g (sum_{i in g} w_i)^2 / sum_i w_i^2``, Kish's design effect: r where every row is
    there r times, 1 where each is a group of its own.
    """
    group_weight = np.bincount(groups, weights=weight)
    return float(np.vdot(group_weight, group_weight) / np.vdot(weight, weight))


def cross_fit(
    predictions: Predictions, members: FittedMembers, enough: int | None
) -> CrossFit | None:
    """Fit members and weights without each fold, and see what they gain on it.

    Parameters
    ----------
    predictions : Predictions
        The rows.
    members : FittedMembers
        The members, fitted to all rows: where fits to parts of them begin.
    enough : int or None
        Folds are left out until they hold so many parts of rows; None chooses by the number of
        classes.

    Returns
    -------
    CrossFit or None
        None where nothing can be left out.
    """
    fit, groups, n_copies = members
    scores = fit.rows.scores
    n_classes = len(scores)
    n_members = len(fit.whole.names)
    folds = assign_folds(scores, fit.rows.weight, groups)
    if folds.n_folds == 0:
        return None
    if enough is None:
        enough = _min_left_out_parts(n_classes, len(folds.rows))
    folds = folds.take_first(enough)

    # Of weights that are no counts each row is a unit of its own, whatever its weight.
    are_counts = predictions.weight_kind == "frequency" and predictions.has_whole_weights
    if groups is None and not are_counts:
        groups = np.arange(predictions.n_samples)
    score_of_label = np.take_along_axis(scores, fit.rows.codes[None], axis=0)[0]
    is_error = (score_of_label < scores.max(axis=0))[folds.rows]
    if groups is None:
        n_errors = float(folds.weight[is_error].sum())
    else:
        groups = groups[folds.rows]
        n_errors = float(len(np.unique(groups[is_error])))

    every = thinning_stride(len(folds.rows), n_classes, MAX_CELLS_FOR_PROMISE)
    log_likelihoods, left_out_probs = predict_left_out(fit, folds, every)

    # Each fold is judged with weights from the other folds: weights judged on the rows that they
    # were estimated from promise too much. The last row of `weights` uses all folds.
    is_simple = np.arange(n_members) <= TEMPERATURE_MEMBER
    prior = np.where(is_simple, PSEUDO_COUNT_SIMPLE, PSEUDO_COUNT_RICH)
    fold_of_part = folds.cross_fitting_folds()
    n_cross_fits = int(fold_of_part.max()) + 1
    is_used = fold_of_part != np.arange(n_cross_fits + 1)[:, None]
    weights = fit_pool_weights(log_likelihoods, prior, folds.weight * is_used)

    if n_classes > MAX_CLASSES_FOR_FULL:
        # What the identity and thousands of parameters seem to add to a temperature is mostly
        # chance there: without this pools of 300 rows were .002 to .004 behind it.
        pooled = pooled_log_likelihood(log_likelihoods, weights[fold_of_part])
        added_gain = pooled - log_likelihoods[:, TEMPERATURE_MEMBER]
        mean_and_se = weighted_mean_and_se(added_gain, folds.weight, groups)
        shrinkage = gain_shrinkage(*mean_and_se, n_errors)
        weights = _shrink_towards(weights, TEMPERATURE_MEMBER, shrinkage)

    raw = log_likelihoods[:, IDENTITY_MEMBER]
    gain_per_part = pooled_log_likelihood(log_likelihoods, weights[fold_of_part]) - raw
    gain, gain_se = weighted_mean_and_se(gain_per_part, folds.weight, groups)

    # Shrink towards doing nothing: a gain of the size of its standard error is mostly chance. The
    # gain reported is that of the shrunken weights.
    shrinkage = gain_shrinkage(gain, gain_se, n_errors)
    if shrinkage > 0.0:
        weights = _shrink_towards(weights, IDENTITY_MEMBER, shrinkage)
        gain_per_part = pooled_log_likelihood(log_likelihoods, weights[fold_of_part]) - raw
        gain, gain_se = weighted_mean_and_se(gain_per_part, folds.weight, groups)

    return CrossFit(
        folds=folds,
        groups=groups,
        n_copies=n_copies,
        log_likelihoods=log_likelihoods,
        left_out_probs=left_out_probs,
        every=every,
        fold_of_part=fold_of_part,
        fold_weights=weights[:-1],
        final_weights=weights[-1],
        shrinkage=shrinkage,
        gain_per_part=gain_per_part,
        gain=gain,
        gain_se=gain_se,
    )


def _min_left_out_parts(n_classes: int, n_parts: int) -> int:
    """Return how many of `n_parts` are left out, at least, for so many classes."""
    if n_classes > MAX_CLASSES_FOR_FULL:
        return MIN_LEFT_OUT_ROWS_VECTOR_SCALING
    if n_classes > MAX_CLASSES_FOR_MOST_FOLDS:
        return min(MIN_LEFT_OUT_ROWS_MORE_CLASSES, n_parts // 2)
    if n_classes > MAX_CLASSES_FOR_ALL_FOLDS:
        return MIN_LEFT_OUT_ROWS_MANY_CLASSES
    return MIN_LEFT_OUT_ROWS


def _shrink_towards(weights: Floats, member: int, shrinkage: float) -> Floats:
    """Return `shrinkage` times the weights, and the rest given to one member."""
    shrunken = shrinkage * weights
    shrunken[..., member] += 1.0 - shrinkage
    return shrunken


def group_copies(predictions: Predictions, fit: MembersFit) -> tuple[Rows | None, int]:
    """Return groups of rows that are copies of each other, and how many repeat another one."""

    def recalibrated(rows: Predictions) -> Floats:
        # the first member that knows single classes, as MCLLO does in the data_checks
        return fit.whole.answers(transposed_scores(rows))[2].T

    copies = find_copies(predictions, recalibrated, COPIES_KEPT_TOGETHER_LEVEL)
    if copies is None:
        return None, 0
    return copies.group_rows(predictions.n_samples // N_FOLDS), copies.n_copies


def fit_stack(predictions: Predictions, enough: int | None = None) -> Stack:
    """Fit the members, leave out folds until `enough` rows were left out, weigh the members."""
    return fit_left_out(predictions, enough)[0]


@show_progress("stacking")
@one_blas_thread()
def fit_left_out(
    predictions: Predictions, enough: int | None = None
) -> tuple[Stack, MembersFit, CrossFit | None]:
    """Return the pool, the fits of its members, and what was left out; None where nothing was."""
    scores, codes = transposed_scores(predictions), predictions.codes
    members = fit_members(predictions)
    fit = members.fit
    names = fit.whole.names
    crossed = cross_fit(predictions, members, enough)
    if crossed is None:
        # Nothing can be left out, so that no gain can be seen: the identity has all weight.
        rows = np.flatnonzero(predictions.row_weight > 0.0)
        log_likelihoods = label_log_likelihoods(fit.whole.answers(scores), codes)
        raw_loss = float(-log_likelihoods[rows, IDENTITY_MEMBER].mean())
        weights = dict.fromkeys(names, 0.0) | {"identity": 1.0}
        return Stack(fit.whole, weights, raw_loss, raw_loss, 0.0, np.inf), fit, None

    folds = crossed.folds
    if crossed.shrinkage > 0.0:
        # The gain is the reason why the recalibration is made, which flatters it.
        raw, pooled = crossed.pool_left_out()
        corrected_gain, corrected_gain_se = promise(
            crossed.gain_per_part, raw, pooled, folds.weight, crossed.groups, crossed.every
        )
        final_weights = crossed.final_weights
    else:
        corrected_gain, corrected_gain_se = crossed.gain, crossed.gain_se
        final_weights = np.eye(len(names))[IDENTITY_MEMBER]

    # The evidence is a likelihood ratio of independent rows; of others it has no meaning.
    log_evidence = 0.0
    if crossed.groups is None:
        log_evidence = _log_evidence(crossed.log_likelihoods, folds)
    raw_log_likelihoods = crossed.log_likelihoods[:, IDENTITY_MEMBER]
    raw_loss = float(-np.average(raw_log_likelihoods, weights=folds.weight))
    stack = Stack(
        members=fit.whole,
        weights=dict(zip(names, final_weights.tolist(), strict=True)),
        loss=raw_loss - crossed.gain,
        raw_loss=raw_loss,
        gain=crossed.gain,
        gain_se=crossed.gain_se,
        log_evidence=log_evidence,
        promise=corrected_gain,
        promise_se=corrected_gain_se,
        n_copies=crossed.n_copies,
    )
    return stack, fit, crossed


def gain_shrinkage(gain: float, gain_se: float, n_errors: float) -> float:
    """Return the part of a recalibration that is made, from 0 (none) to 1 (all of it).

    ``gain^2 / (gain^2 + (k gain_se)^2)``, k from `GAIN_SHRINKAGE_SE` and
    `GAIN_SHRINKAGE_SE_FEW_ERRORS`.

    Parameters
    ----------
    gain, gain_se : float
        By how much the recalibration lowers the log loss of rows left out, and the standard error
        of that.
    n_errors : float
        How many rows, or groups of rows, were left out whose most probable class is wrong.
    """
    if not gain > 0.0:
        return 0.0
    few_errors = GAIN_SHRINKAGE_SE_FEW_ERRORS / np.sqrt(max(n_errors, 1.0))
    standard_errors = min(1.0, max(GAIN_SHRINKAGE_SE, few_errors))
    return float(gain**2 / (gain**2 + (standard_errors * gain_se) ** 2))


def predict_left_out(fit: MembersFit, folds: Folds, every: int) -> tuple[Floats, Floats]:
    """Fit the members without each fold and predict the parts of that fold.

    Returns
    -------
    log_likelihoods : ndarray of shape (n_parts, n_members)
        Of the label of each part.
    probs : ndarray of shape (n_members, n_classes, m)
        Of the parts 0, `every`, ...
    """
    rows = fit.rows
    n_members, n_parts = len(fit.whole.names), len(folds.rows)
    weights_left = [
        rows.unit - folds.left_out_weight(k, len(rows.unit)) for k in range(folds.n_folds)
    ]
    log_likelihoods = np.empty((n_parts, n_members))
    probs = np.empty((n_members, len(rows.scores), -(-n_parts // every)))
    for fold, members in enumerate(fit.parts(weights_left)):
        parts = np.flatnonzero(folds.folds == fold)
        answers = members.answers(rows.scores.take(folds.rows[parts], axis=1))
        log_likelihoods[parts] = label_log_likelihoods(answers, rows.codes[folds.rows[parts]])
        is_kept = parts % every == 0
        for member_probs, answer in zip(probs, answers, strict=True):
            member_probs[:, parts[is_kept] // every] = answer[:, is_kept]
    return log_likelihoods, probs


def weighted_mean_and_se(
    values: Floats, weight: Floats, groups: Rows | None
) -> tuple[float, float]:
    """Return the weighted mean of values and its standard error, over groups where there are."""
    mean = float(np.average(values, weights=weight))
    return mean, error_of_mean(values - mean, weight, groups)[0]


def _log_evidence(logs: Floats, folds: Folds) -> float:
    """Return log E of the module's table, from log likelihoods of labels, shape (n_parts, K)."""
    ratios = folds.weight[:, None] * (logs[:, 1:] - logs[:, :1])
    sums = [ratios[folds.folds == fold].sum(axis=0) for fold in range(folds.n_folds)]
    return float(np.logaddexp.reduce(sums, axis=None) - np.log(np.size(sums)))
