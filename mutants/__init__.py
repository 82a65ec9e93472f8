"""Semantic mutants of the core: small wrong programs, and the tests that must notice them.

=================  ==========================================================================
``mutants.toml``   by file: what stands there, what stands there instead, who must notice
`mutants`          the list; ``from`` must stand in its file exactly once
`run`              apply each in a copy of the checkout and run its tests
=================  ==========================================================================

A test suite that a wrong sign, a lost weight or an edge on the wrong side passes does not test that
line. ``make mutants`` takes a while and is no part of CI; that the list still fits the code is
(`tests/test_mutants.py`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """One change of one file, and the tests that must notice.

    `equivalent` says why none can, and is empty where one must.
    """

    path: str
    name: str
    before: str
    after: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def of(self, text: str) -> str:
        """Return the changed source; refuse one in which the place is not found once."""
        if (found := text.count(self.before)) != 1:
            raise ValueError(
                f"{self}: {self.before!r} must stand there once; it does {found} times"
            )
        return text.replace(self.before, self.after)

    def __str__(self) -> str:
        return f"{self.path}: {self.name}"


def mutants(path: Path = LIST) -> list[Mutant]:
    """Return the list."""
    found = []
    for part in tomllib.loads(path.read_text(encoding="utf-8"))["file"]:
        for one in part["mutants"]:
            tests = tuple(one.get("tests", part["tests"]))
            why = one.get("equivalent", "")
            found.append(
                Mutant(part["path"], one["is"], one["from"], one["to"], tests, why)
            )
    return found
