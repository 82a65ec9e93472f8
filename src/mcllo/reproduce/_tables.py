"""Tables 1 to 4 of the paper, its numbers beside those of our network and our forest.

The three studies behind the paper's tables and figures are each computed once:

================  ============================================================================
`images`          a VGG of ours on CIFAR-10, 8,000 images to learn from (X_t), 2,000 to judge
                  on (X_h): Tables 1 and 2, Figures 1 and 5
`obesity`         a forest of ours, 396 people and 132: Tables 3 and 4, Figure 6
`simulation`      30 settings of 1,000 data sets each: Figures 2 to 4, the table of rates. Every
                  p-value and ECE is in ``data/power.npz``; ``python -m studies simulate`` makes it
================  ============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from .._comparison.compare import compare
from .._comparison.comparison import Comparison
from .._fit.fit import MCLLOFit, fit_predictions
from .._utils.formatting import Table
from .._utils.statements import suppress_warnings
from .._validation.predictions import Predictions
from ..datasets import Dataset, load_cifar10_vgg, load_obesity_forest
from ..exceptions import InputError
from ..metrics import maximum_calibration_error
from ..simulate._study import PowerCell, PowerStudy
from ._result import (
    METHODS,
    Reproduction,
    format_own_p,
    format_printed_p,
    printed,
    read_printed_rows_by_set,
)

Row = dict[str, Any]
PARAMETERS = ("delta", "se_delta", "gamma", "se_gamma")
SEED = 0


def fit_maximum_likelihood(predictions: Predictions) -> MCLLOFit:
    """Return the maximum likelihood fit; a separated one says so by its standard errors."""
    with suppress_warnings():
        return fit_predictions(predictions)


def compare_methods(
    train: Predictions, holdout: Predictions, methods: Sequence[str], **options: Any
) -> Comparison:
    """Return the comparison of these methods; what it warns of stands in the rows."""
    with suppress_warnings():
        return compare(train, holdout, methods=methods, seed=SEED, **options)


def compared_rows(
    c: Comparison,
    columns: str,
    paper: Mapping[str, Mapping[str, Any]] | None = None,
    **more: Any,
) -> list[Row]:
    """Return these columns of a comparison; ``paper_x`` is what the paper has for x."""
    names = columns.split()
    printed_by_method = {} if paper is None else paper
    rows = []
    for row in c.rows:
        known: Row = {
            "set": row.method,
            "p_chi2": float(chdtrc(row.df, row.statistic)),
            "p": row.pvalue,
            "p_method": row.pvalue_method,
            "p_corrected": row.pvalue_corrected,
            "log_loss_above_best": row.log_loss_difference,
            "zero_labels": row.n_zero_labels,
            **more,
        }
        paper_row = printed_by_method.get(row.method, {})
        for name in names:
            if name.startswith("paper_"):
                known[name] = paper_row.get(name.removeprefix("paper_"))
            elif name == "mce":
                known[name] = maximum_calibration_error(
                    None, probabilities_of_method(c, row.method)
                )
            elif name not in known:
                known[name] = getattr(row, name)
        rows.append({name: known[name] for name in names})
    return rows


def probabilities_of_method(c: Comparison, method: str) -> Predictions:
    """Return the probabilities that a row of a comparison is about."""
    return c.train if method == "uncalibrated_train" else c.recalibrated[method]


def parameter_rows(fit: MCLLOFit, paper: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the paper's estimates, a row for each class, and ours."""
    printed_by_class = {row["class"]: row for row in paper}
    unknown = dict.fromkeys(next(iter(printed_by_class.values())))
    rows = []
    for row in fit.parameters().rows():
        ours = {name: row[name] for name in PARAMETERS}
        of_paper = printed_by_class.get(
            row["class"], {**unknown, "class": row["class"]}
        )
        rows.append({**of_paper, **ours})
    return rows


