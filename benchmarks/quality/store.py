"""Results as they come: a line of JSON a case, so that an interrupted run goes on where it stopped.

A later line for the same case and method replaces an earlier one.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Key = tuple[str, int, int]


def compact(value: Any) -> Any:
    """Return the value with floats of 10 digits, so that small differences stay what they are.

    Examples
    --------
    >>> compact({"ll": 0.12345678901234, "seed": 1})
    {'ll': 0.123456789, 'seed': 1}
    """
    if isinstance(value, dict):
        return {key: compact(part) for key, part in value.items()}
    return float(f"{value:.10g}") if isinstance(value, float) else value


class Store:
    """The lines of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[Record]:
        """Yield all records; a line that was cut off is left out."""
        if not self.path.exists():
            return
        with open(self.path) as text:
            for line in text:
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    continue

    def records(self) -> dict[Key, Record]:
        """Return the records by case, methods of later lines in place of earlier ones."""
        found: dict[Key, Record] = {}
        for line in self.lines():
            key = (line["set"], line["n"], line["seed"])
            known = found.setdefault(key, {**line, "methods": {}})
            known["methods"] |= line["methods"]
        return found

    def add(self, record: Record) -> None:
        """Append a record, on a line of its own even after one that was cut off."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a+b") as out:
            out.seek(0, 2)
            if out.tell():
                out.seek(-1, 2)
                broken = out.read(1) != b"\n"
                out.seek(0, 2)
                out.write(b"\n" * broken)
            out.write((json.dumps(compact(record)) + "\n").encode())
