"""What a notebook shows of a result: the answer, how large it is, one picture. Short, no script.

=====================  ============================================================================
`Assessment`           the first screen of the report: verdict and size in plain words, the diagram
`Comparison`           the recommendation, and all methods as dots
`NestedModels`         which kind of error, and what each model explains
`Subgroups`            whether they are alike, and each as a dot
`BaselineSensitivity`  what hangs on the baseline
`MCLLOFit`             shift and slope of each class with intervals
`PowerStudy`           how often miscalibration is found
`ClassTests`, tables   a table, the first rows of long ones
anything else          what ``print`` says
=====================  ============================================================================

Words and numbers are those of the statements, the text and the report; nothing is decided here.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from ..._assessment.assessment import Assessment
from ..._assessment.subgroup_results import Subgroups
from ..._comparison.comparison import Comparison
from ..._diagnostics.baseline_sensitivity import BaselineSensitivity
from ..._diagnostics.calibration_table import CalibrationTable
from ..._diagnostics.class_tests import ClassTests
from ..._diagnostics.nested_models import NestedModels
from ..._fit.fit import MCLLOFit
from ..._fit.map import MCLLOMap
from ..._inference.consistency import IsotonicCurve
from ..._utils.formatting import (
    Table,
    ellipsis,
    format_count,
    format_number,
    has_non_numbers,
    is_pvalue_column,
)
from ..._utils.statements import Level, Statement, select_statements
from ...metrics._reliability import ReliabilityCurve
from ...metrics._smooth import SmoothCurve
from ...simulate._study import PowerStudy
from . import plain
from .figures import picture, small_diagram
from .html import render_card
from .recalibrations import recommendation_text
from .verdict_section import build_verdict, headline_facts
from .views import Card, Column, TableCell, TableView, capital, name_cell, typeset

MAX_TABLE_ROWS = 25
"""Rows of a table that a card shows."""
TONES: dict[str, Level] = {
    "miscalibrated": "bad",
    "negligible": "doubt",
    "inconclusive": "doubt",
    "not_detected": "plain",
}
"""How a reader should take each verdict."""


def render_result_card(result: Any) -> str:
    """Return a result as a piece of HTML that follows the notebook's light or dark theme."""
    return render_card(view(result))


@singledispatch
def view(result: Any) -> Card:
    """Return what a card shows."""
    return Card(type(result).__name__, text=str(result))


@view.register
def _assessment_card(a: Assessment) -> Card:
    if (
        type(a) is not Assessment
    ):  # its rows were read in parts, and are not here to be drawn
        return Card(type(a).__name__, text=str(a))
    judged = a.decide()
    said = a.statements()
    verdict = build_verdict(a, judged, said)
    doubted = judged.kind == "not_detected" and bool(verdict.buts)
    return Card(
        "Assessment",
        "doubt" if doubted else TONES[judged.kind],
        lead=f"{select_statements(said, 'heading')[0]}.",
        headline=verdict.headline,
        buts=(
            *plain.alert_texts(a, select_statements(said, "data_check"))[:1],
            *verdict.buts,
        ),
        sentences=tuple(text for text in (verdict.sentence, verdict.size) if text),
        facts=headline_facts(a, judged),
        svg=small_diagram(a),
        hint=(
            ("has the details, ", "print(...)"),
            ("is the whole page.", "mcllo.report(...)"),
        ),
    )


@view.register
def _comparison_card(c: Comparison) -> Card:
    r = c.recommendation
    shown = picture(
        "comparison_dots", c, "Dot plot of each method's calibration and log loss."
    )
    others = [said.text for said in select_statements(r.statements, "lead", "ties")]
    level: Level = r.statements[0].level
    lead = select_statements(c.statements(), "heading")[0].text
    return Card(
        "Comparison",
        level,
        f"{lead}.",
        recommendation_text(c),
        sentences=tuple(others),
        svg=shown.svg,
    )


@view.register
def _nested_models_card(nested_models: NestedModels) -> Card:
    name, *rest = nested_models.statements(p=typeset)
    shown = picture(
        "nested_models",
        nested_models,
        f"Nested models; the smallest not rejected: {nested_models.chosen}.",
    )
    lead = f"{len(nested_models.rows)} nested models of what may be wrong."
    return Card(
        "NestedModels",
        name.level,
        lead,
        name.text,
        sentences=_statement_texts(rest),
        svg=shown.svg,
    )


@view.register
def _subgroups_card(found: Subgroups) -> Card:
    first, *rest = found.statements()
    shown = picture(
        "subgroups", found, f"Slope and size of {len(found.groups)} subgroups."
    )
    lead = f"{len(found.groups)} subgroups by {ellipsis(found.by)}."
    return Card(
        "Subgroups",
        first.level,
        lead,
        first.text,
        sentences=_statement_texts(rest[:1]),
        svg=shown.svg,
    )


