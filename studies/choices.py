"""What choices that the paper does not give decide: the same splits under each reading.

=======================  ==========================================================================
histogram binning (EB)   bins of each class: 10, 20, or ceil(sqrt n) of the n rows to learn from; of
                         equal width, or of equally many rows
Xu and others            targets smoothed, Platt's for c classes, or the labels as they are
=======================  ==========================================================================

`judged` fits every reading on the first of each pair of predictions and judges it on the second:
chi-square p-value as in the paper, ECE with ceil(sqrt n) bins, and the share of changed labels.

=======================================================  ==========================================
``runs = judged(pairs)``                                 a number for each split, by reading
``made["choices"] = choice_rows(runs)``                  a row for each reading
``choice_words(t["choices"])``                           these rows for a page
``readings("histogram", not_rejected(runs))``            evidence for `studies.rule.Claim`
``readings("histogram", lowers_ece(runs))``              the same for another claim
``across(runs, lambda eb, xu: eb["p"] > xu["p"])``       evidence where it rests on both methods
=======================================================  ==========================================

The paper says: "We will adopt the square root rule for this paper when comparing binning-based
methods such as ECE with the MCLLO method". It speaks of a metric; whether EB is meant too cannot be
known. Methods beside these: ``judged(pairs, more={"mcllo": {"": {}}})``. Where two rules give the
same number of bins, as for 396 rows, there is one reading less. Fifty splits of 10,000 rows take
about 15 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

import mcllo
from mcllo.metrics import expected_calibration_error, label_change

from .pages import Row, Rows
from .rule import Kept, Readings, Runs
from .tables import LEVEL, METHODS, suppress_warnings

Pair = tuple[mcllo.Predictions, mcllo.Predictions]
Key = tuple[str, str]
Numbers = dict[str, np.ndarray]
Judged = dict[Key, Numbers]
Choices = Mapping[str, Mapping[str, Mapping[str, Any]]]

RAW = ("uncalibrated", "")
KINDS = {"width": "bins of equal width", "mass": "bins of equal mass"}
TARGETS = {
    "smoothed targets": {"smooth": True},
    "targets not smoothed": {"smooth": False},
}
WHATS = ("p", "ece", "label_change")
XU_SCORES = {"prob": "probabilities", "log": "log probabilities"}
XU_OUTPUTS = ("pignistic", "plausibility")


def choices(n: int) -> Choices:
    """Return the options of each method by what they are called, for n rows to learn from.

    >>> list(choices(396)["histogram"])[:2], list(choices(8000)["histogram"])[2::3]
    (['10 bins of equal width', '20 bins of equal width'],
     ['90 bins of equal width', '90 bins of equal mass'])
    """
    bins = {
        f"{n_bins} {words}": {"n_bins": n_bins, "binning": kind}
        for kind, words in KINDS.items()
        for n_bins in (10, 20, ceil(sqrt(n)))
    }
    return {"histogram": bins, "xu_davoine": TARGETS}


@suppress_warnings()
def judged(pairs: Iterable[Pair], more: Choices = MappingProxyType({})) -> Judged:
    """Return the numbers of every split for the rows as predicted and after each reading."""
    runs: dict[Key, list[tuple[float, ...]]] = {}
    for train, holdout in pairs:
        runs.setdefault(RAW, []).append(numbers(holdout, holdout))
        for method, options in {**more, **choices(train.n_samples)}.items():
            for reading, chosen in options.items():
                calibrator = mcllo.CALIBRATORS[method](**chosen).fit(train)
                after = holdout.with_probs(calibrator.predict_proba(holdout))
                runs.setdefault((method, reading), []).append(numbers(holdout, after))
    return {
        key: dict(zip(WHATS, np.array(found).T, strict=True))
        for key, found in runs.items()
    }


@suppress_warnings()
def xu_readings(
    train: mcllo.Predictions, holdout: mcllo.Predictions, envelope: bool
) -> Rows:
    """Return the numbers of the holdout after every reading of Xu's method, a row for each.

    Scores, targets, output and order of the classes vary; without `envelope` one order less, which
    takes long on many rows.
    """
    outputs = [("plug_in", "score")]
    orders = ("score", "index", "envelope") if envelope else ("score", "index")
    outputs += [(output, order) for output in XU_OUTPUTS for order in orders]
    found = []
    for scores in XU_SCORES:
        for targets, options in TARGETS.items():
            for output, order in outputs:
                chosen = {"scores": scores, "output": output, "order": order}
                calibrator = mcllo.CALIBRATORS["xu_davoine"](**options, **chosen)
                probs = calibrator.fit(train).predict_proba(holdout)
                judged_numbers = numbers(holdout, holdout.with_probs(probs))
                own = dict(zip(WHATS, judged_numbers, strict=True))
                found.append({**chosen, "targets": targets, **own})
    return found


def xu_words(rows: Sequence[Row]) -> Rows:
    """Return the readings for a page: scores and targets, with the range over output and order."""
    lines = []
    for scores, words in XU_SCORES.items():
        for targets in TARGETS:
            own = [r for r in rows if (r["scores"], r["targets"]) == (scores, targets)]
            line: Row = {"scores": words, "targets": targets, "n": len(own)}
            for what in WHATS:
                values = [row[what] for row in own]
                line |= {f"low_{what}": min(values), f"high_{what}": max(values)}
            lines.append(line)
    return lines


def numbers(before: mcllo.Predictions, after: mcllo.Predictions) -> tuple[float, ...]:
    """Return p-value, ECE and label change of one set of predictions, in the order of `WHATS`."""
    pvalue = mcllo.calibration_test(after, method="chi2").pvalue
    change = label_change(before.probs, after.probs)
    return pvalue, expected_calibration_error(None, after), change


def not_rejected(runs: Judged) -> dict[Key, np.ndarray]:
    """Return whether the test keeps each split's predictions, by reading."""
    return {key: found["p"] > LEVEL for key, found in runs.items()}


