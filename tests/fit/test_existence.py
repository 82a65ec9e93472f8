import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from independent import designs, draw, log_odds_of
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit import separation as module
from mcllo._fit.estimate import estimate
from mcllo._fit.objective import FreeParameterObjective
from mcllo._fit.separation import (
    MaximumExistence,
    RecessionCone,
    assess_existence,
    find_separated_classes,
    find_separating_direction,
    find_unbounded_parameters,
)

quick = settings(deadline=None, max_examples=25)
TOY_L = log_odds_of(TOY_X)
TOY = Predictions.from_arrays(TOY_X, TOY_Y)
PERFECT = Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))
ABSENT = Predictions.from_arrays(
    TOY_X, np.where(TOY_Y == 2, 0, TOY_Y), classes=range(3)
)


def margins(log_odds, codes, direction):
    """Return ``eta_{i, y_i} - eta_{ik}`` for all rows i and classes k, along `direction`."""
    k, n = log_odds.shape
    eta = np.vstack([direction[:k, None] + direction[k:, None] * log_odds, np.zeros(n)])
    return eta[codes, np.arange(n)] - eta


def classes_of(probs, codes, **options):
    c = np.shape(probs)[1]
    return find_separated_classes(
        Predictions.from_arrays(probs, codes, classes=range(c), **options)
    )


def test_one_overlapping_pair_by_hand():
    # labels 0 at log odds 2 and -1, baseline at 1 and -2: no threshold splits them
    odds = np.array([[2.0, -1.0, 1.0, -2.0]])
    assert find_separating_direction(odds, np.array([0, 0, 1, 1])) is None
    # swap the middle rows' labels and 0 splits them; |v_gamma| <= 1 / 2 because columns are divided
    # by their largest value, so the margins add up to at most (2 + 1 + 1 + 2) / 2 = 3
    codes = np.array([0, 1, 0, 1])
    direction = find_separating_direction(odds, codes)
    assert direction[1] == pytest.approx(0.5)
    assert margins(odds, codes, direction).sum() == pytest.approx(3.0)


def test_toy_separated_values():
    for codes, value in [
        (
            TOY_X.argmax(axis=1),
            15.1751,
        ),  # methods specification 8c: labels = first argmax
        (np.where(TOY_Y == 2, 0, TOY_Y), 16.0),  # 8c: baseline absent, all 16 rows kept
    ]:
        lead = margins(TOY_L, codes, find_separating_direction(TOY_L, codes))
        assert lead.min() >= -1e-9
        assert lead.sum() == pytest.approx(value, abs=5e-5)


def test_an_absent_class_separates():
    for absent in range(3):
        codes = np.where(absent != TOY_Y, TOY_Y, (absent + 1) % 3)
        lead = margins(TOY_L, codes, find_separating_direction(TOY_L, codes))
        assert lead.min() >= -1e-9
        assert lead.max() > 1e-3
        assert classes_of(TOY_X, codes) == (absent,)
        present = (absent != TOY_Y).astype(float)
        assert classes_of(TOY_X, TOY_Y, sample_weight=present) == (absent,)


