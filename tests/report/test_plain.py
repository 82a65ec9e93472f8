"""The first screen of a report: plain words, every "but", and steps that fit the verdict."""

import ast
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from report_data import (
    baseline_off,
    calm,
    compared,
    divided,
    few,
    few_groups,
    grouped,
    helped,
    mixed_up,
    one_off,
    overconfident,
    own_rows,
    predictions,
    separated,
    slight,
    wave,
)
from test_render import PICTURES, Page

import mcllo
from mcllo._apps.report import plain
from mcllo._apps.report.html import escape_markdown, render_html, render_markdown
from mcllo._apps.report.plain import (
    CLASSES_DIFFER_TEXT,
    CONFUSED_CLASSES_TEXT,
    miscalibrated_class_sentences,
    two_class_sentences,
)
from mcllo._apps.report.recalibrations import (
    NAMES,
    recommendation_text,
    reconcile_with_verdict,
)
from mcllo._apps.report.steps import (
    DATA_CHECK_STEPS,
    CodeLanguage,
    next_steps,
    recalibration_steps,
)
from mcllo._apps.report.summarize import assessment_to_report, summarize
from mcllo._utils.statements import select_statements

ASSESSED = (overconfident, wave, one_off, baseline_off, grouped, divided, mixed_up)
ASSESSED += (slight, calm, wave, own_rows, few, few_groups, separated)
COMPARED = (compared, helped)
JARGON = re.compile(
    r"\b(p|p-values?|statistics?|df|log odds|logits?|gamma|delta|slopes?|temperature|ECE|"
    r"chi-square|likelihood|omnibus|Hosmer-Lemeshow|baseline|Holm|posterior|Bayes|log loss|"
    r"degrees of freedom|estimates?|null)\b|[γδλ]",
    re.IGNORECASE,
)


@cache
def summary(make):
    return summarize(make())


@cache
def first_screen(make):
    """Return everything that is shown before the contents, as a reader would hear it."""
    page = Page(render_html(summary(make), PICTURES))
    header, hero = page.all("header")[0], page.all(having="data-test-verdict")[0]
    said = [
        header["text"],
        *(e["text"] for e in page.all(having="data-test-alert")),
        hero["text"],
    ]
    text = " ".join(said)
    for code in page.all("pre"):  # is to be copied, not to be read
        text = text.replace(code["text"], " ")
    return " ".join(text.split())


def test_the_first_screen_has_no_jargon():
    for make in (*ASSESSED, *COMPARED):
        text = first_screen(make)
        for _, name in NAMES.values():  # what a recalibration is called has to be said
            text = re.sub(rf"\b{re.escape(name)}\b", "", text, flags=re.IGNORECASE)
        assert not JARGON.findall(text), (make.__name__, text)


def test_numbers_of_the_first_screen_are_those_of_the_result():
    for make in (*ASSESSED, *COMPARED):
        s, a = summary(make), judged_rows(make)
        facts = {fact.key: fact for fact in s.facts}
        assert facts["accuracy"].value == f"{100 * a.metrics['accuracy']:.1f} %", (
            make.__name__
        )
        for right, level in zip(s.levels, a.effect_size.levels, strict=False):
            assert right.says == f"{100 * level.says:g} %", make.__name__
            assert abs(float(right.right.rstrip(" %")) - 100 * level.right) <= 0.51, (
                make.__name__
            )
        markdown = render_markdown(s)
        for text in (s.verdict.sentence, s.verdict.size, *s.verdict.buts, s.date):
            assert escape_markdown(text) in markdown, make.__name__


def test_no_but_is_lost():
    # their words: first_screens.txt
    assert set(DATA_CHECK_STEPS) == set(
        plain.DATA_CHECK_TEXTS
    )  # every data check has a step and takes the verdict back
    for make in (wave, own_rows, mixed_up):
        (but,) = summary(make).verdict.buts
        assert but in first_screen(make)
        assert f"**{but}**" in render_markdown(summary(make))


def with_chosen(a, model):
    """Return the assessment with another model chosen by its nested_models."""
    chosen = replace(a.details.nested_models, chosen=model)
    return replace(a, details=replace(a.details, nested_models=chosen, data_checks=[]))


@pytest.mark.parametrize(
    ("model", "words"),
    [("full", CONFUSED_CLASSES_TEXT), ("mcllo", CLASSES_DIFFER_TEXT)],
)
def test_a_but_of_the_nested_models_stands_beside_what_it_takes_back(model, words):
    a = with_chosen(overconfident(), model)
    found = replace(overconfident().miscalibrated_classes, beyond=model)
    first, last = miscalibrated_class_sentences(a, a.decide(), found, [])
    assert first.lead.startswith("All classes alike: overconfident")
    assert (last.lead, last.but) == (words, True)
    s = replace(summary(overconfident), wrong=(first, last))
    page = Page(render_html(s, PICTURES))
    assert words in [e["text"] for e in page.all(having="data-test-but")]
    assert f"**{words}**" in render_markdown(s)


