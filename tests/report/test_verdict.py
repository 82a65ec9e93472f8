"""`_report.verdict` and `_report.repairs`: the first screen, facts, and which repair to apply."""

import ast
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from approval import check_text, sections
from report_data import PETS, calm, compared, grouped, overconfident, predictions, separated, wave

import mcllo
from mcllo._ground.statements import quiet
from mcllo._inference.likelihood_tests import NAMES, WAYS
from mcllo._inference.pvalue import Ground, Reason
from mcllo._report import repairs
from mcllo._report.repairs import comparison_table, repair_steps, repairs_of, short_name, title_of
from mcllo._report.verdict import (
    alerts_and_notes,
    data_facts,
    expected_metrics,
    headline_facts,
    how_tested,
    next_steps,
    reproduce_facts,
    room_left,
    seed_of,
    source_fact,
    sources,
    verdict_of,
)
from mcllo._version import __version__
from mcllo.calibrators import CALIBRATORS


def with_test(a, **changes):
    return replace(a, test=replace(a.test, **changes))


def test_expected_metrics_of_one_row_by_hand():
    # accuracy max(.7, .3) = .7; log loss -(.7 ln .7 + .3 ln .3) = .61086; Brier 1 - .49 - .09 = .42
    p = mcllo.Predictions.from_arrays([[0.7, 0.3], [0.7, 0.3]], [0, 1])
    assert expected_metrics(p) == pytest.approx(
        {"accuracy": 0.7, "log_loss": 0.6108643, "brier": 0.42}
    )


def test_expected_metrics_weigh_rows():
    p = mcllo.Predictions.from_arrays([[0.9, 0.1], [0.5, 0.5]], [0, 1], sample_weight=[3, 1])
    assert expected_metrics(p)["accuracy"] == pytest.approx((3 * 0.9 + 0.5) / 4)


def test_expected_metrics_are_the_mean_over_simulated_labels():
    p = predictions(4000, PETS, seed=3)
    expected = expected_metrics(p)
    # Labels were drawn from these probabilities: 4000 rows leave an error of about 0.01.
    assert mcllo.metrics.log_loss(None, p) == pytest.approx(expected["log_loss"], abs=0.03)
    assert mcllo.metrics.brier_score(None, p) == pytest.approx(expected["brier"], abs=0.03)


def unknown():
    return with_test(calm(), pvalue=math.nan, statistic=math.nan)


def refuted():
    """One label had probability 0."""
    probs = predictions(60, PETS).probs.copy()
    probs[0] = [0.0, 0.5, 0.5]
    with quiet():
        return mcllo.assess(probs, ["cat"] + list(PETS) * 19 + ["dog", "dog"], classes=PETS, seed=0)


def clipped():
    """A floor that raised more than zeros."""
    facts = {"clip": 0.01, "n_zeros": 1, "n_clipped": 5, "n_clipped_true": 2}
    return replace(calm(), predictions=replace(calm().predictions, **facts))


def weighted(n, **options):
    rows = predictions(n, PETS, 1.2)
    weight = np.linspace(0.5, 3.0, n)
    return mcllo.assess(
        rows.probs, rows.codes, sample_weight=weight, seed=0, n_resamples=99, **options
    )


def simulated(pvalue):
    changes = {"method": "exact", "n_resamples": 199, "reason": "zeros were raised"}
    return with_test(calm(), pvalue=pvalue, **changes)


CARDS = {
    "rejected": overconfident,
    "not rejected": calm,
    "only an omnibus test rejects": wave,
    "no statistic": unknown,
    "groups": grouped,
    "survey weights": lambda: weighted(200, weight_kind="survey"),
    "fractional weights": lambda: weighted(60),
    "a baseline chosen by the labels": lambda: mcllo.assess(
        predictions(600, PETS, 2.0), baseline="auto", seed=0, n_resamples=99
    ),
    "simulated": lambda: simulated(0.04),
    "simulated, no smaller p-value": lambda: simulated(0.005),
    "a bound": lambda: with_test(calm(), method="bound", pvalue=2e-20, reason="zeros were raised"),
    "as asked": lambda: with_test(calm(), reason="as asked", why=Reason(Ground.ASKED)),
    "no reason": lambda: with_test(calm(), reason=""),
    "separated": separated,
    "separated and rejected": lambda: with_test(separated(), pvalue=0.001),
    "a label of probability 0": refuted,
    "a label below a floor": clipped,
}


