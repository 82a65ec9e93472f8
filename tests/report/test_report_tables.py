"""`_report.tables` and `_report.details`: estimates, nulls, shares and what lies behind."""

import math
from dataclasses import replace

import numpy as np
import pytest
from approval import check_text, sections
from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import (
    PETS,
    calm,
    compared,
    grouped,
    hostile,
    many,
    overconfident,
    predictions,
    separated,
    zeros,
)

import mcllo
from mcllo import Details
from mcllo._ground.text import Table
from mcllo._inference.pvalue import Ground, Reason
from mcllo._report.details import (
    baselines_part,
    class_names,
    classes_note,
    how_computed,
    kind_headline,
    ladder_part,
    posterior_part,
    robust_part,
    shares_table,
    worst_classes,
    zeros_part,
)
from mcllo._report.summarize import assessment_of
from mcllo._report.tables import (
    departure_sentences,
    null_lead,
    null_table,
    p_cell,
    parameters_table,
)
from mcllo._report.views import (
    NAME_WIDTH,
    Cell,
    Column,
    Names,
    Part,
    TableView,
    capital,
    format_weight,
    name_cell,
    percent,
    show_p,
)
from mcllo.plot._words import model_name


def titles(table):
    return [head.title for head in table.columns]


def column(table, title, nth=0):
    places = [j for j, name in enumerate(titles(table)) if name == title]
    return [row[places[nth]] for row in table.rows]


@pytest.mark.parametrize(
    ("tau", "gamma", "words"),
    [
        ([0.0, 0.0], [1.0, 1.0], ["90 : 10", "90 : 10"]),
        # gamma 1/2: odds 9 -> 3, 75 : 25. delta 3, gamma 1: odds 9 -> 27, 27/28 = 96.4 %.
        ([0.0, math.log(3)], [0.5, 1.0], ["75 : 25", "96 : 4"]),
        ([600.0, -600.0], [1.0, 1.0], ["> 99.9 : < 0.1", "< 0.1 : > 99.9"]),  # never says never
    ],
)
def test_what_ninety_to_ten_becomes_by_hand(tau, gamma, words):
    fit = replace(calm().fit, tau=np.array(tau), gamma=np.array(gamma))
    rows = {row[0].text: row[-1].text for row in parameters_table(fit).rows}
    assert [rows["cat"], rows["dog"]] == words


def test_marks_are_the_intervals_without_one():
    fit = overconfident().fit
    table, interval = parameters_table(fit), fit.confidence_interval()
    order = [fit.compared.index(cell.text) for cell in column(table, "Class")]
    for nth, ends in enumerate((interval.delta, interval.gamma)):
        marked = [cell.mark == "off" for cell in column(table, "95 % interval", nth)]
        assert marked == [bool(ends[j][1] < 1 or ends[j][0] > 1) for j in order]
    assert any(cell.mark for cell in column(table, "95 % interval", 1))


def test_the_largest_departure_comes_first():
    fit = many().fit
    z = np.fmax(np.abs(fit.tau / fit.se_tau), np.abs((fit.gamma - 1) / fit.se_gamma))
    table = parameters_table(fit)
    assert table.rows[0][0].text == fit.compared[int(np.argmax(z))]
    assert len(table.rows) == 99
    assert table.is_tall


def test_estimates_that_do_not_exist_are_not_shown():
    table = parameters_table(separated().fit)
    assert [row[0].text for row in table.rows] == ["a", "b"]
    assert {cell.text for row in table.rows for cell in row[1:]} == {"-"}
    assert departure_sentences(separated().fit) == ()


def test_departures_are_cut_and_keep_names_out_of_the_words():
    assert len(departure_sentences(many().fit)) <= 12
    for sentence in departure_sentences(hostile().fit):
        assert "script" not in sentence.words
        assert "vs" not in sentence.words


def test_nulls_stand_beside_what_was_measured():
    a, null = overconfident(), overconfident().nulls["ece"]
    _, here, span, p = null_table(a).rows[0]
    assert here.sort == a.metrics["ece"]
    assert span.text == f"{null.low:.4f} to {null.high:.4f}"
    assert p.text == "0.005"  # 1 / (199 + 1): no draw was as bad
    without = replace(a, nulls={}, companions={})
    assert "was not simulated: the weights are not whole numbers" in null_lead(without)
    assert null_table(without).rows[0][2].text == "-"


