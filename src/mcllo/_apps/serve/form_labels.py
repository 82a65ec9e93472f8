"""The library's arguments in the words of the page, so that remedies name its boxes.

===========================  ==========================================
``normalize=True``           “Divide each row by its sum”
``classes=['dry', 'snow']``  “Probability of a class: dry, snow”
``missing='drop'``           “Rows with gaps: leave them out”
``penalty=1.0``              ``--penalty 1.0``: there is no such box
===========================  ==========================================
"""

from __future__ import annotations

from typing import Any

from ...exceptions import MclloError
from ..cli.option_names import Flags

FIELD_LABELS = {
    "label": "What came true",
    "classes": "Probability of a class",
    "weight": "Weight of the row",
    "sample_weight": "Weight of the row",
    "groups": "Group of the row",
    "by": "Subgroup to look at",
    "normalize": "Divide each row by its sum",
    "percent": "Percentages, 0 to 100",
    "logits": "Scores before the softmax",
    "missing": "Rows with gaps",
    "positive": "It is the probability of",
    "prefix": "What stands before a class",
    "baseline": "Baseline class",
    "weight_kind": "What weights mean",
    "clip": "Clip small probabilities to",
    "encoding": "Encoding of the text",
    "sheet": "Sheet",
    "method": "Recalibration",
}
"""What the fields of the form are called."""
MISSING = {"refuse": "stop, and say where", "drop": "leave them out"}


class Boxes(Flags):
    """The fields of the page; what has none is an option of the command line.

    Examples
    --------
    >>> print(Boxes().option("classes", ["dry", "snow"]), Boxes().option("normalize", True))
    “Probability of a class: dry, snow” “Divide each row by its sum”
    """

    def argument(self, name: str) -> str:
        """Return the field that stands for an argument."""
        return f"“{FIELD_LABELS[name]}”" if name in FIELD_LABELS else super().argument(name)

    def option(self, name: str, value: Any = ...) -> str:
        """Return a field with its value."""
        if name not in FIELD_LABELS:
            return super().option(name, value)
        if value is ... or value is True or value is None:
            return f"“{FIELD_LABELS[name]}”"
        if name == "missing":
            value = MISSING.get(str(value), value)
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        return f"“{FIELD_LABELS[name]}: {shown}”"


PAGE_WORDS = Boxes()


def sentence(error: MclloError) -> str:
    """Return what was refused in the words of the page."""
    return " ".join(error.text(PAGE_WORDS).split())
