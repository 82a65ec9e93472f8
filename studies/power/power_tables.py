"""The numbers of the power study, from the repetitions in ``results/repetitions.npz``.

Large-sample theory of a rate: the statistic is noncentral chi-square with ``2 (c - 1)`` degrees of
freedom and noncentrality ``2 n E[KL(g || x)]``, g the truth that belongs to the prediction x.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import power_designs as designs
from scipy.integrate import quad
from scipy.stats import beta, chi2, ncx2

from mcllo._power_study import PowerCell, PowerStudy, wilson_interval

ALPHA = 0.05
UNIT = 1e-5
WORDS = {
    "dirichlet_heavy": "Dirichlet(3, 0.3, ..., 0.3)",
    "dirichlet_1": "Dirichlet(1, ..., 1)",
    "dirichlet_0.3": "Dirichlet(0.3, ..., 0.3)",
    "softmax_normal": "softmax of N(0, 1)",
}
Tables = dict[str, list[dict[str, Any]]]


def read_studies(path: Path) -> dict[str, PowerStudy]:
    """Return the studies of the long run by name."""
    with np.load(path) as file:
        arrays = dict(file)
    names = dict.fromkeys(key.split("/")[0] for key in arrays)
    return {name: _study(name, arrays) for name in names}


def _study(name: str, arrays: dict[str, np.ndarray]) -> PowerStudy:
    part = {k.split("/")[1]: v for k, v in arrays.items() if k.startswith(f"{name}/")}
    nothing = np.full(part["p_chi2"].shape, np.nan)
    cells = tuple(
        PowerCell(
            int(n),
            None if np.isnan(part["delta_1"][i]) else float(part["delta_1"][i]),
            ALPHA,
            part.get("p", part["p_chi2"])[i].astype(float),
            part["p_chi2"][i].astype(float),
            part.get("ece_before", nothing)[i] * UNIT,
            part.get("ece_after", nothing)[i] * UNIT,
        )
        for i, n in enumerate(part["n"])
    )
    test = "auto" if name in designs.EFFECTS else "exact" if name == "exact" else "chi2"
    words = WORDS.get(name, WORDS["dirichlet_heavy"])
    return PowerStudy(cells, test, ALPHA, designs.SEED, words, designs.CLASSES)


def tables(studies: dict[str, PowerStudy]) -> Tables:
    """Return all tables."""
    return {
        "cells": cells(studies["grid"]),
        "exact": exact(studies["exact"]),
        "others": others(studies),
        "sharp": sharp(studies),
    }


def cells(study: PowerStudy) -> list[dict[str, Any]]:
    """Return the paper's 30 settings: rates, what theory gives, and ECE."""
    divergence = {shift: divergence_of(shift) for shift in designs.DELTAS}
    return [
        {
            "n": cell.n,
            "delta_1": cell.delta_1,
            "reps": cell.reps,
            "rejected": cell.power,
            "low": cell.low,
            "high": cell.high,
            "theory": round(theory(cell.n, divergence[cell.delta_1]), 4),
            **_errors(cell),
        }
        for cell in study.rows
    ]


def _errors(cell: PowerCell) -> dict[str, float]:
    gain = cell.ece_before - cell.ece_after
    return {
        "ece_before": float(cell.ece_before.mean()),
        "ece_after": float(cell.ece_after.mean()),
        "difference": float(gain.mean()),
        "difference_se": float(gain.std(ddof=1) / np.sqrt(cell.reps)),
        "lowered": float(np.mean(gain > 0)),
    }


def divergence_of(delta_1: float) -> float:
    """Return ``E[KL(g || x)]`` of our design, in which the first class's x is Beta(3, 2.7).

    Only its odds are wrong: ``KL(g || x) = g_1 log(delta_1) - log s``, ``s = 1 + (delta_1 - 1) x``
    and ``g_1 = delta_1 x / s``.
    """

    def integrand(x: float) -> float:
        s = 1.0 + (delta_1 - 1.0) * x
        return float((delta_1 * x / s * np.log(delta_1) - np.log(s)) * beta.pdf(x, 3.0, 2.7))

    return float(quad(integrand, 0.0, 1.0)[0])


def theory(n: int, divergence: float, df: int = 2 * (designs.CLASSES - 1)) -> float:
    """Return the power that large-sample theory gives."""
    critical = chi2.isf(ALPHA, df)
    return float(ncx2.sf(critical, df, 2 * n * divergence) if divergence else ALPHA)


def exact(study: PowerStudy) -> list[dict[str, Any]]:
    """Return how often exact and chi-square p-values of the same data sets reject."""
    return [
        {
            "n": cell.n,
            "delta_1": cell.delta_1,
            "reps": cell.reps,
            "rejected_exact": cell.power,
            "low": cell.low,
            "high": cell.high,
            "rejected_chi2": cell.power_chi2,
            "same_decision": float(
                np.mean((cell.pvalues <= ALPHA) == (cell.pvalues_chi2 <= ALPHA))
            ),
        }
        for cell in study.rows
    ]


def _agreement(cell: PowerCell) -> float:
    return float(np.mean((cell.pvalues <= ALPHA) == (cell.pvalues_chi2 <= ALPHA)))


def others(studies: dict[str, PowerStudy]) -> list[dict[str, Any]]:
    """Return the corners of the grid for each distribution of the rows, ours first."""
    rows = []
    for name in WORDS:
        study = studies["grid" if name == "dirichlet_heavy" else name]
        for cell in study.rows:
            if cell.n in designs.OTHER_SIZES and cell.delta_1 in designs.OTHER_DELTAS:
                head = {"rows": WORDS[name], "n": cell.n, "delta_1": cell.delta_1}
                rate = {"reps": cell.reps, "rejected": cell.power, "low": cell.low}
                rows.append(head | rate | {"high": cell.high} | _errors(cell))
    return rows


def sharp(studies: dict[str, PowerStudy]) -> list[dict[str, Any]]:
    """Return size and power of the default p-value and of chi-square's on sharp rows.

    ``chi2_fair`` judges chi-square by the level at which it would reject 5 % of the data sets in
    which nothing is wrong.
    """
    share = float(np.mean(1.0 - designs.network_rows().max(axis=1)))
    fair = {cell.n: np.quantile(cell.pvalues_chi2, ALPHA) for cell in studies["null"].rows}
    rows = []
    for effect in designs.EFFECTS:
        for cell in studies[effect].rows:
            hits = int(np.sum(cell.pvalues_chi2 <= ALPHA))
            low, high = wilson_interval(hits, cell.reps)
            rows.append(
                {
                    "effect": effect,
                    "n": cell.n,
                    "expected_errors": round(share * cell.n, 1),
                    "reps": cell.reps,
                    "rejected": cell.power,
                    "low": cell.low,
                    "high": cell.high,
                    "rejected_chi2": cell.power_chi2,
                    "low_chi2": low,
                    "high_chi2": high,
                    "chi2_fair": float(np.mean(cell.pvalues_chi2 <= fair[cell.n])),
                }
            )
    return rows