MAX_RESAMPLES = 1999
"""Labels are drawn anew up to so many times for an exact p-value."""
IMAGE_METHODS = ("mcllo", "temperature", "vector", "histogram", "xu_davoine")
OBESITY_METHODS = ("mcllo", "histogram", "xu_davoine", "temperature")
ROWS_FROM = "Dirichlet(3, 0.3, ..., 0.3)"
ALPHA = 0.05  # the paper's level
STUDY_SEED = 18573  # the last digits of the paper's number in arXiv
ECE_UNIT = 1e-5  # ECE is kept in these units, as whole numbers
CELL_COLUMNS = ("n", "delta_1", "p", "p_chi2", "ece_before", "ece_after")


@dataclass(frozen=True, eq=False)
class GivenData:
    """Somebody's predictions in the place of the package's, for the paper's tables."""

    train: Predictions
    holdout: Predictions


Pair = tuple[Predictions, Predictions]
"""Rows to learn from, and rows to judge on."""


@dataclass(frozen=True, eq=False)
class CaseStudy:
    """A data set and its methods; fits and comparison are computed when they are asked for."""

    data: Dataset | GivenData
    methods: tuple[str, ...]
    source: str = ""

    @cached_property
    def fit(self) -> MCLLOFit:
        """The fit on the rows to learn from."""
        return fit_maximum_likelihood(self.data.train)

    @cached_property
    def holdout_fit(self) -> MCLLOFit:
        """The fit on the rows to judge on, which Table 1 has too."""
        return fit_maximum_likelihood(self.data.holdout)

    @cached_property
    def comparison(self) -> Comparison:
        """Every method, learned on the first rows and judged on the others."""
        data = self.data
        return compare_methods(
            data.train, data.holdout, self.methods, n_resamples=MAX_RESAMPLES
        )


@cache
def images() -> CaseStudy:
    """Return the study of CIFAR-10."""
    return CaseStudy(load_cifar10_vgg(), IMAGE_METHODS, IMAGES)


@cache
def obesity() -> CaseStudy:
    """Return the study of the forest."""
    return CaseStudy(load_obesity_forest(), OBESITY_METHODS, OBESITY)


GIVEN = (
    "Ours: the predictions that were given, {n_train:,} rows to learn from and "
    "{n_holdout:,} to judge on."
)


def given_or(own: Callable[[], CaseStudy], data: Pair | None) -> CaseStudy:
    """Return the package's study, or the same of predictions that were given.

    Both parts refer to the baseline of the rows to learn from.
    """
    if data is None:
        return own()
    train, holdout = data
    if train.classes != holdout.classes:
        raise InputError(
            "both parts of {argument} must have the same classes in the same order; got "
            "{train} and {holdout}.",
            argument="data",
            values={
                "train": list(train.classes)[:6],
                "holdout": list(holdout.classes)[:6],
            },
        )
    pair = GivenData(train, holdout.with_baseline(train.baseline))
    source = GIVEN.format(n_train=train.n_samples, n_holdout=holdout.n_samples)
    methods = own().methods
    if train.logits is None or holdout.logits is None:
        # as in the paper, which leaves out what needs logits where there are none
        methods = tuple(name for name in methods if name != "vector")
    return CaseStudy(pair, methods, source)


@cache
def simulation() -> PowerStudy:
    """Return the paper's 30 settings."""
    content = (files(__package__) / "data" / "power.npz").read_bytes()
    with np.load(BytesIO(content)) as file:
        return unpack_part(dict(file), "grid")


def unpack_part(
    arrays: dict[str, NDArray[Any]],
    part: str,
    test: str = "chi2",
    rows_from: str = ROWS_FROM,
) -> PowerStudy:
    """Return a part of the long run from its arrays, which are named ``part/what``.

    Each has a row for each setting; ECE is in units of 1e-5, and NaN where it was left out.
    """
    own = {}
    for what in CELL_COLUMNS:
        if f"{part}/{what}" in arrays:
            own[what] = arrays[f"{part}/{what}"]
    left_out = np.full(own["p_chi2"].shape, np.nan)
    pvalues = own.get("p", own["p_chi2"])
    ece_before = own.get("ece_before", left_out)
    ece_after = own.get("ece_after", left_out)
    cells = []
    for i, n in enumerate(own["n"]):
        shift = float(own["delta_1"][i])
        cell = PowerCell(
            n=int(n),
            delta_1=None if np.isnan(shift) else shift,
            alpha=ALPHA,
            pvalues=pvalues[i].astype(np.float64),
            pvalues_chi2=own["p_chi2"][i].astype(np.float64),
            ece_before=ece_before[i] * ECE_UNIT,
            ece_after=ece_after[i] * ECE_UNIT,
        )
        cells.append(cell)
    return PowerStudy(tuple(cells), test, ALPHA, STUDY_SEED, rows_from, n_classes=10)


