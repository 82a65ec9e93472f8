import json

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import MCLLOFit, Predictions, assess, baseline_sensitivity, class_tests, ladder
from mcllo._assessment.words import (
    baseline_line,
    class_line,
    departure_lines,
    departures,
    detail_lines,
    full_sections,
    heading,
    notes,
    parameter_table,
    verdict,
    wrapped_prose,
)
from mcllo._fit.fit import fit_predictions
from mcllo._inference.budget import BRIEF_NESTED_WORK
from mcllo._inference.likelihood_tests import run_test


@pytest.fixture(scope="module")
def toy():
    return assess(TOY_X, TOY_Y, n_resamples=99, seed=1)


def test_parts_are_those_of_their_functions(toy):
    options = {"n_resamples": 99, "seed": 1}
    brief = {**options, "work": BRIEF_NESTED_WORK}
    assert toy.details.ladder.to_dict() == ladder(TOY_X, TOY_Y, **brief).to_dict()
    assert toy.details.class_tests.to_dict() == class_tests(TOY_X, TOY_Y, **brief).to_dict()
    baselines = baseline_sensitivity(TOY_X, TOY_Y, **options)
    assert toy.details.baselines.to_dict() == baselines.to_dict()


def test_the_ladder_shares_the_test_of_the_verdict(toy):
    assert toy.details.ladder.row("identity").larger_pvalue == toy.test.pvalue


def test_nothing_is_computed_before_it_is_asked_for():
    details = assess(TOY_X, TOY_Y, n_resamples=99, seed=1).details
    assert not {"ladder", "class_tests", "baselines"} & set(details.__dict__)


def test_everything_is_in_to_dict(toy):
    content = toy.to_dict()
    json.dumps(content, allow_nan=False)
    assert next(row["model"] for row in content["ladder"]["rows"]) == "identity"
    assert {"class_tests", "baselines", "posterior", "zeros", "robust", "skipped"} <= set(content)
    assert content["zeros"] is None
    # methods.md 6, TOY
    assert content["posterior"]["posterior"] == pytest.approx(0.99311890, abs=1e-8)


def test_dependent_rows_leave_out_what_needs_independence():
    a = assess(TOY_X, TOY_Y, groups=np.arange(16) // 2, seed=1)
    d = a.details
    assert d.ladder is d.class_tests is d.baselines is d.posterior is None
    assert d.robust.pvalue == a.test.pvalue
    assert a.companions == {}
    assert a.nulls == {}
    assert "Left out: ladder: it assumes independent rows" in a.text(full=True)


def test_two_classes_have_no_baseline_question():
    a = assess(TOY_X[:, :2] / TOY_X[:, :2].sum(axis=1, keepdims=True), TOY_Y % 2, seed=1)
    assert a.details.baselines is None
    assert "Baseline" not in str(a)


def test_many_baselines_are_left_out_with_a_word():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(60), size=300)
    a = assess(probs, rng.integers(60, size=300), method="chi2", seed=1)
    assert a.details.baselines is None
    assert "baselines=" in a.details.skipped["baselines"]


def test_zeros_get_a_line():
    probs = np.array(TOY_X)
    probs[0] = [1.0, 0.0, 0.0]
    with pytest.warns(UserWarning, match="probabilities were 0"):
        a = assess(probs, TOY_Y, n_resamples=99, seed=1)
    assert a.details.zeros is not None
    assert "Zeros: " in str(a)


def test_very_many_classes_are_not_fitted_one_by_one(monkeypatch):
    from mcllo._assessment import details as _details

    monkeypatch.setattr(_details, "MOST_CLASSES", 2)
    a = assess(TOY_X, TOY_Y, n_resamples=99, seed=1)
    assert a.details.ladder is a.details.class_tests is None
    assert "3 classes are too many" in a.details.skipped["ladder"]


@pytest.fixture(scope="module")
def sharp():
    rng = np.random.default_rng(0)
    honest = rng.dirichlet([1, 1, 1], size=2000)
    y = np.array(["a", "b", "c"])[(honest.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)]
    raised = honest**2
    return assess(raised / raised.sum(axis=1, keepdims=True), y, classes=["a", "b", "c"], seed=1)


def test_a_rejection_is_explained(sharp):
    kind, classes, baseline = detail_lines(sharp, 0.05)
    assert kind.startswith("Kind: One temperature is enough: all log odds are too extreme")
    assert classes.startswith("Worst classes: ")
    assert baseline.startswith("Baseline: statistic ")


def test_without_a_rejection_there_is_nothing_to_explain():
    toy = assess(TOY_X, TOY_Y, n_resamples=99, seed=1)
    assert [line.split(":")[0] for line in detail_lines(toy, 0.05)] == ["Baseline"]


