"""What Python and JavaScript share: a program as lines of calls, each step a call of its helper.

A line is ``v3 = softmax(v2)``; the numbers that a step carries are constants before it. Both
languages write lists, calls and numbers alike, so a language is a text of helpers, by step, and
three words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._programs import Program

HELPER_DEPENDENCIES = {
    "softmax": ("minus_top",),
    "log_softmax": ("minus_top",),
    "runs": ("softmax", "minus_top"),
}
"""Helpers that others call."""


@dataclass(frozen=True)
class Language:
    """How a language writes a program.

    Attributes
    ----------
    helpers : dict of str to str
        The definition of each step, by name.
    line : str
        A template of an assignment, with `name` and `value`.
    none, true, false : str
        Its words for nothing, truth and falsehood.
    quote : callable
        A text as the language writes it.
    """

    helpers: dict[str, str]
    line: str
    none: str
    true: str
    false: str
    quote: Callable[[str], str]

    def literal(self, value: Any) -> str:
        """Return a value as source text; numbers keep every bit."""
        if isinstance(value, np.ndarray):
            return self.literal(value.tolist())
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self.literal(item) for item in value)}]"
        if isinstance(value, bool):
            return self.true if value else self.false
        is_nan = value != value  # which says that a bin keeps what it was given
        if value is None or is_nan:
            return self.none
        if isinstance(value, str):
            return self.quote(value)
        return repr(value)

    def constant_lines(self, program: Program) -> list[str]:
        """Return a line for each number that a step carries."""
        lines = []
        for k, step in enumerate(program.steps):
            for name, value in step.parameters.items():
                constant = f"{name.upper()}_{k}"
                lines.append(self.line.format(name=constant, value=self.literal(value)))
        return lines

    def step_lines(self, program: Program) -> list[str]:
        """Return a line for each step but the first, which is the row ``v0``."""
        lines = []
        for k, step in enumerate(program.steps[1:], start=1):
            vectors = [f"v{of}" for of in step.inputs]
            constants = [f"{name.upper()}_{k}" for name in step.parameters]
            call = f"{step.op}({', '.join(vectors + constants)})"
            lines.append(self.line.format(name=f"v{k}", value=call))
        return lines

    def used_helpers(self, program: Program, always: tuple[str, ...] = ()) -> list[str]:
        """Return the definitions that the program needs."""
        names = {step.op for step in program.steps} | set(always)
        for name in tuple(names):
            names.update(HELPER_DEPENDENCIES.get(name, ()))
        return [text for name, text in self.helpers.items() if name in names]
