"""`baseline_sensitivity`: every baseline's fit, the p-value over all, and what is said."""

import dataclasses
import json

import numpy as np
import pytest
from independent import sample, simplex
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

from mcllo import Predictions, baseline_sensitivity
from mcllo._fit.fit import fit_predictions
from mcllo._ground.text import Table
from mcllo.exceptions import InputError, ZeroProbabilityWarning

TOY = baseline_sensitivity(TOY_X, TOY_Y, seed=0)


# --- fixed point


def test_a_repaired_table_gives_the_identity_for_its_baseline():
    # refitting with the baseline of the repair finds nothing; the others may
    probs = fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y)).recalibrate(TOY_X)
    found = baseline_sensitivity(probs, TOY_Y, n_resamples=9)
    assert found.table["statistic"][2] == pytest.approx(0.0, abs=1e-9)
    assert min(found.table["statistic"][:2]) > 1e-4


# --- independent implementation


def test_changes_are_those_of_the_single_fits():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    g = np.array([fit_predictions(p.with_baseline(b)).recalibrate(TOY_X) for b in range(3)])
    for b in range(3):
        away = np.abs(g[b] - g[2])
        assert TOY.table["largest_change"][b] == pytest.approx(away.max())
        assert TOY.table["mean_change"][b] == pytest.approx(away.mean())
        moved = g[b].argmax(axis=1) != g[2].argmax(axis=1)
        assert TOY.table["label_changes"][b] == moved.mean()
    assert TOY.largest_range == pytest.approx(np.ptp(g, axis=0).max())
    assert TOY.mean_range == pytest.approx(np.ptp(g, axis=0).mean())
    tops = g.argmax(axis=2)
    assert TOY.label_disagreement == np.mean(np.ptp(tops, axis=0) > 0)


# --- reference values: methods.md 0.4 and 8b, TOY


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("statistic", [1.1250835514, 0.9305895999, 1.1462114203]),
        ("pvalue", [0.89027227, 0.92013181, 0.88687265]),
        ("log_likelihood", [-12.0408398260, -12.1380868017, -12.0302758915]),
        ("score", [0.9559480156, 0.8315366381, 0.9895584940]),
        ("df", [4, 4, 4]),
    ],
)
def test_toy_columns(column, expected):
    assert TOY.table[column] == pytest.approx(expected, abs=1e-8)


def test_toy_p_value_over_all_baselines():
    assert TOY.max_score == pytest.approx(0.98955849, abs=1e-8)
    assert TOY.pvalue == pytest.approx(0.9810, abs=1e-12)
    assert (TOY.method, TOY.n_resamples, TOY.seed, TOY.reference) == ("exact", 1999, 0, 2)


@pytest.mark.slow
def test_cifar():
    # last baseline: VGAM, tests/reference/vgam.json; the others about as methods.md 0.1 found on
    # part of these rows (3 % between statistics, mean range .005, largest .28)
    found = baseline_sensitivity(load_cifar10_vgg16_keras(), n_resamples=99, seed=1)
    assert found.table["statistic"][9] == pytest.approx(1220.972150955, abs=1e-4)
    assert 1200 < min(found.table["statistic"]) < max(found.table["statistic"]) < 1240
    assert found.mean_range < 0.006
    assert 0.15 < found.largest_range < 0.35
    assert found.pvalue == 0.01


# --- properties


def test_two_classes_have_one_fit():
    rng = np.random.default_rng(0)
    probs = simplex(rng, 60, 2)
    found = baseline_sensitivity(probs, np.resize([0, 1, 1], 60), n_resamples=9)
    assert found.table["statistic"][0] == pytest.approx(found.table["statistic"][1])
    assert found.largest_range < 1e-9
    assert found.verdict == "with two classes all baselines give the same fit."


def test_permuting_classes_permutes_the_rows():
    order = [2, 0, 1]
    names = np.array(["a", "b", "c"])
    kept = baseline_sensitivity(TOY_X, names[TOY_Y], n_resamples=9)
    moved = baseline_sensitivity(TOY_X[:, order], names[TOY_Y], classes=names[order], n_resamples=9)
    assert moved.table["baseline"] == ["c", "a", "b"]
    for column in ("statistic", "pvalue", "log_likelihood", "score"):
        there = dict(zip(kept.table["baseline"], kept.table[column], strict=True))
        assert moved.table[column] == pytest.approx([there[b] for b in "cab"], rel=1e-7)
    assert moved.max_score == pytest.approx(kept.max_score)
    assert moved.mean_range == pytest.approx(kept.mean_range, abs=1e-8)
    assert (kept.reference, moved.reference) == ("c", "b")


def test_the_reference_is_the_baseline_of_the_predictions():
    found = baseline_sensitivity(
        Predictions.from_arrays(TOY_X, TOY_Y, baseline=0), seed=0, n_resamples=99
    )
    assert found.reference == 0
    assert found.table["largest_change"][0] == 0.0
    assert found.table["largest_change"][2] == pytest.approx(TOY.table["largest_change"][0])
    assert found.largest_range == pytest.approx(TOY.largest_range)


