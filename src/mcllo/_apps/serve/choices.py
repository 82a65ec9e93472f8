"""What the form says -> options of the command line, and nothing else.

==============  ===================================================================================
fields          ``role-3`` is the part of the fourth column; the others have the options' names
reading         the options that `_apps/cli/options` has in its table of reading options
arguments       those that a verb takes, as they are typed
==============  ===================================================================================

Columns are known by their place, so that no name, however it is written, is read as anything else.
What the options then mean is for the verbs to say: there is one validator. What it says names
arguments, which become the boxes of the page here:

===========================  ==========================================
``normalize=True``           “Divide each row by its sum”
``classes=['dry', 'snow']``  “Probability of a class: dry, snow”
``missing='drop'``           “Rows with gaps: leave them out”
``penalty=1.0``              ``--penalty 1.0``: there is no such box
===========================  ==========================================
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..._validation.frames import has_affixes, label_of_column
from ...exceptions import InputError, MclloError, Names
from ..cli.options import FLAG_NAMES, READING, Flag, non_default_options
from ..cli.verbs import build_parser
from ..io.csv_text import is_pandas_index
from .column_detection import DetectedTable
from .limits import ServerLimits

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


class FormField(Flag):
    """A field of the page; what has none is an option of the command line.

    Examples
    --------
    >>> print(FormField("classes").given(["dry", "snow"]), FormField("normalize").given(True))
    “Probability of a class: dry, snow” “Divide each row by its sum”
    """

    def __str__(self) -> str:
        """Return the field as the subject of a sentence."""
        label = FIELD_LABELS.get(self.name)
        return super().__str__() if label is None else f"“{label}”"

    def given(self, value: Any = ...) -> str:
        """Return the field with its value."""
        if self.name not in FIELD_LABELS:
            return super().given(value)
        label = FIELD_LABELS[self.name]
        if value is ... or value is True or value is None:
            return f"“{label}”"
        if self.name == "missing":
            value = MISSING.get(str(value), value)
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        return f"“{label}: {shown}”"


PAGE_NAMES = Names(FLAG_NAMES, FormField)


def error_sentence(error: MclloError) -> str:
    """Return what was refused in the words of the page."""
    return " ".join(error.text(PAGE_NAMES).split())


ROLES = {
    "": "Not used",
    "label": "What came true",
    "class": "Probability of a class",
    "weight": "Weight of the row",
    "groups": "Group of the row",
    "by": "Subgroup to look at",
}
SCALES = ("probs", "percent", "logits")
SINGLE_COLUMN_ROLES = ("label", "weight", "groups", "by")
"""Parts that one column plays."""
TEXT_OPTIONS = ("prefix", "positive", "baseline", "encoding", "weight_kind")


def initial_form_fields(detected: DetectedTable) -> dict[str, str]:
    """Return the fields of the form as they were recognised."""
    fields = {f"role-{j}": column.role for j, column in enumerate(detected.columns)}
    fields |= {"baseline": "", "clip": "", "encoding": ""}
    fields["weight_kind"] = READING["weight_kind"][1]
    fields |= {name: str(value) for name, value in detected.guess.items()}
    fields["normalize"] = "on" if detected.guess["normalize"] else ""
    return fields


def read_form_options(
    detected: DetectedTable, form_fields: Mapping[str, str], limits: ServerLimits
) -> dict[str, Any]:
    """Return the reading options that a form asks for."""
    columns_by_role: dict[str, list[str]] = {role: [] for role in ROLES}
    for j, column in enumerate(detected.columns):
        role = form_fields.get(f"role-{j}", "")
        columns_by_role[role if role in ROLES else ""].append(column.name)
    for role in SINGLE_COLUMN_ROLES:
        if len(columns_by_role[role]) > 1:
            raise InputError(
                f"one column may be “{ROLES[role]}”; {len(columns_by_role[role])} are.",
                remedy="Set the others to “Not used”.",
            )
    if not columns_by_role["label"]:
        raise InputError(
            "one column must be “What came true”; none is.",
            remedy="Choose the column that holds the class that each row turned out to be.",
        )
    limits.check_class_count(len(columns_by_role["class"]))
    reading: dict[str, Any] = {}
    for role in SINGLE_COLUMN_ROLES:
        reading[role] = columns_by_role[role][0] if columns_by_role[role] else None
    for name in TEXT_OPTIONS:
        reading[name] = form_fields.get(name, "").strip() or READING[name][1]
    # spaces and all: names of columns may have them
    prefix = form_fields.get("prefix", "")
    reading["prefix"] = prefix
    reading["classes"] = _explicit_class_labels(detected, columns_by_role, prefix)
    if len(columns_by_role["class"]) > 1:
        reading["positive"] = None
    reading["normalize"] = bool(form_fields.get("normalize"))
    reading["percent"] = form_fields.get("scale") == "percent"
    reading["logits"] = form_fields.get("scale") == "logits"
    missing = form_fields.get("missing")
    reading["missing"] = missing if missing in MISSING else "refuse"
    reading["clip"] = _parse_optional_number(form_fields.get("clip", ""))
    reading["sheet"] = detected.sheet if len(detected.sheets) > 1 else None
    reading["header"] = None  # found anew in that sheet
    return {name: reading[name] for name in ("label", *READING)}


def _explicit_class_labels(
    detected: DetectedTable, columns_by_role: Mapping[str, list[str]], prefix: str
) -> list[str] | None:
    """Return the classes that columns stand for; None where they are all that there are."""
    for name in columns_by_role["class"]:
        if not has_affixes(prefix, name):
            raise InputError(
                f"every class column must be named as in {prefix!r}; {name!r} is not.",
                remedy="Set it to “Not used”, or empty “What stands before a class”.",
            )
    if not columns_by_role["class"]:
        raise InputError(
            "at least one column must be “Probability of a class”; none is.",
            remedy="Choose the column of each class.",
        )
    # What a verb takes for classes when it is told none: every column with the prefix, but for row
    # numbers and columns that play another part.
    other_roles_columns = [
        name for role in SINGLE_COLUMN_ROLES for name in columns_by_role[role]
    ]
    default_columns = []
    for column in detected.columns:
        is_class = has_affixes(prefix, column.name) and not is_pandas_index(
            label_of_column(prefix, column.name)
        )
        if is_class and column.name not in other_roles_columns:
            default_columns.append(column.name)
    if (
        len(columns_by_role["class"]) > 1
        and columns_by_role["class"] == default_columns
    ):
        return None
    return [label_of_column(prefix, name) for name in columns_by_role["class"]]


def _parse_optional_number(text: str) -> float | None:
    """Return a number, with a point or a comma; None of nothing."""
    if not text.strip():
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InputError(
            f"“Clip small probabilities to” must be a number; got {text[:40]!r}.",
            remedy="Write one such as 0.000001, or nothing.",
        ) from None


def command_line_options(verb: str, reading_options: Mapping[str, Any]) -> list[str]:
    """Return the options of a verb, as they are typed."""
    takes = {parameter.name for parameter in build_parser().commands[verb].params}
    if verb == "apply" and not reading_options["positive"]:
        takes.discard("classes")  # the model knows them
    words: list[str] = []
    for name, value in non_default_options(reading_options).items():
        if name not in takes:
            continue
        flag, *values = shlex.split(Flag(name).given(value))
        has_dash = any(value.startswith("-") for value in values)
        if has_dash:  # it would be read as a flag
            words.append("=".join([flag, *values]))
        else:
            words += [flag, *values]
    return words
