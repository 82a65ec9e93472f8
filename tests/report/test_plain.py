"""The first screen of a report: plain words, every "but", and the same verdict in every form."""

import ast
import json
import re
from dataclasses import replace
from functools import cache

import pytest
from report_data import (
    baseline_off,
    calm,
    compared,
    compared_calm,
    divided,
    few,
    few_groups,
    grouped,
    helped,
    many,
    mixed_up,
    one_off,
    overconfident,
    own_rows,
    predictions,
    separated,
    slight,
    wave,
    zeros,
)
from test_render import PICTURES, Page

import mcllo
from mcllo import Details
from mcllo._assessment.words import HEADLINES
from mcllo._ground.statements import Statement
from mcllo._report import plain, report
from mcllo._report.plain import CONFUSED, DIFFER, two_classes, wrong
from mcllo._report.render import escape_markdown, render_html, render_markdown
from mcllo._report.repairs import NAMES, recommended, reconciled
from mcllo._report.steps import HINTED, LOOK, Tongue, next_steps, repair_steps
from mcllo._report.summarize import assessment_of, summarize
from mcllo.plot import reliability

KINDS = {
    "matters": (overconfident, one_off, baseline_off, many, grouped, divided, mixed_up, zeros),
    "little": (slight,),
    "none_found": (calm, wave, own_rows),
    "cannot_tell": (few, few_groups, separated),
}
COMPARED = (compared, compared_calm, helped)
EVERY = [make for group in KINDS.values() for make in group]
JARGON = re.compile(
    r"\b(p|p-values?|statistics?|df|log odds|logits?|gamma|delta|slopes?|temperature|ECE|"
    r"chi-square|likelihood|omnibus|Hosmer-Lemeshow|baseline|Holm|posterior|Bayes|log loss|"
    r"degrees of freedom|estimates?|null)\b|[γδλ]",
    re.IGNORECASE,
)


@cache
def summary(make, **options):
    return summarize(make(), **dict(options))


def first_screen(make):
    """Return everything that is shown before the contents, as a reader would hear it."""
    page = Page(render_html(summary(make), PICTURES))
    header, hero = page.all("header")[0], page.all(having="data-test-verdict")[0]
    said = [header["text"], *(e["text"] for e in page.all(having="data-test-alert")), hero["text"]]
    text = " ".join(said)
    for code in page.all("pre"):  # is to be copied, not to be read
        text = text.replace(code["text"], " ")
    return " ".join(text.split())


@pytest.mark.parametrize("make", [*EVERY, *COMPARED], ids=lambda make: make.__name__)
def test_the_first_screen_has_no_jargon(make):
    text = first_screen(make)
    for _, name in NAMES.values():  # what a repair is called has to be said
        text = re.sub(rf"\b{re.escape(name)}\b", "", text, flags=re.IGNORECASE)
    assert not JARGON.findall(text), text


def test_the_picture_of_the_first_screen_has_no_jargon_either():
    made = report(overconfident()).pictures["reliability"]
    assert not JARGON.findall(" ".join(re.findall(r">([^<]+)</text>", made.svg)))
    assert not JARGON.findall(made.caption + made.alt)
    texts = [text.get_text() for text in reliability(overconfident()).texts]
    assert any(text.startswith("ECE") for text in texts)  # outside the report it is there


@pytest.mark.parametrize(
    ("kind", "make"), [(kind, make) for kind, group in KINDS.items() for make in group]
)
def test_text_json_markdown_and_html_have_one_verdict(kind, make):
    a, r = make(), report(make())
    assert a.verdict.kind == r.summary.verdict.kind == kind
    content = json.loads(r.json())
    assert content["result"]["verdict"]["kind"] == content["summary"]["verdict"]["kind"] == kind
    words = HEADLINES[kind][0]
    assert f"{words[0].lower()}{words[1:]}" in a.text().splitlines()[1]
    assert f"**{words}.**" in r.markdown()
    page = Page(render_html(r.summary, PICTURES))
    (hero,) = page.all(having="data-test-verdict")
    assert hero["data-test-verdict"] == kind
    assert f"{words}." in hero["text"]


@pytest.mark.parametrize("make", [*EVERY, *COMPARED], ids=lambda make: make.__name__)
def test_numbers_of_the_first_screen_are_those_of_the_result(make):
    s, a = summary(make), assessment_of(make())
    facts = {fact.key: fact for fact in s.facts}
    assert facts["accuracy"].value == f"{100 * a.metrics['accuracy']:.1f} %"
    for right, level in zip(s.levels, a.size.levels, strict=False):
        assert right.says == f"{100 * level.says:g} %"
        assert abs(float(right.right.rstrip(" %")) - 100 * level.right) <= 0.51
    markdown = render_markdown(s)
    for text in (s.verdict.sentence, s.verdict.size, *s.verdict.buts, s.date):
        assert escape_markdown(text) in markdown


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (wave, "another check finds something wrong"),
        (own_rows, "repaired on these very rows"),
        (mixed_up, "the columns seem to be mixed up"),
    ],
)
def test_no_but_is_lost(make, words):
    s = summary(make)
    (but,) = s.verdict.buts
    assert words in but
    assert but in first_screen(make)
    assert f"**{but}**" in render_markdown(s)