def test_whole_weights_are_repetitions():
    repeat = np.resize([2, 0, 1, 3], 16)
    options = {"n_resamples": 99, "seed": 3}
    found = baseline_sensitivity(TOY_X, TOY_Y, sample_weight=repeat, **options).to_dict()
    rows = np.repeat(np.arange(16), repeat)
    expected = baseline_sensitivity(TOY_X[rows], TOY_Y[rows], **options).to_dict()
    for name in ("max_score", "pvalue", "mean_range", "largest_range", "label_disagreement"):
        assert found[name] == pytest.approx(expected[name], abs=1e-7)
    for row, other in zip(found["rows"], expected["rows"], strict=True):
        assert row == pytest.approx(other, abs=1e-6)


def test_fractional_weights_have_no_draws():
    found = baseline_sensitivity(TOY_X, TOY_Y, sample_weight=np.full(16, 0.5))
    assert (found.method, found.n_resamples) == ("bonferroni", 0)
    assert "fractional weights cannot be simulated" in str(found)


def test_flags_take_the_place_of_warnings():
    # pytest turns any warning into an error: none must be raised
    found = baseline_sensitivity(TOY_X, TOY_X.argmax(axis=1), n_resamples=9)
    assert found.table["separated"] == [True] * 3
    assert found.table["converged"] == [False] * 3
    assert "for 3 of 3 baselines (0, 1, 2) the estimate does not exist" in found.notes[0]
    assert "Note: for 3 of 3" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_zeros_are_raised_with_the_usual_warning():
    probs = TOY_X.copy()
    probs[4] = [0.0, 0.9, 0.1]
    with pytest.warns(ZeroProbabilityWarning):
        found = baseline_sensitivity(probs, TOY_Y, n_resamples=9)
    assert np.isfinite(found.table["statistic"]).all()


def test_some_baselines():
    probs, codes = sample(200, 5, 0)
    found = baseline_sensitivity(probs, codes, baselines=[3, 1], n_resamples=99, seed=2)
    everything = baseline_sensitivity(probs, codes, n_resamples=99, seed=2)
    assert found.table["baseline"] == [1, 3, 4]  # the reference is always there
    assert found.table["score"] == pytest.approx([everything.table["score"][b] for b in (1, 3, 4)])
    assert found.max_score == max(found.table["score"])
    assert found.notes == ["3 of 5 baselines were tried."]


def test_many_classes_by_asking():
    rng = np.random.default_rng(1)
    probs = simplex(rng, 400, 60, sharpness=0.5)
    p = Predictions.from_arrays(probs, np.resize(range(60), 400))
    with pytest.raises(InputError, match=r"at most 50 baselines.*got 60 classes.*baselines="):
        baseline_sensitivity(p)
    found = baseline_sensitivity(p, baselines=[0], n_resamples=19, seed=0)
    assert found.table["baseline"] == [0, 59]
    assert found.n_classes == 60


# --- words


def test_to_dict_is_strict_json():
    assert repr(TOY).startswith("BaselineSensitivity(n_baselines=3, reference=2, max_score=0.98955")
    content = json.loads(json.dumps(TOY.to_dict(), allow_nan=False))
    assert content["rows"][0]["baseline"] == 0
    assert content["pvalue"] == TOY.pvalue
    assert content["verdict"] == TOY.verdict
    assert content["notes"] == []


# --- errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"baselines": "ab"}, "baselines must be a list of classes"),
        ({"baselines": []}, "baselines must be a list of classes"),
        ({"baselines": [7]}, "baselines=7"),
        ({"n_resamples": 0}, "n_resamples must be at least 1"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        baseline_sensitivity(TOY_X, TOY_Y, **options)
    with pytest.raises(InputError, match="clip= must not be given beside a Predictions"):
        baseline_sensitivity(Predictions.from_arrays(TOY_X, TOY_Y), clip=1e-3)


def result(**columns):
    """Return TOY's result, two of its three baselines, with other columns."""
    two = {name: values[:2] for name, values in TOY.table.to_dict().items()}
    table = Table(two | {"baseline": ["cat", "dog"]} | columns)
    return dataclasses.replace(TOY, table=table, reference="dog")


def test_decisions_that_differ_are_said():
    # 0.05 rejects, 0.07 does not
    assert result(pvalue=[0.05, 0.07]).verdict.startswith(
        "the test decision hangs on the baseline (p in [0.050, 0.070]; use the one over all)"
    )


def test_a_flat_fit_is_not_called_separated():
    notes = result(separated=[True, False], converged=[False, False]).notes
    assert notes[0].startswith("for 1 of 2 baselines (cat) the estimate does not exist")
    assert notes[1].startswith("for 1 of 2 baselines (dog) the estimate is not determined")
    assert notes[2] == "2 of 3 baselines were tried."


def test_it_is_frozen_and_what_does_not_exist_is_none():
    found = result(pvalue=[float("nan"), 0.1])
    assert found.to_dict()["rows"][0]["pvalue"] is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.pvalue = 0.5
