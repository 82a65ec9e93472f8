"""What an assessment says: statements that a person who is no statistician can act on.

==========================  ========================================================================
heading                     how much was read
verdict, meaning, other     the answer (`_assessment/verdict`), what it means and does not mean, and
                            what omnibus tests say against it; other.shape: that shifts and slopes
                            are not all that is wrong
size, effect_size.*         how large the departure is, and how often it is right at a few levels
data_check.*                what looks like a mistake in the rows rather than in the model
attribution, attribution.*  after a rejection: which classes are miscalibrated, or why nobody can be
                            named
remedy                      what to do
test, subsample             the test behind it; of rows in blocks also that of some of them
omnibus, map_fit            omnibus tests, and the test of what the fitted map leaves
kind.*                      after a rejection: the kind, the evidence for it, its rivals
                            (`NestedModels`)
by, by.*                    each subgroup by itself, where rows are divided (`Subgroups`)
baseline, zeros.*           what the answer hangs on
note.*                      what must be known of data and fit before trusting the numbers
metric.*                    accuracy, log loss, Brier score, and each ECE beside its null
==========================  ========================================================================

`_assessment/report_text` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._diagnostics.attribution import OTHER_SHAPE_CAVEAT
from .._fit.fit import MCLLOFit
from .._inference.effect_size import EffectSize
from .._inference.effect_size_text import points
from .._inference.likelihood_tests import STATISTIC_NAMES as MAIN
from .._inference.omnibus import TEST_NAMES as OMNIBUS
from .._utils.formatting import ellipsis, format_count, format_number, p_words
from .._utils.results import none_for_nan
from .._utils.statements import Level, Statement, pick
from .._validation.predictions import Predictions
from ..exceptions import PYTHON, Names
from .verdict import Kind, Verdict

if TYPE_CHECKING:
    from .assessment import Assessment


def assessment_statements(
    a: Assessment, verdict: Verdict, names: Names = PYTHON
) -> list[Statement]:
    """Return everything that an assessment says after a verdict, in the order of the text."""
    p, d, alpha = a.predictions, a.details, verdict.alpha
    read = f"Calibration of {format_count(p.n_samples)} predictions of {p.n_classes} classes"
    read += "" if p.sample_weight is None else f", {p.weight_kind} weights"
    read += "" if p.groups is None else f", {format_count(int(p.groups.max()) + 1)} groups"
    said = [
        Statement("heading", read),
        *_verdict(a, verdict),
        *d.data_checks,
        *_size(a, verdict),
    ]
    miscalibrated_classes = d.miscalibrated_classes_at(alpha) if names_classes(verdict) else None
    if miscalibrated_classes is not None:
        said += miscalibrated_classes.statements(fits=not verdict.map_rejected)
    if d.subgroups is not None:
        said += d.subgroups.statements(alpha, verdict.tolerance, verdict)
    said += _remedy(a, verdict)
    said += [Statement("test", str(a.test), numbers=a.test.to_dict()), *a.remarks]
    said += [Statement("omnibus", str(t), numbers=t.to_dict()) for t in a.omnibus_tests.values()]
    said.append(Statement("map_fit", str(a.goodness_of_fit), numbers=a.goodness_of_fit.to_dict()))
    if names_classes(verdict) and d.nested_models is not None:
        if miscalibrated_classes is not None and miscalibrated_classes.mixture is not None:
            said.append(Statement("kind.outside", OTHER_SHAPE_CAVEAT, "doubt"))
        said += d.nested_models.statements()
    rests = [] if d.robust is None else d.robust.statements(alpha)
    said += [*_choices(a, alpha), *rests, *notes(p, a.fit), *_metrics(a)]
    return [statement.in_names(names) for statement in said]


def names_classes(verdict: Verdict) -> bool:
    """Whether classes, and the kind of error, can be asked for: shifts or slopes are off."""
    return verdict.rejected and verdict.main_rejects


def rejecting_omnibus_tests(a: Assessment, alpha: float) -> tuple[str, ...]:
    """Return the omnibus tests that reject, allowing for their number."""
    level = alpha / max(1, len(a.omnibus_tests))
    return tuple(kind for kind, test in a.omnibus_tests.items() if test.pvalue <= level)


HEADLINES: dict[Kind, tuple[str, Level]] = {
    "miscalibrated": ("Miscalibrated", "bad"),
    "negligible": ("Miscalibrated, but negligibly", "doubt"),
    "not_detected": ("No miscalibration found", "plain"),
    "inconclusive": ("These rows cannot tell", "doubt"),
}
"""The four verdicts as sentences, without their full stop."""


def _verdict(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return the answer, and what it does and does not say."""
    words, level = HEADLINES[verdict.kind]
    said = [Statement("verdict", f"{words}.", level, none_for_nan(verdict.to_dict()))]
    said.append(Statement("meaning", verdict_meaning(a, verdict), level))
    if verdict.omnibus_alone:
        names = " and ".join(OMNIBUS[kind] for kind in verdict.other)
        but = (
            f"But an omnibus test rejects ({names}): something is wrong that is no shift or slope "
            "of the log odds. Look at the reliability diagrams."
        )
        if verdict.kind == "miscalibrated":
            names = " and ".join(
                f"{OMNIBUS[kind]}, p {p_words(a.omnibus_tests[kind].pvalue)}"
                for kind in verdict.other
            )
            but = (
                f"It is an omnibus test that rejects ({names}), the {MAIN[a.test.kind]} test does "
                f"not ({a.test.p_text}): what is wrong is no shift or slope of the log odds. Look "
                "at the reliability diagrams."
            )
        said.append(Statement("other", but, "bad", {"kinds": verdict.other}))
    elif verdict.rejected and verdict.map_rejected:
        shape = (
            "What is wrong is not, or not only, a shift or slope of the log odds: more than chance "
            f"is left after the best map of them (p {p_words(verdict.map_pvalue)})."
        )
        said.append(Statement("other.shape", shape, "bad", {"pvalue": verdict.map_pvalue}))
    return said


