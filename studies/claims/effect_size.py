"""Do the limits of a size hold? Coverage where the truth is known, and what equivalence costs.

A design is a table of predictions with a true map g of the MCLLO family; labels are drawn from g,
the map is fitted, and the `EffectSize` of the fit is held against that of g on the same rows.

====================  ==========================================================================
change, top, gain     share of data sets whose interval holds the true size
within                share whose `high` is below the true mean change: an equivalence test with
                      that size for its tolerance is wrong so often
levels                share of levels whose interval holds the true share of right answers
plain                 the same as change, of the uncorrected size -/+ two standard errors
====================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcllo._fit.covariance import with_robust_covariance
from mcllo._fit.fit import MCLLOFit, fit_predictions
from mcllo._fit.map import MCLLOMap
from mcllo._inference.effect_size import EffectSize, estimate_effect_size
from mcllo._inference.effect_size_distribution import MapChanges
from mcllo._inference.levels import width_at
from mcllo._utils.statements import ESTIMATION_WARNINGS, suppress_warnings
from mcllo._validation.predictions import Predictions
from studies.claims import Rows, draw, rows_like, share
from studies.pages import fill

PAGE = "explanation/effect-size.md"
TOLERANCE = 0.01
FOLLOW = 0.6
"""Share of a group's rows whose labels follow the group's own uniform."""


@dataclass(frozen=True)
class Design:
    """Rows of some kind, and what is wrong with them.

    `wrong` is a slope for all log odds, "shift:0.7" (one class more likely), "random:0.3" (every
    class has its own shift) or "tolerance" (the slope below 1 that changes by `TOLERANCE`);
    `groups` is the number of groups whose rows depend on each other.
    """

    name: str
    kind: str
    n: int
    c: int
    wrong: str = "1"
    groups: int = 0

    def map(self, probs: np.ndarray, rng: np.random.Generator) -> MCLLOMap:
        """Return the true map of these rows."""
        tau, gamma = np.zeros(self.c - 1), np.ones(self.c - 1)
        word, _, number = self.wrong.partition(":")
        if word == "shift":
            tau[0] = float(number)
        elif word == "random":
            tau = rng.normal(0.0, float(number), self.c)[:-1]
        else:
            gamma[:] = tolerable_slope(probs) if word == "tolerance" else float(word)
        return MCLLOMap(tau, gamma, tuple(range(self.c)), self.c - 1)


DESIGNS = (
    Design("flat, calibrated", "dirichlet:1", 100, 3),
    Design("flat, slope 0.5", "dirichlet:1", 100, 3, "0.5"),
    Design("flat, calibrated", "dirichlet:1", 1000, 4),
    Design("flat, slope 0.8", "dirichlet:1", 1000, 4, "0.8"),
    Design("flat, one class shifted", "dirichlet:1", 1000, 4, "shift:0.5"),
    Design("flat, slope 0.98", "dirichlet:1", 20_000, 4, "0.98"),
    Design("flat, slope 0.8", "dirichlet:0.6", 500, 10, "0.8"),
    Design("flat, every class shifted", "dirichlet:0.6", 500, 10, "random:0.3"),
    Design("network, slope 0.7", "network", 2000, 10, "0.7"),
    Design("network, slope 1.3", "network", 2000, 10, "1.3"),
    Design("network, one class shifted", "network", 2000, 10, "shift:1"),
    Design("network, calibrated", "network", 8000, 10),
    Design("network, slope 0.7", "network", 8000, 10, "0.7"),
    Design("sharp, calibrated", "sharp", 2000, 5),
    Design("sharp, slope 0.7", "sharp", 2000, 5, "0.7"),
    Design("rare events, slope 0.7", "rare", 1000, 2, "0.7"),
    Design("rare events, shifted", "rare", 5000, 2, "shift:0.5"),
    Design("flat, at the tolerance", "dirichlet:1", 20_000, 4, "tolerance"),
    Design("network, at the tolerance", "network", 8000, 10, "tolerance"),
    Design("rare events, at the tolerance", "rare", 10_000, 2, "tolerance"),
    Design("60 groups, flat, slope 0.7", "dirichlet:1", 1200, 3, "0.7", 60),
    Design("20 groups, flat, slope 0.7", "dirichlet:1", 400, 3, "0.7", 20),
    Design("300 groups, network, slope 0.7", "network", 6000, 10, "0.7", 300),
    Design("often no finite map, slope 0.5", "dirichlet:1", 15, 5, "0.5"),
)


def tolerable_slope(probs: np.ndarray) -> float:
    """Return the slope below 1 that changes these rows by `TOLERANCE` on average."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        g = probs**middle
        g /= g.sum(axis=1, keepdims=True)
        off = 0.5 * np.abs(g - probs).sum(axis=1).mean()
        low, high = (middle, high) if off > TOLERANCE else (low, middle)
    return high