def test_p_cells():
    assert (p_cell(0.03).text, p_cell(0.03).sort) == ("0.03", 0.03)
    assert p_cell(1e-9, "bound").text == "≤ 10⁻⁹"
    assert p_cell(None).text == p_cell(math.nan).text == "-"


@pytest.mark.parametrize(
    ("label", "cell"),
    [
        ("cat", Cell("cat")),
        (7, Cell("7")),
        ("y" * 200, Cell("y" * (NAME_WIDTH - 1) + "…", title="y" * 200)),
        ("", Cell("(empty)")),
        (" \n ", Cell("(empty)", title=" \n ")),
    ],
)
def test_names_are_cut_and_kept_beside(label, cell):
    assert name_cell(label) == cell


@pytest.mark.parametrize(
    ("pvalue", "method", "words"),
    [
        (0.0312, "chi2", "= 0.031"),
        (2.134e-5, "chi2", "= 2.1 × 10⁻⁵"),
        (2.6e-57, "bound", "≤ 2.6 × 10⁻⁵⁷"),
        (1e-20, "bound", "≤ 10⁻²⁰"),
        (0.0, "chi2", "< 10⁻³⁰⁰"),
        (float("nan"), "", "not available"),
    ],
)
def test_p_values_in_words(pvalue, method, words):
    assert show_p(pvalue, method) == words


def test_small_words():
    assert percent(0.12345) == "12.3 %"
    assert format_weight(1200.0) == "1,200"
    assert format_weight(1200.25) == "1,200.2"
    assert capital("not calibrated") == "Not calibrated"
    assert capital("") == ""


def test_only_long_tables_scroll_in_a_box():
    rows = ((Cell("1"),),) * 16
    assert not TableView("t", "", (Column("a"),), rows).is_tall
    assert TableView("t", "", (Column("a"),), rows + rows).is_tall


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=300))
def test_any_name_becomes_one_short_line(text):
    cell = name_cell(text)
    assert 0 < len(cell.text) <= NAME_WIDTH
    assert len(cell.text.splitlines()) == 1
    assert cell.title in ("", text)


def with_part(a, name, part):
    """Return the assessment with another detail."""
    details = Details(a.details.fitted, a.details.n_resamples, a.details.seed)
    details.__dict__[name] = part
    return replace(a, details=details)


def with_tests(a, **columns):
    """Return the assessment with other numbers in its class tests."""
    tests = a.details.class_tests
    changed = replace(tests, table=Table(tests.table.to_dict() | columns))
    return with_part(a, "class_tests", changed)


def test_shares_are_counts_and_per_cent():
    table = shares_table(overconfident())
    assert sum(cell.sort for cell in column(table, "Rows")) == 600
    assert sum(cell.sort for cell in column(table, "Observed share")) == pytest.approx(1.0)
    assert sum(cell.sort for cell in column(table, "Predicted share")) == pytest.approx(1.0)


def test_tests_stand_beside_the_shares():
    a = overconfident()
    tests, table = a.details.class_tests.table, shares_table(a)
    for title, name in (("Shift, slope: statistic", "statistic"), ("Shift, slope: p", "adjusted")):
        cells = column(table, title)
        for cell, value in zip(cells, tests[name], strict=True):
            assert cell.sort is None if math.isnan(value) else cell.sort == value
    assert column(table, "Shift, slope: statistic")[-1].text == "baseline"
    assert [c.sort for c in column(table, "Share: p")] == a.in_the_large["adjusted"]


def test_marks_follow_the_adjusted_p_values_and_the_level():
    a = with_tests(calm(), adjusted=[0.03, 0.2, math.nan])
    columns = {"adjusted": [0.5, 0.04, 0.06], "z": [-0.01, 2.0, -3.0]}
    a = replace(a, in_the_large=Table(a.in_the_large.to_dict() | columns))
    z = [cell.text for cell in column(shares_table(a), "z")]
    assert z == ["+0.0", "+2.0", "-3.0"]  # no minus zero
    for alpha, shift, share in (
        (0.05, ["off", "", ""], ["", "off", ""]),
        (0.01, [""] * 3, [""] * 3),
    ):
        table = shares_table(a, alpha)
        assert [cell.mark for cell in column(table, "Shift, slope: p")] == shift
        assert [cell.mark for cell in column(table, "Share: p")] == share


