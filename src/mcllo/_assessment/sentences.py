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
value, value.*              what acting on the predictions costs, where costs were given
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
from .._inference.effect_size_text import percentage_points
from .._inference.likelihood_tests import STATISTIC_NAMES as MAIN
from .._inference.omnibus import TEST_NAMES as OMNIBUS
from .._utils.formatting import ellipsis, format_count, format_number, pvalue_text
from .._utils.results import none_for_nonfinite
from .._utils.statements import Level, Statement, select_statements
from .._validation.predictions import Predictions
from ..exceptions import PYTHON, Names
from .verdict import Kind, Verdict

if TYPE_CHECKING:
    from .assessment import Assessment


def assessment_statements(
    a: Assessment, verdict: Verdict, names: Names = PYTHON
) -> list[Statement]:
    """Return everything that an assessment says after a verdict, in the order of the text."""
    d = a.details
    alpha = verdict.alpha
    fits = not verdict.map_rejected
    asks_for_classes = allows_class_attribution(verdict)
    classes = d.miscalibrated_classes if asks_for_classes else None
    said = [_data_size_statement(a), *_verdict_statements(a, verdict)]
    said += d.data_checks
    said += _effect_size_statements(a, verdict)
    if a.decision_value is not None:
        said += a.decision_value.statements(verdict.cost_tolerance)
    if classes is not None:
        said += classes.statements(fits=fits)
    is_other_level = alpha != d.alpha and "miscalibrated_classes" not in d.skipped
    if asks_for_classes and is_other_level:
        said.append(_attribution_level_statement(d.alpha, alpha))
    if d.subgroups is not None:
        said += d.subgroups.statements(alpha, verdict.tolerance, verdict)
    said.append(_remedy_statement(a, verdict))
    said.append(Statement("test", str(a.test), numbers=a.test.to_dict()))
    said += a.remarks
    for test in a.omnibus_tests.values():
        said.append(Statement("omnibus", str(test), numbers=test.to_dict()))
    fit_test = a.goodness_of_fit
    said.append(Statement("map_fit", str(fit_test), numbers=fit_test.to_dict()))
    if asks_for_classes and d.nested_models is not None:
        if classes is not None and classes.mixture is not None:
            said.append(Statement("kind.outside", OTHER_SHAPE_CAVEAT, "doubt"))
        said += d.nested_models.statements()
    said += _sensitivity_statements(a, alpha)
    if d.robust is not None:
        said += d.robust.statements(alpha)
    said += data_and_fit_notes(a.predictions, a.fit)
    said += _metric_statements(a)
    return [statement.with_names(names) for statement in said]


def _data_size_statement(a: Assessment) -> Statement:
    """Return how much was read."""
    p = a.predictions
    noun = "prediction" if p.n_samples == 1 else "predictions"
    words = (
        f"Calibration of {format_count(p.n_samples)} {noun} of {p.n_classes} classes"
    )
    if p.sample_weight is not None:
        words += f", {p.weight_kind} weights"
    if p.groups is not None:
        words += f", {format_count(int(p.groups.max()) + 1)} groups"
    return Statement("heading", words)


def _attribution_level_statement(attribution_alpha: float, alpha: float) -> Statement:
    """Return that classes were looked for at another level than that of the text."""
    words = (
        f"Miscalibrated classes were looked for at level {attribution_alpha:g}; assess(..., "
        f"alpha={alpha:g}) looks for them at this one."
    )
    return Statement("attribution.level", words, "doubt", {"alpha": attribution_alpha})


def allows_class_attribution(verdict: Verdict) -> bool:
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


