"""`PowerStudy`: how often a test rejected, and how many rows a wanted power takes.

Of R repetitions r rejected. Wilson's interval of ``r / R`` (`metrics/_reliability`) stays inside
[0, 1] and is honest where that is 0 or 1. The rows of a wanted power are simulated, and solved
along the curve that power follows:

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
from typing import Any

import numpy as np

from .._fit.map import MCLLOMap
from .._utils.formatting import Table, align_columns, format_count, format_number
from .._utils.notebook import NotebookResult
from .._utils.results import Floats, Result
from ..exceptions import InputError
from ..metrics._reliability import wilson_score_interval

MAX_ROWS = 200_000
"""Rows of the largest size tried; a round number."""


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
        n = format_count(self.n)
        low = format_count(self.low)
        high = format_count(self.high)
        text = (
            f"A power of {100 * self.power:g} % takes about {n} rows ({low} to {high})"
        )
        if self.extrapolated:
            text += ", by extrapolation: so many were not simulated"
        return f"{text}."


def solve_for_sample_size(
    rejected: Callable[[int], tuple[int, int]], df: int, power: float, alpha: float
) -> RowsNeeded:
    """Return the n with the wanted power; ``rejected(n)`` simulates: rejections, repetitions."""
    # What a row adds to the noncentrality, from next to nothing to more than any label can show.
    per_row = np.exp(np.linspace(np.log(1e-9), np.log(10.0), 6001))
    noncentrality, powers = _power_curve(df, alpha)
    target = float(np.interp(power, powers, noncentrality))
    tried: dict[int, tuple[int, int]] = {}
    guess = 400
    for _ in range(8):  # sizes tried at most; a round number
        tried[guess] = rejected(guess)
        log_likelihood = np.zeros(len(per_row))
        for n, (n_rejected, reps) in tried.items():
            if 0.5 * guess <= n <= 2.0 * guess:
                rate = np.interp(per_row * n, noncentrality, powers)
                rate = np.clip(rate, 1e-12, 1.0 - 1e-12)
                log_likelihood += n_rejected * np.log(rate)
                log_likelihood += (reps - n_rejected) * np.log1p(-rate)
        wanted = target / float(per_row[int(np.argmax(log_likelihood))])
        # A rate of 0 or 1 says no more than that the answer lies on this side.
        following = int(np.clip(np.ceil(wanted), guess // 8, guess * 8))
        following = min(max(following, 10), MAX_ROWS)
        has_settled = abs(following - guess) <= 0.05 * guess and len(tried) > 1
        if following in tried or has_settled:
            break
        guess = following
    # Likelihood ratio interval: 3.84 is the 95 % quantile of chi-square with one degree of freedom.
    distance = 2.0 * (log_likelihood.max() - log_likelihood)
    inside = per_row[distance <= 3.841458820694124]
    return RowsNeeded(
        power=power,
        n=_round_up_rows(wanted),
        low=_round_up_rows(target / inside[-1]),
        high=_round_up_rows(target / inside[0]),
        extrapolated=wanted > 2.0 * max(tried),
    )


def _power_curve(df: int, alpha: float) -> tuple[Floats, Floats]:
    """Return noncentralities, ascending, and the power of a chi-square test at each."""
    from scipy.special import chdtri, chndtr

    noncentrality = np.exp(np.linspace(np.log(1e-3), np.log(1e4), 4000))
    noncentrality = np.concatenate([[0.0], noncentrality])
    critical = float(chdtri(df, alpha))
    powers = 1.0 - chndtr(critical, float(df), noncentrality)
    return noncentrality, np.maximum.accumulate(
        powers
    )  # rounding must not turn the curve


def _round_up_rows(n: float) -> int:
    """Return a number of rows rounded up, a million millions at most."""
    return int(min(np.ceil(n), 1e12))


ARRAYS = ("pvalues", "pvalues_chi2", "ece_before", "ece_after")
"""What each repetition is measured by."""
TESTS = {
    "chi2": "chi-square p-values",
    "exact": "exact p-values",
    "auto": "p-values exact where chi-square cannot be trusted",
}


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a rate."""
    low, high = wilson_score_interval(
        np.array([hits / trials]), np.array([float(trials)]), 0.95
    )
    return float(low[0]), float(high[0])


