import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import designs, simplex
from toy import TOY_X, TOY_Y

from mcllo import MCLLOMap, Predictions
from mcllo._fit.fit import fit_each_baseline, fit_mean_over_baselines, fit_predictions
from mcllo._fit.map import AllBaselinesMap
from mcllo.exceptions import InputError, SeparationWarning

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_identities_average_to_the_identity():
    maps = [MCLLOMap(np.zeros(2), np.ones(2), ("a", "b", "c"), b) for b in "abc"]
    mean = AllBaselinesMap.from_maps(maps)
    assert mean.recalibrate(TOY_X) == pytest.approx(TOY_X, abs=1e-15)
    # eta = z - mean(z): W = I - 1/3
    assert mean.weights == pytest.approx(np.eye(3) - 1 / 3)
    assert mean.intercepts == pytest.approx(np.zeros(3))


def test_it_is_the_geometric_mean_of_the_fits():
    # as defined, and methods.md 8b, TOY
    g = [fit_predictions(TOY.with_baseline(b)).recalibrate(TOY_X) for b in range(3)]
    product = (g[0] * g[1] * g[2]) ** (1 / 3)
    expected = product / product.sum(axis=1, keepdims=True)
    found = fit_mean_over_baselines(TOY).recalibrate(TOY_X)
    assert found == pytest.approx(expected, abs=1e-12)
    assert found[0] == pytest.approx([0.839617, 0.119221, 0.041161], abs=1e-6)


@settings(deadline=None, max_examples=15)
@given(
    designs(min_rows=8, max_sharpness=2.5),
    st.randoms(use_true_random=False),
    st.sampled_from([0.1, 1.0]),
)
def test_permuting_classes_permutes_the_result(design, random, penalty):
    probs, codes = design
    c = probs.shape[1]
    order = np.array(random.sample(range(c), c))
    p = Predictions.from_arrays(probs, codes, classes=range(c))
    q = Predictions.from_arrays(
        probs[:, order], np.argsort(order)[codes], classes=range(c)
    )
    there = fit_mean_over_baselines(p, penalty=penalty)
    back = fit_mean_over_baselines(q, penalty=penalty)
    assert back.weights == pytest.approx(there.weights[np.ix_(order, order)], abs=1e-6)
    assert back.recalibrate(probs[:, order]) == pytest.approx(
        there.recalibrate(probs)[:, order], abs=1e-7
    )


def test_relabelling_and_the_baseline_of_the_predictions_change_nothing():
    names = np.array(["zebra", "ant", "cow"])
    q = Predictions.from_arrays(TOY_X, names[TOY_Y], classes=names, baseline="ant")
    found = fit_mean_over_baselines(q)
    assert found.classes == ("zebra", "ant", "cow")
    assert np.array_equal(
        found.recalibrate(TOY_X), fit_mean_over_baselines(TOY).recalibrate(TOY_X)
    )


def test_two_classes_are_plain_mcllo():
    rng = np.random.default_rng(0)
    probs = simplex(rng, 60, 2)
    p = Predictions.from_arrays(probs, np.resize([0, 1, 1], 60))
    for penalty in (0.0, 1.0):
        single = fit_predictions(p, penalty=penalty).recalibrate(probs)
        found = fit_mean_over_baselines(p, penalty=penalty).recalibrate(probs)
        assert found == pytest.approx(single, abs=1e-9), penalty


def test_rows_and_columns_of_the_weights_sum_to_zero():
    found = fit_mean_over_baselines(TOY, penalty=1.0)
    assert found.weights.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    assert found.weights.sum(axis=1) == pytest.approx(np.zeros(3), abs=1e-12)
    assert found.intercepts.sum() == pytest.approx(0.0, abs=1e-12)


def test_logits_are_as_good_as_probabilities():
    found = fit_mean_over_baselines(TOY)
    logits = np.log(TOY_X) + 700.0 * np.arange(16)[:, None]
    assert found.recalibrate(logits=logits) == pytest.approx(
        found.recalibrate(TOY_X), abs=1e-9
    )
    small = np.array([[3.0, 1.0, 0.0]])
    far = found.recalibrate(logits=small + 2.0**50)  # whole numbers: the sum is exact
    assert np.array_equal(far, found.recalibrate(logits=small))
    huge = found.recalibrate(logits=[[1e100, 0.0, -1e100]])
    assert huge == pytest.approx(np.array([[1.0, 0.0, 0.0]]))


def test_whole_weights_are_repetitions():
    repeat = np.resize([1, 2, 3], 16)
    weighted = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=repeat)
    long = Predictions.from_arrays(
        np.repeat(TOY_X, repeat, axis=0), np.repeat(TOY_Y, repeat)
    )
    expected = fit_mean_over_baselines(long).weights
    assert fit_mean_over_baselines(weighted).weights == pytest.approx(
        expected, abs=1e-8
    )


def test_it_survives_a_file():
    found = fit_mean_over_baselines(TOY)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    back = AllBaselinesMap.from_dict(content)
    assert np.array_equal(back.recalibrate(TOY_X), found.recalibrate(TOY_X))
    assert back.classes == found.classes
    assert content["baseline"] == "all"
    assert repr(back) == "AllBaselinesMap(classes=(0, 1, 2))"


def test_one_warning_speaks_for_all_fits():
    p = Predictions.from_arrays(
        TOY_X, TOY_X.argmax(axis=1)
    )  # separated by construction
    with pytest.warns(SeparationWarning, match="estimate does not exist: ") as caught:
        fit_mean_over_baselines(p)
    assert "(baseline 0 and 2 more)" in caught[0].message.text()
    assert caught[0].message.numbers == {"baselines": (0, 1, 2)}
    assert len(caught) == 1
    assert [f.separated for f in fit_each_baseline(p, p.classes)] == [True] * 3
    assert np.isfinite(
        fit_mean_over_baselines(p, penalty=1.0).weights
    ).all()  # needs no warning


def test_what_is_refused():
    maps = [MCLLOMap(np.zeros(2), np.ones(2), ("a", "b", "c"), b) for b in "abb"]
    with pytest.raises(
        InputError, match=r"one map for each of the 3 classes.*'a', 'b', 'b'"
    ):
        AllBaselinesMap.from_maps(maps)
    content = {**fit_mean_over_baselines(TOY).to_dict(), "intercepts": [0.0, 0.0]}
    with pytest.raises(
        ValueError, match=r"shapes \(3, 3\) and \(3,\); got \(3, 3\) and \(2,\)"
    ):
        AllBaselinesMap.from_dict(content)
    p = Predictions.from_arrays(np.full((2, 51), 1 / 51), [0, 1], classes=range(51))
    with pytest.raises(
        InputError, match=r"at most 50 baselines.*got 51 classes.*baseline="
    ):
        fit_mean_over_baselines(p)
