"""Which recalibration? The one of smallest log loss, how sure its lead is, and what is said of it.

==============  ================================================================================
difference      mean of ``g_i``, a row's log loss under a method less that under the best one:
                what the two share cancels
standard error  `metrics/_scores.standard_error_of_mean` of ``g_i``: weights count rows; survey
                weights and groups by their sums
interval        `_inference/paired_loss`: the means that labels like these allow, as wide as all
                ``k (k + 1) / 2`` differences between k methods and doing nothing ask for
equal           differences up to `LOSS_TIE_TOL` are 0; of equal methods the simplest is the best
told apart      the interval lies above 0, and the difference above `MIN_SHOWN_DIFFERENCE`
==============  ================================================================================

The winner is picked after looking at all methods, which flatters it; hence the intervals cover
every difference between two of them at once, with 95 % confidence. Then (1) the differences to the
winner are covered, whoever it is; and (2) the method that is truly best is among those not told
from it.

"Truly" is about these fitted maps and more rows like the judged ones. The intervals do not know how
maps vary with the rows they are fitted to, nor that folds share rows. With a holdout the choice is
made on the holdout; to keep it for a last word, choose by cross-validation (``cv=``).

This is the only place that decides. Text, JSON, report, figures and the demo show what it found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._inference.paired_loss import PairedLoss, all_pairs_quantile, thinning_stride
from .._utils.formatting import format_count, join_words
from .._utils.linalg import TINY
from .._utils.results import Floats, Result
from .._utils.statements import Statement
from .._validation.predictions import Predictions

MIN_SHOWN_DIFFERENCE = 5e-5
"""Nats: a difference that four decimals do not show is none, however many rows there are."""
LOSS_TIE_TOL = 1e-6
"""Numbers this close are equal: maps stop iterating, and `auto` is the identity, but for less."""
UNCALIBRATED = "uncalibrated"
"""The name of leaving the predictions as they are."""
SIMPLEST_FIRST = (
    *(
        UNCALIBRATED,
        "identity",
        "slope_ridge",
        "slope",
        "positions_ridge",
        "positions",
        "both_ridge",
        "both",
        "temperature",
        "xu_davoine",
        "mcllo",
        "vector",
        "vector_log_probs",
    ),
    *(
        "beta",
        "histogram",
        "isotonic",
        "matrix",
        "matrix_log_probs",
        "dirichlet",
        "auto",
    ),
)
"""By how much is fitted: nothing, one number, a few for each class, bins and steps, a full matrix,
and the mean of several of these."""


@dataclass(frozen=True)
class LossDifference(Result):
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
    def is_clearly_worse(self) -> bool:
        """Whether the method is worse beyond chance, by an amount that four decimals show."""
        return self.low > 0.0 and self.difference > MIN_SHOWN_DIFFERENCE

    def numbers(self) -> dict[str, float]:
        """Return the difference and its interval by name."""
        return {"difference": self.difference, "low": self.low, "high": self.high}

    @property
    def cell(self) -> str:
        """The difference and its interval in a table: ``0.0076 [-0.0029, 0.0180]``."""
        low = _four_decimals(self.low)
        high = _four_decimals(self.high)
        return f"{_four_decimals(self.difference)} [{low}, {high}]"

    def __str__(self) -> str:
        low = _four_decimals(self.low)
        high = _four_decimals(self.high)
        return f"{_four_decimals(self.difference)} ({low} to {high})"


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

    See Also
    --------
    Comparison : Has it as `recommendation`.
    compare : Makes the comparison.
    AutoCalibrator : Weighs methods instead of picking one.

    Notes
    -----
    The winner is picked after looking at all methods, which flatters it. Intervals therefore cover
    every difference between two methods at once; they do not know how maps vary with the rows that
    they are fitted to.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
    >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
    >>> train, holdout = (probs[:20], y[:20]), (probs[20:], y[20:])
    >>> c = mcllo.compare(train, holdout, methods=["temperature"], n_resamples=19, seed=0)
    >>> c.recommendation.n_methods, c.recommendation.n_samples
    (1, 20)
    """

    method: str
    log_loss: float
    differences: tuple[LossDifference, ...]
    level: float
    n_methods: int
    n_samples: int
    cross_validated: bool

    def difference(self, method: str) -> LossDifference | None:
        """Return how far a method lies above the recommended one; None for what is not compared.

        Parameters
        ----------
        method : str
            Name of a method.

        Returns
        -------
        LossDifference or None
            Mean difference of the log losses, with its interval.
        """
        for other in self.differences:
            if other.method == method:
                return other
        return None

    @property
    def ties(self) -> tuple[str, ...]:
        """Methods that cannot be told from the recommended one, by log loss."""
        return tuple(
            other.method for other in self.differences if not other.is_clearly_worse
        )

    @property
    def simplest(self) -> str:
        """The simplest of the recommended method and those that cannot be told from it."""
        return min((self.method, *self.ties), key=_simplicity_rank)

    @property
    def runner_up(self) -> LossDifference | None:
        """The next method; None when no other was compared."""
        return next((d for d in self.differences if d.method != UNCALIBRATED), None)

    @property
    def gain(self) -> LossDifference | None:
        """The difference to leaving the predictions as they are; None when that is best."""
        return self.difference(UNCALIBRATED)

    @property
    def improves(self) -> bool:
        """Whether the method is shown to be better than leaving the predictions as they are."""
        return self.gain is not None and self.gain.is_clearly_worse

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What to do, why, what else would do, and what the intervals mean.

        Their kinds are ``recommendation``, ``lead``, ``ties`` (where a method is recommended) and
        ``intervals``.
        """
        if not self.n_methods:
            return (Statement("recommendation", "No method was compared.", "doubt"),)
        numbers = {"method": self.method, "improves": self.improves}
        if self.improves:
            words = f"Recommended: {self.method}, which has the lowest log loss."
            decision = Statement("recommendation", words, "good", numbers)
        else:
            words = "No method is shown to be better than leaving the predictions as they are."
            decision = Statement("recommendation", words, "doubt", numbers)
        others = self._ties_statement()
        beside = () if others is None else (others,)
        return (
            decision,
            self._lead_statement(),
            *beside,
            self._interval_meaning_statement(),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The words of `statements`."""
        return tuple(said.text for said in self.statements)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "method": self.method,
            "log_loss": self.log_loss,
            "improves": self.improves,
            "ties": list(self.ties),
            "simplest": self.simplest,
            "differences": [other.to_dict() for other in self.differences],
            "level": self.level,
            "n_methods": self.n_methods,
            "n_samples": self.n_samples,
            "cross_validated": self.cross_validated,
            "text": str(self),
        }

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _lead_statement(self) -> Statement:
        """Say whose log loss is lowest, and by how much."""
        loss = "cross-validated log loss"
        number = f"{self.log_loss:.4f}"
        if not self.cross_validated:
            loss = "log loss"
            number += (
                f" on {format_count(self.n_samples)} rows that no map was fitted to"
            )
        after = self.runner_up
        if self.gain is None:
            words = f"Their {loss}, {number}, is the lowest"
            if after is not None:
                words += f"; {after.method} comes next, {after} above"
        else:
            whose = (
                f"Its {loss}"
                if self.improves
                else f"The lowest {loss}, that of {self.method}"
            )
            words = f"{whose}, {number}, is {self.gain} below doing nothing"
            if after is not None:
                words += f" and {after} below the next of {self.n_methods} methods, {after.method}"
        numbers: dict[str, Any] = {"log_loss": self.log_loss}
        if self.gain is not None:
            numbers["gain"] = self.gain.numbers()
        if after is not None:
            numbers["runner_up"] = after.numbers()
        return Statement("lead", f"{words}.", numbers=numbers)

    def _ties_statement(self) -> Statement | None:
        """Say what cannot be told from the recommended method, and which of these is simplest."""
        if not self.improves or (not self.ties and self.n_methods == 1):
            return None
        is_simplest = self.simplest == self.method
        if not self.ties:
            words = "All others are worse, beyond chance."
        elif len(self.ties) == 1:
            simpler = "less simple" if is_simplest else "simpler"
            words = f"{self.ties[0]} cannot be told from it and is {simpler}."
        else:
            simplest = f"the simplest is {self.simplest}"
            if is_simplest:
                simplest = "it is the simplest of these"
            words = f"{join_words(self.ties)} cannot be told from it; {simplest}."
        return Statement(
            "ties", words, numbers={"ties": self.ties, "simplest": self.simplest}
        )

    def _interval_meaning_statement(self) -> Statement:
        """Say what the intervals cover and what they do not."""
        at_once = ""
        if self.n_methods > 1:
            methods = (
                "both methods"
                if self.n_methods == 2
                else f"all {self.n_methods} methods"
            )
            at_once = (
                f"hold for {methods} at once (the best was picked after looking), "
            )
        words = (
            f"The intervals are paired, {at_once}with {100.0 * self.level:.0f} % confidence; how "
            "maps vary with the rows they are fitted to is not in them."
        )
        numbers = {"level": self.level, "n_methods": self.n_methods}
        return Statement("intervals", words, numbers=numbers)