@dataclass(frozen=True, eq=False, repr=False)
class PowerCell:
    """The repetitions of one setting.

    Attributes
    ----------
    n : int
        Rows of each simulated table.
    delta_1 : float or None
        The first class's delta; None where the study has one effect for all cells.
    alpha : float
        Level of the test.
    pvalues, pvalues_chi2 : ndarray of shape (reps,)
        Of the study's test, and from chi-square; the same when that is the study's test.
    ece_before, ece_after : ndarray of shape (reps,)
        Expected calibration error (top label, ceil(sqrt n) bins) of the rows as drawn, and after
        the MCLLO map that was fitted to these very rows.

    See Also
    --------
    PowerStudy : All cells of a study.
    power : Makes them.
    mcllo.plot.power : Draws them.

    Notes
    -----
    ``low`` and ``high`` are Wilson's interval [1]_ of ``power``, the share of repetitions that
    reject.

    References
    ----------
    .. [1] E. B. Wilson (1927). Probable inference, the law of succession, and statistical
           inference. Journal of the American Statistical Association 22:209-212.

    Examples
    --------
    >>> from mcllo import simulate
    >>> cell = simulate.power(n_samples=100, delta_1=1.4, n_classes=3, reps=20, seed=5).rows[0]
    >>> cell.n, cell.delta_1, len(cell.pvalues)
    (100, 1.4, 20)
    """

    n: int
    delta_1: float | None
    alpha: float
    pvalues: Floats
    pvalues_chi2: Floats
    ece_before: Floats
    ece_after: Floats

    @property
    def reps(self) -> int:
        """Repetitions."""
        return len(self.pvalues)

    @property
    def power(self) -> float:
        """Part of the repetitions that rejected; the size of the test where H0 holds."""
        return float(np.mean(self.pvalues <= self.alpha))

    @property
    def power_chi2(self) -> float:
        """The same for chi-square p-values."""
        return float(np.mean(self.pvalues_chi2 <= self.alpha))

    @property
    def low(self) -> float:
        """Lower end of the 95 % Wilson interval of `power`."""
        return self._interval[0]

    @property
    def high(self) -> float:
        """Upper end of the 95 % Wilson interval of `power`."""
        return self._interval[1]

    @property
    def _interval(self) -> tuple[float, float]:
        n_rejected = int(np.sum(self.pvalues <= self.alpha))
        return wilson_interval(n_rejected, self.reps)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; ECE as means."""
        values: dict[str, Any] = {"n": self.n}
        if self.delta_1 is not None:
            values["delta_1"] = self.delta_1
        return {
            **values,
            "power": self.power,
            "low": self.low,
            "high": self.high,
            "power_chi2": self.power_chi2,
            "ece_before": float(self.ece_before.mean()),
            "ece_after": float(self.ece_after.mean()),
            "reps": self.reps,
        }

    def __repr__(self) -> str:
        shift = "" if self.delta_1 is None else f", delta_1={self.delta_1:g}"
        return f"PowerCell(n={self.n}{shift}, power={self.power:.3f}, reps={self.reps})"


@dataclass(frozen=True, eq=False, repr=False)
class PowerStudy(Result, NotebookResult):
    """What `power` and `power_for` found; print it for a table.

    Attributes
    ----------
    rows : tuple of PowerCell
        One for each setting.
    test : {'chi2', 'exact', 'auto'}
        Where `PowerCell.pvalues` come from.
    alpha, seed : float, int
        Level of the test, and what the repetitions were made from.
    design, n_classes : str, int
        Where the rows came from, in words, and their number of classes.
    effect : MCLLOMap or None
        The map that labels followed in every row; None where rows differ by `delta_1`.
    needed : RowsNeeded or None
        How many rows the power takes that was asked for; None where none was.

    See Also
    --------
    power : Repeats the paper's study.
    power_for : The same of your own predictions.
    PowerCell : One setting.
    mcllo.plot.power : Draws it.

    Examples
    --------
    >>> from mcllo import simulate
    >>> study = simulate.power(n_samples=100, delta_1=(1.0, 1.4), n_classes=3, reps=20, seed=5)
    >>> study.n_classes, study.test, len(study.rows)
    (3, 'chi2', 2)
    """

    rows: tuple[PowerCell, ...]
    test: str
    alpha: float
    seed: int
    design: str
    n_classes: int
    effect: MCLLOMap | None = None
    needed: RowsNeeded | None = None

    def smallest_n(self, power: float = 0.8) -> int | None:
        """Return the fewest rows simulated whose estimated power was at least `power`.

        None when no row reached it. It is one of the sizes asked for: nothing is interpolated.

        Parameters
        ----------
        power : float
            Wanted share of repetitions that reject.
        """
        if not 0.0 < power <= 1.0:
            raise InputError(f"power must lie in (0, 1]; got power={power}.")
        if self.effect is None:
            raise InputError("smallest_n needs a study of one effect; use power_for.")
        return min((cell.n for cell in self.rows if cell.power >= power), default=None)

    @property
    def table(self) -> Table:
        """A row per setting, ECE as means."""
        rows = [cell.to_dict() for cell in self.rows]
        return Table({name: [row[name] for row in rows] for name in rows[0]})

    def repetitions(self) -> Table:
        """Return a row per repetition: p-values, and ECE before and after."""
        n: list[int] = []
        delta_1: list[float | None] = []
        repetition: list[int] = []
        for cell in self.rows:
            n += [cell.n] * cell.reps
            delta_1 += [cell.delta_1] * cell.reps
            repetition += range(cell.reps)
        columns: dict[str, list[Any]] = {"n": n}
        if self.effect is None:
            columns["delta_1"] = delta_1
        columns["repetition"] = repetition
        for name in ARRAYS:
            values = np.concatenate([getattr(cell, name) for cell in self.rows])
            columns[name.replace("pvalues", "pvalue")] = values.tolist()
        return Table(columns)

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame``, a row per setting."""
        return self.table.to_frame()

    def __repr__(self) -> str:
        return f"<PowerStudy of {len(self.rows)} settings: {self.design}>"

    def __str__(self) -> str:
        reps = ", ".join(
            format_count(reps) for reps in sorted({cell.reps for cell in self.rows})
        )
        columns = self._printed_columns()
        rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
        lines = [
            f"How often calibration is rejected at level {self.alpha:g}",
            f"Test: likelihood ratio, {TESTS[self.test]}",
            f"Rows: {self.design}; {self.n_classes} classes; {reps} repetitions a line; "
            f"seed {self.seed}",
        ]
        if self.effect is not None:
            lines.append(f"Truth: {format_effect(self.effect)}")
        lines += [
            "",
            align_columns(rows, left=0),
            "",
            "rejected: with the 95 % interval of the simulation. ECE: mean before and after MCLLO,",
            "   fitted to the same rows.",
        ]
        footnote = self._footnote()
        if footnote:
            lines.append(footnote)
        return "\n".join(lines)

    def _printed_columns(self) -> dict[str, list[str]]:
        """Return the columns of the printed table."""
        columns = {"n": [format_count(cell.n) for cell in self.rows]}
        if self.effect is None:
            columns["delta_1"] = [
                format_number(cell.delta_1 or 0.0) for cell in self.rows
            ]
        columns["rejected"] = [f"{cell.power:.3f}" for cell in self.rows]
        columns["interval"] = [
            f"[{cell.low:.3f}, {cell.high:.3f}]" for cell in self.rows
        ]
        if self.test != "chi2":
            columns["by chi-square"] = [f"{cell.power_chi2:.3f}" for cell in self.rows]
        columns["ECE"] = [f"{cell.ece_before.mean():.4f}" for cell in self.rows]
        columns["after"] = [f"{cell.ece_after.mean():.4f}" for cell in self.rows]
        return columns

    def _footnote(self) -> str:
        """Return what the table means for the number of rows, or for the size of the test."""
        if self.needed is not None:
            return str(self.needed)
        if self.effect is not None:
            smallest = self.smallest_n()
            if smallest is None:
                return "No n above has an estimated power of 80 %; try larger ones."
            n = format_count(smallest)
            return f"The smallest n above with an estimated power of 80 %: {n}."
        if any(cell.delta_1 == 1.0 for cell in self.rows):
            return "delta_1 = 1: H0 holds, so the rate is the size of the test."
        return ""


def format_effect(effect: MCLLOMap) -> str:
    """Return the parameters that differ from 1, in words: ``gamma 0.80 (baseline c)``."""
    words: list[str] = []
    for name, values in (("delta", effect.delta), ("gamma", effect.gamma)):
        differing = [j for j in range(len(values)) if values[j] != 1.0]
        are_all_alike = len(values) > 1 and (values == values[0]).all()
        if differing and are_all_alike:
            words.append(f"{name} {format_number(values[0])}")
            continue
        named = differing[:4]
        words += [
            f"{name} {format_number(values[j])} for {effect.compared[j]}" for j in named
        ]
        if len(differing) > 4:
            words.append(f"{name} of {len(differing) - 4} more classes")
    parameters = ", ".join(words) or "as predicted"
    return f"{parameters} (baseline {effect.baseline})"