FAMILY = "by shifts and slopes of the log odds"
"""Which errors the main test looks for and the sizes of the map measure."""


def verdict_meaning(a: Assessment, verdict: Verdict, family: str = FAMILY) -> str:
    """Return what the verdict says, and what it does not; `family` names the errors looked for."""
    tolerated = f"{100 * verdict.tolerance:g} percentage points"
    tolerated = "one percentage point" if verdict.tolerance == 0.01 else tolerated
    if verdict.kind == "inconclusive":
        return verdict.reason
    if verdict.kind == "miscalibrated":
        return "Labels do not follow these probabilities: do not read them as frequencies."
    if verdict.kind == "negligible":
        return (
            f"Labels do not quite follow these probabilities, but the average error {family} is "
            f"below {tolerated}, and no other error was found: with so many rows the test sees "
            "what hardly matters."
        )
    if verdict.equivalent:
        return (
            f"Equivalent to calibrated within {tolerated}: larger errors {family} are excluded, "
            "and no other error was found."
        )
    if verdict.beyond or not a.effect_size.high < 1.0:
        return "That is not proof of calibration: these rows exclude no size of error."
    return f"That is not proof of calibration: {state_excluded_error(a.effect_size, family)}"


def state_excluded_error(size: EffectSize, family: str = FAMILY) -> str:
    """Return how large an error these rows exclude, and of which kind."""
    sure = f"{50 * (1 + size.confidence):g} % confidence"
    bound = f"an average error {family} above {points(size.high)} percentage points"
    return f"these rows exclude {bound} ({sure}), no smaller one."


