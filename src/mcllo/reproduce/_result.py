"""What the paper prints, and what is made again beside it.

Vennos, Xing and Franck (2026), *Multiclass Calibration Assessment and Recalibration of Probability
Predictions via the Linear Log Odds Calibration Function*, arXiv 2602.18573. The columns of its
Tables 1 and 3 have no names, and are taken to be the classes in alphabetical order. A p-value
printed as "< 0.001" stays these words, `BELOW_PRINTED`: it is no number.

`Reproduction`: a table or figure of the paper, with the paper's numbers beside ours.
"""

from __future__ import annotations

import csv
import textwrap
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from matplotlib.axes import Axes

from .._utils.atomic_files import StrPath, write_text
from .._utils.formatting import (
    Table,
    align_columns,
    escape_latex,
    latex_table,
    pvalue_text,
)
from .._utils.results import none_for_nonfinite
from ..exceptions import InputError
from ..plot import save

PAPER = "Vennos, Xing and Franck (2026)"
MIN_PRINTED_PVALUE = 0.001  # smaller ones are printed as below it
BELOW_PRINTED = f"<{MIN_PRINTED_PVALUE:g}"
METHODS = {
    "uncalibrated_train": "X_t",
    "uncalibrated": "X_h",
    "mcllo": "MCLLO",
    "temperature": "TS",
    "vector": "VS",
    "histogram": "EB",
    "xu_davoine": "Xu",
}
"""The paper's names, in the order of its Figure 5."""
LONG_METHOD_NAMES = {
    "uncalibrated": "As predicted (Xₕ)",
    "mcllo": "MCLLO",
    "temperature": "Temperature scaling (TS)",
    "vector": "Vector scaling (VS)",
    "histogram": "Histogram binning (EB)",
    "xu_davoine": "Xu and others (Xu)",
}


@cache
def printed(table: str) -> tuple[dict[str, Any], ...]:
    """Return the rows of one of the paper's tables as the paper prints them.

    Parameters
    ----------
    table : str
        Which one, ``"table1"`` to ``"table4"``.

    Returns
    -------
    tuple of dict
        A row each; numbers as numbers, "<0.001" as it stands, None where the paper has nothing.

    See Also
    --------
    reproduce : The paper's numbers beside ours.
    table2 : One of the tables.
    Reproduction : What the tables are.

    Notes
    -----
    The numbers are copied from [1]_.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> printed("table2")[2]["p"], printed("table4")[0]["p"]
    (0.133, '<0.001')
    """
    path = files(__package__) / "printed" / f"{table}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(_parse_line(line) for line in csv.DictReader(lines))


def read_printed_rows_by_set(table: str) -> dict[str, dict[str, Any]]:
    """Return Table 2 or 4 by the set of probabilities."""
    return {row["set"]: row for row in printed(table)}


def format_printed_p(pvalue: float | str | None) -> str:
    """Return a p-value as the paper prints it.

    Examples
    --------
    >>> format_printed_p(0.133), format_printed_p(0.0004), format_printed_p(None)
    ('0.133', '<0.001', '-')
    >>> format_printed_p("<0.001")
    '<0.001'
    """
    if pvalue is None:
        return "-"
    if isinstance(pvalue, str):
        return pvalue
    if pvalue < MIN_PRINTED_PVALUE:
        return BELOW_PRINTED
    return f"{pvalue:.3f}"


def format_own_p(pvalue: float | None, method: str = "exact") -> str:
    """Return an exact p-value of ours, or a bound; a dash where chi-square is trusted.

    Examples
    --------
    >>> format_own_p(0.034), format_own_p(1e-9, "bound")
    ('0.034', '<= 1.0e-09')
    >>> format_own_p(0.2, "chi2"), format_own_p(None)
    ('-', '-')
    """
    if pvalue is None or method == "chi2":
        return "-"
    return pvalue_text(pvalue, bound=method == "bound").without_equals


def _parse_line(line: dict[str, str]) -> dict[str, Any]:
    """Return a row of a table by column."""
    return {name: _parse_cell(cell) for name, cell in line.items()}