def lowers_ece(runs: Judged) -> dict[Key, np.ndarray]:
    """Return whether the ECE is below that of the rows as predicted, by reading."""
    return {key: found["ece"] < runs[RAW]["ece"] for key, found in runs.items()}


def choice_rows(runs: Judged) -> Rows:
    """Return counts and medians over the splits, a row for each reading, as predicted first."""
    kept, lowered = not_rejected(runs), lowers_ece(runs)
    return [
        {"method": key[0], "reading": key[1]}
        | {"not_rejected": int(kept[key].sum()), "lowers_ece": int(lowered[key].sum())}
        | {"splits": len(found["p"])}
        | {f"median_{what}": float(np.median(found[what])) for what in WHATS}
        | dict(
            zip(
                ("q05_ece", "q95_ece"),
                np.quantile(found["ece"], (0.05, 0.95)),
                strict=True,
            )
        )
        for key, found in runs.items()
    ]


def choice_words(rows: Sequence[Row]) -> Rows:
    """Return the rows of `choice_rows` for a page: name, reading, counts as "3 of 50", medians."""
    return [
        row
        | {"name": METHODS[row["method"]], "reading": row["reading"] or "–"}
        | {"kept": f"{row['not_rejected']} of {row['splits']}"}
        | {"lowered": "–" if raw else f"{row['lowers_ece']} of {row['splits']}"}
        | {"median_label_change": None if raw else row["median_label_change"]}
        for row in rows
        for raw in [row["method"] == RAW[0]]
    ]


def readings(method: str, found: Mapping[Key, np.ndarray]) -> Readings:
    """Return in how many splits something came true under each reading of a method.

    >>> some, none = np.array([True, False]), np.array([False, False])
    >>> print(readings("xu_davoine", {("xu_davoine", "a"): some, ("xu_davoine", "b"): none}))
    a: 1 of 2; b: 0 of 2
    """
    own = {reading: true for (name, reading), true in found.items() if name == method}
    return Readings({reading: count(true) for reading, true in own.items()})


def kept_readings(method: str, runs: Judged, ceiling: float) -> Readings:
    """Return in how many splits the test keeps each reading, against what right maps reach."""
    kept = not_rejected(runs)
    own = {reading: true for (name, reading), true in kept.items() if name == method}
    parts = {}
    for reading, true in own.items():
        parts[reading] = Kept(int(true.sum()), len(true), ceiling)
    return Readings(parts)


def count(true: np.ndarray) -> Runs:
    """Return in how many splits something came true."""
    return Runs(int(true.sum()), len(true))


@dataclass(frozen=True)
class Span(Readings):
    """`Readings` that are too many to be listed: runs, said by the fewest and the most.

    >>> print(Span({"a": Runs(3, 50), "b": Runs(7, 50)}), Span({"a": Runs(9, 9)}), sep=" - ")
    3 to 7 of 50, by reading - 9 of 9 in every reading
    """

    def __str__(self) -> str:
        """Return the evidence in words."""
        runs = [part for part in self.parts.values() if isinstance(part, Runs)]
        low, high = (end(runs, key=lambda part: part.true) for end in (min, max))
        same = low.true == high.true
        return (
            f"{low} in every reading" if same else f"{low.true} to {high}, by reading"
        )


def across(runs: Judged, came_true: Callable[[Numbers, Numbers], np.ndarray]) -> Span:
    """Return in how many splits something came true for each reading of EB with each of Xu's.

    `came_true` gets the numbers of both, arrays over the splits by what they are.
    """
    both = [
        [key for key in runs if key[0] == name] for name in ("histogram", "xu_davoine")
    ]
    found = {
        (eb, xu): count(came_true(runs[eb], runs[xu]))
        for eb in both[0]
        for xu in both[1]
    }
    return Span({f"{eb[1]}, {xu[1]}": part for (eb, xu), part in found.items()})
