import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import simplex
from toy import TOY_X

from mcllo._lattice import Resolution, lattice_of, resolution_of


def votes(rng, n, c, total, concentration=0.5):
    rows = rng.dirichlet([concentration] * c, size=n)
    return np.array([rng.multinomial(total, row) for row in rows]) / total


def normalized(probs):
    return probs / probs.sum(axis=1, keepdims=True)


def test_certain_rows_say_nothing():
    assert resolution_of(np.eye(3)[[0, 1, 2, 2]]) == Resolution()


def test_hand_sized():
    # thirds: 3 is the smallest T; three rows (1 of 3, 2 of 3, 0) and three of (1, 1, 1) thirds have
    # 3 + 6 = 9 free values, each on the lattice by chance with 2e-6 * 3: 1e-47 is below 1e-9
    thirds = np.array([[1, 2, 0], [0, 1, 2], [2, 0, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]]) / 3
    assert resolution_of(thirds) == Resolution(votes=3)
    # a single row (1/3, 2/3) has one free value: 6e-6 is no evidence
    assert resolution_of(thirds[:1]) == Resolution()


def test_toy_is_written_in_steps_of_a_twentieth():
    assert resolution_of(TOY_X) == Resolution(votes=20)


def slowly(probs):
    """Search all T with exact fractions of the printed digits; for votes that are not rounded."""
    from fractions import Fraction
    from math import lcm

    parts = [Fraction(float(x)).limit_denominator(2000) for x in probs.ravel()]
    assert max(abs(float(f) - x) for f, x in zip(parts, probs.ravel(), strict=True)) < 1e-9
    return lcm(*(f.denominator for f in parts))


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 400), st.integers(3, 6), st.integers(0, 2**32 - 1))
def test_votes_are_found_as_by_fractions(total, c, seed):
    probs = votes(np.random.default_rng(seed), 120, c, total, 1.0)
    assert lattice_of(probs) == slowly(probs)


@pytest.mark.parametrize("total", [3, 5, 7, 12, 25, 30, 99, 100, 128, 500, 1000, 1999])
@pytest.mark.parametrize("c", [3, 7])
def test_votes_survive_single_precision(total, c):
    probs = votes(np.random.default_rng(total), 200, c, total)
    assert resolution_of(probs) == Resolution(votes=total)
    assert lattice_of(probs.astype(np.float32).astype(np.float64)) == total


@pytest.mark.parametrize("total", [3, 7, 30, 60, 300])
@pytest.mark.parametrize("decimals", [3, 4, 5])
@pytest.mark.parametrize("divided", [False, True])
def test_votes_survive_a_file(total, decimals, divided):
    rounded = votes(np.random.default_rng(total), 300, 5, total).round(decimals)
    found = resolution_of(normalized(rounded) if divided else rounded)
    assert found == Resolution(votes=total, decimals=decimals)


@pytest.mark.parametrize("total", [3, 7, 30, 60, 300])
def test_six_decimals_are_as_good_as_none(total):
    rounded = votes(np.random.default_rng(total), 300, 5, total).round(6)
    assert lattice_of(rounded) == lattice_of(normalized(rounded)) == total


@pytest.mark.parametrize("total", [10, 100, 1000])
def test_a_power_of_ten_is_a_vote_when_many_rows_sum_to_1(total):
    rng = np.random.default_rng(total)
    assert resolution_of(votes(rng, 200, 5, total)) == Resolution(votes=total)
    # with two classes rounded rows sum to 1 as votes do: nothing tells them apart
    two = resolution_of(votes(rng, 200, 2, total))
    assert two == Resolution(decimals=round(np.log10(total)))


def test_five_neighbours_and_two_classes():
    probs = votes(np.random.default_rng(0), 200, 2, 5, 1.0)
    assert resolution_of(probs) == Resolution(votes=5)


@pytest.mark.parametrize("decimals", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("divided", [False, True])
def test_rounded_numbers_are_no_votes(decimals, divided):
    rng = np.random.default_rng(decimals)
    for c in (2, 3, 7):
        for probs in (simplex(rng, 200, c), simplex(rng, 200, c, sharpness=5.0)):
            rounded = probs.round(decimals)
            found = resolution_of(normalized(rounded) if divided else rounded)
            assert found == Resolution(decimals=decimals), c


def test_steps_of_two_hundredths_are_found_only_with_enough_rows():
    # T = 50 has coverage 50/100: a row of 2 values (1 free) is worth 1/2, and 30 make 1e-9
    even = np.column_stack([np.arange(2, 42, 2), 100 - np.arange(2, 42, 2)]) / 100
    assert resolution_of(even) == Resolution(decimals=2)
    assert resolution_of(np.vstack([even, even])) == Resolution(votes=50)


def test_a_constant_is_no_vote():
    assert lattice_of(np.tile([0.25, 0.75], (500, 1))) is None


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 300), st.integers(2, 12), st.floats(0.1, 12.0), st.integers(0, 2**32 - 1))
def test_smooth_probabilities_have_no_resolution(n, c, sharpness, seed):
    probs = simplex(np.random.default_rng(seed), n, c, sharpness)
    assert resolution_of(probs) == Resolution()
    assert resolution_of(probs.astype(np.float32).astype(np.float64)) == Resolution()


@settings(deadline=None, max_examples=50)
@given(st.floats(0.02, 2.0), st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_dirichlet_rows_with_zeros_have_no_resolution(concentration, c, seed):
    probs = np.random.default_rng(seed).dirichlet([concentration] * c, size=100)
    probs[probs < 1e-3] = 0.0
    assert resolution_of(normalized(probs)) == Resolution()


def test_trees_with_large_leaves_have_no_resolution():
    # scikit-learn averages the class shares of leaves: k / T only when leaves are pure
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    x, y = load_iris(return_X_y=True)
    pure = RandomForestClassifier(20, random_state=0).fit(x[::2], y[::2])
    mixed = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(x[::2], y[::2])
    assert lattice_of(pure.predict_proba(x[1::2])) == 20
    assert resolution_of(mixed.predict_proba(x[1::2])) == Resolution()


def test_the_input_is_left_alone():
    probs = votes(np.random.default_rng(0), 50, 3, 25)
    before = probs.copy()
    resolution_of(probs)
    np.testing.assert_array_equal(probs, before)
