"""`AutoCalibrator(flexible=True)`: trees on the pool, as far as cross-validation trusts them.

====================  ==========================================================================
fits                  one without each fold that was left out, and one of all rows: members, their
                      pool q_k by the final weights, and trees grown on the rows that the members
                      were fitted to, from the offset ``log q_k``
gain of a part        ``log b_k - log q_k`` at the label of a row of fold k, after 0, 8, 16, ...
                      rounds
rounds                the number with the largest mean gain; for the gain by which trees are
                      trusted, the number that the *other* folds choose
trust                 t as for the pool (`stacking`): ``G^2 / (G^2 + (s / 3)^2)`` for G > 0, else 0
answer                ``(1 - t) q + t b``
====================  ==========================================================================

What is judged is the whole of what is fitted [1]_: members and trees know nothing of the fold. The
usual way of stacking, to grow trees on predictions of members that did not see the row, goes wrong
here. Those predictions were made with the labels of fold k, and err in the direction opposite to
them: where a fold has more of a class, members of the other folds give it less. Trees learn that
error, and fold k shows a loss. On naive Bayes for digits (1,000 rows to learn) the same trees then
seemed to gain nothing and were not used, where they gain .033; on a simulated problem of four
classes, nothing instead of .0095. The members' own overfit is no danger: trees grown on rows that
the members have fitted too well show it on fold k.

References
----------
.. [1] van der Laan, Polley, Hubbard (2007), Super learner. Statistical Applications in Genetics and
       Molecular Biology 6, 25: choosing by rows left out of the whole procedure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._fit.linear_fit import transposed_scores
from ..._model.kernel import softmax_in_place
from ..._utils.formatting import format_count
from ..._utils.linalg import TINY
from ..._utils.notebook import show_progress
from ..._utils.parallel import one_blas_thread
from ..._utils.results import Floats
from ..._validation.predictions import Predictions
from .boosted import Boosting, Correction, FeatureBins, tree_features
from .members import Members, MembersFit
from .optimism import correct_optimism
from .stacking import (
    MAX_PROBS_AT_ONCE,
    CrossFit,
    Stack,
    fit_left_out,
    gain_shrinkage,
    weighted_mean_and_se,
)
from .temperature_with_lapse import values_of_labels

MIN_ROWS_FOR_TREES = 1_000  # or groups; below, a gain of trees is not told from chance
MAX_CLASSES_FOR_TREES = 20
"""Classes above which trees are not grown: a tree for each class and round, searched among as many
features, takes c^2 steps; and a class has few rows."""
N_ROUNDS_BETWEEN_LOOKS = 8  # at the rows left out


@show_progress("growing trees")
@one_blas_thread()
def fit_flexible_stack(predictions: Predictions) -> Stack:
    """Fit the pool and correct it by trees, where these pay on rows left out."""
    stack, fit, crossed = fit_left_out(predictions)
    reason = _why_no_trees(predictions)
    if reason or crossed is None:
        return replace(stack, correction=Correction(None, reason=reason))
    growth = _TreeGrowth(predictions, fit, crossed, stack)
    growth.run()
    return growth.correct_pool(stack)


def _why_no_trees(predictions: Predictions) -> str:
    """Return why trees are not grown, or nothing."""
    is_there = predictions.row_weight > 0.0
    if predictions.groups is None:
        what = "rows"
        n_units = int(is_there.sum())
    else:
        what = "groups"
        n_units = len(np.unique(predictions.groups[is_there]))
    if n_units < MIN_ROWS_FOR_TREES:
        least = format_count(MIN_ROWS_FOR_TREES)
        return f"trees ask for {least} {what} and there are {format_count(n_units)}"
    if predictions.n_classes > MAX_CLASSES_FOR_TREES:
        return f"trees are grown for up to {MAX_CLASSES_FOR_TREES} classes"
    return ""


class _TreeGrowth:
    """Trees of every fit, grown together, and what they gain on the parts left out.

    Attributes
    ----------
    fits : list of Boosting
        One without each fold, and last one of all rows.
    gains : list of ndarray of shape (n_parts,)
        At each look, by how much trees raise the log likelihood of each part.
    probs : list of ndarray of shape (c, m)
        At each look, probabilities of every `row_step`-th part.
    """

    def __init__(
        self, predictions: Predictions, fit: MembersFit, crossed: CrossFit, stack: Stack
    ) -> None:
        self.crossed = crossed
        self.codes = predictions.codes
        folds = crossed.folds
        scores = transposed_scores(predictions)
        all_weight = fit.rows.weight_or_ones
        weights_kept = folds.weights_kept(all_weight)
        members_of_fit = [*fit.fit_parts(weights_kept), fit.whole]
        weight_of_fit = [*weights_kept, all_weight]

        bins = FeatureBins(tree_features(scores), all_weight)
        pool_weights = np.array(list(stack.weights.values()))
        self.fits = [
            Boosting(
                bins,
                _log_pooled_probs(members, pool_weights, scores),
                self.codes,
                weight,
            )
            for members, weight in zip(members_of_fit, weight_of_fit, strict=True)
        ]
        self.is_shown = np.arange(len(folds.rows)) % crossed.row_step == 0
        self.log_pooled, probs = self._predict_parts()
        self.gains = [np.zeros(len(folds.rows))]
        self.probs = [probs]

    def run(self, max_rounds: int = 200, max_looks_without_gain: int = 3) -> None:
        """Grow until the rows left out have shown no better number of rounds for some looks."""
        mean_gains = [0.0]
        while True:
            n_looks = len(mean_gains) - 1
            best = int(np.argmax(mean_gains))
            is_over = n_looks - best >= max_looks_without_gain
            if is_over or n_looks * N_ROUNDS_BETWEEN_LOOKS >= max_rounds:
                return
            for boosting in self.fits:
                for _ in range(N_ROUNDS_BETWEEN_LOOKS):
                    boosting.grow_round()
            log_likelihoods, probs = self._predict_parts()
            gain_per_part = log_likelihoods - self.log_pooled
            self.gains.append(gain_per_part)
            self.probs.append(probs)
            mean_gain, _ = self._mean_and_se(gain_per_part)
            mean_gains.append(mean_gain)

    def _predict_parts(self) -> tuple[Floats, Floats]:
        """Return the log of b at the labels of all parts, and b of the parts shown, (c, m)."""
        folds = self.crossed.folds
        n_classes = len(self.fits[0].eta)
        log_likelihoods = np.empty(len(folds.rows))
        probs = np.empty((n_classes, len(folds.rows)))
        for fold in range(folds.n_folds):
            own = np.flatnonzero(folds.folds == fold)
            rows = folds.rows[own]
            eta = self.fits[fold].eta[:, rows]
            b = eta.copy()
            eta -= softmax_in_place(b)
            log_likelihoods[own] = values_of_labels(eta, self.codes[rows])
            probs[:, own] = b
        return log_likelihoods, probs[:, self.is_shown]

    def _mean_and_se(self, gain_per_part: Floats) -> tuple[float, float]:
        crossed = self.crossed
        return weighted_mean_and_se(gain_per_part, crossed.folds.weight, crossed.groups)

    def correct_pool(self, stack: Stack) -> Stack:
        """Return the pool with the trees, and what both together promise for new rows."""
        crossed = self.crossed
        weight = crossed.folds.weight
        gain_by_look = np.array(self.gains)

        # Each fold is judged with the number of rounds that is best on the other folds; the last
        # number is the best on all folds, and is kept.
        fold_of_part = crossed.fold_of_part
        n_folds = int(fold_of_part.max()) + 1
        is_used = fold_of_part != np.arange(n_folds + 1)[:, None]
        summed_gain = (weight * is_used) @ gain_by_look.T
        best_look = summed_gain.argmax(axis=1)
        final_look = int(best_look[-1])
        look_of_part = best_look[fold_of_part]
        part = np.arange(len(look_of_part))
        tree_gain = gain_by_look[look_of_part, part]
        gain, gain_se = self._mean_and_se(tree_gain)

        # Of so many rows the gain is held against a third of its standard error, as measured.
        trust = 0.0
        if final_look > 0:
            trust = gain_shrinkage(gain, gain_se, n_errors=np.inf)
        if trust == 0.0:
            return replace(stack, correction=Correction(None, 0.0, gain, gain_se))
        trees = (
            self.fits[-1]
            .grown_trees()
            .first_rounds(N_ROUNDS_BETWEEN_LOOKS * final_look)
        )
        tree_gain = np.log1p(trust * np.expm1(tree_gain))  # of ``(1 - t) q + t b``
        correction = Correction(trees, trust, *self._mean_and_se(tree_gain))

        # What pool and trees gain together.
        total_gain = tree_gain
        if crossed.shrinkage > 0.0:
            total_gain = tree_gain + crossed.gain_per_part
        gain, gain_se = self._mean_and_se(total_gain)
        raw, _ = crossed.pool_left_out()
        look_of_shown = look_of_part[self.is_shown]
        pooled = self.probs[0].T
        shown = np.arange(len(look_of_shown))
        boosted = np.array(self.probs)[look_of_shown, :, shown]
        answer = (1.0 - trust) * pooled + trust * boosted
        corrected_gain, corrected_gain_se = correct_optimism(
            total_gain, raw, answer, weight, crossed.groups, crossed.row_step
        )
        return replace(
            stack,
            correction=correction,
            loss=stack.raw_loss - gain,
            gain=gain,
            gain_se=gain_se,
            promise=corrected_gain,
            promise_se=corrected_gain_se,
        )


def _log_pooled_probs(members: Members, weights: Floats, scores: Floats) -> Floats:
    """Return log q, shape (c, n), of the members."""
    n_classes, n_rows = scores.shape
    q = np.zeros(scores.shape)
    n_at_once = max(1, MAX_PROBS_AT_ONCE // n_classes)
    for start in range(0, n_rows, n_at_once):
        part = slice(start, start + n_at_once)
        answers = members.all_probabilities(np.ascontiguousarray(scores[:, part]))
        for weight, answer in zip(weights, answers, strict=True):
            q[:, part] += weight * answer
    return np.log(np.maximum(q, TINY))
