"""Stacking: how the weights of the members of `AutoCalibrator` are chosen.

1.  Every member k (`members`) is fitted to all rows, and once more without each of five folds
    (`folds`). The members are always the identity and a temperature with a lapse rate, and

    ==================  ==========================================================================
    2 classes           spline, and Venn-Abers of 200 rows and more
    3 to 12 classes     mcllo (mean over all baselines), similar, full_tight, full_loose
    13 to 20 classes    similar, full_tight, full_loose
    21 to 100 classes   similar, full
    above 100 classes   vector
    ==================  ==========================================================================

    Fits without a fold give ``L_ik``, the log probability of row i's label by member k fitted
    without i. Of many rows or classes fewer folds are left out, in the end one: the others would
    tell little more.

2.  The weights w of the linear pool ``p_i = sum_k w_k exp(L_ik)`` maximise the likelihood of these
    left-out labels, ``sum_i v_i log p_i + sum_k a_k log w_k`` on the simplex: stacking of
    predictive distributions [1]_ [2]_ [3]_. v are the rows' weights. a are pseudo-counts, 1/2 for
    identity and temperature and 1/10 for members that can overfit: a Dirichlet prior with
    parameters ``1 + a_k``, so that no member is left without any weight.

3.  Does the pool pay? The weights are estimated again without each fold (without each half, where
    one fold was left out), and the *gain* of row i is ``log p_i - L_i,identity`` with the weights
    that were estimated without its fold. Its mean over rows is G, the standard error of that mean s
    (over groups, where rows are grouped).

    This is not a nested cross-validation. The weights that judge fold i come from the ``L_jk`` of
    the rows j of other folds, and these are by members fitted without fold j, but *with* the rows
    of fold i. So fold i is not wholly new to the weights that judge it. A handful of weights makes
    little of that, where trees on the pool would (`flexible`).

4.  The weights from all folds are shrunk towards doing nothing: weights times
    ``t = G^2 / (G^2 + (k s)^2)``, and the rest, ``1 - t``, to the identity. ``k = 4 / sqrt(m)``, at
    least 1/3 and at most 1, m the rows (or groups) left out whose most probable class is wrong.
    With k = 1/3 (144 errors and more) a gain of one standard error keeps t = 0.9; with k = 1 (16
    errors and fewer) t = 0.5. t has the form of an empirical Bayes shrinkage, ``signal / (signal +
    noise)``, but no reference: k was tuned on the sets of the quality benchmark
    (`docs/explanation/auto.md`). For t > 0, G and s are computed anew, for the shrunken weights.

    The identity has weight 1 where G <= 0 (a recalibration that does not pay on rows it has not
    seen is not made), and where s is infinite: one row, or group, was left out.

    Above 100 classes the weights are shrunk in the same way towards the temperature alone first, by
    what they gain on it.

5.  The answer is the pool of the members *fitted to all rows*. What it promises for new rows is G
    less its optimism (`optimism`): it is used because G is positive, which flatters G. Where the
    identity has weight 1 for G <= 0, G itself is reported: what a recalibration would do. Where it
    has for an infinite s, no more than 0 is promised.

With fewer than two rows (or groups) nothing can be left out, and the identity has weight 1.

Evidence against calibration, a by-product: ``E = mean over folds and members of exp(sum_i v_i
(L_ik - L_i,identity))``, the sum over the fold's rows, the members all but the identity. Were the
predictions calibrated, each term would have mean 1, given the rows its members were fitted to: a
ratio of probabilities of labels that the denominator draws. So E has mean 1 and
``P(E >= 1 / p) <= p`` at any number of rows (a split likelihood ratio [4]_). That asks that fits to
parts know nothing of the labels left out. Curves and 'full' do not: they begin anew. The other
members begin at the fit to all rows, but go on until next to nothing of it is left: by estimate
less than 0.1 in log E (`calibrators/_auto/members.LEFT_OUT_TRACE_TOL`), measured 0.024 at most.
Rows that depend on each other (groups, and copies that were detected) and weights that are no
counts have no such guarantee and no E: log E is 0.

References
----------
.. [1] Wolpert (1992), Stacked generalization. Neural Networks 5, 241-259.
.. [2] Smyth, Wolpert (1999), Linearly combining density estimators via stacking. Machine Learning
       36, 59-83.
.. [3] Yao, Vehtari, Simpson, Gelman (2018), Using stacking to average Bayesian predictive
       distributions. Bayesian Analysis 13, 917-1007.
.. [4] Wasserman, Ramdas, Balakrishnan (2020), Universal inference. PNAS 117, 16880-16890.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._diagnostics.duplicate_rows import find_copies
from ..._fit.linear_fit import transposed_scores
from ..._inference.paired_loss import thinning_stride
from ..._model.kernel import Derivatives
from ..._model.newton import minimize
from ..._utils.notebook import show_progress
from ..._utils.parallel import one_blas_thread
from ..._utils.results import Codes, Floats, Result
from ..._validation.predictions import Predictions
from ...metrics._scores import standard_error_of_mean
from .boosted import Correction
from .folds import N_FOLDS, Folds, assign_folds
from .members import MAX_CLASSES_FOR_FULL, Members, MembersFit, label_log_likelihoods
from .optimism import correct_optimism
from .temperature_with_lapse import values_of_labels

IDENTITY = 0  # places of two members among all
TEMPERATURE = 1

PSEUDO_COUNT_SIMPLE = 0.5  # rows; identity and temperature, with two parameters at most
PSEUDO_COUNT_RICH = 0.1  # rows; members with many parameters. Both are round numbers

GAIN_SHRINKAGE_SE = 1.0 / 3.0
"""k of the module's text where many rows left out are errors: standard errors that a gain is held
against. Tuned on the sets of the quality benchmark (`docs/explanation/auto.md`); no reference."""
GAIN_SHRINKAGE_SE_FEW_ERRORS = 4.0
"""The same, times the root of the errors left out: 1 standard error of 16 errors and fewer, 1/3
from 144 on. A hundred rows seldom hold one of the sure predictions that fail, so that gain and
standard error are both too good. With 1/3 throughout, recalibrations of 100 rows did harm in 4.3 %
of 788 cases of the quality benchmark; with this in 3.0 %, for .0019 of log loss. 8 over the root of
the rows left out did as much harm and cost .0021 on average (.0117 above 50 classes). With 1,000
and 3,000 rows nothing changes (mean below .0001)."""

COPIES_KEPT_TOGETHER_LEVEL = 0.5
"""Chance of so few different labels among equal rows, below which these are left out together. A
data check asks for 1e-6, which sure rows cannot show; here to part copies costs more than to keep
others together. 800 rows drawn with replacement from 200, of 57 sets: harm in 44 % of cases if
copies are parted, 19 % at 1e-6, 9 % at 0.1, 5 % at 0.5 and without copies. Of 225 tables of
votes, leaves and rounded rows 0 to 7 % are taken for copies, and lose .0007 at most; of 95 cases of
3 to 20 classes two lost .006 and .009, and the mean .0001."""

MAX_PROBS_AT_ONCE = 2**20  # probabilities that are pooled at once: bounds the memory


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
    groups: Codes | None
    n_copies: int


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
        What these members make of every `row_step`-th part.
    row_step : int
        See `left_out_probs`.
    fold_of_part : ndarray
        The row of `fold_weights` that was estimated without the part.
    fold_weights : ndarray of shape (n_folds, n_members)
        Weights in the pool from all folds but one, after `shrinkage`, which is one number from all
        parts: the little that this flatters is part of what `optimism` corrects. Of a single fold
        there are two rows, those of its halves.
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
    groups: Codes | None
    n_copies: int
    log_likelihoods: Floats
    left_out_probs: Floats
    row_step: int
    fold_of_part: Codes
    fold_weights: Floats
    final_weights: Floats
    shrinkage: float
    gain_per_part: Floats
    gain: float
    gain_se: float

    def pool_left_out(self) -> tuple[Floats, Floats]:
        """Return raw and pooled probabilities of every `row_step`-th part, shape (m, c)."""
        weights_of_part = self.fold_weights[self.fold_of_part]
        weights_of_shown = weights_of_part[:: self.row_step]
        raw = self.left_out_probs[IDENTITY].T
        pooled = np.einsum("kji,ik->ij", self.left_out_probs, weights_of_shown)
        return raw, pooled


def fit_members(predictions: Predictions) -> FittedMembers:
    """Fit the members to all rows, where copies of rows count as what they tell together.

    A fit that has seen the copy of a row knows the row's label, so that copies are left out
    together. And 800 rows drawn from 200 with replacement hold less than these 200, so that ridges
    and pseudo-counts must not be held against 800: weights are divided by the design effect.
    """
    scores = transposed_scores(predictions)
    fit = MembersFit(scores, predictions.codes, predictions.sample_weight)
    if predictions.groups is not None:
        return FittedMembers(fit, predictions.groups, 0)
    groups, n_copies = group_copies(predictions, fit)
    if groups is None:
        return FittedMembers(fit, None, 0)
    weight = predictions.row_weight / design_effect(predictions.row_weight, groups)
    return FittedMembers(
        MembersFit(scores, predictions.codes, weight), groups, n_copies
    )


def group_copies(predictions: Predictions, fit: MembersFit) -> tuple[Codes | None, int]:
    """Return groups of rows that are copies of each other, and how many repeat another one."""

    def recalibrated(rows: Predictions) -> Floats:
        # The first member that knows single classes, as MCLLO does in the data checks.
        answers = fit.whole.all_probabilities(transposed_scores(rows))
        return answers[2].T

    copies = find_copies(predictions, recalibrated, COPIES_KEPT_TOGETHER_LEVEL)
    if copies is None:
        return None, 0
    rows_of_fold = predictions.n_samples // N_FOLDS
    return copies.number_inseparable_rows(rows_of_fold), copies.n_copies


def design_effect(weight: Floats, groups: Codes) -> float:
    """Return by how much equal rows within groups raise the variance of a weighted mean.

    That is ``sum_g (sum_{i in g} w_i)^2 / sum_i w_i^2``, Kish's design effect: r where every row is
    there r times, 1 where each is a group of its own.
    """
    group_weight = np.bincount(groups, weights=weight)
    squares_of_groups = np.vdot(group_weight, group_weight)
    squares_of_rows = np.vdot(weight, weight)
    return float(squares_of_groups / squares_of_rows)


def cross_fit(
    predictions: Predictions, members: FittedMembers, min_parts: int | None
) -> CrossFit | None:
    """Fit members and weights without each fold, and see what they gain on it.

    Parameters
    ----------
    predictions : Predictions
        The rows.
    members : FittedMembers
        The members, fitted to all rows: where fits to parts of them begin.
    min_parts : int or None
        Folds are left out until they hold so many parts of rows; None chooses by the number of
        classes.

    Returns
    -------
    CrossFit or None
        None where nothing can be left out.
    """
    fit = members.fit
    n_classes = len(fit.rows.scores)
    folds = assign_folds(
        fit.rows.scores,
        fit.rows.weight,
        members.groups,
        weights_are_frequencies=predictions.counts_rows,
    )
    if folds.n_folds == 0:
        return None
    if min_parts is None:
        min_parts = _min_left_out_parts(n_classes, len(folds.rows))
    folds = folds.take_first(min_parts)
    groups = _standard_error_units(predictions, members.groups, folds)
    n_errors = _count_errors(fit, folds, groups)

    row_step = thinning_stride(
        len(folds.rows), n_classes, 20_000
    )  # probabilities, for `optimism`
    log_likelihoods, left_out_probs = predict_left_out(fit, folds, row_step)
    fold_of_part = folds.cross_fitting_folds()
    fold_weights, final_weights = fit_cross_fitted_weights(
        log_likelihoods, fold_of_part, folds
    )

    def gain_over(member: int, fold_weights: Floats) -> tuple[Floats, float, float]:
        """Return by how much each part's own pool beats a member; the mean, and its error."""
        pooled = pooled_log_likelihood(log_likelihoods, fold_weights[fold_of_part])
        gain_per_part = pooled - log_likelihoods[:, member]
        gain, gain_se = weighted_mean_and_se(gain_per_part, folds.weight, groups)
        return gain_per_part, gain, gain_se

    if n_classes > MAX_CLASSES_FOR_FULL:
        # What the identity and thousands of parameters seem to add to a temperature is mostly
        # chance there: without this pools of 300 rows were .002 to .004 behind it.
        _, gain, gain_se = gain_over(TEMPERATURE, fold_weights)
        shrinkage = gain_shrinkage(gain, gain_se, n_errors)
        fold_weights = shrink_towards(TEMPERATURE, fold_weights, shrinkage)
        final_weights = shrink_towards(TEMPERATURE, final_weights, shrinkage)

    # Shrink towards doing nothing: a gain of one standard error keeps 0.5 (16 errors or fewer) to
    # 0.9 (144 or more) of the weights. The gain reported is that of the shrunken weights.
    gain_per_part, gain, gain_se = gain_over(IDENTITY, fold_weights)
    shrinkage = gain_shrinkage(gain, gain_se, n_errors)
    if shrinkage > 0.0:
        fold_weights = shrink_towards(IDENTITY, fold_weights, shrinkage)
        final_weights = shrink_towards(IDENTITY, final_weights, shrinkage)
        gain_per_part, gain, gain_se = gain_over(IDENTITY, fold_weights)

    return CrossFit(
        folds=folds,
        groups=groups,
        n_copies=members.n_copies,
        log_likelihoods=log_likelihoods,
        left_out_probs=left_out_probs,
        row_step=row_step,
        fold_of_part=fold_of_part,
        fold_weights=fold_weights,
        final_weights=final_weights,
        shrinkage=shrinkage,
        gain_per_part=gain_per_part,
        gain=gain,
        gain_se=gain_se,
    )


