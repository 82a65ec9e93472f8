"""`Assessment` or `Comparison` -> `Summary`: all computation of a report; `render` does none.

A comparison is summarized as an assessment of its judged rows as they were predicted, with the
repairs beside it. Its verdict is the comparison's own test of those rows, so that the first screen
and the table agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .._assessment.assessment import Assessment, assess_predictions
from .._assessment.details import PARTS, Details
from .._ground.quiet import quiet
from .._ground.statements import Statement, pick
from .._inference.budget import N_RESAMPLES_COMPARE
from .._inference.likelihood_tests import CalibrationTest, choose_method
from .._version import __version__
from .._workflows.comparison import Comparison
from ..exceptions import InputError
from .details import (
    baselines_part,
    class_names,
    classes_note,
    kind_headline,
    ladder_part,
    posterior_part,
    robust_part,
    shares_table,
    worst_classes,
    zeros_part,
)
from .method import method_facts, references
from .repairs import repair_steps, repairs_of
from .tables import classes_lead, departure_sentences, null_lead, null_table, parameters_table
from .verdict import (
    Command,
    Sources,
    alerts_and_notes,
    data_facts,
    headline_facts,
    next_steps,
    reproduce_facts,
    sources,
    verdict_of,
)
from .views import DetailsView, Summary


@dataclass(frozen=True, eq=False, repr=False)
class NotAsked(Details):
    """Details of the judged rows of a comparison: none is computed."""

    @property
    def skipped(self) -> dict[str, str]:
        """Everything, and why."""
        why = "a comparison does not ask for it; assess these rows"
        return dict.fromkeys((name for name in PARTS if name != "robust"), why)


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
) -> Summary:
    """Return everything a report says.

    Parameters
    ----------
    result : Assessment or Comparison
        What was found.
    assessment : Assessment, optional
        What `assessment_of` gave for `result`, so as not to compute it again.
    title, command, source, alpha
        As in `mcllo.report`.
    """
    a = assessment_of(result) if assessment is None else assessment
    comparison = result if isinstance(result, Comparison) else None
    kind: Literal["assessment", "comparison"] = "comparison" if comparison else "assessment"
    if title is None:
        title = "Repairs compared" if comparison else "Calibration report"
        files = [path.rsplit("/", 1)[-1] for path in sources(source)]
        title += f": {', '.join(files)}" if files else ""
    said = a.statements(alpha)
    verdict = verdict_of(a, said)
    alerts, notes = alerts_and_notes(a, said)
    method = method_facts(a, comparison)
    return Summary(
        kind=kind,
        title=title,
        lead=f"{pick(said, 'heading')[0]}.",
        verdict=verdict,
        alerts=alerts,
        notes=notes,
        steps=next_steps(a, verdict.status)
        if comparison is None or verdict.status == "unknown"
        else repair_steps(comparison),
        facts=headline_facts(a),
        classes_lead=classes_lead(a, alpha),
        departures=departure_sentences(a.fit) if a.test.rejects(alpha) else (),
        parameters=parameters_table(a.fit),
        null_lead=null_lead(a),
        null_table=null_table(a),
        shares=shares_table(a, alpha),
        details=None if comparison else details_of(a, said, alpha),
        repairs=None if comparison is None else repairs_of(comparison, alpha),
        data=data_facts(a, comparison),
        method=method,
        references=references(method),
        reproduce=reproduce_facts(a, comparison, command, source),
        version=__version__,
    )


def details_of(a: Assessment, said: list[Statement], alpha: float) -> DetailsView:
    """Return what lies behind the verdict; computes the details."""
    return DetailsView(
        headline=kind_headline(said),
        worst=worst_classes(a, alpha),
        ladder=ladder_part(a, alpha),
        classes=class_names(a, alpha),
        classes_note=classes_note(a, alpha),
        baselines=baselines_part(a),
        zeros=zeros_part(a, alpha),
        posterior=posterior_part(a),
        robust=robust_part(a),
    )
