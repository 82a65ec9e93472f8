"""The simulation study: how often the test rejects, and what recalibration does to ECE.

=================  ==============================================================================
``grid``           the paper's 30 settings, chi-square p-values, ECE before and after
``exact``          the same data sets, as many as time allows, with exact p-values
`OTHERS`           the corners of the grid with rows from four other distributions
`EFFECTS`          rows as an image network gives them, with the default p-value: size and power
=================  ==============================================================================

Every part has the same seed, so that repetition r of a setting is the same data set in each.
`simulate` is the long run: it writes ``power.npz`` of the package, chi-square p-values in single
precision and ECE in units of 1e-5. Exact p-values stay in double precision: many are 0.05 to the
last digit, which decides. `analyse` reads that file, and makes it first where it is missing.

Large-sample theory of a rate: the statistic is noncentral chi-square with ``2 (c - 1)`` degrees of
freedom and noncentrality ``2 n E[KL(g || x)]``, g the truth that belongs to the prediction x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.integrate import quad
from scipy.stats import beta, chi2, ncx2

import mcllo.plot
import mcllo.simulate
from mcllo.plot._power import draw_boxplots
from mcllo.reproduce import figure2, figure4
from mcllo.reproduce._tables import ALPHA, ECE_UNIT, STUDY_SEED, unpack_part
from mcllo.reproduce._tables import ROWS_FROM as OURS
from mcllo.simulate import PowerCell, PowerStudy

from ..figures import BLUE, INK, MUTED, SERIES, Canvas, heading, line_look, look, ticks
from ..pages import DATA, Row, Rows, Tables, column, rounded
from ..rule import claim_rows, verdict_facts
from .verdicts import claims

HERE = Path(__file__).parent
REPETITIONS = DATA.parents[1] / "reproduce" / "data" / "power.npz"
"""In the package: `mcllo reproduce` draws the paper's figures from it."""
MARGIN, MARGIN_SD, NOISE, ROWS, CLASSES = 16.0, 5.0, 3.0, 20_000, 10
DELTAS = (1.0, 1.1, 1.2, 1.3, 1.4)
CORNERS: dict[str, Any] = {
    "n_samples": (400, 1000, 5000),
    "delta_1": (1.0, 1.4),
    "reps": 300,
}
OTHERS: dict[str, dict[str, Any]] = {
    "dirichlet_1": {"distribution": "dirichlet", "concentration": 1.0},
    "dirichlet_0.3": {"distribution": "dirichlet", "concentration": 0.3},
    "dirichlet_0.1": {"distribution": "dirichlet", "concentration": 0.1},
    "softmax_normal": {"distribution": "softmax_normal", "scale": 1.0},
}
SHARP = (250, 500, 1000, 2000)
EFFECTS = ("null", "overconfident")
PARTS: dict[str, dict[str, Any]] = {
    "grid": {
        "n_samples": (400, 450, 500, 600, 1000, 5000),
        "delta_1": DELTAS,
        "reps": 1000,
    },
    "exact": {
        "n_samples": (400, 450, 500, 600, 1000),
        "delta_1": (1.0, 1.2, 1.4),
        "reps": 150,
    }
    | {"exact": True},
    **{name: CORNERS | rows for name, rows in OTHERS.items()},
    "null": {"n_samples": SHARP, "reps": 300, "delta": 1.0},
    "overconfident": {"n_samples": SHARP, "reps": 200, "gamma": 0.7},
}
WORDS = {
    "grid": OURS,
    "dirichlet_1": "Dirichlet(1, ..., 1)",
    "dirichlet_0.3": "Dirichlet(0.3, ..., 0.3)",
    "dirichlet_0.1": "Dirichlet(0.1, ..., 0.1)",
    "softmax_normal": "softmax of N(0, 1)",
}
EFFECT_WORDS = {"null": "nothing is wrong", "overconfident": "gamma = 0.7"}
DEFAULT: dict[str, Any] = {"color": BLUE, "ls": "-", "marker": "o", "markersize": 6}
CHI2 = line_look(1)
BOXES = {"ece_before": ("as drawn", BLUE), "ece_after": ("after MCLLO", SERIES[2])}
FAIR: dict[str, Any] = {
    "color": INK,
    "ls": (0, (1, 1.5)),
    "marker": "x",
    "markersize": 6.5,
}
LEVEL: dict[str, Any] = {"color": MUTED, "lw": 1.0, "ls": (0, (4, 3))}