def test_classes_are_named_worst_first(sharp):
    tests = sharp.details.class_tests
    p = dict(zip(tests.table["class"], tests.table["adjusted"], strict=True))
    first = class_line(tests, 0.05).removeprefix("Worst classes: ").split()[0]
    assert first == min(("a", "b"), key=p.get)
    assert class_line(tests, 1e-300).startswith("Worst classes: no single one stands out")


def test_the_baseline_line_has_the_p_value_over_all(sharp):
    line = baseline_line(sharp.details.baselines)
    assert "over all of them; repaired probabilities move by" in line


def test_full_shows_every_part(sharp):
    text = "\n".join(full_sections(sharp))
    for word in ("common_slope", "p (Holm)", "label_changes", "posterior", "Shares, predicted"):
        assert word in text
    assert sharp.text(full=True).startswith(str(sharp))


def test_prose_is_wrapped_and_tables_are_not():
    prose, table = "word " * 40, "a  b" + "  c" * 60
    wrapped = wrapped_prose(f"{prose}\n{table}").splitlines()
    assert max(map(len, wrapped[:-1])) <= 96
    assert wrapped[-1] == table


TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def fitted(delta, gamma, se=0.02):
    """A fit with given estimates and equal standard errors."""
    k = len(delta)
    return MCLLOFit(
        tau=np.log(delta),
        gamma=np.array(gamma, dtype=float),
        classes=(*(f"c{j}" for j in range(k)), "base"),
        baseline="base",
        cov_theta=np.eye(2 * k) * se**2,
        log_likelihood=-1.0,
        log_likelihood_null=-2.0,
        n_samples=10,
        df=2 * k,
        penalty=0.0,
        converged=True,
        n_iter=3,
        gradient_norm=0.0,
        separated=False,
    )


def test_no_departure_at_the_identity():
    fit = fitted([1.0, 1.0], [1.0, 1.0])
    assert departures(fit) == []
    assert departure_lines(fit) == [
        "No single class stands out; the departure is spread over several."
    ]


@pytest.mark.parametrize(
    ("delta", "gamma", "words"),
    [
        (1.15, 0.55, "too extreme, gamma 0.55 [0.51, 0.59]; odds understated by 1.15 [1.11, 1.20]"),
        (1.0, 1.5, "too timid, gamma 1.50 [1.46, 1.54]"),
        (0.5, 1.0, "odds overstated by 2.00 [1.92, 2.08]"),
        (1.0, -0.3, "ranked the wrong way, gamma -0.30 [-0.34, -0.26]"),
    ],
)
def test_sentences_by_hand(delta, gamma, words):
    # intervals: gamma -/+ 1.96 * 0.02; delta: exp(log delta -/+ 0.0392)
    (found,) = departures(fitted([delta], [gamma]))
    assert found.sentence == f"c0 vs base: {words}"
    assert found.label == "c0"


def test_the_largest_departure_comes_first_and_long_lists_are_cut():
    fit = fitted(np.ones(20), 1.0 - 0.04 * np.arange(1, 21))
    assert departures(fit)[0].label == "c19"
    lines = departure_lines(fit)
    assert len(lines) == 13
    assert lines[-1] == f"... and {len(departures(fit)) - 12} more classes"
    assert "... and 8 more classes" in parameter_table(fit)


def test_verdict_words():
    test = run_test(TOY, fit_predictions(TOY), method="chi2")
    assert "no miscalibration found at level 0.05 (p = 0.89)" in verdict(test)
    assert "not proof of" in verdict(test)
    assert verdict(test, alpha=0.95).startswith("Verdict: not calibrated.")


def test_heading_says_what_was_read():
    assert heading(TOY) == "Calibration of 16 predictions of 3 classes (baseline: 2)"
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.ones(16))
    assert ", frequency weights" in heading(weighted)


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
def test_notes_on_absent_classes_and_separation():
    y = np.where(TOY_Y == 2, 0, TOY_Y)
    p = Predictions.from_arrays(TOY_X, y, classes=range(3))
    lines = notes(p, fit_predictions(p))
    assert any("no row is labelled 2" in line for line in lines)
    assert any("does not exist (labels are separated in 2)" in line for line in lines)
    assert "the estimates do not exist" in departure_lines(fit_predictions(p))[0]
    assert notes(TOY, fit_predictions(TOY)) == []


def test_hostile_names_stay_on_one_line():
    fit = fitted([1.0], [0.5])
    object.__setattr__(fit, "classes", ("a\nb" * 50, "base"))
    (found,) = departures(fit)
    assert "\n" not in found.sentence
    assert len(found.sentence) < 100
