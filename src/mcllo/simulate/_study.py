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

`PowerStudy`: how often a test rejected, with the Monte Carlo interval of that rate.

Of R repetitions r rejected. Wilson's interval of ``r / R`` (`metrics/_reliability`) stays inside
[0, 1] and is honest where that is 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._fit.map import MCLLOMap
from .._utils.formatting import Table, align, format_count, format_number
from .._utils.notebook import NotebookResult
from .._utils.results import Floats, Result
from ..exceptions import InputError
from ..metrics._reliability import wilson

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


ARRAYS = ("pvalues", "pvalues_chi2", "ece_before", "ece_after")
"""What each repetition is measured by."""
TESTS = {
    "chi2": "chi-square p-values",
    "exact": "exact p-values",
    "auto": "p-values exact where chi-square cannot be trusted",
}


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a rate."""
    low, high = wilson(np.array([hits / trials]), np.array([float(trials)]), 0.95)
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
        return wilson_interval(int(np.sum(self.pvalues <= self.alpha)), self.reps)[0]

    @property
    def high(self) -> float:
        """Upper end of the 95 % Wilson interval of `power`."""
        return wilson_interval(int(np.sum(self.pvalues <= self.alpha)), self.reps)[1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; ECE as means."""
        shift = {} if self.delta_1 is None else {"delta_1": self.delta_1}
        rates = {name: getattr(self, name) for name in ("power", "low", "high", "power_chi2")}
        errors = {name: float(getattr(self, name).mean()) for name in ("ece_before", "ece_after")}
        return {"n": self.n, **shift, **rates, **errors, "reps": self.reps}

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
        each = [(cell, r) for cell in self.rows for r in range(cell.reps)]
        columns: dict[str, list[Any]] = {"n": [cell.n for cell, _ in each]}
        if self.effect is None:
            columns["delta_1"] = [cell.delta_1 for cell, _ in each]
        columns["repetition"] = [r for _, r in each]
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
        reps = ", ".join(format_count(r) for r in sorted({cell.reps for cell in self.rows}))
        columns = {
            "n": [format_count(cell.n) for cell in self.rows],
            "delta_1": [format_number(cell.delta_1 or 0.0) for cell in self.rows],
            "rejected": [f"{cell.power:.3f}" for cell in self.rows],
            "interval": [f"[{cell.low:.3f}, {cell.high:.3f}]" for cell in self.rows],
            "by chi-square": [f"{cell.power_chi2:.3f}" for cell in self.rows],
            "ECE": [f"{cell.ece_before.mean():.4f}" for cell in self.rows],
            "after": [f"{cell.ece_after.mean():.4f}" for cell in self.rows],
        }
        if self.test == "chi2":
            del columns["by chi-square"]
        truth, footnotes = [], []
        if self.effect is not None:
            del columns["delta_1"]
            truth, found = [f"Truth: {effect_words(self.effect)}"], self.smallest_n()
            footnotes = ["No n above has an estimated power of 80 %; try larger ones."]
            if found is not None:
                smallest = "The smallest n above with an estimated power of 80 %"
                footnotes = [f"{smallest}: {format_count(found)}."]
        elif any(cell.delta_1 == 1.0 for cell in self.rows):
            footnotes = ["delta_1 = 1: H0 holds, so the rate is the size of the test."]
        if self.needed is not None:
            footnotes = [str(self.needed)]
        lines = [
            f"How often calibration is rejected at level {self.alpha:g}",
            f"Test: likelihood ratio, {TESTS[self.test]}",
            f"Rows: {self.design}; {self.n_classes} classes; {reps} repetitions a line; "
            f"seed {self.seed}",
            *truth,
            "",
            align([list(columns), *map(list, zip(*columns.values(), strict=True))], left=0),
            "",
            "rejected: with the 95 % interval of the simulation. ECE: mean before and after MCLLO,",
            "   fitted to the same rows.",
            *footnotes,
        ]
        return "\n".join(lines)


def effect_words(effect: MCLLOMap) -> str:
    """Return the parameters that differ from 1, in words: ``gamma 0.80 (baseline c)``."""
    words = []
    for name, values in (("delta", effect.delta), ("gamma", effect.gamma)):
        if len(values) > 1 and values[0] != 1.0 and (values == values[0]).all():
            words.append(f"{name} {format_number(values[0])}")
            continue
        apart = [j for j in range(len(values)) if values[j] != 1.0]
        words += [f"{name} {format_number(values[j])} for {effect.compared[j]}" for j in apart[:4]]
        words += [f"{name} of {len(apart) - 4} more classes"] if len(apart) > 4 else []
    return f"{', '.join(words) or 'as predicted'} (baseline {effect.baseline})"
