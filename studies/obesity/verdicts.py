"""What section 4.3 of the paper claims, and what the other sections claim of it, by `studies.rule`.

===============  ================================================================================
50 forests       counts of `analysis.claims`, each another forest and split, p-values chi-square as
                 the paper's
50 splits        of the rows of one forest, under every reading of what the paper does not give
                 (`studies.choices`); wherever a claim rests on EB or on Xu and others
===============  ================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy.stats import binomtest

from ..ceilings import ceilings
from ..choices import (
    RAW,
    Judged,
    Numbers,
    across,
    kept_readings,
    lowers_ece,
    not_rejected,
    readings,
)
from ..pages import Row, Tables
from ..rule import (
    MARGIN,
    SHARE,
    Beyond,
    Both,
    Can,
    Check,
    Claim,
    Evidence,
    Kept,
    Runs,
    Settings,
    Typo,
    Unknown,
    quoted,
)
from ..tables import LEVEL

MCLLO = ("mcllo", "")
RESULTS, DISCUSSION = "Section 4.3.3", "Section 5"
SHIFTS = (
    '"certain shifts of the logits that produce the same probability predictions are recalibrated '
    'differently"'
)
SAME = 1e-6
"""What is the same but for where an optimiser stops."""


def claims(made: Tables, runs: Judged, sizes: Mapping[str, int]) -> list[Claim]:
    """Return the paper's claims as it makes them, with our evidence."""
    forests = {row["claim"]: Runs(row["forests"], row["of"]) for row in made["claims"]}
    xu_rejected = {key: ~kept for key, kept in not_rejected(runs).items()}
    calibrated = "produce well-calibrated probability predictions via the MCLLO LRT"
    right = ceilings(made["ceilings"])["mcllo"]
    kept = forests["mcllo_not_rejected"]
    without = {row["method"]: row for row in made["without_logits"]}
    shifted = {row["method"]: row["largest_change"] for row in made["logits"]}
    moved = {row["metric"].upper(): row for row in made["bins_moved"]}
    return [
        Claim(
            "sizes",
            '"a 75% training 25% holdout split", twice, gives 528, 396 and 132 of 2,111 people',
            "Sections 4.3.1 and 4.3.2",
            Check(wrong_sizes(**sizes), 3),
        ),
        quoted(
            "last_class",
            Typo(
                'Table 3 and its text have "Normal Weight"; the last is Overweight Level II'
            ),
        ),
        Claim(
            "not_calibrated",
            '"the uncalibrated holdout probability predictions X_h are not well-calibrated for a '
            'traditional α = 0.05 decision rule"',
            RESULTS,
            forests["uncalibrated_rejected"],
        ),
        Claim(
            "mcllo_recalibrations",
            f'"as expected, MCLLO recalibration" does "{calibrated}"',
            RESULTS,
            Kept(kept.true, kept.of, right),
        ),
        Claim(
            "binning_recalibrations",
            f'"The extension of binning as described by" Guo et al. does "{calibrated}"',
            RESULTS,
            kept_readings("histogram", runs, right),
        ),
        Claim(
            "xu_rejected",
            "after Xu et al. the predictions are still rejected: p = 0.014",
            "Table 4",
            readings("xu_davoine", xu_rejected),
        ),
        Claim(
            "lowest_ece",
            '"MCLLO recalibration also results in the lowest ECE than the competitor recalibration '
            'techniques"',
            RESULTS,
            across(runs, partial(lowest_ece, runs[MCLLO])),
        ),
        quoted(
            "comparable",
            Both(
                {
                    "LRT": across(runs, partial(lrt_as_good, runs[MCLLO])),
                    "ECE": across(runs, partial(ece_as_good, runs[MCLLO])),
                }
            ),
        ),
        Claim(
            "follows_the_line",
            '"Visually, the recalibrated probability predictions follow the x=y line more closely '
            'than X_h, which agrees with the displayed calibration metrics"',
            RESULTS,
            across(runs, partial(all_lower, lowers_ece(runs)[MCLLO], runs[RAW])),
        ),
        Claim(
            "trade_off",
            '"see the supplementary material for a discussion of the tradeoff between accuracy and '
            'calibration"',
            RESULTS,
            Unknown("the supplement is not public"),
        ),
        Claim(
            "finds_success",
            '"MCLLO LRT can identify successful recalibration based on other methods"',
            RESULTS,
            can(forests["kept_have_lower_log_loss"]),
        ),
        quoted(
            "which_is_best",
            above_chance(forests["largest_p_has_best_log_loss"], 0.25),
        ),
        quoted("logits_temperature", exceptions(without["temperature"])),
        quoted("logits_vector", exceptions(without["vector"])),
        Claim(
            "shifts_temperature",
            f"{SHIFTS}, by temperature scaling",
            "Section 1",
            Check(int(shifted["temperature"] < SAME)),
        ),
        Claim(
            "shifts_vector",
            f"{SHIFTS}, by vector scaling",
            "Section 1",
            Check(int(shifted["vector"] < SAME)),
        ),
        quoted(
            "bins",
            Settings(
                {what: Can(row["moved"], row["splits"]) for what, row in moved.items()}
            ),
        ),
        Claim(
            "not_guaranteed",
            '"random forests are not guaranteed to produce well calibrated probability '
            'predictions"',
            DISCUSSION,
            forests["uncalibrated_rejected"],
        ),
        Claim(
            "improves",
            'MCLLO can "improve calibration of uncalibrated data"',
            "Section 1",
            Settings(
                {
                    "ECE": can(forests["mcllo_lowers_ece"]),
                    "log loss": can(forests["mcllo_lowers_log_loss"]),
                }
            ),
        ),
        quoted(
            "maps_to_calibrated",
            can(forests["mcllo_not_rejected_where_it_was_before"]),
        ),
        quoted("baseline_effects", baseline_evidence(made["last_class"])),
    ]


