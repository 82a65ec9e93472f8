"""What an assessment says: kinds, levels and numbers of its statements, and its text."""

from dataclasses import replace
from functools import cache

import data
import numpy as np
import pytest
from approval import check_text, sections
from report_data import wave
from toy import TOY_X, TOY_Y

from mcllo import MCLLOFit, Predictions, assess
from mcllo._assessment.words import departures, notes, parameter_table, wrapped_prose
from mcllo._diagnosis.class_tests import StandsOut
from mcllo._fit.fit import fit_predictions
from mcllo._ground.statements import pick, quiet

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


@cache
def toy():
    return assess(TOY, method="chi2", n_resamples=99, seed=1)


@cache
def sharp():
    return data.sharp().assess()


def without_statistic():
    a = toy()
    return replace(a, test=replace(a.test, statistic=np.nan, pvalue=np.nan), companions={})


def weighted():
    return assess(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5), seed=0)


def changed():
    """Rows that do not sum to 1, one of them with a 0 of the class that came true."""
    probs = TOY_X.copy()
    probs[0] = [0.0, 0.9, 0.1]
    probs[5] *= 1.01
    return assess(probs, TOY_Y, normalize=True, n_resamples=99, seed=0)


def of_fourteen():
    """Fourteen classes, of which ten never occur: some are named, the others counted."""
    probs = np.random.default_rng(0).dirichlet(np.ones(14), size=200)
    y = np.arange(200) % 4
    return assess(probs, y, classes=range(14), method="chi2", n_resamples=19, seed=0)


CASES = {
    "only an omnibus test rejects": (wave, "verdict", "meaning", "companion", "other"),
    "no statistic": (without_statistic, "verdict", "meaning", "test", "baseline"),
    "fractional weights": (weighted, "heading", "verdict", "test"),
    "zeros and sums": (changed, "heading", "classes", "zeros", "note", "departure"),
    "absent classes": (of_fourteen, "classes", "note", "departure", "remedy"),
}


@cache
def said(name):
    with quiet():
        return CASES[name][0]().statements()


def test_words_of_what_the_data_sets_do_not_show(approve):
    shown = {
        name: "\n".join(f"{s.kind} [{s.level}]: {s.text}" for s in pick(said(name), *kinds))
        for name, (_, *kinds) in CASES.items()
    }
    check_text("statements.txt", sections(shown), approve)


@pytest.mark.parametrize("name", CASES)
def test_every_statement_is_one_line_and_whole(name):
    for statement in said(name):
        assert statement.text == " ".join(statement.text.split()) != ""
        assert statement.text[0].isupper() or statement.kind in (
            *("test", "companion", "subsample", "metric.log_loss", "departure"),
            *("note.zeros", "note.sums", "zeros.floors", "zeros.refuted"),
        )


@pytest.mark.parametrize(
    ("make", "status", "level"),
    [
        (sharp, "rejected", "bad"),
        (toy, "not_rejected", "doubt"),
        (wave, "other", "doubt"),
        (without_statistic, "unknown", "doubt"),
    ],
)
def test_the_verdict_has_a_status(make, status, level):
    a = make()
    (verdict,) = pick(a.statements(), "verdict")
    assert (verdict.numbers["status"], verdict.level) == (status, level)
    assert verdict.numbers["pvalue"] == pytest.approx(a.test.pvalue, nan_ok=True)
    assert [s.kind for s in pick(a.statements(), "other")] == ["other"] * (status == "other")


def test_the_level_decides():
    p = toy().test.pvalue
    for alpha, status in ((p + 0.01, "rejected"), (p - 0.01, "not_rejected")):
        assert pick(toy().statements(alpha), "verdict")[0].numbers["status"] == status
    assert "no miscalibration found at level 0.05" in toy().text(0.05)
    assert "not calibrated" in toy().text(0.95)


def test_what_is_wrong_is_said_after_a_rejection_only():
    after = {"kind.name", "classes", "departure", "remedy"}
    assert after <= {s.kind for s in sharp().statements()}
    assert not after & {s.kind for s in toy().statements()}


def test_classes_are_numbers_worst_first():
    numbers = pick(sharp().statements(), "classes")[0].numbers
    table = sharp().details.class_tests.table
    expected = sorted(zip(table["adjusted"], table["class"], strict=True))
    assert numbers["off"] == [StandsOut(label, p, False) for p, label in expected if p <= 0.05]


def test_grave_notes_are_told_by_their_level():
    y = np.where(TOY_Y == 2, 0, TOY_Y)
    p = Predictions.from_arrays(TOY_X, y, classes=range(3))
    with quiet():
        fit = fit_predictions(p)
    absent, separated = notes(p, fit)
    assert (absent.kind, absent.level, absent.numbers["classes"]) == ("note.absent", "plain", (2,))
    assert (separated.kind, separated.level) == ("note.separated", "bad")
    assert "(labels are separated in 2)" in separated.text
    flat = replace(fit, separated=False, converged=False)
    assert [s.level for s in notes(TOY, flat)] == ["bad"]
    assert [s.kind for s in departures(fit)] == ["departure.none"]
    assert notes(TOY, fit_predictions(TOY)) == []


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


@pytest.mark.parametrize(
    ("delta", "gamma", "words"),
    [
        (1.15, 0.55, "too extreme, gamma 0.55 [0.51, 0.59]; odds understated by 1.15 [1.11, 1.20]"),
        (1.0, 1.5, "too timid, gamma 1.50 [1.46, 1.54]"),
        (0.5, 1.0, "odds overstated by 2.00 [1.92, 2.08]"),
        (1.0, -0.3, "ranked the wrong way, gamma -0.30 [-0.34, -0.26]"),
    ],
)
def test_departures_by_hand(delta, gamma, words):
    # intervals: gamma -/+ 1.96 * 0.02; delta: exp(log delta -/+ 0.0392)
    (found,) = departures(fitted([delta], [gamma]))
    assert found.text == f"c0 vs base: {words}"
    assert found.numbers == {"class": "c0", "baseline": "base", "words": words}


def test_no_departure_at_the_identity():
    (found,) = departures(fitted([1.0, 1.0], [1.0, 1.0]))
    assert found.kind == "departure.none"
    assert found.text == "No single class stands out; the departure is spread over several."


def test_the_largest_departure_comes_first_and_long_lists_are_cut():
    fit = fitted(np.ones(20), 1.0 - 0.04 * np.arange(1, 21))
    found = departures(fit)
    assert found[0].numbers["class"] == "c19"
    assert "... and 8 more classes" in parameter_table(fit)
    text = replace(sharp(), fit=fit).text()
    assert f"  ... and {len(found) - 12} more classes\n  To repair" in text


def test_hostile_names_stay_on_one_line():
    fit = replace(fitted([1.0], [0.5]), classes=("a\nb" * 50, "base"))
    (found,) = departures(fit)
    assert "\n" not in found.text
    assert len(found.text) < 100


def test_full_adds_to_the_text_and_many_classes_stay_short():
    assert sharp().text(full=True).startswith(str(sharp()))
    assert len(str(data.many().assess()).splitlines()) < 60


def test_prose_is_wrapped_and_tables_are_not():
    prose, table = "word " * 40, "a  b" + "  c" * 60
    wrapped = wrapped_prose(f"{prose}\n{table}")
    assert max(map(len, wrapped[:-1])) <= 96
    assert wrapped[-1] == table