def analyse() -> tuple[Tables, dict[str, Any]]:
    """Return tables and figures, in a few seconds; in minutes where the long run is missing."""
    if not REPETITIONS.exists():
        print(
            f"{REPETITIONS.name} is missing: the long run, 7 minutes, goes on from its cache."
        )
        simulate(to=REPETITIONS)
    studies = read_studies(REPETITIONS)
    tables = {
        "cells": grid_rows(studies["grid"]),
        "exact": exact_rows(studies["exact"]),
        "others": other_rows(studies),
        "sharp": sharp_rows(studies),
    }
    tables["verdicts"] = claim_rows(
        claims({name: rounded(rows) for name, rows in tables.items()})
    )
    return tables, {
        "rejection": figure2().axes,
        "ece_boxplots": boxes_figure(studies["grid"]),
        "ece_difference": figure4().axes,
        "sharp": sharp_figure(tables["sharp"]),
    }


def simulated(part: str, **changes: Any) -> PowerStudy:
    """Simulate a part of the study, or the piece of it that `changes` ask for."""
    options = {"seed": STUDY_SEED} | PARTS[part] | changes
    if part in EFFECTS:
        return mcllo.simulate.power_for(network_rows(), **options)
    return mcllo.simulate.power(**options)


def network_rows() -> np.ndarray:
    """Return rows like those of an image network: ``softmax(z)``, one class far above the rest.

    ``z_j ~ N(0, 3^2)``, and ``N(16, 5^2)`` more for one class drawn at random, raised to 1e-6 as
    the named distributions are. 2.6 % of the labels drawn from them are not the top class.

    >>> rows = network_rows()
    >>> rows.shape, round(float(np.mean(1 - rows.max(axis=1))), 4), bool(rows.min() > 0.99e-6)
    ((20000, 10), 0.0256, True)
    """
    rng = np.random.default_rng(STUDY_SEED)
    z = rng.normal(0.0, NOISE, (ROWS, CLASSES))
    z[np.arange(ROWS), rng.integers(CLASSES, size=ROWS)] += rng.normal(
        MARGIN, MARGIN_SD, ROWS
    )
    x = np.exp(z - z.max(axis=1, keepdims=True))
    x = np.maximum(x / x.sum(axis=1, keepdims=True), 1e-6)
    return x / x.sum(axis=1, keepdims=True)