@quick
@given(
    st.lists(st.integers(-6, 6), min_size=2, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_two_classes_equal_the_textbook_condition(values, labels):
    # with an intercept and one regressor, labels are (quasi-)separated iff a threshold splits them
    odds, codes = (
        np.array([values], dtype=float),
        np.array(labels[: len(values)], dtype=int),
    )
    assume(np.ptp(odds) > 0.0)
    first, second = odds[0, codes == 0], odds[0, codes == 1]
    if len(first) == 0 or len(second) == 0:
        split = True
    else:
        split = first.max() <= second.min() or second.max() <= first.min()
    assert (find_separating_direction(odds, codes) is not None) == split


@quick
@given(designs(min_rows=4, max_rows=15, max_classes=4))
def test_a_direction_never_lowers_the_likelihood_and_has_causes(design):
    probs, codes = design
    odds = log_odds_of(probs)
    direction = find_separating_direction(odds, codes)
    if direction is not None:
        lead = margins(odds, codes, direction)
        assert lead.min() >= -1e-8
        assert lead.max() > 0.0
    if len(set(codes.tolist())) == probs.shape[1]:
        assert bool(classes_of(probs, codes)) == (direction is not None)


@quick
@given(designs(min_rows=6, max_rows=30, max_classes=4), st.integers(0, 2**32 - 1))
def test_starting_with_few_rows_gives_the_same_answer(design, seed):
    probs, codes = design
    odds = log_odds_of(probs)
    whole = find_separating_direction(odds, codes) is None
    assert (find_separating_direction(odds, codes, first_rows=3) is None) == whole
    order = np.random.default_rng(seed).permutation(len(codes))
    assert (find_separating_direction(odds[:, order], codes[order]) is None) == whole


def test_what_separates():
    nearly = [0, 0, 0, 0, 1, 1, 1, 1]
    for odds, codes, separated in [
        # of constant log odds, moving gamma against tau changes nothing: not separation
        ([[0.7] * 4], [0, 0, 1, 1], False),
        ([[0.0] * 4], [0, 0, 1, 1], False),
        # nearly separated rows have a maximum
        ([[1.0, 2.0, 3.0, -1e-3, 1e-3, -1.0, -2.0, -3.0]], nearly, False),
        ([[1.0, 2.0, 3.0, -1e-6, 1e-6, -1.0, -2.0, -3.0]], nearly, False),
        ([[700.0, -700.0, 700.0, -700.0]], [0, 1, 0, 1], True),
        ([[700.0, -700.0, 700.0, -700.0]], [0, 1, 1, 0], False),
        ([[0.3], [-0.2]], [1], True),
        (TOY_L, TOY_Y, False),
    ]:
        found = find_separating_direction(np.array(odds), np.array(codes)) is not None
        assert found == separated, odds


def test_a_direction_that_violates_its_rows_does_not_count(monkeypatch):
    # a solver may return what meets its constraints only to its tolerance: value 1, violation 1e-3
    odds, codes = np.array([[1.0, -1e-3, 1e-3, -1.0]]), np.array([0, 0, 1, 1])
    monkeypatch.setattr(
        module, "_solve_linear_program", lambda rows, total: (np.array([0.0, 1.0]), 1.0)
    )
    assert find_separating_direction(odds, codes) is None


# --- which classes


def test_classes_separate_each_other_or_have_a_maximum():
    probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]]
    assert classes_of(probs, [0, 0, 1, 1]) == (0, 1)
    assert classes_of(probs, [0, 1, 0, 1]) == ()
    assert classes_of(TOY_X, TOY_Y) == ()
    assert classes_of(TOY_X, TOY_X.argmax(axis=1)) == (0, 1, 2)


@pytest.mark.parametrize(("found", "baseline"), [(0, 2), (1, 0), (1, 1)])
def test_the_class_that_is_always_found_is_the_cause(found, baseline):
    # the rows of one class have its probability near 1, all others have it near 0; among
    # themselves the other two overlap. As the baseline it has no log odds of its own to rise: both
    # others would have to fall together, and then they must not overlap
    rng = np.random.default_rng(found)
    a, b = np.delete(np.arange(3), found)
    probs, codes = np.empty((60, 3)), np.empty(60, dtype=int)
    share = np.repeat([0.3, 0.5, 0.7], 20)
    probs[:, found] = rng.uniform(0.01, 0.1, size=60)
    probs[:20, found] = rng.uniform(0.8, 0.9, size=20)
    probs[:, a], probs[:, b] = (
        (1 - probs[:, found]) * share,
        (1 - probs[:, found]) * (1 - share),
    )
    codes[:] = np.where(rng.random(60) < share, a, b)
    codes[:20] = found
    shuffled = rng.permutation(60)
    probs = probs[shuffled]
    named = classes_of(probs, codes[shuffled], baseline=baseline)
    assert named == (() if found == baseline else (found,))


