"""What decisions cost in a report: the statements, and a row for each way to act."""

from __future__ import annotations

from ..._assessment.assessment import Assessment
from ..._utils.formatting import ellipsis, format_count, format_interval, format_number
from ..._utils.statements import Statement, select_statements
from .views import Column, Part, TableCell, TableView


def decisions_part(a: Assessment, said: list[Statement]) -> Part | None:
    """Return what acting on the predictions costs, where costs were given."""
    value = a.decision_value
    if value is None:
        return None
    rows = []
    for row in value.table:
        name = row["acting_on"]
        if name == "best constant action":
            name = f"always {ellipsis(value.constant_action)}"
        interval = format_interval(row["low"], row["high"])
        rows.append(
            (
                TableCell(name),
                TableCell(format_number(row["cost"]), row["cost"]),
                TableCell(interval, row["low"]),
            )
        )
    n_actions = format_count(len(value.costs.actions))
    table = TableView(
        "decisions",
        f"Mean realised cost of a case by the way to act, {n_actions} actions, intervals of "
        f"{100.0 * value.confidence:g} %.",
        (Column("Acting on", "words"), Column("Cost"), Column("Interval")),
        tuple(rows),
    )
    lead, *others = (statement.text for statement in select_statements(said, "value"))
    return Part(lead, table, tuple(others), "What decisions cost")
