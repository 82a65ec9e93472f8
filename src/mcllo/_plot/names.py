"""Class names as a figure can show them: hostile, long and foreign ones included.

A name is shown as plain text on one line: no mathematics between dollar signs, no control or
direction characters, no glyph that the font lacks (a box stands for it, and matplotlib does not
warn). Names that look alike after that get the number of their column.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path

from .._text import ellipsis
from .style import TITLE

FONT = "DejaVu Sans"
"""Comes with matplotlib, so figures are the same everywhere."""
BOX = "□"
WIDEST, ROOM = 24, 170.0
"""Most characters of a name, and most points."""


def shown(label: object, width: int = WIDEST, room: float = ROOM, bold: bool = False) -> str:
    """Return a label as one short line of characters that the font has.

    Parameters
    ----------
    label : object
        What ``str`` makes text of.
    width : int
        Most characters.
    room : float
        Most points that the text may take, bold or not, in the size of a title.

    Examples
    --------
    >>> shown("cat"), shown(" a  b "), shown("x" * 30, 8), shown("")
    ('cat', 'a b', 'xxxxxxx…', '(empty)')
    """
    words = " ".join(str(label).split())
    drawn = "".join(_drawable(letter) for letter in words).strip()
    for letters in range(width, 1, -1):
        text = ellipsis(drawn, letters)
        if width_of(text, bold) <= room:
            return text or "(empty)"
    return "…"


def shown_all(
    labels: Sequence[Hashable], width: int = WIDEST, room: float = ROOM, bold: bool = False
) -> list[str]:
    """Return the labels of all columns as `shown` does, those that look alike with their number.

    Examples
    --------
    >>> shown_all(["cat", "dog"]), shown_all(["cats and dogs 1", "cats and dogs 2"], 12)
    (['cat', 'dog'], ['cats and… #1', 'cats and… #2'])
    """
    names = [shown(label, width, room, bold) for label in labels]
    alike = Counter(names)
    for j, label in enumerate(labels):
        if alike[names[j]] > 1:
            number = f" #{j + 1}"
            left = room - width_of(number, bold)
            names[j] = shown(label, width - len(number), left, bold) + number
    return names


def width_of(text: str, bold: bool = False) -> float:
    """Return the width in points of a line of text in the size of a title."""
    font = FontProperties(family=[FONT], size=TITLE, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def signed(value: float) -> str:
    """Return a number with one decimal and its sign, a minus as printers set it.

    Examples
    --------
    >>> signed(1.26), signed(-3.0), signed(float("nan"))
    ('+1.3', '−3.0', '-')
    """
    return "-" if value != value else f"{value:+.1f}".replace("-", "−")


def _drawable(letter: str) -> str:
    """Return the letter, a box where the font lacks it, nothing for what has no look of its own."""
    kind = unicodedata.category(letter)
    if kind in ("Cc", "Cf"):
        return ""
    if ord(letter) in _glyphs():
        return letter
    return "" if kind in ("Mn", "Me") else BOX


@cache
def _glyphs() -> frozenset[int]:
    path = findfont(FontProperties(family=[FONT]))
    return frozenset(get_font(path).get_charmap())
