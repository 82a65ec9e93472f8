import numpy as np
import pytest
from refusal import refusal

from mcllo import MCLLOCalibrator, Predictions, calibration_test, load_calibrator
from mcllo.calibrators._gate import GateDecision, decide
from mcllo.metrics import log_loss

CLASSES = ("a", "b", "c")


def calibrated(rng, n, c=3):
    probs = rng.dirichlet(np.full(c, 0.7), size=n)
    return probs, (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, c - 1)


def sharpened(probs, power=2.0):
    raised = probs**power
    return raised / raised.sum(axis=1, keepdims=True)


# ---- fixed point ----------------------------------------------------------------------------


def test_calibrated_predictions_pass_untouched():
    probs, y = calibrated(np.random.default_rng(2), 400)
    assert calibration_test(probs, y).pvalue > 0.05
    gated = MCLLOCalibrator(gate=0.05).fit(probs, y)
    assert not gated.gate_.recalibrates
    np.testing.assert_array_equal(gated.predict_proba(probs), probs)


def test_untouched_means_zeros_too():
    probs, y = calibrated(np.random.default_rng(2), 400)
    gated = MCLLOCalibrator(gate=0.05).fit(probs, y)
    np.testing.assert_array_equal(gated.predict_proba([[1.0, 0.0, 0.0]]), [[1.0, 0.0, 0.0]])


def test_a_rejected_set_is_recalibrated_as_without_a_gate():
    probs, y = calibrated(np.random.default_rng(2), 400)
    sharp = sharpened(probs)
    gated, free = MCLLOCalibrator(gate=0.05).fit(sharp, y), MCLLOCalibrator().fit(sharp, y)
    assert gated.gate_.recalibrates
    np.testing.assert_array_equal(gated.predict_proba(sharp), free.predict_proba(sharp))
    assert free.gate_ is None


def test_the_gate_uses_the_test_of_the_package():
    probs, y = calibrated(np.random.default_rng(2), 400)
    found = decide(Predictions.from_arrays(probs, y), 0.05)
    assert found.pvalue == calibration_test(probs, y, seed=0).pvalue
    assert found.test == "lr"


@pytest.mark.parametrize("baseline", ["auto", "all"])
def test_a_chosen_baseline_is_paid_for(baseline):
    probs, y = calibrated(np.random.default_rng(2), 400)
    gated = MCLLOCalibrator(gate=0.05, baseline=baseline).fit(probs, y)
    assert gated.gate_.test == "max_score"
    assert gated.gate_.pvalue == calibration_test(probs, y, baseline="auto", seed=0).pvalue


def test_words():
    closed = GateDecision(False, 0.2, 0.05, "lr")
    assert str(closed) == (
        "left alone: calibration is not rejected at level 0.05 (p = 0.2); "
        "that is no proof of calibration"
    )
    assert str(GateDecision(True, 0.01, 0.05, "lr")).startswith("recalibrated: calibration is rej")


def test_a_closed_gate_is_saved(tmp_path):
    probs, y = calibrated(np.random.default_rng(2), 400)
    gated = MCLLOCalibrator(gate=0.05).fit(probs, y)
    gated.save(tmp_path / "m.json")
    again = load_calibrator(tmp_path / "m.json")
    assert again.gate_ == gated.gate_
    np.testing.assert_array_equal(again.predict_proba(probs), probs)


def test_refitting_forgets_the_gate():
    probs, y = calibrated(np.random.default_rng(2), 400)
    gated = MCLLOCalibrator(gate=0.05).fit(probs, y)
    gated.fit(sharpened(probs), y)
    assert gated.gate_.recalibrates


@pytest.mark.parametrize("gate", [0.0, 1.0, -0.1])
def test_levels_that_are_none(gate):
    probs, y = calibrated(np.random.default_rng(2), 50)
    message = str(refusal(MCLLOCalibrator(gate=gate).fit, probs, y))
    assert f"gate must lie in (0, 1); got gate={gate}" in message


# ---- it does no harm, and loses nothing --------------------------------------------------------


def change_of_log_loss(rng, n, power, gate):
    train, y = calibrated(rng, n)
    new, y_new = calibrated(rng, 20_000)
    x, x_new = sharpened(train, power), sharpened(new, power)
    fitted = MCLLOCalibrator(gate=gate, penalty=1.0).fit(x, y)
    return log_loss(y_new, fitted.predict_proba(x_new)) - log_loss(y_new, x_new)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400])
def test_on_calibrated_data_it_rarely_does_harm(n):
    # Worse in about alpha = 5 % of the repetitions; 10 % is the promise. With 300 repetitions the
    # standard error at 5 % is 1.3 %, so 10 % is 4 of them away.
    rng = np.random.default_rng(11)
    gated = np.array([change_of_log_loss(rng, n, 1.0, 0.05) for _ in range(300)])
    assert (gated > 0.0).mean() <= 0.10
    ungated = np.array([change_of_log_loss(rng, n, 1.0, None) for _ in range(60)])
    assert (ungated > 0.0).mean() >= 0.5  # what the gate is for


@pytest.mark.slow
def test_on_miscalibrated_data_it_loses_nothing():
    # Twice too sharp, 400 rows: the test always rejects, so gate and no gate are one.
    gated = [change_of_log_loss(np.random.default_rng(s), 400, 2.0, 0.05) for s in range(60)]
    free = [change_of_log_loss(np.random.default_rng(s), 400, 2.0, None) for s in range(60)]
    np.testing.assert_array_equal(gated, free)
    assert max(gated) < 0.0
