r"""What reaches a terminal: letters, and never a command that stood in a name.

====================  ============================================================================
letters               as they are; line ends and tabs too
control characters    as Python writes them: ESC is ``\x1b``, BEL ``\x07``, a lone return ``\r``
turns of direction    ``\u202e``: a name must not show what comes after it backwards
bytes of file names   ``\udcff``, where they are no UTF-8
a closed stream       reading from it, or writing what was asked for to it, is refused in one
                      sentence; what is only said is left unsaid
====================  ============================================================================

Names of files, columns and classes, the version in a model file and other packages' messages are
all text that somebody else wrote. Files get it as it is; a terminal gets it through
`escape_control_characters`.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

from ..exceptions import FileFormatError

CONTROLS = {*range(32), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
BIDI_CONTROLS = {*range(0x2028, 0x202F), *range(0x2066, 0x206A)}
"""Separators of lines and paragraphs, and changes of direction (Unicode Technical Report 36)."""
SURROGATES = range(0xDC80, 0xDD00)
"""Bytes that were no UTF-8, as ``errors="surrogateescape"`` reads them."""
_HIDDEN = [*CONTROLS, *BIDI_CONTROLS, *SURROGATES]
_ESCAPES = {code: ascii(chr(code)).strip("'") for code in _HIDDEN}


def escape_control_characters(text: str) -> str:
    r"""Return text that a terminal only shows.

    Examples
    --------
    >>> print(escape_control_characters("caf\u00e9 \x1b[31mred\x07"))
    café \x1b[31mred\x07
    """
    return text.translate(_ESCAPES)


def is_terminal(stream: Any) -> bool:
    """Whether somebody looks at a stream; nobody looks at a closed one."""
    return not _is_closed(stream) and stream.isatty()


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal holds; None in a pipe, file or notebook."""
    if not is_terminal(sys.stdout):
        return None
    return shutil.get_terminal_size().columns


def standard_input() -> Any:
    """Return standard input as text; refuse where it is closed."""
    if _is_closed(sys.stdin):
        raise FileFormatError(
            "standard input is closed.", remedy="Name a file instead of -."
        )
    return sys.stdin


def standard_output() -> Any:
    """Return standard output as text, for what was asked to go there; refuse where it is closed."""
    if _is_closed(sys.stdout):
        remedy = "Name a file with {path}."
        raise FileFormatError("standard output is closed.", remedy=remedy, values={})
    return sys.stdout


def _is_closed(stream: Any) -> bool:
    """Whether a stream is closed; Python has None for one that was closed from the beginning."""
    return stream is None or getattr(stream, "closed", False)
