import numpy as np
import pytest

from mcllo._predictions import Predictions
from mcllo.calibrators import _auto_folds
from mcllo.calibrators._auto_folds import Folds, assign_folds
from mcllo.calibrators._auto_members import Ladder, LadderFit
from mcllo.calibrators._auto_stack import (
    Stack,
    _log_evidence,
    _spread,
    _trust,
    fit_stack,
    left_out_logs,
)
from mcllo.calibrators._linear_map import transposed_scores
from mcllo.calibrators._pool import pool_weights
from mcllo.calibrators._soft_temperature import SoftTemperature


def sample(n=300, c=3, power=2.0, seed=0, **facts):
    """Predictions that are `power` times too bold."""
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet(np.ones(c), size=n)
    codes = (honest.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, c - 1)
    bold = honest**power
    bold /= bold.sum(axis=1, keepdims=True)
    return Predictions.from_arrays(bold, codes, classes=range(c), **facts)


def test_identity_alone_is_the_identity():
    ladder = Ladder(SoftTemperature(0.5, 0.1), {})
    stack = Stack(ladder, {"identity": 1.0, "temperature": 0.0}, 1.0, 1.0, 0.0, 1.0)
    probs = sample().probs
    np.testing.assert_allclose(stack.pool(np.log(probs).T, probs), probs, atol=1e-15)


def test_hand_sized_pool():
    # Temperature with u = 0, nearly, gives (1/2, 1/2): half of it and half of (0.9, 0.1).
    ladder = Ladder(SoftTemperature(1e-300, 0.0), {})
    stack = Stack(ladder, {"identity": 0.5, "temperature": 0.5}, 1.0, 1.0, 0.0, 1.0)
    probs = np.array([[0.9, 0.1]])
    np.testing.assert_allclose(stack.pool(np.log(probs).T, probs), [[0.7, 0.3]], atol=1e-15)


def test_hand_sized_evidence():
    # Two folds, one member beside the identity. Sums of log ratios: 1 + 2 * 3 = 7 and -1.
    folds = Folds(np.arange(3), np.array([0, 0, 1]), np.array([1.0, 2.0, 1.0]), np.arange(3), 2)
    logs = np.array([[0.0, 1.0], [-5.0, -2.0], [0.0, -1.0]])
    expected = np.log((np.exp(7.0) + np.exp(-1.0)) / 2.0)
    assert _log_evidence(logs, folds) == pytest.approx(expected)