def with_chosen(a, model):
    """Return the assessment with another model chosen by its ladder."""
    details = Details(a.details.fitted, a.details.n_resamples, a.details.seed)
    details.__dict__.update(ladder=replace(a.details.ladder, chosen=model), hints=[])
    return replace(a, details=details)


@pytest.mark.parametrize(
    ("model", "beyond", "words"), [("full", "full", CONFUSED), ("mcllo", "mcllo", DIFFER)]
)
def test_a_but_of_the_ladder_stands_beside_what_it_takes_back(model, beyond, words):
    a = with_chosen(overconfident(), model)
    found = replace(overconfident().culprits, beyond=beyond)
    first, last = wrong(a, a.decide(), found, [])
    assert first.lead.startswith("All classes alike: too extreme")
    assert (last.lead, last.but) == (words, True)
    s = replace(summary(overconfident), wrong=(first, last))
    page = Page(render_html(s, PICTURES))
    assert words in [e["text"] for e in page.all(having="data-test-but")]
    assert f"**{words}**" in render_markdown(s)


def test_a_but_of_the_subgroups_is_not_lost():
    *_, last = summary(divided).wrong
    assert last.but
    assert [cell.text for cell, _ in last.names] == ["Davos"]
    assert "one repair does not suit them all. Off: Davos." in first_screen(divided)
    assert summary(divided).steps[-1].text.endswith("each subgroup that is off: Davos.")
    test = replace(divided().subgroups.test, pvalue=0.5)  # as if one map suited both
    one = replace(divided(), details=replace(divided().details))
    one.details.__dict__.update(subgroups=replace(divided().subgroups, test=test), hints=[])
    assert not any(said.but for said in wrong(one, one.decide(), divided().culprits, []))


def test_an_error_of_another_shape_is_not_given_a_size():
    s = summary(wave)
    assert (s.levels, s.verdict.size) == ((), "")
    assert "exclude" not in s.verdict.sentence
    assert "p = 0.01" in s.verdict.other  # the evidence is further down


def test_nothing_short_of_certain_is_called_certain():
    level = overconfident().size.levels[-1]
    for right, words in ((0.996, "99.6 %"), (0.9996, "99.96 %"), (0.999999, "over 99.99 %")):
        rare = replace(level, says=0.999, right=right, low=right - 0.01, high=right)
        assert plain.as_right(rare).says == "99.9 %"
        assert plain.as_right(rare).right == words


def test_the_example_is_the_level_that_is_most_off():
    a = overconfident()
    found = plain.example(a, a.decide())
    gaps = {level.says: abs(level.right - level.says) for level in a.size.levels}
    assert found.says == max(gaps, key=gaps.get)
    assert plain.example(one_off(), one_off().decide()) is None  # the top class is as right as said
    assert "most probable class is right about as often" in summary(one_off).verdict.size
    assert plain.example(calm(), calm().decide()) is None


def binary(power, shift=1.0, seed=0, n=900):
    """Return two classes of which "yes" is `shift` times as likely as the power of its odds."""
    rows = predictions(n, ("no", "yes"), seed=seed)
    odds = shift * (rows.probs[:, 1] / rows.probs[:, 0]) ** power
    truth = odds / (1.0 + odds)
    rng = plain_rng(seed)
    labels = ["yes" if hit else "no" for hit in rng.random(n) < truth]
    return mcllo.assess(rows.probs, labels, classes=["no", "yes"], seed=0, n_resamples=99)


def plain_rng(seed):
    import numpy as np

    return np.random.default_rng([seed, 1])


@pytest.mark.parametrize(
    ("power", "shift", "leads"),
    [
        (0.5, 1.0, ["Too extreme, nearer to 0 and 100 % than they should be."]),
        (2.0, 1.0, ["Too timid, further from 0 and 100 % than they could be."]),
        (1.0, 3.0, ["Predicted too rarely"]),
        (-1.0, 1.0, ["Upside down, less often true where predicted more."]),
    ],
)
def test_two_classes_are_off_together(power, shift, leads):
    assert [said.lead for said in two_classes(binary(power, shift), 0.05)] == leads


def test_two_classes_whose_fault_does_not_show():
    (said,) = two_classes(binary(1.0), 0.05)
    assert said.lead == "Both classes are off, in a way that these rows do not show."


def culprits(**changes):
    return replace(overconfident().culprits, **changes)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"kind": "temperature", "slope": 1.5}, "too timid, further from"),
        ({"kind": "temperature", "slope": -0.5}, "what is predicted more comes true less"),
        ({"kind": "shift"}, "predicted too often or too rarely"),
    ],
)
def test_what_all_classes_have_in_common_is_said_once(found, words):
    a = overconfident()
    (said,) = wrong(a, a.decide(), culprits(**found), [])
    assert words in said.lead
    assert said.names == ()


