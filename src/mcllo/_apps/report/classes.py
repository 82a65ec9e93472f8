"""What is said of single classes: which are miscalibrated, and how each compares with the baseline.

===========  =======================================================================================
order        miscalibrated classes first, then those one of whom may be it, then by calibration
             error: the same in every table and picture of classes
attribution  the miscalibrated classes, with intervals that hold for all of them together
shares       how often each class was predicted and came true, tested after Holm; no attribution
map          delta and gamma against the baseline, tested after Holm; none either: a fault of the
             baseline shows in every row
===========  =======================================================================================

The column "90 : 10 becomes" says what an estimate does: where class and baseline are predicted 90
to 10, the odds 9 become ``delta 9^gamma``. Dependent rows have no tests and no z.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

from ..._assessment.assessment import Assessment
from ..._assessment.sentences import allows_class_attribution
from ..._assessment.verdict import Verdict
from ..._diagnostics.attribution import ClassAttribution
from ..._diagnostics.left_out import MiscalibratedClass
from ..._inference.calibration_test import needs_robust_covariance
from ..._utils.formatting import ellipsis, format_interval, format_number
from ..._utils.statements import Statement, select_statements
from ...plot._reliability_diagram import columns_worst_first
from .details_section import (
    METHOD_TEXTS,
    mark_cell_if_off,
    pvalue_computation_text,
    why_detail_is_omitted,
)
from .tables import number_cell, or_none, p_cell
from .views import Column, Part, TableCell, TableView, format_weight, name_cell, percent

MISCALIBRATION_TEXTS = {
    "low": "predicted too rarely",
    "high": "predicted too often",
    "overconfident": "overconfident",
    "underconfident": "underconfident",
    "wrong_way": "upside down",
}


NOT_ASKED_REASON = "a comparison does not ask for it; assess these rows"
"""Why the report of a comparison has no details of the judged rows."""


def attribute_miscalibration(a: Assessment, judged: Verdict) -> ClassAttribution | None:
    """Return which classes are miscalibrated, after a rejection; None where that is not asked."""
    return a.miscalibrated_classes if allows_class_attribution(judged) else None


def class_order(
    a: Assessment, miscalibrated_classes: ClassAttribution | None
) -> tuple[Hashable, ...]:
    """Return the classes in the order of every table and picture."""
    first: list[Hashable] = []
    if miscalibrated_classes is not None:
        others = (label for some in miscalibrated_classes.one_of for label in some)
        first = list(dict.fromkeys((*miscalibrated_classes.labels, *others)))
    return tuple(
        a.predictions.classes[j] for j in columns_worst_first(a.predictions, first)
    )


def attribution_part(
    a: Assessment,
    judged: Verdict,
    miscalibrated_classes: ClassAttribution | None,
    said: list[Statement],
) -> Part:
    """Return which classes are miscalibrated and how, or why none can be named."""
    if not judged.rejected:
        why = (
            "these rows cannot tell"
            if judged.kind == "inconclusive"
            else "nothing was found"
        )
        return Part(f"No class is named, because {why}.")
    if not judged.main_rejects:
        return Part(
            "No class is named: what is wrong is no shift or slope of single classes."
        )
    if a.details.skipped.get("miscalibrated_classes") == NOT_ASKED_REASON:
        return Part(
            "The predictions as they are, class by class. The report of an assessment of these "
            "rows also says which classes are miscalibrated: see below."
        )
    if miscalibrated_classes is None:
        return Part(
            why_detail_is_omitted(
                a, "Naming single classes is", "miscalibrated_classes"
            )
        )
    whole = " ".join(
        s.text
        for s in select_statements(said, "attribution")
        if s.kind != "attribution"
    )
    if miscalibrated_classes.mixture is not None or not miscalibrated_classes.details:
        return Part(whole)
    lead = (
        "Named are the classes without which all others agree with the labels, among themselves "
        "and whatever the baseline."
    )
    return Part(f"{lead} {whole}".strip(), _attribution_table(miscalibrated_classes))


def _attribution_table(miscalibrated_classes: ClassAttribution) -> TableView:
    """Return how each named class is wrong."""
    rows = []
    for c in miscalibrated_classes.details:
        words = [
            MISCALIBRATION_TEXTS[kind] for kind in (c.share_kind, c.slope_kind) if kind
        ]
        rows.append(
            (
                name_cell(c.label),
                TableCell(", ".join(words) or "not clear"),
                TableCell(percent(c.predicted), c.predicted),
                TableCell(percent(c.observed), c.observed),
                TableCell(f"{100 * c.low:.1f} to {100 * c.high:.1f}", c.low),
                *_slope_cells(c),
            )
        )
    sure = f"{100 * miscalibrated_classes.level:g} %"
    return TableView(
        "miscalibrated_classes",
        "What is wrong with each, the largest first. Share: of all rows. Slope: of its log odds "
        "against all classes that are not named; below 1 it is overconfident, above 1 "
        "underconfident. "
        f"The intervals hold for all named classes together ({sure}).",
        (
            Column("Class", "name"),
            Column("What is wrong", "words"),
            Column("Predicted share"),
            Column("Observed share"),
            Column("Interval"),
            Column("Slope", help="1 would be right"),
            Column("Interval"),
        ),
        tuple(rows),
    )


def _slope_cells(
    miscalibrated_class: MiscalibratedClass,
) -> tuple[TableCell, TableCell]:
    if math.isnan(miscalibrated_class.gamma):
        return TableCell("-"), TableCell("-")
    low, high = miscalibrated_class.gamma_interval
    span = TableCell(f"{format_number(low)} to {format_number(high)}", low)
    return number_cell(miscalibrated_class.gamma), mark_cell_if_off(
        span, bool(miscalibrated_class.slope_kind)
    )


def shares_table(
    a: Assessment, alpha: float = 0.05, order: tuple[Hashable, ...] = ()
) -> TableView:
    """Return rows of each class and its shares, tested where that is possible."""
    classes = a.predictions.classes
    counts = a.predictions.class_weight
    table = a.in_the_large
    tested = not needs_robust_covariance(a.predictions)
    caption = (
        "How often each class was predicted on average, and how often it came true; "
    )
    heads = [
        Column("Class", "name"),
        Column("Rows" if a.predictions.sample_weight is None else "Weight"),
        Column("Predicted share"),
        Column("Observed share"),
    ]
    if tested:
        heads += [Column("z"), Column("Share: p", help="After Holm, over the classes")]
        caption += (
            "z is the difference in standard errors. P-values are adjusted for the number of "
            "classes (Holm); marked: more than chance. A mark names no class: one that is off "
            "moves the shares of others."
        )
    else:
        caption += "the rows depend or are weighted, so that no single class is tested."
    rows = []
    for j in (classes.index(label) for label in order or classes):
        row = [
            name_cell(classes[j]),
            TableCell(format_weight(counts[j]), float(counts[j])),
        ]
        row += [
            TableCell(percent(table[k][j]), table[k][j])
            for k in ("predicted", "observed")
        ]
        if tested:
            z = table["z"][j]
            p = table["adjusted"][j]
            word = "-" if math.isnan(z) else f"{z:+.1f}".replace("-0.0", "+0.0")
            row += [
                TableCell(word, or_none(z)),
                mark_cell_if_off(p_cell(p), p <= alpha),
            ]
        rows.append(tuple(row))
    return TableView("shares", caption, tuple(heads), tuple(rows))


def map_part(a: Assessment, judged: Verdict, order: tuple[Hashable, ...] = ()) -> Part:
    """Return what the recalibration does to each class against the baseline."""
    alpha = judged.alpha
    base = repr(ellipsis(a.fit.baseline))
    lead = (
        f"The recalibration compares each class with the baseline, {base}; no class is named "
        "here, for a "
        "fault of the baseline shows in every row."
    )
    if judged.beyond:
        lead += (
            " More than chance is left after it: these are the nearest shifts and slopes, not a "
            "description of what is wrong."
        )
    if judged.kind == "inconclusive":
        lead += (
            " These rows cannot tell whether it is needed: read the numbers with doubt."
        )
    return Part(lead, parameters_table(a, alpha, order), (_class_tests_note(a, alpha),))


def parameters_table(
    a: Assessment, alpha: float = 0.05, order: tuple[Hashable, ...] = ()
) -> TableView:
    """Return delta and gamma of every class with intervals, and their tests if there are any."""
    fit = a.fit
    tests = a.details.class_tests
    interval = fit.confidence_interval()
    count = 2 * len(fit.compared)
    caption = (
        f"Log odds of each class against {ellipsis(fit.baseline)!r}. δ = γ = 1 changes nothing; "
        f"marked: 95 % intervals without 1; of {count} intervals about "
        f"{format_number(0.05 * count, 2)} would be marked by chance alone."
    )
    heads = [
        Column("Class", "name"),
        Column("δ (shift)", help="Above 1: more likely than predicted, at even odds"),
        Column("95 % interval"),
        Column(
            "γ (slope)",
            help="Below 1: predictions overconfident; above 1: underconfident",
        ),
        Column("95 % interval"),
        Column(
            "90 : 10 becomes", help="Class against baseline, after the recalibration"
        ),
    ]
    if tests is not None:
        heads += [
            Column("δ = γ = 1: statistic"),
            Column("p", help="After Holm, over the classes"),
        ]
    if not fit.converged:
        caption = "These rows do not determine the estimates, so none are shown."
    test_of_class = {}
    if tests is not None:
        test_of_class = {row["class"]: row for row in tests.table.rows()}
    rows = []
    for label in order or fit.classes:
        if label == fit.baseline:
            continue
        j = fit.compared.index(label)
        cells = [TableCell("-")] * 5
        if fit.converged:
            cells = [
                number_cell(fit.delta[j]),
                _interval_cell(*interval.delta[j]),
                number_cell(fit.gamma[j]),
                _interval_cell(*interval.gamma[j]),
                _ninety_percent_after_recalibration(
                    float(fit.tau[j] + fit.gamma[j] * math.log(9.0))
                ),
            ]
        if tests is not None:
            row = test_of_class[label]
            pvalue = p_cell(row["adjusted"], row["method"])
            how = METHOD_TEXTS.get(row["method"], "")
            test = mark_cell_if_off(pvalue, row["adjusted"] <= alpha, how)
            cells = [*cells, number_cell(row["statistic"]), test]
        rows.append((name_cell(label), *cells))
    return TableView("parameters", caption, tuple(heads), tuple(rows))


def _ninety_percent_after_recalibration(log_odds: float) -> TableCell:
    """Return 90 to 10 after the recalibration, in words that never say never."""
    if math.isnan(log_odds):
        return TableCell("-")
    share = 100.0 / (1.0 + math.exp(-min(max(log_odds, -700.0), 700.0)))
    if not 0.05 < share < 99.95:
        return TableCell("> 99.9 : < 0.1" if share > 50.0 else "< 0.1 : > 99.9", share)
    digits = 0 if 0.95 < share < 99.05 else 1
    return TableCell(f"{share:.{digits}f} : {100.0 - share:.{digits}f}", share)


def _interval_cell(low: float, high: float) -> TableCell:
    cell = TableCell(format_interval(low, high), or_none(float(low)))
    off = high < 1.0 or low > 1.0
    return replace(cell, mark="off", note="interval excludes 1") if off else cell


def _class_tests_note(a: Assessment, alpha: float) -> str:
    """Return what the tests of single classes are, or why there are none."""
    tests = a.details.class_tests
    if tests is None:
        return why_detail_is_omitted(a, "Tests of single classes are", "class_tests")
    return (
        "The test of a class compares the whole fit with one that leaves this class as predicted "
        f"against {ellipsis(tests.baseline)!r}; p-values: "
        f"{pvalue_computation_text(tests.method, tests.why)}, "
        "adjusted for the number of classes (Holm): any false mark at all has probability "
        f"{100 * alpha:g} % at most."
    )
