"""The numbers of the obesity study: objects of `mcllo` in, rows of tables out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _common import column
from scipy.stats import chi2

import mcllo
from mcllo.datasets import load_obesity_forest
from mcllo.exceptions import MclloWarning

METHODS = ("mcllo", "histogram", "xu_davoine", "temperature")
SETS = ("uncalibrated_train", "uncalibrated", *METHODS)
TESTING, HALF_VOTE = 1e-6, 1e-3
FLOORS = (1e-12, 1e-6, 1e-4, 1e-3)
N_TRAIN, SEED = 396, 0
CLASSES = ("Insufficient_Weight", "Normal_Weight", "Obesity_Type_I", "Obesity_Type_II")
CLASSES += ("Obesity_Type_III", "Overweight_Level_I", "Overweight_Level_II")

PAPER = {
    # set: p-value, ECE, accuracy, label change; Table 4 (p < 0.001 for the training rows)
    "uncalibrated_train": (0.001, 0.160, 0.851, None),
    "uncalibrated": (0.014, 0.127, 0.788, None),
    "mcllo": (0.167, 0.073, 0.811, 0.0227),
    "histogram": (0.068, 0.083, 0.810, 0.0303),
    "xu_davoine": (0.014, 0.078, 0.811, 0.030),
}
PAPER_PARAMETERS = {
    # class: delta, its standard error, gamma, its standard error; Table 3, alphabetical order
    "Insufficient_Weight": (0.527, 0.241, 2.785, 0.399),
    "Obesity_Type_I": (1.002, 0.406, 2.211, 0.214),
    "Obesity_Type_II": (2.714, 1.404, 1.719, 0.175),
    "Obesity_Type_III": (0.002, 0.001, 4.698, 0.960),
    "Overweight_Level_I": (1.167, 0.391, 2.387, 0.247),
    "Overweight_Level_II": (1.529, 0.524, 2.020, 0.188),
}


def compared(train: Any, holdout: Any, n_resamples: int = 1999) -> mcllo.Comparison:
    """Return the paper's comparison, with temperature scaling, which forests do not rule out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MclloWarning)  # separation is reported in the tables
        return mcllo.compare(train, holdout, methods=METHODS, n_resamples=n_resamples, seed=SEED)


def table4(clip: float, c: mcllo.Comparison) -> list[dict[str, Any]]:
    """Return the paper's Table 4 and ours, row by row."""
    rows = []
    for name in SETS:
        row = c[name]
        paper = PAPER.get(name, (None, None, None, None))
        rows.append(
            {
                "set": name,
                "n": row.n,
                "clip": clip,
                "paper_p": paper[0],
                "statistic": row.statistic,
                "p_chi2": float(chi2.sf(row.statistic, row.df)),
                "p": row.pvalue,
                "p_method": row.pvalue_method,
                "p_corrected": row.pvalue_corrected,
                "paper_ece": paper[1],
                "ece": row.ece,
                "paper_accuracy": paper[2],
                "accuracy": row.accuracy,
                "paper_label_change": paper[3],
                "label_change": row.label_change,
                "log_loss": row.log_loss,
                "brier": row.brier,
                "zero_labels": row.n_zero_labels,
            }
        )
    return rows


def parameters(train: mcllo.Predictions, clip: float) -> list[dict[str, Any]]:
    """Return the paper's estimates and ours."""
    fit = fitted(train)
    return [
        {
            "class": row["class"],
            "clip": clip,
            **dict(
                zip(
                    ("paper_delta", "paper_se_delta", "paper_gamma", "paper_se_gamma"),
                    PAPER_PARAMETERS[row["class"]],
                    strict=True,
                )
            ),
            **{key: row[key] for key in ("delta", "se_delta", "gamma", "se_gamma")},
        }
        for row in fit.parameters().rows()
    ]


def fitted(predictions: mcllo.Predictions) -> mcllo.MCLLOFit:
    """Return the maximum likelihood fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MclloWarning)
        return mcllo.MCLLOCalibrator(baseline=predictions.baseline).fit(predictions).fit_


def zero_rules() -> list[dict[str, Any]]:
    """Return what the floor for votes of 0 does: to the test, and to three repairs."""
    rows = []
    for clip in FLOORS:
        data = load_obesity_forest(clip=clip)
        tested = quiet_test(data.holdout)
        row = {"clip": clip, "statistic": tested.statistic, "p": tested.pvalue}
        for name, calibrator in (
            ("maximum_likelihood", mcllo.MCLLOCalibrator(baseline="Normal_Weight", clip=clip)),
            ("penalty_1", mcllo.MCLLOCalibrator(baseline="Normal_Weight", clip=clip, penalty=1.0)),
            ("temperature", mcllo.CALIBRATORS["temperature"](clip=clip)),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MclloWarning)
                calibrator.fit(data.train)
            repaired = data.holdout.with_probs(calibrator.predict_proba(data.holdout.probs))
            row[f"log_loss_{name}"] = mcllo.metrics.log_loss(None, repaired)
            row[f"ece_{name}"] = mcllo.metrics.expected_calibration_error(None, repaired)
        rows.append(row)
    return rows


def quiet_test(predictions: mcllo.Predictions) -> mcllo.CalibrationTest:
    """Return the exact test; a separated fit has a statistic, its supremum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MclloWarning)
        return mcllo.calibration_test(predictions, method="exact", seed=SEED)


