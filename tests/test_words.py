import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._calibration_test import run_test
from mcllo._fit import MCLLOFit, fit_predictions
from mcllo._words import departure_lines, departures, heading, notes, parameter_table, verdict

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
