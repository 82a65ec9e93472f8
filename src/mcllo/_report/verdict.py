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
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._assessment.assessment import Assessment
from .._assessment.details import Details
from .._assessment.words import Status
from .._fit.fit import MCLLOFit
from .._ground.statements import Statement, pick
from .._ground.text import ellipsis, format_count, format_number
from .._inference.likelihood_tests import NAMES, WAYS, CalibrationTest
from .._inference.omnibus import NAMES as OMNIBUS
from .._inference.robust import RobustTest
from .._input.predictions import Predictions
from .._version import __version__
from .._workflows.comparison import Comparison
from .views import Fact, Step, Verdict, capital, format_weight, name_cell, percent, show_p

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
Command = str | Sequence[str] | None


def data_facts(a: Assessment, comparison: Comparison | None) -> tuple[Fact, ...]:
    """Return what the reader must know of the rows."""
    p = a.predictions
    groups = []
    if p.groups is not None:
        found = format_count(len(np.unique(p.groups)))
        groups = [Fact("groups", "Groups", found, "rows of one may depend on each other")]
    state = "converged" if a.fit.converged else "not determined"
    if a.fit.separated:
        state = "does not exist (the labels are separated)"
    return (
        *_size_facts(p, comparison),
        *_class_facts(p),
        *groups,
        _weight_fact(p),
        *_change_facts(p),
        Fact("fit", "Estimate", state, f"{a.fit.n_iter} Newton steps"),
        Fact("df", "Parameters", str(a.fit.df), "two for each class but the baseline"),
    )


def _size_facts(p: Predictions, comparison: Comparison | None) -> list[Fact]:
    rows = Fact("rows", "Rows", format_count(p.n_samples))
    if comparison is not None and comparison.cross_validated:
        rows = Fact("rows", "Rows", format_count(p.n_samples), "each judged by maps of other folds")
    elif comparison is not None:
        fitted = Fact("rows_fitted", "Rows fitted on", format_count(comparison.train.n_samples))
        return [fitted, Fact("rows", "Rows judged on", format_count(p.n_samples))]
    return [rows]


def _class_facts(p: Predictions) -> list[Fact]:
    counts = p.class_weight
    small, large = int(np.argmin(counts)), int(np.argmax(counts))
    facts = [
        Fact("classes", "Classes", str(p.n_classes)),
        Fact("baseline", "Baseline class", name_cell(p.baseline).text, is_label=True),
    ]
    for key, name, j in (
        ("rarest", "Rarest class", small),
        ("commonest", "Commonest class", large),
    ):
        share = percent(float(counts[j] / counts.sum()))
        note = f"{format_weight(float(counts[j]))} rows, {share}"
        facts.append(Fact(key, name, name_cell(p.classes[j]).text, note, is_label=True))
    absent = ", ".join(ellipsis(label) for label in p.absent[:6]) or "none"
    more = f"and {len(p.absent) - 6} more" if len(p.absent) > 6 else ""
    return [*facts, Fact("absent", "Classes without a row", absent, more, is_label=True)]


def _weight_fact(p: Predictions) -> Fact:
    if p.sample_weight is None:
        return Fact("weights", "Weights", "none")
    total = format_weight(float(p.sample_weight.sum()))
    note = "a row of weight 3 counts as three rows"
    if p.weight_kind == "survey":
        note = "survey weights: they correct for how rows were sampled, and are no counts"
    return Fact("weights", "Weights", f"total {total}", note)


def _change_facts(p: Predictions) -> list[Fact]:
    raised = f"{format_count(p.n_clipped)} raised to {p.clip:g}" if p.clip is not None else ""
    true = f", {format_count(p.n_clipped_true)} of them of the class that came true"
    off = f"off by up to {format_number(p.max_row_error, 2)}" if p.n_renormalized else ""
    kind = "logits" if p.logits is not None else "probabilities"
    return [
        Fact("input", "Read as", kind),
        Fact(
            "zeros",
            "Probabilities of exactly 0",
            format_count(p.n_zeros),
            raised + true if p.n_clipped else raised,
        ),
        Fact("renormalized", "Rows divided by their sum", format_count(p.n_renormalized), off),
    ]


def reproduce_facts(
    a: Assessment, comparison: Comparison | None, command: Command, source: Sources
) -> tuple[Fact, ...]:
    """Return versions, command, seed and checksums."""
    used = f"Python {platform.python_version()}, NumPy {version('numpy')}, SciPy {version('scipy')}"
    seed = seed_of(a) if comparison is None else comparison.seed
    facts = [Fact("version", "Software", f"mcllo {__version__}", used)]
    facts.append(Fact("command", "Command", _command(a, comparison, command, seed)))
    none = "no random numbers were used"
    facts.append(Fact("seed", "Seed", "none" if seed is None else str(seed), none * (seed is None)))
    return (*facts, *(source_fact(path) for path in sources(source)))


def seed_of(a: Assessment) -> int | None:
    """Return what random numbers were made from; None when none were."""
    seeds = [a.test.seed, *(n.seed for n in a.nulls.values())]
    seeds += [test.seed for test in a.companions.values()]
    found = next((seed for seed in seeds if seed is not None), None)
    return a.details.seed if found is None and _details_drew(a.details) else found


