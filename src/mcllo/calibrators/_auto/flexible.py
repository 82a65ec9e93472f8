"""`fit_flexible_stack`: a pool, and trees on it that cross-validation lets through.

====================  ==========================================================================
fits                  one without each fold that was left out, and one of all rows: members, their
                      pool q_k by the final weights, and trees grown on the rows that the members
                      were fitted to, from the offset ``log q_k``
gain of a part        ``log b_k - log q_k`` at the label of a row of fold k, after 0, 8, 16, ...
                      rounds
rounds                the number with the largest mean gain; for the gain by which trees are
                      trusted, the number that the *other* judges' parts choose
trust                 t as for the pool (`stack`): ``G^2 / (G^2 + (s / 3)^2)`` for G > 0, else 0
answer                ``(1 - t) q + t b``
====================  ==========================================================================

What is judged is the whole of what is fitted: members and trees know nothing of the fold. The
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
from ..._utils.formatting import format_count
from ..._utils.notebook import show_progress
from ..._utils.parallel import one_blas_thread
from ..._utils.results import Floats
from ..._validation.predictions import Predictions
from ...metrics._scores import error_of_mean
from .boosted import TINY, Bins, Boosting, Correction, compute_features
from .members import Members, MembersFit
from .stacking import MAX_PROBS_AT_ONCE, CrossFit, Stack, fit_left_out, gain_shrinkage, promise

MIN_ROWS_FOR_TREES = 1_000
"""Rows, or groups, below which a gain of trees is not told from chance."""
MAX_CLASSES_FOR_TREES = 20
"""Classes above which trees are not grown: a tree for each class and round, searched among as many
features, takes c^2 steps; and a class has few rows."""
N_ROUNDS_BETWEEN_LOOKS = 8  # at the rows left out
MAX_ROUNDS = 200  # in all
MAX_LOOKS_WITHOUT_GAIN = 3  # looks without a new best after which no more trees are grown


@show_progress("growing trees")
@one_blas_thread()
def fit_flexible_stack(predictions: Predictions) -> Stack:
    """Fit the pool and correct it by trees, where these pay on rows left out."""
    stack, fit, crossed = fit_left_out(predictions)
    reason = _too_little(predictions)
    if reason or crossed is None:
        return replace(stack, correction=Correction(None, reason=reason))
    growth = _Growth(predictions, fit, crossed, stack)
    growth.run()
    return growth.correct_pool(stack)


def _too_little(predictions: Predictions) -> str:
    """Return why trees are not grown, or nothing."""
    groups = predictions.groups
    own = predictions.row_weight > 0.0
    n_units = int(own.sum()) if groups is None else len(np.unique(groups[own]))
    if n_units < MIN_ROWS_FOR_TREES:
        what = "rows" if groups is None else "groups"
        least = format_count(MIN_ROWS_FOR_TREES)
        return f"trees ask for {least} {what} and there are {format_count(n_units)}"
    if predictions.n_classes > MAX_CLASSES_FOR_TREES:
        return f"trees are grown for up to {MAX_CLASSES_FOR_TREES} classes"
    return ""


class _Growth:
    """Trees of every fit, grown together, and what they gain on the parts left out."""

    def __init__(
        self, predictions: Predictions, fit: MembersFit, crossed: CrossFit, stack: Stack
    ) -> None:
        self.crossed, self.codes = crossed, predictions.codes
        scores, folds = transposed_scores(predictions), crossed.folds
        n, full = scores.shape[1], fit.rows.unit
        kept = [full - folds.left_out_weight(fold, n) for fold in range(folds.n_folds)]
        weights = np.array(list(stack.weights.values()))
        bins = Bins(compute_features(scores), full)
        self.fits = [
            Boosting(bins, _log_pool(members, weights, scores), self.codes, weight)
            for members, weight in zip([*fit.parts(kept), fit.whole], [*kept, full], strict=True)
        ]
        self.shown = np.arange(len(folds.rows)) % crossed.every == 0
        gains, shown = self._look(np.zeros(len(folds.rows)))
        self.start, self.gains, self.probs = gains, [0.0 * gains], [shown]

    def run(self) -> None:
        """Grow until the rows left out have shown no better number of rounds for a while."""
        weight, means = self.crossed.folds.weight, [0.0]
        while len(means) - 1 - int(np.argmax(means)) < MAX_LOOKS_WITHOUT_GAIN:
            if (len(means) - 1) * N_ROUNDS_BETWEEN_LOOKS >= MAX_ROUNDS:
                break
            for boosting in self.fits:
                for _ in range(N_ROUNDS_BETWEEN_LOOKS):
                    boosting.grow()
            gains, probs = self._look(self.start)
            self.gains.append(gains)
            self.probs.append(probs)
            means.append(float(np.average(gains, weights=weight)))

    def _look(self, start: Floats) -> tuple[Floats, Floats]:
        """Return the log of b at the labels less `start`, and b of the parts shown, (c, m)."""
        folds = self.crossed.folds
        logs, probs = np.empty(len(folds.rows)), np.empty((len(self.fits[0].eta), len(folds.rows)))
        for fold in range(folds.n_folds):
            own = np.flatnonzero(folds.folds == fold)
            eta = self.fits[fold].eta[:, folds.rows[own]]
            eta -= eta.max(axis=0)
            eta -= np.log(np.exp(eta).sum(axis=0))
            logs[own] = eta[self.codes[folds.rows[own]], np.arange(len(own))]
            probs[:, own] = np.exp(eta)
        return logs - start, probs[:, self.shown]

    def _mean(self, gains: Floats) -> tuple[float, float]:
        """Return the mean of the parts' gains and its standard error."""
        weight = self.crossed.folds.weight
        gain = float(np.average(gains, weights=weight))
        return gain, error_of_mean(gains - gain, weight, self.crossed.groups)[0]

    def correct_pool(self, stack: Stack) -> Stack:
        """Return the pool with the trees, and what both together promise for new rows."""
        crossed, folds = self.crossed, self.crossed.folds
        gain_by_look = np.array(self.gains)

        # Each fold is judged with the number of rounds that is best on the other folds; the last
        # number is the best on all folds, and is kept.
        fold_of_part = crossed.fold_of_part
        n_cross_fits = int(fold_of_part.max()) + 1
        is_used = fold_of_part != np.arange(n_cross_fits + 1)[:, None]
        best_look = ((folds.weight * is_used) @ gain_by_look.T).argmax(axis=1)
        look_of_part = best_look[fold_of_part]
        tree_gain = gain_by_look[look_of_part, np.arange(len(fold_of_part))]
        gain, gain_se = self._mean(tree_gain)

        # Of so many rows the gain is held against a third of its standard error, as measured.
        trust = gain_shrinkage(gain, gain_se, np.inf) if best_look[-1] > 0 else 0.0
        if trust == 0.0:
            return replace(stack, correction=Correction(None, 0.0, gain, gain_se))
        trees = self.fits[-1].trees().first(N_ROUNDS_BETWEEN_LOOKS * int(best_look[-1]))
        tree_gain = np.log1p(trust * np.expm1(tree_gain))
        correction = Correction(trees, trust, *self._mean(tree_gain))

        # what pool and trees gain together
        total_gain = tree_gain + (crossed.gain_per_part if crossed.shrinkage > 0.0 else 0.0)
        gain, gain_se = self._mean(total_gain)
        shown_looks = look_of_part[self.shown]
        pooled = self.probs[0]
        boosted = np.array(self.probs)[shown_looks, :, np.arange(len(shown_looks))]
        answer = (1.0 - trust) * pooled.T + trust * boosted
        raw = crossed.pool_left_out()[0]
        corrected_gain, corrected_gain_se = promise(
            total_gain, raw, answer, folds.weight, crossed.groups, crossed.every
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


def _log_pool(members: Members, weights: Floats, scores: Floats) -> Floats:
    """Return log q, shape (c, n), of the members."""
    q, size = np.empty(scores.shape), max(1, MAX_PROBS_AT_ONCE // len(scores))
    for start in range(0, scores.shape[1], size):
        part = slice(start, start + size)
        answers = members.answers(np.ascontiguousarray(scores[:, part]))
        q[:, part] = sum(w * p for w, p in zip(weights, answers, strict=True))
    return np.log(np.maximum(q, TINY))
