"""`BaselineSensitivity`: what changes with the baseline, as a table and in a sentence."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ._fit import none_for_nan
from ._table import Table
from ._text import ellipsis, format_interval, format_number, format_p

LEVEL = 0.05
"""Level at which the decisions of the single tests are compared."""

_SCALARS = (
    "reference",
    "max_score",
    "pvalue",
    "method",
    "n_resamples",
    "seed",
    "mean_range",
    "largest_range",
    "label_disagreement",
    "n_classes",
    "verdict",
    "notes",
)
_SHOWN = ("baseline", "statistic", "pvalue", "largest_change", "mean_change", "label_changes")


@dataclass(frozen=True, eq=False, repr=False)
class BaselineSensitivity:
    """What changes with the baseline; print it for a table and a verdict.

    Attributes
    ----------
    table : Table
        A row for each baseline: `statistic`, `df`, `pvalue` (chi-square, of this baseline alone),
        `log_likelihood`, `score`; `largest_change` and `mean_change` of a recalibrated probability
        and `label_changes`, the part of the rows whose most probable class changes, all against
        the reference; `separated`, `converged`.
    reference : label
        The baseline the others are compared with: that of the predictions, by default the last.
    max_score : float
        The largest score statistic.
    pvalue : float
        Of `max_score`: valid over all the baselines in the table.
    method : {'exact', 'bonferroni'}
        How it was computed; see `MaxScore`.
    n_resamples : int
        Draws made.
    seed : int or None
        What the draws were made from.
    mean_range, largest_range : float
        How far a recalibrated probability of these rows moves over all baselines.
    label_disagreement : float
        Part of the rows on whose most probable class the fits do not agree.
    n_classes : int
        Classes; more than rows of the table when only some baselines were asked for.
    """

    table: Table
    reference: Hashable
    max_score: float
    pvalue: float
    method: str
    n_resamples: int
    seed: int | None
    mean_range: float
    largest_range: float
    label_disagreement: float
    n_classes: int

    @property
    def verdict(self) -> str:
        """One sentence: how far the statistic and the repaired probabilities move."""
        if self.n_classes == 2:
            return "with two classes all baselines give the same fit."
        low, high = min(self.table["statistic"]), max(self.table["statistic"])
        return (
            f"{self._answer()}: statistic {format_number(low)} to {format_number(high)}; repaired "
            f"probabilities move by {format_number(self.mean_range)} on average, "
            f"{format_number(self.largest_range)} at most."
        )

    def _answer(self) -> str:
        p = self.table["pvalue"]
        if len({value <= LEVEL for value in p}) == 1:
            return "the test decision does not hang on the baseline"
        between = format_interval(min(p), max(p))
        return f"the test decision hangs on the baseline (p in {between}; use the one over all)"

    @property
    def notes(self) -> list[str]:
        """What must be known before trusting the numbers: fits that do not exist, what was left."""
        separated, converged = self.table["separated"], self.table["converged"]
        flat = [not (s or c) for s, c in zip(separated, converged, strict=True)]
        lines = self._about(separated, "the estimate does not exist (separated labels)")
        lines += self._about(flat, "the estimate is not determined (flat likelihood)")
        if len(self.table) < self.n_classes:
            lines.append(f"{len(self.table)} of {self.n_classes} baselines were tried.")
        return lines

    def _about(self, marks: list[bool], what: str) -> list[str]:
        pairs = zip(self.table["baseline"], marks, strict=True)
        bad = [ellipsis(label) for label, mark in pairs if mark]
        if not bad:
            return []
        names = ", ".join(bad[:6]) + (", ..." if len(bad) > 6 else "")
        return [
            f"for {len(bad)} of {len(marks)} baselines ({names}) {what}: their statistics hold, "
            "their repaired probabilities have no meaning."
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what does not exist is None."""
        content = {name: getattr(self, name) for name in _SCALARS}
        plain: dict[str, Any] = none_for_nan({**content, "rows": self.table.rows()})
        return plain

    def __str__(self) -> str:
        shown = Table({name: self.table[name] for name in _SHOWN})
        how = f"exact, {self.n_resamples:,} simulated data sets"
        if self.method == "bonferroni":
            how = "chi-square with Bonferroni: fractional weights cannot be simulated"
        lines = [
            self.verdict[0].upper() + self.verdict[1:],
            f"Over all baselines: largest score statistic {format_number(self.max_score, 4)}, "
            f"p {format_p(self.pvalue)} ({how})",
            *(f"Note: {note}" for note in self.notes),
            f"Changes of repaired probabilities are against baseline {ellipsis(self.reference)!r}",
        ]
        return "\n".join([*lines, str(shown)])

    def __repr__(self) -> str:
        return (
            f"BaselineSensitivity(n_baselines={len(self.table)}, reference={self.reference!r}, "
            f"max_score={self.max_score:.6g}, pvalue={self.pvalue:.6g})"
        )