def test_classes_that_are_wrong_in_one_way_share_a_line():
    (kind,) = one_off().culprits.details
    steep = {"gamma": 0.5, "gamma_interval": (0.4, 0.6)}
    fine = {"predicted": kind.observed, "low": 0.0, "high": 1.0}
    details = tuple(replace(kind, label=f"c{j}", **steep, **fine) for j in range(8))
    details += (replace(kind, label="odd", **fine, gamma_interval=(0.5, 1.5)),)
    found = replace(one_off().culprits, details=details)
    many_, odd = wrong(one_off(), one_off().decide(), found, [])
    assert [cell.text for cell, _ in many_.names] == [f"c{j}" for j in range(6)]
    assert many_.rest == "and 2 more"
    assert odd.lead.startswith("Off, in a way that these rows do not show")


def codes(steps):
    return [step.code for step in steps if step.code]


SHELL = Tongue(True, ("my rows.csv", "judged.csv"))


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_python_is_advised_python_and_the_shell_commands(make):
    a = make()
    assert next_steps(a, a.decide(), Tongue())
    for code in codes(next_steps(a, a.decide(), Tongue())):
        ast.parse(code)
    for code in codes(next_steps(a, a.decide(), SHELL)):
        assert all(line.startswith("mcllo ") for line in code.splitlines())
        assert "'my rows.csv'" in code or code == SHELL.monitor()  # of batches to come


@pytest.mark.parametrize("make", COMPARED, ids=lambda make: make.__name__)
def test_comparisons_speak_the_tongue_of_their_reader(make):
    c, a = make(), assessment_of(make())
    for tongue in (Tongue(), SHELL):
        found = codes(repair_steps(c, a, a.decide(), tongue))
        more = tongue.assess_judged(c.cross_validated)
        for code in (*found, more):
            lines = code.splitlines()
            assert all(line.startswith("mcllo ") for line in lines) == tongue.shell
    assert "judged.csv" in SHELL.assess_judged(False)
    assert "'my rows.csv'" in SHELL.assess_judged(True)
    assert "ROWS.csv" in Tongue(True, ("-",)).compare()


def test_a_page_shows_no_code_of_the_other_tongue():
    shell = summarize(compared(), command="mcllo compare a b", source=["a.csv", "b.csv"])
    page = Page(render_html(shell, PICTURES))
    assert page.all("pre")
    assert all(e["text"].startswith("mcllo ") for e in page.all("pre"))
    assert "mcllo.report" not in render_markdown(shell)
    python = Page(render_html(summary(compared), PICTURES))
    assert all("mcllo." in e["text"] for e in python.all("pre"))


@pytest.mark.parametrize("make", [*EVERY, *COMPARED], ids=lambda make: make.__name__)
def test_nobody_is_told_to_look_again_and_again(make):
    text = render_markdown(summary(make))
    for words in ("when there are new rows", "--gate", "again when"):
        assert words not in text


def test_every_hint_has_a_step_and_takes_the_verdict_back():
    assert set(HINTED) == set(plain.BUTS)
    a = replace(own_rows())
    a.details.__dict__["hints"] = [Statement("hint.new", "New.", "bad")]
    try:
        assert [step.text for step in next_steps(a, a.decide(), Tongue())] == [LOOK]
        assert plain.buts(a, a.decide()) == ("But read first what stands above.",)
    finally:
        del a.details.__dict__["hints"]


@pytest.mark.parametrize(
    ("make", "kind", "first", "said"),
    [
        (helped, "matters", "Fit temperature scaling on all rows", "beyond chance"),
        (helped, "little", "Fit temperature scaling on all rows", "as small as the error"),
        (helped, "none_found", "Fit temperature scaling", "a repair may mend others"),
        (helped, "cannot_tell", "Fit temperature scaling", "Judge it on more rows"),
        (compared, "matters", "Do not take these probabilities", "The probabilities are off, but"),
        (compared, "none_found", "Leave the predictions as they are", "may lead by chance"),
        (compared, "cannot_tell", "Collect more rows", "too few for either question"),
    ],
)
def test_verdict_and_recommendation_do_not_contradict_each_other(make, kind, first, said):
    c, a = make(), assessment_of(make())
    judged = replace(a.decide(), kind=kind)
    steps = repair_steps(c, a, judged, Tongue())
    assert steps[0].text.startswith(first)
    assert said in reconciled(c, judged)
    shown = c.recommendation.improves
    assert recommended(c).startswith("Recommended repair: temperature" if shown else "None of 3 ")
    assert any("Fit" in step.text for step in steps) == shown
    if kind == "matters":
        assert not any("Leave" in step.text for step in steps)


def test_what_is_judged_in_a_comparison_is_said():
    assert summary(compared).verdict.about == "The predictions as they are"
    assert summary(overconfident).verdict.about == ""
    assert "The predictions as they are Miscalibrated" in first_screen(compared)


def test_a_comparison_accuses_no_class():
    assert summary(compared).wrong == ()
    assert "assess these rows" in summary(compared).blame.lead
