"""How often rows without copies are said to hold copies: there are some, and how often rows with
copies.

Rows that are all different, and rows that are often equal: leaves, votes, rounded numbers, cut-off
probabilities, certain ones. Labels are drawn from the rows, which are then left as they are, made
underconfident or overconfident, or partly repeated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcllo import Predictions
from mcllo._diagnostics.duplicate_rows import state_copies
from mcllo._fit.fit import fit_predictions
from studies.claims import Rows, draw, rows_like, scaled
from studies.pages import fill

PAGE = "explanation/copies.md"
SIZES = (200, 2000)
Random = np.random.Generator


def _leaves(n: int, n_leaves: int, rng: Random) -> np.ndarray:
    return rows_like("dirichlet:.5", n_leaves, 3, rng)[rng.integers(0, n_leaves, n)]


def _votes(n: int, c: int, n_trees: int, rng: Random) -> np.ndarray:
    return rng.multinomial(n_trees, rng.dirichlet(np.full(c, 0.5), n)) / n_trees


def _rounded(probs: np.ndarray) -> np.ndarray:
    probs = probs.round(2)
    return probs / probs.sum(axis=1, keepdims=True)


DESIGNS: dict[str, Callable[[int, Random], np.ndarray]] = {
    "all different, 3 classes": lambda n, rng: rows_like("dirichlet:.5", n, 3, rng),
    "all different, sharp, 10 classes": lambda n, rng: rows_like("sharp", n, 10, rng),
    "20 leaves of a tree": lambda n, rng: _leaves(n, 20, rng),
    "a leaf for every 3 rows": lambda n, rng: _leaves(n, n // 3, rng),
    "25 votes, 3 classes": lambda n, rng: _votes(n, 3, 25, rng),
    "100 votes, 10 classes": lambda n, rng: _votes(n, 10, 100, rng),
    "2 decimals, 2 classes": lambda n, rng: _rounded(
        rows_like("dirichlet:.5", n, 2, rng)
    ),
    "2 decimals, 5 classes": lambda n, rng: _rounded(
        rows_like("dirichlet:.3", n, 5, rng)
    ),
    "2 decimals, sharp, 10 classes": lambda n, rng: _rounded(
        rows_like("sharp", n, 10, rng)
    ),
    "cut off at 5 and 95 %": lambda n, rng: rows_like("dirichlet:.1", n, 2, rng),
    "0 and 1 only": lambda n, rng: np.eye(4)[rng.integers(0, 4, n)],
}
TABLE = """\
| rows | tables without copies | with a finding | every row twice | half the rows twice | a tenth |
|---|---|---|---|---|---|
{*rows} | {rows}, {n:,} | {tables} | {false} | {all:%0} | {half:%0} | {tenth:%0} |"""


def run(reps: int, seed: int = 5, sizes: tuple[int, ...] = SIZES) -> Rows:
    """Return findings of each kind of rows: false ones as a number, right ones as shares."""
    rng, found = np.random.default_rng(seed), []
    for name, rows_of in DESIGNS.items():
        for n in sizes:
            false, right = 0, {"all": 0, "half": 0, "tenth": 0}
            for _ in range(reps):
                probs = rows_of(n, rng)
                y = draw(probs, rng)
                if name.startswith(
                    "cut off"
                ):  # the labels know how sure the rows really were
                    probs = np.clip(probs, 0.05, 0.95)
                timid, extreme = (
                    scaled(np.maximum(probs, 1e-12), slope) for slope in (0.4, 2.5)
                )
                false += sum(_checked(given, y) for given in (probs, timid, extreme))
                for what, part in (("all", 1), ("half", 2), ("tenth", 10)):
                    rows = np.r_[np.arange(n), np.arange(n // part)]
                    right[what] += _checked(probs[rows], y[rows])
            shares = {what: hits / reps for what, hits in right.items()}
            found.append(
                {"rows": name, "n": n, "tables": 3 * reps, "false": false, **shares}
            )
    return found


def _checked(probs: np.ndarray, y: np.ndarray) -> bool:
    p = Predictions.from_arrays(probs, y, classes=range(probs.shape[1]), normalize=True)
    return state_copies(p, fit_predictions(p)) is not None


def table(rows: Rows) -> str:
    """Return the table as Markdown."""
    return fill(TABLE, {"rows": rows})
