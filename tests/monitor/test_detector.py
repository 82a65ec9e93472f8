"""The recursions against sums over start times, e-BH by hand, the onset."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from mcllo._monitor.e_process import Detector, classes_rejected_by_e_bh
from mcllo._monitor.e_values import EXPONENTS, PER_CLASS, log_prior_weights_of_maps


def run(log_factors, c):
    detector, states = Detector.new(c), []
    for row in log_factors:
        detector = detector.after(
            SimpleNamespace(log_factors_by_map=lambda row=row: row)
        )
        states.append(detector)
    return states


@pytest.mark.parametrize("c", [2, 40])
def test_both_are_sums_over_the_batch_at_which_it_began(c):
    rng = np.random.default_rng(0)
    w = np.exp(log_prior_weights_of_maps(c))
    factors = rng.normal(0.0, 0.3, (7, len(w)))
    for k, state in enumerate(run(factors, c), start=1):
        since = [np.exp(factors[j - 1 : k].sum(axis=0)) for j in range(1, k + 1)]
        detector = sum(w @ f for f in since)
        evidence = sum(w @ f / (j * (j + 1)) for j, f in enumerate(since, 1)) + 1.0 / (
            k + 1
        )
        assert state.log_detector == pytest.approx(math.log(detector))
        assert state.log_evidence == pytest.approx(math.log(evidence))
        assert state.n_classes == c


def test_nothing_seen_is_evidence_of_one():
    states = run(np.zeros((5, len(log_prior_weights_of_maps(3)))), 3)
    assert [s.log_evidence for s in states] == pytest.approx([0.0] * 5, abs=1e-9)
    assert [math.exp(s.log_detector) for s in states] == pytest.approx([1, 2, 3, 4, 5])
    assert states[-1].pvalue == pytest.approx(1.0)


def test_the_pvalue_remembers_the_largest_evidence():
    rows = np.zeros((3, len(log_prior_weights_of_maps(2))))
    rows[0], rows[1] = 6.0, -20.0
    states = run(rows, 2)
    top = math.exp(states[0].log_evidence)
    assert top == pytest.approx(0.5 * math.exp(6.0) + 0.5)
    assert [s.pvalue for s in states] == pytest.approx([1 / top] * 3)


def test_numbers_beyond_any_float_stay_numbers():
    states = run(np.full((30, len(log_prior_weights_of_maps(2))), 1000.0), 2)
    assert states[-1].log_evidence == pytest.approx(30_000.0 - math.log(2.0))
    low = run(np.full((30, len(log_prior_weights_of_maps(2))), -1000.0), 2)[-1]
    assert low.log_evidence == pytest.approx(-math.log(31.0))
    assert low.pvalue == 1.0


def test_the_onset_is_where_the_leading_map_began_to_win():
    rows = np.full((9, len(log_prior_weights_of_maps(3))), -0.1)
    best = len(EXPONENTS) + 2 * PER_CLASS + 4
    rows[5:, best] = 4.0
    state = run(rows, 3)[-1]
    assert (state.leading_map, state.onset_batch) == (best, 6)
    assert np.argmax(state.log_class_evidence) == 2
    # E(j) is the mean over its maps of N, and what is left for later starts
    started = sum(
        math.exp(rows[j:, best].sum()) / ((j + 1) * (j + 2)) for j in range(9)
    )
    others = sum(math.exp(rows[j:, 0].sum()) / ((j + 1) * (j + 2)) for j in range(9))
    mean = (started + (PER_CLASS - 1) * others) / PER_CLASS
    assert state.log_class_evidence[2] == pytest.approx(math.log(mean + 0.1))


def test_e_bh_by_hand():
    # c = 4, alpha = 0.1: the r-th largest must reach 40 / r: 40, 20, 13.3, 10
    def named(*e):
        return classes_rejected_by_e_bh(np.log(e), 0.1).tolist()

    assert named(39.0, 1.0, 1.0, 1.0) == []
    assert named(1.0, 40.0, 1.0, 1.0) == [1]
    assert named(14.0, 14.0, 1.0, 14.0) == [0, 1, 3]
    assert named(10.0, 11.0, 12.0, 13.0) == [0, 1, 2, 3]
