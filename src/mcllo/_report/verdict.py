"""The first screen: the verdict, what must be known first, what to do next, and a few numbers.

=============  ===========================================================================
rejected       the main test rejects at level alpha
other          the main test does not, an omnibus companion does (Bonferroni over companions)
not_rejected   none does; never called calibrated
unknown        the statistic does not exist for these rows
=============  ===========================================================================
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._assess import Assessment
from .._calibration_test import NAMES, WAYS, CalibrationTest
from .._fit import MCLLOFit
from .._omnibus import NAMES as OMNIBUS
from .._predictions import Predictions
from .._text import format_count, format_number
from .._words import companion_lines, notes, verdict
from .views import Fact, Status, Step, Verdict, capital, percent, show_p

GRAVE = ("the maximum likelihood estimate does not exist", "the estimates are not determined")
"""Beginnings of the notes that no reader may miss."""


def status_of(a: Assessment, alpha: float) -> Status:
    """Return which of the four cases this is."""
    if math.isnan(a.test.pvalue):
        return "unknown"
    if a.test.rejects(alpha):
        return "rejected"
    return "other" if len(companion_lines(a, alpha)) > 1 else "not_rejected"


def verdict_of(a: Assessment, alpha: float) -> Verdict:
    """Return the answer in words."""
    status = status_of(a, alpha)
    text = " ".join(verdict(a.test, alpha).removeprefix("Verdict: ").split())
    text = text.replace(f" ({a.test.p_text})", "")  # it stands right below
    headline, _, sentence = text.partition(". ")
    if status == "other":
        headline = "The main test finds nothing, but an omnibus test rejects"
        sentence = _other_sentence(a, alpha)
    if status == "unknown":
        headline, sentence = "No verdict", text.removeprefix("none, because ")
    return Verdict(
        status=status,
        headline=capital(headline.removesuffix(".")) + ".",
        sentence=capital(sentence),
        pvalue=f"p {show_p(a.test.pvalue, a.test.method)}",
        how=how_tested(a.test),
        why=why_so(a.test),
    )


def _other_sentence(a: Assessment, alpha: float) -> str:
    level = alpha / len(a.companions)
    found = [
        f"{OMNIBUS[kind]}, p {show_p(test.pvalue)}"
        for kind, test in a.companions.items()
        if test.pvalue <= level
    ]
    words = capital(companion_lines(a, alpha)[1].removeprefix("But these reject: "))
    return (
        f"{words} ({'; '.join(found)}.) Asked two questions at level {alpha:g}, calibrated "
        f"predictions fail one of them in up to {200 * alpha:g} % of cases."
    )


def how_tested(test: CalibrationTest) -> str:
    """Return the statistic and how its p-value was computed."""
    if math.isnan(test.statistic):
        return f"There is no {NAMES[test.kind]} statistic"
    statistic = format_number(test.statistic, 4)
    return (
        f"{capital(NAMES[test.kind])} statistic {statistic} on {test.df} df; "
        f"p-value {_way_of(test)}"
    )


def _way_of(test: CalibrationTest) -> str:
    draws = f"{format_count(test.n_resamples)} " if test.n_resamples else ""
    ways = {
        "chi2": "from the large-sample chi-square distribution",
        "exact": f"exact, from {draws}simulated data sets",
        "bound": "a guaranteed upper bound, by the split likelihood ratio",
        "bonferroni": "from the chi-square distribution, times the number of baselines "
        "(Bonferroni)",
        "flip": f"from {draws}random sign flips",
        "f": "from the F distribution",
    }
    return ways.get(test.method, f"by {WAYS.get(test.method, test.method)}")


def why_so(test: CalibrationTest) -> str:
    """Return why the p-value was computed that way, and what its size is limited by."""
    if not test.reason or math.isnan(test.pvalue):
        return ""
    why = _reason_of(test)
    if test.n_resamples and test.pvalue <= 1.001 / (test.n_resamples + 1):
        what = "flips" if test.method == "flip" else "draws"
        why += f" {format_count(test.n_resamples)} {what} can give no smaller p-value."
    return why


def _reason_of(test: CalibrationTest) -> str:
    if test.reason == "as asked":
        return "This way of computing the p-value was asked for."
    if test.kind == "robust_score":
        about, _, rest = test.reason.partition("; ")
        group = "Rows of a group may depend on each other, and this test allows for it"
        survey = "Survey weights are no counts of rows, and this test allows for it"
        return f"{group if about.startswith('rows of') else survey} ({rest})."
    if test.kind == "max_score":
        return "The baseline was chosen by these labels; the p-value pays for that choice."
    if test.method == "bound":
        return (
            f"Chi-square cannot be trusted here ({test.reason}), and simulation could not show a "
            "p-value this small."
        )
    if test.method == "exact":
        return f"Simulated because chi-square cannot be trusted here ({test.reason})."
    enough = "Not simulated" if ", but " in test.reason else "Simulation was not needed"
    return f"{enough} ({test.reason})."


def alerts_and_notes(a: Assessment) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what no reader may miss, and what belongs beside the data."""
    lines = [capital(line.removeprefix("Note: ")) for line in notes(a.predictions, a.fit)]
    grave = [line for line in lines if line.lower().startswith(GRAVE)]
    refuted = [refuted_zeros(a.predictions)] if a.predictions.n_clipped_true else []
    doubt = [f"The chi-square p-value may be off: {a.test.reason}."] * (", but " in a.test.reason)
    alerts = (*grave, *refuted, *doubt)
    return alerts, tuple(line for line in lines if line not in alerts)