def test_a_but_of_the_subgroups_is_not_lost():
    *_, last = summary(divided).wrong
    assert last.but
    assert [cell.text for cell, _ in last.names] == ["Davos"]
    assert "one recalibration does not suit them all. Off: Davos." in first_screen(
        divided
    )
    assert summary(divided).steps[-1].text.endswith("each subgroup that is off: Davos.")


def test_nothing_short_of_certain_is_called_certain():
    level = overconfident().effect_size.levels[-1]
    for right, words in (
        (0.996, "99.6 %"),
        (0.9996, "99.96 %"),
        (0.999999, "over 99.99 %"),
    ):
        rare = replace(level, says=0.999, right=right, low=right - 0.01, high=right)
        assert plain.as_right(rare).says == "99.9 %"
        assert plain.as_right(rare).right == words


def binary(power, shift):
    """Return two classes of which "yes" is `shift` times as likely as the power of its odds."""
    rows = predictions(900, ("no", "yes"))
    odds = shift * (rows.probs[:, 1] / rows.probs[:, 0]) ** power
    truth = odds / (1.0 + odds)
    hits = np.random.default_rng([0, 1]).random(900) < truth
    labels = ["yes" if hit else "no" for hit in hits]
    return mcllo.assess(
        rows.probs, labels, classes=["no", "yes"], seed=0, n_resamples=99
    )


@pytest.mark.parametrize(
    ("power", "shift", "lead"),
    [
        (0.5, 1.0, "Overconfident, nearer to 0 and 100 % than they should be."),
        (2.0, 1.0, "Underconfident, further from 0 and 100 % than they could be."),
        (1.0, 3.0, "Predicted too rarely"),
        (-1.0, 1.0, "Upside down, less often true where predicted more."),
        (1.0, 1.0, "Both classes are off, in a way that these rows do not show."),
    ],
)
def test_two_classes_are_off_together(power, shift, lead):
    assert [said.lead for said in two_class_sentences(binary(power, shift), 0.05)] == [
        lead
    ]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"kind": "temperature", "slope": 1.5}, "underconfident, further from"),
        (
            {"kind": "temperature", "slope": -0.5},
            "what is predicted more comes true less",
        ),
        ({"kind": "shift"}, "predicted too often or too rarely"),
    ],
)
def test_what_all_classes_have_in_common_is_said_once(found, words):
    a = overconfident()
    (said,) = miscalibrated_class_sentences(
        a, a.decide(), replace(a.miscalibrated_classes, **found), []
    )
    assert words in said.lead
    assert said.names == ()


def test_outside_shifts_and_slopes_their_nearest_are_called_the_nearest():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.03, 0.97, 6000)
    y = rng.random(6000) < x + 0.10 * np.sin(6.0 * np.pi * x) - 0.15 * (x - 0.5)
    a = mcllo.assess(
        np.column_stack([1.0 - x, x]), y.astype(int), seed=0, n_resamples=199
    )
    assert a.verdict.main_rejects
    assert a.verdict.map_rejected
    nearest, extreme = miscalibrated_class_sentences(
        a, a.verdict, a.miscalibrated_classes, a.statements()
    )
    assert nearest.lead == plain.NEAREST_ERROR_TEXT
    assert extreme.lead.startswith("Overconfident")
    fits = overconfident()
    assert plain.NEAREST_ERROR_TEXT not in [
        part.lead
        for part in miscalibrated_class_sentences(
            fits, fits.verdict, fits.miscalibrated_classes, []
        )
    ]


def test_the_evidence_says_what_a_recalibration_gains():
    (said,) = select_statements(
        overconfident().statements(), "effect_size.recalibration"
    )
    assert "lowers the log loss of the others by" in said.text
    page = Page(render_html(summary(overconfident), PICTURES)).all(
        having="data-test-gain"
    )
    assert [part["text"].replace("\xa0", " ") for part in page] == [said.text]
    assert escape_markdown(said.text) in render_markdown(summary(overconfident))
    assert (
        summary(own_rows).verdict.gain == ""
    )  # of rows that are not what they seem, no size


def test_classes_that_are_wrong_in_one_way_share_a_line():
    (kind,) = one_off().miscalibrated_classes.details
    steep = {"gamma": 0.5, "gamma_interval": (0.4, 0.6)}
    fine = {"predicted": kind.observed, "low": 0.0, "high": 1.0}
    details = tuple(replace(kind, label=f"c{j}", **steep, **fine) for j in range(8))
    details += (replace(kind, label="odd", **fine, gamma_interval=(0.5, 1.5)),)
    found = replace(one_off().miscalibrated_classes, details=details)
    many, odd = miscalibrated_class_sentences(one_off(), one_off().decide(), found, [])
    assert [cell.text for cell, _ in many.names] == [f"c{j}" for j in range(6)]
    assert many.rest == "and 2 more"
    assert odd.lead.startswith("Off, in a way that these rows do not show")


