"""How many rows a wanted power takes: simulated, and solved along the curve that power follows.

==============  ===================================================================================
curve           with n rows the likelihood ratio follows about a chi-square with ``df`` degrees and
                noncentrality ``k n``, so that ``power(n) = P(chi2_df(k n) > c)``, c the level's
                critical value; one number, k, is unknown
a step          the k of largest binomial likelihood over all sizes tried, each within a factor of
                two of the last guess counting; the next guess is the n with the wanted power
answer          n after the last step; its interval from the likelihood of k (95 %)
==============  ===================================================================================

The curve only says where to look: rates are simulated with the test's own p-values, and the last
sizes lie so near the answer that what is left of the curve hardly matters. A size whose tables
would be too large to simulate is not tried: the answer is then the curve's, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._utils.formatting import format_count
from .._utils.results import Result

N_FIRST_ROWS = 400
"""Rows of the first size tried."""
MAX_ROWS = 200_000
"""Rows of the largest size tried."""
MAX_SIZES_TRIED = 8
"""Sizes tried at most."""
RELATIVE_ROWS_TOL = 0.05
"""Guesses that differ by less, as a part of n, are one."""
NONCENTRALITY_GRID = np.exp(np.linspace(np.log(1e-9), np.log(10.0), 6001))
"""Noncentralities of a row."""
CHI2_QUANTILE_95 = 3.841458820694124
"""The 95 % quantile of chi-square with one degree of freedom."""


@dataclass(frozen=True)
class RowsNeeded(Result):
    """How many labelled rows a wanted power takes.

    Attributes
    ----------
    power : float
        What was wanted.
    n, low, high : int
        Rows, and the 95 % interval of the simulation.
    extrapolated : bool
        Whether so many rows were too many to simulate: the number is the curve's alone.

    See Also
    --------
    power : Takes ``power=``, the power that is wanted.
    power_for : The same of your own predictions.
    PowerStudy : Has this as ``needed``.

    Examples
    --------
    >>> from mcllo import simulate
    >>> study = simulate.power(delta_1=2.0, n_classes=3, reps=40, power=0.8, seed=5)
    >>> needed = study.needed
    >>> needed.power, needed.low <= needed.n <= needed.high
    (0.8, True)
    """

    power: float
    n: int
    low: int
    high: int
    extrapolated: bool

    def __str__(self) -> str:
        ends = f"{format_count(self.low)} to {format_count(self.high)}"
        text = f"A power of {100 * self.power:g} % takes about {format_count(self.n)} rows ({ends})"
        more = ", by extrapolation: so many were not simulated" if self.extrapolated else ""
        return f"{text}{more}."


def solve(
    rejected: Callable[[int], tuple[int, int]], df: int, power: float, alpha: float
) -> RowsNeeded:
    """Return the n with the wanted power; ``rejected(n)`` simulates: rejections, repetitions."""
    from scipy.special import chdtri, chndtr

    noncentral = np.concatenate([[0.0], np.exp(np.linspace(np.log(1e-3), np.log(1e4), 4000))])
    powers = np.maximum.accumulate(1.0 - chndtr(float(chdtri(df, alpha)), float(df), noncentral))
    target = float(np.interp(power, powers, noncentral))
    tried: dict[int, tuple[int, int]] = {}
    guess = N_FIRST_ROWS
    for _ in range(MAX_SIZES_TRIED):
        tried[guess] = rejected(guess)
        likely = np.zeros(len(NONCENTRALITY_GRID))
        for n, (hits, reps) in tried.items():
            if 0.5 * guess <= n <= 2.0 * guess:
                rate = np.clip(
                    np.interp(NONCENTRALITY_GRID * n, noncentral, powers), 1e-12, 1.0 - 1e-12
                )
                likely += hits * np.log(rate) + (reps - hits) * np.log1p(-rate)
        wanted = target / float(NONCENTRALITY_GRID[int(np.argmax(likely))])
        new = int(np.clip(np.ceil(wanted), guess // 8, guess * 8))  # 0 or 1 tells no more
        new = min(max(new, 10), MAX_ROWS)
        if new in tried or (abs(new - guess) <= RELATIVE_ROWS_TOL * guess and len(tried) > 1):
            break
        guess = new
    inside = NONCENTRALITY_GRID[2.0 * (likely.max() - likely) <= CHI2_QUANTILE_95]
    found = (target / wanted, inside[-1], inside[0])
    n, low, high = (int(min(np.ceil(target / k), 1e12)) for k in found)
    return RowsNeeded(power, n, low, high, wanted > 2.0 * max(tried))
