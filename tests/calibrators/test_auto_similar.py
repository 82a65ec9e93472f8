"""The member that knows which classes look alike, against a slow implementation and by hand."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.optimize import minimize as minimize_by_scipy
from scipy.special import log_softmax, softmax

from mcllo import AutoCalibrator
from mcllo.calibrators._auto.members import Members, MembersFit
from mcllo.calibrators._auto.row_sets import all_rows, some_rows
from mcllo.calibrators._auto.similar_classes import (
    SimilarClasses,
    SimilarProblems,
    fit_similar,
    similar_features,
    similarity,
)
from mcllo.calibrators._auto.soft_temperature import SoftTemperature, features

SOFT = SoftTemperature(0.8, 0.05)


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
    return features(all_rows(scores, codes, weight, np.float64), [SOFT])


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
        eta = x + a + b[0] * A @ x + b[1] * A @ row + b[2] * row + b[3] * x + b[4] * np.log(A @ row)
        total -= w * log_softmax(eta)[y]
    return total


def test_value_gradient_and_hessian():
    scores, codes = sample(60)
    weight = np.random.default_rng(1).exponential(size=60)
    rows = rows_of(scores, codes, weight)
    problems = SimilarProblems(rows, similarity(rows))
    x = 0.3 * np.random.default_rng(2).normal(size=11)

    def value(x):
        return slow(scores, codes, weight, x[:5], x[5:])

    found, gradient = problems.value_gradient(x[None])
    hessian = problems.hessian[0]
    assert found[0] == pytest.approx(value(x), rel=1e-12)
    numeric = approx_fprime(x, value, 1e-6)
    np.testing.assert_allclose(gradient[0], numeric, atol=1e-3)
    steps = [problems.value_gradient((x + d)[None])[1][0] for d in 1e-6 * np.eye(11)]
    np.testing.assert_allclose(hessian, (np.array(steps) - gradient[0]) / 1e-6, atol=2e-3)
    assert np.linalg.eigvalsh(hessian).min() > 0.0  # convex


def test_the_fit_against_scipy():
    scores, codes = sample(120)
    ones = np.ones(120)
    found = fit_similar(rows_of(scores, codes), None, 1e-12)[0]
    known = minimize_by_scipy(lambda x: slow(scores, codes, ones, x[:5], x[5:]), np.zeros(11))
    np.testing.assert_allclose(np.r_[found.shared, found.intercept], known.x, atol=2e-3)
    assert known.fun == pytest.approx(slow(scores, codes, ones, found.shared, found.intercept))


def test_hand_sized_similarity():
    # One row (0.5, 0.3, 0.2): of the rest, class 0 sees 0.3 : 0.2, class 1 0.5 : 0.2.
    rows = features(all_rows(np.log([[0.5], [0.3], [0.2]]), np.array([0])), [SoftTemperature(1, 0)])
    expected = [[0.0, 0.6, 0.4], [5 / 7, 0.0, 2 / 7], [5 / 8, 3 / 8, 0.0]]
    np.testing.assert_allclose(similarity(rows)[0], expected, atol=1e-15)
    nothing = SimilarClasses(similarity(rows)[0], np.zeros(5), np.zeros(3))
    np.testing.assert_allclose(nothing.logs(rows.scores[0, :-1]), rows.scores[0, :-1], atol=1e-15)


def test_classes_may_be_permuted():
    scores, codes = sample()
    order = np.random.default_rng(3).permutation(6)
    place = np.argsort(order)
    one = fit_similar(rows_of(scores, codes), None, 1e-12)[0]
    other = fit_similar(rows_of(scores[order], place[codes]), None, 1e-12)[0]
    np.testing.assert_allclose(other.shared, one.shared, atol=1e-8)
    np.testing.assert_allclose(other.intercept, one.intercept[order], atol=1e-8)
    np.testing.assert_allclose(other.similarity, one.similarity[np.ix_(order, order)], atol=1e-12)


def test_a_weight_is_a_number_of_rows():
    scores, codes = sample(100)
    counts = np.arange(100) % 3
    weighed = fit_similar(rows_of(scores, codes, counts.astype(float)), None, 1e-12)[0]
    again = fit_similar(rows_of(scores.repeat(counts, axis=1), codes.repeat(counts)), None, 1e-12)[
        0
    ]
    np.testing.assert_allclose(weighed.shared, again.shared, atol=1e-8)
    np.testing.assert_allclose(weighed.intercept, again.intercept, atol=1e-8)


def test_several_sets_are_fits_of_their_own():
    scores, codes = sample(200)
    weights = [np.ones(200), (np.arange(200) % 4 > 0).astype(float)]
    sets = features(some_rows(scores, codes, weights), [SOFT, SOFT])
    found = fit_similar(sets, None, 1e-12)
    kept = weights[1] > 0.0
    alone = fit_similar(rows_of(scores[:, kept], codes[kept]), None, 1e-12)[0]
    np.testing.assert_allclose(found[1].shared, alone.shared, atol=1e-8)
    told = similar_features(sets, found).scores[0]
    np.testing.assert_allclose(np.exp(told[:-1]).sum(axis=0), 1.0, atol=1e-12)
    assert (told[-1] == 1.0).all()


def test_it_pays_where_classes_look_alike():
    # Held-out log loss of the member against a temperature: .07 lower in this simulation.
    scores, codes = sample(400, c=30)
    fit = MembersFit(scores, codes)
    new, labels = sample(4000, c=30, seed=1)
    loss = dict(zip(fit.whole.names, -fit.whole.logs_of_labels(new, labels).mean(0), strict=True))
    assert loss["similar"] < loss["temperature"] - 0.03


def test_full_maps_build_on_it():
    scores, codes = sample(200)
    whole = MembersFit(scores, codes).whole
    assert whole.similar is not None
    same = {name: np.eye(6, 7) for name in ("mcllo", "full_tight", "full_loose")}
    answers = Members(whole.soft, same, whole.similar).probabilities(scores)
    np.testing.assert_allclose(answers["full_loose"], answers["similar"], atol=1e-14)
    np.testing.assert_allclose(answers["mcllo"], answers["temperature"], atol=1e-14)


@pytest.mark.parametrize("c", [6, 24])
def test_saved_and_restored(c, tmp_path):
    from mcllo import load_calibrator

    scores, codes = sample(600, c)
    auto = AutoCalibrator(on="logits", classes=range(c)).fit(scores.T, codes)
    assert auto.weights_["similar"] > 0.0
    auto.save(tmp_path / "auto.json")
    again = load_calibrator(tmp_path / "auto.json")
    np.testing.assert_array_equal(again.predict_proba(scores.T), auto.predict_proba(scores.T))