def test_tests_that_do_not_hold_are_left_out_of_the_shares():
    comparison = shares_table(assessment_of(compared()))  # which asks for no shift and slope
    assert titles(comparison)[-1] == "Share: p"
    dependent = shares_table(grouped())
    assert titles(dependent) == ["Class", "Rows", "Predicted share", "Observed share"]
    assert class_names(grouped(), 0.05) == ()


def test_the_first_screen_names_classes_after_a_rejection_only():
    assert worst_classes(calm(), 0.05) is None
    assert worst_classes(grouped(), 0.05) is None
    assert len(worst_classes(overconfident(), 0.05).names) == 2
    none = with_tests(overconfident(), adjusted=[0.9, 0.9, math.nan])
    assert worst_classes(none, 0.05).names == ()


def test_baselines_have_the_numbers_of_the_details():
    found, part = calm().details.baselines, baselines_part(calm())
    assert [row[1].sort for row in part.table.rows] == found.table["statistic"]
    assert [row[3].sort for row in part.table.rows[:2]] == found.table["mean_change"][:2]


def test_zeros_have_p_values_at_three_floors():
    part, found = zeros_part(zeros(), 0.05), zeros().details.zeros
    assert [row[2].sort for row in part.table.rows] == [test.pvalue for test in found.tests]


def test_the_table_has_the_numbers_of_the_ladder():
    found, table = overconfident().details.ladder, ladder_part(overconfident(), 0.05).table
    names = [model_name(row.model) for row in found.rows]
    assert [cell.text for cell in column(table, "Model")] == names
    for title, name in (("Gain", "statistic"), ("Parameters", "df")):
        values = [getattr(row, name) for row in found.rows]
        assert [cell.sort for cell in column(table, title)] == values
    enough = column(table, "Enough? p")
    assert [cell.sort for cell in enough[:-1]] == [row.larger_pvalue for row in found.rows[:-1]]
    assert enough[-1].text == "-"
    expected = [
        "best" if row.model == found.chosen else "off" if row.rejected else "" for row in found.rows
    ]
    assert [cell.mark for cell in enough] == expected
    assert expected.count("best") == 1


def test_aic_and_bic_are_above_the_smallest_and_rounded():
    table = ladder_part(overconfident(), 0.05).table
    for name in ("AIC", "BIC"):
        values = [cell.sort for cell in column(table, name)]
        assert min(values) == 0.0
        assert [cell.text for cell in column(table, name)] == [f"{v:.1f}" for v in values]


def ladder(**changes):
    return ladder_part(with_part(calm(), "ladder", replace(calm().details.ladder, **changes)), 0.01)


def bounded():
    first, second, *rest = calm().details.ladder.rows
    second = replace(second, larger_pvalue=1e-20, larger_method="bound", rejected=True)
    return ladder(rows=(first, second, *rest))


def baselines(column=None, **changes):
    found = calm().details.baselines
    table = Table(found.table.to_dict() | (column or {}))
    return baselines_part(with_part(calm(), "baselines", replace(found, table=table, **changes)))


def floors():
    found = zeros().details.zeros
    ways = tuple(
        replace(found.tests[0], method=m, n_resamples=99) for m in ("chi2", "bound", "exact")
    )
    return zeros_part(with_part(zeros(), "zeros", replace(found, tests=ways)), 0.05)


def posterior(**changes):
    found = replace(calm().details.posterior, **changes) if changes else None
    return posterior_part(with_part(calm(), "posterior", found))


def survey():
    rows = predictions(200, PETS, 2.0)
    options = {"sample_weight": np.linspace(0.5, 3.0, 200), "weight_kind": "survey"}
    return mcllo.assess(rows.probs, rows.codes, **options, seed=0, n_resamples=99)


