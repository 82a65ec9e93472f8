"""`Assessment` or `Comparison` -> `Summary`: all computation of a report; `render` does none.

A comparison is summarized as an assessment of its judged rows as they were predicted, with the
repairs beside it. Its verdict is the comparison's own test of those rows, so that the first screen
and the table agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from .._assessment.assessment import Assessment, assess_predictions
from .._assessment.details import PARTS, Details
from .._assessment.verdict import TOLERANCE
from .._ground.statements import pick, quiet
from .._inference.budget import N_RESAMPLES_COMPARE
from .._inference.likelihood_tests import CalibrationTest, choose_method
from .._version import __version__
from .._workflows.comparison import Comparison
from ..exceptions import InputError
from . import details, tables
from . import verdict as first
from .method import method_facts, references
from .repairs import repair_steps, repairs_of
from .subgroups import subgroup_steps, subgroups_part
from .verdict import Command, Sources
from .views import DetailsView, Summary

CLASSES_LEAD = (
    "Each class is compared with the baseline class here, so a fault of the baseline shows in "
    "every row. Whose fault it is stands above; this table is what the repair does."
)


@dataclass(frozen=True, eq=False, repr=False)
class NotAsked(Details):
    """Details of the judged rows of a comparison: none is computed."""

    @property
    def skipped(self) -> dict[str, str]:
        """Everything, and why."""
        why = "a comparison does not ask for it; assess these rows"
        return dict.fromkeys((name for name in PARTS if name != "robust"), why)

    @property
    def subgroups(self) -> None:
        """None is asked about."""


def assessment_of(result: Assessment | Comparison) -> Assessment:
    """Return the assessment to report: of a comparison, that of the judged rows as predicted."""
    if type(result) is Assessment:
        return result
    if not isinstance(result, Comparison):
        raise InputError(
            f"report must get an Assessment or a Comparison; got {type(result).__name__}. "
            "Call assess(probs, y) or compare(train, holdout) first."
        )
    with quiet():  # a separated fit is an alert of the report
        a = assess_predictions(result.holdout, method="chi2", seed=result.seed)
    row = result["uncalibrated"]
    why = choose_method(result.holdout, row.df, "lr", N_RESAMPLES_COMPARE)[1]
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
    d = a.details
    return replace(a, test=test, details=NotAsked(d.fitted, d.n_resamples, d.seed))


def summarize(
    result: Assessment | Comparison,
    assessment: Assessment | None = None,
    *,
    title: str | None = None,
    command: Command = None,
    source: Sources = None,
    alpha: float = 0.05,
    tolerance: float = TOLERANCE,
    date: str | None = None,
) -> Summary:
    """Return everything a report says.

    Parameters
    ----------
    result : Assessment or Comparison
        What was found.
    assessment : Assessment, optional
        What `assessment_of` gave for `result`, so as not to compute it again.
    title, command, source, alpha, tolerance, date
        As in `mcllo.report`.
    """
    a = assessment_of(result) if assessment is None else assessment
    comparison = result if isinstance(result, Comparison) else None
    kind: Literal["assessment", "comparison"] = "comparison" if comparison else "assessment"
    if title is None:
        title = "Repairs compared" if comparison else "Calibration report"
        files = [path.rsplit("/", 1)[-1] for path in first.sources(source)]
        title += f": {', '.join(files)}" if files else ""
    said = a.statements(alpha, tolerance=tolerance)
    verdict = first.verdict_of(a, said)
    alerts, notes = first.alerts_and_notes(a, said)
    shell = command is not None
    method, steps, behind = method_facts(a, comparison), first.next_steps(a, verdict, shell), None
    if comparison is not None and verdict.kind != "cannot_tell":
        steps = repair_steps(comparison)
    steps = subgroup_steps(a, verdict, steps, alpha, tolerance)
    if comparison is None:
        behind = DetailsView(
            ladder=details.ladder_part(a, alpha),
            classes=details.class_names(a, alpha),
            classes_note=details.classes_note(a, alpha),
            baselines=details.baselines_part(a),
            zeros=details.zeros_part(a, alpha),
            posterior=details.posterior_part(a),
            robust=details.robust_part(a),
            subgroups=subgroups_part(a, said, alpha, tolerance),
        )
    return Summary(
        kind=kind,
        title=title,
        lead=f"{pick(said, 'heading')[0]}.",
        verdict=verdict,
        levels=first.levels_of(a),
        wrong=tuple(culprit.text for culprit in pick(said, "culprit")),
        alerts=alerts,
        notes=notes,
        steps=steps,
        facts=first.headline_facts(a),
        classes_lead=CLASSES_LEAD,
        parameters=tables.parameters_table(a.fit),
        null_lead=tables.null_lead(a),
        null_table=tables.null_table(a),
        shares=details.shares_table(a, alpha),
        details=behind,
        repairs=None if comparison is None else repairs_of(comparison, alpha),
        data=first.data_facts(a, comparison),
        method=method,
        references=references(method),
        reproduce=first.reproduce_facts(a, comparison, command, source),
        version=__version__,
        date=f"{datetime.now().astimezone():%-d %B %Y}" if date is None else date,
    )