def _size(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return how large it is, where that is known and not said yet."""
    said = a.effect_size.statements(fits=not verdict.map_rejected, bounded=not verdict.beyond)
    gain = a.recalibration_gain.statement(a.predictions.n_samples)
    if verdict.kind == "inconclusive":
        own = [statement for statement in said if statement.kind == "effect_size"]
        return [] if a.details.robust is not None else own
    if verdict.kind == "not_detected" and a.effect_size.low == 0.0:
        return [gain, *pick(said, "effect_size.level", "effect_size.map_level")]
    return [gain, *said]


def _remedy(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return what to do about the verdict."""
    words = {
        "miscalibrated": "Fit a calibrator on these rows, and judge it on other rows.",
        "negligible": (
            "A recalibration would change little; leave them, or fit a calibrator on these rows."
        ),
        "not_detected": "Nothing to recalibrate on this evidence.",
        "inconclusive": "Collect more rows, or more groups, before trusting or recalibrating them.",
    }[verdict.kind]
    if verdict.rejected and verdict.beyond:
        words = (
            "Compare calibrators on these rows, also some that assume no shape (histogram, "
            "isotonic), each judged on rows that it was not fitted to."
        )
    if verdict.rejected and not a.fit.converged:
        words = "Fit a calibrator with a penalty on these rows, and judge it on other rows."
    if own := "" if a.subgroups is None else a.subgroups.remedy(verdict.alpha, verdict.tolerance):
        words = f"{words} {own}" if verdict.rejected else own
    if a.details.data_checks:
        words = "Settle first what looks like a mistake in the rows, and ask again."
    return [Statement("remedy", words)]


def _choices(a: Assessment, alpha: float) -> list[Statement]:
    """Return what the answer depends on: the baseline, the clipping of zeros."""
    d, said = a.details, []
    if (found := d.baselines) is not None:
        low, high = min(found.table["statistic"]), max(found.table["statistic"])
        least = found.method == "exact" and found.pvalue <= 1.0 / (found.n_resamples + 1)
        words = (
            f"Statistic {format_number(low)} to {format_number(high)} with each class as baseline, "
            f"p {p_words(found.pvalue, bound=least)} over all of them; recalibrated probabilities "
            "move "
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


def notes(predictions: Predictions, fit: MCLLOFit) -> list[Statement]:
    """Return what a reader must know about the data and the fit before trusting the numbers."""
    p, said = predictions, list(predictions.notes)
    if p.n_clipped:
        said.append(p.zero_statement)
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
            "statistic is its supremum. To recalibrate, use a penalty."
        )
        said.append(Statement("note.separated", words, "bad", {"classes": names}))
    elif not fit.converged:
        words = (
            "The estimates are not determined by these rows (the likelihood is flat). "
            "To recalibrate, use a penalty."
        )
        said.append(Statement("note.flat", words, "bad"))
    return said


def _metrics(a: Assessment) -> list[Statement]:
    """Return accuracy, log loss and Brier score with what is expected, each ECE with its null."""
    m, expected = a.metrics, a.expected
    words = {
        "accuracy": f"Accuracy {100 * m['accuracy']:.1f} %",
        "log_loss": f"log loss {m['log_loss']:.4f}",
        "brier": f"Brier score {m['brier']:.4f}",
        "ece": f"ECE (top label) {m['ece']:.4f}",
        "classwise_ece": f"ECE (class by class) {m['classwise_ece']:.4f}",
    }
    for name, value in expected.items():
        shown = f"{100 * value:.1f} %" if name == "accuracy" else f"{value:.4f}"
        words[name] += f" (expected: {shown})"
    for name in words.keys() & a.null_distributions.keys():
        null = a.null_distributions[name]
        words[name] += (
            f"; calibrated predictions like these show {null.low:.4f} to {null.high:.4f}, "
            f"p {p_words(null.pvalue)}"
        )
    return [
        Statement(
            f"metric.{name}", text, numbers={"value": m[name], "expected": expected.get(name)}
        )
        for name, text in words.items()
    ]