def test_a_pair_is_named_where_no_class_leaves_all_others():
    # class 0 has log odds 1 in its own rows and in those of the baseline, half and half, and in
    # class 1's rows less: gamma_0 up and tau_0 down by as much moves only the rows of class 1
    odds = np.array(
        [
            [1.0] * 4 + [0.2, 0.5, -0.4, 0.1] + [1.0] * 4,
            np.tile([0.5, -0.3, 0.9, 0.1], 3),
        ]
    )
    codes = np.repeat([0, 1, 2], 4)
    predictions = Predictions.from_arrays(
        None, codes, logits=np.vstack([odds, np.zeros(12)]).T, classes=range(3)
    )
    assert find_separated_classes(predictions) == (0, 1)


# --- which parameters


def test_two_classes_by_hand():
    # 0 splits the labels: gamma may only grow, and tau may be anything beside it
    logits = np.array([[2.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-2.0, 0.0]])
    found = find_unbounded_parameters(
        Predictions.from_arrays(None, [0, 0, 1, 1], logits=logits)
    )
    np.testing.assert_array_equal(found, [[True, True], [False, True]])
    assert not find_unbounded_parameters(TOY).any()


def test_an_absent_class_may_fall_and_turn():
    # its log odds have both signs: tau falls, or gamma goes either way while tau falls faster
    codes = np.where(TOY_Y == 1, 0, TOY_Y)
    found = find_unbounded_parameters(
        Predictions.from_arrays(TOY_X, codes, classes=range(3))
    )
    np.testing.assert_array_equal(
        found, [[False, False], [True, False], [False, False], [True, True]]
    )


@quick
@given(designs(min_rows=4, max_rows=12, max_classes=3))
def test_unbounded_parameters_equal_one_program_each(design):
    probs, codes = design
    odds = log_odds_of(probs)
    predictions = Predictions.from_arrays(probs, codes, classes=range(probs.shape[1]))
    cone, found = RecessionCone(odds, codes), find_unbounded_parameters(predictions)
    for j, side in np.ndindex(*found.shape):
        goal = np.zeros(len(found))
        goal[j] = (-1.0, 1.0)[side] * cone.scale[j]
        assert found[j, side] == (cone.furthest_direction(goal) is not None)


@pytest.mark.slow
def test_sharp_network_subsets_agree_with_what_fits_find():
    # methods specification 8e: of subsets of 500 rows with labels drawn from the rows, a third to
    # two thirds have no maximum; there, and only there, some direction never lowers the likelihood
    rows, rng = load_cifar10_vgg16_keras().probs, np.random.default_rng(3)
    found = []
    for _ in range(20):
        probs = rows[rng.permutation(len(rows))[:500]]
        odds, codes = log_odds_of(probs), draw(probs, rng)
        direction = find_separating_direction(odds, codes)
        found.append(direction is not None)
        if direction is not None:
            lead = margins(odds, codes, direction)
            assert lead.min() >= -1e-9 * lead.sum()
    assert 3 <= sum(found) <= 17


def found(predictions, penalty=0.0, **options):
    likelihood = FreeParameterObjective.from_predictions(predictions)
    end = estimate(likelihood, predictions, penalty, "identity")
    return assess_existence(
        end, likelihood, predictions.absent, lambda: predictions, **options
    )


def test_a_penalty_makes_it_exist():
    assert found(PERFECT, 1.0).determined
    assert found(ABSENT, "firth").determined


def test_it_exists_or_has_causes():
    assert found(TOY) == MaximumExistence((), True, False)
    assert found(ABSENT) == MaximumExistence((2,), False, False)
    assert found(PERFECT).causes == (0, 1, 2)


def test_a_program_that_is_too_large_decides_nothing():
    size = 2.0 * 2 * 2 * 16  # K = 2, n = 16
    assert found(PERFECT, max_constraint_elements=size - 1.0) == MaximumExistence(
        (), False, True
    )
    assert found(PERFECT, max_constraint_elements=size).causes == (0, 1, 2)
