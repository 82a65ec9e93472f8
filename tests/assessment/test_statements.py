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
from mcllo._assessment.text import parameter_table, wrapped_prose
from mcllo._assessment.words import notes
from mcllo._fit.fit import fit_predictions
from mcllo._ground.results import none_for_nan
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
    weight = np.arange(16) / 8 + 0.5
    return assess(TOY_X, TOY_Y, sample_weight=weight, weight_kind="survey", seed=0)


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
    "only an omnibus test rejects": (wave, "verdict", "meaning", "companion", "other", "remedy"),
    "no statistic": (without_statistic, "verdict", "meaning", "remedy", "test", "baseline"),
    "survey weights": (weighted, "heading", "verdict", "meaning", "test"),
    "zeros and sums": (changed, "heading", "verdict", "zeros", "note", "culprit"),
    "absent classes": (of_fourteen, "verdict", "note", "culprit", "remedy"),
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
            *("test", "companion", "subsample", "metric.log_loss", "culprit"),
            *("note.zeros", "note.sums", "zeros.floors", "zeros.refuted"),
        )


@pytest.mark.parametrize(
    ("make", "kind", "level"),
    [
        (sharp, "matters", "bad"),
        (toy, "cannot_tell", "doubt"),
        (wave, "none_found", "plain"),
        (without_statistic, "cannot_tell", "doubt"),
    ],
)
def test_the_verdict_is_that_of_the_assessment(make, kind, level):
    a = make()
    (verdict,) = pick(a.statements(), "verdict")
    assert (verdict.numbers["kind"], verdict.level) == (kind, level)
    assert verdict.numbers == none_for_nan(a.verdict.to_dict()) == a.to_dict()["verdict"]
    assert [s.kind for s in pick(a.statements(), "other")] == ["other"] * bool(a.verdict.other)


def test_level_and_tolerance_decide():
    p = toy().test.pvalue
    for alpha, kind in ((p + 0.01, "matters"), (p - 0.01, "cannot_tell")):
        assert pick(toy().statements(alpha), "verdict")[0].numbers["kind"] == kind
        assert toy().to_dict(alpha)["verdict"]["kind"] == kind
    assert "these rows cannot tell" in toy().text(0.05)
    assert "miscalibrated, and it matters" in toy().text(0.95)
    assert "miscalibrated, but by little" in sharp().text(tolerance=0.5)


def test_what_is_wrong_is_said_after_a_rejection_only():
    assert {"kind.name", "remedy"} <= {s.kind for s in sharp().statements()}
    assert pick(sharp().statements(), "culprit")
    assert not pick(toy().statements(), "kind", "culprit")
    assert toy().culprits is None


def test_metrics_come_with_what_is_promised():
    a = toy()
    assert a.promised["accuracy"] == pytest.approx(TOY_X.max(axis=1).mean())
    assert a.promised["brier"] == pytest.approx(1.0 - (TOY_X**2).sum(axis=1).mean())
    assert a.promised["log_loss"] == pytest.approx(-(TOY_X * np.log(TOY_X)).sum(axis=1).mean())
    assert "(promised: 59.7 %)" in str(a)


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


def test_long_tables_are_cut():
    fit = fitted(np.ones(20), 1.0 - 0.04 * np.arange(1, 21))
    assert "... and 8 more classes" in parameter_table(fit)


def test_full_adds_to_the_text_and_many_classes_stay_short():
    assert sharp().text(full=True).startswith(str(sharp()))
    assert len(str(data.many().assess()).splitlines()) < 60


def test_prose_is_wrapped_and_tables_are_not():
    prose, table = "word " * 40, "a  b" + "  c" * 60
    wrapped = wrapped_prose(f"{prose}\n{table}")
    assert max(map(len, wrapped[:-1])) <= 96
    assert wrapped[-1] == table
