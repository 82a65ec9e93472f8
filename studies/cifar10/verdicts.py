"""What section 4.2 of the paper claims, and what the other sections claim of it, by `studies.rule`.

===============  ================================================================================
three networks   ours, and the public ones of `public`: 50 splits each, p-values chi-square as the
                 paper's; a claim of the paper's one network is a `Settings` of the three. Our
                 small one, which is no network of the paper's kind, has no vote
readings         of EB and of Xu and others (`studies.choices`), on the splits of our network
===============  ================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..choices import Judged, Numbers, across, not_rejected, readings
from ..pages import Row, Tables
from ..rule import MARGIN, SHARE, Check, Claim, Evidence, Runs, Settings
from ..tables import LEVEL
from .splits import NETWORKS

MCLLO = ("mcllo", "")
VOTING = tuple(name for name in NETWORKS if name != "small")
ASSESSED, RECALIBRATED, COMPARED = "Section 4.2.1", "Section 4.2.2", "Section 4.2.3"
DISCUSSION, CASES, INTRODUCTION = "Section 5", "Section 4", "Section 1"


def claims(made: Tables, runs: Judged) -> list[Claim]:
    """Return the paper's claims as it makes them, with our evidence."""
    seen = {row["claim"]: in_networks(row) for row in made["claims"]}
    xu_rejected = {key: ~kept for key, kept in not_rejected(runs).items()}
    calibrated = '"the LRT p-values report that" these "are well-calibrated"'
    return [
        Claim(
            "not_calibrated",
            '"the confidence scores X_t, X_h and observed values [...] are not well-calibrated '
            '(even within the training set)"',
            ASSESSED,
            seen["uncalibrated_rejected"],
        ),
        Claim(
            "overconfident",
            "every estimated gamma of X_t is below 1",
            "Table 1",
            seen["all_gammas_below_1"],
        ),
        Claim(
            "lowers_ece",
            "MCLLO's ECE is \"0.021, improved from 0.035 for the uncalibrated confidence scores "
            'X_h"',
            RECALIBRATED,
            seen["mcllo_lowers_ece"],
        ),
        Claim(
            "closer",
            'the points "for uncalibrated confidence scores [...] are slightly further away from '
            'the x=y line than" those after MCLLO, with 10 bins',
            RECALIBRATED,
            seen["mcllo_lowers_ece_of_10_bins"],
        ),
        Claim(
            "mcllo_recalibrations",
            '"applying MCLLO recalibration to the holdout set of confidence scores yielded well '
            'calibrated probability predictions"',
            RECALIBRATED,
            seen["mcllo_not_rejected"],
        ),
        Claim(
            "vector_recalibrations",
            f"{calibrated}: VS",
            COMPARED,
            seen["vector_not_rejected"],
        ),
        Claim(
            "binning_recalibrations",
            f"{calibrated}: EB",
            COMPARED,
            readings("histogram", not_rejected(runs)),
        ),
        Claim(
            "temperature_rejected",
            'some "are well-calibrated, while X_h,TS is not"',
            COMPARED,
            seen["temperature_rejected"],
        ),
        Claim(
            "xu_rejected",
            "after Xu et al. the predictions are rejected: p < 0.001",
            "Table 2",
            readings("xu_davoine", xu_rejected),
        ),
        Claim(
            "all_lower_ece",
            '"all recalibration techniques reduce ECE when compared to the original, uncalibrated '
            'confidence scores X_h, with the exception of the technique by" Xu et al.',
            COMPARED,
            seen["all_but_xu_lower_ece"],
        ),
        Claim(
            "temperature_ece",
            'of TS: "its ECE is comparable to more complex methods like MCLLO and vector scaling"',
            COMPARED,
            seen["temperature_ece_comparable"],
        ),
        Claim(
            "cat_and_dog",
            '"temperature scaling handles the dog and cat category poorly": their deltas are the '
            "ones that differ",
            COMPARED,
            seen["cat_and_dog_worst"],
        ),
        Claim(
            "accuracy",
            '"The recalibrated probabilities via all methods report slightly higher or equal '
            'accuracy"',
            COMPARED,
            seen["no_method_lowers_accuracy"],
        ),
        Claim(
            "no_label",
            "TS and Xu et al. change 0 % of the labels",
            "Table 2",
            Check(made["labels"][0]["changed"], made["labels"][0]["splits"]),
        ),
        Claim(
            "like_vector",
            '"MCLLO and vector scaling produce confidence scores that are similarly calibrated"',
            COMPARED,
            seen["mcllo_like_vector"],
        ),
        Claim(
            "comparable",
            "MCLLO's predictions \"are comparable to or more well-calibrated than those obtained "
            'from competing recalibration methods, as confirmed by both the MCLLO LRT and ECE"',
            CASES,
            Settings(
                {
                    "LRT": across(runs, lambda eb, xu: lrt_as_good(runs, eb, xu)),
                    "ECE": across(runs, lambda eb, xu: ece_as_good(runs, eb, xu)),
                }
            ),
        ),
        Claim(
            "planes",
            '"the recalibrated probability is also 1.00" of plane 5037, and 4526 falls (0.94 to '
            "0.80)",
            "Section 1, Figure 1",
            Check(wrong_planes(made["planes"]), 2),
        ),
        Claim(
            "needs_logits_temperature",
            'temperature scaling "can only be applied when the logits are available"',
            INTRODUCTION,
            Check(int(moved(made, "temperature") < 1e-6)),
        ),
        Claim(
            "needs_logits_vector",
            'vector scaling "can only be applied when the logits are available", and "certain '
            "shifts of the logits that produce the same probability predictions are recalibrated "
            'differently"',
            INTRODUCTION,
            Check(int(moved(made, "vector") < SHARE)),
        ),
        Claim(
            "identity",
            '"even well calibrated predictions will be adjusted at least slightly by the" Xu et '
            "al. method",
            DISCUSSION,
            Check(int(identity_move(made, "xu_davoine") < SHARE)),
        ),
        Claim(
            "bins",
            '"different choices of bin number can lead to different ECE scores"',
            DISCUSSION,
            Check(
                sum(bin_range(row) <= MARGIN for row in made["bins"]), len(made["bins"])
            ),
        ),
        Claim(
            "baseline",
            'effects of the baseline: "Empirically, we have found these effects to be very small"',
            DISCUSSION,
            baseline_evidence(made["baselines"]),
        ),
    ]


