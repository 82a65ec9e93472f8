"""Figures as files and as text: the same input gives the same bytes.

SVG keeps text as text, so that it can be read, searched and copied. Dates are left out and ids are
derived from what is drawn. Files are written under a temporary name and renamed.
"""

from __future__ import annotations

import re
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._utils.atomic_files import StrPath, replace_atomically
from ..exceptions import InputError
from ._layout import fixed_layout
from ._style import THEMED, plot_style

FORMATS = ("svg", "png", "pdf", "tiff")
NO_DATES: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "mcllo"},
    "png": {"Software": "mcllo"},
    "pdf": {"CreationDate": None, "Creator": "mcllo", "Producer": "mcllo"},
    "tiff": {},  # has no dates
}

LINE_JOIN_STYLE = 'style="stroke-linejoin: round; stroke-linecap: butt"'
"""What matplotlib says in a style sheet, which would reach the rest of a page."""
NOT_XML_CHARS = re.compile(
    "[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"
)
"""Characters that no XML may hold: most control characters, and halves of characters."""


def save(
    figure: Figure | Axes | list[Axes], path: StrPath, *, dpi: float = 200.0
) -> None:
    """Write a figure as SVG, PNG, PDF or TIFF, by the ending of the file's name.

    Parameters
    ----------
    figure : Figure, Axes or list of Axes
        What a function of this module returned, or its figure.
    path : path-like
        Name that ends in ``.svg``, ``.png``, ``.pdf`` or ``.tiff``.
    dpi : float
        Dots per inch of a PNG or TIFF.

    Raises
    ------
    InputError
        When the name has another ending.

    See Also
    --------
    to_svg : A string, for a page.
    reliability : One of the figures.
    caption : How to read a figure, in words.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(mcllo.plot.parameters(a.fit), Path(folder) / "parameters.svg")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['parameters.svg']
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(
            "{argument} must end in .svg, .png, .pdf or .tiff; got {value}.",
            argument="path",
            value=Path(path).name,
            remedy="Choose one of these.",
        )
    content = _render_figure(figure, kind, dpi, "mcllo")
    with replace_atomically(path) as temporary:
        temporary.write_bytes(content)


def to_svg(
    figure: Figure | Axes | list[Axes],
    *,
    alt: str = "",
    salt: str = "mcllo",
    themed: bool = False,
) -> str:
    """Return a figure as an ``<svg>`` element to put into a page.

    Parameters
    ----------
    figure : Figure, Axes or list of Axes
        What a function of this module returned, or its figure.
    alt : str
        What the figure shows, for people who hear the page; it becomes the element's label.
    salt : str
        Makes the ids inside the element; give each figure of a page its own.
    themed : bool
        Take colours from the page where it sets ``--mcllo-ink``, ``--mcllo-muted``,
        ``--mcllo-faint``, ``--mcllo-band``, ``--mcllo-paper``, ``--mcllo-blue`` or
        ``--mcllo-vermilion``.

    Returns
    -------
    str
        The element, without an XML declaration.

    See Also
    --------
    save : A file instead.
    caption : How to read a figure, in words.
    mcllo.report : A page with all figures.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> to_svg(mcllo.plot.parameters(a.fit), alt="delta and gamma")[:4]
    '<svg'
    """
    text = _render_figure(figure, "svg", 72.0, salt).decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<(metadata|style).*?</\1>", "", text, flags=re.DOTALL)
    used_ids = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))

    def page_tag(found: re.Match[str]) -> str:
        tag = _without_unused_id(found[0], used_ids)
        return _use_page_colours(tag) if themed else tag

    text = re.sub(r"<[a-z][^>]*>", page_tag, text)
    alt = escape(NOT_XML_CHARS.sub("", alt))
    label = f'role="img" aria-label="{alt}"' if alt else 'aria-hidden="true"'
    return text.replace("<svg", f"<svg {label} {LINE_JOIN_STYLE}", 1)


def find_figure(figure: Figure | Axes | list[Axes]) -> Figure:
    """Return the figure that holds these axes."""
    first = figure[0] if isinstance(figure, list) else figure
    whole = first if isinstance(first, Figure) else first.get_figure(root=True)
    if whole is None:
        raise InputError(
            "the axes must be part of a figure; these were removed from theirs."
        )
    return whole


def _render_figure(
    figure: Figure | Axes | list[Axes], kind: str, dpi: float, salt: str
) -> bytes:
    whole = find_figure(figure)
    target = BytesIO()
    with plot_style(**{"svg.hashsalt": salt}), fixed_layout(whole):
        more: dict[str, Any] = {"metadata": NO_DATES[kind]}
        if kind == "tiff":  # as journals ask for them: packed without loss
            more = {"pil_kwargs": {"compression": "tiff_lzw"}}
        whole.savefig(target, format=kind, dpi=dpi, **more)
    return target.getvalue()


def _without_unused_id(tag: str, used_ids: set[str]) -> str:
    """Return a tag without an id that nothing refers to: the next figure would repeat it."""
    found = re.search(r' id="([^"]+)"', tag)
    if found is None or found[1] in used_ids:
        return tag
    return tag.replace(found[0], "")


def _use_page_colours(tag: str) -> str:
    """Return a tag whose colours are those of the page, where it sets them."""
    for name, colour in THEMED.items():
        tag = tag.replace(f": {colour}", f": var(--mcllo-{name}, {colour})")
    return tag
