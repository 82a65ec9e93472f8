import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._probabilities import clean_logits, clean_probs
from mcllo.calibrators._linear_map import (
    LinearMap,
    input_of,
    softmax_columns,
    transposed_scores,
    warn_absent,
)
from mcllo.exceptions import AbsentClassWarning


@pytest.mark.parametrize("coef", [np.array(1.0), np.ones(3), np.eye(3)])
def test_identity(coef):
    answer = LinearMap(coef, np.zeros(3)).apply(clean_probs(TOY_X))
    np.testing.assert_allclose(answer, TOY_X, atol=1e-15)


def test_hand_sized_example():
    # W doubles the first score and b adds log 3 to the second: (1/4, 1/2, 1/4) has scores
    # log(1/16, 3/2, 1/4), that is 1 : 24 : 4.
    double = LinearMap(np.array([2.0, 1.0, 1.0]), np.array([0.0, np.log(3.0), 0.0]))
    answer = double.apply(clean_probs([[0.25, 0.5, 0.25]]))
    np.testing.assert_allclose(answer, [[1 / 29, 24 / 29, 4 / 29]])


def test_a_matrix_mixes_scores():
    W, b = (
        np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]]),
        np.array([0.1, 0.2, -0.3]),
    )
    expected = softmax(np.log(TOY_X) @ W.T + b, axis=1)
    np.testing.assert_allclose(LinearMap(W, b).apply(clean_probs(TOY_X)), expected, atol=1e-14)


def test_an_absent_class_keeps_its_probability():
    # Of (.2, .3, .5) the middle is absent: u = 2 splits the other .7 as .04 : .25.
    twice = LinearMap(np.array(2.0), np.zeros(3), absent=(1,))
    answer = twice.apply(clean_probs([[0.2, 0.3, 0.5]]))
    np.testing.assert_allclose(answer, [[0.7 * 4 / 29, 0.3, 0.7 * 25 / 29]])


def test_many_rows_are_mapped_in_blocks_as_in_one():
    z = np.random.default_rng(0).normal(size=(20_001, 5))
    W = np.random.default_rng(1).normal(size=(5, 5))
    answer = LinearMap(W, np.zeros(5)).apply(clean_logits(z))
    np.testing.assert_allclose(answer, softmax(z @ W.T, axis=1), atol=1e-13)


def test_scores():
    logits = np.log(TOY_X) + np.arange(16.0)[:, None]
    held = Predictions.from_arrays(logits=logits, y=TOY_Y)
    np.testing.assert_array_equal(transposed_scores(held), logits.T)
    np.testing.assert_allclose(transposed_scores(held, "log_probs"), np.log(TOY_X).T, atol=1e-14)
    np.testing.assert_array_equal(transposed_scores(clean_probs(TOY_X)), np.log(TOY_X).T)


def test_log_probabilities_of_logits_too_far_apart_for_probabilities():
    held = Predictions.from_arrays(logits=[[0.0, -2000.0], [0.0, 1.0]], y=[0, 1])
    expected = log_softmax(held.logits, axis=1).T
    np.testing.assert_allclose(transposed_scores(held, "log_probs"), expected)


def test_softmax_of_large_scores():
    eta = np.array([[1e6, -1e6], [1e6, 0.0]])
    log_sum = softmax_columns(eta)
    np.testing.assert_allclose(eta, [[0.5, 0.0], [0.5, 1.0]])
    np.testing.assert_allclose(log_sum, [1e6 + np.log(2.0), 0.0])


def test_the_input_of_scores():
    assert (input_of("logits"), input_of("log_probs")) == ("logits", "probs")


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(), (4,), (4, 4)]),
    absent=st.lists(st.integers(0, 3), max_size=3, unique=True),
)
def test_rows_sum_to_one_and_the_dictionary_is_exact(seed, shape, absent):
    rng = np.random.default_rng(seed)
    one = LinearMap(3 * rng.normal(size=shape), rng.normal(size=4), tuple(sorted(absent)), 5)
    rows = clean_logits(10 * rng.normal(size=(7, 4)))
    answer = one.apply(rows)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(answer[:, sorted(absent)], rows.probs[:, sorted(absent)])
    again = LinearMap.from_dict(json.loads(json.dumps(one.to_dict())))
    np.testing.assert_array_equal(again.apply(rows), answer)
    assert again.to_dict() == one.to_dict()


def test_absent_classes_are_named():
    held = Predictions.from_arrays(TOY_X, np.zeros(16, dtype=int), classes=[0, 1, 2])
    with pytest.warns(AbsentClassWarning, match="no row has class 1, 2; .*: so be it"):
        warn_absent(held, "so be it")
