"""The obesity study: a forest of ours in place of the paper's, 132 rows to judge on.

===========  ==================================================================================
seed 0       the votes in `mcllo.datasets`: Tables 3 and 4, with zeros raised to 1e-6 for testing
             and to half a vote for recalibration
50 seeds     forests and splits of ``results/seeds.csv``, which `make_predictions` wrote
===========  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

import mcllo
import mcllo.plot
from mcllo.datasets import load_obesity_forest
from mcllo.metrics import expected_calibration_error, log_loss

from .. import tables
from ..figures import runs_figure, ticks
from ..pages import Row, Rows, Tables, column, read, say
from ..tables import LEVEL, fitted, quiet

GIVEN = {"seeds.csv": "studies.obesity.make_predictions"}
"""Tables that `analyse` does not make."""
HERE = Path(__file__).parent
SEEDS = HERE / "results" / "seeds.csv"
METHODS = ("mcllo", "histogram", "xu_davoine", "temperature")
SETS = ("uncalibrated_train", "uncalibrated", *METHODS)
TESTING, HALF_VOTE = 1e-6, 1e-3
FLOORS = (1e-12, 1e-6, 1e-4, 1e-3)
N_TRAIN, SEED = 396, 0
CLASSES = ("Insufficient_Weight", "Normal_Weight", "Obesity_Type_I", "Obesity_Type_II")
CLASSES += ("Obesity_Type_III", "Overweight_Level_I", "Overweight_Level_II")
TABLE4 = """set n clip paper_p statistic p_chi2 p p_method p_corrected paper_ece ece paper_accuracy
accuracy paper_label_change label_change log_loss brier zero_labels"""
PAPER = by_set("table4")
"""Table 4; the p-value of 0.001 is printed as "< 0.001"."""
PAPER_PARAMETERS = printed("table3")
"""Table 3; its columns have no names, and are taken to be in alphabetical order."""


def analyse() -> tuple[Tables, dict[str, Any]]:
    """Return tables and figures, in ten seconds."""
    seeds = read(SEEDS)
    made: Tables = {"table4": [], "parameters": []}
    figures: dict[str, Any] = {}
    for clip in (TESTING, HALF_VOTE):
        data = load_obesity_forest(clip=clip)
        c = tables.compared(data.train, data.holdout, METHODS, n_resamples=1999)
        fit = fitted(data.train)
        made["table4"] += tables.compared_rows(c, TABLE4, PAPER, clip=clip)
        made["parameters"] += [
            {"class": row["class"], "clip": clip} | row
            for row in tables.parameter_rows(fit, PAPER_PARAMETERS)
        ]
        if clip == TESTING:
            figures["reliability"] = mcllo.plot.comparison(c, n_bins=10)
            figures["parameters"] = mcllo.plot.parameters(fit)
            made["baselines"] = tables.baselines(data.train)
    made["zero_rules"] = zero_rules()
    made["seeds_summary"] = summary(seeds)
    made["claims"] = claims(seeds)
    return made, figures | {"seeds": seeds_figure(seeds)}


@quiet()
def zero_rules() -> Rows:
    """Return what the floor for votes of 0 does: to the test, and to three repairs."""
    rows = []
    for clip in FLOORS:
        data = load_obesity_forest(clip=clip)
        tested = mcllo.calibration_test(data.holdout, method="exact", seed=SEED)
        row = {"clip": clip, "statistic": tested.statistic, "p": tested.pvalue}
        rule: dict[str, Any] = {"baseline": "Normal_Weight", "clip": clip}
        for name, calibrator in (
            ("maximum_likelihood", mcllo.MCLLOCalibrator(**rule)),
            ("penalty_1", mcllo.MCLLOCalibrator(**rule, penalty=1.0)),
            ("temperature", mcllo.CALIBRATORS["temperature"](clip=clip)),
        ):
            calibrator.fit(data.train)
            repaired = data.holdout.with_probs(calibrator.predict_proba(data.holdout.probs))
            row[f"log_loss_{name}"] = log_loss(None, repaired)
            row[f"ece_{name}"] = expected_calibration_error(None, repaired)
        rows.append(row)
    return rows


def seed_row(probs: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Return the table's numbers for one forest and split (`make_predictions` calls this)."""
    named = np.array(CLASSES)[labels]
    rule: dict[str, Any] = {"classes": CLASSES, "baseline": "Normal_Weight", "clip": TESTING}
    parts = [
        mcllo.Predictions.from_arrays(probs[rows], named[rows], **rule)
        for rows in (slice(0, N_TRAIN), slice(N_TRAIN, None))
    ]
    c = tables.compared(*parts, METHODS, n_resamples=499)
    row: dict[str, Any] = {"zero_labels": sum(part.n_clipped_true for part in parts)}
    row["separated"] = bool(np.isnan(fitted(parts[0]).se_delta).any())
    for judged in tables.compared_rows(c, "set p_chi2 p ece accuracy log_loss label_change"):
        name = judged.pop("set")
        row |= {f"{what}_{name}": value for what, value in judged.items() if value is not None}
    row["p_corrected_mcllo"] = c["mcllo"].pvalue_corrected
    return row


