"""The first screen and the last: the verdict and what to do next; the rows, and how to repeat it.

==================  ===========================================================================
verdict, steps      by the status of the assessment's statement "verdict" (`_assessment/words`)
alerts              grave notes, labels that had probability 0, a chi-square p-value in doubt
headline facts      metrics beside their mean if the predictions were calibrated
data facts          what was read and what was changed
reproduce facts     version, command, seed, checksums
==================  ===========================================================================
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .._assessment.assessment import Assessment
from .._assessment.words import Status
from .._fit.fit import MCLLOFit
from .._ground.statements import Statement, pick
from .._ground.text import ellipsis, format_count, format_number
from .._inference.likelihood_tests import NAMES, WAYS, CalibrationTest
from .._inference.omnibus import NAMES as OMNIBUS
from .._input.predictions import Predictions
from .._version import __version__
from .._workflows.comparison import Comparison
from .views import Fact, Step, Verdict, capital, format_weight, name_cell, percent, show_p

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
Command = str | Sequence[str] | None


def data_facts(a: Assessment, comparison: Comparison | None) -> tuple[Fact, ...]:
    """Return what the reader must know of the rows: how many, of what, and what was changed."""
    p, counts = a.predictions, a.predictions.class_weight
    facts = [Fact("rows", "Rows", format_count(p.n_samples))]
    if comparison is not None and comparison.cross_validated:
        facts[0] = replace(facts[0], note="each judged by maps of other folds")
    elif comparison is not None:
        fitted = Fact("rows_fitted", "Rows fitted on", format_count(comparison.train.n_samples))
        facts = [fitted, replace(facts[0], name="Rows judged on")]
    facts += [
        Fact("classes", "Classes", str(p.n_classes)),
        Fact("baseline", "Baseline class", name_cell(p.baseline).text, is_label=True),
    ]
    for key, name, j in (
        ("rarest", "Rarest class", int(np.argmin(counts))),
        ("commonest", "Commonest class", int(np.argmax(counts))),
    ):
        share = percent(float(counts[j] / counts.sum()))
        note = f"{format_weight(float(counts[j]))} rows, {share}"
        facts.append(Fact(key, name, name_cell(p.classes[j]).text, note, is_label=True))
    absent = ", ".join(ellipsis(label) for label in p.absent[:6]) or "none"
    more = f"and {len(p.absent) - 6} more" if len(p.absent) > 6 else ""
    facts.append(Fact("absent", "Classes without a row", absent, more, is_label=True))
    if p.groups is not None:
        found = format_count(len(np.unique(p.groups)))
        facts.append(Fact("groups", "Groups", found, "rows of one may depend on each other"))
    weights, note = "none", ""
    if p.sample_weight is not None:
        weights = f"total {format_weight(float(p.sample_weight.sum()))}"
        note = "a row of weight 3 counts as three rows"
        if p.weight_kind == "survey":
            note = "survey weights: they correct for how rows were sampled, and are no counts"
        elif p.weight_kind == "importance":
            note = "importance weights: how much each row matters, and no counts"
    raised = f"{format_count(p.n_clipped)} raised to {p.clip:g}" if p.clip is not None else ""
    if p.n_clipped:
        raised += f", {format_count(p.n_clipped_true)} of them of the class that came true"
    off = f"off by up to {format_number(p.max_row_error, 2)}" if p.n_renormalized else ""
    state = "converged" if a.fit.converged else "not determined"
    if a.fit.separated:
        state = "does not exist (the labels are separated)"
    return (
        *facts,
        Fact("weights", "Weights", weights, note),
        Fact("input", "Read as", "logits" if p.logits is not None else "probabilities"),
        Fact("zeros", "Probabilities of exactly 0", format_count(p.n_zeros), raised),
        Fact("renormalized", "Rows divided by their sum", format_count(p.n_renormalized), off),
        Fact("fit", "Estimate", state, f"{a.fit.n_iter} Newton steps"),
        Fact("df", "Parameters", str(a.fit.df), "two for each class but the baseline"),
    )


def reproduce_facts(
    a: Assessment, comparison: Comparison | None, command: Command, source: Sources
) -> tuple[Fact, ...]:
    """Return versions, command (the Python call when none is given), seed and checksums."""
    used = f"Python {platform.python_version()}, NumPy {version('numpy')}, SciPy {version('scipy')}"
    seed = seed_of(a) if comparison is None else comparison.seed
    if command is None:
        p, auto = a.predictions, a.test.kind == "max_score"
        call = "mcllo.assess(probs, y"
        if comparison is not None:
            data = "(probs, y), cv=..." if comparison.cross_validated else "train, holdout"
            call = f"mcllo.compare({data}"
        call += f", baseline={'auto' if auto else name_cell(p.baseline).text!r}"
        call += "" if p.groups is None else ", groups=groups"
        call += "" if p.sample_weight is None else ", sample_weight=weight"
        call += "" if p.counts_rows else f", weight_kind={p.weight_kind!r}"
        command = f"{call})" if seed is None else f"{call}, seed={seed})"
    elif not isinstance(command, str):
        command = shlex.join(command)
    drawn = ("none", "no random numbers were used") if seed is None else (str(seed), "")
    return (
        Fact("version", "Software", f"mcllo {__version__}", used),
        Fact("command", "Command", command),
        Fact("seed", "Seed", *drawn),
        *(source_fact(path) for path in sources(source)),
    )


def seed_of(a: Assessment) -> int | None:
    """Return what random numbers were made from; None when none were."""
    seeds = [a.test.seed, *(n.seed for n in a.nulls.values())]
    seeds += [test.seed for test in a.companions.values()]
    found = next((seed for seed in seeds if seed is not None), None)
    if found is not None:
        return found
    d = a.details
    draws = [0 if part is None else part.n_resamples for part in (d.class_tests, d.baselines)]
    draws += [row.n_resamples + row.larger_n_resamples for row in d.ladder.rows] if d.ladder else []
    draws += [test.n_resamples for test in d.zeros.tests] if d.zeros else []
    return d.seed if any(draws) else None


def sources(source: Sources) -> list[str]:
    """Return the names of the inputs."""
    if source is None:
        return []
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    return [os.fspath(path) for path in source]


def source_fact(path: str) -> Fact:
    """Return the name of an input with the checksum of its bytes, where it is a file."""
    name = Path(path).name or path
    if not Path(path).is_file():
        return Fact("source", "Input", name, "not a file: no checksum")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Fact("source", "Input", name, f"SHA-256 {digest}")


def verdict_of(a: Assessment, said: list[Statement]) -> Verdict:
    """Return the answer in words."""
    (verdict,), (meaning,) = pick(said, "verdict"), pick(said, "meaning")
    headline, sentence = verdict.text, meaning.text
    if verdict.numbers["status"] == "other":
        (other,), alpha = pick(said, "other"), verdict.numbers["alpha"]
        pvalues = {kind: show_p(a.companions[kind].pvalue) for kind in other.numbers["kinds"]}
        found = "; ".join(f"{OMNIBUS[kind]}, p {shown}" for kind, shown in pvalues.items())
        headline = "The main test finds nothing, but an omnibus test rejects."
        sentence = (
            f"{other.text} ({found}.) Asked two questions at level {alpha:g}, calibrated "
            f"predictions fail one of them in up to {200 * alpha:g} % of cases."
        )
    return Verdict(
        status=verdict.numbers["status"],
        headline=headline,
        sentence=sentence,
        pvalue=f"p {show_p(a.test.pvalue, a.test.method)}",
        how=how_tested(a.test),
        why=_why_so(a),
    )


def how_tested(test: CalibrationTest) -> str:
    """Return the statistic and how its p-value was computed."""
    if math.isnan(test.statistic):
        return f"There is no {NAMES[test.kind]} statistic"
    draws = f"{format_count(test.n_resamples)} " if test.n_resamples else ""
    ways = {
        "chi2": "from the large-sample chi-square distribution",
        "exact": f"exact, from {draws}simulated data sets",
        "bound": "a guaranteed upper bound, by the split likelihood ratio",
        "draw": f"from {draws}simulated data sets",
        "flip": f"from {draws}random sign flips",
        "f": "from the F distribution",
    }
    way = ways.get(test.method, f"by {WAYS.get(test.method, test.method)}")
    statistic = f"{capital(NAMES[test.kind])} statistic {format_number(test.statistic, 4)}"
    return f"{statistic} on {test.df} df; p-value {way}"


def _why_so(a: Assessment) -> str:
    """Return why the p-value was computed that way, and what its size is limited by."""
    test, robust = a.test, a.details.robust
    if not test.reason or math.isnan(test.pvalue):
        return ""
    if test.why is not None and test.why.asked:
        why = "This way of computing the p-value was asked for."
    elif test.kind == "robust_score" and robust is not None:
        about = "Weights are no counts of rows"
        if robust.kind == "cluster":
            about = "Rows of a group may depend on each other"
        why = f"{about}, and this test allows for it ({robust.reason})."
    elif test.kind == "max_score":
        why = "The baseline was chosen by these labels; the p-value pays for that choice."
    elif test.method == "bound":
        why = (
            f"Chi-square cannot be trusted here ({test.reason}), and simulation could not show a "
            "p-value this small."
        )
    elif test.method == "exact":
        why = f"Simulated because chi-square cannot be trusted here ({test.reason})."
    else:
        enough = "Not simulated" if _limited(test) else "Simulation was not needed"
        why = f"{enough} ({test.reason})."
    if test.n_resamples and test.pvalue <= 1.001 / (test.n_resamples + 1):
        what = "flips" if test.method == "flip" else "draws"
        why += f" {format_count(test.n_resamples)} {what} can give no smaller p-value."
    return why


def _limited(test: CalibrationTest) -> bool:
    """Whether something kept labels from being drawn where that would have been better."""
    return test.why is not None and bool(test.why.limits)


def alerts_and_notes(
    a: Assessment, said: list[Statement]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what no reader may miss, and what belongs beside the data."""
    notes, p = pick(said, "note"), a.predictions
    alerts = [note.text for note in notes if note.level == "bad"]
    if p.n_clipped_true:
        labels = (
            f"{format_count(p.n_clipped_true)} {'label' if p.n_clipped_true == 1 else 'labels'}"
        )
        refuted = (
            f"{labels} had probability 0: the predictions as given said that this could not "
            "happen, and are refuted whatever the test says. The p-value is that of predictions "
            f"whose zeros were raised to {p.clip:g}."
        )
        if p.n_clipped > p.n_zeros:  # a floor was asked for that raised more than zeros
            refuted = (
                f"{labels} had a probability of 0 or below {p.clip:g}. What has probability 0 "
                "cannot happen: where it did, the predictions as given are refuted. The p-value is "
                "that of the raised ones."
            )
        alerts.append(refuted)
    if _limited(a.test):
        alerts.append(f"The chi-square p-value may be off: {a.test.reason}.")
    return tuple(alerts), tuple(note.text for note in notes if note.level != "bad")


