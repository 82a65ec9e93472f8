"""`MiscalibratedClass`: how a class that was named is wrong, free of any baseline.

==========  ====================================================================================
odds        of the class against all classes that are not named, on the rows that have one of
            these: ``logit q_k -> tau + gamma logit q_k``, a fit of two classes
slope       overconfident where the interval of gamma is below 1, underconfident where it is above
share       the mean prediction, and how often the class came true, with Wilson's interval
example     of a few round probabilities that occur, the one that these odds move most
change      mean |change| of its probability by these odds: classes are ordered by it
==========  ====================================================================================

The classes that are not named are right among themselves, as far as the rows tell, so that the odds
against them are the class's own fault. Intervals have the level they are asked for:
`ClassAttribution` asks for one that makes shares and slopes hold for all named classes together
(Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._fit.fit import MCLLOFit, fit_predictions
from .._utils.formatting import ellipsis
from .._utils.results import Floats, Result
from .._utils.statements import Statement, suppress_warnings
from .._validation.predictions import Predictions
from ..metrics._reliability import wilson
from .left_out import MIN_OTHER_CLASSES_SHARE

EXAMPLE_PROBS = (0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.02)  # round probabilities that serve as examples
MIN_EXAMPLE_ROWS = 20  # rows that must be at least as far out


@dataclass(frozen=True, eq=False)
class MiscalibratedClass(Result):
    """How one class is wrong; intervals hold for all miscalibrated classes together.

    Attributes
    ----------
    label : label
        The class.
    delta, gamma, delta_interval, gamma_interval
        Its odds against the classes that are not named: ``odds -> delta odds^gamma``; NaN where
        the rows do not determine them.
    predicted, observed, low, high : float
        Its share of the rows: the mean prediction, how often it came true, and an interval.
    change : float
        Mean |change| of its probability by these odds: what classes are ordered by.
    given, true, true_low, true_high : float
        Where it is given the probability `given` (of a few round ones that occur, the one that is
        most off), it comes true in about `true`, with an interval; NaN without estimates.
    """

    label: Any
    delta: float
    gamma: float
    delta_interval: tuple[float, float]
    gamma_interval: tuple[float, float]
    predicted: float
    observed: float
    low: float
    high: float
    change: float
    given: float = math.nan
    true: float = math.nan
    true_low: float = math.nan
    true_high: float = math.nan

    @property
    def slope_kind(self) -> str:
        """'overconfident', 'underconfident', 'wrong_way', or '' where the rows cannot say."""
        low, high = self.gamma_interval
        if high < 1.0:
            return "wrong_way" if high < 0.0 else "overconfident"
        return "underconfident" if low > 1.0 else ""

    @property
    def share_kind(self) -> str:
        """'low' where it comes true more often than predicted, 'high' where less, or ''."""
        if self.predicted < self.low:
            return "low"
        return "high" if self.predicted > self.high else ""

    def statement(self, level: float) -> Statement:
        """Return in a sentence or two how it is wrong."""
        name = repr(ellipsis(self.label))
        leads = {"low": f"{name} is predicted too rarely", "high": f"{name} is predicted too often"}
        slopes = {
            "overconfident": "overconfident",
            "underconfident": "underconfident",
            "wrong_way": "upside down",
        }
        shares = f"its probability is {_percent(self.predicted)} on average, and it comes true in "
        shares += f"{_percent(self.observed)} of the rows ({_range(self.low, self.high)})"
        parts = [f"{leads[self.share_kind]}: {shares}."] if self.share_kind else []
        if self.slope_kind:
            whose = "Its probabilities are" if parts else f"The probabilities of {name} are"
            where = f"given {100 * self.given:g} %, it comes true in about {_percent(self.true)} "
            where += f"({_range(self.true_low, self.true_high)})"
            parts.append(f"{whose} {slopes[self.slope_kind]}: {where}.")
        if not parts:
            parts = [f"{name} is off, though these rows do not show in which way: {shares}."]
        words = " ".join(parts)
        numbers = {**self.to_dict(), "level": level, "slope": self.slope_kind}
        return Statement("attribution", words, "bad", {**numbers, "share": self.share_kind})


def how_wrong(
    predictions: Predictions, named: list[int], k: int, level: float
) -> MiscalibratedClass:
    """Return how class k is wrong against the classes that are not named."""
    p, weight = predictions, predictions.sample_weight
    total = float(p.n_samples if weight is None else weight.sum())
    predicted = float(np.average(p.probs[:, k], weights=weight))
    observed = float(p.class_weight[k]) / total
    low, high = (float(e[0]) for e in wilson(np.array([observed]), np.array([total]), level))
    fit = odds_fit(p, named, k)
    change, unknown = abs(observed - predicted), (math.nan, math.nan)
    odds = (math.nan, math.nan, unknown, unknown)
    said: tuple[float, ...] = ()
    if fit.converged:
        interval = fit.confidence_interval(level)
        (d, g), x = (e[0].tolist() for e in (interval.delta, interval.gamma)), p.probs[:, k]
        odds = (float(fit.delta[0]), float(fit.gamma[0]), (d[0], d[1]), (g[0], g[1]))
        moved = fit.recalibrate(np.column_stack([x, 1.0 - x]))[:, 0] - x
        change = float(np.average(np.abs(moved), weights=weight))
        said = _most_off(fit, x, level)
    return MiscalibratedClass(p.classes[k], *odds, predicted, observed, low, high, change, *said)


def _most_off(fit: MCLLOFit, probs: Floats, level: float) -> tuple[float, ...]:
    """Return a round probability that occurs and is most off, and what it should be."""
    from scipy.special import expit, ndtri

    seen = [
        v
        for v in EXAMPLE_PROBS
        if (probs >= v if v >= 0.5 else probs <= v).sum() >= MIN_EXAMPLE_ROWS
    ]
    given = np.array(seen or [0.5])
    odds = np.log(given / (1.0 - given))
    rows = np.column_stack([np.ones(len(odds)), odds])
    middle = rows @ np.array([fit.tau[0], fit.gamma[0]])
    cov = np.where(np.isnan(fit.cov_theta), 0.0, fit.cov_theta)
    reach = float(ndtri(0.5 + level / 2.0)) * np.sqrt(np.einsum("ij,jk,ik->i", rows, cov, rows))
    true, low, high = (expit(middle + sign * reach) for sign in (0.0, -1.0, 1.0))
    j = int(np.argmax(np.abs(true - given)))
    return float(given[j]), float(true[j]), float(low[j]), float(high[j])


def odds_fit(predictions: Predictions, out: list[int], k: int) -> MCLLOFit:
    """Fit the odds of class k against all classes that are not in `out`, on their rows."""
    p, free = predictions, np.ones(predictions.n_classes, dtype=bool)
    free[out] = False
    rows = np.flatnonzero(free[p.codes] | (p.codes == k))
    own, rest = p.probs[rows, k], p.probs[np.ix_(rows, np.flatnonzero(free))].sum(axis=1)
    rest = np.maximum(rest, MIN_OTHER_CLASSES_SHARE * own)
    binary = Predictions(
        probs=np.column_stack([own, rest]) / (own + rest)[:, None],
        codes=np.where(p.codes[rows] == k, 0, 1),
        classes=("it", "the others"),
        baseline="the others",
        sample_weight=None if p.sample_weight is None else p.sample_weight[rows],
    )
    with suppress_warnings():
        return fit_predictions(binary)


def set_bic(predictions: Predictions, classes: frozenset[int]) -> float:
    """Return the likelihood ratio of a set of classes that are off, less its parameters' price."""
    own = sorted(classes)
    gain = sum(odds_fit(predictions, own[i:], k).statistic for i, k in enumerate(own))
    return gain - 2.0 * len(own) * math.log(float(predictions.class_weight.sum()))


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def _range(low: float, high: float) -> str:
    return f"{100.0 * low:.1f} to {100.0 * high:.1f}"
