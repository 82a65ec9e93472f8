"""`Comparison`: the table of `compare`; it prints, and turns into a frame or JSON."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from .._ground.results import none_for_nan
from .._ground.text import Table, align, format_count, format_p
from .._input.predictions import Predictions
from .recommend import Recommendation, recommend

LOWER_IS_BETTER = ("ece", "classwise_ece", "log_loss", "brier")
HIGHER_IS_BETTER = ("accuracy",)
MARK = "*"
WIDTH = 100


@dataclass(frozen=True, eq=False)
class ComparisonRow:
    """One set of probabilities, judged.

    Attributes
    ----------
    method : str
        Key of `CALIBRATORS`, ``uncalibrated`` or ``uncalibrated_train``.
    n : int
        Rows judged.
    statistic, df, pvalue, pvalue_method
        The calibration test of these numbers; how the p-value was computed.
    pvalue_corrected : float or None
        The p-value of "the same map in both samples", where there is theory for it.
    accuracy, log_loss, brier, ece, classwise_ece : float
        As in `mcllo.metrics`, zeros raised to 1e-6 first.
    label_change : float or None
        Fraction of rows whose most probable class changed.
    log_loss_difference, difference_low, difference_high : float
        Log loss less that of the best row, with a paired bootstrap interval of 95 %, each by
        itself; those of `Comparison.recommendation` hold for all methods at once.
    fit_seconds : float or None
        Time to fit.
    n_zero_labels : int
        Labels that came true with probability 0.
    note : str
        What the method warned of.
    """

    method: str
    n: int
    statistic: float
    df: int
    pvalue: float
    pvalue_method: str
    pvalue_corrected: float | None
    label_change: float | None
    accuracy: float
    log_loss: float
    brier: float
    ece: float
    classwise_ece: float
    log_loss_difference: float
    difference_low: float
    difference_high: float
    fit_seconds: float | None
    n_zero_labels: int
    note: str


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found; print it for a table.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        The uncalibrated rows first, then one for each method.
    skipped : dict of str to str
        Methods that were not run, and why.
    train, holdout : Predictions
        What was learned from and judged on (the same object for cross-validation).
    recalibrated : dict of str to Predictions
        The judged rows after each method.
    cross_validated : bool
        Whether rows were judged by maps fitted on other folds.
    seed : int
        What folds, draws and bootstrap were made from.
    """

    rows: tuple[ComparisonRow, ...]
    skipped: dict[str, str]
    train: Predictions
    holdout: Predictions
    recalibrated: dict[str, Predictions]
    cross_validated: bool
    seed: int

    @property
    def judged(self) -> tuple[ComparisonRow, ...]:
        """The rows that share the judged set: all but the training rows."""
        return tuple(row for row in self.rows if row.method != "uncalibrated_train")

    @property
    def best(self) -> str:
        """The method of smallest log loss on the judged rows."""
        return min(self.judged, key=lambda row: row.log_loss).method

    @cached_property
    def recommendation(self) -> Recommendation:
        """The method of smallest log loss, how sure its lead is, and what else would do."""
        sets = {row.method: self.recalibrated[row.method] for row in self.judged}
        return recommend(sets, cross_validated=self.cross_validated)

    def __getitem__(self, method: str) -> ComparisonRow:
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(method)

    @property
    def table(self) -> Table:
        """All rows and columns."""
        names = [field.name for field in fields(ComparisonRow)]
        return Table({name: [getattr(row, name) for row in self.rows] for name in names})

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame``, a row per method."""
        return self.table.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "rows": [none_for_nan(asdict(row)) for row in self.rows],
            "skipped": dict(self.skipped),
            "best": self.best,
            "recommendation": self.recommendation.to_dict(),
            "cross_validated": self.cross_validated,
            "n_train": self.train.n_samples,
            "n_holdout": self.holdout.n_samples,
            "classes": list(self.train.classes),
            "baseline": self.train.baseline,
            "seed": self.seed,
        }

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.judged) - 1} methods on {self.holdout.n_samples} rows>"

    def __str__(self) -> str:
        how = "cross-validated" if self.cross_validated else "judged on rows they never saw"
        head = (
            f"Recalibration methods, {how} (fitted on {format_count(self.train.n_samples)} rows, "
            f"judged on {format_count(self.holdout.n_samples)}; baseline: {self.train.baseline})"
        )
        lines = [head, "", align([_HEAD, *(self._cells(row) for row in self.rows)]), ""]
        lines += [textwrap.fill(str(self.recommendation), WIDTH), ""]
        lines += [f"{MARK} best value of its column among the judged rows."]
        lines += footnotes(self)
        return "\n".join(lines)

    def _cells(self, row: ComparisonRow) -> list[str]:
        return [
            row.method.replace("uncalibrated_train", "uncalibrated (train)"),
            format_count(row.n),
            _p(row.pvalue, row.pvalue_method),
            _p(row.pvalue_corrected),
            f"{row.ece:.4f}" + self._mark(row, "ece"),
            f"{row.classwise_ece:.4f}" + self._mark(row, "classwise_ece"),
            f"{100 * row.accuracy:.2f}" + self._mark(row, "accuracy"),
            "" if row.label_change is None else f"{100 * row.label_change:.2f}",
            f"{row.log_loss:.4f}" + self._mark(row, "log_loss"),
            _difference(row),
            f"{row.brier:.4f}" + self._mark(row, "brier"),
            "" if row.fit_seconds is None else f"{row.fit_seconds:.3f}",
        ]

    def _mark(self, row: ComparisonRow, name: str) -> str:
        if row not in self.judged:
            return " "
        values = [getattr(other, name) for other in self.judged]
        best = max(values) if name in HIGHER_IS_BETTER else min(values)
        return MARK if getattr(row, name) == best else " "


_HEAD = [
    "method",
    "n",
    "p",
    "p corr.",
    "ECE ",
    "cw ECE ",
    "acc % ",
    "changed %",
    "log loss ",
    "worse than best by",
    "Brier ",
    "fit s",
]


def footnotes(comparison: Comparison) -> list[str]:
    """Return what the columns mean and what they do not."""
    lines = [
        "p: are these numbers calibrated? (likelihood ratio test; exact where chi-square cannot be",
        "   trusted). A large p is not proof of calibration, and the largest is not the best.",
    ]
    if any(row.pvalue_corrected is not None for row in comparison.rows):
        lines += [
            "p corr.: is it the same map in both samples? A fitted map carries the noise of the",
            "   rows it was fitted on, which makes the plain p too small; this one allows for it.",
        ]
    lines += ["worse than best by: log loss, each with its own 95 % paired bootstrap interval."]
    zeros = [row for row in comparison.rows if row.n_zero_labels]
    if zeros:
        counts = ", ".join(f"{row.method} {row.n_zero_labels}" for row in zeros)
        lines += [f"Labels that came true with probability 0 (raised to 1e-6 here): {counts}."]
    lines += [f"{row.method}: {row.note}" for row in comparison.rows if row.note]
    lines += [f"skipped {name}: {why}" for name, why in comparison.skipped.items()]
    return lines


def _p(pvalue: float | None, method: str = "") -> str:
    """Return a p-value as a cell; a bound says so: ``<= 1.0e-300``."""
    if pvalue is None:
        return ""
    text = format_p(pvalue)
    return text.replace("=", "<=") if method == "bound" else text.removeprefix("= ")


def _difference(row: ComparisonRow) -> str:
    if row.log_loss_difference != row.log_loss_difference:
        return ""
    if row.log_loss_difference == 0.0:
        return "best"
    return f"{row.log_loss_difference:.4f} [{row.difference_low:.4f}, {row.difference_high:.4f}]"