@view.register
def _baselines_card(found: BaselineSensitivity) -> Card:
    shown = picture("baselines", found, "What changes with the baseline.")
    notes = tuple(capital(note) for note in found.notes)
    lead = f"{len(found.table)} baselines."
    headline = capital(found.verdict)
    return Card(
        "BaselineSensitivity", "plain", lead, headline, sentences=notes, svg=shown.svg
    )


@view.register
def _map_card(fitted: MCLLOMap) -> Card:
    columns: dict[str, list[Any]] = {"class": list(fitted.compared)}
    columns |= {"delta": fitted.delta.tolist(), "gamma": fitted.gamma.tolist()}
    lead = f"MCLLO map of {len(fitted.classes)} classes against {ellipsis(fitted.baseline)}."
    return _table_card("MCLLOMap", Table(columns), lead)


@view.register
def _fit_card(fit: MCLLOFit) -> Card:
    n, base = format_count(fit.n_samples), ellipsis(fit.baseline)
    shown = picture("parameters", fit, "Shift and slope of each class with intervals.")
    lead = (
        f"MCLLO map fitted to {n} rows of {len(fit.classes)} classes, baseline {base}."
    )
    table = ("has the numbers, ", ".parameters()")
    rows = ("recalibrates rows.", ".recalibrate(probs)")
    return Card("MCLLOFit", lead=lead, svg=shown.svg, hint=(table, rows))


@view.register
def _power_card(study: PowerStudy) -> Card:
    shown = picture("power", study, "How often calibration was rejected.")
    lead = f"{len(study.rows)} settings: {study.design}; {study.n_classes} classes."
    return Card("PowerStudy", lead=lead, svg=shown.svg)


@view.register
def _class_tests_card(tests: ClassTests) -> Card:
    off = set(tests.rejected())
    off_in_the_large = set(tests.rejected_in_the_large())
    heads = ("statistic", "df", "p (Holm)", "predicted", "observed", "p (Holm)")
    columns = (Column("class", "text"), *(Column(head) for head in heads))
    rows = []
    for row in tests.table.rows()[:MAX_TABLE_ROWS]:
        label = row["class"]
        pvalue = "baseline"
        if row["method"] != "":
            pvalue = typeset(
                row["adjusted"], bound=row["method"] == "bound"
            ).without_equals
        share_pvalue = typeset(row["large_adjusted"]).without_equals
        rows.append(
            (
                name_cell(label),
                TableCell(format_number(row["statistic"])),
                TableCell(str(row["df"])),
                TableCell(pvalue, mark="off" if label in off else ""),
                TableCell(f"{100 * row['predicted']:.1f} %"),
                TableCell(f"{100 * row['observed']:.1f} %"),
                TableCell(
                    share_pvalue, mark="off" if label in off_in_the_large else ""
                ),
            )
        )
    lead = f"Shift and slope against {ellipsis(tests.baseline)}; share of the class."
    table = TableView("classes", lead, columns, tuple(rows))
    return Card(
        "ClassTests", lead=lead, table=table, more=_omitted_rows_text(len(tests.table))
    )


@view.register
def _calibration_table_card(found: CalibrationTable) -> Card:
    return _table_card("CalibrationTable", found.paper, f"{found.title}.")


@view.register(ReliabilityCurve)
@view.register(SmoothCurve)
@view.register(IsotonicCurve)
def _reliability_curve_card(
    curve: ReliabilityCurve | SmoothCurve | IsotonicCurve,
) -> Card:
    of = "the most probable class" if curve.label is None else ellipsis(curve.label)
    return _table_card(type(curve).__name__, curve.to_table(), f"Reliability of {of}.")


@view.register
def _plain_table_card(table: Table) -> Card:
    return _table_card("Table", table)


def _table_card(kind: str, table: Table, lead: str = "") -> Card:
    """Return a card of a table, numbers as people read them."""
    columns = tuple(
        Column(
            name.replace("_", " "), "text" if has_non_numbers(table[name]) else "number"
        )
        for name in table.columns
    )
    rows = tuple(
        tuple(_cell(value, is_pvalue_column(name)) for name, value in row.items())
        for row in table.rows()[:MAX_TABLE_ROWS]
    )
    shown = TableView("table", lead, columns, rows)
    return Card(kind, lead=lead, table=shown, more=_omitted_rows_text(len(table)))


def _cell(value: Any, pvalue: bool) -> TableCell:
    if value is None or value == "":
        return TableCell("")
    if isinstance(value, float):
        return TableCell(
            typeset(value).without_equals
            if pvalue and value == value
            else format_number(value)
        )
    return name_cell(value)


def _omitted_rows_text(n_rows: int) -> str:
    """Return what a table leaves out."""
    rest = n_rows - MAX_TABLE_ROWS
    return f"and {format_count(rest)} more rows" if rest > 0 else ""


def _statement_texts(said: list[Statement]) -> tuple[str, ...]:
    return tuple(each.text for each in said)
