"""Subgroups in a report: what they come to, and a row for each, the worst first."""

from __future__ import annotations

from ..._assessment.assessment import Assessment
from ..._assessment.subgroup_results import WORDS, mean_change_text
from ..._assessment.verdict import Verdict
from ..._diagnostics.subgroups import Subgroup
from ..._utils.formatting import ellipsis, format_count, format_interval, format_number
from ..._utils.statements import Statement, select_statements
from .tables import or_none, p_cell
from .views import Column, NextStep, Part, TableCell, TableView, name_cell, percent


def subgroups_part(
    a: Assessment, said: list[Statement], alpha: float, tolerance: float
) -> Part | None:
    """Return the subgroups, where rows are divided."""
    divided = a.subgroups
    if divided is None:
        return None
    n_groups = len(divided.groups)
    verdicts = divided.decide(alpha, tolerance)
    rows = []
    for k in divided.ranked(alpha, tolerance):
        group = divided.groups[k]
        verdict = verdicts[k]
        word = WORDS[verdict.kind]
        if verdict.kind == "not_detected" and verdict.equivalent:
            word = "equivalent to calibrated"
        shown = TableCell(word)
        if verdict.rejected:
            shown = TableCell(word, mark="off", note="miscalibrated")
        rows.append(
            (
                name_cell(group.name),
                shown,
                *_subgroup_row_cells(group, verdict.rejected),
            )
        )
    table = TableView(
        "subgroups",
        f"Each subgroup by itself, the worst first. ◆ miscalibrated at level {alpha:g}, allowing "
        f"for {n_groups} subgroups (Holm). Off by: mean change in percentage points; intervals "
        "hold for all subgroups at once (95 %).",
        (
            Column(ellipsis(divided.by), "name"),
            Column("Verdict", "words"),
            Column("Off by (points)"),
            Column("Rows"),
            Column("Right", help="How often the most probable class came true"),
            Column("Expected", help="Its mean probability"),
            Column("Slope", help="Below 1: overconfident; above 1: underconfident"),
            Column("Interval"),
            Column("p", help="After Holm, over the subgroups"),
        ),
        tuple(rows),
    )
    lead, test = (statement.text for statement in select_statements(said, "by")[:2])
    return Part(
        lead,
        table,
        (f"{test}{_pvalue_computation_reason(a)}",),
        f"By {ellipsis(divided.by)}: are all alike?",
    )


def _subgroup_row_cells(group: Subgroup, found: bool) -> tuple[TableCell, ...]:
    size = group.effect_size
    slope = group.slope
    return (
        TableCell(mean_change_text(size, found), or_none(size.mean_change)),
        TableCell(format_count(group.n_samples), float(group.n_samples)),
        TableCell(percent(group.accuracy), group.accuracy),
        TableCell(percent(group.expected_accuracy), group.expected_accuracy),
        TableCell(format_number(slope.value), or_none(slope.value)),
        TableCell(format_interval(slope.low, slope.high), or_none(slope.low)),
        p_cell(group.adjusted, group.test.method),
    )


def _pvalue_computation_reason(a: Assessment) -> str:
    """Return why the p-value of one map for all was computed as it was."""
    assert a.subgroups is not None
    test = a.subgroups.test
    if test.why is None or test.why.is_chosen_by_user:
        return ""
    simulated = test.method == "bootstrap"
    how = (
        "Simulated because chi-square cannot be trusted here"
        if simulated
        else "Not simulated"
    )
    return f" {how} ({test.reason})."


def subgroup_steps(
    a: Assessment,
    verdict: Verdict,
    steps: tuple[NextStep, ...],
    alpha: float,
    tolerance: float,
) -> tuple[NextStep, ...]:
    """Return what to do next, with what the subgroups ask for."""
    if a.subgroups is None or a.details.data_checks:
        return steps
    remedy = a.subgroups.remedy(alpha, tolerance)
    if not remedy:
        return steps
    return (
        (NextStep(remedy),)
        if verdict.kind == "not_detected"
        else (*steps, NextStep(remedy))
    )