def refuted_zeros(predictions: Predictions) -> str:
    """Return what it means that labels came true which had been given probability 0."""
    p, n = predictions, predictions.n_clipped_true
    word = "label" if n == 1 else "labels"
    if p.n_clipped > p.n_zeros:  # a floor was asked for that raised more than zeros
        return (
            f"{format_count(n)} {word} had a probability of 0 or below {p.clip:g}. What has "
            "probability 0 cannot happen: where it did, the predictions as given are refuted. "
            "The p-value is that of the raised ones."
        )
    return (
        f"{format_count(n)} {word} had probability 0: the predictions as given said that this "
        "could not happen, and are refuted whatever the test says. The p-value is that of "
        f"predictions whose zeros were raised to {p.clip:g}."
    )


def next_steps(a: Assessment, alpha: float) -> tuple[Step, ...]:
    """Return what to do about the verdict."""
    compare = Step(
        "Compare repairs: fit them on one set of rows, judge them on another.",
        "found = mcllo.compare(train, holdout)\nmcllo.report(found).write('repairs.html')",
    )
    status = status_of(a, alpha)
    if status == "rejected":
        first = "Do not read these probabilities as frequencies until they are repaired."
        if not a.fit.converged:
            fit = "mcllo.MCLLOCalibrator(penalty=1.0).fit(train_probs, train_y)"
            return (Step(first), Step("A plain fit fails on these rows: use a penalty.", fit))
        return (Step(first), compare)
    if status == "other":
        look = "Look at the reliability diagrams, class by class, for bins outside their band."
        return (Step(look), compare)
    if status == "unknown":
        return (Step("Read the notes on the data below: they say why there is no answer."),)
    return (Step(f"Nothing to repair on this evidence. {room_left(a.fit)}"), _WATCH)


_WATCH = Step(
    "Ask again when there are new rows; --gate makes a pipeline stop when calibration is rejected.",
    "mcllo assess NEW.csv --label LABEL --gate",
)


def room_left(fit: MCLLOFit) -> str:
    """Return how large a departure these rows cannot exclude."""
    slopes = fit.confidence_interval().gamma
    if not fit.converged or not np.isfinite(slopes).any():
        return "But these rows do not determine the slopes at all."
    low, high = float(np.nanmin(slopes)), float(np.nanmax(slopes))
    return (
        f"These rows cannot exclude slopes between {format_number(low)} and {format_number(high)} "
        "(1 changes nothing); more rows would narrow that."
    )


def headline_facts(a: Assessment) -> tuple[Fact, ...]:
    """Return the few numbers of the first screen."""
    m, expected = a.metrics, expected_metrics(a.predictions)
    ece = ""
    if "ece" in a.nulls:
        ece = f"{a.nulls['ece'].low:.4f} to {a.nulls['ece'].high:.4f} if calibrated"
    return (
        Fact("accuracy", "Accuracy", percent(m["accuracy"]), _if(percent(expected["accuracy"]))),
        Fact("log_loss", "Log loss", f"{m['log_loss']:.4f}", _if(f"{expected['log_loss']:.4f}")),
        Fact("ece", "Calibration error (ECE)", f"{m['ece']:.4f}", ece),
    )


def expected_metrics(predictions: Predictions) -> dict[str, float]:
    """Return the metrics that calibrated predictions of these values have on average.

    Accuracy is then the mean confidence, log loss the mean entropy, and the Brier score the mean
    of ``1 - sum_j x_ij^2``.
    """
    x = predictions.probs
    by_row: dict[str, NDArray[np.float64]] = {
        "accuracy": x.max(axis=1),
        "log_loss": -np.einsum("ij,ij->i", x, np.log(x)),
        "brier": 1.0 - np.einsum("ij,ij->i", x, x),
    }
    weight = predictions.sample_weight
    return {name: float(np.average(v, weights=weight)) for name, v in by_row.items()}


def _if(value: str) -> str:
    return f"{value} if calibrated"