def simulate(
    n_jobs: int = 1, cache: Path = HERE / "cache", to: Path = REPETITIONS
) -> None:
    """Run what is not in the cache, in 7 minutes of one processor, and write the repetitions.

    A run that was stopped goes on from its cache; delete the folder to begin afresh. The numbers
    do not depend on `n_jobs`.
    """
    cache.mkdir(exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for part, options in PARTS.items():
        if part not in EFFECTS:
            found = packed(
                simulated(part, n_jobs=n_jobs, resume=cache / f"{part}.json")
            )
        else:
            cells = [sharp_cell(cache, part, n, n_jobs) for n in options["n_samples"]]
            found = {
                name: np.concatenate([cell[name] for cell in cells])
                for name in cells[0]
            }
        arrays |= {f"{part}/{name}": values for name, values in found.items()}
    to.parent.mkdir(exist_ok=True)
    np.savez_compressed(to, **arrays)


def sharp_cell(cache: Path, part: str, n: int, n_jobs: int) -> dict[str, np.ndarray]:
    """Return the repetitions on file, or make and keep them: `power_for` has no resume."""
    path = cache / f"{part}_{n}.npz"
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            np.savez(file, **packed(simulated(part, n_samples=n, n_jobs=n_jobs)))
        temporary.rename(path)
    with np.load(path) as kept:
        return dict(kept)


def packed(study: PowerStudy) -> dict[str, np.ndarray]:
    """Return the repetitions of a study, a row per setting, in few bytes.

    Studies with exact p-values are about these: their ECE is left out.
    """
    cells = study.rows
    kept = {
        "n": np.array([cell.n for cell in cells]),
        "delta_1": np.array([cell.delta_1 or np.nan for cell in cells]),
        "p_chi2": np.array([cell.pvalues_chi2 for cell in cells], dtype=np.float32),
    }
    if study.test != "chi2":
        return kept | {"p": np.array([cell.pvalues for cell in cells])}
    for name in ("ece_before", "ece_after"):
        errors = np.array([getattr(cell, name) for cell in cells])
        kept[name] = np.round(errors / ECE_UNIT).astype(np.uint16)
    return kept


def read_studies(path: Path = REPETITIONS) -> dict[str, PowerStudy]:
    """Return the parts of the long run by name."""
    with np.load(path) as file:
        arrays = dict(file)
    tests = dict.fromkeys(EFFECTS, "auto") | {"exact": "exact"}
    return {
        part: unpack_part(arrays, part, tests.get(part, "chi2"), WORDS.get(part, OURS))
        for part in PARTS
    }


def rates(cell: PowerCell, rejected: str = "rejected") -> dict[str, Any]:
    """Return how often a setting was rejected, with the simulation's interval."""
    return {"reps": cell.reps, rejected: cell.power, "low": cell.low, "high": cell.high}


def errors(cell: PowerCell) -> dict[str, float]:
    """Return the mean ECE of a setting before and after, and what is between them."""
    gain = cell.ece_before - cell.ece_after
    found = {
        "ece_before": cell.ece_before,
        "ece_after": cell.ece_after,
        "difference": gain,
    }
    row = {name: float(values.mean()) for name, values in found.items()}
    root = np.sqrt(cell.reps)
    row |= {f"{name}_se": float(v.std(ddof=1) / root) for name, v in found.items()}
    return row | {"lowered": float(np.mean(gain > 0))}


def grid_rows(study: PowerStudy) -> Rows:
    """Return the paper's 30 settings: rates, what theory gives, and ECE."""
    divergence = {shift: divergence_of(shift) for shift in DELTAS}
    rows = []
    for cell in study.rows:
        expected = round(theory(cell.n, divergence[cell.delta_1]), 4)
        head = {"n": cell.n, "delta_1": cell.delta_1, **rates(cell), "theory": expected}
        rows.append(head | errors(cell))
    return rows


def divergence_of(delta_1: float) -> float:
    """Return ``E[KL(g || x)]`` of our design, in which the first class's x is Beta(3, 2.7).

    Only its odds are wrong: ``KL(g || x) = g_1 log(delta_1) - log s``, ``s = 1 + (delta_1 - 1) x``
    and ``g_1 = delta_1 x / s``.
    """

    def integrand(x: float) -> float:
        s = 1.0 + (delta_1 - 1.0) * x
        return float(
            (delta_1 * x / s * np.log(delta_1) - np.log(s)) * beta.pdf(x, 3.0, 2.7)
        )

    return float(quad(integrand, 0.0, 1.0)[0])


def theory(n: int, divergence: float, df: int = 2 * (CLASSES - 1)) -> float:
    """Return the power that large-sample theory gives.

    >>> theory(400, divergence_of(1.0)), round(theory(5000, divergence_of(1.4)), 4)
    (0.05, 1.0)
    """
    critical = chi2.isf(ALPHA, df)
    return float(ncx2.sf(critical, df, 2 * n * divergence) if divergence else ALPHA)


def exact_rows(study: PowerStudy) -> Rows:
    """Return how often exact and chi-square p-values of the same data sets reject."""
    rows = []
    for cell in study.rows:
        same = np.mean((cell.pvalues <= ALPHA) == (cell.pvalues_chi2 <= ALPHA))
        head = {"n": cell.n, "delta_1": cell.delta_1, **rates(cell, "rejected_exact")}
        rows.append(
            head | {"rejected_chi2": cell.power_chi2, "same_decision": float(same)}
        )
    return rows


def other_rows(studies: dict[str, PowerStudy]) -> Rows:
    """Return the corners of the grid for each distribution of the rows, ours first."""
    return [
        {
            "rows": words,
            "n": cell.n,
            "delta_1": cell.delta_1,
            **rates(cell),
            **errors(cell),
        }
        for name, words in WORDS.items()
        for cell in studies[name].rows
        if cell.n in CORNERS["n_samples"] and cell.delta_1 in CORNERS["delta_1"]
    ]


def sharp_rows(studies: dict[str, PowerStudy]) -> Rows:
    """Return size and power of the default p-value and of chi-square's on sharp rows.

    ``chi2_fair`` judges chi-square by the level at which it would reject 5 % of the data sets in
    which nothing is wrong.
    """
    share = float(np.mean(1.0 - network_rows().max(axis=1)))
    fair = {
        cell.n: np.quantile(cell.pvalues_chi2, ALPHA) for cell in studies["null"].rows
    }
    rows = []
    for effect in EFFECTS:
        for cell in studies[effect].rows:
            by_chi2 = replace(cell, pvalues=cell.pvalues_chi2)
            row = {
                "effect": effect,
                "n": cell.n,
                "expected_errors": round(share * cell.n, 1),
            }
            row |= rates(cell) | {"rejected_chi2": by_chi2.power}
            row |= {"low_chi2": by_chi2.low, "high_chi2": by_chi2.high}
            rows.append(
                row | {"chi2_fair": float(np.mean(cell.pvalues_chi2 <= fair[cell.n]))}
            )
    return rows


@look()
def boxes_figure(study: PowerStudy) -> list[Axes]:
    """Draw ECE before and after in every setting, a panel per n, as the paper's Figure 3 does."""
    sizes = sorted({cell.n for cell in study.rows})
    figure = Canvas(9.2, 5.6)
    axes = figure.panels(2, 3, sharex=True, sharey=True)
    for ax, n in zip(axes, sizes, strict=True):
        cells = [cell for cell in study.rows if cell.n == n]
        for side, (name, (_, colour)) in zip((-0.19, 0.19), BOXES.items(), strict=True):
            draw_boxplots(ax, [getattr(cell, name) for cell in cells], side, colour)
        heading(ax, f"n = {n:,}")
    for i, ax in enumerate(axes):
        ax.tick_params(labelbottom=i >= 3, labelleft=i % 3 == 0)
    axes[0].set_xlim(-0.6, len(DELTAS) - 0.4)
    axes[0].set_ylim(bottom=0.0)
    ticks(axes[0].xaxis, range(len(DELTAS)), lambda place: f"{DELTAS[round(place)]:g}")
    for ax in axes[::3]:
        ax.set_ylabel("ECE (probability)")
    axes[4].set_xlabel("delta of the first class (1: the predictions are calibrated)")
    key = [
        Patch(facecolor=c, alpha=0.55, edgecolor=INK, label=w)
        for w, c in BOXES.values()
    ]
    words = (
        f"{study.rows[0].reps:,} data sets a box. Whiskers: at "
        "most 1.5 times the box, as R has "
    )
    figure.footer(
        f"{words}them; points: data sets beyond. n = 5,000 is the paper's Figure 3.",
        key,
    )
    return axes


@look()
def sharp_figure(rows: Sequence[Row]) -> list[Axes]:
    """Draw size and power of the default p-value and of chi-square's on sharp rows."""
    figure = Canvas(9.0, 3.7)
    axes = figure.panels(1, 2)
    for ax, effect in zip(axes, EFFECTS, strict=True):
        line = [row for row in rows if row["effect"] == effect]
        n = column(line, "n")
        for tail, style, aside in (("_chi2", CHI2, 1.02), ("", DEFAULT, 0.98)):
            middle, low, high = (
                column(line, e + tail) for e in ("rejected", "low", "high")
            )
            ax.vlines(aside * n, low, high, color=style["color"], lw=1.2, alpha=0.6)
            ax.plot(aside * n, middle, **style)
        ax.set_xscale("log")
        ticks(ax.xaxis, SHARP, "{:,.0f}".format)
        ax.set_xlabel("Rows in the data set (n, log scale)")
        ax.axhline(ALPHA, **LEVEL)
    size, power = axes
    power.plot(n, column(line, "chi2_fair"), **FAIR)
    size.set_ylim(0.0, None)
    power.set_ylim(0.0, 1.02)
    size.set_ylabel("Rejection rate")
    heading(
        size, "Nothing is wrong", "every rejection is an error; dashed: the level, 0.05"
    )
    heading(
        power,
        "Overconfident, gamma = 0.7",
        "every rejection is right; note the other scale",
    )
    key = [
        Line2D([], [], label="default p-value", **DEFAULT),
        Line2D([], [], label="chi-square", **CHI2),
        Line2D(
            [], [], label="chi-square at the level that holds 5 % on the left", **FAIR
        ),
    ]
    figure.footer("Bars: 95 % intervals of the simulation.", key)
    return axes


def facts(t: Tables) -> dict[str, object]:
    """Return what the page asks for, from the tables."""
    fair = {"null": {"chi2_fair": None}}
    words = [
        row | fair.get(row["effect"], {}) | {"effect": EFFECT_WORDS[row["effect"]]}
        for row in t["sharp"]
    ]
    return {
        **grid_facts(t["cells"]),
        **other_facts(t["others"]),
        **verdict_facts(t["verdicts"]),
        "sharp_null": {row["n"]: row for row in t["sharp"] if row["effect"] == "null"},
        "exact": t["exact"],
        "others": pairs(t["others"]),
        "sharp": words,
    }


def grid_facts(cells: Sequence[Row]) -> dict[str, object]:
    """Return the grid by n, in the order of delta_1, and what the verdicts quote of it."""
    at = {f"{row['n']}, {row['delta_1']}": row for row in cells}
    null = [row for row in cells if row["delta_1"] == 1]
    most = [row for row in cells if row["delta_1"] == 1.4 and row["n"] != 5000]
    largest = [row for row in cells if row["n"] == 5000]
    trials = sum(row["reps"] for row in null)
    last, before = at["5000, 1.4"], at["1000, 1.4"]
    error = math.hypot(before["difference_se"], last["difference_se"])
    sizes = list(dict.fromkeys(row["n"] for row in cells))
    return {
        "cell": at,
        "sizes": [
            {"n": n, "at": [row for row in cells if row["n"] == n]} for n in sizes
        ],
        **ends("size", null, "rejected"),
        "size_all": sum(row["rejected"] * row["reps"] for row in null) / trials,
        "null_reps": trials,
        **ends("after", largest, "ece_after"),
        **ends("null", null, "difference"),
        **ends("gain", most, "difference"),
        "gain_z": (last["difference"] - before["difference"]) / error,
    }


def ends(name: str, rows: Sequence[Row], what: str) -> dict[str, object]:
    """Return the smallest and the largest number of a column."""
    values = column(rows, what)
    return {f"{name}_low": values.min(), f"{name}_high": values.max()}


def pairs(rows: Sequence[Row]) -> Rows:
    """Return the rows two by two: delta_1 = 1, and the shifted one."""
    both = zip(rows[::2], rows[1::2], strict=True)
    return [{"null": null, "shifted": shifted} for null, shifted in both]


def other_facts(rows: Sequence[Row]) -> dict[str, object]:
    """Return what the verdicts quote of other rows, 5,000 of them."""
    largest = [row for row in rows if row["n"] == 5000 and row["rows"] != OURS]
    return ends("flat", largest[1::2], "difference")
