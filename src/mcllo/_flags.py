"""What the library says about its arguments, in the words of the command line.

===========================  ============================
``normalize=True``           ``--normalize``
``clip=1e-6``                ``--clip 1e-6``
``baseline='trcuk'``         ``--baseline trcuk``
``classes=['a', 'b c']``     ``--classes 'a,b c'``
``n_resamples must be ...``  ``--draws must be ...``
===========================  ============================
"""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex

FLAGS = {
    "n_resamples": "--draws",
    "sample_weight": "--weight",
    "weight_kind": "--weight-kind",
    **{
        name: f"--{name}"
        for name in (
            "alpha",
            "baseline",
            "center",
            "classes",
            "clip",
            "gate",
            "groups",
            "label",
            "logits",
            "method",
            "normalize",
            "penalty",
            "prefix",
            "seed",
            "statistic",
            "weight",
        )
    },
}
PHRASES = {
    "Pass clip=None or a floor": "Leave --clip out or give a floor",
    "use statistic='lr' or 'score'": "use --statistic lr or --statistic score",
    "use MCLLOCalibrator(penalty=1.0)": "use mcllo fit --penalty 1",
    " or a numpy Generator": "",
}
NAME = "|".join(FLAGS)
VALUE = (
    r"""\[[^\]]*\]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|True|None|nan|-?inf|-?\d[\d.]*(?:e-?\d+)?"""
)
ARGUMENT = re.compile(rf"(?<![\w'\"])(?P<name>{NAME})=(?P<value>{VALUE})?")
ONE_WEIGHT = re.compile(r"\bsample_weight\[\d+\]=")
SUBJECT = re.compile(rf"^(?P<name>{NAME})(?= must)")


def in_flags(message: str) -> str:
    """Return a library message with its arguments as options of the command line.

    Examples
    --------
    >>> in_flags("baseline='trcuk' is not a class; did you mean 'truck'?")
    "--baseline trcuk is not a class; did you mean 'truck'?"
    >>> in_flags("For rounded files pass normalize=True.")
    'For rounded files pass --normalize.'
    """
    for phrase, instead in PHRASES.items():
        message = message.replace(phrase, instead)
    message = ONE_WEIGHT.sub("the weight ", message)
    message = SUBJECT.sub(lambda match: FLAGS[match["name"]], message)
    return ARGUMENT.sub(_flag, message)


def _flag(match: re.Match[str]) -> str:
    flag, value = FLAGS[match["name"]], match["value"]
    if value is None or value == "True":
        return flag
    dot = "." if value.endswith(".") else ""
    return f"{flag} {_word(value.removesuffix('.'))}{dot}"


def _word(value: str) -> str:
    """Return a Python value as it is typed in a shell."""
    if value[0] not in "['\"":
        return value
    content = ast.literal_eval(value)
    if isinstance(content, list):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(content)
        content = line.getvalue()
    return shlex.quote(str(content))
