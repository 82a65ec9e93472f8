import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from mcllo.calibrators import _row_sets
from mcllo.calibrators._row_sets import RowSets, all_rows
from mcllo.calibrators._soft_temperature import (
    SoftTemperature,
    _Problems,
    features,
    fit_soft_temperatures,
)


def sample(n, c, u, slip, seed=0):
    """Scores whose labels follow softmax(u z), but for a share `slip` drawn uniformly."""
    rng = np.random.default_rng(seed)
    scores = 4.0 * rng.normal(size=(c, n))
    codes = (u * scores + rng.gumbel(size=(c, n))).argmax(axis=0)
    return scores, np.where(rng.random(n) < slip, rng.integers(0, c, n), codes)


def plain(x, scores, codes, weight):
    """The objective in the words of the equation card."""
    v, e = x[0], expit(x[1])
    g = (1.0 - e) * softmax(np.exp(v) * scores, axis=0) + e / len(scores)
    loss = -weight @ np.log(g[codes, np.arange(len(codes))])
    return loss - 0.5 * (np.log(e) + np.log(1.0 - e)) + 0.5 * (4.0 if v > 0 else 0.05) * v * v


def fitted(scores, codes, weight=None, start=None):
    starts = None if start is None else [start]
    return fit_soft_temperatures(all_rows(scores, codes, weight), starts)[0]


def problems_of(scores, codes, weight=None):
    return _Problems(all_rows(scores - scores.max(axis=0), codes, weight))


def test_no_slip_and_no_change_is_the_softmax():
    scores = sample(20, 3, 1.0, 0.0)[0]
    logs = SoftTemperature(1.0, 0.0).logs(scores)
    np.testing.assert_allclose(logs, log_softmax(scores, axis=0), atol=1e-13)


def test_hand_sized_example():
    # u = 2 turns odds 1 : 1/2 into 1 : 1/4, that is 0.8 and 0.2; a slip of 0.1 adds 0.05 to 0.9
    # times these: 0.77 and 0.23.
    logs = SoftTemperature(2.0, 0.1).logs(np.log([[2.0], [1.0]]))
    np.testing.assert_allclose(np.exp(logs), [[0.77], [0.23]], atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_against_a_general_optimiser(weighted):
    scores, codes = sample(400, 4, 0.6, 0.05)
    weight = np.random.default_rng(1).exponential(size=400) if weighted else None
    found = fitted(scores, codes, weight)
    full = np.ones(400) if weight is None else weight
    best = minimize(plain, [-0.5, -3.0], args=(scores, codes, full), tol=1e-12)
    assert np.log(found.inverse_temperature) == pytest.approx(best.x[0], abs=1e-4)
    assert found.slip == pytest.approx(expit(best.x[1]), abs=1e-4)


@pytest.mark.parametrize("x", [(0.3, -2.0), (-0.4, -4.0), (-1.5, 0.5)])
def test_value_and_gradient_against_the_card(x):
    scores, codes = sample(50, 3, 0.6, 0.2)
    weight = np.linspace(0.5, 2.0, 50)
    (value,), (gradient,) = problems_of(scores, codes, weight).value_gradient(np.array([x]))
    assert value == pytest.approx(plain(x, scores, codes, weight), rel=1e-12)
    for j, h in enumerate(1e-6 * np.eye(2)):
        up, down = (plain(np.array(x) + s * h, scores, codes, weight) for s in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-6)


def test_curvature_against_differences_where_it_is_positive():
    scores, codes = sample(400, 4, 0.6, 0.1)
    problems = problems_of(scores, codes)
    found = fitted(scores, codes)
    logit = np.log(found.slip / (1.0 - found.slip))
    x = np.array([[np.log(found.inverse_temperature), logit]])
    slopes = [
        problems.value_gradient(x + h)[1][0] - problems.value_gradient(x - h)[1][0]
        for h in 1e-5 * np.eye(2)
    ]
    problems.value_gradient(x)
    np.testing.assert_allclose(problems.hessian[0], np.array(slopes) / 2e-5, rtol=1e-5)


def test_sets_of_rows_are_fitted_by_themselves():
    single = [all_rows(*sample(200, 4, u, 0.05, seed=k)) for k, u in enumerate((0.5, 1.5))]
    rows = RowSets(*(np.concatenate([getattr(s, k) for s in single]) for k in ("scores", "codes")))
    found = fit_soft_temperatures(rows)
    for soft, alone in zip(found, single, strict=True):
        expected = fit_soft_temperatures(alone)[0]
        assert soft.slip == pytest.approx(expected.slip, rel=1e-4)
        assert soft.inverse_temperature == pytest.approx(expected.inverse_temperature, rel=1e-4)
    logs = features(rows, found).scores
    np.testing.assert_allclose(logs[1, :-1], found[1].logs(rows.scores[1]), atol=1e-14)
    assert (logs[:, -1] == 1.0).all()


def test_float32_and_first_fits_change_little(monkeypatch):
    scores, codes = sample(3000, 4, 0.7, 0.05)
    expected = fitted(scores, codes)
    monkeypatch.setattr(_row_sets, "FLOAT32_PAYS", 1)
    monkeypatch.setattr(_row_sets, "FIRST", 100)
    found = fitted(scores, codes)
    assert found.slip == pytest.approx(expected.slip, rel=1e-3)
    assert found.inverse_temperature == pytest.approx(expected.inverse_temperature, rel=1e-3)


def test_finds_what_the_labels_were_drawn_with():
    # 20,000 rows: standard errors are about 0.01 for u and 0.002 for the slip.
    found = fitted(*sample(20_000, 4, 0.7, 0.05))
    assert found.inverse_temperature == pytest.approx(0.7, abs=0.04)
    assert found.slip == pytest.approx(0.05, abs=0.01)


def test_rows_without_an_error_do_not_sharpen_without_limit():
    scores = np.log([[0.98] * 200, [0.01] * 200, [0.01] * 200])
    found = fitted(scores, np.zeros(200, dtype=int))
    assert 1.0 < found.inverse_temperature < 5.0
    assert 0.0 < found.slip < 0.01


def test_labels_worse_than_chance_give_a_flat_answer():
    scores = np.log([[0.98] * 200, [0.01] * 200, [0.01] * 200])
    found = fitted(scores, np.full(200, 2))
    assert np.abs(np.exp(found.logs(scores)) - 1.0 / 3.0).max() < 0.02


@given(st.integers(0, 1000), st.integers(1, 30), st.floats(-50.0, 50.0))
@settings(deadline=None, max_examples=30)
def test_shifts_permutations_and_starts_do_not_matter(seed, n, shift):
    scores, codes = sample(n, 3, 0.8, 0.1, seed)
    found = fitted(scores, codes)
    order = np.array([2, 0, 1])
    other = fitted(scores[order] + shift, np.argsort(order)[codes])
    logs = found.logs(scores)
    np.testing.assert_allclose(other.logs(scores[order] + shift), logs[order], atol=1e-5)
    again = fitted(scores, codes, start=found)
    np.testing.assert_allclose(again.logs(scores), logs, atol=1e-5)
