"""`_report.tables`, `_report.classes`, `_report.details_section`: what was measured and lies
behind.
"""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from approval import check_text, sections
from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import (
    PETS,
    baseline_off,
    calm,
    compared,
    grouped,
    helped,
    one_off,
    overconfident,
    predictions,
    separated,
    zeros,
)

import mcllo
from mcllo._apps.cli.options import FLAG_NAMES
from mcllo._apps.report.classes import (
    attribute_miscalibration,
    attribution_part,
    class_order,
    map_part,
    parameters_table,
    shares_table,
)
from mcllo._apps.report.details_section import (
    baselines_part,
    nested_models_part,
    posterior_part,
    robust_part,
    zeros_part,
)
from mcllo._apps.report.figures import pictures
from mcllo._apps.report.summarize import assessment_to_report, summarize
from mcllo._apps.report.tables import expected_table, null_distributions_part, p_cell
from mcllo._apps.report.views import (
    NAME_WIDTH,
    Part,
    name_cell,
    show_p,
)
from mcllo._utils.formatting import Table
from mcllo.plot._reliability_diagram import class_errors
from mcllo.plot._words import nested_model_label


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
        (
            [600.0, -600.0],
            [1.0, 1.0],
            ["> 99.9 : < 0.1", "< 0.1 : > 99.9"],
        ),  # never says never
    ],
)
def test_what_ninety_to_ten_becomes_by_hand(tau, gamma, words):
    fit = replace(calm().fit, tau=np.array(tau), gamma=np.array(gamma))
    table = parameters_table(replace(calm(), fit=fit))
    cells = zip(column(table, "Class"), column(table, "90 : 10 becomes"), strict=True)
    rows = {name.text: cell.text for name, cell in cells}
    assert [rows["cat"], rows["dog"]] == words


def test_marks_are_the_intervals_without_one():
    fit = overconfident().fit
    table, interval = parameters_table(overconfident()), fit.confidence_interval()
    order = [fit.compared.index(cell.text) for cell in column(table, "Class")]
    for nth, ends in enumerate((interval.delta, interval.gamma)):
        marked = [cell.mark == "off" for cell in column(table, "95 % interval", nth)]
        assert marked == [bool(ends[j][1] < 1 or ends[j][0] > 1) for j in order]
    assert any(cell.mark for cell in column(table, "95 % interval", 1))


def order_of(a):
    return class_order(a, attribute_miscalibration(a, a.decide()))


@pytest.mark.parametrize(
    ("make", "miscalibrated_class"), [(one_off, "kind 3"), (baseline_off, "kind 9")]
)
def test_miscalibrated_classes_come_first_everywhere_and_the_others_by_calibration_error(
    make, miscalibrated_class
):
    a, order = make(), list(order_of(make()))
    assert order[0] == miscalibrated_class
    errors = dict(zip(a.predictions.classes, class_errors(a.predictions), strict=True))
    rest = [errors[label] for label in order[1:]]
    assert rest == sorted(rest, reverse=True)
    s = summarize(a)
    assert [row[0].text for row in s.shares.rows] == order
    compared_classes = [label for label in order if label != a.fit.baseline]
    assert [row[0].text for row in s.map.table.rows] == compared_classes
    assert [row[0].text for row in s.attribution.table.rows] == [miscalibrated_class]


@pytest.mark.slow
def test_pictures_of_classes_have_the_order_of_the_tables():
    a = one_off()
    order, made = order_of(a), pictures(a, None, order_of(a))
    titles = [f">{label}<" for label in order]
    places = [made["by_class"].svg.index(title) for title in titles]
    assert places == sorted(places)
    rows = [
        made["parameters"].svg.index(f">{label}<")
        for label in order
        if label != "kind 9"
    ]
    assert rows == sorted(rows)


def test_only_miscalibrated_classes_are_accused():
    # what is said of them, and where nobody is: details.txt
    for make, miscalibrated_class in ((one_off, "kind 3"), (baseline_off, "kind 9")):
        s = summarize(make())
        named = [cell.text for said in s.wrong for cell, _ in said.names]
        assert named == [miscalibrated_class]
        words = " ".join([s.attribution.lead, *(said.lead for said in s.wrong)])
        assert not [name for name in make().predictions.classes if name in words]
    assert (
        attribute_miscalibration(overconfident(), overconfident().decide(1e-40)) is None
    )