COLUMNS = """set n paper_statistic statistic paper_p p_chi2 p p_method p_corrected paper_ece ece mce
paper_accuracy accuracy paper_label_change label_change log_loss"""
IMAGES = (
    "Ours: a VGG trained for this package, its 10,000 test images split at random; the paper's "
    "network and split are not public."
)
OBESITY = (
    "Ours: a random forest trained for this package; the paper's "
    "forest and split are not public."
)
ERRORS = "Standard errors in brackets. The paper's columns have no names; taken to be alphabetical."
HOW_TO_READ = (
    "p: likelihood ratio test of these probabilities, by chi-square as in the paper; exact: labels "
    "drawn from them, where chi-square cannot be trusted (<=: a guaranteed bound); corr.: is it "
    "the same map in both samples?, which allows for the noise of the fitted map. ECE with "
    "ceil(sqrt n) bins."
)


def table1(data: Pair | None = None) -> Reproduction:
    """Return Table 1: delta and gamma of the image network, on X_t and X_h.

    Parameters
    ----------
    data : pair of Predictions, optional
        Rows to learn from and rows to judge on, instead of those that the package carries.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    table3 : The same of the forest.
    figure1 : What the map does to two images.
    reproduce : By name.

    Notes
    -----
    Table 1 of [1]_, with our network beside the paper's numbers.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> found = table1()
    >>> found.table["paper_gamma"][:2], len(found.table)
    ([0.705, 0.679], 18)
    """
    study = given_or(images, data)
    rows: list[Row] = []
    for part, fit in (("X_t", study.fit), ("X_h", study.holdout_fit)):
        paper = [row for row in printed("table1") if row["part"] == part]
        rows += [{**row, "part": part} for row in parameter_rows(fit, paper)]
    shown = format_parameter_rows(rows, "part")
    note = f"Baseline: {study.data.train.baseline}. {ERRORS}"
    return _reproduction("table1", "Table 1", study.source, rows, shown, note)


def table2(data: Pair | None = None) -> Reproduction:
    """Return Table 2: the image network before and after each recalibration.

    Parameters
    ----------
    data : pair of Predictions, optional
        Rows to learn from and rows to judge on, instead of those that the package carries.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    figure5 : Reliability before and after.
    table4 : The same of the forest.
    printed : What the paper prints.
    reproduce : By name.

    Notes
    -----
    Table 2 of [1]_, with our network beside the paper's numbers.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> print(table2())  # doctest: +SKIP
    """
    order = [
        "uncalibrated_train",
        "uncalibrated",
        "mcllo",
        "xu_davoine",
        "histogram",
        "temperature",
        "vector",
    ]
    return _methods_table("table2", "Table 2", given_or(images, data), order)


def table3(data: Pair | None = None) -> Reproduction:
    """Return Table 3: delta and gamma of the forest.

    Parameters
    ----------
    data : pair of Predictions, optional
        Rows to learn from and rows to judge on, instead of those that the package carries.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    table1 : The same of the image network.
    table4 : What the map does to the scores.
    reproduce : By name.

    Notes
    -----
    Table 3 of [1]_, with our forest beside the paper's numbers.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> found = table3()
    >>> len(found.table)
    6
    """
    study = given_or(obesity, data)
    rows = parameter_rows(study.fit, printed("table3"))
    shown = format_parameter_rows(rows)
    note = f"Baseline: {study.data.train.baseline}. {ERRORS}"
    return _reproduction("table3", "Table 3", study.source, rows, shown, note)


