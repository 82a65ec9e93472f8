"""How often predictions get a finding that deserve none, and how often those that deserve one.

Rows of seven kinds at three sizes, labels drawn from them. Then either the predictions are made
worse in a way that is no mistake in the rows, or a mistake is made.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from mcllo import MCLLOCalibrator, Predictions
from mcllo._diagnostics.data_checks import check_data
from mcllo._fit.fit import fit_predictions
from mcllo._inference.likelihood_tests import choose_method
from studies.claims import Rows, draw, rows_like, scaled
from studies.pages import fill

PAGE = "explanation/data-checks.md"
KINDS = (
    ("dirichlet:1", 2),
    ("dirichlet:1", 3),
    ("dirichlet:.3", 5),
    ("dirichlet:.1", 10),
    ("sharp", 10),
    ("network", 10),
    ("rare", 2),
)
SIZES = (100, 1000, 4000)
Change = Callable[
    [np.ndarray, np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]
]


def _noisy(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return scaled(np.maximum(x, 1e-12) * np.exp(rng.normal(0.0, 2.0, x.shape)))


def _recalibrated(
    x: np.ndarray, y: np.ndarray, _: np.random.Generator
) -> tuple[np.ndarray, ...]:
    x = scaled(x, 1.5)
    return MCLLOCalibrator(classes=range(x.shape[1])).fit(x, y).predict_proba(x), y


NO_MISTAKE: dict[str, Change] = {
    "calibrated": lambda x, y, rng: (x, y),
    "overconfident: slope 3": lambda x, y, rng: (scaled(x, 3.0), y),
    "underconfident: slope 0.3": lambda x, y, rng: (scaled(x, 0.3), y),
    "every class shifted, sd 2": lambda x, y, rng: (
        scaled(x, 1.0, rng.normal(0.0, 2.0, x.shape[1])),
        y,
    ),
    "one class 50 times too likely": lambda x, y, rng: (
        scaled(x, 1.0, 3.9 * np.eye(x.shape[1])[0]),
        y,
    ),
    "slopes 0.2 to 3 and shifts": lambda x, y, rng: (
        scaled(x, rng.uniform(0.2, 3.0, x.shape[1]), rng.normal(0.0, 1.0, x.shape[1])),
        y,
    ),
    "noise of sd 2 on every log odds": lambda x, y, rng: (_noisy(x, rng), y),
}
MISTAKES: dict[str, tuple[str, Change]] = {
    "recalibrated on these rows": ("data_check.own_rows", _recalibrated),
    "two columns exchanged": (
        "data_check.columns",
        lambda x, y, rng: (x[:, [1, 0, *range(2, x.shape[1])]], y),
    ),
    "columns turned by one": (
        "data_check.columns",
        lambda x, y, rng: (np.roll(x, 1, axis=1), y),
    ),
    "labels of other rows": (
        "data_check.rows",
        lambda x, y, rng: (x, rng.permutation(y)),
    ),
}
TABLE = """\
| predictions without a mistake | tables | with a finding |
|---|---|---|
{*false} | {what} | {tables:,} | {hinted} |

| mistake | of 100 rows | of 1000 | of 4000 | another finding |
|---|---|---|---|---|
{*found} | {what} | {n100:%0} | {n1000:%0} | {n4000:%0} | {other} of {tables:,} |"""


def run(reps: int, seed: int = 3, sizes: tuple[int, ...] = SIZES) -> Rows:
    """Return, for each change, how many tables got the finding they deserve, or another one."""
    rng, rows = np.random.default_rng(seed), []
    changes = {what: ("", change) for what, change in NO_MISTAKE.items()} | MISTAKES
    for what, (wanted, change) in changes.items():
        row: dict[str, object] = {"what": what, "mistake": bool(wanted)}
        row |= {"tables": reps * len(sizes) * len(KINDS)}
        other = 0
        for n in sizes:
            found = [
                _data_checks(kind, n, c, change, rng)
                for kind, c in KINDS
                for _ in range(reps)
            ]
            other += sum(bool(set(kinds) - {wanted}) for kinds in found)
            row[f"n{n}"] = float(np.mean([wanted in kinds for kinds in found]))
        rows.append(row | {"other": other})
    return rows


def _data_checks(
    kind: str, n: int, c: int, change: Change, rng: np.random.Generator
) -> list[str]:
    x = rows_like(kind, n, c, rng)
    x, y = change(x, draw(x, rng), rng)
    p = Predictions.from_arrays(x, y, classes=range(c))
    fit = fit_predictions(p)
    _, why = choose_method(p, fit.df, "lr", 99)
    return [hint.kind for hint in check_data(p, fit, SimpleNamespace(why=why))]


def table(rows: Rows) -> str:
    """Return both tables as Markdown."""
    false = [row | {"hinted": row["other"]} for row in rows if row["mistake"] == "no"]
    return fill(
        TABLE, {"false": false, "found": [r for r in rows if r["mistake"] == "yes"]}
    )