def in_networks(row: Row) -> Settings:
    """Return in how many splits of each network something came true."""
    return Settings({NETWORKS[name]: Runs(row[name], row["of"]) for name in VOTING})


def best(runs: Judged, what: str, *others: Numbers) -> np.ndarray:
    """Return, split by split, the largest p or the lowest ECE of all methods but MCLLO."""
    known = [runs[name, ""] for name in ("temperature", "vector")]
    values = np.array([found[what] for found in (*known, *others)])
    return values.max(axis=0) if what == "p" else values.min(axis=0)


def lrt_as_good(runs: Judged, eb: Numbers, xu: Numbers) -> np.ndarray:
    """Return in which splits MCLLO is not rejected, or every other method is."""
    return (runs[MCLLO]["p"] > LEVEL) | (best(runs, "p", eb, xu) <= LEVEL)


def ece_as_good(runs: Judged, eb: Numbers, xu: Numbers) -> np.ndarray:
    """Return in which splits MCLLO's ECE is at most the margin above the lowest of the others."""
    return runs[MCLLO]["ece"] <= best(runs, "ece", eb, xu) + MARGIN


def wrong_planes(rows: Sequence[Row]) -> int:
    """Return how many of the two planes do not move as the paper's do."""
    own = {row["image"]: row for row in rows if row["class"] == row["label"]}
    keeps = abs(own[5037]["after"] - own[5037]["before"]) <= MARGIN
    falls = own[4526]["after"] < own[4526]["before"] - SHARE
    return (not keeps) + (not falls)


def moved(made: Tables, method: str) -> float:
    """Return how far logs of probabilities move a map that was fitted on logits."""
    return next(
        r["largest_change"] for r in made["logits_needed"] if r["method"] == method
    )


def identity_move(made: Tables, method: str) -> float:
    """Return by how much a method moves the top probability of predictions that need no
    recalibration.
    """
    return next(
        r["mean_change_of_top"] for r in made["identity"] if r["method"] == method
    )


def bin_range(row: Row) -> float:
    """Return how far the number of bins moves the ECE of one set."""
    values = [float(value) for name, value in row.items() if name != "set"]
    return max(values) - min(values)


def baseline_evidence(rows: Sequence[Row]) -> Evidence:
    """Return in how many of the other baselines something moves more than a little."""
    others = [row for row in rows if row["largest_change"] > 0.0]
    limits = {
        "same decision": [row["pvalue"] > LEVEL for row in others],
        f"mean change of a probability at most {MARGIN:g}": [
            row["mean_change"] > MARGIN for row in others
        ],
        f"labels of at most {100 * SHARE:g} %": [
            row["label_changes"] > SHARE for row in others
        ],
    }
    return Settings(
        {name: Check(sum(beyond), len(beyond)) for name, beyond in limits.items()}
    )