def can(runs: Runs) -> Can:
    """Return counts as evidence of what can happen."""
    return Can(runs.true, runs.of)


def exceptions(row: Row) -> Check:
    """Return in how many splits a method of logits helps where there are none.

    >>> print(exceptions({"lowers_log_loss": 3, "splits": 50}))
    3 exceptions in 50
    """
    return Check(row["lowers_log_loss"], row["splits"])


def wrong_sizes(everyone: int, train: int, holdout: int) -> int:
    """Return how many of the paper's three numbers do not follow from its shares.

    >>> wrong_sizes(everyone=2111, train=396, holdout=132)
    0
    """
    unseen = round(everyone / 4)
    return (
        (unseen != 528) + (round(0.75 * unseen) != train) + (unseen - train != holdout)
    )


def lowest_ece(mcllo: Numbers, eb: Numbers, xu: Numbers) -> np.ndarray:
    """Return in which splits MCLLO's ECE is below both others."""
    return mcllo["ece"] < np.minimum(eb["ece"], xu["ece"])


def ece_as_good(mcllo: Numbers, eb: Numbers, xu: Numbers) -> np.ndarray:
    """Return in which splits MCLLO's ECE is at most the margin above the lower of the others."""
    return mcllo["ece"] <= np.minimum(eb["ece"], xu["ece"]) + MARGIN


def lrt_as_good(mcllo: Numbers, eb: Numbers, xu: Numbers) -> np.ndarray:
    """Return in which splits MCLLO is not rejected, or both others are rejected too."""
    return (mcllo["p"] > LEVEL) | (np.maximum(eb["p"], xu["p"]) <= LEVEL)


def all_lower(mcllo: np.ndarray, raw: Numbers, eb: Numbers, xu: Numbers) -> np.ndarray:
    """Return in which splits all three methods lower the ECE."""
    return mcllo & (np.maximum(eb["ece"], xu["ece"]) < raw["ece"])


def above_chance(runs: Runs, chance: float) -> Beyond:
    """Return the interval of a share of the forests, which must be above chance.

    >>> print(above_chance(Runs(5, 10), 0.25))
    0.19 to 0.81, above 0.25?
    """
    interval = binomtest(runs.true, runs.of).proportion_ci()
    return Beyond(float(interval.low), float(interval.high), chance)


def baseline_evidence(rows: Sequence[Row]) -> Evidence:
    """Return in how many splits the last class of the alphabet as baseline changes little."""
    words = {
        "decision": "same decision of the test",
        "labels": f"labels of at most {100 * SHARE:g} %",
        "log_loss": f"log loss by at most {MARGIN:g}",
    }
    return Settings(
        {words[row["what"]]: Runs(row["within"], row["splits"]) for row in rows}
    )
