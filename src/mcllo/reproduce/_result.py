"""`Reproduction`: a table or figure of the paper, with the paper's numbers beside ours."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from .._utils.atomic_files import StrPath
from .._utils.formatting import Table, align
from .._utils.results import none_for_nan
from ..exceptions import InputError
from ..plot import save
from ._printed import PAPER

MAX_LINE_WIDTH = 100


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

    The paper is [1]_.

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
        lines = [f"{self.title} of {PAPER}", *textwrap.wrap(self.source, MAX_LINE_WIDTH), ""]
        lines += [align(self.shown), ""] if self.shown else []
        for note in self.notes:
            lines += textwrap.wrap(note, MAX_LINE_WIDTH)
        return "\n".join(lines).rstrip()

    def __repr__(self) -> str:
        return f"<Reproduction of {self.name}: {len(self.table)} rows>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "rows": none_for_nan(self.table.rows()),
            "notes": list(self.notes),
        }

    def save(self, path: StrPath) -> None:
        """Write the figure (.svg, .png, .pdf), or the numbers of a table (.csv).

        Parameters
        ----------
        path : path-like
            Name that ends in ``.svg``, ``.png``, ``.pdf`` or ``.csv``.

        Raises
        ------
        InputError
            Where a table is to be drawn, or the ending is unknown.
        """
        if str(path).lower().endswith(".csv"):
            self.table.to_csv(path)
        elif self.axes is None:
            raise InputError(f"{self.name} is a table: write it as .csv, not as {path}.")
        else:
            save(self.axes, path)