def summary(seeds: Sequence[Row]) -> Rows:
    """Return the spread over seeds of every number of Table 4, and where the paper's lies."""
    rows = tables.spread(seeds, SETS, ("p_chi2", "ece", "accuracy", "label_change"), PAPER)
    for row in rows:
        values, printed = column(seeds, f"{row['what']}_{row['set']}"), row["paper"]
        row["share_below_paper"] = None if printed is None else float(np.mean(values < printed))
    return rows


def claims(seeds: Sequence[Row]) -> Rows:
    """Return in how many of the forests each claim of the paper comes true."""
    p, ece, loss = (
        {name: column(seeds, f"{what}_{name}") for name in SETS}
        for what in ("p", "ece", "log_loss")
    )
    raw, papers = "uncalibrated", ("mcllo", "histogram", "xu_davoine")
    right = [column(seeds, f"accuracy_{name}") for name in ("mcllo", raw)]
    corrected = column(seeds, "p_corrected_mcllo")
    exists = np.array([row["separated"] == "no" for row in seeds])
    largest_p = np.argmax([p[name] for name in METHODS], axis=0)
    best_loss = np.argmin([loss[name] for name in METHODS], axis=0)
    lowest_ece = np.argmin([ece[name] for name in papers], axis=0) == 0
    found = {
        "uncalibrated_rejected": p[raw] <= LEVEL,
        "mcllo_not_rejected": p["mcllo"] > LEVEL,
        "mcllo_not_rejected_corrected": corrected[~np.isnan(corrected)] > LEVEL,
        "histogram_not_rejected": p["histogram"] > LEVEL,
        "xu_davoine_rejected": p["xu_davoine"] <= LEVEL,
        "temperature_not_rejected": p["temperature"] > LEVEL,
        "mcllo_lowest_ece_of_the_papers_three": lowest_ece,
        "mcllo_lowers_ece": ece["mcllo"] < ece[raw],
        "all_three_lower_ece": np.all([ece[name] < ece[raw] for name in papers], axis=0),
        "mcllo_lowers_log_loss": loss["mcllo"] < loss[raw],
        "mcllo_lower_log_loss_than_temperature": loss["mcllo"] < loss["temperature"],
        "mcllo_raises_accuracy": right[0] > right[1],
        "estimate_exists": exists,
        "mcllo_not_rejected_where_it_exists": (p["mcllo"] > LEVEL)[exists],
        "largest_p_has_best_log_loss": largest_p == best_loss,
        "whole_pattern_of_table_4": (p[raw] <= LEVEL)
        & (p["mcllo"] > LEVEL)
        & (p["histogram"] > LEVEL)
        & (p["xu_davoine"] <= LEVEL)
        & lowest_ece,
    }
    return tables.counted(found, "forests")


def seeds_figure(seeds: Sequence[Row]) -> list[Axes]:
    """Draw p-value, ECE and accuracy of the 132 rows for every forest, and the paper's."""
    panels = (
        ("p_chi2", "p-value", "chi-square, as in the paper"),
        ("ece", "ECE", "12 bins"),
        ("accuracy", "Accuracy", "one person is 0.8 %"),
    )
    note = "132 rows judged each time. Grey: rejected at the level 0.05."
    axes = runs_figure(
        seeds,
        {name: tables.METHODS[name] for name in SETS[1:]},
        panels,
        PAPER,
        height=3.5,
        sizes=(3.6, 17),
        ends=(-6, 0.3, 0.15),
        words=(f"one of {len(seeds)} forests and splits", note),
    )
    axes[2].set_xlim(0.765, 0.945)
    ticks(axes[2].xaxis, [0.76, 0.80, 0.84, 0.88, 0.92], lambda value: f"{100 * value:.0f} %")
    return axes


def facts(t: Tables) -> dict[str, object]:
    """Return what the page asks for, from the tables."""
    small, half = (
        [row for row in t["parameters"] if row["clip"] == clip] for clip in (TESTING, HALF_VOTE)
    )
    return {
        **tables.claim_facts(t["claims"], "forests"),
        **tables.baseline_facts(t["baselines"]),
        **{
            f"table4_{name}": [tables.method_words(r) for r in t["table4"] if r["clip"] == clip]
            for name, clip in (("testing", TESTING), ("half_vote", HALF_VOTE))
        },
        "parameters": map(estimate_words, small, half),
        "zero_rules": t["zero_rules"],
        "seeds": tables.spread_words(t["seeds_summary"]),
    }


def estimate_words(small: Row, half: Row) -> dict[str, str]:
    """Return a class's estimates, the paper's and ours under both floors.

    In brackets the standard error, which a separated fit has not.
    """
    found = {"class": small["class"].replace("_", " ")}
    for name in ("delta", "gamma"):
        for head, row, tail in (("paper_", small, "paper_"), ("", small, ""), ("half_", half, "")):
            error = row[f"{tail}se_{name}"]
            brackets = ":.3g} (none)" if error is None else f":.3f}} ({{{tail}se_{name}:.3f}})"
            found[head + name] = say(f"{{{tail}{name}{brackets}", row)
    return found
