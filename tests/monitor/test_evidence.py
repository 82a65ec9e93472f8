"""Factors of a batch: they are e-values to the last digit, and the formulas of the card."""

from itertools import product

import numpy as np
import pytest

from mcllo._monitor import e_values
from mcllo._monitor.e_values import (
    EXPONENTS,
    IDENTITY_TEMPERATURE_PLACE,
    PER_CLASS,
    SHIFTS,
    SLOPES,
    MapLearners,
    batch_e_values,
    log_prior_weights_of_maps,
    update_map_learners,
)
from mcllo._validation.predictions import Predictions


def rows(rng, n, c, concentration=0.7):
    return rng.dirichlet(np.full(c, concentration), n)


def predictions(probs, y, **options):
    return Predictions.from_arrays(probs, y, classes=range(probs.shape[1]), **options)


def taught(rng, c, n=400):
    """Return learners that have seen rows whose labels are far from the predictions."""
    probs = rows(rng, n, c)
    truth = probs**0.5 * np.linspace(0.5, 2.0, c)
    y = [rng.choice(c, p=p) for p in truth / truth.sum(axis=1, keepdims=True)]
    return update_map_learners(predictions(probs, y), MapLearners.new(c, 1))


@pytest.mark.parametrize("c", [2, 7])
def test_the_expected_factor_of_every_map_is_one(c):
    rng = np.random.default_rng(c)
    past = taught(rng, c)
    for x in rows(rng, 4, c, 0.3):
        found = [
            np.exp(batch_e_values(predictions(x[None], [j]), past).log_factors_by_map())
            for j in range(c)
        ]
        np.testing.assert_allclose(x @ np.array(found), 1.0, rtol=1e-9)


def test_it_is_one_for_a_network_that_is_all_but_certain():
    past = taught(np.random.default_rng(0), 3)
    x = np.array([1.0 - 3e-15, 1e-15, 2e-15])
    found = [
        np.exp(batch_e_values(predictions(x[None], [j]), past).log_factors_by_map())
        for j in range(3)
    ]
    np.testing.assert_allclose(x @ np.array(found), 1.0, rtol=1e-9)


def test_the_expected_factor_of_a_group_is_one_however_its_rows_depend():
    rng = np.random.default_rng(5)
    past, c = taught(rng, 3), 3
    probs = rows(rng, 2, c)
    low = np.minimum(probs[0], probs[1])  # as alike as the margins allow: a coupling
    rest = np.outer(probs[0] - low, probs[1] - low) / (1.0 - low.sum())
    joint = np.diag(low) + rest
    np.testing.assert_allclose(joint.sum(axis=1), probs[0])
    mean, alone = 0.0, np.vstack([probs, [0.2, 0.3, 0.5]])
    for a, b, other in product(range(c), repeat=3):
        batch = predictions(alone, [a, b, other], groups=[7, 7, 8])
        mean = mean + joint[a, b] * alone[2, other] * np.exp(
            batch_e_values(batch, past).log_factors_by_map()
        )
    np.testing.assert_allclose(mean, 1.0, rtol=1e-9)


@pytest.mark.parametrize("hidden", [0.0, 0.004, 0.3])
def test_a_predicted_zero_may_hide_any_probability(hidden):
    # 0 predicted, `hidden` true: no map gains by it, but the one that asks whether zeros are right
    x, past = np.array([0.6, 0.4, 0.0]), taught(np.random.default_rng(1), 3)
    truth = np.array([0.6 * (1.0 - hidden), 0.4 * (1.0 - hidden), hidden])
    with pytest.warns(match="0"):
        batches = [predictions(x[None], [j]) for j in range(3)]

    def of(batch):
        return batch_e_values(batch, past)

    mean = truth @ np.exp([of(batch).log_factors_by_map() for batch in batches])
    assert (mean[:-1] <= 1.0 + 1e-9).all()
    # exponents against each other, as their interval needs: no gain over the true one either
    for u, place in ((0.25, 0), (2.0, 24)):
        truth = np.append(x[:2] ** u / (x[:2] ** u).sum() * (1.0 - hidden), hidden)
        ratio = [
            np.exp(found.likelihood - found.likelihood[place])
            for found in map(of, batches)
        ]
        np.testing.assert_allclose(truth @ np.array(ratio), 1.0, rtol=1e-9)
    assert (mean[-1] <= 1.0) == (hidden <= e_values.MAX_ZERO_SHARE)