def table4(data: Pair | None = None) -> Reproduction:
    """Return Table 4: the forest before and after each recalibration; TS is not in the paper's.

    Parameters
    ----------
    data : pair of Predictions, optional
        Rows to learn from and rows to judge on, instead of those that the package carries.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    See Also
    --------
    figure6 : Reliability before and after.
    table2 : The same of the image network.
    printed : What the paper prints.
    reproduce : By name.

    Notes
    -----
    Table 4 of [1]_, with our forest beside the paper's numbers.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> print(table4())  # doctest: +SKIP
    """
    order = [
        "uncalibrated_train",
        "uncalibrated",
        "mcllo",
        "histogram",
        "xu_davoine",
        "temperature",
    ]
    return _methods_table("table4", "Table 4", given_or(obesity, data), order)


def _methods_table(
    name: str, title: str, study: CaseStudy, order: Sequence[str]
) -> Reproduction:
    """Return a table of methods in the paper's order."""
    rows = compared_rows(study.comparison, COLUMNS, read_printed_rows_by_set(name))
    rows.sort(
        key=lambda row: order.index(row["set"])
    )  # the paper's tables differ in their order
    return _reproduction(
        name, title, study.source, rows, format_method_rows(rows), HOW_TO_READ
    )


def _reproduction(
    name: str,
    title: str,
    source: str,
    rows: Sequence[Row],
    shown: list[list[str]],
    note: str,
) -> Reproduction:
    """Return a reproduction of rows."""
    table = Table({key: [row[key] for row in rows] for key in rows[0]})
    lines = tuple(tuple(line) for line in shown)
    return Reproduction(name, title, source, table, lines, (note,))


def format_parameter_rows(rows: Iterable[Row], *lead: str) -> list[list[str]]:
    """Return estimates as printed, the paper's before ours."""
    lines = [[*lead, "class", "delta: paper", "ours", "gamma: paper", "ours"]]
    for row in rows:
        cells = [str(row[name]) for name in lead]
        cells.append(str(row["class"]).replace("_", " "))
        for name in ("delta", "gamma"):
            cells.append(_format_estimate(row, f"paper_{name}", f"paper_se_{name}"))
            cells.append(_format_estimate(row, name, f"se_{name}"))
        lines.append(cells)
    return lines


def _format_estimate(row: Row, name: str, error: str) -> str:
    """Return an estimate with its standard error, which a separated fit has not."""
    standard_error = row[error]
    if row[name] is None:
        return "-"
    if standard_error is None or np.isnan(standard_error):
        return f"{row[name]:.3g} (none)"
    return f"{row[name]:.3f} ({standard_error:.3f})"


def format_method_rows(rows: Iterable[Row]) -> list[list[str]]:
    """Return the judged sets as printed, the paper's numbers before ours."""
    heads = [
        "",
        "n",
        "statistic",
        "ours",
        "p",
        "ours",
        "exact",
        "corr.",
        "ECE",
        "ours",
        "MCE",
        "accuracy",
        "ours",
        "changed",
        "ours",
        "log loss",
    ]
    return [heads, *(_format_method_row(row) for row in rows)]


def _format_method_row(row: Row) -> list[str]:
    """Return one judged set as printed."""
    return [
        METHODS[row["set"]],
        f"{row['n']:.0f}",
        _format_or_dash(row["paper_statistic"], ".4g"),
        _format_or_dash(row["statistic"], ".1f"),
        format_printed_p(row["paper_p"]),
        format_printed_p(row["p_chi2"]),
        format_own_p(row["p"], row["p_method"]),
        format_own_p(row["p_corrected"]),
        _format_or_dash(row["paper_ece"], ".3f"),
        _format_or_dash(row["ece"], ".3f"),
        _format_or_dash(row["mce"], ".2f"),
        _format_or_dash(row["paper_accuracy"], ".1%"),
        _format_or_dash(row["accuracy"], ".2%"),
        _format_or_dash(row["paper_label_change"], ".2%"),
        _format_or_dash(row["label_change"], ".2%"),
        _format_or_dash(row["log_loss"], ".3f"),
    ]


def _format_or_dash(value: Any, form: str) -> str:
    """Return a number, or a dash."""
    return "-" if value is None else f"{value:{form}}"
