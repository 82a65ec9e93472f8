import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import draw, simplex
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit.fit import fit_predictions
from mcllo._validation.probabilities import clean_probs
from mcllo._validation.rounding import (
    Resolution,
    change_clip,
    clip_for_recalibration,
    detect_resolution,
    find_zero_cells,
    recalibration_clip,
    undo_clipping,
)
from mcllo.exceptions import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore::mcllo.exceptions.ZeroProbabilityWarning"
)


def votes_of(probs):
    return detect_resolution(probs).votes


def votes(rng, n, c, total, concentration=0.5):
    rows = rng.dirichlet([concentration] * c, size=n)
    return np.array([rng.multinomial(total, row) for row in rows]) / total


def normalized(probs):
    return probs / probs.sum(axis=1, keepdims=True)


def test_hand_sized():
    # thirds: 3 is the smallest T; three rows (1 of 3, 2 of 3, 0) and three of (1, 1, 1) thirds have
    # 3 + 6 = 9 free values, each on the lattice by chance with 2e-6 * 3: 1e-47 is below 1e-9
    thirds = (
        np.array([[1, 2, 0], [0, 1, 2], [2, 0, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]]) / 3
    )
    assert detect_resolution(thirds) == Resolution(votes=3)
    # a single row (1/3, 2/3) has one free value: 6e-6 is no evidence
    assert detect_resolution(thirds[:1]) == Resolution()
    # certain rows and a constant say nothing; toy is written in steps of a twentieth
    assert detect_resolution(np.eye(3)[[0, 1, 2, 2]]) == Resolution()
    assert votes_of(np.tile([0.25, 0.75], (500, 1))) is None
    assert detect_resolution(TOY_X) == Resolution(votes=20)


def slowly(probs):
    """Search all T with exact fractions of the printed digits; for votes that are not rounded."""
    from fractions import Fraction
    from math import lcm

    parts = [Fraction(float(x)).limit_denominator(2000) for x in probs.ravel()]
    assert (
        max(abs(float(f) - x) for f, x in zip(parts, probs.ravel(), strict=True)) < 1e-9
    )
    return lcm(*(f.denominator for f in parts))


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 400), st.integers(3, 6), st.integers(0, 2**32 - 1))
def test_votes_are_found_as_by_fractions(total, c, seed):
    probs = votes(np.random.default_rng(seed), 120, c, total, 1.0)
    assert votes_of(probs) == slowly(probs)


def test_votes_survive_single_precision():
    for total in (3, 7, 12, 100, 128, 1999):
        for c in (3, 7):
            probs = votes(np.random.default_rng(total), 200, c, total)
            assert detect_resolution(probs) == Resolution(votes=total), c
            assert votes_of(probs.astype(np.float32).astype(np.float64)) == total, c


@pytest.mark.parametrize("total", [3, 7, 60, 300])
def test_votes_survive_a_file(total):
    for decimals in (3, 4, 6):
        rounded = votes(np.random.default_rng(total), 300, 5, total).round(decimals)
        for probs in (rounded, normalized(rounded)):
            found = detect_resolution(probs)
            assert found.votes == total, decimals
            assert (
                decimals == 6 or found.decimals == decimals
            )  # six are as good as none


def test_a_power_of_ten_is_a_vote_when_many_rows_sum_to_1():
    for decimals, total in ((1, 10), (3, 1000)):
        rng = np.random.default_rng(total)
        assert detect_resolution(votes(rng, 200, 5, total)) == Resolution(votes=total)
        # with two classes rounded rows sum to 1 as votes do: nothing tells them apart
        assert detect_resolution(votes(rng, 200, 2, total)) == Resolution(
            decimals=decimals
        )


def test_five_neighbours_and_two_classes():
    probs = votes(np.random.default_rng(0), 200, 2, 5, 1.0)
    before = probs.copy()
    assert detect_resolution(probs) == Resolution(votes=5)
    np.testing.assert_array_equal(probs, before)


@pytest.mark.parametrize("decimals", [1, 2, 4, 6])
def test_rounded_numbers_are_no_votes(decimals):
    rng = np.random.default_rng(decimals)
    for c in (2, 3, 7):
        for probs in (simplex(rng, 200, c), simplex(rng, 200, c, sharpness=5.0)):
            rounded = probs.round(decimals)
            assert detect_resolution(rounded) == Resolution(decimals=decimals), c
            assert detect_resolution(normalized(rounded)) == Resolution(
                decimals=decimals
            ), c


