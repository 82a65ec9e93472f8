"""Intervals: the inequality they rest on, and that they cover at all times at once."""

import math
from itertools import product

import numpy as np
import pytest

from mcllo._monitor.confidence_sequences import (
    RATES,
    alpha_for_start_batch,
    exponent_confidence_sequence,
    mean_confidence_sequence,
)
from mcllo._monitor.e_process import Detector
from mcllo._monitor.e_values import (
    EXPONENTS,
    MapLearners,
    _log_factors_of_learned_maps,
    batch_e_values,
    classes_raised_by_map,
    iterate_chunks,
    update_map_learners,
)
from mcllo._monitor.monitor import _cumulative_sums
from mcllo._monitor.status import change_intervals, sums_since
from mcllo._validation.predictions import Predictions


def test_each_rate_gives_a_supermartingale_for_any_truth_and_any_prediction():
    psi = -np.log1p(-RATES) - RATES
    grid = np.linspace(0.0, 1.0, 41)
    for p, x, sign in product(grid, grid, (-1.0, 1.0)):
        hit, miss = 1.0 - x, -x
        mean = p - x
        expected = p * np.exp(sign * RATES * (hit - mean) - psi * hit**2)
        expected += (1.0 - p) * np.exp(sign * RATES * (miss - mean) - psi * miss**2)
        assert (expected <= 1.0 + 1e-12).all()


def test_the_levels_of_all_starts_sum_to_alpha():
    assert sum(
        alpha_for_start_batch(0.05, s) for s in range(1, 200_000)
    ) == pytest.approx(0.05, rel=1e-4)


def test_the_exponents_that_are_left():
    likelihood = -0.5 * (np.log(EXPONENTS / 0.84) / 0.05) ** 2
    found, inside = exponent_confidence_sequence(likelihood, 0.05)
    mixed = math.log(np.exp(likelihood).mean())
    kept = EXPONENTS[mixed - likelihood < math.log(20.0)]
    assert found.value == pytest.approx(0.84, rel=0.01)
    # rounded outwards to the next exponent of the grid
    assert found.low == pytest.approx(kept.min() * 2 ** (-1 / 8))
    assert found.high == pytest.approx(kept.max() * 2 ** (1 / 8))
    assert EXPONENTS[inside][0] == pytest.approx(found.low)
    assert EXPONENTS[inside][-1] == pytest.approx(found.high)
    nothing, everything = exponent_confidence_sequence(np.zeros(len(EXPONENTS)), 0.05)
    assert (nothing.low, nothing.high) == (0.0, math.inf)
    assert everything.stop - everything.start >= len(EXPONENTS)


def test_no_rows_no_interval():
    found = mean_confidence_sequence(0.0, 0.0, 0, 0.05)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (-1.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("c", "n"), [(2, 5), (4, 60)])
def test_they_cover_at_every_batch_and_for_every_start_at_once(c, n):
    """40 streams, 45 batches, alpha 0.2: misses anywhere at most as often as promised.

    The truth drifts away from the predictions by a temperature that is 1, then 0.6; shares and
    change are about the drifting truth, the temperature about streams where it does not drift.
    """
    alpha, streams, missed = (
        0.2,
        40,
        dict.fromkeys(("share", "change", "below", "heat"), 0),
    )
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        missed_here = dict.fromkeys(missed, False)
        slope = 0.6 if seed % 2 else 1.0
        past, detector, records, truths = (
            MapLearners.new(c, 0),
            Detector.new(c),
            [],
            [np.zeros(3)],
        )
        for k in range(45):
            probs = rng.dirichlet(np.full(c, 0.7), n)
            probs = np.maximum(probs, 1e-9) / np.maximum(probs, 1e-9).sum(
                axis=1, keepdims=True
            )
            u = slope if k >= (0 if seed % 3 == 0 else 15) else 1.0
            truth = probs**u / (probs**u).sum(axis=1, keepdims=True)
            y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
            batch = Predictions.from_arrays(probs, y, classes=range(c))
            witness = detector.leading_map
            factors = batch_e_values(batch, past, witness)
            (chunk,) = iterate_chunks(batch)
            raises = classes_raised_by_map(
                chunk, _log_factors_of_learned_maps(chunk, past)[1], witness
            )
            expected = (truth - probs)[raises].sum()
            away = 0.5 * np.abs(truth - probs).sum()
            truths.append(truths[-1] + [(truth - probs)[:, 0].sum(), expected, away])
            records.append(_cumulative_sums(factors, records[-1] if records else None))
            detector, past = detector.after(factors), update_map_learners(batch, past)
            for since in {1, min(16, k + 1)}:
                sums = sums_since(
                    records[-1], records[since - 2] if since > 1 else None
                )
                found = change_intervals(sums, since, alpha)
                share, seen, moved = (truths[-1] - truths[since - 1]) / (
                    n * (k + 2 - since)
                )
                missed_here["share"] |= (
                    not found.shares[0].low <= share <= found.shares[0].high
                )
                missed_here["below"] |= found.change.low > moved
                low, high = found.change.low, found.change.high
                missed_here["change"] |= not low <= max(seen, 0.0) <= high
                if seed % 3 == 0 or since == 16:
                    heat = found.exponent
                    missed_here["heat"] |= not heat.low <= slope <= heat.high
        missed = {name: count + missed_here[name] for name, count in missed.items()}
    most = alpha * streams + 3.0 * math.sqrt(alpha * (1 - alpha) * streams)
    assert max(missed.values()) <= most, missed
