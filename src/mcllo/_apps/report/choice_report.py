"""An assessment of choice sets as one page: what it says, the diagram, positions and subgroups.

Words are the assessment's statements; style, tables and pictures are those of every other report.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._assessment.choice_assessment import ChoiceAssessment
from ..._assessment.verdict import TOLERANCE
from ..._utils.atomic_files import StrPath, check_writable, write_text
from ..._utils.formatting import Table, format_interval, format_number
from ..._utils.statements import Statement, select_statements
from ..._version import __version__
from ...exceptions import InputError
from .facts import today
from .figures import picture
from .html import render_result_page
from .views import Column, TableCell, TableView, name_cell

PROMISE = (
    "Given the probabilities, that each option is right as often as it says leaves nothing "
    "unknown: p-values come from answers drawn from the probabilities, or from chi-square where "
    "the rows suffice for it. The test looks for one slope and shifts of positions; the sizes "
    "assume that nothing else is wrong, but where the text says whatever the kind of error. Rows "
    "are taken to be independent. Not finding miscalibration is not proof of calibration."
)
"""What the numbers rest on."""


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceReport:
    """A report on choice sets, ready to be written.

    Attributes
    ----------
    result : ChoiceAssessment
        What it reports on.
    title : str
        Heading.
    date : str
        When it was made.
    alpha, tolerance : float
        What the verdict was decided with.

    See Also
    --------
    report : Makes it.
    ChoiceAssessment : What it reports on.
    Report : The same of predictions of classes.

    Examples
    --------
    >>> import mcllo
    >>> rows = [[0.7, 0.2, 0.1], [0.6, 0.4], [0.3, 0.3, 0.4], [0.2, 0.8]] * 10
    >>> a = mcllo.assess_choices(rows, [0, 1, 2, 1, 1, 0, 2, 0] * 5, kind="probs", seed=0)
    >>> report = mcllo.report(a, title="Quiz")
    >>> print(report.markdown().splitlines()[0])
    # Quiz
    """

    result: ChoiceAssessment
    title: str
    date: str
    alpha: float
    tolerance: float = TOLERANCE

    def html(self) -> str:
        """Return one page that needs no other file and asks for none."""
        return render_result_page(self._content(with_picture=True), html=True)

    def markdown(self) -> str:
        """Return the words and tables as Markdown."""
        return render_result_page(self._content(with_picture=False), html=False)

    def json(self) -> str:
        """Return every number as strict JSON."""
        content = {"title": self.title, "date": self.date}
        result = self.result.to_dict(self.alpha, self.tolerance)
        return (
            json.dumps(content | {"result": result}, indent=1, allow_nan=False) + "\n"
        )

    def write(self, path: StrPath) -> None:
        """Write the report, as HTML, Markdown or JSON by the ending of `path`; all or nothing.

        Parameters
        ----------
        path : path-like
            Name that ends in ``.html``, ``.htm``, ``.md`` or ``.json``.

        Raises
        ------
        InputError
            When the name has another ending.
        """
        kinds = {
            ".html": self.html,
            ".htm": self.html,
            ".md": self.markdown,
            ".json": self.json,
        }
        kind = Path(path).suffix.lower()
        if kind not in kinds:
            raise InputError(
                f"path must end in .html, .md or .json; got {Path(path).name!r}. "
                "Choose one of these."
            )
        check_writable(path)
        write_text(path, kinds[kind]())

    def __repr__(self) -> str:
        kind = self.result.decide(self.alpha, self.tolerance).kind
        return f"<ChoiceReport {self.title!r}: {kind}>"

    def _content(self, *, with_picture: bool) -> dict[str, Any]:
        """Return what the page shows."""
        a = self.result
        said = a.statements(self.alpha, tolerance=self.tolerance)
        tables = [_position_table(a)]
        if a.by is not None:
            tables.append(_part_table(a.by, f"By {a.by_name}", self.alpha))
        if len(a.option_counts) > 1:
            title = "By number of options"
            tables.append(_part_table(a.option_counts, title, self.alpha))
        pictures = []
        if with_picture:
            alt = "How often the chosen option was right against its probability."
            pictures = [picture("reliability", a, alt)]
        kind = a.decide(self.alpha, self.tolerance).kind
        behind = select_statements(said, "test", "map_fit", "omnibus", "metric")
        return {
            "title": self.title,
            "question": f"{_text(said, 'heading')}.",
            "tone": kind,
            "kind": kind,
            "headline": f"{_text(said, 'verdict')} {_text(said, 'meaning')}",
            "sentences": _sentences(said),
            "step": _text(said, "remedy"),
            "pictures_title": "How often is the chosen option right?",
            "picture_shape": "square",
            "pictures": pictures,
            "tables": tables,
            "promise_title": "Behind it",
            "promise": " ".join([PROMISE, *(f"{s.text}." for s in behind)]),
            "version": __version__,
            "date": self.date,
        }


def make_choice_report(
    result: ChoiceAssessment,
    title: str | None,
    date: str | None,
    alpha: float | None,
    tolerance: float,
) -> ChoiceReport:
    """Return the report of an assessment of choice sets; None stands for the usual."""
    return ChoiceReport(
        result=result,
        title=title or "Calibration of choice sets",
        date=date or today(),
        alpha=result.alpha if alpha is None else alpha,
        tolerance=tolerance,
    )


def _text(said: list[Statement], kind: str) -> str:
    return str(select_statements(said, kind)[0])


def _sentences(said: list[Statement]) -> list[str]:
    """Return what stands below the headline: sizes, what is wrong, what must be known."""
    kinds = ("chosen", "effect_size", "other", "slope", "position", "note")
    found = select_statements(said, *kinds)
    levels = [s for s in found if s.kind == "effect_size.level"]
    sentences = [s.text for s in found if s.kind != "effect_size.level"]
    if levels:
        sentences.insert(1, " ".join(s.text for s in levels))
    return sentences


def _position_table(a: ChoiceAssessment) -> TableView:
    rows = []
    for row in a.positions.rows():
        is_off = row["low"] > 1.0 or row["high"] < 1.0
        shares = [
            TableCell(f"{100 * row[name]:.1f} %", row[name])
            for name in ("chosen", "right", "expected")
        ]
        rows.append(
            (
                name_cell(row["position"]),
                TableCell(f"{row['offered']:,}", row["offered"]),
                *shares,
                TableCell(
                    format_number(row["odds_factor"]),
                    row["odds_factor"],
                    mark="off" if is_off else "",
                    note="favoured or neglected" if is_off else "",
                ),
                TableCell(format_interval(row["low"], row["high"])),
            )
        )
    return TableView(
        "positions",
        "Positions, in the rows that offer them. ◆: the interval of its odds excludes 1.",
        (
            Column("Position", "name"),
            Column("Offered"),
            Column("Chosen", help="it has the largest probability"),
            Column("Right"),
            Column("Expected", help="its mean probability"),
            Column("Odds times", help="to be right, against the median position"),
            Column("Interval", help="all of them hold at once"),
        ),
        tuple(rows),
    )


def _part_table(table: Table, title: str, alpha: float) -> TableView:
    name = table.columns[0]
    rows = []
    for row in table.rows():
        is_off = row["adjusted"] <= alpha
        rows.append(
            (
                name_cell(row[name]),
                TableCell(f"{row['n']:,}", row["n"]),
                TableCell(f"{100 * row['right']:.1f} %", row["right"]),
                TableCell(f"{100 * row['expected']:.1f} %", row["expected"]),
                TableCell(f"{100 * row['difference']:+.1f}", row["difference"]),
                TableCell(format_interval(100 * row["low"], 100 * row["high"])),
                TableCell(
                    format_number(row["adjusted"], 2),
                    row["adjusted"],
                    mark="off" if is_off else "",
                    note="departs" if is_off else "",
                ),
            )
        )
    return TableView(
        "parts-" + name,
        f"{title}: the chosen option, in percentage points. ◆: departs at level {alpha:g}.",
        (
            Column(name.capitalize(), "name"),
            Column("Rows"),
            Column("Right"),
            Column("Expected"),
            Column("Difference"),
            Column("Interval", help="95 %"),
            Column("p", help="after Holm, over all parts"),
        ),
        tuple(rows),
    )