def card(a):
    """Everything that the first screen says."""
    said = a.statements()
    v, (alerts, notes) = verdict_of(a, said), alerts_and_notes(a, said)
    lines = [f"{v.status}: {v.headline} {v.sentence}", f"{v.pvalue}. {v.how}. {v.why}"]
    lines += [f"alert: {alert}" for alert in alerts] + [f"note: {note}" for note in notes]
    for step in next_steps(a, v.status):
        lines += [f"step: {step.text}", *(f"    {line}" for line in step.code.splitlines())]
    return "\n".join(lines)


def test_first_screens(approve):
    cards = {name: card(make()) for name, make in CARDS.items()}
    check_text("first_screens.txt", sections(cards), approve)


def test_every_way_and_every_statistic_has_words():
    test = calm().test
    for method in ("chi2", "exact", *WAYS):
        for kind in NAMES:
            text = how_tested(replace(test, method=method, kind=kind, n_resamples=9))
            assert NAMES[kind].lower() in text.lower()
            assert method == "exact" or "simulated" not in text
    assert "by new" in how_tested(replace(test, method="new"))
    assert "times the number of baselines" in how_tested(replace(test, method="bonferroni"))
    assert "from the F distribution" in how_tested(replace(test, method="f"))


def test_room_left_is_the_hull_of_the_slope_intervals():
    a = calm()
    low, high = a.fit.confidence_interval().gamma.min(), a.fit.confidence_interval().gamma.max()
    assert f"between {low:.2f} and {high:.2f}" in room_left(a.fit)
    assert "do not determine the slopes" in room_left(separated().fit)


def by_key(facts):
    return {fact.key: fact for fact in facts}


def test_headline_facts_show_the_null_range():
    a, null = overconfident(), overconfident().nulls["ece"]
    facts = by_key(headline_facts(a))
    assert facts["accuracy"].value == "60.0 %"  # 360 of 600 rows
    assert facts["ece"].note == f"{null.low:.4f} to {null.high:.4f} if calibrated"
    assert by_key(headline_facts(replace(a, nulls={})))["ece"].note == ""


def changed():
    """Rows that do not sum to 1, some with a 0 of the class that came true, in parts of rows."""
    with quiet():
        return mcllo.assess(
            [[0.0, 0.5, 0.49], [0.3, 0.3, 0.39], [0.2, 0.4, 0.39]] * 4,
            ["a", "b", "c"] * 4,
            classes=list("abc"),
            normalize=True,
            sample_weight=[0.5, 1.0, 2.0] * 4,
            seed=0,
        )


FACTS = {
    "an assessment": lambda: (overconfident(), None),
    "groups": lambda: (grouped(), None),
    "survey weights": lambda: (weighted(200, weight_kind="survey"), None),
    "zeros, sums and weights": lambda: (changed(), None),
    "separated": lambda: (separated(), None),
    "a comparison": lambda: (calm(), compared()),
    "a comparison by folds": lambda: (calm(), replace(compared(), cross_validated=True)),
}


def test_facts_of_the_data(approve):
    lines = {
        name: "\n".join(
            f"{fact.name}: {fact.value}{f' ({fact.note})' * bool(fact.note)}"
            for fact in data_facts(*make())
        )
        for name, make in FACTS.items()
    }
    check_text("data_facts.txt", sections(lines), approve)


