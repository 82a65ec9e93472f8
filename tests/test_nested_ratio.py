import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import draw, simplex
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

import mcllo._batch as batch
from mcllo import Predictions
from mcllo._full_map import FullDraws, mcllo_places
from mcllo._ladder_models import mcllo_bases
from mcllo._model import recalibrate
from mcllo._monte_carlo import StatisticDraws
from mcllo._nested_ratio import NestedRatio
from mcllo._restriction import Family, RestrictedRatio, restricted_fit
from mcllo._threads import threads


def pair(predictions, small, large, origin):
    """The ratio of two models of the ladder, both from `origin`, and of plain convergence."""
    family, bases = Family(predictions), mcllo_bases(predictions.n_classes - 1)
    low, up = (RestrictedRatio(family, family.identified(bases[m]), origin) for m in (small, large))
    places = np.arange(len(origin))
    return NestedRatio(low, up, places), lambda s: up.statistics(s) - low.statistics(s)


def fitted_draws(predictions, theta, seed, size):
    draws = StatisticDraws(predictions, seed)
    draws.probs = recalibrate(theta, predictions.log_odds, predictions.baseline_index)
    return draws(0, size)


def assert_decisions_equal_convergence(ratio, converged, statistics):
    full = converged(statistics)
    for threshold in np.quantile(full, [0.1, 0.5, 0.9, 0.98]) + 0.01:
        clear = np.abs(full - threshold) > 1e-5 * max(1.0, threshold)
        found = ratio.reaches(statistics, float(threshold))
        np.testing.assert_array_equal(found[clear], full[clear] >= threshold)


def test_a_model_gains_nothing_over_itself():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    origin = Family(p).identity
    ratio, _ = pair(p, "shift", "shift", origin)
    statistics = StatisticDraws(p, 0)(0, 20)
    assert ratio.reaches(statistics, 0.0).all()
    assert not ratio.reaches(statistics, 0.01).any()


def test_no_draws():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    ratio, _ = pair(p, "shift", "mcllo", Family(p).identity)
    assert ratio.reaches(np.empty((0, 4)), 1.0).shape == (0,)


def test_toy_statistic_is_its_own_threshold():
    # methods specification 8f, TOY: MCLLO against temperature is 1.146211420 - .601303196
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    family = Family(p)
    ratio, _ = pair(p, "temperature", "mcllo", family.identity)
    value = 1.146211420 - 0.601303196
    assert ratio.reaches(family.statistic[None], value).all()
    assert not ratio.reaches(family.statistic[None], value + 1e-4).any()


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(3, 4),
    st.integers(10, 60),
    st.floats(0.3, 6.0),
    st.sampled_from(["temperature", "shift", "scale", "common_slope"]),
)
def test_decisions_equal_full_convergence(seed, c, n, sharpness, small):
    rng = np.random.default_rng(seed)
    probs = np.maximum(simplex(rng, n, c, sharpness), 1e-12)
    probs /= probs.sum(axis=1, keepdims=True)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=range(c))
    family = Family(p)
    fit = restricted_fit(family, family.identified(mcllo_bases(c - 1)[small]))
    origin = fit.theta if fit.settled else family.identity
    statistics = fitted_draws(p, fit.theta, 1, 25)
    assert_decisions_equal_convergence(*pair(p, small, "mcllo", origin), statistics)


def test_decisions_for_the_full_map():
    rng = np.random.default_rng(3)
    probs = simplex(rng, 60, 3, 2.0)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=range(3))
    mcllo, full, places = Family(p), Family(p, full=True), mcllo_places(2)
    low = RestrictedRatio(mcllo, np.eye(4), mcllo.identity)
    up = RestrictedRatio(full, np.eye(6), full.identity)
    statistics = FullDraws(p, 0)(0, 40)
    assert_decisions_equal_convergence(
        NestedRatio(low, up, places),
        lambda s: up.statistics(s) - low.statistics(s[:, places]),
        statistics,
    )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_threads_and_parts_change_nothing(monkeypatch, n):
    rng = np.random.default_rng(4)
    probs = simplex(rng, 80, 4, 3.0)
    p = Predictions.from_arrays(probs, draw(probs, rng), classes=range(4))
    ratio, _ = pair(p, "temperature", "mcllo", Family(p).identity)
    statistics = StatisticDraws(p, 0)(0, 90)
    usual = ratio.reaches(statistics, 5.0)
    assert 0 < usual.sum() < 90
    monkeypatch.setattr(batch, "THREADS_PAY", 1)
    monkeypatch.setattr(batch, "TOGETHER", 7)
    with threads(n):
        np.testing.assert_array_equal(ratio.reaches(statistics, 5.0), usual)


@pytest.mark.slow
def test_decisions_on_a_sharp_network():
    p = load_cifar10_vgg16_keras().take(np.arange(300))
    family = Family(p)
    fit = restricted_fit(family, mcllo_bases(9)["shift"])
    statistics = fitted_draws(p, fit.theta, 2, 60)
    assert_decisions_equal_convergence(*pair(p, "shift", "mcllo", fit.theta), statistics)
