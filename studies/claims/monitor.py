"""Does the monitor keep its promises, and how soon does it see a change?

**Calm streams**: calibrated batches only, many streams at once (`_streams`). `ever` is the share of
streams in which the evidence ever reached 1 / 0.05, `detector` that in which the detector ever
reached 1,000, of `looks` batches; `mean_run` the mean number of batches until the detector reached
`SHORT_RUN`, those that never did counted as all the batches there were.

**The prototype's designs**: 400 streams of each slope, against the detector and the plain e-process
(a product since the first batch) of eight temperatures with the same share and nothing else.

**Changed streams**: calm batches first, then labels that follow another map. Delays are batches
after the first wrong one (0: at once), medians over the streams without an alarm before it; a
stream without any alarm counts as all the batches there were.

============  ====================================================================================
detector      1,000 batches to a false alarm at least
ever          evidence since the start, 5 %
prototype     the detector with eight temperatures, each with the same share, and nothing else
oracle        the detector with the true map alone
bonferroni    chi-square test of each batch alone at 0.05 / (planned looks)
spending      chi-square test of all rows so far at 0.05 / (k (k + 1)) after batch k
probcal       `CalibrationMonitor` of PyPI's probcal (two classes only), 5 %; where it is installed
============  ====================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcllo._inference.calibration_test import calibration_test
from mcllo._monitor.e_process import Detector
from mcllo._monitor.e_values import (
    EXPONENTS,
    MapLearners,
    batch_e_values,
    update_map_learners,
)
from mcllo._validation.predictions import Predictions
from studies.claims import Rows, draw, rows_like, scaled, share
from studies.claims._streams import Streams, log_sum, of_labels
from studies.pages import grid

PAGE = "explanation/monitoring.md"
ALPHA, RUN_LENGTH = 0.05, 1000.0
SHORT_RUN = 50.0
"""A threshold low enough for the mean number of batches until it is reached to be seen."""
EIGHT = (0.5, 0.59, 0.71, 0.84, 0.92, 1.09, 1.19, 1.41)
"""Exponents of the prototype, by the nearest of the grid."""
WAYS = ("detector", "ever", "prototype", "oracle", "bonferroni", "spending", "probcal")


@dataclass(frozen=True)
class Design:
    """Batches of `n` rows; after `calm` of them labels follow a slope, or a shift of class 0."""

    name: str
    kind: str
    c: int
    n: int
    calm: int
    looks: int
    slope: float = 1.0
    shift: float = 0.0
    streams: int = 400

    def truth(self, probs: np.ndarray) -> np.ndarray:
        """Return what the labels follow after the change."""
        shifts = np.zeros(self.c)
        shifts[0] = self.shift
        return scaled(probs, self.slope, shifts)


CALM = (
    Design("c = 3, batches of 1 row", "dirichlet:0.7", 3, 1, 1000, 1000, streams=300),
    Design("c = 3, batches of 20", "dirichlet:0.7", 3, 20, 1000, 1000, streams=200),
    Design("c = 10, a sharp network, 50", "network", 10, 50, 1000, 1000, streams=60),
    Design("c = 10, sharp, 20", "sharp", 10, 20, 1000, 1000, streams=150),
    Design("c = 10, nine of them rare, 5", "rare", 10, 5, 1000, 1000, streams=150),
    Design("c = 30, sharp, 5", "sharp", 30, 5, 1000, 1000, streams=60),
    Design("c = 2, rare events, 20", "rare", 2, 20, 1000, 1000, streams=300),
    Design("c = 2, rare events, 2", "rare", 2, 2, 1000, 1000, streams=300),
)
SLOPES = (
    Design("slope 0.6", "dirichlet:0.7", 4, 120, 14, 40, 0.6),
    Design("slope 0.8", "dirichlet:0.7", 4, 120, 14, 80, 0.8),
    Design("slope 0.9", "dirichlet:0.7", 4, 120, 14, 160, 0.9),
)
CHANGED = (
    Design("c = 4, slope 0.6, batches of 120", "dirichlet:0.7", 4, 120, 14, 60, 0.6),
    Design("c = 4, slope 0.8", "dirichlet:0.7", 4, 120, 14, 74, 0.8),
    Design("c = 4, slope 0.9", "dirichlet:0.7", 4, 120, 14, 114, 0.9),
    Design(
        "c = 4, odds of one class doubled", "dirichlet:0.7", 4, 120, 14, 60, shift=0.7
    ),
    Design("c = 10, a sharp network, slope 0.7, 300", "network", 10, 300, 14, 74, 0.7),
    Design("c = 2, slope 0.7, from the start", "dirichlet:1", 2, 100, 0, 80, 0.7),
    Design("c = 2, slope 0.7, after 14", "dirichlet:1", 2, 100, 14, 94, 0.7),
    Design(
        "c = 2, odds times 1.5, from the start", "dirichlet:1", 2, 100, 0, 80, shift=0.4
    ),
    Design("c = 2, odds times 1.5, after 14", "dirichlet:1", 2, 100, 14, 94, shift=0.4),
    Design(
        "c = 2, odds times 1.5, after 100", "dirichlet:1", 2, 100, 100, 200, shift=0.4
    ),
    Design(
        "c = 2, rare events twice as many, after 14", "rare", 2, 200, 14, 94, shift=0.7
    ),
)


def stream(design: Design, seed: int, ways: tuple[str, ...]) -> dict[str, float]:
    """Return the batch of each alarm, counted from 1; infinity without one."""
    rng, c = np.random.default_rng([seed, 19]), design.c
    detector, past = Detector.new(c), MapLearners.new(c, c - 1)
    places = [int(np.abs(EXPONENTS - u).argmin()) for u in EIGHT]
    few, known, so_far = (
        np.full(8, -np.inf),
        -math.inf,
        list[tuple[np.ndarray, np.ndarray]](),
    )
    other = _probcal() if "probcal" in ways and c == 2 else None
    alarms = dict.fromkeys(ways, math.inf)
    for k in range(1, design.looks + 1):
        probs = rows_like(design.kind, design.n, c, rng)
        truth = design.truth(probs) if k > design.calm else probs
        y = draw(truth, rng)
        rows = Predictions.from_arrays(probs, y, classes=range(c))
        factors = batch_e_values(rows, past, detector.leading_map)
        detector, past = detector.after(factors), update_map_learners(rows, past)
        few = np.logaddexp(few, 0.0) + factors.temperatures[places]
        at = np.arange(design.n)
        gained = np.log(design.truth(probs)[at, y] / probs[at, y]).sum()
        known = np.logaddexp(known, 0.0) + gained
        above = {
            "detector": detector.log_detector >= math.log(RUN_LENGTH),
            "ever": detector.log_evidence >= -math.log(ALPHA),
            "prototype": np.logaddexp.reduce(few) - math.log(8.0)
            >= math.log(RUN_LENGTH),
            "oracle": known >= math.log(RUN_LENGTH),
        }
        if "bonferroni" in ways:
            above["bonferroni"] = _rejects(rows, ALPHA / design.looks)
        if "spending" in ways:
            so_far.append((probs, y))
            together = [np.concatenate(part) for part in zip(*so_far, strict=True)]
            level = ALPHA / (k * (k + 1))
            everything = Predictions.from_arrays(*together, classes=range(c))
            above["spending"] = _rejects(everything, level)
        if other is not None:
            above["probcal"] = other.update(y, probs[:, 1], label=str(k)).alarm
        for way in ways:
            if above.get(way) and math.isinf(alarms[way]):
                alarms[way] = k
        if all(math.isfinite(alarms[way]) for way in ways if way in above):
            break
    return alarms


def many(design: Design, n_streams: int, seed: int) -> dict[str, np.ndarray]:
    """Return the batch of each alarm for many streams at once; infinity without one."""
    rng, c = np.random.default_rng(seed), design.c
    streams, at = Streams(n_streams, c), (n_streams, design.n)
    exponents = np.array(EIGHT)[:, None, None, None]
    sums, products = np.full((8, n_streams), -np.inf), np.zeros((8, n_streams))
    alarms: dict[str, np.ndarray] = {}
    for k in range(1, design.looks + 1):
        probs = rows_like(design.kind, n_streams * design.n, c, rng)
        y = draw(design.truth(probs) if k > design.calm else probs, rng).reshape(at)
        x = probs.reshape(*at, c)
        evidence, detector = streams.step(x, y)
        above = {
            "detector": detector >= math.log(RUN_LENGTH),
            "short": detector >= math.log(SHORT_RUN),
            "ever": evidence >= -math.log(ALPHA),
        }
        if design.calm < design.looks:
            logs = np.log(x)
            heated = exponents * logs
            own = np.stack([of_labels(g, y) for g in heated]) - log_sum(heated)
            gained = (own - of_labels(logs, y)).sum(axis=2)
            sums, products = np.logaddexp(sums, 0.0) + gained, products + gained
            above["prototype"] = log_sum(sums.T) - math.log(8.0) >= math.log(RUN_LENGTH)
            above["plain"] = log_sum(products.T) - math.log(8.0) >= -math.log(ALPHA)
        for way, reached in above.items():
            first = alarms.setdefault(way, np.full(n_streams, np.inf))
            first[reached & np.isinf(first)] = k
    return alarms


def _rejects(rows: Predictions, level: float) -> bool:
    if len(np.unique(rows.codes)) < 2:
        return False
    return bool(calibration_test(rows, method="chi2").pvalue <= level)


def _probcal() -> Any:
    try:
        from probcal.monitor import CalibrationMonitor
    except ImportError:
        return None
    return CalibrationMonitor(alpha=ALPHA)


def run(
    reps: int,
    calm: tuple[Design, ...] = CALM,
    slopes: tuple[Design, ...] = SLOPES,
    changed: tuple[Design, ...] = CHANGED,
    ways: tuple[str, ...] = WAYS,
    most: int = 0,
) -> Rows:
    """Return one row for each design; slow ways get fewer repetitions.

    Streams that are made at once are as many as their design says, `most` of them or 4 `reps`.
    """
    rows: Rows = []
    for design in calm:
        few = min(design.streams, most or 4 * reps)
        alarms = many(design, few, seed=5)
        row = _empty(design, few, "calm")
        row["mean_run"] = float(np.minimum(alarms["short"], design.looks).mean())
        for way in ("detector", "ever"):
            row[way], row[f"{way}_se"] = share(np.isfinite(alarms[way]))
        rows.append(row)
    for design in slopes:
        few = min(design.streams, most or 4 * reps)
        row = _empty(design, few, "slopes")
        for way, first in many(design, few, seed=77).items():
            if way != "short":
                late = first[first > design.calm] - design.calm - 1
                row[way] = float(np.median(late))
        rows.append(row)
    for design in changed:
        found = [stream(design, seed, ways) for seed in range(max(2, reps // 4))]
        row = _empty(design, len(found), "changed")
        for way in ways:
            if way == "probcal" and (design.c > 2 or _probcal() is None):
                continue
            late = np.array([alarm[way] - design.calm - 1 for alarm in found])
            before = late < 0
            if not before.all():
                row[way] = float(
                    np.median(np.minimum(late[~before], design.looks - design.calm))
                )
            row[f"{way}_false"] = float(before.mean())
        rows.append(row)
    return rows


def _empty(design: Design, reps: int, kind: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": kind,
        "design": design.name,
        "looks": design.looks,
        "reps": reps,
    }
    row |= {"calm": design.calm, "mean_run": None, "plain": None}
    row |= {"detector_se": None, "ever_se": None}
    return row | {name: None for way in WAYS for name in (way, f"{way}_false")}


def table(rows: Rows) -> str:
    """Return the tables of the page."""
    calm = [
        {
            "calibrated batches": row["design"],
            "looks": f"{row['looks']:,}",
            "streams": str(row["reps"]),
            "evidence, 5 %: ever an alarm (se)": _rate(row, "ever"),
            "detector, 1,000: ever an alarm (se)": _rate(row, "detector"),
            f"detector, {SHORT_RUN:g}: batches until then": f"{row['mean_run']:.0f}",
        }
        for row in rows
        if row["kind"] == "calm"
    ]
    slopes = [
        {
            "c = 4, batches of 120, calm for 14": row["design"],
            "streams": str(row["reps"]),
            "detector": f"{row['detector']:g}",
            "eight temperatures, detector": f"{row['prototype']:g}",
            "evidence": f"{row['ever']:g}",
            "eight temperatures, plain e-process": f"{row['plain']:g}",
        }
        for row in rows
        if row["kind"] == "slopes"
    ]
    names = {"bonferroni": "each batch, Bonferroni", "spending": "all rows, spending"}
    changed = [
        {"changed after a calm start": row["design"]}
        | {names.get(way, way): _delay(row, way) for way in WAYS}
        for row in rows
        if row["kind"] == "changed"
    ]
    return f"{grid(calm)}\n\n{grid(slopes)}\n\n{grid(changed)}"


def _rate(row: dict[str, Any], way: str) -> str:
    return f"{100 * row[way]:.1f} % ({100 * row[f'{way}_se']:.1f})"


def _delay(row: dict[str, Any], way: str) -> str:
    if row[way] is None:
        return "–"
    most = row["looks"] - row["calm"]
    return f"> {most}" if row[way] >= most else f"{row[way]:g}"
