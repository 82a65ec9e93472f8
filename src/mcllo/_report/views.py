"""What a report shows, as plain frozen values: strings and numbers, nothing to compute with.

`summarize` makes these, `render` reads them. A number that a table can be sorted by travels beside
its text, and a name that was cut travels beside its full form.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from .._assessment.verdict import Kind
from .._ground.text import PStyle, ellipsis, format_count, p_words
from .._workflows.recommend import Recommendation

NAME_WIDTH = 32


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    `sort` is what to sort by (the text when None), `title` the full text where it was cut. `mark`
    is ``best``, ``tie`` (cannot be told from the best), ``off`` (excludes what calibration would
    give) or nothing, and `note` says what it means, for people who do not see it.
    """

    text: str
    sort: float | None = None
    title: str = ""
    mark: Literal["", "best", "tie", "off"] = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """Head of a column; `kind` is ``name``, ``number`` or ``words``."""

    title: str
    kind: Literal["name", "number", "words"] = "number"
    help: str = ""


@dataclass(frozen=True)
class TableView:
    """A table with its caption; `key` names it for tests and anchors."""

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def is_tall(self) -> bool:
        """Whether it should scroll inside a box of its own."""
        return len(self.rows) > 16


@dataclass(frozen=True)
class Fact:
    """A number with its name, and what it means."""

    key: str
    name: str
    value: str
    note: str = ""
    is_label: bool = False


@dataclass(frozen=True)
class Names:
    """Words, then classes each with words of its own, then how many more; names kept apart."""

    lead: str
    names: tuple[tuple[Cell, str], ...] = ()
    rest: str = ""


@dataclass(frozen=True)
class Part:
    """One detail of an assessment: what was found or why it is left out, and what must be known."""

    lead: str
    table: TableView | None = None
    notes: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class DetailsView:
    """What lies behind the verdict, as `details` tells it.

    `classes_note` says how the p-values of single classes were computed, or why there are none.
    """

    ladder: Part
    classes: tuple[Names, ...]
    classes_note: str
    baselines: Part
    zeros: Part
    posterior: Part
    robust: Part | None
    subgroups: Part | None


@dataclass(frozen=True)
class Step:
    """Something to do next, with the code that does it."""

    text: str
    code: str = ""


@dataclass(frozen=True)
class Verdict:
    """The answer, in sentences that do not say more than the test does.

    `size` says how large the departure is, `but` what speaks against the headline; `pvalue`, `how`
    and `why` are the evidence, for further down.
    """

    kind: Kind
    headline: str
    sentence: str
    size: str
    but: str
    pvalue: str
    how: str
    why: str


@dataclass(frozen=True)
class Right:
    """What it says, and how often it is right then."""

    says: str
    right: str
    interval: str


@dataclass(frozen=True)
class Repairs:
    """The comparison of repairs; `after` says whether the recommended one leaves something."""

    recommendation: Recommendation
    after: str
    table: TableView
    notes: tuple[str, ...]
    warnings: tuple[Fact, ...]


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, how to read it, and what it shows for people who hear the page.

    `narrow` is the same figure for a phone; empty where `svg` suits both.
    """

    key: str
    svg: str
    narrow: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Summary:
    """Everything a report says.

    Attributes
    ----------
    kind : {'assessment', 'comparison'}
        What was reported on.
    title, lead : str
        Heading, and what was read.
    verdict : Verdict
        The answer.
    levels : tuple of Right
        How often it is right, at a few levels.
    wrong : tuple of str
        Whose fault it is, and how; or why nobody can be named.
    alerts, notes : tuple of str
        What must be known before trusting the numbers: prominent, and beside the data.
    steps : tuple of Step
        What to do next.
    facts : tuple of Fact
        The few numbers of the first screen.
    classes_lead : str
        What the table of estimates shows.
    parameters, null_table, shares : TableView
        Estimates; what calibration would show; predicted and observed shares.
    null_lead : str
        What the null ranges mean here.
    details : DetailsView or None
        What lies behind the verdict; None for a comparison, which does not ask.
    repairs : Repairs or None
        The comparison, if there was one.
    data, reproduce : tuple of Fact
        What was read and changed; how to get the same numbers.
    method : tuple of Fact
        The method in plain words, formulas as values.
    references : tuple of Fact
        Whom to cite; the value is an address.
    version, date : str
        What made it, and when.
    """

    kind: Literal["assessment", "comparison"]
    title: str
    lead: str
    verdict: Verdict
    levels: tuple[Right, ...]
    wrong: tuple[str, ...]
    alerts: tuple[str, ...]
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    facts: tuple[Fact, ...]
    classes_lead: str
    parameters: TableView
    null_lead: str
    null_table: TableView
    shares: TableView
    details: DetailsView | None
    repairs: Repairs | None
    data: tuple[Fact, ...]
    method: tuple[Fact, ...]
    references: tuple[Fact, ...]
    reproduce: tuple[Fact, ...]
    version: str
    date: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return asdict(self)


def name_cell(label: object, width: int = NAME_WIDTH) -> Cell:
    """Return a class name as a cell: on one line, cut, with the full name beside it."""
    full = str(label)
    text = ellipsis(full, width)
    return Cell(text or "(empty)", title="" if text == full else full)


def show_p(pvalue: float, method: str = "") -> str:
    """Return a p-value as people write it; that of `method` ``"bound"`` is at most so large."""
    return str(typeset(pvalue, bound=method == "bound"))


typeset: PStyle = partial(p_words, typeset=True)
"""How a page writes p-values."""


def percent(share: float) -> str:
    """Return a share in per cent, with one decimal."""
    return f"{100 * share:.1f} %"


def format_weight(weight: float) -> str:
    """Return a count, or a total weight that is no whole number."""
    return format_count(weight) if weight == round(weight) else f"{weight:,.1f}"


def capital(text: str) -> str:
    """Return `text` with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def uncapital(text: str) -> str:
    """Return `text` with a small letter at its beginning."""
    return text[:1].lower() + text[1:]
