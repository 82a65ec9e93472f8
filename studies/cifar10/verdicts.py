"""What section 4.2 of the paper claims, and what the other sections claim of it, by `studies.rule`.

===============  ================================================================================
three networks   ours, and the public ones of `public`: 50 splits each, p-values chi-square as the
                 paper's; a claim of the paper's one network is a `Settings` of the three. Our
                 small one, which is no network of the paper's kind, has no vote
readings         of EB and of Xu and others (`studies.choices`), on the splits of our network
right maps       "not rejected" is judged against what an exactly right map reaches
                 (`studies.ceilings`); of EB, whose right map is none of ours, against MCLLO's
===============  ================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcllo.reproduce._result import MIN_PRINTED_PVALUE

from ..ceilings import ceilings
from ..choices import RAW, Judged, Numbers, across, kept_readings, readings
from ..pages import Row, Tables
from ..rule import (
    MARGIN,
    SHARE,
    Both,
    Check,
    Claim,
    Evidence,
    Kept,
    Opinion,
    Readings,
    Runs,
    Settings,
    Unknown,
    quoted,
)
from ..tables import LEVEL
from .splits import NETWORKS

MCLLO = ("mcllo", "")
VOTING = tuple(name for name in NETWORKS if name != "small")
ASSESSED, RECALIBRATED, COMPARED = "Section 4.2.1", "Section 4.2.2", "Section 4.2.3"
DISCUSSION, INTRODUCTION = "Section 5", "Section 1"
EXACT = 1e-9
"""What is the same but for rounding."""


def claims(made: Tables, runs: Judged) -> list[Claim]:
    """Return the paper's claims as it makes them, with our evidence."""
    seen = {row["claim"]: in_networks(row) for row in made["claims"]}
    counts = {row["claim"]: row for row in made["claims"]}
    right = ceilings(made["ceilings"])
    far = {key: found["p"] < MIN_PRINTED_PVALUE for key, found in runs.items()}
    xu_raises = {key: found["ece"] >= runs[RAW]["ece"] for key, found in runs.items()}
    public = [name for name in VOTING if name != "large"]
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
            kept_in_networks(counts["mcllo_not_rejected"], right["mcllo"]),
        ),
        Claim(
            "vector_recalibrations",
            f"{calibrated}: VS",
            COMPARED,
            kept_in_networks(counts["vector_not_rejected"], right["vector"]),
        ),
        Claim(
            "binning_recalibrations",
            f"{calibrated}: EB",
            COMPARED,
            kept_readings("histogram", runs, right["mcllo"]),
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
            readings("xu_davoine", far),
        ),
        Claim(
            "all_lower_ece",
            '"all recalibration techniques reduce ECE when compared to the original, uncalibrated '
            'confidence scores X_h", MCLLO, TS, VS and EB',
            COMPARED,
            Settings(
                {
                    NETWORKS["large"]: across(runs, lambda eb, _: all_lower(runs, eb)),
                    **in_networks(counts["four_lower_ece"], public).parts,
                }
            ),
        ),
        Claim(
            "xu_raises_ece",
            '"with the exception of the technique by" Xu et al., which does not reduce the ECE',
            COMPARED,
            Settings(
                {
                    NETWORKS["large"]: readings("xu_davoine", xu_raises),
                    **in_networks(counts["xu_davoine_raises_ece"], public).parts,
                }
            ),
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
            Unknown(
                "said of the paper's network, which is not public; true of ours in "
                f"{Runs(counts['cat_and_dog_worst']['large'], counts['cat_and_dog_worst']['of'])} "
                "splits"
            ),
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
        quoted(
            "comparable",
            Both(
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
        quoted(
            "logits_temperature",
            without_logits(counts["temperature_lowers_log_loss"], public),
        ),
        quoted(
            "logits_vector",
            without_logits(counts["vector_lowers_log_loss"], public),
        ),
        Claim(
            "logits_lost",
            '"Since the softmax function is not invertible, the logits in the layer before the '
            'softmax function cannot be recovered"',
            INTRODUCTION,
            Readings(
                {
                    "as they were": Check(0),
                    "up to a constant of the row": Check(1),
                }
            ),
        ),
        Claim(
            "identity_included",
            '"The MCLLO approach includes identity map"',
            DISCUSSION,
            Check(int(made["algebra"][0]["largest"] > EXACT)),
        ),
        Claim(
            "identity_guaranteed",
            '"a recalibrator with built-in hypothesis testing guarantees inclusion of the identity '
            'map"',
            INTRODUCTION,
            Opinion(
                "true by definition, where the hypothesis is a member of the family"
            ),
        ),
        Claim(
            "other_baseline",
            '"The shift parameter δ [...] under one baseline category choice cannot be directly '
            'represented as a function of the parameters of another baseline category choice"',
            DISCUSSION,
            Settings(
                {
                    "unequal slopes": Check(
                        int(made["algebra"][2]["largest"] <= EXACT)
                    ),
                    "equal slopes": Check(int(made["algebra"][1]["largest"] <= EXACT)),
                }
            ),
        ),
        Claim(
            "novelty",
            '"there are no recalibration techniques that include hypothesis testing for '
            'calibration status"; MCLLO is "to our knowledge, the first fully described and '
            'demonstrated method to test"',
            "Sections 1 and 5",
            Check(1),
        ),
        Claim(
            "interpretable",
            'MCLLO "can be easily interpreted"',
            "abstract",
            Opinion("a matter of the reader"),
        ),
        Claim(
            "ece_alone",
            '"ECE alone cannot determine with any level of significance if a set of probability '
            'predictions is well-calibrated or not"',
            DISCUSSION,
            Readings(
                {
                    "the number by itself": Check(0),
                    "with its distribution under calibration": Check(
                        int(made["ece_null"][0]["pvalue"] <= LEVEL)
                    ),
                }
            ),
        ),
        Claim(
            "in_concert",
            '"The metrics can be used in concert to gain the advantages of each"',
            DISCUSSION,
            Opinion("advice, and what `assess` does"),
        ),
        Claim(
            "identity",
            '"even well calibrated predictions will be adjusted at least slightly by the" Xu et '
            "al. method",
            DISCUSSION,
            Check(int(identity_move(made, "xu_davoine") < SHARE)),
        ),
        quoted(
            "bins",
            Check(
                sum(bin_range(row) <= MARGIN for row in made["bins"]), len(made["bins"])
            ),
        ),
        quoted("baseline_effects", baseline_evidence(made["baselines"])),
    ]


def in_networks(row: Row, names: Sequence[str] = VOTING) -> Settings:
    """Return in how many splits of each network something came true."""
    return Settings({NETWORKS[name]: Runs(row[name], row["of"]) for name in names})


def kept_in_networks(row: Row, ceiling: float) -> Settings:
    """Return in how many splits of each network recalibrated rows are not rejected."""
    parts = {}
    for name in VOTING:
        parts[NETWORKS[name]] = Kept(row[name], row["of"], ceiling)
    return Settings(parts)


def without_logits(row: Row, names: Sequence[str]) -> Check:
    """Return in how many splits a method lowers the log loss of networks whose logits are lost."""
    return Check(sum(row[name] for name in names), row["of"] * len(names))


def all_lower(runs: Judged, eb: Numbers) -> np.ndarray:
    """Return in which splits MCLLO, TS, VS and a reading of EB all lower the ECE."""
    known = [runs[name, ""]["ece"] for name in ("mcllo", "temperature", "vector")]
    return np.max([*known, eb["ece"]], axis=0) < runs[RAW]["ece"]


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
