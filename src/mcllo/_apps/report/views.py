"""What a report shows, as plain frozen values: strings and numbers, nothing to compute with.

`summarize` makes these, `render` reads them. A number that a table can be sorted by travels beside
its text, and a name that was cut travels beside its full form.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from ..._assessment.verdict import Kind
from ..._comparison.recommend import Recommendation
from ..._utils.formatting import PStyle, ellipsis, format_count, pvalue_text
from ..._utils.statements import Level

NAME_WIDTH = 32


@dataclass(frozen=True)
class TableCell:
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
    """Head of a column; `kind` is ``name``, ``number`` or ``words`` (``text`` on a card)."""

    title: str
    kind: Literal["name", "number", "words", "text"] = "number"
    help: str = ""


@dataclass(frozen=True)
class TableView:
    """A table with its caption; `key` names it for tests and anchors."""

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]

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
class ClassSentence:
    """A sentence that may name classes, each with words of its own; names are kept apart.

    `rest` says how many more there are, `after` follows in sentences of its own. `but` marks what
    takes something back that was said before it.
    """

    lead: str
    names: tuple[tuple[TableCell, str], ...] = ()
    rest: str = ""
    after: str = ""
    but: bool = False


@dataclass(frozen=True)
class Part:
    """One detail of an assessment: what was found or why it is left out, and what must be known."""

    lead: str
    table: TableView | None = None
    notes: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class DetailsView:
    """What lies behind the verdict, as `details` tells it."""

    nested_models: Part
    baselines: Part
    zeros: Part
    posterior: Part
    robust: Part | None
    subgroups: Part | None
    decisions: Part | None = None


@dataclass(frozen=True)
class NextStep:
    """Something to do next, with the code that does it."""

    text: str
    code: str = ""


@dataclass(frozen=True)
class VerdictView:
    """The answer, in sentences that do not say more than the test does.

    Attributes
    ----------
    kind : {'miscalibrated', 'negligible', 'not_detected', 'inconclusive'}
        That of the assessment.
    about : str
        What is judged, where that is not clear.
    headline, sentence, size : str
        The answer, what it means, and how large the error is.
    buts : tuple of str
        What takes it back, in part or as a whole.
    pvalue, how, why, other : str
        The evidence, for further down: that of the test, how and why so, and that of other tests
        which do not agree.
    gain : str
        By how much a recalibration lowers the log loss of rows it was not learned from.
    """

    kind: Kind
    about: str
    headline: str
    buts: tuple[str, ...]
    sentence: str
    size: str
    pvalue: str
    how: str
    why: str
    other: str
    gain: str


@dataclass(frozen=True)
class AccuracyAtLevel:
    """What it says, and how often it is right then."""

    says: str
    right: str
    interval: str


@dataclass(frozen=True)
class Recalibrations:
    """The comparison of recalibrations.

    `headline` and `sentence` are the recommendation in plain words; `after` says whether the
    recommended recalibration leaves something.
    """

    recommendation: Recommendation
    headline: str
    sentence: str
    after: str
    table: TableView
    notes: tuple[str, ...]
    warnings: tuple[Fact, ...]


@dataclass(frozen=True)
class RecalibrationEffect:
    """What the recommended recalibration does to the judged rows, and to which classes."""

    method: str
    title: str
    lead: str
    classes: TableView
    rows: TableView


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
class Card:
    """What a notebook shows of one result.

    Attributes
    ----------
    kind : str
        Name of the result's class.
    level : Level
        How a reader should take the headline.
    lead, headline : str
        What was looked at, and the answer.
    buts, sentences : tuple of str
        What takes it back, and what else is said.
    facts : tuple of Fact
        A few numbers.
    svg : str
        One picture.
    table, more : TableView or None, str
        A table, and what it leaves out.
    text : str
        Words in columns, where there is nothing better.
    hint : tuple of (str, str)
        What else there is, and the code for it.
    """

    kind: str
    level: Level = "plain"
    lead: str = ""
    headline: str = ""
    buts: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    svg: str = ""
    table: TableView | None = None
    more: str = ""
    text: str = ""
    hint: tuple[tuple[str, str], ...] = ()


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
    wrong : tuple of ClassSentence
        Which classes are miscalibrated, and how, in plain words.
    alerts, notes : tuple of str
        What must be known before trusting the numbers: prominent, and beside the data.
    steps : tuple of Step
        What to do next.
    facts : tuple of Fact
        The few numbers of the first screen.
    attribution : Part
        Which classes are miscalibrated, with its numbers; or why nobody can be named.
    shares : TableView
        Predicted and observed shares.
    expected, null_distributions : TableView, Part
        What is expected under calibration; what calibrated predictions would show.
    map : Part or None
        Estimates against the baseline; None for a comparison, whose map is the one that it judged.
    effect : RecalibrationEffect or None
        What the best recalibration of a comparison does.
    details : DetailsView or None
        What lies behind the verdict; None for a comparison, which does not ask.
    more : Step or None
        For a comparison, how to ask.
    recalibrations : Recalibrations or None
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
    verdict: VerdictView
    levels: tuple[AccuracyAtLevel, ...]
    wrong: tuple[ClassSentence, ...]
    alerts: tuple[str, ...]
    notes: tuple[str, ...]
    steps: tuple[NextStep, ...]
    facts: tuple[Fact, ...]
    attribution: Part
    shares: TableView
    expected: TableView
    null_distributions: Part
    map: Part | None
    effect: RecalibrationEffect | None
    details: DetailsView | None
    more: NextStep | None
    recalibrations: Recalibrations | None
    data: tuple[Fact, ...]
    method: tuple[Fact, ...]
    references: tuple[Fact, ...]
    reproduce: tuple[Fact, ...]
    version: str
    date: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return asdict(self)


def name_cell(label: object, width: int = NAME_WIDTH) -> TableCell:
    """Return a class name as a cell: on one line, cut, with the full name beside it."""
    full = str(label)
    text = ellipsis(full, width)
    return TableCell(text or "(empty)", title="" if text == full else full)


def show_p(pvalue: float, method: str = "") -> str:
    """Return a p-value as people write it; that of `method` ``"bound"`` is at most so large."""
    return str(typeset(pvalue, bound=method == "bound"))


typeset: PStyle = partial(pvalue_text, typeset=True)
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
