"""Intervals that hold at every batch at once, for a size that may change from row to row.

Let d be the outcome of a row less what was predicted for it, both in [0, 1] (an event such as
"class j", "a class that the leading map raises"; of a group, means over its rows), S and V the sums
of d and d^2 over n rows since batch s. For any ``0 < lambda < 1`` the product of
``exp(lambda (d - E d) - (-log(1 - lambda) - lambda) d^2)`` is a supermartingale (Howard et al.,
2021), so that with weights w over a grid of lambda

    mean of E d  >=  S/n - min_lambda ( psi(lambda) V + log(2 / (w alpha_s)) ) / (lambda n)

and the same from above, at every batch at once with probability 1 - alpha_s, whatever the true
probabilities do meanwhile. ``alpha_s = alpha / (s (s + 1))`` makes it hold for all beginnings s at
once too: s may be chosen after looking, as the estimated onset is.

==============  ==============================================================================
shares          of class j: how often it came less how often it was predicted
change          probability on the wrong classes, as far as the map that led before the batch
                shows it, ``p(A) - x(A)`` for the classes A that it raises: the lower end is a
                bound of the mean of ``1/2 sum_j |p_j - x_j|`` for any truth p
temperature     exponents u that the labels do not contradict, if the truth is ``p_j ~ x_j^u``:
                those with ``sum_v w_v exp(L(v) - L(u)) < 1 / alpha_s``, L the log likelihood
                since s (Robbins); L is concave, so they are an interval
==============  ==============================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._utils.results import Floats, Result
from .e_values import EXPONENTS

RATES: Floats = 2.0 ** -np.arange(1.0, 13.0)
"""The grid of lambda, each with the same weight."""


@dataclass(frozen=True)
class ConfidenceSequence(Result):
    """An estimate with its interval.

    Attributes
    ----------
    value : float
        What was seen.
    low, high : float
        The ends of the interval, valid at every batch at once.
    """

    value: float
    low: float
    high: float


def alpha_for_start_batch(alpha: float, start_batch: int) -> float:
    """Return the part of `alpha` for intervals that begin at `start_batch`, counted from 1."""
    return alpha / (start_batch * (start_batch + 1.0))


def mean_confidence_sequence(
    total: float, sum_of_squares: float, n: int, alpha: float
) -> ConfidenceSequence:
    """Return the interval of a mean from sums of differences and of their squares.

    Examples
    --------
    >>> found = mean_confidence_sequence(30.0, 200.0, 1000, 0.05)
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.03, -0.025, 0.085)
    """
    if n == 0:
        return ConfidenceSequence(math.nan, -1.0, 1.0)
    psi = -np.log1p(-RATES) - RATES
    penalty = math.log(
        2.0 * len(RATES) / alpha
    )  # two ends, and the same weight for each rate
    reach = float(np.min((psi * sum_of_squares + penalty) / RATES)) / n
    mean = total / n
    return ConfidenceSequence(mean, max(-1.0, mean - reach), min(1.0, mean + reach))


def exponent_confidence_sequence(
    log_likelihoods: Floats, alpha: float
) -> tuple[ConfidenceSequence, slice]:
    """Return the interval of the exponent, and which places of `EXPONENTS` lie in it.

    Ends are rounded outwards to the grid; an end at 0 or infinity is not bounded.
    """
    log_mixture = float(np.logaddexp.reduce(log_likelihoods)) - math.log(
        len(log_likelihoods)
    )
    inside = np.flatnonzero(log_mixture - log_likelihoods < -math.log(alpha))
    best = int(np.argmax(log_likelihoods))
    first = int(inside[0])
    last = int(inside[-1])
    low = 0.0 if first == 0 else float(EXPONENTS[first - 1])
    high = math.inf if last == len(EXPONENTS) - 1 else float(EXPONENTS[last + 1])
    places = slice(max(0, first - 1), last + 2)
    return ConfidenceSequence(float(EXPONENTS[best]), low, high), places
