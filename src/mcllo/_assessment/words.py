"""What an assessment says: statements that a person who is no statistician can act on.

==========================  ======================================================================
heading                     how much was read
verdict, meaning, other     the answer (`_assessment/verdict`), what it means and does not mean, and
                            what omnibus tests say against it
size, size.*                how large the departure is, and how often it is right at a few levels
hint.*                      what looks like a mistake in the rows rather than in the model
culprit, culprit.*          after a rejection: whose fault it is, or why nobody can be named
remedy                      what to do
test, subsample             the test behind it; of rows in blocks also that of some of them
companion                   omnibus tests
kind.*                      after a rejection: the kind, the evidence for it, its rivals (`Ladder`)
by, by.*                    each subgroup by itself, where rows are divided (`Subgroups`)
baseline, zeros.*           what the answer hangs on
note.*                      what must be known of data and fit before trusting the numbers
metric.*                    accuracy, log loss, Brier score, and each ECE beside its null
==========================  ======================================================================

`_assessment/text` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._fit.fit import MCLLOFit
from .._ground.results import none_for_nan
from .._ground.statements import Level, Statement, pick
from .._ground.text import ellipsis, format_count, format_number, p_words
from .._inference.omnibus import NAMES as OMNIBUS
from .._inference.size import Size
from .._inference.sizes.words import points
from .._input.predictions import Predictions
from ..exceptions import PYTHON, Words
from .verdict import Kind, Verdict

if TYPE_CHECKING:
    from .assessment import Assessment


def statements_of(a: Assessment, verdict: Verdict, called: Words = PYTHON) -> list[Statement]:
    """Return everything that an assessment says after a verdict, in the order of the text."""
    p, d, alpha = a.predictions, a.details, verdict.alpha
    read = f"Calibration of {format_count(p.n_samples)} predictions of {p.n_classes} classes"
    read += "" if p.sample_weight is None else f", {p.weight_kind} weights"
    read += "" if p.groups is None else f", {format_count(int(p.groups.max()) + 1)} groups"
    said = [
        Statement("heading", read),
        *_verdict(a, verdict),
        *d.hints_in(called),
        *_size(a, verdict),
    ]
    if verdict.rejected and (culprits := d.culprits_at(alpha)) is not None:
        said += culprits.statements()
    if d.subgroups is not None:
        said += d.subgroups.statements(alpha, verdict.tolerance, verdict)
    said += _remedy(a, verdict)
    said += [Statement("test", str(a.test), numbers=a.test.to_dict()), *a.remarks]
    said += [Statement("companion", str(t), numbers=t.to_dict()) for t in a.companions.values()]
    if verdict.rejected and d.ladder is not None:
        said += d.ladder.statements()
    rests = [] if d.robust is None else d.robust.statements(alpha)
    said += [*_choices(a, alpha), *rests, *notes(p, a.fit, called), *_metrics(a)]
    return said


def rejecting(a: Assessment, alpha: float) -> tuple[str, ...]:
    """Return the omnibus tests that reject, allowing for their number."""
    level = alpha / max(1, len(a.companions))
    return tuple(kind for kind, test in a.companions.items() if test.pvalue <= level)


HEADLINES: dict[Kind, tuple[str, Level]] = {
    "matters": ("Miscalibrated, and it matters", "bad"),
    "little": ("Miscalibrated, but by little", "doubt"),
    "none_found": ("No miscalibration found", "plain"),
    "cannot_tell": ("These rows cannot tell", "doubt"),
}
"""The four verdicts as sentences, without their full stop."""


def _verdict(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return the answer, and what it does and does not say."""
    words, level = HEADLINES[verdict.kind]
    tolerated = f"{100 * verdict.tolerance:g} percentage points"
    tolerated = "one percentage point" if verdict.tolerance == 0.01 else tolerated
    if verdict.kind == "cannot_tell":
        meaning = verdict.reason
    elif verdict.kind == "matters":
        meaning = "Labels do not follow these probabilities: do not read them as frequencies."
    elif verdict.kind == "little":
        meaning = (
            "Labels do not quite follow these probabilities, but the average error is below "
            f"{tolerated}: with so many rows the test sees what hardly matters."
        )
    else:
        meaning = f"That is not proof of calibration: {excluded(a.size)}"
        if verdict.practically:
            meaning = f"Practically calibrated: the average error is below {tolerated}."
    said = [Statement("verdict", f"{words}.", level, none_for_nan(verdict.to_dict()))]
    said.append(Statement("meaning", meaning, level))
    if verdict.other:
        names = " and ".join(OMNIBUS[kind] for kind in verdict.other)
        but = (
            f"But an omnibus test rejects ({names}): something is wrong that is no shift or slope "
            "of the log odds. Look at the reliability diagrams."
        )
        said.append(Statement("other", but, "bad", {"kinds": verdict.other}))
    return said


