"""`_report.verdict_section`, `_report.facts` and `_report.recalibrations`: evidence, facts, which
recalibration.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from approval import check_text, sections
from report_data import (
    PETS,
    calm,
    compared,
    few,
    few_groups,
    grouped,
    helped,
    mixed_up,
    overconfident,
    own_rows,
    predictions,
    separated,
    slight,
    wave,
)

import mcllo
from mcllo._apps.report import plain, recalibrations
from mcllo._apps.report.facts import (
    data_facts,
    input_checksum_fact,
    reproduce_facts,
    used_seed,
)
from mcllo._apps.report.recalibrations import (
    comparison_table,
    short_name,
    summarize_comparison,
)
from mcllo._apps.report.steps import CodeLanguage, next_steps
from mcllo._apps.report.verdict_section import build_verdict, headline_facts
from mcllo._assessment.assessment import metrics_expected_if_calibrated
from mcllo._inference.hypothesis_test import Reason
from mcllo._model.compiled import kernel_name
from mcllo._utils.statements import select_statements, suppress_warnings
from mcllo._version import __version__
from mcllo.calibrators import CALIBRATORS


def with_test(a, **changes):
    return replace(a, test=replace(a.test, **changes))


def test_promises_by_hand():
    # accuracy max(.7, .3) = .7; log loss -(.7 ln .7 + .3 ln .3) = .61086; Brier 1 - .49 - .09 = .42
    p = mcllo.Predictions.from_arrays([[0.7, 0.3], [0.7, 0.3]], [0, 1])
    assert metrics_expected_if_calibrated(p) == pytest.approx(
        {"accuracy": 0.7, "log_loss": 0.6108643, "brier": 0.42}
    )
    p = mcllo.Predictions.from_arrays(
        [[0.9, 0.1], [0.5, 0.5]], [0, 1], sample_weight=[3, 1]
    )
    assert metrics_expected_if_calibrated(p)["accuracy"] == pytest.approx(
        (3 * 0.9 + 0.5) / 4
    )


def test_promises_are_the_mean_over_simulated_labels():
    p = predictions(4000, PETS, seed=3)
    expected = metrics_expected_if_calibrated(p)
    # Labels were drawn from these probabilities: 4000 rows leave an error of about 0.01.
    assert mcllo.metrics.log_loss(None, p) == pytest.approx(
        expected["log_loss"], abs=0.03
    )
    assert mcllo.metrics.brier_score(None, p) == pytest.approx(
        expected["brier"], abs=0.03
    )


def unknown():
    return with_test(calm(), pvalue=math.nan, statistic=math.nan)


def refuted():
    """One label had probability 0."""
    probs = predictions(60, PETS).probs.copy()
    probs[0] = [0.0, 0.5, 0.5]
    with suppress_warnings():
        return mcllo.assess(
            probs, ["cat"] + list(PETS) * 19 + ["dog", "dog"], classes=PETS, seed=0
        )


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
    changes = {"method": "exact", "n_resamples": 199, "reason": "zeros were clipped"}
    return with_test(calm(), pvalue=pvalue, **changes)


CARDS = {
    "miscalibrated": overconfident,
    "negligible": slight,
    "none found": calm,
    "too few rows": few,
    "too few groups": few_groups,
    "columns in another order": mixed_up,
    "judged on its own rows": own_rows,
    "only an omnibus test rejects": wave,
    "no statistic": unknown,
    "groups": grouped,
    "survey weights": lambda: weighted(200, weight_kind="survey"),
    "a baseline chosen by the labels": lambda: mcllo.assess(
        predictions(600, PETS, 2.0), baseline="auto", seed=0, n_resamples=99
    ),
    "simulated": lambda: simulated(0.04),
    "simulated, no smaller p-value": lambda: simulated(0.005),
    "a bound": lambda: with_test(
        calm(), method="bound", pvalue=2e-20, reason="zeros were clipped"
    ),
    "as asked": lambda: with_test(calm(), reason="as asked", why=Reason("asked")),
    "no reason": lambda: with_test(calm(), reason=""),
    "separated": separated,
    "separated and rejected": lambda: with_test(separated(), pvalue=0.001),
    "a label of probability 0": refuted,
    "a label below a floor": clipped,
}


def card(a):
    """Everything that the first screen says, and the evidence."""
    said, judged = a.statements(), a.decide()
    v = build_verdict(a, judged, said)
    lines = [
        f"{v.kind}: {v.headline} {v.sentence} {v.size}",
        *(f"but: {but}" for but in v.buts),
    ]
    lines += [f"{v.pvalue}. {v.how}. {v.why} {v.other}"]
    lines += [
        f"alert: {alert}"
        for alert in plain.alert_texts(a, select_statements(said, "data_check"))
    ]
    lines += [f"{f.name}: {f.value} ({f.note})" for f in headline_facts(a, judged)]
    lines += [
        f"says {r.says}: right {r.right} ({r.interval})"
        for r in plain.levels(a, judged)
    ]
    for step in next_steps(a, judged, CodeLanguage()):
        lines += [
            f"step: {step.text}",
            *(f"    {line}" for line in step.code.splitlines()),
        ]
    return "\n".join(lines)


def test_first_screens(approve):
    cards = {name: card(make()) for name, make in CARDS.items()}
    check_text("first_screens.txt", sections(cards), approve)


def by_key(facts):
    return {fact.key: fact for fact in facts}


def changed():
    """Rows that do not sum to 1, some with a 0 of the class that came true, and that count."""
    with suppress_warnings():
        return mcllo.assess(
            [[0.0, 0.5, 0.49], [0.3, 0.3, 0.39], [0.2, 0.4, 0.39]] * 4,
            ["a", "b", "c"] * 4,
            classes=list("abc"),
            normalize=True,
            sample_weight=[1, 2, 4] * 4,
            seed=0,
        )


FACTS = {
    "an assessment": lambda: (overconfident(), None),
    "groups": lambda: (grouped(), None),
    "survey weights": lambda: (weighted(200, weight_kind="survey"), None),
    "zeros, sums and weights": lambda: (changed(), None),
    "separated": lambda: (separated(), None),
    "a comparison": lambda: (calm(), compared()),
    "a comparison by folds": lambda: (
        calm(),
        replace(compared(), cross_validated=True),
    ),
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
    fact = input_checksum_fact(str(path))
    assert fact.value == "rows.csv"
    assert (
        fact.note
        == "SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    for other in ("-", str(tmp_path)):
        assert input_checksum_fact(other).note == "not a file: no checksum"


def test_rarest_and_commonest_class_by_hand():
    p = mcllo.Predictions.from_arrays(
        [[0.5, 0.3, 0.2]] * 5, list("aabba"), classes=list("abc")
    )
    with suppress_warnings():
        facts = by_key(data_facts(mcllo.assess(p, seed=0, n_resamples=19), None))
    assert (facts["commonest"].value, facts["commonest"].note) == (
        "a",
        "3 rows, 60.0 %",
    )
    assert (facts["rarest"].value, facts["rarest"].note) == ("c", "0 rows, 0.0 %")
    assert facts["absent"].value == "c"


def test_reproduce(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x")
    facts = reproduce_facts(
        overconfident(), None, ["mcllo", "assess", "my rows.csv"], path
    )
    found = by_key(facts)
    assert found["version"].value == f"mcllo {__version__}"
    assert found["version"].note.startswith(f"kernel: {kernel_name()}, Python ")
    assert found["command"].value == "mcllo assess 'my rows.csv'"
    assert found["seed"].value == "0"
    assert "SHA-256" in found["source"].note


def surveyed():
    """Survey weights, and a baseline that the labels chose."""
    a, p = calm(), calm().predictions
    weights = {"sample_weight": np.full(p.n_samples, 1.5), "weight_kind": "survey"}
    return with_test(replace(a, predictions=replace(p, **weights)), kind="max_score")


def test_without_a_command_the_call_is_shown():
    survey = "baseline='auto', sample_weight=weight, weight_kind='survey'"
    for a, c, call in (
        (overconfident(), None, "assess(probs, y, baseline='truck', seed=0)"),
        (calm(), compared(), "compare(train, holdout, baseline='truck', seed=0)"),
        (grouped(), None, "assess(probs, y, baseline='truck', groups=groups, seed=0)"),
        (surveyed(), None, f"assess(probs, y, {survey}, seed=0)"),
    ):
        assert (
            by_key(reproduce_facts(a, c, None, None))["command"].value
            == f"mcllo.{call}"
        )


def test_the_seed_is_that_of_the_draws_and_none_where_nothing_was_drawn():
    assert used_seed(mcllo.assess(predictions(50, PETS), seed=5, n_resamples=19)) == 5
    assert (
        used_seed(replace(calm(), null_distributions={}, omnibus_tests={})) == 0
    )  # the p over all baselines
    a = mcllo.assess(predictions(600, ("a", "b")), seed=0, n_resamples=19)
    a = replace(a, null_distributions={}, omnibus_tests={})
    assert used_seed(a) == 0  # sizes are drawn from the law of the estimate
    size = replace(a.effect_size, n_resamples=0)
    a = replace(a, details=replace(a.details, effect_size=size))
    assert used_seed(a) is None
    seed = by_key(reproduce_facts(a, None, "run", None))["seed"]
    assert (seed.value, seed.note) == ("none", "no random numbers were used")


def with_rows(c, **rows):
    """Return the comparison with values of some rows replaced: ``mcllo={"log_loss": 0.1}``."""
    new = tuple(replace(row, **rows.get(row.method, {})) for row in c.rows)
    return replace(c, rows=new)


def recalibrated(c, **changes):
    """Return what is said of a comparison whose predictions as they are were judged by default."""
    return summarize_comparison(c, replace(overconfident().decide(), **changes))


def test_what_is_said_of_the_recalibrated_predictions():
    unknown = {"pvalue": math.nan, "pvalue_corrected": None}
    bound = {"pvalue": 1e-9, "pvalue_corrected": 1e-8, "corrected_method": "bound"}
    for values, words in (
        (
            {"pvalue": 0.2, "pvalue_corrected": None},
            "no miscalibration is found at level 0.05",
        ),
        ({"pvalue_corrected": 0.9}, "not proof of calibration"),
        (
            {"pvalue": 0.01, "pvalue_corrected": 0.3},
            "corrected for the noise of the fitted map",
        ),
        ({"pvalue": 0.01, "pvalue_corrected": None}, "makes this p too small"),
        (
            {"pvalue": 0.01, "pvalue_corrected": 0.01},
            "after temperature scaling the test rejects",
        ),
        (unknown, "could not be tested"),
        (bound, "rejects calibration (p ≤ 10⁻⁸, corrected"),
    ):
        assert words in recalibrated(with_rows(helped(), temperature=values)).after


def test_the_table_marks_the_best_and_ranks_by_log_loss():
    table = comparison_table(compared())
    assert set(CALIBRATORS) <= set(recalibrations.NAMES)
    names = [row[0].text for row in table.rows]
    assert names == [
        "MCLLO",
        "Temperature",
        "Histogram",
        "Uncalibrated",
        "Uncalibrated (train)",
    ]
    for title, best in (("Log loss", "MCLLO"), ("ECE, top label", "Histogram")):
        j = [head.title for head in table.columns].index(title)
        assert [row[0].text for row in table.rows if row[j].mark == "best"] == [best]
    assert all(
        cell.mark == "" for cell in table.rows[-1]
    )  # other rows than the judged ones
    assert (
        "other folds"
        in comparison_table(replace(compared(), cross_validated=True)).caption
    )


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
        with_rows(
            compared(),
            mcllo={"note": "flat likelihood"},
            histogram={"n_zero_labels": 4},
        ),
        skipped={"vector": "needs logits, and there are none (pass logits=)"},
    )
    r = recalibrated(c)
    assert [(w.key, w.value) for w in r.warnings] == [
        ("mcllo", "flat likelihood"),
        ("vector", "Needs logits, and there are none (pass logits=)."),
    ]
    assert any("Histogram 4" in note for note in r.notes)


def test_a_corrected_p_that_is_withheld_says_why():
    none = {
        "pvalue_corrected": None,
        "corrected_method": "",
        "corrected_reason": "its fit warned",
    }
    said = "There is no corrected p of mcllo: in training, its fit warned."
    c = with_rows(compared(), mcllo=none)
    assert said in recalibrated(c).notes
    assert said in " ".join(str(c).split())
    assert c.to_dict()["rows"][2]["corrected_reason"] == "its fit warned"


def test_a_bound_is_shown_as_one():
    small = {"pvalue": 1e-30, "pvalue_corrected": 1e-20}
    small |= {"pvalue_method": "bound", "corrected_method": "bound"}
    rows = comparison_table(with_rows(compared(), mcllo=small)).rows
    texts = [cell.text for cell in next(row for row in rows if row[0].text == "MCLLO")]
    assert {"≤ 10⁻³⁰", "≤ 10⁻²⁰"} <= set(texts)