def test_checksum_of_known_bytes(tmp_path):
    # SHA-256 of "abc": FIPS 180-2, appendix B.1
    path = tmp_path / "rows.csv"
    path.write_bytes(b"abc")
    fact = source_fact(str(path))
    assert fact.value == "rows.csv"
    assert fact.note == ("SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


def test_what_is_no_file_has_no_checksum(tmp_path):
    for path in ("-", str(tmp_path)):
        assert source_fact(path).note == "not a file: no checksum"


def test_sources_are_one_or_several(tmp_path):
    assert sources(None) == []
    assert sources("a.csv") == ["a.csv"]
    assert sources([tmp_path, "b.csv"]) == [str(tmp_path), "b.csv"]


def test_rarest_and_commonest_class_by_hand():
    p = mcllo.Predictions.from_arrays([[0.5, 0.3, 0.2]] * 5, list("aabba"), classes=list("abc"))
    with quiet():
        facts = by_key(data_facts(mcllo.assess(p, seed=0, n_resamples=19), None))
    assert (facts["commonest"].value, facts["commonest"].note) == ("a", "3 rows, 60.0 %")
    assert (facts["rarest"].value, facts["rarest"].note) == ("c", "0 rows, 0.0 %")
    assert facts["absent"].value == "c"


def test_reproduce(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x")
    facts = reproduce_facts(overconfident(), None, ["mcllo", "assess", "my rows.csv"], path)
    found = by_key(facts)
    assert found["version"].value == f"mcllo {__version__}"
    assert found["command"].value == "mcllo assess 'my rows.csv'"
    assert found["seed"].value == "0"
    assert "SHA-256" in found["source"].note


def surveyed():
    """Survey weights, and a baseline that the labels chose."""
    a, p = calm(), calm().predictions
    weights = {"sample_weight": np.full(p.n_samples, 1.5), "weight_kind": "survey"}
    return with_test(replace(a, predictions=replace(p, **weights)), kind="max_score")


@pytest.mark.parametrize(
    ("make", "comparison", "call"),
    [
        (overconfident, None, "assess(probs, y, baseline='truck', seed=0)"),
        (calm, compared, "compare(train, holdout, baseline='truck', seed=0)"),
        (grouped, None, "assess(probs, y, baseline='truck', groups=groups, seed=0)"),
        (
            surveyed,
            None,
            "assess(probs, y, baseline='auto', sample_weight=weight, weight_kind='survey', seed=0)",
        ),
    ],
)
def test_without_a_command_the_call_is_shown(make, comparison, call):
    facts = reproduce_facts(make(), comparison and comparison(), None, None)
    assert by_key(facts)["command"].value == f"mcllo.{call}"


def test_details_that_were_simulated_have_a_seed():
    assert seed_of(replace(calm(), nulls={}, companions={})) == 0  # the p over all baselines


def test_no_seed_where_nothing_was_drawn():
    a = mcllo.assess(predictions(600, ("a", "b")), seed=0, n_resamples=19)
    a = replace(a, nulls={}, companions={})
    assert seed_of(a) is None
    seed = by_key(reproduce_facts(a, None, "run", None))["seed"]
    assert (seed.value, seed.note) == ("none", "no random numbers were used")


@pytest.mark.parametrize("seed", [0, 5])
def test_the_seed_is_that_of_the_draws(seed):
    assert seed_of(mcllo.assess(predictions(50, PETS), seed=seed, n_resamples=19)) == seed


@cache
def helped():
    """Return a comparison whose recommended repair is shown to help."""
    return mcllo.compare(
        predictions(600, PETS, 2.0),
        predictions(2000, PETS, 2.0, seed=1),
        methods=("mcllo", "temperature", "histogram"),
        seed=0,
        n_resamples=99,
    )


def with_rows(c, **rows):
    """Return the comparison with values of some rows replaced: ``mcllo={"log_loss": 0.1}``."""
    new = tuple(replace(row, **rows.get(row.method, {})) for row in c.rows)
    return replace(c, rows=new)


def test_every_method_has_names():
    assert set(CALIBRATORS) <= set(repairs.NAMES)
    assert short_name("new_method") == title_of("new_method") == "new_method"


def test_the_recommendation_is_that_of_the_comparison():
    c = compared()
    assert repairs_of(c, 0.05).recommendation is c.recommendation


def test_what_is_not_shown_to_help_is_not_to_be_applied():
    same = dict.fromkeys(compared().recalibrated, compared().holdout)  # nothing is changed
    found = repair_steps(replace(compared(), recalibrated=same))
    assert [step.code for step in found] == [""]
    assert found[0].text.startswith("Leave the predictions as they are")
    weak = compared()
    assert (weak.best, weak.recommendation.improves) == ("mcllo", False)
    assert [step.code for step in repair_steps(weak)] == [""]
    assert repair_steps(weak)[0].text.startswith("Apply no repair yet: the gain of ")
    assert repairs_of(weak, 0.05).after == ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pvalue": 0.2, "pvalue_corrected": None}, "no miscalibration is found at level 0.05"),
        ({"pvalue_corrected": 0.9}, "not proof of calibration"),
        ({"pvalue": 0.01, "pvalue_corrected": 0.3}, "corrected for the noise of the fitted map"),
        ({"pvalue": 0.01, "pvalue_corrected": None}, "makes this p too small"),
        (
            {"pvalue": 0.01, "pvalue_corrected": 0.01},
            "Even after temperature scaling the test rejects",
        ),
        ({"pvalue": float("nan"), "pvalue_corrected": None}, "could not be tested"),
        (
            {"pvalue": 1e-9, "pvalue_corrected": 1e-8, "corrected_method": "bound"},
            "rejects calibration (p ≤ 10⁻⁸, corrected",
        ),
    ],
)
def test_what_is_said_of_the_repaired_predictions(values, words):
    assert words in repairs_of(with_rows(helped(), temperature=values), 0.05).after