def _parse_cell(cell: str) -> float | str | None:
    """Return a number where it is one, None where there is nothing."""
    try:
        return float(cell)
    except ValueError:
        return cell or None


@dataclass(frozen=True, eq=False, repr=False)
class Reproduction:
    """A table or figure of the paper, made again; print it for the table.

    Attributes
    ----------
    name : str
        ``table2``, ``figure5``, and so on.
    title : str
        What it is, with the paper's number.
    source : str
        What ours is made from, where the paper's own data are not public.
    table : Table
        The numbers; ``paper_x`` is what the paper prints for x.
    shown : tuple of tuple of str
        The numbers as they are printed, heads first.
    notes : tuple of str
        What to know when reading it.
    axes : list of Axes or None
        The figure, if it is one.

    See Also
    --------
    reproduce : Makes one by its name.
    printed : What the paper prints.
    table2 : One of the tables.

    Notes
    -----
    The paper is [1]_.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> from mcllo.reproduce import table3
    >>> made = table3()
    >>> made.name, made.axes is None
    ('table3', True)
    """

    name: str
    title: str
    source: str
    table: Table
    shown: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    axes: list[Axes] | None = None

    def __str__(self) -> str:
        width = 100  # of a terminal, and of the other texts of this package
        lines = [f"{self.title} of {PAPER}", *textwrap.wrap(self.source, width), ""]
        if self.shown:
            lines += [align_columns(self.shown), ""]
        for note in self.notes:
            lines += textwrap.wrap(note, width)
        return "\n".join(lines).rstrip()

    def __repr__(self) -> str:
        return f"<Reproduction of {self.name}: {len(self.table)} rows>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "rows": none_for_nonfinite(self.table.rows()),
            "notes": list(self.notes),
        }

    def to_latex(self, path: StrPath | None = None) -> str:
        r"""Return what is printed as a LaTeX table, with the rules of the package booktabs.

        Parameters
        ----------
        path : path-like, optional
            Where it is written too: whole, or not at all.

        Returns
        -------
        str
            A floating table: title, the numbers as they are printed, notes.

        Examples
        --------
        >>> from mcllo.reproduce import table3
        >>> print(table3().to_latex()[:33])
        \begin{table}
        \centering
        \caption
        """
        caption = " ".join((f"{self.title} of {PAPER}.", self.source, *self.notes))
        caption = escape_latex(caption.replace("<=", "≤"))
        rows = [[_latex_cell(cell) for cell in line] for line in self.shown]
        sides = "l" + "r" * (len(rows[0]) - 1)
        text = latex_table(rows, sides, caption=caption, label=f"tab:{self.name}")
        if path is not None:
            write_text(path, text)
        return text

    def save(self, path: StrPath) -> None:
        """Write the figure (.svg, .png, .pdf), or its numbers (.csv; .tex as printed).

        Parameters
        ----------
        path : path-like
            Name that ends in ``.svg``, ``.png``, ``.pdf``, ``.csv`` or ``.tex``.

        Raises
        ------
        InputError
            Where a table is to be drawn, or the ending is unknown.
        """
        if str(path).lower().endswith(".csv"):
            self.table.to_csv(path)
        elif str(path).lower().endswith(".tex"):
            self.to_latex(path)
        elif self.axes is None:
            raise InputError(
                f"{self.name} is a table: write it as .csv or .tex, not as {path}."
            )
        else:
            save(self.axes, path)


LATEX_CELLS = {"X_t": "$X_t$", "X_h": "$X_h$", "-": "--"}
"""Cells that are formulas, and what is no number."""


def _latex_cell(text: str) -> str:
    """Return a cell as LaTeX prints it; relations stand in formulas."""
    if text in LATEX_CELLS:
        return LATEX_CELLS[text]
    for relation, command in (("<= ", r"\le "), ("<", "<")):
        if text.startswith(relation):
            number = text.removeprefix(relation)
            mantissa, exponent, power = number.partition("e")
            if exponent:
                number = rf"{mantissa} \times 10^{{{int(power)}}}"
            return f"${command}{number}$"
    return escape_latex(text)