def test_hand_sized_spread():
    # Groups sum to 2 and -2 in 4 rows: sqrt(2 / (2 - 1) * (4 + 4)) / 4 = 1.
    deviations, unit = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    assert _spread(deviations, unit, np.array([4, 4, 7, 7])) == pytest.approx(1.0)
    assert _spread(deviations, unit, np.zeros(4, dtype=int)) == np.inf
    # Single rows: sqrt(4 / 3 * 4) / 4 = 1 / sqrt(3); a count of 2 is two rows.
    assert _spread(deviations, unit) == pytest.approx(1.0 / np.sqrt(3.0))
    twice = _spread(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    assert twice == pytest.approx(1.0 / np.sqrt(3.0))


def test_left_out_logs_against_separate_fits():
    predictions = sample(60)
    scores = transposed_scores(predictions)
    folds = assign_folds(scores)
    logs = left_out_logs(LadderFit(scores, predictions.codes), folds)
    for part in (0, 17, 59):
        row, kept = folds.rows[part], np.ones(60, dtype=bool)
        kept[folds.rows[folds.folds == folds.folds[part]]] = False
        alone = LadderFit(scores[:, kept], predictions.codes[kept]).whole
        expected = alone.logs_of_labels(scores[:, [row]], predictions.codes[[row]])[0]
        # fits to parts stop at a decrement of 3e-3, errors are below 0.05 standard errors
        np.testing.assert_allclose(logs[part], expected, atol=5e-3)
        own = LadderFit(scores, predictions.codes).whole
        assert np.abs(logs[part] - own.logs_of_labels(scores, predictions.codes)[row]).max() > 0.0


def test_hand_sized_trust():
    # A third of the standard error counts: 3^2 / (3^2 + (3 / 3)^2) = 0.9.
    assert _trust(3.0, 3.0) == pytest.approx(0.9)
    assert _trust(-3.0, 2.0) == _trust(0.0, np.inf) == _trust(1.0, np.inf) == 0.0


def test_weights_and_losses_belong_together():
    predictions = sample()
    stack = fit_stack(predictions)
    scores = transposed_scores(predictions)
    folds = assign_folds(scores)
    logs = left_out_logs(LadderFit(scores, predictions.codes), folds)
    weights = pool_weights(logs, np.array([0.5, 0.5, 0.1, 0.1, 0.1]))
    trust = (1.0 - stack.weights["identity"]) / (1.0 - weights[0])
    found = np.array(list(stack.weights.values()))
    np.testing.assert_allclose(found[1:], trust * weights[1:], atol=1e-9)
    assert trust == pytest.approx(_trust(stack.gain, stack.gain_se), abs=0.01)
    assert stack.raw_loss == pytest.approx(-logs[:, 0].mean())
    assert stack.loss == pytest.approx(stack.raw_loss - stack.gain)
    assert stack.gain > 3.0 * stack.gain_se > 0.0
    assert stack.pvalue < 0.001


def test_one_fold_of_many_rows(monkeypatch):
    # Enough rows in one fold: its halves judge each other, and the promise is about the same.
    whole = fit_stack(sample(3000))
    monkeypatch.setattr(_auto_folds, "ENOUGH", 500)
    stack = fit_stack(sample(3000))
    assert stack.gain == pytest.approx(whole.gain, abs=4.0 * stack.gain_se)
    assert 1.5 * whole.gain_se < stack.gain_se < 3.0 * whole.gain_se  # sqrt(5) in theory
    assert stack.log_evidence > 0.0


def test_a_repair_that_does_not_pay_is_not_made():
    closed = [fit_stack(sample(60, power=1.0, seed=seed)) for seed in range(6)]
    assert any(stack.gain <= 0.0 for stack in closed)
    for stack in closed:
        assert (stack.weights["identity"] == 1.0) == (stack.gain <= 0.0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    stack = fit_stack(sample(n))
    assert sum(stack.weights.values()) == pytest.approx(1.0)
    if n == 1:
        assert stack.weights["identity"] == 1.0
        assert (stack.gain, stack.gain_se) == (0.0, np.inf)


def test_evidence_needs_independent_rows_and_counts():
    assert fit_stack(sample()).log_evidence > 0.0
    assert fit_stack(sample(sample_weight=np.full(300, 2.0))).log_evidence > 0.0
    assert fit_stack(sample(sample_weight=np.full(300, 1.5))).log_evidence == 0.0
    assert fit_stack(sample(groups=np.arange(300) // 10)).log_evidence == 0.0
    assert fit_stack(sample(groups=np.arange(300) // 10)).pvalue == 1.0


def test_groups_widen_the_standard_error():
    predictions = sample(40)
    rows = np.repeat(np.arange(40), 8)
    repeated = Predictions.from_arrays(predictions.probs[rows], predictions.codes[rows])
    grouped = Predictions.from_arrays(predictions.probs[rows], predictions.codes[rows], groups=rows)
    assert fit_stack(grouped).gain_se > 1.5 * fit_stack(repeated).gain_se


def test_round_trip_and_damage():
    stack = fit_stack(sample())
    again = Stack.from_dict(stack.to_dict())
    assert again.to_dict() == stack.to_dict()
    alone = Stack.from_dict(fit_stack(sample(1)).to_dict())
    assert alone.gain_se == np.inf
    with pytest.raises(ValueError, match="other members"):
        Stack.from_dict({**stack.to_dict(), "weights": {"identity": 1.0}})


@pytest.mark.slow
def test_evidence_has_its_level():
    # Labels drawn from the predictions: P(E >= 10) <= 0.1. Of 120 draws at most 0.1 + 2 se = 0.155.
    draws = [fit_stack(sample(80, power=1.0, seed=seed)).pvalue for seed in range(120)]
    assert np.mean(np.array(draws) <= 0.1) <= 0.155
