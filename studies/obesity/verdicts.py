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

from ..choices import RAW, Judged, Numbers, across, lowers_ece, not_rejected, readings
from ..pages import Row, Tables
from ..rule import (
    MARGIN,
    SHARE,
    Beyond,
    Check,
    Claim,
    Evidence,
    Runs,
    Settings,
    Typo,
    Unknown,
)
from ..tables import LEVEL

MCLLO = ("mcllo", "")
RESULTS, DISCUSSION, CASES = "Section 4.3.3", "Section 5", "Section 4"


def claims(made: Tables, runs: Judged, sizes: Mapping[str, int]) -> list[Claim]:
    """Return the paper's claims as it makes them, with our evidence."""
    forests = {row["claim"]: Runs(row["forests"], row["of"]) for row in made["claims"]}
    xu_rejected = {key: ~kept for key, kept in not_rejected(runs).items()}
    calibrated = "produce well-calibrated probability predictions via the MCLLO LRT"
    return [
        Claim(
            "sizes",
            '"a 75% training 25% holdout split", twice, gives 528, 396 and 132 of 2,111 people',
            "Sections 4.3.1 and 4.3.2",
            Check(wrong_sizes(**sizes), 3),
        ),
        Claim(
            "last_class",
            '"in all three studies, we select the baseline category to be the last category '
            'alphabetically"',
            CASES,
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
            forests["mcllo_not_rejected"],
        ),
        Claim(
            "binning_recalibrations",
            f'"The extension of binning as described by" Guo et al. does "{calibrated}"',
            RESULTS,
            readings("histogram", not_rejected(runs)),
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
        Claim(
            "comparable",
            "MCLLO's predictions \"are comparable to or more well-calibrated than those obtained "
            'from competing recalibration methods, as confirmed by both the MCLLO LRT and ECE"',
            CASES,
            Settings(
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
            "accuracy",
            "MCLLO takes the accuracy from 78.8 % to 81.1 %",
            "Table 4",
            forests["mcllo_raises_accuracy"],
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
            forests["kept_have_lower_log_loss"],
        ),
        Claim(
            "which_is_best",
            '"Our LRT approach can help researchers learn which recalibration strategy may be best '
            'in a given situation"',
            RESULTS,
            above_chance(forests["largest_p_has_best_log_loss"], 0.25),
        ),
        Claim(
            "no_temperature",
            '"pre-softmax logits are not attainable", so temperature scaling does "not apply"',
            "Section 4.3.2",
            Check(
                forests["temperature_lowers_log_loss"].true,
                forests["mcllo_lowers_ece"].of,
            ),
        ),
        Claim(
            "no_vector",
            '"pre-softmax logits are not attainable", so vector scaling does "not apply"',
            "Section 4.3.2",
            Check(int(made["logits"][1]["largest_change"] < SHARE)),
        ),
        Claim(
            "bins",
            '"a different number of bins can impact the resulting calibration metric greatly", of '
            "ECE and MCE",
            "Section 1",
            Settings(
                {
                    row["metric"].upper(): Runs(row["moved"], row["splits"])
                    for row in made["bins_moved"]
                }
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
                    "ECE": forests["mcllo_lowers_ece"],
                    "log loss": forests["mcllo_lowers_log_loss"],
                }
            ),
        ),
        Claim(
            "maps_to_calibrated",
            '"if a predictive model does not produce well calibrated probability predictions, '
            "MCLLO recalibration can map the outputted predictions to well-calibrated probability "
            'predictions"',
            DISCUSSION,
            forests["mcllo_not_rejected_where_it_was_before"],
        ),
        Claim(
            "baseline",
            'effects of the baseline: "Empirically, we have found these effects to be very small"',
            DISCUSSION,
            baseline_evidence(made["last_class"]),
        ),
    ]


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