@cache
def judged_rows(make):
    """Return the assessment of the rows that a comparison judges."""
    return assessment_to_report(make())


def codes(steps):
    return [step.code for step in steps if step.code]


SHELL = CodeLanguage(True, ("my rows.csv", "judged.csv"))


def test_python_is_advised_python_and_the_shell_commands():
    for make in ASSESSED:
        a = make()
        steps = next_steps(a, a.decide(), CodeLanguage())
        assert steps, make.__name__
        for code in codes(steps):
            ast.parse(code)
        for code in codes(next_steps(a, a.decide(), SHELL)):
            assert all(line.startswith("mcllo ") for line in code.splitlines()), code
            assert (
                "'my rows.csv'" in code or code == SHELL.monitor()
            )  # of batches to come
    a = judged_rows(helped)
    for code in codes(recalibration_steps(helped(), a, a.decide(), SHELL)):
        assert all(line.startswith("mcllo ") for line in code.splitlines()), code
    assert "judged.csv" in SHELL.assess_judged(False)
    assert "'my rows.csv'" in SHELL.assess_judged(True)
    assert "ROWS.csv" in CodeLanguage(True, ("-",)).compare()


def test_a_page_shows_no_code_of_the_other_tongue():
    shell = summarize(
        compared(), command="mcllo compare a b", source=["a.csv", "b.csv"]
    )
    page = Page(render_html(shell, PICTURES))
    assert page.all("pre")
    assert all(e["text"].startswith("mcllo ") for e in page.all("pre"))
    assert "mcllo.report" not in render_markdown(shell)
    python = Page(render_html(summary(compared), PICTURES))
    assert all("mcllo." in e["text"] for e in python.all("pre"))


@pytest.mark.parametrize(
    ("make", "kind", "first", "said"),
    [
        (
            helped,
            "miscalibrated",
            "Fit temperature scaling on all rows",
            "beyond chance",
        ),
        (
            helped,
            "negligible",
            "Fit temperature scaling on all rows",
            "as small as the error",
        ),
        (
            helped,
            "not_detected",
            "Fit temperature scaling",
            "a recalibration may mend others",
        ),
        (helped, "inconclusive", "Fit temperature scaling", "Judge it on more rows"),
        (
            compared,
            "miscalibrated",
            "Do not take these probabilities",
            "The probabilities are off, but",
        ),
        (
            compared,
            "not_detected",
            "Leave the predictions as they are",
            "may lead by chance",
        ),
        (compared, "inconclusive", "Collect more rows", "too few for either question"),
    ],
)
def test_verdict_and_recommendation_do_not_contradict_each_other(
    make, kind, first, said
):
    c, a = make(), judged_rows(make)
    judged = replace(a.decide(), kind=kind)
    steps = recalibration_steps(c, a, judged, CodeLanguage())
    assert steps[0].text.startswith(first)
    assert said in reconcile_with_verdict(c, judged)
    shown = c.recommendation.improves
    assert recommendation_text(c).startswith(
        "Recommended recalibration: temperature" if shown else "None of 3 "
    )
    assert any("Fit" in step.text for step in steps) == shown
    if kind == "miscalibrated":
        assert not any("Leave" in step.text for step in steps)


def test_a_comparison_judges_predictions_as_they_are_and_accuses_no_class():
    assert summary(overconfident).verdict.about == ""
    assert "The predictions as they are Miscalibrated" in first_screen(compared)
    assert summary(compared).wrong == ()
    assert "report of an assessment" in summary(compared).attribution.lead


def test_levels_that_are_off_are_not_called_right():
    # at 85 % right in 77 % (73 to 80) of 12,442 rows, of which 23 points are wrong on average
    rows = mcllo.datasets.load_portal_rodents(groups=None).holdout
    a = mcllo.assess(rows, seed=0, n_resamples=99)
    assert plain.most_confident_level_off(a, a.decide()) is None
    assert [v.says for v in plain.levels_off(a)] == [0.6, 0.85]
    told = plain.error_size_text(a, a.decide(), a.statements())
    assert "right about as often as it says" not in told
    assert "When it says 85 %, it is right about 77 % (73 to 80)." in told
    # nor where no level is off, but fewer rows are right than all say together
    size = replace(a.effect_size, levels=a.effect_size.levels[:1])
    few = replace(a, details=replace(a.details, effect_size=size))
    told = plain.error_size_text(few, few.decide(), few.statements())
    assert "right about as often as it says" not in told


def test_the_example_is_the_surest_level_that_is_off():
    a = overconfident()
    found = plain.most_confident_level_off(a, a.decide())
    assert found.says == max(
        level.says for level in a.effect_size.levels if level.high < level.says
    )
    assert (
        plain.most_confident_level_off(one_off(), one_off().decide()) is None
    )  # the top class is as right as said
    assert (
        "most probable class is right about as often" in summary(one_off).verdict.size
    )
    assert plain.most_confident_level_off(calm(), calm().decide()) is None
