"""How many rows must a map be learned from before it is watched?

A map is fitted to some rows and watched over 150 batches of 100, many streams at once, each with a
map of its own (`_streams`). **Nothing changes**: shares of streams with an alarm, by a monitor that
takes the map for exact (`exact`) and by one that allows for its estimation error (`allowed`). In
150 batches the detector with a run length of 1,000 may alarm in 15 %, the evidence in 5 %.
**Changed**: labels follow the slope `SLOPE` up to batch 75 and 0.5 from then on; delays are batches
after the first wrong one (0: at once), medians over the streams without an alarm before it.

Label noise replaces each label by one of all classes at random: no MCLLO map is right then, and
what is left of it is the same in all batches.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import mcllo
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.claims._streams import FittedStreams, Streams
from studies.pages import grid

PAGE = "how-to/monitor.md"
ALPHA, RUN_LENGTH = 0.05, 1000.0
LOOKS, BATCH, CHANGE = 150, 100, 75
SLOPE, CHANGED_SLOPE = 0.7, 0.5
NULLS = ("exact", "allowed")


@dataclass(frozen=True)
class Design:
    """A map of `method` learned from `n_learned` rows; `noise` of the labels are at random."""

    name: str
    n_learned: int
    noise: float = 0.0
    kind: str = "dirichlet:0.7"
    c: int = 5
    method: str = "mcllo"

    @property
    def rows_per_parameter(self) -> float:
        """Rows for each shift and slope of MCLLO."""
        return self.n_learned / (2 * (self.c - 1))

    def truth(self, probs: np.ndarray, slope: float) -> np.ndarray:
        """Return what labels follow."""
        return (1.0 - self.noise) * scaled(probs, slope) + self.noise / self.c


DESIGNS = (
    *(Design("c = 5", n) for n in (80, 160, 300, 1000, 3000, 10_000)),
    *(Design("c = 5, 5 % label noise", n, noise=0.05) for n in (300, 1000, 3000)),
    Design("c = 2", 100, c=2),
    Design("c = 2, 5 % events", 1000, c=2, kind="rare"),
    Design("c = 10, a sharp network", 1000, c=10, kind="network"),
    Design("c = 5, a temperature", 100, method="temperature"),
    Design("c = 5, auto", 300, method="auto"),
    Design("c = 10, sharp, 5 % label noise", 1000, c=10, kind="sharp", noise=0.05),
    Design("the same, auto", 1000, c=10, kind="sharp", noise=0.05, method="auto"),
)


def alarms(
    design: Design, null: str, changes: bool, n_streams: int, seed: int
) -> dict[str, Any]:
    """Return the batch of the first alarm of each stream, by rule; infinity without one."""
    rng = np.random.default_rng(
        [seed, design.n_learned, design.c, int(1000 * design.noise)]
    )
    maps = [_learned_map(design, rng) for _ in range(n_streams)]
    streams = Streams(n_streams, design.c)
    if null == "allowed":
        streams = FittedStreams(n_streams, design.c, design.n_learned)
    first = {rule: np.full(n_streams, np.inf) for rule in ("detector", "ever")}
    for k in range(1, LOOKS + 1):
        raw = rows_like(design.kind, n_streams * BATCH, design.c, rng)
        slope = CHANGED_SLOPE if changes and k > CHANGE else SLOPE
        y = draw(design.truth(raw, slope), rng).reshape(n_streams, BATCH)
        parts = zip(maps, np.split(raw, n_streams), strict=True)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # one batch in many looks like a shift of the labels
            x = np.stack(
                [np.maximum(one.predict_proba(part), 1e-12) for one, part in parts]
            )
        evidence, detector = streams.step(x, y)
        reached = {
            "detector": detector >= math.log(RUN_LENGTH),
            "ever": evidence >= -math.log(ALPHA),
        }
        for rule, is_above in reached.items():
            first[rule][is_above & np.isinf(first[rule])] = k
    return first


def _learned_map(design: Design, rng: np.random.Generator) -> Any:
    probs = rows_like(design.kind, design.n_learned, design.c, rng)
    y = draw(design.truth(probs, SLOPE), rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few rows are separated: that is the point
        return mcllo.CALIBRATORS[design.method](classes=range(design.c)).fit(probs, y)


def run(reps: int, designs: tuple[Design, ...] = DESIGNS) -> Rows:
    """Return one row for each design, from half of `reps` streams."""
    n_streams = max(4, reps // 2)
    rows: Rows = []
    for design in designs:
        row: dict[str, Any] = {
            "design": design.name,
            "n_learned": design.n_learned,
            "rows_per_parameter": design.rows_per_parameter,
            "streams": n_streams,
        }
        for null in NULLS:
            calm = alarms(design, null, False, n_streams, seed=36)
            changed = alarms(design, null, True, n_streams, seed=37)
            for rule in ("detector", "ever"):
                row[f"{null}_{rule}"], row[f"{null}_{rule}_se"] = share(
                    np.isfinite(calm[rule])
                )
                row[f"{null}_{rule}_delay"] = _delay(changed[rule])
        rows.append(row)
    return rows


def _delay(first: np.ndarray) -> float | None:
    """Return the median delay where at least a tenth of the streams had no alarm before."""
    after = first > CHANGE
    if after.mean() < 0.1:
        return None
    return float(np.median(np.minimum(first[after], LOOKS) - CHANGE - 1))


def table(rows: Rows) -> str:
    """Return the table of the page."""
    return grid(
        [
            {
                "design": row["design"],
                "learned from": f"{row['n_learned']:,}",
                "rows a parameter": f"{row['rows_per_parameter']:.0f}",
                "taken for exact: alarms": _percent(row, "exact_detector"),
                "allowed for: alarms (at most 15 %)": _percent(row, "allowed_detector"),
                "`--rule ever` (at most 5 %)": _percent(row, "allowed_ever"),
                "delay, exact": _batches(row["exact_detector_delay"]),
                "delay, allowed": _batches(row["allowed_detector_delay"]),
            }
            for row in rows
        ]
    )


def _percent(row: dict[str, Any], name: str) -> str:
    return f"{100 * row[name]:.0f} % ({100 * row[name + '_se']:.0f})"


def _batches(delay: float | None) -> str:
    return "–" if delay is None else f"{delay:g}"