def test_estimates_that_do_not_exist_are_not_shown():
    table = parameters_table(separated())
    assert [row[0].text for row in table.rows] == ["a", "b"]
    assert {cell.text for row in table.rows for cell in row[1:6]} == {"-"}


def test_nulls_stand_beside_what_was_measured():
    a, null = overconfident(), overconfident().null_distributions["ece"]
    _, here, span, p = null_distributions_part(a).table.rows[0]
    assert here.sort == a.metrics["ece"]
    assert span.text == f"{null.low:.4f} to {null.high:.4f}"
    assert p.text == "0.005"  # 1 / (199 + 1): no draw was as bad
    without = replace(a, null_distributions={}, omnibus_tests={})
    assert (
        "was not simulated: the weights are not whole numbers"
        in null_distributions_part(without).lead
    )
    assert null_distributions_part(without).table.rows[0][2].text == "-"


def test_accuracy_and_losses_stand_beside_what_is_expected():
    a, table = overconfident(), expected_table(overconfident())
    assert titles(table) == ["Measure", "Here", "Expected"]
    for row, name in zip(table.rows, ("accuracy", "log_loss", "brier"), strict=True):
        assert [cell.sort for cell in row[1:]] == [a.metrics[name], a.expected[name]]
    assert not {"Accuracy", "Log loss"} & {
        row[0].text for row in null_distributions_part(a).table.rows
    }


def test_p_cells():
    assert (p_cell(0.03).text, p_cell(0.03).sort) == ("0.03", 0.03)
    assert p_cell(1e-9, "bound").text == "≤ 10⁻⁹"
    assert p_cell(None).text == p_cell(math.nan).text == "-"
    words = {
        (0.0312, "chi2"): "= 0.031",
        (2.134e-5, "chi2"): "= 2.1 × 10⁻⁵",
        (2.6e-57, "bound"): "≤ 2.6 × 10⁻⁵⁷",
        (0.0, "chi2"): "< 10⁻³⁰⁰",
        (math.nan, ""): "not available",
    }
    assert {asked: show_p(*asked) for asked in words} == words


@settings(deadline=None, max_examples=20)
@given(st.text(max_size=300))
def test_any_name_becomes_one_short_line(text):
    cell = name_cell(text)
    assert 0 < len(cell.text) <= NAME_WIDTH
    assert len(cell.text.splitlines()) == 1
    assert cell.title in ("", text)


def with_part(a, name, part):
    """Return the assessment with another detail."""
    return replace(a, details=replace(a.details, **{name: part}))


def with_tests(a, **columns):
    """Return the assessment with other numbers in its class tests."""
    tests = a.details.class_tests
    changed = replace(tests, table=Table(tests.table.to_dict() | columns))
    return with_part(a, "class_tests", changed)


def test_shares_are_counts_and_per_cent():
    table = shares_table(overconfident())
    assert sum(cell.sort for cell in column(table, "Rows")) == 600
    assert sum(cell.sort for cell in column(table, "Observed share")) == pytest.approx(
        1.0
    )
    assert sum(cell.sort for cell in column(table, "Predicted share")) == pytest.approx(
        1.0
    )


def test_tests_against_the_baseline_stand_beside_the_estimates():
    a = overconfident()
    tests, table = a.details.class_tests.table, parameters_table(a)
    names = [cell.text for cell in column(table, "Class")]
    places = [tests["class"].index(name) for name in names]
    for title, name in (("δ = γ = 1: statistic", "statistic"), ("p", "adjusted")):
        cells = [cell.sort for cell in column(table, title)]
        assert cells == [tests[name][j] for j in places]
    shares = shares_table(a)
    assert [c.sort for c in column(shares, "Share: p")] == a.in_the_large["adjusted"]


