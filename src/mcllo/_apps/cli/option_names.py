"""The library's arguments in the words of the command line.

===========================  ============================
``normalize=True``           ``--normalize``
``clip=1e-06``               ``--clip 1e-06``
``baseline='trcuk'``         ``--baseline trcuk``
``classes=['a', 'b c']``     ``--classes 'a,b c'``
``n_resamples must be ...``  ``--draws must be ...``
===========================  ============================
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping
from typing import Any

from ...exceptions import Words, show_number

SAME_NAMES = (
    "alpha baseline batch by center classes clip columns cv delta dialect dtype encoding gamma "
    "flexible gate groups input keep kind label logits method methods missing normalize penalty "
    "percent port positive power prefix reps rule seed sheet statistic table to tolerance weight"
)
FLAGS = {
    **{name: f"--{name}" for name in SAME_NAMES.split()},
    "delta_1": "--delta1",
    "n_classes": "--n-classes",
    "n_jobs": "--workers",
    "n_resamples": "--draws",
    "n_samples": "--n",
    "run_length": "--run-length",
    "path": "--output",
    "sample_weight": "--weight",
    "weight_kind": "--weight-kind",
}
"""The option that stands for an argument of the library."""


class Flags(Words):
    """Options of the command line, as they are typed.

    Examples
    --------
    >>> Flags().option("classes", ["a", "b c"]), Flags().option("normalize", True)
    ("--classes 'a,b c'", '--normalize')
    """

    kinds = ("shell", "python")

    def __init__(self, reading: Mapping[str, Any] | None = None) -> None:
        self.reading = reading or {}

    def argument(self, name: str) -> str:
        """Return the option that stands for an argument."""
        return FLAGS.get(name, name)

    def option(self, name: str, value: Any = ...) -> str:
        """Return an option with its value."""
        if name not in FLAGS:
            return super().option(name, value)
        if value is ... or value is True or value is None:
            return FLAGS[name]
        if isinstance(value, list):
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(value)
            value = line.getvalue()
        return f"{FLAGS[name]} {shlex.quote(value) if isinstance(value, str) else value}"

    def cell(self, name: str, row: int, column: Any, value: Any) -> str:
        """Return a weight without its row: nothing here says which file it is of."""
        if name != "sample_weight":
            return super().cell(name, row, column, value)
        return f"the weight {show_number(value)}"


FLAG_WORDS = Flags()
