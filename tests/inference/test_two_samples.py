"""Do two samples follow one map? Against likelihoods fitted one by one, and by its size."""

import data
import numpy as np
import pytest

from mcllo import Predictions
from mcllo._fit.fit import fit_predictions
from mcllo._inference.likelihood_tests import (
    CommonMapDraws,
    common_map_test,
    join_samples,
)


def sample(n, seed, c=3, power=1.5, **options):
    probs, y = data.drawn(n, range(c), seed, power=power)
    return Predictions.from_arrays(probs, y, classes=range(c), **options)


def test_the_statistic_is_that_of_three_fits():
    train, holdout = sample(200, 1), sample(80, 2)
    losses = [
        fit_predictions(p).log_likelihood
        for p in (train, holdout, join_samples(train, holdout))
    ]
    expected = 2.0 * (losses[0] + losses[1] - losses[2])
    assert CommonMapDraws(train, holdout, 0).observed() == pytest.approx(
        expected, abs=1e-6
    )


def test_the_same_rows_twice_follow_one_map():
    train = sample(60, 3)
    assert CommonMapDraws(train, train, 0).observed() == pytest.approx(0.0, abs=1e-6)
    assert common_map_test(train, train, n_resamples=39, seed=0).pvalue == 1.0


def test_samples_that_need_different_maps_are_found():
    bold, timid = sample(400, 4, power=3.0), sample(400, 5, power=0.4)
    found = common_map_test(bold, timid, n_resamples=99, seed=0)
    assert (found.pvalue, found.method, found.n_resamples) == (0.01, "bootstrap", 99)


def test_the_seed_decides():
    train, holdout = sample(50, 6), sample(30, 7)
    one, again = (
        common_map_test(train, holdout, n_resamples=60, seed=5) for _ in range(2)
    )
    assert (again.pvalue, again.n_resamples) == (one.pvalue, one.n_resamples)


def test_both_samples_are_drawn_apart():
    rows = sample(40, 8)
    pair = CommonMapDraws(rows, rows, 3)
    first, second = pair.train_draws(0, 20), pair.holdout_draws(0, 20)
    assert not np.allclose(first, second)


def test_weights_are_rows_written_out():
    train, holdout = sample(30, 9, sample_weight=np.arange(30) % 3), sample(20, 10)
    found = common_map_test(train, holdout, n_resamples=39, seed=1)
    assert (
        found.pvalue
        == common_map_test(
            train.expand_weights(), holdout, n_resamples=39, seed=1
        ).pvalue
    )


def test_logits_and_another_baseline():
    train, holdout = sample(60, 11), sample(40, 12)
    scores = [
        Predictions.from_arrays(
            None, p.codes, logits=np.log(p.probs) + 3.0, classes=range(3)
        )
        for p in (train, holdout)
    ]
    assert join_samples(*scores).logits.shape == (100, 3)
    expected = CommonMapDraws(train, holdout, 0).observed()
    assert CommonMapDraws(*scores, 0).observed() == pytest.approx(expected, abs=1e-6)
    other = [p.with_baseline(0) for p in (train, holdout)]
    assert np.isfinite(CommonMapDraws(*other, 0).observed())


def test_few_rows_and_absent_classes():
    for n in (1, 4):
        found = common_map_test(sample(n, 13), sample(3, 14), n_resamples=19, seed=0)
        assert 0.0 < found.pvalue <= 1.0, n