def excluded(size: Size) -> str:
    """Return how large an error these rows exclude."""
    if not size.high < 1.0:
        return "these rows exclude no size of error."
    sure = f"{50 * (1 + size.confidence):g} % confidence"
    bound = f"an average error above {points(size.high)} percentage points ({sure})"
    return f"these rows exclude {bound}, no smaller one."


def _size(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return how large it is, where that is known and not said yet."""
    said = a.size.statements()
    if verdict.kind == "cannot_tell":
        return [] if a.details.robust is not None else pick(said, "size")[:1]
    if verdict.kind == "none_found" and a.size.low == 0.0:
        return pick(said, "size.level")
    return said


def _remedy(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return what to do about the verdict."""
    words = {
        "matters": "Fit a calibrator on these rows, and judge it on other rows.",
        "little": "A repair would change little; leave them, or fit a calibrator on these rows.",
        "none_found": "Nothing to repair on this evidence.",
        "cannot_tell": "Collect more rows, or more groups, before trusting or repairing them.",
    }[verdict.kind]
    if verdict.rejected and not a.fit.converged:
        words = "Fit a calibrator with a penalty on these rows, and judge it on other rows."
    if own := "" if a.subgroups is None else a.subgroups.remedy(verdict.alpha, verdict.tolerance):
        words = f"{words} {own}" if verdict.rejected else own
    if a.details.hints:
        words = "Settle first what looks like a mistake in the rows, and ask again."
    return [Statement("remedy", words)]


def _choices(a: Assessment, alpha: float) -> list[Statement]:
    """Return what the answer hangs on: the baseline, the floor for zeros."""
    d, said = a.details, []
    if (found := d.baselines) is not None:
        low, high = min(found.table["statistic"]), max(found.table["statistic"])
        least = found.method == "exact" and found.pvalue <= 1.0 / (found.n_resamples + 1)
        words = (
            f"Statistic {format_number(low)} to {format_number(high)} with each class as baseline, "
            f"p {p_words(found.pvalue, bound=least)} over all of them; repaired probabilities move "
            f"by {format_number(found.mean_range)} on average, "
            f"{format_number(found.largest_range)} at most."
        )
        numbers = {"pvalue": found.pvalue, "low": low, "high": high}
        said.append(Statement("baseline", words, numbers=numbers))
    return said if d.zeros is None else [*said, *d.zeros.statements(alpha)]


def _cut(names: Sequence[str], most: int = 6) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def notes(predictions: Predictions, fit: MCLLOFit, called: Words = PYTHON) -> list[Statement]:
    """Return what a reader must know about the data and the fit before trusting the numbers."""
    p, said = predictions, list(predictions.notes)
    if p.n_clipped:
        raised = p.zero_phrase.text(called)
        said.append(Statement("note.zeros", raised, numbers={"n_clipped": p.n_clipped}))
    if p.max_row_error > 1e-6:
        words = (
            f"{format_count(p.n_renormalized)} rows were divided by their sum "
            f"(off by up to {format_number(p.max_row_error, 2)})."
        )
        said.append(Statement("note.sums", words, numbers={"n_rows": p.n_renormalized}))
    if p.absent:
        words = f"No row is labelled {_cut([ellipsis(label) for label in p.absent])}."
        said.append(Statement("note.absent", words, numbers={"classes": p.absent}))
    if fit.separated:
        names = fit.separated_classes
        where = f" in {_cut([ellipsis(name) for name in names])}"
        where = where if 0 < len(names) < len(fit.classes) else ""
        words = (
            f"The maximum likelihood estimate does not exist (labels are separated{where}); the "
            "statistic is its supremum. To repair, use a penalty."
        )
        said.append(Statement("note.separated", words, "bad", {"classes": names}))
    elif not fit.converged:
        words = (
            "The estimates are not determined by these rows (the likelihood is flat). "
            "To repair, use a penalty."
        )
        said.append(Statement("note.flat", words, "bad"))
    return said


def _metrics(a: Assessment) -> list[Statement]:
    """Return accuracy, log loss and Brier score with what they promise, each ECE with its null."""
    m, promised = a.metrics, a.promised
    words = {
        "accuracy": f"Accuracy {100 * m['accuracy']:.1f} %",
        "log_loss": f"log loss {m['log_loss']:.4f}",
        "brier": f"Brier score {m['brier']:.4f}",
        "ece": f"ECE (top label) {m['ece']:.4f}",
        "classwise_ece": f"ECE (class by class) {m['classwise_ece']:.4f}",
    }
    for name, value in promised.items():
        shown = f"{100 * value:.1f} %" if name == "accuracy" else f"{value:.4f}"
        words[name] += f" (promised: {shown})"
    for name in words.keys() & a.nulls.keys():
        null = a.nulls[name]
        words[name] += (
            f"; calibrated predictions like these show {null.low:.4f} to {null.high:.4f}, "
            f"p {p_words(null.pvalue)}"
        )
    return [
        Statement(
            f"metric.{name}", text, numbers={"value": m[name], "promised": promised.get(name)}
        )
        for name, text in words.items()
    ]