def next_steps(a: Assessment, status: Status) -> tuple[Step, ...]:
    """Return what to do about the verdict."""
    compare = Step(
        "Compare repairs: fit them on one set of rows, judge them on another.",
        "found = mcllo.compare(train, holdout)\nmcllo.report(found).write('repairs.html')",
    )
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
    watch = "--gate makes a pipeline stop when calibration is rejected."
    return (
        Step(f"Nothing to repair on this evidence. {room_left(a.fit)}"),
        Step(
            f"Ask again when there are new rows; {watch}",
            "mcllo assess NEW.csv --label LABEL --gate",
        ),
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
    accuracy, loss = percent(expected["accuracy"]), expected["log_loss"]
    ece = ""
    if "ece" in a.nulls:
        ece = f"{a.nulls['ece'].low:.4f} to {a.nulls['ece'].high:.4f} if calibrated"
    return (
        Fact("accuracy", "Accuracy", percent(m["accuracy"]), f"{accuracy} if calibrated"),
        Fact("log_loss", "Log loss", f"{m['log_loss']:.4f}", f"{loss:.4f} if calibrated"),
        Fact("ece", "Calibration error (ECE)", f"{m['ece']:.4f}", ece),
    )


def expected_metrics(predictions: Predictions) -> dict[str, float]:
    """Return the metrics that calibrated predictions of these values have on average.

    Accuracy is then the mean confidence, log loss the mean entropy, and the Brier score the mean
    of ``1 - sum_j x_ij^2``.
    """
    x = predictions.probs
    by_row = {
        "accuracy": x.max(axis=1),
        "log_loss": -np.einsum("ij,ij->i", x, np.log(x)),
        "brier": 1.0 - np.einsum("ij,ij->i", x, x),
    }
    weight = predictions.sample_weight
    return {name: float(np.average(v, weights=weight)) for name, v in by_row.items()}