def baselines(train: mcllo.Predictions) -> list[dict[str, Any]]:
    """Return the same fit under every baseline."""
    found = mcllo.baseline_sensitivity(train, seed=SEED)
    names = ("baseline", "statistic", "pvalue", "largest_change", "mean_change", "label_changes")
    return [{name: row[name] for name in names} for row in found.table.rows()]


def seed_row(probs: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Return the table's numbers for one forest and split (`make_predictions` calls this)."""
    named = np.array(CLASSES)[labels]
    rule: dict[str, Any] = {"classes": CLASSES, "baseline": "Normal_Weight", "clip": TESTING}
    parts = [
        mcllo.Predictions.from_arrays(probs[rows], named[rows], **rule)
        for rows in (slice(0, N_TRAIN), slice(N_TRAIN, None))
    ]
    c = compared(*parts, n_resamples=499)
    row: dict[str, Any] = {"zero_labels": sum(part.n_clipped_true for part in parts)}
    row["separated"] = bool(np.isnan(fitted(parts[0]).se_delta).any())
    for name in SETS:
        judged = c[name]
        row |= {
            f"p_chi2_{name}": float(chi2.sf(judged.statistic, judged.df)),
            f"p_{name}": judged.pvalue,
            f"ece_{name}": judged.ece,
            f"accuracy_{name}": judged.accuracy,
            f"log_loss_{name}": judged.log_loss,
        }
        if judged.label_change is not None:
            row[f"label_change_{name}"] = judged.label_change
    row["p_corrected_mcllo"] = c["mcllo"].pvalue_corrected
    return row


def seeds_summary(seeds: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the spread over seeds of every number of Table 4, and where the paper's lies."""
    rows = []
    for name in SETS:
        for k, what in enumerate(("p_chi2", "ece", "accuracy", "label_change")):
            if f"{what}_{name}" not in seeds[0]:
                continue
            values = column(seeds, f"{what}_{name}")
            paper = PAPER.get(name, (None,) * 4)[k]
            low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
            rows.append(
                {
                    "set": name,
                    "what": what,
                    "paper": paper,
                    "seed_0": values[0],
                    "q05": low,
                    "median": middle,
                    "q95": high,
                    "share_below_paper": None if paper is None else float(np.mean(values < paper)),
                }
            )
    return rows


def claims(seeds: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return in how many of the forests each claim of the paper comes true."""
    p = {name: column(seeds, f"p_{name}") for name in SETS}
    ece = {name: column(seeds, f"ece_{name}") for name in SETS}
    loss = {name: column(seeds, f"log_loss_{name}") for name in SETS}
    repaired = ("mcllo", "histogram", "xu_davoine")
    corrected = column(seeds, "p_corrected_mcllo")  # none for a fit without a finite estimate
    exists = np.array([row["separated"] == "no" for row in seeds])
    largest_p = np.argmax([p[name] for name in METHODS], axis=0)
    best_loss = np.argmin([loss[name] for name in METHODS], axis=0)
    found = {
        "uncalibrated_rejected": p["uncalibrated"] <= 0.05,
        "mcllo_not_rejected": p["mcllo"] > 0.05,
        "mcllo_not_rejected_corrected": corrected[~np.isnan(corrected)] > 0.05,
        "histogram_not_rejected": p["histogram"] > 0.05,
        "xu_davoine_rejected": p["xu_davoine"] <= 0.05,
        "temperature_not_rejected": p["temperature"] > 0.05,
        "mcllo_lowest_ece_of_the_papers_three": np.argmin([ece[n] for n in repaired], axis=0) == 0,
        "mcllo_lowers_ece": ece["mcllo"] < ece["uncalibrated"],
        "all_three_lower_ece": np.all([ece[n] < ece["uncalibrated"] for n in repaired], axis=0),
        "mcllo_lowers_log_loss": loss["mcllo"] < loss["uncalibrated"],
        "mcllo_lower_log_loss_than_temperature": loss["mcllo"] < loss["temperature"],
        "mcllo_raises_accuracy": column(seeds, "accuracy_mcllo")
        > column(seeds, "accuracy_uncalibrated"),
        "estimate_exists": exists,
        "mcllo_not_rejected_where_it_exists": (p["mcllo"] > 0.05)[exists],
        "largest_p_has_best_log_loss": largest_p == best_loss,
        "whole_pattern_of_table_4": (p["uncalibrated"] <= 0.05)
        & (p["mcllo"] > 0.05)
        & (p["histogram"] > 0.05)
        & (p["xu_davoine"] <= 0.05)
        & (np.argmin([ece[n] for n in repaired], axis=0) == 0),
    }
    return [
        {"claim": name, "forests": int(true.sum()), "of": len(true)} for name, true in found.items()
    ]
