"""What must hold of every answer.

===================  ==========================================================================
refused              an error of mcllo: one line that is a sentence, no foreign exception
probabilities        finite, not negative, rows that sum to 1
`Predictions`        codes that are columns, classes that differ
numbers of a file    those that Python's csv module, or Arrow itself, reads there
a page               parses; no element and no attribute that a name brought along
what is printed      no control character beside tab and the end of a line
===================  ==========================================================================
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, TypeVar

import numpy as np

from mcllo import Predictions
from mcllo.exceptions import MclloError

Found = TypeVar("Found")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
LONGEST = 3000
"""Characters of an error."""


class Broken(AssertionError):  # noqa: N818 - what it says is what is wrong
    """A property does not hold."""


def must(holds: bool, what: str) -> None:
    """Refuse an answer."""
    if not holds:
        raise Broken(what)


def allowed(call: Callable[[], Found]) -> Found | None:
    """Return what a call returns; None where mcllo refuses it in one sentence."""
    try:
        return call()
    except MclloError as error:
        said = str(error)
        must(bool(said.strip()), "an error without words")
        must(len(said.splitlines()) == 1, f"an error of several lines: {said!r}")
        must(len(said) <= LONGEST, f"an error of {len(said)} characters")
        return None


def probabilities(table: Any, n_classes: int) -> None:
    """Check rows of probabilities."""
    must(table.ndim == 2 and table.shape[1] == n_classes, f"shape {table.shape}")
    must(bool(np.isfinite(table).all()), "a probability that is not finite")
    must(bool((table >= 0.0).all()), "a negative probability")
    must(
        bool((np.abs(table.sum(axis=1) - 1.0) < 1e-6).all()),
        "a row that does not sum to 1",
    )


def predictions(p: Predictions) -> None:
    """Check what the door let in."""
    probabilities(p.probs, p.n_classes)
    must(len(p.codes) == len(p.probs) == p.n_samples > 0, "rows and labels differ")
    must(
        int(p.codes.min()) >= 0 and int(p.codes.max()) < p.n_classes,
        "a label without a column",
    )
    must(
        len({str(label) for label in p.classes}) == p.n_classes,
        "two classes of one name",
    )
    must(bool(np.isfinite(p.log_odds).all()), "log odds that are not finite")
    if p.sample_weight is not None:
        weight = p.sample_weight
        must(
            bool((np.isfinite(weight) & (weight >= 0.0)).all() and weight.any()),
            "a bad weight",
        )


def untouched(p: Predictions) -> bool:
    """Whether no number was changed on the way in."""
    return p.n_renormalized == p.n_clipped == 0 and p.logits is None


def same_label(label: Any, cell: str) -> bool:
    """Whether a class is what a cell says: the same text, or the same number."""
    own, said = str(label).strip(), cell.strip()
    if own == said or own.lower() == said.lower():
        return True
    try:
        return float(own) == float(said)
    except ValueError:
        return False


def same_as_csv(p: Predictions, content: bytes, separator: str, label: str) -> bool:
    """Compare with what Python's csv module reads; return whether that was possible."""
    try:
        text = content.decode("utf-8-sig")
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, strict=True
        )
        header, *lines = [row for row in reader if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, ValueError, csv.Error):
        return False
    header = [name.strip() for name in header]
    columns = [str(name).strip() for name in p.classes]
    wanted = [*columns, label]
    if any(header.count(name) != 1 for name in wanted) or len(
        {*map(len, lines)} - {len(header)}
    ):
        return False
    places = [header.index(name) for name in wanted]
    try:
        numbers = [[float(row[k]) for k in places[:-1]] for row in lines]
    except ValueError:
        return False
    must(len(numbers) == p.n_samples, f"{p.n_samples} rows of {len(numbers)}")
    must(
        np.array_equal(np.array(numbers), p.probs),
        "other numbers than Python's csv reads",
    )
    for row, code in zip(lines, p.codes.tolist(), strict=True):
        must(same_label(p.classes[code], row[places[-1]]), f"label {row[places[-1]]!r}")
    return True


def printed(text: str) -> None:
    """Check what reaches a terminal."""
    found = CONTROL.search(text)
    must(found is None, f"a control character is printed: {found and found.group()!r}")


class _Tags(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(f"{tag}.{name}" for name, _ in attrs)}


def tags(page: str) -> set[str]:
    """Return the kinds of elements, and of attributes, of a page."""
    parser = _Tags()
    parser.feed(page)
    parser.close()
    return parser.found