def test_steps_give_code_that_runs():
    for step in repair_steps(helped()):
        ast.parse(step.code)
    assert "CALIBRATORS['temperature']" in repair_steps(helped())[0].code


def test_the_table_marks_the_best_and_ranks_by_log_loss():
    table = comparison_table(compared())
    names = [row[0].text for row in table.rows]
    assert names == ["MCLLO", "Temperature", "Histogram", "Uncalibrated", "Uncalibrated (train)"]
    for title, best in (("Log loss", "MCLLO"), ("ECE, top label", "Histogram")):
        j = [head.title for head in table.columns].index(title)
        assert [row[0].text for row in table.rows if row[j].mark == "best"] == [best]
    assert all(cell.mark == "" for cell in table.rows[-1])  # other rows than the judged ones


def test_the_table_marks_what_cannot_be_told_from_the_best():
    c = helped()
    cells = {row[0].text: row[2] for row in comparison_table(c).rows}
    ties = {name for name, cell in cells.items() if cell.mark == "tie"}
    assert ties == {short_name(method) for method in c.recommendation.ties}
    assert ties == {"MCLLO"}
    assert cells["Temperature"].text == "best"
    assert cells["Uncalibrated (train)"].text == "-"
    for other in c.recommendation.differences:
        assert cells[short_name(other.method)].text == other.cell
        assert cells[short_name(other.method)].sort == other.difference


def test_warnings_zero_labels_and_skipped_methods_are_told():
    c = replace(
        with_rows(compared(), mcllo={"note": "flat likelihood"}, histogram={"n_zero_labels": 4}),
        skipped={"vector": "needs logits, and there are none (pass logits=)"},
    )
    r = repairs_of(c, 0.05)
    assert [(w.key, w.value) for w in r.warnings] == [
        ("mcllo", "flat likelihood"),
        ("vector", "Needs logits, and there are none (pass logits=)."),
    ]
    assert any("Histogram 4" in note for note in r.notes)


def test_a_corrected_p_that_is_withheld_says_why():
    none = {"pvalue_corrected": None, "corrected_method": "", "corrected_reason": "its fit warned"}
    said = "There is no corrected p of mcllo: in training, its fit warned."
    c = with_rows(compared(), mcllo=none)
    assert said in repairs_of(c, 0.05).notes
    assert said in " ".join(str(c).split())
    assert c.to_dict()["rows"][2]["corrected_reason"] == "its fit warned"


def test_a_bound_is_shown_as_one():
    small = {"pvalue": 1e-30, "pvalue_corrected": 1e-20}
    small |= {"pvalue_method": "bound", "corrected_method": "bound"}
    rows = comparison_table(with_rows(compared(), mcllo=small)).rows
    texts = [cell.text for cell in next(row for row in rows if row[0].text == "MCLLO")]
    assert {"≤ 10⁻³⁰", "≤ 10⁻²⁰"} <= set(texts)


def test_cross_validation_is_said():
    caption = comparison_table(replace(compared(), cross_validated=True)).caption
    assert "other folds" in caption
