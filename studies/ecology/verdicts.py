"""What the paper claims that this study can judge, by the rule, under the paper's random splits.

Each claim is quoted. General ones are judged in two settings, all years and 1986-1994; whether
recalibrated rows pass also with rows and with plots called independent. "Comparable" is within the
rule's `MARGIN` of the better one. MCLLO is fitted without logits; an exception to "no access
needed" is a split in which that does not lower the log loss. Later years are told beside a claim,
and never scored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import binomtest

from ..pages import Row, Tables, column
from ..rule import (
    MARGIN,
    Beyond,
    Both,
    Can,
    Check,
    Claim,
    Runs,
    Settings,
    Unknown,
    quoted,
)
from ..tables import LEVEL, METHODS
from .splits import YEARS, of_years

OTHERS = [name for name in METHODS if name not in ("uncalibrated", "mcllo")]
SCALINGS = ("temperature", "vector")
SAME = 1e-5
"""Numbers with six digits in the table are the same within this."""

Values = Callable[[str], np.ndarray]


def claims(t: Tables) -> list[Claim]:
    """Return the claims with their evidence, from the table of random splits."""
    splits = t["random_splits"]

    def runs(true: Callable[[Values], np.ndarray], words: str = "") -> dict[str, Runs]:
        """Return in how many splits of each set of years something is true."""
        return {
            name + words: counted(true, of_years(splits, years))
            for years, name in YEARS.items()
        }

    moved = np.abs(column(splits, "ece_top_only") - column(splits, "ece_mcllo")) > SAME
    useless = column(splits, "log_loss_mcllo") >= column(
        splits, "log_loss_uncalibrated"
    )
    return [
        Claim(
            "no_logits",
            '"they demonstrate the wide range of applications that MCLLO recalibration can be '
            'applied to, as it does not require under-the-hood access to the underlying model"',
            "Section 4",
            Check(int(useless.sum()), len(splits)),
        ),
        quoted(
            "comparable",
            Both(
                {
                    "LRT": Settings(runs(lrt_as_good)),
                    "ECE": Settings(
                        runs(
                            lambda v: (
                                v("ece_mcllo") <= lowest(v, "ece", OTHERS) + MARGIN
                            )
                        )
                    ),
                }
            ),
        ),
        Claim(
            "scalings",
            '"performing comparatively, and sometimes better, than temperature and vector scaling"',
            "Section 5",
            Settings(
                runs(
                    lambda v: v("ece_mcllo") <= lowest(v, "ece", SCALINGS) + MARGIN,
                    ", ECE",
                )
                | runs(
                    lambda v: (
                        v("log_loss_mcllo") <= lowest(v, "log_loss", SCALINGS) + MARGIN
                    ),
                    ", log loss",
                )
            ),
        ),
        Claim(
            "improves_ece",
            '"our MCLLO recalibration approach also improves ECE"',
            "Section 5",
            Settings(runs(lambda v: v("ece_mcllo") < v("ece_uncalibrated"))),
        ),
        quoted(
            "maps_to_calibrated",
            Settings(
                can(runs(lambda v: v("p_mcllo") > LEVEL, ", rows independent"))
                | can(runs(lambda v: v("p_plots_mcllo") > LEVEL, ", plots independent"))
            ),
        ),
        quoted(
            "which_is_best",
            Settings(
                beyond_chance(
                    runs(lambda v: best(v, "statistic") == best(v, "log_loss"))
                )
            ),
        ),
        Claim(
            "top_only",
            '"ECE does not take into account every probability prediction: instead, it only '
            'considers the maximum probability prediction of each observation"',
            "Section 5",
            Check(int(moved.sum()), len(splits)),
        ),
        quoted("last_class", Unknown("the paper's ecology data are not named")),
    ]


def lrt_as_good(values: Values) -> np.ndarray:
    """Return in which splits MCLLO is not rejected, or every other method is rejected too."""
    others = np.max([values(f"p_{name}") for name in OTHERS], axis=0)
    return (values("p_mcllo") > LEVEL) | (others <= LEVEL)


def can(runs: Mapping[str, Runs]) -> dict[str, Can]:
    """Return counts as evidence of what can happen."""
    return {name: Can(found.true, found.of) for name, found in runs.items()}


def beyond_chance(runs: Mapping[str, Runs]) -> dict[str, Beyond]:
    """Return the interval of a share of the splits, which must be above one of all methods."""
    chance = 1.0 / (1 + len(OTHERS))
    found = {}
    for name, counts in runs.items():
        interval = binomtest(counts.true, counts.of).proportion_ci()
        found[name] = Beyond(float(interval.low), float(interval.high), chance)
    return found


def counted(true: Callable[[Values], np.ndarray], rows: Sequence[Row]) -> Runs:
    """Return in how many rows something is true of the columns."""
    return Runs(int(true(lambda name: column(rows, name)).sum()), len(rows))


def lowest(values: Values, what: str, names: Sequence[str]) -> np.ndarray:
    """Return the smallest number of these methods in each split."""
    return np.min([values(f"{what}_{name}") for name in names], axis=0)


def best(values: Values, what: str) -> np.ndarray:
    """Return which recalibration has the smallest number in each split."""
    return np.argmin([values(f"{what}_{name}") for name in ("mcllo", *OTHERS)], axis=0)
