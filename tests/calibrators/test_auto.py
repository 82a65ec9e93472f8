from contextlib import nullcontext
from functools import partial

import data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from mcllo import Predictions, load_calibrator
from mcllo.calibrators import AutoCalibrator, TemperatureScaling
from mcllo.calibrators._auto.calibrator import describe_stack
from mcllo.calibrators._auto.members import Members, label_log_likelihoods
from mcllo.calibrators._auto.stacking import Stack
from mcllo.calibrators._auto.temperature_with_lapse import TemperatureWithLapse
from mcllo.calibrators._mcllo import GateDecision
from mcllo.metrics import log_loss


def calibrated(n, c=3, seed=0, power=1.0):
    return data.drawn(n, range(c), seed, power=power, concentration=0.7)


bold = partial(calibrated, power=2.0)

# ---- fixed points ---------------------------------------------------------------------------


def test_nothing_is_changed_where_nothing_is_promised():
    fits = [AutoCalibrator().fit(*calibrated(60, seed=seed)) for seed in range(6)]
    closed = [fit for fit in fits if fit.stack_.gain <= 0.0]
    assert closed == [fit for fit in fits if fit.weights_["identity"] == 1.0] != []
    probs = calibrated(50, seed=9)[0]
    for fit in closed:
        np.testing.assert_allclose(fit.predict_proba(probs), probs, atol=1e-15)
        assert "no gain is expected of a recalibration" in fit.summary()


# ---- it recalibrates -----------------------------------------------------------------------------


def test_bold_predictions_become_honest():
    honest, _ = calibrated(4000, seed=1)
    fit = AutoCalibrator().fit(*bold(4000, seed=1))
    assert np.abs(fit.predict_proba(bold(4000, seed=1)[0]) - honest).mean() < 0.01
    assert fit.members_.soft.inverse_temperature == pytest.approx(0.5, abs=0.05)
    assert "predictions are overconfident" in fit.summary()


def test_the_promise_is_kept_on_new_rows():
    fit = AutoCalibrator().fit(*bold(2000, seed=2))
    new, y = bold(8000, seed=3)
    gain = log_loss(y, new) - log_loss(y, fit.predict_proba(new))
    assert fit.expected_gain_ == fit.stack_.promise
    assert fit.expected_gain_se_ == fit.stack_.promise_se
    assert abs(gain - fit.expected_gain_) < 4.0 * fit.expected_gain_se_
    assert fit.expected_gain_ > 4.0 * fit.expected_gain_se_


def test_leaking_classes():
    rng = np.random.default_rng(0)
    z = 2.0 * rng.normal(size=(3000, 4))
    y = (z + 0.8 * np.roll(z, 1, axis=1) + rng.gumbel(size=z.shape)).argmax(axis=1)
    fit = AutoCalibrator(on="logits").fit(z, y)
    assert fit.weights_["full_tight"] + fit.weights_["full_loose"] > 0.5
    logs = label_log_likelihoods(fit.members_.all_probabilities(z.T), y)
    losses = dict(zip(fit.members_.names, -logs.mean(axis=0), strict=True))
    assert losses["full_loose"] < losses["mcllo"] - 0.01
    assert "classes leak into each other" in fit.summary()


def test_better_than_temperature_and_than_nothing_on_real_predictions():
    # Cross-validated naive Bayes on digits: 600 rows to learn, 1197 to judge. Temperature scaling
    # leaves about 0.1 nats that a full map can take.
    X, y = load_digits(return_X_y=True)
    probs = cross_val_predict(
        GaussianNB(var_smoothing=1e-3), X, y, cv=3, method="predict_proba"
    )
    probs = np.clip(probs, 1e-30, None)
    probs /= probs.sum(axis=1, keepdims=True)
    order = np.random.default_rng(0).permutation(len(y))
    learn, judge = order[:600], order[600:]
    losses = {
        method: log_loss(
            y[judge], method().fit(probs[learn], y[learn]).predict_proba(probs[judge])
        )
        for method in (AutoCalibrator, TemperatureScaling)
    }
    assert losses[AutoCalibrator] < losses[TemperatureScaling] - 0.02
    assert losses[AutoCalibrator] < log_loss(y[judge], probs[judge]) - 0.1


