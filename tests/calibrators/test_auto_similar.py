"""The member that knows which classes look alike, against a slow implementation and by hand."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.optimize import minimize as minimize_by_scipy
from scipy.special import log_softmax, softmax

from mcllo import AutoCalibrator, load_calibrator
from mcllo.calibrators._auto.members import Members, MembersFit, label_log_likelihoods
from mcllo.calibrators._auto.similarity import (
    SimilarClasses,
    SimilarLoss,
    class_similarity,
    fit_similar,
)
from mcllo.calibrators._auto.temperature_with_lapse import (
    ScoredRows,
    TemperatureWithLapse,
)

SOFT = TemperatureWithLapse(0.8, 0.05)


def sample(n=300, c=6, seed=0):
    """Classes 2k and 2k + 1 look alike, and are confused more than the scores say."""
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.normal(size=(c, n)) + np.repeat(
        3.0 * rng.normal(size=(c // 2, n)), 2, axis=0
    )
    pair = np.arange(c) ^ 1
    eta = 0.6 * scores + 0.4 * scores[pair]
    return scores, (eta + rng.gumbel(size=(c, n))).argmax(axis=0)


def rows_of(scores, codes, weight=None):
    g, logs = SOFT.probs_and_logs(scores)
    return g, ScoredRows(logs, codes, weight)


def fitted(scores, codes, weight=None):
    return fit_similar(*rows_of(scores, codes, weight), 1e-12)[0]


def slow(scores, codes, weight, b, a):
    """Return the penalised negative log likelihood, row by row as the card has it."""
    c = len(scores)
    G = np.zeros((c, c))
    g = 0.95 * softmax(0.8 * scores, axis=0) + 0.05 / c
    for w, row in zip(weight, g.T, strict=True):
        G += w * np.outer(row, row)
    G -= np.diag(np.diagonal(G))
    A = np.array([row / row.sum() for row in G])
    total = 0.5 * (2.0 * b @ b + 3.0 * np.sqrt(c) * a @ a)
    for w, row, y in zip(weight, g.T, codes, strict=True):
        x = np.log(row)
        eta = (
            x
            + a
            + b[0] * A @ x
            + b[1] * A @ row
            + b[2] * row
            + b[3] * x
            + b[4] * np.log(A @ row)
        )
        total -= w * log_softmax(eta)[y]
    return total


def test_value_gradient_and_hessian():
    scores, codes = sample(60)
    weight = np.random.default_rng(1).exponential(size=60)
    rows = rows_of(scores, codes, weight)
    loss = SimilarLoss(*rows)
    x = 0.3 * np.random.default_rng(2).normal(size=11)

    def value(x):
        return slow(scores, codes, weight, x[:5], x[5:])

    terms, light = loss(x), loss.value_and_gradient(x)
    assert terms.value == light.value == pytest.approx(value(x), rel=1e-12)
    np.testing.assert_allclose(terms.gradient, approx_fprime(x, value, 1e-6), atol=1e-3)
    np.testing.assert_array_equal(light.gradient, terms.gradient)
    steps = [loss(x + d).gradient - terms.gradient for d in 1e-6 * np.eye(11)]
    np.testing.assert_allclose(terms.hessian, np.array(steps) / 1e-6, atol=2e-3)
    assert np.linalg.eigvalsh(terms.hessian).min() > 0.0  # convex


def test_the_fit_against_scipy():
    scores, codes = sample(50)
    ones = np.ones(50)
    found = fitted(scores, codes)
    known = minimize_by_scipy(
        lambda x: slow(scores, codes, ones, x[:5], x[5:]), np.zeros(11)
    )
    np.testing.assert_allclose(np.r_[found.shared, found.intercept], known.x, atol=2e-3)
    assert known.fun == pytest.approx(
        slow(scores, codes, ones, found.shared, found.intercept)
    )


def test_hand_sized_similarity():
    # One row (0.5, 0.3, 0.2): of the rest, class 0 sees 0.3 : 0.2, class 1 0.5 : 0.2.
    g = np.array([[0.5], [0.3], [0.2]])
    expected = [[0.0, 0.6, 0.4], [5 / 7, 0.0, 2 / 7], [5 / 8, 3 / 8, 0.0]]
    np.testing.assert_allclose(class_similarity(g), expected, atol=1e-15)
    nothing = SimilarClasses(class_similarity(g), np.zeros(5), np.zeros(3))
    probs, logs = nothing.probs_and_logs(g, np.log(g))
    np.testing.assert_allclose(logs, np.log(g), atol=1e-15)
    np.testing.assert_allclose(probs, g, atol=1e-15)


def test_classes_may_be_permuted():
    scores, codes = sample()
    order = np.random.default_rng(3).permutation(6)
    place = np.argsort(order)
    one, other = fitted(scores, codes), fitted(scores[order], place[codes])
    np.testing.assert_allclose(other.shared, one.shared, atol=1e-8)
    np.testing.assert_allclose(other.intercept, one.intercept[order], atol=1e-8)
    np.testing.assert_allclose(
        other.similarity, one.similarity[np.ix_(order, order)], atol=1e-12
    )


def test_a_weight_is_a_number_of_rows():
    scores, codes = sample(100)
    counts = np.arange(100) % 3
    weighed = fitted(scores, codes, counts.astype(float))
    again = fitted(scores.repeat(counts, axis=1), codes.repeat(counts))
    np.testing.assert_allclose(weighed.shared, again.shared, atol=1e-8)
    np.testing.assert_allclose(weighed.intercept, again.intercept, atol=1e-8)


def test_a_fit_that_begins_elsewhere_ends_at_the_same_place():
    scores, codes = sample(200)
    near, _, inverses = fit_similar(*rows_of(scores, codes), 1e-12)
    part = rows_of(scores[:, ::2], codes[::2])
    alone, told, _ = fit_similar(*part, 1e-12)
    found, again, _ = fit_similar(*part, 1e-12, near, inverses(0.5))
    np.testing.assert_allclose(found.shared, alone.shared, atol=1e-5)
    np.testing.assert_allclose(again, told, atol=1e-5)
    np.testing.assert_allclose(
        told, alone.probs_and_logs(part[0], part[1].scores)[1], atol=1e-12
    )
    np.testing.assert_allclose(np.exp(told).sum(axis=0), 1.0, atol=1e-12)


def test_many_rows_are_fitted_after_some_of_them():
    scores, codes = sample(4000)
    rows = rows_of(scores, codes)
    found, _, _ = fit_similar(*rows, 1e-10)
    gradient = SimilarLoss(*rows).value_and_gradient(
        np.r_[found.shared, found.intercept]
    )
    assert np.abs(gradient.gradient).max() < 1e-3  # of 4000 rows


def test_it_pays_where_classes_look_alike():
    # Held-out log loss of the member against a temperature: .07 lower in this simulation.
    scores, codes = sample(400, c=30)
    fit = MembersFit(scores, codes)
    new, labels = sample(4000, c=30, seed=1)
    loss = dict(
        zip(
            fit.whole.names,
            -label_log_likelihoods(fit.whole.all_probabilities(new), labels).mean(0),
            strict=True,
        )
    )
    assert loss["similar"] < loss["temperature"] - 0.03


def test_full_maps_build_on_it():
    scores, codes = sample(200)
    whole = MembersFit(scores, codes).whole
    assert whole.similar is not None
    same = {name: np.eye(6, 7) for name in ("mcllo", "full_tight", "full_loose")}
    answers = Members(whole.soft, same, whole.similar).probabilities(scores)
    np.testing.assert_allclose(answers["full_loose"], answers["similar"], atol=1e-14)
    np.testing.assert_allclose(answers["mcllo"], answers["temperature"], atol=1e-14)


def test_saved_and_restored(tmp_path):
    scores, codes = sample(600, 24)
    auto = AutoCalibrator(on="logits", classes=range(24)).fit(scores.T, codes)
    assert auto.weights_["similar"] > 0.0
    auto.save(tmp_path / "auto.json")
    again = load_calibrator(tmp_path / "auto.json")
    np.testing.assert_array_equal(
        again.predict_proba(scores.T), auto.predict_proba(scores.T)
    )
