"""`_report.kinds`: the ladder in words and as a table."""

from dataclasses import replace

import numpy as np
import pytest
from report_data import calm, grouped, many, overconfident

from mcllo._details import Details
from mcllo._ladder_models import MODELS
from mcllo._ladder_words import _evidence
from mcllo._plot.plain_words import model_name
from mcllo._report.kinds import EVIDENCE, how_computed, kind_headline, ladder_part


def column(table, title):
    j = [head.title for head in table.columns].index(title)
    return [row[j] for row in table.rows]


def with_ladder(a, **changes):
    """Return the assessment with another ladder."""
    details = Details(a.details.fitted, a.details.n_resamples, a.details.seed)
    details.__dict__["ladder"] = replace(a.details.ladder, **changes)
    return replace(a, details=details)


def test_the_table_has_the_numbers_of_the_ladder():
    ladder = overconfident().details.ladder
    table = ladder_part(overconfident(), 0.05).table
    assert [cell.text for cell in column(table, "Model")] == [
        model_name(row.model) for row in ladder.rows
    ]
    assert [cell.sort for cell in column(table, "Gain")] == [row.statistic for row in ladder.rows]
    assert [cell.sort for cell in column(table, "Parameters")] == [row.df for row in ladder.rows]
    enough = column(table, "Enough? p")
    assert [cell.sort for cell in enough[:-1]] == [row.larger_pvalue for row in ladder.rows[:-1]]
    assert enough[-1].text == "-"


def test_marks_are_what_closed_testing_says():
    ladder = overconfident().details.ladder
    cells = column(ladder_part(overconfident(), 0.05).table, "Enough? p")
    for row, cell in zip(ladder.rows, cells, strict=True):
        expected = "best" if row.model == ladder.chosen else "off" if row.rejected else ""
        assert cell.mark == expected
    assert [cell.mark for cell in cells].count("best") == 1


def test_aic_and_bic_are_above_the_smallest_and_rounded():
    table = ladder_part(overconfident(), 0.05).table
    for name in ("AIC", "BIC"):
        values = [cell.sort for cell in column(table, name)]
        assert min(values) == 0.0
        assert [cell.text for cell in column(table, name)] == [f"{v:.1f}" for v in values]


def test_the_lead_is_the_ladders_sentence_with_printed_p_values():
    lead = ladder_part(with_ladder(calm(), sentence="Found (p = 2.5e-07)."), 0.05).lead
    assert lead == "Found (p = 2.5 × 10⁻⁷)."


def test_what_limits_the_ladder_is_said():
    assert ladder_part(calm(), 0.05).notes == ()
    a = with_ladder(calm(), skipped="the full map is left out: too much data")
    assert ladder_part(a, 0.01).notes == (
        "The full map is left out: too much data.",
        "The models are judged at level 0.05, not at 0.01.",
    )


def test_a_bound_is_shown_as_one():
    a = overconfident()
    first, *rest = a.details.ladder.rows
    first = replace(first, larger_pvalue=1e-20, larger_method="bound")
    cell = column(ladder_part(with_ladder(a, rows=(first, *rest)), 0.05).table, "Enough? p")[0]
    assert (cell.text, cell.title) == ("≤ 10⁻²⁰", "guaranteed bound")


@pytest.mark.parametrize("model", MODELS)
def test_the_headline_is_the_kind_without_the_evidence(model):
    row = overconfident().details.ladder.rows[0]
    larger = None if model == "full" else "mcllo"
    row = replace(row, model=model, larger=larger, larger_pvalue=0.2)
    sentence = f"The kind of 'St. Bernard' (slope 0.5). {_evidence(row, 0.05)} And more."
    assert EVIDENCE.split(sentence)[0] == "The kind of 'St. Bernard' (slope 0.5)"
    a = with_ladder(overconfident(), sentence=sentence, chosen=model)
    expected = "" if model == "identity" else "The kind of 'St. Bernard' (slope 0.5)."
    assert kind_headline(a, 0.05) == expected


def test_no_headline_without_a_rejection_or_a_ladder():
    assert kind_headline(calm(), 0.05) == ""
    assert kind_headline(overconfident(), 1e-40) == ""
    assert kind_headline(grouped(), 0.05) == ""


def test_dependent_rows_have_no_ladder():
    part = ladder_part(grouped(), 0.05)
    assert part.table is None
    assert part.lead.startswith("The kinds of miscalibration are left out: they assume independ")


def test_a_hundred_classes_say_that_the_full_map_is_missing():
    assert any("full map is left out" in note for note in ladder_part(many(), 0.05).notes)


def test_how_computed():
    assert how_computed("bootstrap", "as asked") == "simulated from the fitted model, approximate"
    assert how_computed("new", "why") == "new (why)"


def test_every_number_can_be_sorted_by():
    for row in ladder_part(overconfident(), 0.05).table.rows:
        assert all(cell.sort is None or np.isfinite(cell.sort) for cell in row)