# ---- invariance -----------------------------------------------------------------------------


@given(st.integers(0, 100), st.permutations(range(4)), st.floats(-30.0, 30.0))
@settings(deadline=None, max_examples=8)
def test_classes_shifts_and_order_of_rows(seed, order, shift):
    rng = np.random.default_rng(seed)
    z = 2.0 * rng.normal(size=(120, 4))
    y = (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    names = np.array(list("abcd"))
    expected = (
        AutoCalibrator(on="logits", classes=list("abcd"))
        .fit(z, names[y])
        .predict_proba(z)
    )
    columns, rows = np.array(order), rng.permutation(120)
    moved = (z + shift)[:, columns]
    fit = AutoCalibrator(on="logits", classes=names[columns].tolist())
    answer = fit.fit(moved[rows], names[y[rows]]).predict_proba(moved)
    np.testing.assert_allclose(answer, expected[:, columns], atol=1e-7)


def test_logits_and_probabilities_agree():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 3))
    y = (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    on_logits, probs = (
        AutoCalibrator(on="logits").fit(z, y).predict_proba(z),
        softmax(z, axis=1),
    )
    on_probs = AutoCalibrator().fit(probs, y).predict_proba(probs)
    np.testing.assert_allclose(on_probs, on_logits, atol=1e-8)


def test_rows_are_pooled_alone():
    fit = AutoCalibrator().fit(*bold(300))
    new = bold(100, seed=1)[0]
    pooled = fit.stack_.pool(np.log(new).T, new, at_once=30)
    np.testing.assert_allclose(pooled, fit.predict_proba(new), atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_rows(n):
    probs, y = bold(n)
    fit = AutoCalibrator(classes=[0, 1, 2])
    with pytest.warns(match="no row has class") if len(set(y)) < 3 else nullcontext():
        fit.fit(probs, y)
    answer = fit.predict_proba(bold(20, seed=1)[0])
    np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)
    assert answer.min() > 0.0
    assert sum(fit.weights_.values()) == pytest.approx(1.0)
    if n == 1:
        assert (fit.expected_gain_, fit.expected_gain_se_) == (0.0, np.inf)
        np.testing.assert_allclose(fit.predict_proba(probs), probs, atol=1e-15)
        assert fit.summary() == "100 % identity: too few rows to leave any out"


def test_many_classes():
    rng = np.random.default_rng(0)
    z = 2.0 * rng.normal(size=(400, 120))
    y = (2.0 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    names = list(range(120))
    fit = AutoCalibrator(on="logits", classes=names)
    with pytest.warns(match="no row has class"):
        fit.fit(z, y)
    assert list(fit.weights_) == ["identity", "temperature", "vector"]
    raw = log_loss(y, softmax(z, axis=1), classes=names)
    assert log_loss(y, fit.predict_proba(z), classes=names) < raw


def test_groups_are_left_out_together():
    probs, y = bold(400)
    groups = np.arange(400) // 8
    fit = AutoCalibrator(gate=0.05).fit(
        Predictions.from_arrays(probs, y, groups=groups)
    )
    assert fit.gate_.recalibrates
    assert fit.gate_.test != "split_ratio"


# ---- the gate -------------------------------------------------------------------------------


def test_a_closed_gate_leaves_everything_alone():
    probs, y = calibrated(300)
    fit = AutoCalibrator(gate=0.05).fit(probs, y)
    assert not fit.gate_.recalibrates
    np.testing.assert_array_equal(fit.predict_proba(probs), probs)
    np.testing.assert_array_equal(
        fit.predict_proba([[1.0, 0.0, 0.0]]), [[1.0, 0.0, 0.0]]
    )
    assert "left alone" in fit.summary()


def test_an_open_gate_changes_nothing_else():
    probs, y = bold(500)
    gated, plain = (
        AutoCalibrator(gate=0.05).fit(probs, y),
        AutoCalibrator().fit(probs, y),
    )
    assert gated.gate_.recalibrates
    assert gated.gate_.gain == gated.stack_.gain > 0.0
    np.testing.assert_array_equal(
        gated.predict_proba(probs), plain.predict_proba(probs)
    )
    assert str(gated.gate_).startswith(
        "recalibrated: calibration is rejected at level 0.05"
    )
    assert gated.summary() == f"{plain.summary()}; {gated.gate_}"
    assert plain.gate_ is None


def test_the_split_ratio_opens_where_the_score_test_is_blind():
    # Classes 0 and 1 are mistaken for each other as classes 2 and 3 decide: no tau or gamma of any
    # baseline shows that, a full map does.
    rng = np.random.default_rng(2)
    z = 2.0 * rng.normal(size=(1500, 4))
    eta = z.copy()
    eta[:, 0] += 0.9 * z[:, 2] - 0.9 * z[:, 3]
    eta[:, 1] += 0.9 * z[:, 3] - 0.9 * z[:, 2]
    y = (eta + rng.gumbel(size=z.shape)).argmax(axis=1)
    fit = AutoCalibrator(on="logits", gate=0.001).fit(z, y)
    assert fit.gate_.recalibrates
    assert fit.gate_.test == "split_ratio"


def test_save_and_load_with_a_gate(tmp_path):
    probs, y = calibrated(300)
    for rows in (probs, bold(300, power=3.0)[0]):
        fit = AutoCalibrator(gate=0.05).fit(rows, y)
        fit.save(tmp_path / "auto.json")
        again = load_calibrator(tmp_path / "auto.json")
        np.testing.assert_array_equal(
            again.predict_proba(probs), fit.predict_proba(probs)
        )
        assert again.summary() == fit.summary()
        assert again.weights_ == fit.weights_


@pytest.mark.slow
def test_calibrated_predictions_pass_the_gate():
    # The gate opens in at most 5 % of data sets: at most 0.05 + 2 se = 0.106 of 60.
    opened = [
        AutoCalibrator(gate=0.05).fit(*calibrated(100, seed=s)).gate_ for s in range(60)
    ]
    assert np.mean([gate.recalibrates for gate in opened]) <= 0.106


# ---- words ----------------------------------------------------------------------------------

NAMES = ("identity", "temperature", "mcllo", "full_tight", "full_loose")


def sentence(*weights, u=1.0, gain=0.0475, se=0.01):
    members = Members(TemperatureWithLapse(u, 0.01), {})
    shares = dict(zip(NAMES, weights, strict=True))
    return describe_stack(Stack(members, shares, 0.2295 - gain, 0.2295, gain, se))


def test_sentences():
    assert sentence(0.002, 0.078, 0.3, 0.2, 0.42) == (
        "62 % full map, 30 % MCLLO, 8 % temperature: classes leak into each other; "
        "cross-validated log loss 0.1820 against 0.2295 raw"
    )
    assert sentence(1.0, 0.0, 0.0, 0.0, 0.0, gain=-0.01) == (
        "100 % identity: no gain is expected of a recalibration; cross-validated log loss of a "
        "recalibration "
        "0.2395 against 0.2295 raw"
    )
    assert "classes are predicted too often or with overconfidence" in sentence(
        0.1, 0.2, 0.6, 0.1, 0.0
    )
    assert "there is little to recalibrate" in sentence(0.6, 0.4, 0.0, 0.0, 0.0)
    gate = GateDecision(False, 0.01, 0.05, "max_score", -0.002)
    assert "rejected (p = 0.01), but no gain is expected of one" in str(gate)
    mostly_temperature = 0.2, 0.7, 0.1, 0.0, 0.0
    assert "predictions are overconfident" in sentence(*mostly_temperature, u=0.5)
    assert "predictions are underconfident" in sentence(*mostly_temperature, u=1.5)
    assert "sure predictions fail now and then" in sentence(*mostly_temperature, u=1.01)
