"""What a terminal shows: sentences are wrapped at the page's edge, wide tables slide.

A block of output is *printed*, in smaller letters. Where none of its long lines has columns (words
far apart), it is one of *sentences*, which a wide page wraps; a phone lets all of them slide.
"""

import re
from typing import Any

KINDS = ("text", "console", "none", "default", "myst-ansi")
LONG = 96
"""Letters of a line that fit on the page."""
COLUMNS = re.compile(r"\S {2,}\S")


def is_sentences(text: str) -> bool:
    """Whether no long line of a block has columns."""
    return not any(
        len(line) > LONG and COLUMNS.search(line) for line in text.splitlines()
    )


def mark(app: Any, document: Any, page: str) -> None:
    """Give blocks of output their classes."""
    from docutils import nodes

    for block in document.findall(nodes.literal_block):
        if block.get("language", "default") in KINDS:
            block["classes"] += ["printed"] + ["sentences"] * is_sentences(
                block.astext()
            )


def setup(app: Any) -> dict[str, bool]:
    """Look at every page before it is written."""
    app.connect("doctree-resolved", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