def _details_drew(d: Details) -> bool:
    """Return whether a p-value of the details was simulated."""
    draws = [0 if part is None else part.n_resamples for part in (d.class_tests, d.baselines)]
    draws += [row.n_resamples + row.larger_n_resamples for row in d.ladder.rows] if d.ladder else []
    draws += [test.n_resamples for test in d.zeros.tests] if d.zeros else []
    return any(draws)


def _command(
    a: Assessment, comparison: Comparison | None, command: Command, seed: int | None
) -> str:
    if command is not None:
        return command if isinstance(command, str) else shlex.join(command)
    auto = a.test.kind == "max_score"
    baseline = repr("auto" if auto else name_cell(a.predictions.baseline).text)
    rest = f"baseline={baseline}{_row_options(a.predictions)}"
    rest += "" if seed is None else f", seed={seed}"
    if comparison is None:
        return f"mcllo.assess(probs, y, {rest})"
    data = "(probs, y), cv=..." if comparison.cross_validated else "train, holdout"
    return f"mcllo.compare({data}, {rest})"


def _row_options(p: Predictions) -> str:
    options = "" if p.groups is None else ", groups=groups"
    if p.sample_weight is not None:
        options += ", sample_weight=weight"
        options += ", weight_kind='survey'" if p.weight_kind == "survey" else ""
    return options


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


def status_of(said: list[Statement]) -> Status:
    """Return which of the four cases this is."""
    status: Status = pick(said, "verdict")[0].numbers["status"]
    return status


def verdict_of(a: Assessment, said: list[Statement]) -> Verdict:
    """Return the answer in words."""
    status, (headline,), (meaning,) = status_of(said), pick(said, "verdict"), pick(said, "meaning")
    other = status == "other"
    return Verdict(
        status=status,
        headline=_OTHER if other else headline.text,
        sentence=_other_sentence(a, said) if other else meaning.text,
        pvalue=f"p {show_p(a.test.pvalue, a.test.method)}",
        how=how_tested(a.test),
        why=why_so(a),
    )


_OTHER = "The main test finds nothing, but an omnibus test rejects."


def _other_sentence(a: Assessment, said: list[Statement]) -> str:
    (other,), alpha = pick(said, "other"), pick(said, "verdict")[0].numbers["alpha"]
    kinds = other.numbers["kinds"]
    found = "; ".join(f"{OMNIBUS[kind]}, p {show_p(a.companions[kind].pvalue)}" for kind in kinds)
    return (
        f"{other.text} ({found}.) Asked two questions at level {alpha:g}, calibrated "
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


def why_so(a: Assessment) -> str:
    """Return why the p-value was computed that way, and what its size is limited by."""
    test = a.test
    if not test.reason or math.isnan(test.pvalue):
        return ""
    why = _reason_of(test, a.details.robust)
    if test.n_resamples and test.pvalue <= 1.001 / (test.n_resamples + 1):
        what = "flips" if test.method == "flip" else "draws"
        why += f" {format_count(test.n_resamples)} {what} can give no smaller p-value."
    return why


def _reason_of(test: CalibrationTest, robust: RobustTest | None) -> str:
    if test.why is not None and test.why.asked:
        return "This way of computing the p-value was asked for."
    if test.kind == "robust_score" and robust is not None:
        about = "Survey weights are no counts of rows"
        if robust.kind == "cluster":
            about = "Rows of a group may depend on each other"
        return f"{about}, and this test allows for it ({robust.reason})."
    if test.kind == "max_score":
        return "The baseline was chosen by these labels; the p-value pays for that choice."
    if test.method == "bound":
        return (
            f"Chi-square cannot be trusted here ({test.reason}), and simulation could not show a "
            "p-value this small."
        )
    if test.method == "exact":
        return f"Simulated because chi-square cannot be trusted here ({test.reason})."
    enough = "Not simulated" if _limited(test) else "Simulation was not needed"
    return f"{enough} ({test.reason})."


def _limited(test: CalibrationTest) -> bool:
    """Whether something kept labels from being drawn where that would have been better."""
    return test.why is not None and bool(test.why.limits)


def alerts_and_notes(
    a: Assessment, said: list[Statement]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what no reader may miss, and what belongs beside the data."""
    notes = pick(said, "note")
    grave = [note.text for note in notes if note.level == "bad"]
    refuted = [refuted_zeros(a.predictions)] if a.predictions.n_clipped_true else []
    doubt = [f"The chi-square p-value may be off: {a.test.reason}."] if _limited(a.test) else []
    return (*grave, *refuted, *doubt), tuple(n.text for n in notes if n.level != "bad")


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
    by_row: dict[str, NDArray[np.float64]] = {
        "accuracy": x.max(axis=1),
        "log_loss": -np.einsum("ij,ij->i", x, np.log(x)),
        "brier": 1.0 - np.einsum("ij,ij->i", x, x),
    }
    weight = predictions.sample_weight
    return {name: float(np.average(v, weights=weight)) for name, v in by_row.items()}