def recommend(
    predictions_by_method: Mapping[str, Predictions],
    *,
    cross_validated: bool = False,
    level: float = 0.95,
) -> Recommendation:
    """Return the method of smallest log loss, with its differences to all others.

    `predictions_by_method` are the same rows under each method, ``uncalibrated`` among them;
    `cross_validated` is what the words say of them, `level` the confidence in all intervals
    together.
    """
    from scipy.special import ndtr, stdtrit

    rows = predictions_by_method[UNCALIBRATED]
    weight = rows.row_weight
    groups = rows.groups
    if groups is None and not rows.counts_rows:
        groups = np.arange(
            rows.n_samples
        )  # a survey weight is no count: each row is a group
    losses = {
        name: row_log_losses(predictions)
        for name, predictions in predictions_by_method.items()
    }
    means = {name: float(weight @ loss / weight.sum()) for name, loss in losses.items()}
    lowest = min(means.values())
    best = min(
        (
            name
            for name in predictions_by_method
            if means[name] - lowest <= LOSS_TIE_TOL
        ),
        key=_simplicity_rank,
    )
    # Sorted, so that the order in which methods were given does not change the last digits.
    table = np.column_stack([losses[name] for name in sorted(predictions_by_method)])
    confidence = float(ndtr(all_pairs_quantile(table, weight, groups, level)))
    stride = thinning_stride(*rows.probs.shape)
    # What a choice set does not offer has probability 0 under every method.
    thinned = {
        name: np.maximum(predictions.probs[::stride], TINY)
        for name, predictions in predictions_by_method.items()
    }
    mean_probs = np.mean(list(thinned.values()), axis=0)

    def difference(name: str) -> LossDifference:
        loss = losses[name] - losses[best]
        pair = PairedLoss(
            loss, thinned[best], thinned[name], mean_probs, weight, groups, stride
        )
        mean = 0.0 if abs(pair.mean) <= LOSS_TIE_TOL else pair.mean
        quantile = (
            float(stdtrit(pair.units - 1.0, confidence)) if pair.units > 1.0 else np.inf
        )
        low, high = pair.interval(quantile)
        return LossDifference(
            name, mean, pair.standard_error, min(low, mean), max(high, mean)
        )

    others = [difference(name) for name in predictions_by_method if name != best]
    return Recommendation(
        method=best,
        log_loss=means[best],
        differences=tuple(sorted(others, key=lambda other: other.difference)),
        level=level,
        n_methods=len(predictions_by_method) - 1,
        n_samples=rows.n_samples,
        cross_validated=cross_validated,
    )


def row_log_losses(predictions: Predictions) -> Floats:
    """Return the negative log probability of each row's true class."""
    own = (np.arange(predictions.n_samples), predictions.codes)
    if predictions.offered is not None and predictions.logits is not None:
        return -predictions.logits[own]  # finite where a probability underflows to 0
    return -np.log(predictions.probs[own])


def _four_decimals(value: float) -> str:
    """Return four decimals, and no minus before a zero."""
    shown = 0.0 if abs(value) < MIN_SHOWN_DIFFERENCE else value
    return f"{shown:.4f}"


def _simplicity_rank(method: str) -> int:
    """Return the place of a method among the simplest; what is not known comes last."""
    if method not in SIMPLEST_FIRST:
        return len(SIMPLEST_FIRST)
    return SIMPLEST_FIRST.index(method)
