"""How often is a sentence of the text false? By sentence and design, inside and outside the family.

A data set is assessed as a user would, and what the text says is held against the truth that the
labels were drawn from:

====================  ==========================================================================
verdict               miscalibrated of calibrated rows; negligible, or equivalent, of an error
                      that reaches the tolerance
at least              the limit is above the true mean error
lowers the log loss   the interval does not hold the true gain of the recalibrations that were
                      cross-fitted, on the rows that they left out
when it says          of all levels, those whose interval does not hold (`levels` has more)
if shifts and slopes  the interval of the size does not hold, or what is excluded is true; inside
                      the family (outside, the sentence says nothing)
not only a shift      said of a truth inside the family
====================  ==========================================================================

A share is that of data sets (of levels) in which the sentence was printed and false.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mcllo
from mcllo._utils.statements import suppress_warnings
from mcllo.calibrators._auto.stacking import cross_fit, fit_members
from studies.pages import fill

from . import Rows
from ._truths import DESIGNS, MORE, Design
from .levels import truth_at

PAGE = "explanation/effect-size.md"
MARK = "sentences"
KINDS = ("miscalibrated", "negligible", "not_detected", "inconclusive")
NAMES = ("verdict", "at_least", "gain", "family", "shape")


def true_gain(a: mcllo.Assessment, truth: np.ndarray) -> float:
    """Return what the cross-fitted recalibrations gain on average on the rows they left out."""
    p = a.predictions
    with suppress_warnings():
        crossed = cross_fit(p, fit_members(p), None)
    assert crossed is not None
    raw, pooled = crossed.pool_left_out()
    shown = crossed.folds.rows[:: crossed.row_step]
    return float((truth[shown] * np.log(pooled / raw)).sum(axis=1).mean())


def false_sentences(
    a: mcllo.Assessment, truth: np.ndarray, inside: bool
) -> dict[str, Any]:
    """Return which sentences of one text are false; None where a sentence is not there."""
    error = 0.5 * np.abs(truth - a.predictions.probs).sum(axis=1).mean()
    verdict, size, gain = a.verdict, a.effect_size, a.recalibration_gain
    said = {s.kind for s in a.statements()}
    small = verdict.kind == "negligible" or verdict.equivalent
    wrong = verdict.kind == "miscalibrated" and error < 1e-12
    wrong = wrong or (small and error >= verdict.tolerance)
    shown = verdict.rejected and gain.low > 0.0
    family = None
    if inside and not verdict.beyond and verdict.kind != "inconclusive":
        low = size.low if verdict.rejected else 0.0
        family = not low - 1e-12 <= error <= size.high
    return {
        "kind": verdict.kind,
        "error": error,
        "verdict": bool(wrong),
        "at_least": bool("effect_size.at_least" in said and size.at_least > error),
        "gain": bool(shown and not gain.low <= true_gain(a, truth) <= gain.high),
        "family": family,
        "shape": bool(inside and "other.shape" in said),
    }


def run(
    reps: int, seed: int = 3636, designs: tuple[Design, ...] = (*DESIGNS, *MORE)
) -> Rows:
    """Return one row for each design."""
    found: Rows = []
    for k, design in enumerate(designs):
        rng = np.random.default_rng([seed, k])
        chance = truth_at(design, rng)
        texts, missed = [], []
        for _ in range(max(2, round(reps * design.weight))):
            x, truth, y = design.data(rng)
            with suppress_warnings():
                a = mcllo.assess(
                    x, y, classes=range(x.shape[1]), n_resamples=199, seed=1
                )
                texts.append(false_sentences(a, truth, design.inside))
            missed += [
                not v.low <= chance(v.says) <= v.high for v in a.effect_size.levels
            ]
        row: dict[str, Any] = {
            "design": design.name,
            "n": design.n,
            "kind": "inside" if design.inside else "outside",
            "reps": len(texts),
            "error": float(np.mean([text["error"] for text in texts])),
        }
        row |= {
            kind: float(np.mean([text["kind"] == kind for text in texts]))
            for kind in KINDS
        }
        for name in NAMES:
            values = [text[name] for text in texts if text[name] is not None]
            row[name] = float(np.mean(values)) if values else None
        row["levels"] = float(np.mean(missed)) if missed else None
        found.append(row)
    return found


TABLE = """\
| predictions and truth | rows | data sets | true error | miscalibrated | negligible | not \
detected | inconclusive | false: verdict | at least | lowers the log loss | when it says | if \
shifts and slopes | not only a shift |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{*rows} | {design} | {n:,} | {reps} | {error:%1} | {miscalibrated:%0} | {negligible:%0} | \
{not_detected:%0} | {inconclusive:%0} | {verdict:%0} | {at_least:%0} | {gain:%0} | {levels:%0} | \
{family:%0} | {shape:%0} |"""


def table(rows: Rows) -> str:
    """Return the table of the page."""
    shown = [
        {name: value for name, value in row.items() if name != "kind"} for row in rows
    ]
    return fill(TABLE, {"rows": shown})
