"""Tables 1 to 4 of the paper, its numbers beside those of our network and our forest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._utils.formatting import Table
from ._printed import METHODS, by_set, format_own_p, format_printed_p, printed
from ._result import Reproduction
from ._rows import Row, compared_rows, parameter_rows
from ._studies import CaseStudy, images, obesity

COLUMNS = """set n paper_statistic statistic paper_p p_chi2 p p_method p_corrected paper_ece ece mce
paper_accuracy accuracy paper_label_change label_change log_loss"""
IMAGES = (
    "Ours: a VGG trained for this package, its 10,000 test images split at random; the paper's "
    "network and split are not public."
)
OBESITY = (
    "Ours: a random forest trained for this package; the paper's forest and split are not public."
)
ERRORS = "Standard errors in brackets. The paper's columns have no names; taken to be alphabetical."
HOW_TO_READ = (
    "p: likelihood ratio test of these probabilities, by chi-square as in the paper; exact: labels "
    "drawn from them, where chi-square cannot be trusted (<=: a guaranteed bound); corr.: is it "
    "the same map in both samples?, which allows for the noise of the fitted map. ECE with "
    "ceil(sqrt n) bins."
)


def table1() -> Reproduction:
    """Return Table 1: delta and gamma of the image network, on X_t and X_h.

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
    study, rows = images(), list[Row]()
    for part, fit in (("X_t", study.fit), ("X_h", study.holdout_fit)):
        rows += parameter_rows(fit, (row for row in printed("table1") if row["part"] == part))
    note = f"Baseline: {study.data.train.baseline}. {ERRORS}"
    return _reproduction("table1", "Table 1", IMAGES, rows, parameter_words(rows, "part"), note)


def table2() -> Reproduction:
    """Return Table 2: the image network before and after each recalibration.

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
    order = ["uncalibrated_train", "uncalibrated", "mcllo"]
    order += ["xu_davoine", "histogram", "temperature", "vector"]
    return _methods("table2", "Table 2", IMAGES, images(), order)


def table3() -> Reproduction:
    """Return Table 3: delta and gamma of the forest.

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
    study = obesity()
    rows = parameter_rows(study.fit, printed("table3"))
    note = f"Baseline: {study.data.train.baseline}. {ERRORS}"
    return _reproduction("table3", "Table 3", OBESITY, rows, parameter_words(rows), note)


def table4() -> Reproduction:
    """Return Table 4: the forest before and after each recalibration; TS is not in the paper's.

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
    order = ["uncalibrated_train", "uncalibrated", "mcllo"]
    order += ["histogram", "xu_davoine", "temperature"]
    return _methods("table4", "Table 4", OBESITY, obesity(), order)


def _methods(
    name: str, title: str, source: str, study: CaseStudy, order: Sequence[str]
) -> Reproduction:
    """Return a table of methods in the paper's order."""
    found = compared_rows(study.comparison, COLUMNS, by_set(name))
    rows = sorted(found, key=lambda row: order.index(row["set"]))
    return _reproduction(name, title, source, rows, method_words(rows), HOW_TO_READ)


def _reproduction(
    name: str, title: str, source: str, rows: Sequence[Row], shown: list[list[str]], note: str
) -> Reproduction:
    """Return a reproduction of rows."""
    table = Table({key: [row[key] for row in rows] for key in rows[0]})
    return Reproduction(name, title, source, table, tuple(map(tuple, shown)), (note,))


def parameter_words(rows: Iterable[Row], *lead: str) -> list[list[str]]:
    """Return estimates as printed, the paper's before ours."""
    lines = [[*lead, "class", "delta: paper", "ours", "gamma: paper", "ours"]]
    for row in rows:
        cells = [str(row[name]) for name in lead] + [str(row["class"]).replace("_", " ")]
        for name in ("delta", "gamma"):
            cells += [_estimate(row, f"paper_{name}", f"paper_se_{name}")]
            cells += [_estimate(row, name, f"se_{name}")]
        lines.append(cells)
    return lines


def _estimate(row: Row, name: str, error: str) -> str:
    """Return an estimate with its standard error, which a separated fit has not."""
    if row[error] is None or row[error] != row[error]:
        return f"{row[name]:.3g} (none)"
    return f"{row[name]:.3f} ({row[error]:.3f})"


def method_words(rows: Iterable[Row]) -> list[list[str]]:
    """Return the judged sets as printed, the paper's numbers before ours."""
    heads = "/n/statistic/ours/p/ours/exact/corr./ECE/ours/MCE/accuracy/ours/changed/ours/log loss"
    return [heads.split("/"), *map(_method_cells, rows)]


def _method_cells(row: Row) -> list[str]:
    """Return one judged set as printed."""
    return [
        METHODS[row["set"]],
        f"{row['n']:.0f}",
        _cell(row["paper_statistic"], ".4g"),
        _cell(row["statistic"], ".1f"),
        format_printed_p(row["paper_p"]),
        format_printed_p(row["p_chi2"]),
        format_own_p(row["p"], row["p_method"]),
        format_own_p(row["p_corrected"]),
        _cell(row["paper_ece"], ".3f"),
        _cell(row["ece"], ".3f"),
        _cell(row["mce"], ".2f"),
        _cell(row["paper_accuracy"], ".1%"),
        _cell(row["accuracy"], ".1%"),
        _cell(row["paper_label_change"], ".2%"),
        _cell(row["label_change"], ".2%"),
        _cell(row["log_loss"], ".3f"),
    ]


def _cell(value: Any, form: str) -> str:
    """Return a number, or a dash."""
    return "-" if value is None else f"{value:{form}}"
