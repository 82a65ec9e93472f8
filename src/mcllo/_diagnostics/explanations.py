"""Which explanation? Classes, one slope, both, a lapse or a confused pair, held to each other.

A lapse, a confused pair, and classes beside a slope are named only where their score
(`_diagnostics/mixtures`) is better by `MIN_SCORE_LEAD` than that of every rival, and where what
they leave is not rejected. Rivals are one another, the models of the nested models, and the sets of
classes that leaving out accepts.

===============  ===========================================================================
beside a slope   the search of `_diagnostics/left_out`, where each H_S has one slope of all
                 classes outside S; fewer classes than without a slope, and at most a quarter
its score        that of the slope, and of shifts and slopes of the set's classes after it
===============  ===========================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from .._validation.predictions import Predictions
from .lapse import constant_rate, fit_lapse, has_sure_rows
from .left_out import LeaveOut, LeftOut, smallest_sets, told_apart
from .miscalibrated_class import set_bic
from .mixtures import MIN_SCORE_LEAD, Fitted, Mixture, MixtureRows, fit_pair
from .nested_models import NestedModels

Rival = Literal["", "lapse", "pair", "slope"]
MAX_SCORED_SETS = 4
"""Accepted sets of classes that have a score: each costs a fit for each of its classes."""


@dataclass(frozen=True)
class Beside:
    """Classes that are off beside one slope of all.

    `tempered` are the predictions whose logits are multiplied by that slope; `margin` is how much
    better it is than the best set of classes without a slope.
    """

    named: frozenset[int]
    others: list[frozenset[int]]
    slope: tuple[float, float, float]
    tempered: Predictions
    margin: float


class Explanations:
    """Rival explanations of the same rows; `accepted` are sets of classes that may be left out."""

    def __init__(
        self,
        predictions: Predictions,
        accepted: list[LeftOut],
        nested_models: NestedModels,
        *,
        alpha: float,
        seed: int,
    ) -> None:
        self.rows = MixtureRows(predictions, seed)
        self.nested_models, self.alpha, self.seed = nested_models, alpha, seed
        self.predictions = self.rows.predictions
        # Where a label had probability 0, how likely a mixture is depends on what the 0 became.
        is_told = predictions.n_clipped_true == 0
        self.lapse = fit_lapse(self.rows) if is_told else None
        self.pair = fit_pair(self.rows) if is_told else None
        self.temperature = self.rows.temperature_score()
        # Of many rows mixtures are fitted to a part, whose likelihood ratios are as much smaller.
        part = self.predictions.n_samples / predictions.n_samples
        price = self.rows.log_total
        scores = {row.model: part * row.statistic - row.df * price for row in nested_models.rows}
        self.alike = max(self.temperature, scores["shift"])
        # Larger models have no sentence, and may contain what is named: they need not be far worse.
        self.larger = max(scores.values())
        self.sets = max(
            [self._set_score(t.classes) for t in accepted[:MAX_SCORED_SETS]], default=-math.inf
        )
        self.fewest = min((len(t.classes) for t in accepted), default=predictions.n_classes)

    def _set_score(self, classes: frozenset[int]) -> float:
        """Return the score of a set of classes, each with a shift and a slope."""
        n_sets = math.comb(self.predictions.n_classes, len(classes))
        return set_bic(self.predictions, classes) - 2.0 * math.log(n_sets)

    @cached_property
    def likeliest(self) -> Fitted | None:
        """The lapse or the pair, where it is far likelier than all else; whatever it leaves."""
        found = [fitted for fitted in (self.lapse, self.pair) if fitted is not None]
        scores = sorted(fitted.mixture.score for fitted in found)
        if not found:
            return None
        best = max(found, key=lambda fitted: fitted.mixture.score)
        score = best.mixture.score
        margin = score - max([self.alike, self.sets, *scores[:-1]])
        if margin < MIN_SCORE_LEAD or score < self.larger:
            return None
        return replace(best, mixture=replace(best.mixture, margin=margin))

    @cached_property
    def mixture(self) -> Mixture | None:
        """The same where it leaves nothing: then it is named."""
        best = self.likeliest
        if best is None or not self._is_enough(best):
            return None
        if not best.mixture.labels and not has_sure_rows(self.rows, best):
            return None
        return best.mixture

    def _is_enough(self, fitted: Fitted) -> bool:
        """Whether what a mixture leaves is not rejected."""
        if not fitted.mixture.labels and constant_rate(self.rows, fitted) <= self.alpha:
            return False
        after = replace(self.predictions, probs=fitted.probs, logits=None)
        return LeaveOut(after, alpha=self.alpha, seed=self.seed)([]).pvalue > self.alpha

    def find_rival(self, kind: str) -> Rival:
        """Return the mixture that speaks against what is said otherwise: of classes, a slope, ...

        It is far likelier, though it leaves something; or it is a lapse that cannot be told from
        one slope, or is likelier than the classes. A pair does not speak against single classes,
        which it consists of.
        """
        is_classes = kind in ("classes", "one_of")
        if self.likeliest is not None:
            if not self.likeliest.mixture.labels:
                return "lapse"
            return "" if is_classes else "pair"
        if self.lapse is None or not (is_classes or kind == "temperature"):
            return ""
        score = self.lapse.mixture.score
        is_near = score > (self.sets if is_classes else self.temperature - MIN_SCORE_LEAD)
        return "lapse" if is_near and self._is_enough(self.lapse) else ""

    def beside(self) -> Beside | None:
        """Return the classes that are off beside one slope of all, where that is far likelier."""
        c = self.predictions.n_classes
        slope, low, high = self.nested_models.slope
        most = min(self.fewest - 1, max(1, c // 4))
        is_off = slope > 0.0 and (high < 1.0 or low > 1.0)
        if self.nested_models.simple == "temperature" or not is_off or most < 1:
            return None
        tests = LeaveOut(self.predictions, alpha=self.alpha, seed=self.seed, slope=slope)
        if tests([]).pvalue > self.alpha:
            return None
        singles = [tests([k]) for k in range(c)]
        accepted = smallest_sets(tests, singles, self.alpha, most=most)
        if not accepted:
            return None
        best = max(accepted, key=lambda t: t.pvalue)
        tempered = self.rows.tempered(best.slope)
        score = self.rows.slope_score(best.slope) + set_bic(tempered, best.classes)
        score -= 2.0 * math.log(math.comb(c, len(best.classes)))
        mixtures = [f.mixture.score for f in (self.lapse, self.pair) if f is not None]
        if score < max([self.alike, *mixtures]) + MIN_SCORE_LEAD or score < self.larger:
            return None
        named, others = told_apart(tests, accepted, self.alpha)
        interval = self.rows.slope_interval(best.classes, best.slope)
        margin = score - self.sets
        return Beside(named, others, interval, tempered, margin)
