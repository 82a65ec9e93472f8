"""What an assessment says: kinds, levels and numbers of its statements, and its text."""

from dataclasses import replace
from functools import cache

import data
import numpy as np
import pytest
from approval import check_text, sections
from report_data import wave
from toy import TOY_X, TOY_Y

from mcllo import Predictions, assess
from mcllo._assessment.sentences import data_and_fit_notes
from mcllo._fit.fit import fit_predictions
from mcllo._utils.results import none_for_nonfinite
from mcllo._utils.statements import select_statements, suppress_warnings

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


@cache
def toy():
    return assess(TOY, method="chi2", n_resamples=99, seed=1)


@cache
def sharp():
    return data.sharp().assess()


def without_statistic():
    a = toy()
    return replace(
        a, test=replace(a.test, statistic=np.nan, pvalue=np.nan), omnibus_tests={}
    )


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
    "only an omnibus test rejects": (
        wave,
        "verdict",
        "meaning",
        "omnibus",
        "other",
        "remedy",
    ),
    "no statistic": (
        without_statistic,
        "verdict",
        "meaning",
        "remedy",
        "test",
        "baseline",
    ),
    "survey weights": (weighted, "heading", "verdict", "meaning", "test"),
    "zeros and sums": (changed, "heading", "verdict", "zeros", "note", "attribution"),
    "absent classes": (of_fourteen, "verdict", "note", "attribution", "remedy"),
}


@cache
def said(name):
    with suppress_warnings():
        return CASES[name][0]().statements()


def test_words_of_what_the_data_sets_do_not_show(approve):
    shown = {
        name: "\n".join(
            f"{s.kind} [{s.level}]: {s.text}"
            for s in select_statements(said(name), *kinds)
        )
        for name, (_, *kinds) in CASES.items()
    }
    check_text("statements.txt", sections(shown), approve)


def test_every_statement_is_one_line_and_whole():
    for statement in (statement for name in CASES for statement in said(name)):
        assert statement.text == " ".join(statement.text.split()) != ""
        assert statement.text[0].isupper() or statement.kind in (
            *("test", "omnibus", "subsample", "metric.log_loss", "attribution"),
            *("note.zeros", "note.sums", "zeros.floors", "zeros.refuted"),
        )


def test_the_verdict_is_that_of_the_assessment():
    for make, kind, level in (
        (sharp, "miscalibrated", "bad"),
        (toy, "inconclusive", "doubt"),
        (wave, "miscalibrated", "bad"),
        (without_statistic, "inconclusive", "doubt"),
    ):
        a = make()
        (verdict,) = select_statements(a.statements(), "verdict")
        assert (verdict.numbers["kind"], verdict.level) == (kind, level)
        assert (
            verdict.numbers
            == none_for_nonfinite(a.verdict.to_dict())
            == a.to_dict()["verdict"]
        )
        assert (
            len(select_statements(a.statements(), "other")) == a.verdict.omnibus_alone
        )


def test_level_and_tolerance_decide():
    p = toy().test.pvalue
    for alpha, kind in ((p + 0.01, "miscalibrated"), (p - 0.01, "inconclusive")):
        assert (
            select_statements(toy().statements(alpha), "verdict")[0].numbers["kind"]
            == kind
        )
        assert toy().to_dict(alpha)["verdict"]["kind"] == kind
    assert "Verdict: miscalibrated (p" in toy().text(0.95)
    assert "miscalibrated, but negligibly" in sharp().text(tolerance=0.5)


def test_what_is_wrong_is_said_after_a_rejection_only():
    assert {"kind.name", "remedy"} <= {s.kind for s in sharp().statements()}
    assert select_statements(sharp().statements(), "attribution")
    assert not select_statements(toy().statements(), "kind", "attribution")
    assert toy().miscalibrated_classes is None


def test_metrics_come_with_what_is_expected():
    a = toy()
    assert a.expected["accuracy"] == pytest.approx(TOY_X.max(axis=1).mean())
    assert a.expected["brier"] == pytest.approx(1.0 - (TOY_X**2).sum(axis=1).mean())
    assert a.expected["log_loss"] == pytest.approx(
        -(TOY_X * np.log(TOY_X)).sum(axis=1).mean()
    )


def test_grave_notes_are_told_by_their_level():
    y = np.where(TOY_Y == 2, 0, TOY_Y)
    p = Predictions.from_arrays(TOY_X, y, classes=range(3))
    with suppress_warnings():
        fit = fit_predictions(p)
    absent, separated = data_and_fit_notes(p, fit)
    assert (absent.kind, absent.level, absent.numbers["classes"]) == (
        "note.absent",
        "plain",
        (2,),
    )
    assert (separated.kind, separated.level) == ("note.separated", "bad")
    flat = replace(fit, separated=False, converged=False)
    assert [s.level for s in data_and_fit_notes(TOY, flat)] == ["bad"]
    assert data_and_fit_notes(TOY, fit_predictions(TOY)) == []
