"""The exact null distribution of a metric."""

import json

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._calibration_errors import ClasswiseECE, TopLabelECE
from mcllo._metric_null import metric_nulls, written_out
from mcllo._monte_carlo import draw_labels
from mcllo.exceptions import InputError

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def ten_bins(p):
    return TopLabelECE(p, 10)


def test_certain_predictions_leave_nothing_to_chance():
    eye = np.eye(3)[TOY_Y] * (1 - 3e-12) + 1e-12
    null = metric_nulls(Predictions.from_arrays(eye, TOY_Y), {"ece": TopLabelECE}, n_resamples=99)
    assert null["ece"].pvalue == 1.0
    assert null["ece"].mean == pytest.approx(0.0, abs=1e-11)


def test_reference_values():
    # methods.md 5.3, TOY with 10 bins, 9999 draws, seed 0: p = .1013, mean .2151
    null = metric_nulls(TOY, {"ece": ten_bins}, n_resamples=9999, seed=0)["ece"]
    assert null.observed == pytest.approx(0.309375, abs=1e-12)
    assert null.pvalue == pytest.approx(0.1013, abs=1e-12)
    assert null.mean == pytest.approx(0.2151, abs=5e-5)


def test_enumeration():
    # methods.md 5.3, TOY: exact p = .0971007424 and mean .2146640625. Only hit or miss matters to
    # the top label, so the 2^16 patterns of hits are all there is.
    confidence, top = TOY_X.max(axis=1), TOY_X.argmax(axis=1)
    hits = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    chance = np.where(hits == 1, confidence, 1 - confidence).prod(axis=1)
    labels = np.where(hits == 1, top, (top + 1) % 3)
    errors = ten_bins(TOY).of_labels(labels)
    observed = ten_bins(TOY).of_labels(TOY.codes[None])[0]
    assert chance.sum() == pytest.approx(1.0)
    assert chance @ errors == pytest.approx(0.2146640625, abs=1e-10)
    assert chance @ (errors >= observed - 1e-12) == pytest.approx(0.0971007424, abs=1e-10)


def test_batches_do_not_matter(monkeypatch):
    whole = metric_nulls(TOY, {"a": TopLabelECE, "b": ClasswiseECE}, n_resamples=500, seed=3)
    monkeypatch.setattr("mcllo._metric_null.BATCH_CELLS", 7 * 16)
    parts = metric_nulls(TOY, {"b": ClasswiseECE, "a": TopLabelECE}, n_resamples=500, seed=3)
    for name, null in whole.items():
        assert null.to_dict() == parts[name].to_dict()
        assert json.loads(json.dumps(null.to_dict()))["seed"] == 3


def test_whole_weights_are_rows():
    w = np.arange(16) % 3
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=w)
    long = Predictions.from_arrays(np.repeat(TOY_X, w, axis=0), np.repeat(TOY_Y, w))
    np.testing.assert_array_equal(written_out(weighted).probs, long.probs)
    a = metric_nulls(weighted, {"ece": TopLabelECE}, n_resamples=199, seed=1)["ece"]
    b = metric_nulls(long, {"ece": TopLabelECE}, n_resamples=199, seed=1)["ece"]
    assert a.to_dict() == b.to_dict()


@pytest.mark.slow
def test_size_is_nominal():
    # H0 true: the exact p-value is at most .05 in at most 5 % of samples. 400 samples of 60 rows,
    # 199 draws each; a rate above .05 + 3 standard errors (.083) would be a defect.
    rng = np.random.default_rng(11)
    probs = rng.dirichlet(np.full(5, 0.4), 60).clip(1e-9)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = draw_labels(probs, 12, 0, 400)
    pvalues = []
    for i, y in enumerate(labels):
        p = Predictions.from_arrays(probs, y)
        nulls = metric_nulls(
            p, {"ece": TopLabelECE, "classwise": ClasswiseECE}, n_resamples=199, seed=1000 + i
        )
        pvalues.append([nulls["ece"].pvalue, nulls["classwise"].pvalue])
    rates = (np.array(pvalues) <= 0.05).mean(axis=0)
    assert (rates < 0.083).all()
    assert (rates > 0.02).all()


def test_errors():
    with pytest.raises(InputError, match="n_resamples must be at least 1"):
        metric_nulls(TOY, {}, n_resamples=0)
    with pytest.raises(InputError, match=r"level must lie in \(0, 1\); got level=95"):
        metric_nulls(TOY, {}, level=95)
    half = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    with pytest.raises(InputError, match="whole-number weights"):
        metric_nulls(half, {"ece": TopLabelECE})
