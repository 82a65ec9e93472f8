"""Questions to the results: rows of a method and size, of all sets or of a group of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.quality.methods import NOTHING, REFERENCE
from benchmarks.quality.summary import Cell, Mean, clustered, share

GROUPS = {"all": "all sets", "new": "new sets", "used": "sets used while designing"}


@dataclass(frozen=True, eq=False)
class View:
    """Rows of `summary.cells` with the facts of their sets (``results.json``)."""

    rows: list[Cell]
    facts: dict[str, Any]

    @property
    def sets(self) -> dict[str, dict[str, Any]]:
        """Facts of each set, by name."""
        return self.facts["sets"]

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows to learn from."""
        return sorted({row["n"] for row in self.rows})

    @property
    def methods(self) -> list[str]:
        """Methods in the order of the tables, those with results."""
        from benchmarks.quality.methods import METHODS

        present = {row["method"] for row in self.rows}
        return [name for name in METHODS if name in present]

    def group(self, name: str) -> "View":
        """Return the part of a group of sets."""
        if name == "all":
            return self
        used = {key for key, facts in self.sets.items() if facts["used"]}
        kept = [row for row in self.rows if (row["set"] in used) == (name == "used")]
        return View(kept, self.facts)

    def of(self, method: str, n: int | None = None) -> list[Cell]:
        """Return the rows of a method, at one size or all."""
        return [r for r in self.rows if r["method"] == method and n in (None, r["n"])]

    def mean(self, method: str, n: int, column: str) -> Mean | None:
        """Return a column's mean over sets."""
        rows = [row for row in self.of(method, n) if row[column] is not None]
        sources = [self.sets[row["set"]]["source"] for row in rows]
        return clustered([row[column] for row in rows], sources) if rows else None

    def wins(self, method: str, n: int | None = None) -> float | None:
        """Return how often a method beats the reference, ties half."""
        return share(self.of(method, n), ("wins", "ties"), "pairs")

    def worse(self, method: str, n: int | None = None) -> float | None:
        """Return how often a method is worse than doing nothing."""
        return share(self.of(method, n), ("worse",), "paired")

    def worse_on_average(self, method: str, n: int | None = None) -> float | None:
        """Return the share of sets and sizes where a method is worse in the mean over seeds."""
        apart = [row["d_ll"] for row in self.of(method, n) if row["d_ll"] is not None]
        return float(np.mean(np.array(apart) > 1e-9)) if apart else None

    def median(self, method: str, n: int, column: str) -> float | None:
        """Return the median over sets, for times and their ratios."""
        values = [row[column] for row in self.of(method, n) if row[column] is not None]
        return float(np.median(values)) if values else None

    def total_ratio(self, method: str, n: int) -> float | None:
        """Return the time of all sets together, as a multiple of the reference's."""
        base = {row["set"]: row["wall"] for row in self.of(REFERENCE, n) if row["wall"]}
        own = {r["set"]: r["wall"] for r in self.of(method, n) if r["wall"] and r["set"] in base}
        return sum(own.values()) / sum(base[key] for key in own) if own else None

    def failures(self, method: str, n: int | None = None) -> tuple[int, int]:
        """Return failed cases and all cases of a method."""
        rows = self.of(method, n)
        return sum(row["failed"] for row in rows), sum(row["cases"] for row in rows)

    def worst(self, method: str) -> Cell | None:
        """Return the row with the largest harm in a single case."""
        rows = [row for row in self.of(method) if row["worst"] is not None]
        return max(rows, key=lambda row: row["worst"]) if rows else None

    def seeds(self) -> int:
        """Return the most cases that a set and size has."""
        return max((row["cases"] for row in self.of(NOTHING)), default=0)


def counted(sets: Sequence[dict[str, Any]]) -> str:
    """Return how many sets and sources there are, in words.

    Examples
    --------
    >>> counted([{"source": "a"}, {"source": "a"}, {"source": "b"}])
    '3 sets from 2 data sets'
    """
    return f"{len(sets)} sets from {len({facts['source'] for facts in sets})} data sets"