def test_marks_follow_the_adjusted_p_values_and_the_level():
    a = with_tests(calm(), adjusted=[0.03, 0.2, math.nan])
    columns = {"adjusted": [0.5, 0.04, 0.06], "z": [-0.01, 2.0, -3.0]}
    a = replace(a, in_the_large=Table(a.in_the_large.to_dict() | columns))
    z = [cell.text for cell in column(shares_table(a), "z")]
    assert z == ["+0.0", "+2.0", "-3.0"]  # no minus zero
    for alpha, shift, share in (
        (0.05, ["off", ""], ["", "off", ""]),
        (0.01, [""] * 2, [""] * 3),
    ):
        tests = column(parameters_table(a, alpha), "p")
        assert [cell.mark for cell in tests] == shift
        assert [
            cell.mark for cell in column(shares_table(a, alpha), "Share: p")
        ] == share


def test_tests_that_do_not_hold_are_left_out():
    comparison = assessment_to_report(compared())  # which asks for no shift and slope
    assert titles(shares_table(comparison))[-1] == "Share: p"
    assert titles(parameters_table(comparison))[-1] == "90 : 10 becomes"
    dependent = shares_table(grouped())
    assert titles(dependent) == ["Class", "Rows", "Predicted share", "Observed share"]


def test_the_table_has_the_numbers_of_the_nested_models():
    found, table = (
        overconfident().details.nested_models,
        nested_models_part(overconfident(), 0.05).table,
    )
    names = [nested_model_label(row.model) for row in found.rows]
    assert [cell.text for cell in column(table, "Model")] == names
    for title, name in (("Gain", "statistic"), ("Parameters", "df")):
        values = [getattr(row, name) for row in found.rows]
        assert [cell.sort for cell in column(table, title)] == values
    enough = column(table, "Enough? p")
    assert [cell.sort for cell in enough[:-1]] == [
        row.larger_pvalue for row in found.rows[:-1]
    ]
    assert enough[-1].text == "-"
    expected = [
        "best" if row.model == found.chosen else "off" if row.rejected else ""
        for row in found.rows
    ]
    assert [cell.mark for cell in enough] == expected
    assert expected.count("best") == 1


def test_aic_and_bic_are_above_the_smallest_and_rounded():
    table = nested_models_part(overconfident(), 0.05).table
    for name in ("AIC", "BIC"):
        values = [cell.sort for cell in column(table, name)]
        assert min(values) == 0.0
        assert [cell.text for cell in column(table, name)] == [
            f"{v:.1f}" for v in values
        ]


def nested_models(**changes):
    return nested_models_part(
        with_part(
            calm(), "nested_models", replace(calm().details.nested_models, **changes)
        ),
        0.01,
    )


def bounded():
    first, second, *rest = calm().details.nested_models.rows
    second = replace(second, larger_pvalue=1e-20, larger_method="bound", rejected=True)
    return nested_models(rows=(first, second, *rest))


def baselines(column=None, **changes):
    found = calm().details.baselines
    table = Table(found.table.to_dict() | (column or {}))
    return baselines_part(
        with_part(calm(), "baselines", replace(found, table=table, **changes))
    )


def floors():
    found = zeros().details.zeros
    ways = tuple(
        replace(found.tests[0], method=m, n_resamples=99)
        for m in ("chi2", "bound", "exact")
    )
    return zeros_part(with_part(zeros(), "zeros", replace(found, tests=ways)), 0.05)


def posterior(**changes):
    found = replace(calm().details.posterior, **changes) if changes else None
    return posterior_part(with_part(calm(), "posterior", found))


def survey():
    rows = predictions(200, PETS, 2.0)
    options = {"sample_weight": np.linspace(0.5, 3.0, 200), "weight_kind": "survey"}
    return mcllo.assess(rows.probs, rows.codes, **options, seed=0, n_resamples=99)


def limited_groups():
    a, d = grouped(), grouped().details
    robust = replace(
        d.robust, method="f", limits=("so few can give no p-value below 0.1",)
    )
    return robust_part(replace(a, details=replace(d, robust=robust)))


def blamed(make):
    a = make()
    return attribution_part(
        a, a.decide(), attribute_miscalibration(a, a.decide()), a.statements()
    )