def few_groups():
    a, d = grouped(), grouped().details
    robust = replace(d.robust, method="f", limits=("so few can give no p-value below 0.1",))
    fitted = replace(d.fitted, robust=robust)
    return robust_part(replace(a, details=Details(fitted, d.n_resamples, d.seed)))


def classes(a, **columns):
    a = with_tests(a, **columns) if columns else a
    return (worst_classes(a, 0.05), *class_names(a, 0.05))


NONE = {"adjusted": [0.9, 0.9, math.nan], "large_adjusted": [0.9] * 3}
SAID = {
    "kind, groups": lambda: ladder_part(grouped(), 0.05),
    "kind, judged at another level": lambda: ladder(skipped="the full map is left out: too large"),
    "kind, a bound": bounded,
    "headlines": lambda: [
        kind_headline(a.statements(alpha))
        for a, alpha in ((overconfident(), 0.05), (overconfident(), 1e-40), (grouped(), 0.05))
    ],
    "classes, rejected": lambda: classes(overconfident()),
    "classes, none stands out": lambda: classes(overconfident(), **NONE),
    "classes, not rejected": lambda: classes(calm(), **NONE | {"adjusted": [0.01, 0.9, math.nan]}),
    "classes, cut": lambda: classes(
        hostile(),
        adjusted=[0.04, 0.01, 0.001, 0.02, 0.03, 0.9, math.nan],
        method=["chi2", "chi2", "bound", *["chi2"] * 4],
        large_adjusted=[0.9] * 7,
    ),
    "classes, how": lambda: classes_note(overconfident(), 0.01),
    "classes, groups": lambda: classes_note(grouped(), 0.05),
    "baselines": lambda: baselines(),
    "baselines, no smaller p-value": lambda: baselines_part(overconfident()),
    "baselines, one without a fit": lambda: baselines({"separated": [True, False, False]}),
    "baselines, none with a fit": lambda: baselines_part(separated()),
    "baselines, groups": lambda: baselines_part(grouped()),
    "baselines, two classes": lambda: baselines_part(
        mcllo.assess(predictions(300, ("a", "b")), seed=0, n_resamples=19)
    ),
    "zeros": lambda: zeros_part(zeros(), 0.05),
    "zeros, each way": floors,
    "zeros, none": lambda: zeros_part(calm(), 0.05),
    "zeros, groups": lambda: zeros_part(
        replace(grouped(), predictions=replace(grouped().predictions, n_zeros=2)), 0.05
    ),
    "Bayes": lambda: posterior_part(calm()),
    "Bayes, small": lambda: posterior(posterior=2.5e-7),
    "Bayes, tiny": lambda: posterior_part(overconfident()),
    "Bayes against the test": lambda: posterior(posterior=0.9, pvalue=2.5e-7),
    "Bayes, groups": lambda: posterior_part(grouped()),
    "Bayes, weights that count nothing": lambda: posterior(),
    "groups": lambda: robust_part(grouped()),
    "groups, few": few_groups,
    "survey weights": lambda: robust_part(survey()),
    "independent rows": lambda: robust_part(calm()),
}


def shown(said):
    """Return what a page would say, a line for each piece."""
    if isinstance(said, (list, tuple)):
        return "\n".join(map(shown, said))
    if isinstance(said, Names):
        names = "; ".join(f"{cell.text} ({words})" for cell, words in said.names)
        return " ".join(filter(None, (f"{said.lead}:", names, said.rest)))
    if not isinstance(said, Part):
        return str(said)
    rows = [[cell.text for cell in row] for row in said.table.rows] if said.table else []
    lines = [said.title, said.lead, *(f"- {note}" for note in said.notes), *map(" | ".join, rows)]
    return "\n".join(filter(None, lines))


def test_words_of_the_details(approve):
    check_text("details.txt", sections({k: shown(make()) for k, make in SAID.items()}), approve)


def test_how_computed():
    asked, enough = Reason(Ground.ASKED), Reason(Ground.ENOUGH, errors=120.0)
    assert how_computed("bootstrap", asked) == "simulated from the fitted model, approximate"
    assert how_computed("chi2", enough) == "chi-square (120 expected errors per parameter)"
    assert how_computed("new", None) == "new"
