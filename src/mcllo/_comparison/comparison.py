"""`Comparison`: the table of `compare`; it prints, and turns into a frame or JSON."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, fields
from typing import Any

from .._utils.formatting import (
    Table,
    align_columns,
    format_count,
    join_words,
    pvalue_text,
)
from .._utils.notebook import NotebookResult
from .._utils.results import Result, none_for_nonfinite
from .._utils.statements import Statement, drop_repeated_statements, select_statements
from .._utils.terminal import terminal_width
from .._validation.predictions import Predictions
from ..metrics._vega import SCHEMA, Chart, quantitative
from .recommend import LOSS_TIE_TOL, Recommendation

HIGHER_IS_BETTER = ("accuracy",)
BEST_MARK = "*"
TIE_MARK = "~"
TEXT_WIDTH = 100
LEFT_OUT_FIRST = (
    *("fit s", "cw ECE ", "Brier ", "changed %", "n", "ECE ", "acc % "),
    *("statistic", "df"),
)
"""Columns that a narrow terminal leaves out, in this order. What stays is what the recommendation
rests on: the method, its p-values, its log loss and how far that is from the best."""
TEST_WORDS = {
    "auto": "likelihood ratio test; exact where chi-square cannot be trusted",
    "chi2": "likelihood ratio statistic, df, p by chi-square whatever the number of rows",
    "exact": "likelihood ratio test, exact",
    "sequential": "likelihood ratio test, exact",
}
"""What the table's p-values are, by how they were asked for."""


