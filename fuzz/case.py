"""The attempt that runs now: what was made for it, and whether mcllo took it.

Targets tell it; the engine reads it. ``tmp`` is a folder that every attempt may write into.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Case:
    """Counts of a run, and the inputs of its last attempt."""

    tmp: Path = field(
        default_factory=lambda: Path(tempfile.mkdtemp(prefix="mcllo-fuzz-"))
    )
    attempts: int = 0
    accepted: int = 0
    compared: int = 0
    """Accepted ones whose numbers were also read by somebody else, or computed twice."""
    made: dict[str, str | bytes] = field(default_factory=dict)

    def begin(self, **made: str | bytes) -> None:
        """Count an attempt; `made` are its inputs, by the name of a file to keep them in."""
        self.attempts += 1
        self.made = {name.replace("__", "."): content for name, content in made.items()}

    def accept(self) -> None:
        """Count an input that was not refused."""
        self.accepted += 1

    def compare(self, done: bool = True) -> None:
        """Count an independent check."""
        self.compared += done

    def write(self, name: str, content: bytes) -> Path:
        """Write a file of this attempt."""
        path = self.tmp / name
        path.write_bytes(content)
        return path


CASE = Case()