def labels(
    g: np.ndarray, groups: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Return labels that follow `g`; rows of a group may share what they are drawn with."""
    if groups is None:
        return draw(g, rng)
    own, shared = rng.random(len(g)), rng.random(groups.max() + 1)[groups]
    u = np.where(rng.random(len(g)) < FOLLOW, shared, own)
    return (u[:, None] > g.cumsum(axis=1)[:, :-1]).sum(axis=1)


def one(design: Design, rng: np.random.Generator) -> dict[str, Any]:
    """Return what one data set shows."""
    x = rows_like(design.kind, design.n, design.c, rng)
    g = design.map(x, rng).recalibrate(x)
    groups = rng.integers(0, design.groups, design.n) if design.groups else None
    p = Predictions.from_arrays(x, labels(g, groups, rng), groups=groups)
    with suppress_warnings(*ESTIMATION_WARNINGS):
        fit = fit_predictions(p)
    fit = fit if groups is None else with_robust_covariance(p, fit)
    size = estimate_effect_size(p, fit, seed=int(rng.integers(2**31)))
    return {"size": size, "plain": plain(p, fit), **truth(p.probs, g, size)}


def plain(p: Predictions, fit: MCLLOFit) -> tuple[float, float]:
    """Return the uncorrected mean change less and plus two standard errors (delta method)."""
    moved, step = MapChanges(p.log_odds, np.ones(p.n_samples)), 1e-4
    slope = np.array(
        [
            (
                moved.sizes(fit.theta + step * e)[0]
                - moved.sizes(fit.theta - step * e)[0]
            )
            / step
            / 2
            for e in np.eye(len(fit.theta))
        ]
    )
    error = 1.96 * float(np.sqrt(max(0.0, slope @ fit.cov_theta @ slope)))
    size = float(moved.sizes(fit.theta)[0])
    return size - error, size + error


def truth(x: np.ndarray, g: np.ndarray, size: EffectSize) -> dict[str, Any]:
    """Return the true sizes, and which levels hold the true share of right answers."""
    rows, top = np.arange(len(x)), x.argmax(axis=1)
    said, right = x[rows, top], g[rows, top]
    held = []
    for level in size.levels:
        near = np.abs(said - level.says) <= width_at(level.says)
        held.append(level.low <= level.says + (right - said)[near].mean() <= level.high)
    return {
        "change": 0.5 * np.abs(g - x).sum(axis=1).mean(),
        "top": np.abs(right - said).mean(),
        "gain": (g * np.log(g / x)).sum(axis=1).mean(),
        "levels": held,
    }


def holds(low: float, true: float, high: float) -> bool:
    """Whether an interval holds the truth, up to rounding."""
    return bool(low <= true + 1e-12 and true <= high + 1e-12)


def measured(design: Design, reps: int, seed: int) -> dict[str, Any]:
    """Return one row of the table."""
    rng = np.random.default_rng([seed, design.n, design.c, len(design.name)])
    found = [one(design, rng) for _ in range(reps)]

    def rate(hit: Callable[[EffectSize, dict[str, Any]], bool]) -> float:
        return share([hit(f["size"], f) for f in found])[0]

    return {
        "design": design.name,
        "n": design.n,
        "c": design.c,
        "reps": reps,
        "finite": rate(lambda s, f: s.method == "ray"),
        "true": float(np.mean([f["change"] for f in found])),
        "estimate": float(np.median([f["size"].mean_change for f in found])),
        "bound": float(np.median([f["size"].high for f in found])),
        "change": rate(lambda s, f: holds(s.low, f["change"], s.high)),
        "top": rate(lambda s, f: holds(s.top_low, f["top"], s.top_high)),
        "gain": rate(lambda s, f: holds(s.gain_low, f["gain"], s.gain_high)),
        "within": rate(lambda s, f: f["change"] > 1e-12 and s.within(f["change"])),
        "levels": float(np.mean([h for f in found for h in f["levels"]] or [np.nan])),
        "plain": rate(lambda s, f: holds(f["plain"][0], f["change"], f["plain"][1])),
        "se": share([holds(f["size"].low, f["change"], f["size"].high) for f in found])[
            1
        ],
    }


def run(reps: int, seed: int = 14, designs: tuple[Design, ...] = DESIGNS) -> Rows:
    """Return one row for each design."""
    return [measured(design, reps, seed) for design in designs]


TABLE = """\
| predictions | rows | classes | finite map | true | estimate | high | holds: change | top | \
gain | levels | within, wrongly | uncorrected holds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
{*rows} | {design} | {n:,} | {c} | {finite:.2f} | {true:.4f} | {estimate:.4f} | {bound:.4f} | \
{change:.3f} | {top:.3f} | {gain:.3f} | {levels:.3f} | {within:.3f} | {plain:.3f} |

{reps:,} data sets for each row; a coverage of .95 has a standard error of {se:.3f}. Estimate and
high are medians; a dash: too few rows near any level."""


def table(rows: Rows) -> str:
    """Return the table of the page."""
    reps = rows[0]["reps"]
    return fill(TABLE, {"rows": rows, "reps": reps, "se": (0.95 * 0.05 / reps) ** 0.5})