@dataclass(frozen=True, eq=False)
class ComparisonRow(Result):
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
    corrected_method : str
        How that was computed: as `pvalue_method`; ``'bootstrap'`` where labels of both samples were
        drawn anew; empty where there is none.
    corrected_reason : str
        Why it was drawn anew, or is withheld; empty where nothing needs saying.
    accuracy, log_loss, brier, ece, classwise_ece : float
        As in `mcllo.metrics`, zeros clipped to 1e-6 first.
    label_change : float or None
        Fraction of rows whose most probable class changed.
    log_loss_difference, difference_low, difference_high : float
        Log loss less that of the best row, with the interval of `Comparison.recommendation`: for
        all methods at once.
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
    corrected_method: str
    corrected_reason: str
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

    @property
    def correction(self) -> Statement | None:
        """What must be said of the corrected p-value: that labels were drawn anew, or none is."""
        if not self.corrected_reason:
            return None
        numbers = {"method": self.method, "pvalue": self.pvalue_corrected}
        numbers["why"] = self.corrected_reason
        if self.pvalue_corrected is None:
            words = (
                f"There is no corrected p of {self.method}: in "
                f"training, {self.corrected_reason}."
            )
            return Statement("correction", words, "doubt", numbers)
        words = (
            f"The corrected p of {self.method} is by drawing the labels of both samples anew: in "
            f"training, {self.corrected_reason}."
        )
        return Statement("correction", words, numbers=numbers)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(NotebookResult):
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
        What folds and draws were made from.
    recommendation : Recommendation
        The method of smallest log loss, how sure its lead is, and what else would do.
    test_method : str
        How p-values were asked for, ``'auto'`` or as in `calibration_test`.

    See Also
    --------
    compare : Makes it.
    Recommendation : Which method, and how sure that is.
    report : A page that can be read without statistics.
    mcllo.plot.comparison : Draws it.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
    >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
    >>> train, holdout = (probs[:20], y[:20]), (probs[20:], y[20:])
    >>> c = mcllo.compare(train, holdout, methods=["temperature"], n_resamples=19, seed=0)
    >>> [row.method for row in c.rows]
    ['uncalibrated_train', 'uncalibrated', 'temperature']
    """

    rows: tuple[ComparisonRow, ...]
    skipped: dict[str, str]
    train: Predictions
    holdout: Predictions
    recalibrated: dict[str, Predictions]
    cross_validated: bool
    seed: int
    recommendation: Recommendation
    test_method: str = "auto"

    @property
    def judged(self) -> tuple[ComparisonRow, ...]:
        """The rows that share the judged set: all but the training rows."""
        return tuple(row for row in self.rows if row.method != "uncalibrated_train")

    @property
    def best(self) -> str:
        """The method of smallest log loss on the judged rows, the simplest of equal ones."""
        return self.recommendation.method

    @property
    def ranked(self) -> tuple[ComparisonRow, ...]:
        """The judged rows by log loss, the recommended one first."""
        others = (other.method for other in self.recommendation.differences)
        return tuple(self[method] for method in (self.best, *others))

    def has_best(self, row: ComparisonRow, column: str) -> bool:
        """Return whether a row has the best value of a column among the judged rows."""
        if row.method == "uncalibrated_train":
            return False
        values = [float(getattr(other, column)) for other in self.judged]
        best = max(values) if column in HIGHER_IS_BETTER else min(values)
        return abs(float(getattr(row, column)) - best) <= LOSS_TIE_TOL

    def statements(self) -> tuple[Statement, ...]:
        """Return everything that is said beside the table, in the order in which it is printed.

        Kinds: ``heading``; ``recommendation``, ``lead``, ``ties`` and ``intervals`` of
        `recommendation`; ``marks`` and ``columns``, which explain the table; ``correction``, of a
        corrected p-value that is drawn or withheld; ``zeros``; ``warning`` and ``skipped``, one for
        each method concerned; ``note.*``, what was assumed of the files.
        """
        n_train = self.train.n_samples
        n_judged = self.holdout.n_samples
        how = (
            "cross-validated"
            if self.cross_validated
            else "judged on rows they never saw"
        )
        what = "baseline" if self.train.offered is None else "reference position"
        heading = Statement(
            "heading",
            f"Recalibration methods, {how} (fitted on {format_count(n_train)} rows, "
            f"judged on {format_count(n_judged)}; {what}: {self.train.baseline})",
            numbers={"n_train": n_train, "n_holdout": n_judged},
        )
        return (heading, *self.recommendation.statements, *self._footnote_statements())

    def __getitem__(self, method: str) -> ComparisonRow:
        return {row.method: row for row in self.rows}[method]

    @property
    def table(self) -> Table:
        """All rows and columns."""
        names = [field.name for field in fields(ComparisonRow)]
        return Table(
            {name: [getattr(row, name) for row in self.rows] for name in names}
        )

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame``, a row per method."""
        return self.table.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "skipped": dict(self.skipped),
            "best": self.best,
            "recommendation": self.recommendation.to_dict(),
            "cross_validated": self.cross_validated,
            "n_train": self.train.n_samples,
            "n_holdout": self.holdout.n_samples,
            "classes": list(self.train.classes),
            "baseline": self.train.baseline,
            "seed": self.seed,
            "test_method": self.test_method,
            "notes": [
                {"kind": note.kind, "text": note.text} for note in self._input_notes
            ],
        }

    def to_vega(self) -> dict[str, Any]:
        """Return p-value, ECE and log loss of each method as a dictionary of Vega-Lite.

        For Weights & Biases, notebooks and web pages, without matplotlib.

        Returns
        -------
        dict
            Plain values, ready for JSON; the best log loss is on top.

        Examples
        --------
        >>> import mcllo
        >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
        >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
        >>> train, holdout = (probs[:20], y[:20]), (probs[20:], y[20:])
        >>> c = mcllo.compare(train, holdout, methods=["temperature"], n_resamples=19, seed=0)
        >>> len(c.to_vega()["hconcat"])
        3
        """
        return comparison_chart(self)

    @property
    def _input_notes(self) -> tuple[Statement, ...]:
        """What was assumed when the rows were read from files."""
        return drop_repeated_statements((*self.train.notes, *self.holdout.notes))

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.judged) - 1} methods on {self.holdout.n_samples} rows>"

    def __str__(self) -> str:
        return self.to_text(terminal_width())

    def to_text(self, width: int | None = None) -> str:
        """Return the table and what it means as text.

        Parameters
        ----------
        width : int, optional
            Characters of a line: columns that do not fit are left out, first the time to fit, then
            class-wise ECE, Brier score, changed labels, rows, ECE, accuracy, and the statistic with
            its degrees of freedom; a line names them. Default: all columns. ``print`` takes the
            width of the terminal; `to_frame` and `to_dict` always have all.

        Returns
        -------
        str

        Examples
        --------
        >>> import mcllo
        >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]] * 10
        >>> y = [0, 1, 2, 0, 1, 2, 0, 1] * 5
        >>> train, holdout = (probs[:20], y[:20]), (probs[20:], y[20:])
        >>> c = mcllo.compare(train, holdout, methods=["temperature"], n_resamples=19, seed=0)
        >>> "fit s" in c.to_text().splitlines()[2], "fit s" in c.to_text(80).splitlines()[2]
        (True, False)
        """
        cells = [self._cell_texts(row) for row in self.rows]
        table, left_out = _fit_columns(cells, width)
        text_width = TEXT_WIDTH if width is None else min(TEXT_WIDTH, max(width, 40))
        said = self.statements()
        heading = [line.text for line in select_statements(said, "heading")]
        if width is not None:
            heading = [textwrap.fill(text, text_width) for text in heading]
        lines = [*heading, "", table, ""]
        if left_out:
            names = join_words([name.strip() for name in left_out])
            words = f"Left out for the width: {names} (--json and to_frame() have all)."
            lines += [textwrap.fill(words, text_width), ""]
        lines += [textwrap.fill(str(self.recommendation), text_width), ""]
        for note in select_statements(said, "marks", "columns", "correction"):
            lines.append(textwrap.fill(note.text, text_width, subsequent_indent="   "))
        for note in select_statements(said, "zeros", "warning", "skipped"):
            is_narrow = width is not None
            lines.append(
                textwrap.fill(note.text, text_width) if is_narrow else note.text
            )
        for note in select_statements(said, "note"):
            lines.append(
                textwrap.fill(f"Note: {note.text}", text_width, subsequent_indent="   ")
            )
        return "\n".join(lines)

    def _footnote_statements(self) -> list[Statement]:
        """Say what marks and columns mean and what they do not, and what single methods met."""
        found = [
            Statement(
                "marks", f"{BEST_MARK} best value of its column among the judged rows."
            ),
            Statement(
                "columns",
                f"p: are these numbers calibrated? ({TEST_WORDS[self.test_method]}). A large p "
                "is not proof of calibration, and the largest is not the best.",
            ),
        ]
        if any(row.pvalue_corrected is not None for row in self.rows):
            words = (
                "p corr.: is it the same map in both samples? A fitted map carries the noise of "
                "the rows it was fitted on, which makes the plain p too small; this one allows "
                "for it."
            )
            found.append(Statement("columns", words))
        corrections = [row.correction for row in self.rows]
        found += [said for said in corrections if said is not None]
        if self.recommendation.differences:
            words = (
                "worse than best by: log loss, with the recommendation's intervals; "
                f"{TIE_MARK} cannot be told from the best."
            )
            ties = self.recommendation.ties
            found.append(Statement("columns", words, numbers={"ties": ties}))
        zeros = {
            row.method: row.n_zero_labels for row in self.rows if row.n_zero_labels
        }
        if zeros:
            counts = ", ".join(f"{method} {count}" for method, count in zeros.items())
            words = f"Labels that came true with probability 0 (clipped to 1e-6 here): {counts}."
            found.append(Statement("zeros", words, "doubt", zeros))
        for row in self.rows:
            if row.note:
                numbers = {"method": row.method, "why": row.note}
                found.append(
                    Statement("warning", f"{row.method}: {row.note}", "doubt", numbers)
                )
        for method, why in self.skipped.items():
            numbers = {"method": method, "why": why}
            found.append(
                Statement("skipped", f"skipped {method}: {why}", "doubt", numbers)
            )
        return [*found, *self._input_notes]

    def _cell_texts(self, row: ComparisonRow) -> dict[str, str]:
        """Return the text of a row under the heads of the columns."""

        def marked(name: str, text: str) -> str:
            return text + (BEST_MARK if self.has_best(row, name) else " ")

        other = self.recommendation.difference(row.method)
        if row.method == self.best:
            worse = "best "
        elif other is None:
            worse = ""
        else:
            worse = other.cell + (" " if other.is_clearly_worse else TIE_MARK)
        test = {}
        if self.test_method == "chi2":
            test = {"statistic": f"{row.statistic:.2f}", "df": str(row.df)}
        classwise = {}
        if not math.isnan(row.classwise_ece):  # choice sets have none
            classwise["cw ECE "] = marked("classwise_ece", f"{row.classwise_ece:.4f}")
        return {
            "method": row.method.replace("uncalibrated_train", "uncalibrated (train)"),
            "n": format_count(row.n),
            **test,
            "p": _format_pvalue(row.pvalue, row.pvalue_method),
            "p corr.": _format_pvalue(row.pvalue_corrected, row.corrected_method),
            "ECE ": marked("ece", f"{row.ece:.4f}"),
            **classwise,
            "acc % ": marked("accuracy", f"{100 * row.accuracy:.2f}"),
            "changed %": ""
            if row.label_change is None
            else f"{100 * row.label_change:.2f}",
            "log loss ": marked("log_loss", f"{row.log_loss:.4f}"),
            "worse than best by ": worse,
            "Brier ": marked("brier", f"{row.brier:.4f}"),
            "fit s": "" if row.fit_seconds is None else f"{row.fit_seconds:.3f}",
        }