def _verdict_statements(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return the answer, and what it does and does not say."""
    headline, level = HEADLINES[verdict.kind]
    said = [
        Statement(
            "verdict", f"{headline}.", level, none_for_nonfinite(verdict.to_dict())
        ),
        Statement("meaning", verdict_meaning(a, verdict), level),
    ]
    if verdict.omnibus_alone:
        said.append(_omnibus_only_statement(a, verdict))
    elif verdict.rejected and verdict.map_rejected:
        words = (
            "What is wrong is not, or not only, a shift or slope of the log odds: more than chance "
            f"is left after the best map of them (p {pvalue_text(verdict.map_pvalue)})."
        )
        said.append(
            Statement("other.shape", words, "bad", {"pvalue": verdict.map_pvalue})
        )
    return said


def _omnibus_only_statement(a: Assessment, verdict: Verdict) -> Statement:
    """Return what omnibus tests find that the main test does not."""
    if verdict.kind == "miscalibrated":
        found = [
            f"{OMNIBUS[kind]}, p {pvalue_text(a.omnibus_tests[kind].pvalue)}"
            for kind in verdict.other
        ]
        words = (
            f"It is an omnibus test that rejects ({' and '.join(found)}), the "
            f"{MAIN[a.test.kind]} test does not ({a.test.p_text}): what is wrong is no shift or "
            "slope of the log odds. Look at the reliability diagrams."
        )
    else:
        names = " and ".join(OMNIBUS[kind] for kind in verdict.other)
        words = (
            f"But an omnibus test rejects ({names}): something is wrong that is no shift or slope "
            "of the log odds. Look at the reliability diagrams."
        )
    return Statement("other", words, "bad", {"kinds": verdict.other})


FAMILY = "by shifts and slopes of the log odds"
"""Which errors the main test looks for and the sizes of the map measure."""


def verdict_meaning(a: Assessment, verdict: Verdict, error_family: str = FAMILY) -> str:
    """Return what the verdict says and what not; `error_family` names the errors looked for."""
    tolerated = f"{100 * verdict.tolerance:g} percentage points"
    if verdict.tolerance == 0.01:
        tolerated = "one percentage point"
    if verdict.kind == "inconclusive":
        return verdict.reason
    if verdict.kind == "miscalibrated":
        return (
            "Labels do not follow these probabilities: do not read them as frequencies."
        )
    if verdict.kind == "negligible" and verdict.is_cheap:
        most = format_number(max(verdict.cost_high, 0.0))
        return (
            "Labels do not quite follow these probabilities, but for decisions of these costs it "
            f"hardly matters: recalibration would save {most} a case at most, within the tolerance "
            f"of {verdict.cost_tolerance:g}."
        )
    if verdict.kind == "negligible":
        return (
            f"Labels do not quite follow these probabilities, but the average error {error_family} "
            f"is below {tolerated}, and no other error was found: with so many rows the test sees "
            "what hardly matters."
        )
    if verdict.equivalent:
        return (
            f"Equivalent to calibrated within {tolerated}: larger errors {error_family} are "
            "excluded, and no other error was found."
        )
    if verdict.beyond or not a.effect_size.high < 1.0:
        return "That is not proof of calibration: these rows exclude no size of error."
    return f"That is not proof of calibration: {state_excluded_error(a.effect_size, error_family)}"


def state_excluded_error(effect_size: EffectSize, error_family: str = FAMILY) -> str:
    """Return how large an error these rows exclude, and of which kind."""
    sure = f"{50 * (1 + effect_size.confidence):g} % confidence"
    points = percentage_points(effect_size.high)
    bound = f"an average error {error_family} above {points} percentage points"
    return f"these rows exclude {bound} ({sure}), no smaller one."


def _effect_size_statements(a: Assessment, verdict: Verdict) -> list[Statement]:
    """Return how large it is, where that is known and not said yet."""
    sizes = a.effect_size.statements(
        fits=not verdict.map_rejected, bounded=not verdict.beyond
    )
    if verdict.kind == "inconclusive":
        if a.details.robust is not None:
            return []
        return [statement for statement in sizes if statement.kind == "effect_size"]
    gain = a.recalibration_gain.statement(a.predictions.n_samples)
    if verdict.kind == "not_detected" and a.effect_size.low == 0.0:
        return [
            gain,
            *select_statements(sizes, "effect_size.level", "effect_size.map_level"),
        ]
    return [gain, *sizes]


def _remedy_statement(a: Assessment, verdict: Verdict) -> Statement:
    """Return what to do about the verdict."""
    if a.details.data_checks:
        words = "Settle first what looks like a mistake in the rows, and ask again."
        return Statement("remedy", words)
    words = REMEDIES[verdict.kind]
    if verdict.rejected and not a.fit.converged:
        words = (
            "Fit a calibrator with a penalty on these rows, and judge it on other rows."
        )
    elif verdict.rejected and verdict.beyond:
        words = (
            "Compare calibrators on these rows, also some that assume no shape (histogram, "
            "isotonic), each judged on rows that it was not fitted to."
        )
    if a.subgroups is not None:
        of_subgroups = a.subgroups.remedy(verdict.alpha, verdict.tolerance)
        if of_subgroups:
            words = f"{words} {of_subgroups}" if verdict.rejected else of_subgroups
    return Statement("remedy", words)


REMEDIES: dict[Kind, str] = {
    "miscalibrated": "Fit a calibrator on these rows, and judge it on other rows.",
    "negligible": (
        "A recalibration would change little; leave them, or fit a calibrator on these rows."
    ),
    "not_detected": "Nothing to recalibrate on this evidence.",
    "inconclusive": "Collect more rows, or more groups, before trusting or recalibrating them.",
}
"""What to do about each verdict, where nothing else is known."""


def _sensitivity_statements(a: Assessment, alpha: float) -> list[Statement]:
    """Return what the answer depends on: the baseline, the clipping of zeros."""
    said = []
    baselines = a.details.baselines
    if baselines is not None:
        low = min(baselines.table["statistic"])
        high = max(baselines.table["statistic"])
        smallest_pvalue = 1.0 / (baselines.n_resamples + 1)
        is_bound = baselines.method == "exact" and baselines.pvalue <= smallest_pvalue
        words = (
            f"Statistic {format_number(low)} to {format_number(high)} with each class as baseline, "
            f"p {pvalue_text(baselines.pvalue, bound=is_bound)} over all of them; recalibrated "
            f"probabilities move by {format_number(baselines.mean_range)} on average, "
            f"{format_number(baselines.largest_range)} at most."
        )
        numbers = {"pvalue": baselines.pvalue, "low": low, "high": high}
        said.append(Statement("baseline", words, numbers=numbers))
    if a.details.zeros is not None:
        said += a.details.zeros.statements(alpha)
    return said


def _join_first_labels(labels: Sequence[object], max_labels: int = 6) -> str:
    """Return the first names, and how many more there are."""
    names = ", ".join(ellipsis(label) for label in labels[:max_labels])
    n_left_out = len(labels) - max_labels
    return f"{names} and {n_left_out} more" if n_left_out > 0 else names


def data_and_fit_notes(predictions: Predictions, fit: MCLLOFit) -> list[Statement]:
    """Return what a reader must know about the data and the fit before trusting the numbers."""
    p = predictions
    said = list(p.notes)
    if p.n_clipped:
        said.append(p.zero_statement)
    if (
        p.max_row_error > 1e-6
    ):  # beyond the tolerance at which rows pass as summing to 1
        words = (
            f"{format_count(p.n_renormalized)} rows were divided by their sum "
            f"(off by up to {format_number(p.max_row_error, 2)})."
        )
        said.append(Statement("note.sums", words, numbers={"n_rows": p.n_renormalized}))
    if p.absent:
        words = f"No row is labelled {_join_first_labels(p.absent)}."
        if p.classes[-1] in p.absent and p.baseline != p.classes[-1]:
            # The default is the last class that occurs: against one without labels no estimate
            # exists, and a penalised map is worse (six classes, 200 rows: log loss by 0.017).
            words = (
                f"{words[:-1]}; the last class is among them, so the baseline is "
                f"{p.baseline}."
            )
        numbers = {"classes": p.absent, "baseline": p.baseline}
        said.append(Statement("note.absent", words, numbers=numbers))
    if fit.separated:
        classes = fit.separated_classes
        is_some = 0 < len(classes) < len(fit.classes)
        where = f" in {_join_first_labels(classes)}" if is_some else ""
        words = (
            f"The maximum likelihood estimate does not exist (labels are separated{where}); the "
            "statistic is its supremum. To recalibrate, use a penalty."
        )
        said.append(Statement("note.separated", words, "bad", {"classes": classes}))
    elif not fit.converged:
        words = (
            "The estimates are not determined by these rows (the likelihood is flat). "
            "To recalibrate, use a penalty."
        )
        said.append(Statement("note.flat", words, "bad"))
    return said


def _metric_statements(a: Assessment) -> list[Statement]:
    """Return accuracy, log loss and Brier score with what is expected, each ECE with its null."""
    values = a.metrics
    words = {
        "accuracy": f"Accuracy {100 * values['accuracy']:.1f} %",
        "log_loss": f"log loss {values['log_loss']:.4f}",
        "brier": f"Brier score {values['brier']:.4f}",
        "ece": f"ECE (top label) {values['ece']:.4f}",
        "classwise_ece": f"ECE (class by class) {values['classwise_ece']:.4f}",
    }
    for name, expected in a.expected.items():
        shown = f"{100 * expected:.1f} %" if name == "accuracy" else f"{expected:.4f}"
        words[name] += f" (expected: {shown})"
    for name, null in a.null_distributions.items():
        if name in words:
            words[name] += (
                f"; calibrated predictions like these show {null.low:.4f} to {null.high:.4f}, "
                f"p {pvalue_text(null.pvalue)}"
            )
    said = []
    for name, text in words.items():
        numbers = {"value": values[name], "expected": a.expected.get(name)}
        said.append(Statement(f"metric.{name}", text, numbers=numbers))
    return said
