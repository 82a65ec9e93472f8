"""What the files of a job are called.

=====  =============================================================================================
given  the name that the file had, as far as any system can hold it: no folders, no letters that
       steer a terminal or the direction of text, no dot or dash in front, not too long, not a name
       of ours
made   always the same names, and `RECALIBRATED_STEM` with the ending of the table that was given
=====  =============================================================================================
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

REPORT = "report.html"
RECALIBRATIONS = "recalibrations.html"
MODEL = "model.json"
RECALIBRATED_STEM = "recalibrated"
MAX_NAME_BYTES = 80
"""Characters of a file's name."""
FORBIDDEN_CHARS = '<>:"/\\|?*'
"""What some system does not have in a name."""
DEFAULT_NAME = "table"
RESULT_STEMS = {Path(name).stem for name in (REPORT, RECALIBRATIONS, MODEL, RECALIBRATED_STEM)}


def safe_name(given: str) -> str:
    r"""Return a name for a file that is as near to the given one as is safe.

    Examples
    --------
    >>> safe_name("C:\\data\\..\\fore casts.csv"), safe_name("--html.csv"), safe_name("report.csv")
    ('fore casts.csv', 'html.csv', 'my report.csv')
    """
    from ..report.render import plain

    last = unicodedata.normalize("NFC", plain(given)).replace("\\", "/").split("/")[-1]
    name = "".join(
        "_" if letter in FORBIDDEN_CHARS or letter == "\n" else letter for letter in last
    )
    name = name.strip().lstrip(".-~ ").rstrip(". ")
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, dot + ending) if stem and len(ending) <= 8 else (name, "")
    while len((stem + ending).encode("utf-8")) > MAX_NAME_BYTES:
        stem = stem[:-1]
    stem = stem.rstrip() or DEFAULT_NAME
    return f"my {stem}{ending}" if stem.split(".")[0].lower() in RESULT_STEMS else stem + ending