SAID = {
    "kind, groups": lambda: nested_models_part(grouped(), 0.05),
    "kind, judged at another level": lambda: nested_models(
        skipped="the full map is left out: too large"
    ),
    "kind, a bound": bounded,
    "attribution, one class": lambda: blamed(one_off),
    "attribution, the baseline": lambda: blamed(baseline_off),
    "attribution, all alike": lambda: blamed(overconfident),
    "attribution, nothing found": lambda: blamed(calm),
    "attribution, groups": lambda: blamed(grouped),
    "estimates": lambda: map_part(overconfident(), overconfident().decide(0.01)),
    "estimates, groups": lambda: map_part(grouped(), grouped().decide()),
    "baselines": lambda: baselines(),
    "baselines, no smaller p-value": lambda: baselines_part(overconfident()),
    "baselines, one without a fit": lambda: baselines(
        {"separated": [True, False, False]}
    ),
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
    "groups, few": limited_groups,
    "survey weights": lambda: robust_part(survey()),
    "independent rows": lambda: robust_part(calm()),
}


def shown(said):
    """Return what a page would say, a line for each piece."""
    if isinstance(said, (list, tuple)):
        return "\n".join(map(shown, said))
    if not isinstance(said, Part):
        return str(said)
    rows = (
        [[cell.text for cell in row] for row in said.table.rows] if said.table else []
    )
    lines = [
        said.title,
        said.lead,
        *(f"- {note}" for note in said.notes),
        *map(" | ".join, rows),
    ]
    return "\n".join(filter(None, lines))


def test_words_of_the_details(approve):
    check_text(
        "details.txt", sections({k: shown(make()) for k, make in SAID.items()}), approve
    )


def test_the_effect_is_that_of_the_map_which_was_judged():
    c = helped()
    effect = summarize(c).effect
    assert (effect.method, effect.title) == (
        c.best,
        "What the recommended recalibration does",
    )
    before = c.holdout.probs
    after = c.recalibrated[c.best].probs
    labels = np.array(c.holdout.classes)
    # shares by hand, the class that moves most first
    change = np.abs(after - before).mean(axis=0)
    order = np.argsort(-change)
    assert [row[0].text for row in effect.classes.rows] == labels[order].tolist()
    came_true = np.bincount(c.holdout.codes, minlength=len(labels)) / len(before)
    for row, j in zip(effect.classes.rows, order, strict=True):
        shares = [before[:, j].mean(), after[:, j].mean(), came_true[j], change[j]]
        assert [cell.sort for cell in row[1:]] == pytest.approx(shares)
    # the last example is the row that moves most: 0.5 sum |difference|
    moved = 0.5 * np.abs(after - before).sum(axis=1)
    last = effect.rows.rows[-1]
    i = int(moved.argmax())
    assert last[0].sort == i + 1
    truth = c.holdout.codes[i]
    assert last[3].text == labels[truth]
    assert last[1].sort == before[i].max()
    assert [last[4].sort, last[5].sort] == [before[i, truth], after[i, truth]]
    moves = [moved[int(row[0].sort) - 1] for row in effect.rows.rows]
    assert moves == sorted(moves)
    assert f"moves {100 * moved.mean():.1f} % of a row's probability" in effect.lead


def test_what_is_not_shown_to_help_is_no_recommendation():
    c = compared()
    assert not c.recommendation.improves
    effect = summarize(c).effect
    assert effect.title.startswith("What ")
    assert effect.title.endswith(" would do")
    assert "That it helps is not shown." in effect.lead
    assert summarize(c).map is None
    assert summarize(overconfident()).effect is None


def test_commands_run_as_they_stand():
    c = helped()
    s = summarize(
        c,
        command="mcllo compare a.csv b.csv",
        source=["a.csv", "b.csv"],
        names=FLAG_NAMES,
        reading={"label": "kind"},
    )
    typed = "\n".join(step.code for step in s.steps)
    assert not re.search(r"\b(LABEL|NEW|BATCH|NAME|ROWS)\b", typed)
    assert "mcllo apply model.json b.csv -o recalibrated.csv" in typed
    assert "monitor add watch.db recalibrated.csv --label kind --batch first" in typed
