"""Which repair? The one of smallest log loss, and how sure its lead is.

==============  ================================================================================
difference      mean of ``g_i``, a row's log loss under a method less that under the best one:
                what the two share cancels
standard error  ``sqrt(sum w_i (g_i - g)^2 / (W - 1) / W)`` with frequency weights of sum W; from
                ``w_i (g_i - g)`` squared for survey weights, summed within groups first for groups
interval        ``g +- t se``, t the quantile ``1 - 0.05 / (2 k)`` for k methods
==============  ================================================================================

The winner is picked after looking at all k methods, which flatters it; hence Bonferroni's k. Then,
with 95 % confidence, (1) all k differences to doing nothing are covered at once, so that of the
picked one is; and (2) the method that is truly best is among those not told from the winner: it is
missed only where one of k others beats it beyond its interval.

"Truly" is about these fitted maps and more rows like the judged ones. The intervals do not know how
maps vary with the rows they are fitted to, nor that folds share rows. With a holdout the choice is
made on the holdout; to keep it for a last word, choose by cross-validation (``cv=``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._fit import none_for_nan
from ._paired import row_losses
from ._predictions import Predictions
from ._recommend_words import NOTHING, sentences_of

Floats = NDArray[np.float64]

LEVEL = 0.95
SHOWN = 5e-5
"""Nats: a difference that four decimals do not show is none, however many rows there are."""
SIMPLEST_FIRST = (
    *(NOTHING, "identity", "temperature", "xu_davoine", "mcllo", "vector", "beta"),
    *("histogram", "isotonic", "matrix", "dirichlet", "auto"),
)
"""By how much is fitted: nothing, one number, a few for each class, bins and steps, a full matrix,
and the mean of several of these."""


@dataclass(frozen=True)
class LossDifference:
    """By how much a method's log loss lies above the recommended one's.

    Attributes
    ----------
    method : str
        The other method; ``uncalibrated`` is leaving the predictions as they are.
    difference, standard_error : float
        Paired: mean of the rows' differences, and its standard error.
    low, high : float
        Interval that holds for all methods at once.
    """

    method: str
    difference: float
    standard_error: float
    low: float
    high: float

    @property
    def told(self) -> bool:
        """Whether the method is worse beyond chance, by an amount that four decimals show."""
        return self.low > 0.0 and self.difference > SHOWN


@dataclass(frozen=True)
class Recommendation:
    """The method of smallest log loss, and what can be said about its lead; print it.

    Attributes
    ----------
    method : str
        The method of smallest log loss; ``uncalibrated`` when that is none.
    log_loss : float
        Its log loss on the judged rows.
    differences : tuple of LossDifference
        Of all others to it, the smallest first.
    level : float
        Confidence in all intervals together.
    n_methods, n_samples : int
        Methods compared, rows judged.
    cross_validated : bool
        Whether rows were judged by maps fitted on other folds.
    """

    method: str
    log_loss: float
    differences: tuple[LossDifference, ...]
    level: float
    n_methods: int
    n_samples: int
    cross_validated: bool

    @property
    def ties(self) -> tuple[str, ...]:
        """Methods that cannot be told from the recommended one, by log loss."""
        return tuple(other.method for other in self.differences if not other.told)

    @property
    def simplest(self) -> str:
        """The simplest of the recommended method and those that cannot be told from it."""
        return min((self.method, *self.ties), key=_rank)

    @property
    def runner_up(self) -> LossDifference | None:
        """The next method; None when no other was compared."""
        return next((d for d in self.differences if d.method != NOTHING), None)

    @property
    def gain(self) -> LossDifference | None:
        """The difference to leaving the predictions as they are; None when that is best."""
        return next((d for d in self.differences if d.method == NOTHING), None)

    @property
    def improves(self) -> bool:
        """Whether the method is shown to be better than leaving the predictions as they are."""
        return self.gain is not None and self.gain.told

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to do, why, what else would do, and what the intervals mean."""
        return sentences_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "method": self.method,
            "log_loss": self.log_loss,
            "improves": self.improves,
            "ties": list(self.ties),
            "simplest": self.simplest,
            "differences": [none_for_nan(asdict(other)) for other in self.differences],
            "level": self.level,
            "n_methods": self.n_methods,
            "n_samples": self.n_samples,
            "cross_validated": self.cross_validated,
            "text": str(self),
        }

    def __str__(self) -> str:
        return " ".join(self.sentences)


def recommend(
    sets: Mapping[str, Predictions], *, cross_validated: bool = False, level: float = LEVEL
) -> Recommendation:
    """Return the method of smallest log loss, with its differences to all others.

    Parameters
    ----------
    sets : mapping of str to Predictions
        The same rows under each method, ``uncalibrated`` among them.
    cross_validated : bool
        What the words say of the rows.
    level : float
        Confidence in all intervals together.

    Examples
    --------
    >>> y = [0, 1] * 50
    >>> flat = Predictions.from_arrays([[0.5, 0.5]] * 100, y)
    >>> good = Predictions.from_arrays([[0.8, 0.2], [0.2, 0.8]] * 50, y)
    >>> found = recommend({"uncalibrated": flat, "temperature": good})
    >>> found.method, found.improves, round(found.gain.difference, 4)
    ('temperature', True, 0.47)
    """
    losses = {name: row_losses(predictions) for name, predictions in sets.items()}
    rows = sets[NOTHING]
    weight = np.ones(rows.n_samples) if rows.sample_weight is None else rows.sample_weight
    means = {name: float(weight @ loss / weight.sum()) for name, loss in losses.items()}
    best = min(means, key=lambda name: means[name])
    k = len(sets) - 1
    tail = (1.0 - level) / (2.0 * max(k, 1))
    others = [
        _difference(name, losses[name] - losses[best], rows, weight, tail)
        for name in sets
        if name != best
    ]
    others.sort(key=lambda other: other.difference)
    return Recommendation(
        best, means[best], tuple(others), level, k, rows.n_samples, cross_validated
    )


def _difference(
    name: str, gaps: Floats, rows: Predictions, weight: Floats, tail: float
) -> LossDifference:
    from scipy.special import stdtrit

    mean = float(weight @ gaps / weight.sum())
    error, units = paired_error(gaps, rows, weight)
    reach = float(stdtrit(units - 1.0, 1.0 - tail)) * error if units > 1.0 else np.inf
    return LossDifference(name, mean, error, mean - reach, mean + reach)


def paired_error(gaps: Floats, rows: Predictions, weight: Floats) -> tuple[float, float]:
    """Return the standard error of the weighted mean of `gaps`, and the units it comes from."""
    total = float(weight.sum())
    parts = gaps - weight @ gaps / total
    if rows.groups is None and rows.weight_kind == "frequency":
        squares, units = float(weight @ parts**2), total
    else:
        which = np.arange(len(gaps)) if rows.groups is None else rows.groups
        sums = np.bincount(which, weights=weight * parts)
        squares, units = float(sums @ sums), float((np.bincount(which, weights=weight) > 0.0).sum())
    if units <= 1.0:
        return float("nan"), units
    return float(np.sqrt(squares * units / (units - 1.0))) / total, units


def _rank(method: str) -> int:
    known = method in SIMPLEST_FIRST
    return SIMPLEST_FIRST.index(method) if known else len(SIMPLEST_FIRST)