def test_factors_are_the_formulas():
    rng = np.random.default_rng(2)
    probs, past = rows(rng, 5, 3), taught(rng, 3)
    y = np.array([0, 2, 1, 1, 0])
    found, at = batch_e_values(predictions(probs, y), past), np.arange(5)
    for k, u in enumerate(EXPONENTS):
        g = probs**u / (probs**u).sum(axis=1, keepdims=True)
        assert found.temperatures[k] == pytest.approx(np.log(g / probs)[at, y].sum())
        assert found.likelihood[k] == pytest.approx(np.log(g)[at, y].sum())
        assert found.moved[k] == pytest.approx(0.5 * np.abs(g - probs).sum())
    assert found.temperatures[IDENTITY_TEMPERATURE_PLACE] == pytest.approx(
        0.0, abs=1e-12
    )
    for j, k in product(range(3), range(PER_CLASS)):
        odds, hit = probs[:, j] / (1.0 - probs[:, j]), y == j
        new = odds * np.exp(SHIFTS[k]) if k < 6 else odds ** SLOPES[k - 6]
        q = new / (1.0 + new)
        factor = np.where(hit, q / probs[:, j], (1.0 - q) / (1.0 - probs[:, j]))
        assert found.classes[j, k] == pytest.approx(np.log(factor).sum())
    for k, shift in enumerate(past.shifts):
        g = probs * np.exp(shift.tau)
        g /= g.sum(axis=1, keepdims=True)
        assert found.learned[k] == pytest.approx(np.log(g / probs)[at, y].sum())
    theta = past.filters[1].mean  # baseline is class 1
    g = np.column_stack(
        [
            np.exp(theta[0]) * (probs[:, 0] / probs[:, 1]) ** theta[2],
            np.ones(5),
            np.exp(theta[1]) * (probs[:, 2] / probs[:, 1]) ** theta[3],
        ]
    )
    g /= g.sum(axis=1, keepdims=True)
    assert found.learned[3] == pytest.approx(np.log(g / probs)[at, y].sum())
    away = (y[:, None] == np.arange(3)) - probs
    cool = probs ** EXPONENTS[10] / (probs ** EXPONENTS[10]).sum(axis=1, keepdims=True)
    flat, first = len(EXPONENTS) + PER_CLASS + 6, len(EXPONENTS) + 3 * PER_CLASS
    low = probs[:, [1]] < 0.5  # the map of class 1 with slope 0.7 raises it there
    for witness, raises in (
        (10, cool > probs),
        (len(EXPONENTS) + 5, np.arange(3) == np.zeros((5, 1))),
        (len(EXPONENTS), np.arange(3) != np.zeros((5, 1))),
        (flat, (np.arange(3) == 1) == low),
        (first + 3, g > probs),
        (first + 4, np.zeros((5, 3), dtype=bool)),
    ):
        seen = np.where(raises, away, 0.0).sum(axis=1)
        witnessed = batch_e_values(predictions(probs, y), past, witness).witness
        np.testing.assert_allclose(witnessed, [seen.sum(), (seen**2).sum()], atol=1e-12)
    np.testing.assert_allclose(found.shares, [away.sum(axis=0), (away**2).sum(axis=0)])
    assert found.loss == pytest.approx(-np.log(probs[at, y]).sum())


@pytest.mark.parametrize("grouped", [False, True])
def test_pieces_of_a_large_batch_add_up(grouped):
    rng = np.random.default_rng(3)
    n = e_values.CHUNK_ENTRIES // 10 + 11
    probs, y = rows(rng, n, 20, 2.0), rng.integers(0, 20, n)
    groups = rng.integers(0, n // 3, n) if grouped else None
    past = taught(rng, 20)
    whole = batch_e_values(predictions(probs, y, groups=groups), past)
    first = groups < n // 9 if grouped else np.arange(n) < 77
    parts = [
        batch_e_values(
            predictions(probs[m], y[m], groups=None if groups is None else groups[m]),
            past,
        )
        for m in (first, ~first)
    ]
    np.testing.assert_allclose(
        (parts[0] + parts[1]).log_factors_by_map(),
        whole.log_factors_by_map(),
        rtol=1e-9,
        atol=1e-7,
    )
    assert whole.n_rows == n
    assert whole.n_units == (len(np.unique(groups)) if grouped else n)


def test_logits_say_more_digits_than_probabilities():
    logits = np.array([[0.0, -800.0, -801.0]])
    found = batch_e_values(
        Predictions.from_arrays(None, [1], logits=logits, classes=range(3)),
        MapLearners.new(3, 0),
    )
    u = EXPONENTS[0]
    assert found.temperatures[0] == pytest.approx(800.0 * (1.0 - u))
    assert np.isfinite(found.log_factors_by_map()).all()


def test_shares_of_the_mixture_sum_to_one():
    rng = np.random.default_rng(0)
    for c in (2, 10, 31, 200):
        assert np.exp(log_prior_weights_of_maps(c)).sum() == pytest.approx(1.0), c
        batch = predictions(rows(rng, 3, c), [0, 1, 1])
        assert len(
            batch_e_values(batch, MapLearners.new(c, 0)).log_factors_by_map()
        ) == len(log_prior_weights_of_maps(c))
