"""`Assessment` or `Comparison` -> `Summary`: all computation of a report; `render` does none.

A comparison is summarized as an assessment of its judged rows as they were predicted, with the
recalibrations beside it. Its verdict is the comparison's own test of those rows, so that the first
screen and the table agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from ..._assessment.assessment import Assessment, assess_predictions
from ..._assessment.verdict import TOLERANCE
from ..._comparison.comparison import Comparison
from ..._inference.budget import N_RESAMPLES_REPEATED
from ..._inference.likelihood_tests import CalibrationTest, choose_method
from ..._utils.statements import select_statements, suppress_warnings
from ..._version import __version__
from ...exceptions import PYTHON, InputError, Names
from . import classes, details_section, plain, tables
from .decisions_section import decisions_part
from .facts import Command, Sources, data_facts, input_names, reproduce_facts, today
from .method import method_facts, references
from .recalibration_effect import summarize_effect
from .recalibrations import summarize_comparison
from .steps import CodeLanguage, next_steps, recalibration_steps
from .subgroups_section import subgroup_steps, subgroups_part
from .verdict_section import build_verdict, headline_facts
from .views import DetailsView, NextStep, Summary

UNCALIBRATED_NAME = "The predictions as they are"
DETAILS_SUMMARY = (
    "Which classes are miscalibrated, the kind of miscalibration, tests of single classes, and "
    "what hangs on the "
    "baseline and on zeros are in the report of an assessment of the same rows:"
)


def assessment_to_report(
    result: Assessment | Comparison, alpha: float = 0.05
) -> Assessment:
    """Return the assessment to report at level `alpha`, with all its details.

    Of a comparison it is that of the judged rows as predicted, without them.
    """
    if type(result) is Assessment:
        return result.at_level(alpha).with_full_details()
    if not isinstance(result, Comparison):
        raise InputError(
            f"report must get an Assessment or a Comparison; got {type(result).__name__}. "
            "Call assess(probs, y) or compare(train, holdout) first."
        )
    with suppress_warnings():  # a separated fit is an alert of the report
        a = assess_predictions(
            result.holdout,
            method="chi2",
            seed=result.seed,
            alpha=alpha,
            left_out=classes.NOT_ASKED_REASON,
        )
    row = result["uncalibrated"]
    why = choose_method(result.holdout, row.df, "lr", N_RESAMPLES_REPEATED)[1]
    test = CalibrationTest(
        statistic=row.statistic,
        df=row.df,
        pvalue=row.pvalue,
        method=row.pvalue_method,
        kind="lr",
        n_resamples=0,
        sequential=False,
        seed=result.seed,
        reason=str(why),
        why=why,
    )
    return replace(a, test=test)


def summarize(
    result: Assessment | Comparison,
    assessment: Assessment | None = None,
    *,
    title: str | None = None,
    command: Command = None,
    source: Sources = None,
    alpha: float | None = None,
    tolerance: float = TOLERANCE,
    date: str | None = None,
    names: Names = PYTHON,
    reading: Mapping[str, Any] | None = None,
) -> Summary:
    """Return everything a report says.

    Parameters
    ----------
    result : Assessment or Comparison
        What was found.
    assessment : Assessment, optional
        What `assessment_to_report` gave for `result`, so as not to compute it again.
    title, command, source, alpha, tolerance, date, names, reading
        As in `mcllo.report`.
    """
    if alpha is None:
        alpha = result.alpha if isinstance(result, Assessment) else 0.05
    a = assessment_to_report(result, alpha) if assessment is None else assessment
    comparison = result if isinstance(result, Comparison) else None
    kind: Literal["assessment", "comparison"] = (
        "comparison" if comparison else "assessment"
    )
    files = input_names(source)
    if title is None:
        title = "Recalibrations compared" if comparison else "Calibration report"
        shown = ", ".join(path.rsplit("/", 1)[-1] for path in files)
        title += f": {shown}" if shown else ""
    judged, said = (
        a.decide(alpha, tolerance),
        a.statements(alpha, names, tolerance=tolerance),
    )
    miscalibrated_classes = classes.attribute_miscalibration(a, judged)
    order = classes.class_order(a, miscalibrated_classes)
    tongue = CodeLanguage(command is not None, tuple(files), names, reading or {})
    method, behind, more = method_facts(a, comparison), None, None
    if comparison is None:
        steps = next_steps(a, judged, tongue)
        behind = DetailsView(
            nested_models=details_section.nested_models_part(a, alpha),
            baselines=details_section.baselines_part(a),
            zeros=details_section.zeros_part(a, alpha),
            posterior=details_section.posterior_part(a),
            robust=details_section.robust_part(a),
            subgroups=subgroups_part(a, said, alpha, tolerance),
            decisions=decisions_part(a, said),
        )
    else:
        steps = recalibration_steps(comparison, a, judged, tongue)
        more = NextStep(
            DETAILS_SUMMARY, tongue.assess_judged(comparison.cross_validated)
        )
    steps = subgroup_steps(a, judged, steps, alpha, tolerance)
    return Summary(
        kind=kind,
        title=title,
        lead=f"{select_statements(said, 'heading')[0]}.",
        verdict=build_verdict(a, judged, said, UNCALIBRATED_NAME if comparison else ""),
        levels=plain.levels(a, judged),
        wrong=plain.miscalibrated_class_sentences(
            a, judged, miscalibrated_classes, said
        ),
        alerts=plain.alert_texts(a, select_statements(said, "data_check")),
        notes=tuple(note.text for note in select_statements(said, "note")),
        steps=steps,
        facts=headline_facts(a, judged),
        attribution=classes.attribution_part(a, judged, miscalibrated_classes, said),
        shares=classes.shares_table(a, alpha, order),
        expected=tables.expected_table(a),
        null_distributions=tables.null_distributions_part(a),
        map=classes.map_part(a, judged, order) if comparison is None else None,
        effect=None if comparison is None else summarize_effect(comparison),
        details=behind,
        more=more,
        recalibrations=None
        if comparison is None
        else summarize_comparison(comparison, judged),
        data=data_facts(a, comparison),
        method=method,
        references=references(method),
        reproduce=reproduce_facts(a, comparison, command, source),
        version=__version__,
        date=today() if date is None else date,
    )