def test_steps_of_two_hundredths_are_found_only_with_enough_rows():
    # T = 50 has coverage 50/100: a row of 2 values (1 free) is worth 1/2, and 30 make 1e-9
    even = np.column_stack([np.arange(2, 42, 2), 100 - np.arange(2, 42, 2)]) / 100
    assert detect_resolution(even) == Resolution(decimals=2)
    assert detect_resolution(np.vstack([even, even])) == Resolution(votes=50)


@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 300),
    st.integers(2, 12),
    st.floats(0.1, 12.0),
    st.integers(0, 2**32 - 1),
)
def test_smooth_probabilities_have_no_resolution(n, c, sharpness, seed):
    probs = simplex(np.random.default_rng(seed), n, c, sharpness)
    assert detect_resolution(probs) == Resolution()
    assert (
        detect_resolution(probs.astype(np.float32).astype(np.float64)) == Resolution()
    )


@settings(deadline=None, max_examples=50)
@given(st.floats(0.02, 2.0), st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_dirichlet_rows_with_zeros_have_no_resolution(concentration, c, seed):
    probs = np.random.default_rng(seed).dirichlet([concentration] * c, size=100)
    probs[probs < 1e-3] = 0.0
    assert detect_resolution(normalized(probs)) == Resolution()


def test_trees_with_large_leaves_have_no_resolution():
    # scikit-learn averages the class shares of leaves: k / T only when leaves are pure
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    x, y = load_iris(return_X_y=True)
    pure = RandomForestClassifier(20, random_state=0).fit(x[::2], y[::2])
    mixed = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(
        x[::2], y[::2]
    )
    assert votes_of(pure.predict_proba(x[1::2])) == 20
    assert detect_resolution(mixed.predict_proba(x[1::2])) == Resolution()


def votes_reclip(seed, n=80, c=4, total=25):
    rng = np.random.default_rng(seed)
    probs = votes(rng, n, c, total, 0.4)
    return probs, draw(probs, rng)


def of(probs, y, **options):
    return Predictions.from_arrays(probs, y, classes=range(probs.shape[1]), **options)


TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def test_without_zeros_nothing_happens():
    assert undo_clipping(TOY) is TOY.probs
    assert change_clip(TOY, 1e-3) is TOY
    assert clip_for_recalibration(TOY) == (TOY, None)
    assert not find_zero_cells(TOY).any()


def test_hand_sized_reclip():
    p = of(np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]), [2, 1])
    np.testing.assert_array_equal(undo_clipping(p)[0], [0.5, 0.5, 0.0])
    # (0.5, 0.5, 0.25) has the sum 1.25: (0.4, 0.4, 0.2); row 1 keeps its 0.2, below the floor
    moved = change_clip(p, 0.25)
    np.testing.assert_allclose(
        moved.probs, [[0.4, 0.4, 0.2], [0.2, 0.3, 0.5]], atol=1e-15
    )
    assert (moved.clip, moved.n_zeros, moved.n_clipped, moved.n_clipped_true) == (
        0.25,
        1,
        1,
        1,
    )
    np.testing.assert_array_equal(moved.raised, [[False, False, True], [False] * 3])


def test_it_is_the_rule_of_the_door():
    probs, y = votes_reclip(0)
    assert (probs == 0.0).any()
    for floor in (1e-12, 1e-4, 0.02):
        np.testing.assert_allclose(
            change_clip(of(probs, y), floor).probs,
            clean_probs(probs, clip=floor).probs,
            atol=1e-15,
        )


def test_small_values_of_other_rows_do_not_move_and_those_beside_a_zero_stay_in_order():
    # clip=1e-4 at the door would raise the 1e-5 of row 1; as zeros go, only row 0 has one
    probs = np.array([[0.7, 0.3, 0.0], [0.6, 0.4 - 1e-5, 1e-5]])
    moved = change_clip(of(probs, [0, 1]), 1e-4)
    np.testing.assert_array_equal(moved.probs[1], probs[1])
    np.testing.assert_array_equal(
        of(probs, [0, 1], clip=1e-4).raised[:, 2], [True, True]
    )
    # a floor of 1e-4 lifts 0 and 1e-5 of the same row alike: no class overtakes another
    moved = change_clip(of(np.array([[1 - 1e-5, 1e-5, 0.0]]), [0]), 1e-4)
    assert moved.probs[0, 1] == moved.probs[0, 2] == pytest.approx(1e-4, rel=1e-3)
    assert moved.n_clipped == 2


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-12, 1e-6, 1e-4, 1e-2]))
def test_there_and_back(seed, floor):
    probs, y = votes_reclip(seed, n=20)
    p = of(probs, y)
    np.testing.assert_allclose(undo_clipping(change_clip(p, floor)), probs, atol=1e-15)
    np.testing.assert_allclose(
        change_clip(change_clip(p, floor), None).probs, p.probs, atol=1e-15
    )