def _min_left_out_parts(n_classes: int, n_parts: int) -> int:
    """Return how many of `n_parts` are left out, at least: further folds would tell little more.

    A fold costs a fit of all members. With few classes that is cheap, and 4,000 parts are all five
    folds of up to 4,000 rows.
    """
    if n_classes > MAX_CLASSES_FOR_FULL:
        # A temperature is hard to beat here: 120 parts gave weights that were up to .015 behind it
        # (simulated logits of 200 and 1000 classes).
        return 700
    if n_classes > 50:
        # A price paid for time: log losses are .003 to .007 higher than with more parts, but a fit
        # takes no longer than structured matrix scaling.
        return min(120, n_parts // 2)
    if n_classes > 20:  # a fold costs as much as all else
        return 500
    return 4_000


def _standard_error_units(
    predictions: Predictions, groups: Codes | None, folds: Folds
) -> Codes | None:
    """Return the units that a standard error is computed from; None where rows count."""
    if groups is not None:
        return groups[folds.rows]
    if predictions.weight_kind == "frequency" and predictions.has_whole_weights:
        return None
    return (
        folds.rows
    )  # of weights that are no counts each row is a unit, whatever its weight


def _count_errors(fit: MembersFit, folds: Folds, groups: Codes | None) -> float:
    """Return how many left-out rows, or groups with such rows, are not of their likeliest class."""
    scores = fit.rows.scores
    score_of_label = values_of_labels(scores, fit.rows.codes)
    is_row_error = score_of_label < scores.max(axis=0)
    is_error = is_row_error[folds.rows]
    if groups is None:
        return float(folds.weight[is_error].sum())
    return float(len(np.unique(groups[is_error])))


def predict_left_out(
    fit: MembersFit, folds: Folds, row_step: int
) -> tuple[Floats, Floats]:
    """Fit the members without each fold and predict the parts of that fold.

    Returns
    -------
    log_likelihoods : ndarray of shape (n_parts, n_members)
        Of the label of each part.
    probs : ndarray of shape (n_members, n_classes, m)
        Of the parts 0, `row_step`, ...
    """
    rows = fit.rows
    n_members = len(fit.whole.names)
    n_parts = len(folds.rows)
    n_kept = -(-n_parts // row_step)  # rounded up
    log_likelihoods = np.empty((n_parts, n_members))
    probs = np.empty((n_members, len(rows.scores), n_kept))

    members_of_folds = fit.fit_parts(folds.weights_kept(rows.weight_or_ones))
    for fold, members in enumerate(members_of_folds):
        parts = np.flatnonzero(folds.folds == fold)
        own_rows = folds.rows[parts]
        answers = members.all_probabilities(rows.scores.take(own_rows, axis=1))
        log_likelihoods[parts] = label_log_likelihoods(answers, rows.codes[own_rows])
        is_kept = parts % row_step == 0
        for member_probs, answer in zip(probs, answers, strict=True):
            member_probs[:, parts[is_kept] // row_step] = answer[:, is_kept]
    return log_likelihoods, probs


def fit_cross_fitted_weights(
    log_likelihoods: Floats, fold_of_part: Codes, folds: Folds
) -> tuple[Floats, Floats]:
    """Return weights from all folds but one, shape (n_folds, n_members), and from all folds.

    Each fold is judged with weights from the other folds: weights judged on the rows that they were
    estimated from promise too much.
    """
    n_members = log_likelihoods.shape[1]
    pseudo_counts = np.full(n_members, PSEUDO_COUNT_RICH)
    pseudo_counts[[IDENTITY, TEMPERATURE]] = PSEUDO_COUNT_SIMPLE

    # One weighting of the parts without each fold, and a last one, of all of them: no part has the
    # number `n_folds`.
    n_folds = int(fold_of_part.max()) + 1
    is_used = fold_of_part != np.arange(n_folds + 1)[:, None]
    weights = fit_pool_weights(log_likelihoods, pseudo_counts, folds.weight * is_used)
    return weights[:-1], weights[-1]


def fit_pool_weights(
    log_likelihoods: Floats, pseudo_counts: Floats, row_weight: Floats | None = None
) -> Floats:
    """Return the weights of a linear pool of greatest penalised likelihood.

    Parameters
    ----------
    log_likelihoods : ndarray of shape (n_rows, n_members)
        ``L_ik``, log probabilities of the labels.
    pseudo_counts : ndarray of shape (n_members,)
        a, above 0.
    row_weight : ndarray of shape (n_rows,) or (n_fits, n_rows), optional
        v, of one fit or several; by default 1.

    Returns
    -------
    ndarray of shape (n_members,) or (n_fits, n_members)
        w; sums to 1.

    Notes
    -----
    The constraint ``sum_k w_k = 1`` is not needed. With A = sum a and V = sum v,
    ``(V + A) sum_k w_k - sum_i v_i log p_i - sum_k a_k log w_k`` over w > 0 is convex and its
    minimum has sum 1: at a minimum ``sum_k w_k dF / dw_k = (V + A) (sum_k w_k - 1) = 0``.
    """
    n_rows, n_members = log_likelihoods.shape
    v = np.ones(n_rows) if row_weight is None else row_weight
    prior_mode = pseudo_counts / pseudo_counts.sum()  # of a Dirichlet of 1 + a
    weights: Floats = np.broadcast_to(prior_mode, (*v.shape[:-1], n_members))
    if n_rows == 0 or n_members == 1:
        return weights

    # A factor of all likelihoods of a row changes nothing, and exp must not underflow in all.
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    objective = _PoolObjective(likelihoods, pseudo_counts, np.atleast_2d(v))
    solution = minimize(
        objective,
        weights.ravel(),
        tol=1e-7,  # nats; one Newton step from there is exact to all digits that matter
        find_direction=objective.newton_direction,
    )
    weights = solution.x.reshape(weights.shape)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


class _PoolObjective:
    """``w -> Derivatives`` of the form without a constraint, summed over S row weightings (S, n).

    They share every product with the likelihoods. w is flat, that of one weighting after the other;
    the Hessian is one block for each, shape (S, K, K).
    """

    def __init__(
        self, likelihoods: Floats, pseudo_counts: Floats, row_weight: Floats
    ) -> None:
        self.likelihoods = likelihoods
        self.pseudo_counts = pseudo_counts
        self.row_weight = row_weight
        self.total = row_weight.sum(axis=1, keepdims=True) + pseudo_counts.sum()
        self.weights = np.empty(
            (len(row_weight), len(pseudo_counts))
        )  # of the last evaluation

    def __call__(self, x: Floats) -> Derivatives:
        """Return value, gradient and Hessian."""
        w = x.reshape(self.weights.shape)
        self.weights = w
        mixture = w @ self.likelihoods.T
        value = (self.total * w).sum()
        value -= (np.log(w) @ self.pseudo_counts).sum()
        value -= np.vdot(self.row_weight, np.log(mixture))

        ratio = self.row_weight / mixture
        pull = self.pseudo_counts / w
        gradient = self.total - ratio @ self.likelihoods - pull

        hessian = np.empty((*w.shape, w.shape[1]))
        for block, curvature in zip(hessian, ratio / mixture, strict=True):
            block[:] = (self.likelihoods.T * curvature) @ self.likelihoods
        np.einsum("sjj->sj", hessian)[:] += pull / w  # on the diagonals
        return Derivatives(float(value), gradient.ravel(), hessian)

    def newton_direction(self, terms: Derivatives) -> Floats:
        """Return the Newton directions at the point evaluated last, short enough to keep w > 0."""
        w = self.weights
        # In units of the weights themselves, ``w_k = w_k(old) (1 - s_k)``: weights of 1e-9 and of
        # 0.9 are then equally well scaled, and s < 1 is all that positive weights ask for.
        scaled_hessian = terms.hessian * (w[:, :, None] * w[:, None])
        scaled_gradient = w * terms.gradient.reshape(w.shape)
        share = np.linalg.solve(scaled_hessian, scaled_gradient[..., None])[..., 0]
        largest_share = share.max(axis=1, keepdims=True)
        share /= np.maximum(
            1.0, largest_share / 0.95
        )  # at most 95 % of a weight in one step
        return np.asarray(-w * share, np.float64).ravel()


def pooled_log_likelihood(log_likelihoods: Floats, weights: Floats) -> Floats:
    """Return ``log sum_k w_k exp(L_ik)``, shape (n,), with weights of shape (K,) or (n, K)."""
    largest = log_likelihoods.max(axis=1)
    relative = np.exp(log_likelihoods - largest[:, None])
    return np.log((relative * weights).sum(axis=1)) + largest


def weighted_mean_and_se(
    values: Floats, weight: Floats, groups: Codes | None
) -> tuple[float, float]:
    """Return the weighted mean of values and its standard error, over groups where there are."""
    mean = float(np.average(values, weights=weight))
    return mean, standard_error_of_mean(values - mean, weight, groups)[0]


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
    k = GAIN_SHRINKAGE_SE_FEW_ERRORS / np.sqrt(max(n_errors, 1.0))
    k = min(max(k, GAIN_SHRINKAGE_SE), 1.0)
    signal = gain**2
    noise = (k * gain_se) ** 2
    return float(signal / (signal + noise))


def shrink_towards(member: int, weights: Floats, shrinkage: float) -> Floats:
    """Return `shrinkage` times the weights, and the rest given to one member."""
    shrunken = shrinkage * weights
    shrunken[..., member] += 1.0 - shrinkage
    return shrunken


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
        When the gain is not positive, or its standard error is infinite, the identity has weight 1,
        and the gain is that of the recalibration that is not made.
    log_evidence : float
        ``log E`` against calibration; 0 where there is none.
    promise, promise_se : float
        The gain less its optimism, and the standard error of that (`optimism`). Where the identity
        has weight 1 nothing is taken off, and the promise is at most 0.
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

    def pool(
        self, scores: Floats, probs: Floats, at_once: int = MAX_PROBS_AT_ONCE
    ) -> Floats:
        """Return the pooled probabilities, shape (n, c), of transposed scores and their rows."""
        pooled = self.weights["identity"] * probs
        n_rows = max(1, at_once // probs.shape[1])
        for start in range(0, len(probs), n_rows):
            part = slice(start, start + n_rows)
            for name, answer in self.members.probabilities(scores[:, part]).items():
                answer *= self.weights[name]
                pooled[part] += answer.T
        pooled /= pooled.sum(axis=1, keepdims=True)
        if self.correction is None:
            return pooled
        return self.correction.apply_to_pool(scores, pooled)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Stack:
        """Return the pool that `to_dict` described.

        Files of earlier versions lack some numbers: there the gain stands for what it promises.
        JSON has no infinity: it is written as null.
        """
        members = Members.from_dict(content["members"])
        weights = {name: float(weight) for name, weight in content["weights"].items()}
        if set(weights) != set(members.names):
            raise ValueError("weights of other members than those that are there")
        gain_se = content["gain_se"]
        promise_se = content.get("promise_se", gain_se)
        correction = content.get("correction")
        return cls(
            members=members,
            weights=weights,
            loss=float(content["loss"]),
            raw_loss=float(content["raw_loss"]),
            gain=float(content["gain"]),
            gain_se=np.inf if gain_se is None else float(gain_se),
            log_evidence=float(content["log_evidence"]),
            promise=float(content.get("promise", content["gain"])),
            promise_se=np.inf if promise_se is None else float(promise_se),
            n_copies=int(content.get("n_copies", 0)),
            correction=None if correction is None else Correction.from_dict(correction),
        )


def fit_stack(predictions: Predictions, min_parts: int | None = None) -> Stack:
    """Fit the members to all rows and weigh them by what they do for rows left out."""
    return fit_left_out(predictions, min_parts)[0]


@show_progress("stacking")
@one_blas_thread()
def fit_left_out(
    predictions: Predictions, min_parts: int | None = None
) -> tuple[Stack, MembersFit, CrossFit | None]:
    """Return the pool, the fits of its members, and what was left out; None where nothing was."""
    members = fit_members(predictions)
    fit = members.fit
    crossed = cross_fit(predictions, members, min_parts)
    if crossed is None:
        return _identity_stack(predictions, fit), fit, None

    folds = crossed.folds
    if crossed.shrinkage > 0.0:
        # The gain is the reason why the recalibration is made, which flatters it.
        raw, pooled = crossed.pool_left_out()
        corrected_gain, corrected_gain_se = correct_optimism(
            crossed.gain_per_part,
            raw,
            pooled,
            folds.weight,
            crossed.groups,
            crossed.row_step,
        )
        final_weights = crossed.final_weights
    else:
        # Of one row left out the gain has no standard error. It may be large, and doing nothing
        # must not promise it.
        corrected_gain = min(crossed.gain, 0.0)
        corrected_gain_se = crossed.gain_se
        final_weights = np.eye(len(fit.whole.names))[IDENTITY]

    # The evidence is a likelihood ratio of independent rows; of others it has no meaning.
    log_evidence = 0.0
    if crossed.groups is None:
        log_evidence = _log_evidence(crossed.log_likelihoods, folds)
    raw_log_likelihoods = crossed.log_likelihoods[:, IDENTITY]
    raw_loss = float(-np.average(raw_log_likelihoods, weights=folds.weight))
    stack = Stack(
        members=fit.whole,
        weights=dict(zip(fit.whole.names, final_weights.tolist(), strict=True)),
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


def _identity_stack(predictions: Predictions, fit: MembersFit) -> Stack:
    """Return the pool of which nothing can be left out, so that no gain can be seen."""
    rows = np.flatnonzero(predictions.row_weight > 0.0)
    answers = fit.whole.all_probabilities(transposed_scores(predictions))
    log_likelihoods = label_log_likelihoods(answers, predictions.codes)
    raw_loss = -float(
        np.average(
            log_likelihoods[rows, IDENTITY], weights=predictions.row_weight[rows]
        )
    )
    weights = dict.fromkeys(fit.whole.names, 0.0)
    weights["identity"] = 1.0
    return Stack(fit.whole, weights, raw_loss, raw_loss, gain=0.0, gain_se=np.inf)


def _log_evidence(log_likelihoods: Floats, folds: Folds) -> float:
    """Return log E of the module's text, from log likelihoods of shape (n_parts, n_members)."""
    over_identity = log_likelihoods[:, IDENTITY + 1 :] - log_likelihoods[:, [IDENTITY]]
    weighted = folds.weight[:, None] * over_identity
    log_ratios = np.empty((folds.n_folds, weighted.shape[1]))
    for fold, log_ratio in enumerate(log_ratios):
        log_ratio[:] = weighted[folds.folds == fold].sum(axis=0)
    log_sum = np.logaddexp.reduce(log_ratios, axis=None)
    return float(log_sum - np.log(log_ratios.size))