def _fit_columns(
    cells: list[dict[str, str]], width: int | None
) -> tuple[str, list[str]]:
    """Return the table in at most `width` characters, and the columns left out for that."""
    heads = list(cells[0])
    waiting = [name for name in LEFT_OUT_FIRST if name in heads]
    left_out: list[str] = []
    while True:
        rows = [[row[name] for name in heads] for row in cells]
        table = align_columns([heads, *rows])
        longest = max(len(line) for line in table.splitlines())
        if width is None or longest <= width or not waiting:
            return table, left_out
        name = waiting.pop(0)
        heads.remove(name)
        left_out.append(name)


def _format_pvalue(pvalue: float | None, method: str) -> str:
    """Return a p-value as a cell; a bound says so: ``<= 1.0e-300``."""
    if pvalue is None:
        return ""
    words = pvalue_text(pvalue, bound=method == "bound")
    return words.number if words.relation == "=" else str(words)


def comparison_chart(comparison: Comparison) -> Chart:
    """Return three panels that share their rows: p-value, ECE, log loss above the best."""
    columns = ("method", "pvalue", "pvalue_corrected", "ece", "log_loss")
    intervals = ("log_loss_difference", "difference_low", "difference_high")
    rows = []
    for row in comparison.ranked:
        values = {name: getattr(row, name) for name in (*columns, *intervals)}
        rows.append(none_for_nonfinite(values))
    methods = [row["method"] for row in rows]
    y: Chart = {"field": "method", "type": "nominal", "sort": methods, "title": None}
    no_labels = {**y, "axis": None}
    point = {"type": "point", "filled": True, "tooltip": True}
    log_scale = {"type": "log"}
    pvalue = {
        "mark": point,
        "encoding": {
            "x": quantitative("pvalue", "p-value (log scale)", scale=log_scale),
            "y": y,
        },
    }
    ece = {
        "mark": point,
        "encoding": {"x": quantitative("ece", "ECE (probability)"), "y": no_labels},
    }
    title = "Log loss above the best (nats)"
    low_to_high = {
        "x": quantitative("difference_low", title),
        "x2": {"field": "difference_high"},
        "y": no_labels,
    }
    lead = {"x": quantitative("log_loss_difference", title), "y": no_labels}
    log_loss = {
        "layer": [
            {"mark": {"type": "rule"}, "encoding": low_to_high},
            {"mark": point, "encoding": lead},
        ]
    }
    return {
        "$schema": SCHEMA,
        "description": "Recalibration methods on rows they did not learn from, the best on top.",
        "data": {"values": rows},
        "hconcat": [pvalue, ece, log_loss],
    }