def test_what_else_predictions_hold_is_kept():
    probs, y = votes_reclip(1)
    p = of(
        probs, y, baseline=1, sample_weight=np.arange(80.0), groups=np.arange(80) // 4
    )
    moved = change_clip(p, 1e-3)
    assert moved.baseline == 1
    assert moved.sample_weight is p.sample_weight
    assert moved.groups is p.groups
    assert not moved.probs.flags.writeable
    assert p.clip == 1e-6
    # a subset moves like the whole
    rows = np.arange(0, 80, 3)
    np.testing.assert_array_equal(
        change_clip(p.take(rows), 1e-3).probs, change_clip(p, 1e-3).take(rows).probs
    )


def test_logits_have_no_zeros():
    p = Predictions.from_arrays(y=[0, 1], logits=[[0.0, 800.0], [3.0, 1.0]])
    assert p.probs[0, 0] == 0.0
    assert not find_zero_cells(p).any()
    assert clip_for_recalibration(p) == (p, None)


@pytest.mark.parametrize("total", [7, 100])
def test_votes_are_raised_to_half_a_vote(total):
    probs, y = votes_reclip(3, total=total)
    moved, clip = clip_for_recalibration(of(probs, y))
    assert clip == recalibration_clip(of(probs, y)) == pytest.approx(0.5 / total)
    new = votes_reclip(4, total=total)[0]  # the same floor serves rows that come later
    assert moved.probs.min() == pytest.approx(
        clean_probs(new, clip=clip).probs.min(), rel=0.1
    )


def test_with_more_classes_than_votes_the_floor_stays_below_1_over_c():
    probs, y = votes_reclip(5, n=200, c=12, total=5)
    moved, clip = clip_for_recalibration(of(probs, y))
    assert clip == pytest.approx(1 / 24)
    assert moved.clip == clip


def test_rounded_and_smooth_predictions_keep_the_default_rule():
    rng = np.random.default_rng(6)
    sharp = simplex(rng, 200, 4, sharpness=4.0)
    y = draw(sharp, rng)
    rounded = of(sharp.round(3), y, normalize=True)
    assert rounded.n_zeros > 0
    assert clip_for_recalibration(rounded) == (rounded, None)
    sharp[sharp < 1e-4] = 0.0
    smooth = of(sharp, y, normalize=True)
    assert clip_for_recalibration(smooth) == (smooth, None)


def test_tiny_values_beside_zeros_are_no_votes():
    probs, y = votes_reclip(7)
    assert recalibration_clip(of(probs, y)) == 0.02
    row = int(
        np.argmax((probs == 0.0).sum(axis=1) >= 2)
    )  # it still holds a 0 afterwards
    probs[row, probs[row].argmax()] -= 1e-9
    probs[row, probs[row].argmin()] += 1e-9
    assert recalibration_clip(of(probs, y)) is None


def test_a_floor_that_was_chosen_stays_and_one_above_1_over_c_is_refused():
    p = of(*votes_reclip(7), clip=1e-3)
    assert clip_for_recalibration(p) == (p, 1e-3)
    with pytest.raises(InputError, match=r"clip must be a number in \[0, 1/4\)"):
        change_clip(of(*votes_reclip(8)), 0.3)


def test_the_floor_forces_gamma_together_when_the_baseline_has_zeros():
    # methods.md 8d: eta_j - eta_k contains (gamma_k - gamma_j) log(floor), so that gamma are forced
    # to be equal as the floor goes to 0 (on forests: sd .025 at 1e-15, .08 at 1e-6, .32 at .02)
    rng = np.random.default_rng(9)
    truth = rng.dirichlet([1.0] * 4, size=400)
    probs = np.array([rng.multinomial(25, row) for row in truth]) / 25
    p = of(probs, draw(truth, rng))
    assert (probs[:, 3] == 0.0).sum() > 10
    spread = [
        fit_predictions(change_clip(p, f)).gamma.std() for f in (1e-12, 1e-6, 0.02)
    ]
    assert spread[0] < spread[1] < spread[2]
