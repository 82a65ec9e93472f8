"""Do the levels hold, "when it says 94 %, it is right about 84 % (81 to 87)", whatever is wrong?

The truth at a level is the mean chance of being right of rows that say just that, from 200,000
other rows of the design. Counted are all levels that the text would show. The last column is what
the fitted map would have said, as a share of intervals that hold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcllo._fit.fit import fit_predictions
from mcllo._inference.effect_size_distribution import MapChanges
from mcllo._inference.levels import map_interval_at_level, observed_levels
from mcllo._utils.statements import suppress_warnings
from mcllo._validation.predictions import Predictions
from studies.pages import fill

from . import Rows, share
from ._truths import DESIGNS, Design

PAGE = "explanation/effect-size.md"
MARK = "levels"
N_TRUTH = 200_000
N_NEAREST = 800
"""Rows, of those that the truth is taken from, that are nearest to a level."""


def truth_at(design: Design, rng: np.random.Generator) -> Callable[[float], float]:
    """Return the true chance of being right at a level."""
    x = design.rows(N_TRUTH, rng)
    g = design.truth(x)
    rows, top = np.arange(len(x)), x.argmax(axis=1)
    order = np.argsort(x[rows, top])
    said = x[rows, top][order]
    upto = np.concatenate([[0.0], np.cumsum((g[rows, top] - x[rows, top])[order])])

    def chance(level: float) -> float:
        place = int(np.searchsorted(said, level))
        first = max(0, place - N_NEAREST // 2)
        last = min(len(said), place + N_NEAREST // 2)
        return level + float(upto[last] - upto[first]) / (last - first)

    return chance


def run(reps: int, seed: int = 36, designs: tuple[Design, ...] = DESIGNS) -> Rows:
    """Return one row for each design."""
    found: Rows = []
    for k, design in enumerate(designs):
        rng = np.random.default_rng([seed, k])
        chance = truth_at(design, rng)
        held, by_map, widths = [], [], []
        for _ in range(reps):
            x, _, y = design.data(rng)
            with suppress_warnings():
                p = Predictions.from_arrays(x, y, classes=range(x.shape[1]))
                fit = fit_predictions(p)
            moved = MapChanges(p.log_odds, p.row_weight)
            for level in observed_levels(p, 0.95):
                true = chance(level.says)
                held.append(level.low - 1e-9 <= true <= level.high + 1e-9)
                widths.append(level.high - level.low)
                if fit.converged:
                    _, low, high = map_interval_at_level(
                        moved, fit.theta, fit.cov_theta, level.says, 0.95
                    )
                    by_map.append(low <= true <= high)
        if not held:
            continue  # too few rows near any level
        found.append(
            {
                "design": design.name,
                "n": design.n,
                "kind": "inside" if design.inside else "outside",
                "levels": len(held),
                "holds": share(held)[0],
                "se": share(held)[1],
                "width": float(np.median(widths)),
                "map": share(by_map)[0],
            }
        )
    return found


TABLE = """\
| predictions and truth | rows | shifts and slopes? | levels | interval holds | its width | the \
map's interval would hold |
|---|---:|---|---:|---:|---:|---:|
{*rows} | {design} | {n:,} | {kind} | {levels:,} | {holds:.3f} | {width:.2f} | {map:.3f} |"""


def table(rows: Rows) -> str:
    """Return the table of the page."""
    shown = [
        {name: value for name, value in row.items() if name != "se"} for row in rows
    ]
    return fill(TABLE, {"rows": shown})
