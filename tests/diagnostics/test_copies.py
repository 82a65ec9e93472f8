"""Copies among rows: repeated tables, labels that agree too often, groups that join them."""

import numpy as np
import pytest
from independent import sample

import mcllo
from mcllo import Predictions
from mcllo._apps.cli.options import FLAG_NAMES
from mcllo._diagnostics.duplicate_rows import (
    hash_rows,
    labels_agree_too_often,
    number_equal_rows,
    state_copies,
)
from mcllo._fit.fit import fit_predictions
from mcllo._utils.statements import suppress_warnings
from mcllo.calibrators._auto.stacking import COPIES_KEPT_TOGETHER_LEVEL


@pytest.fixture(scope="module")
def rows():
    """Return 300 calibrated rows of three classes, all different."""
    return sample(300, 3, seed=1)


def finding(probs, y, **options):
    """Return the finding of these rows, or None."""
    with suppress_warnings():
        p = Predictions.from_arrays(probs, y, **options)
        return state_copies(p, fit_predictions(p))


def test_rows_that_differ_are_no_copies(rows):
    assert finding(*rows) is None


@pytest.mark.parametrize(("times", "word"), [(2, "twice"), (3, "3 times")])
def test_a_table_that_is_repeated_is_found_and_counted(rows, times, word):
    x, y = rows
    found = finding(np.tile(x, (times, 1)), np.tile(y, times))
    assert found.kind == "data_check.copies"
    assert found.numbers == {"n_copies": 300 * (times - 1), "times": times}
    assert found.text.startswith(f"Every row is there {word}, label included")
    assert "groups=" in found.text


def test_some_rows_that_are_repeated_are_found_and_counted(rows):
    x, y = rows
    twice = np.r_[np.arange(300), np.arange(100)]
    found = finding(x[twice], y[twice])
    assert found.numbers == {"n_copies": 100, "times": None}
    assert "100 of 400 rows seem to be copies" in found.text


def test_rounded_rows_that_are_equal_anyway_are_not_counted_in_a_repeated_table():
    # two classes, one decimal: 11 values, 22 different rows at most, most of them several times
    rng = np.random.default_rng(3)
    event = rng.random(400).round(1)
    x, y = np.column_stack([1.0 - event, event]), (rng.random(400) < event).astype(int)
    x, y = x[(event > 0.0) & (event < 1.0)], y[(event > 0.0) & (event < 1.0)]
    assert finding(x, y) is None
    extra = np.array(
        [[0.25, 0.75], [0.25, 0.75], [0.35, 0.65]]
    )  # 18 and 3 different rows
    x, y = np.r_[x, extra], np.r_[y, [0, 1, 1]]
    found = finding(np.r_[x, x], np.r_[y, y])
    assert found.numbers == {"n_copies": len(x), "times": 2}


def test_groups_that_join_the_copies_leave_nothing_to_say(rows):
    x, y = rows
    twice = np.tile(np.arange(300), 2)
    assert finding(x[twice], y[twice], groups=twice) is None
    assert finding(x[twice], y[twice], groups=np.arange(600)) is not None


@pytest.mark.parametrize("seed", range(5))
def test_copies_among_votes_that_are_equal_anyway_are_seen(seed):
    # 200 rows of 100 votes of two classes, of which 800 are drawn with replacement: nearly every
    # number of votes has both labels, so that it is the pairs that agree too often
    rng = np.random.default_rng(seed)
    event = rng.binomial(100, rng.beta(2.0, 2.0, 200)) / 100
    x = np.clip(np.column_stack([1.0 - event, event]), 0.01, 0.99)
    y = (rng.random(200) < event).astype(int)
    copied = rng.choice(200, 800)
    assert finding(x, y) is None
    p = Predictions.from_arrays(x[copied], y[copied])
    as_auto = COPIES_KEPT_TOGETHER_LEVEL
    assert labels_agree_too_often(
        p, lambda rows: rows.probs, number_equal_rows(p), chance=as_auto
    )


def test_labels_that_differ_by_chance_are_no_copies(rows):
    x, _ = rows
    rng = np.random.default_rng(5)
    y = (rng.random((600, 1)) > np.tile(x, (2, 1)).cumsum(axis=1)[:, :-1]).sum(axis=1)
    assert (
        finding(np.tile(x, (2, 1)), y) is None
    )  # every probability twice, labels anew


def test_underconfident_leaves_are_no_copies():
    # 60 leaves of 10 rows that say 60 %; labels follow the leaf in 99 of 100 rows
    rng = np.random.default_rng(6)
    side = np.repeat(rng.integers(0, 2, 60), 10)
    said = np.repeat(rng.uniform(0.6, 0.61, 60), 10)
    x = np.where(side == 1, said, 1.0 - said)
    y = np.where(rng.random(600) < 0.99, side, 1 - side)
    assert finding(np.column_stack([1.0 - x, x]), y) is None


def test_the_bound_is_that_of_the_docstring():
    # 40 sets of two rows at 1/2, all alike: E = 40 / 2 = 20, exp(-20) < 1e-6 < exp(-13)
    fit = fit_predictions(Predictions.from_arrays(np.full((4, 2), 0.5), [0, 1, 0, 1]))

    def agree(n_sets, n_differing):
        sets = np.repeat(np.arange(n_sets), 2)
        y = np.repeat(np.arange(n_sets) % 2, 2)
        y[1 : 2 * n_differing : 2] = 1 - y[0 : 2 * n_differing : 2]
        p = Predictions.from_arrays(np.full((len(y), 2), 0.5), y)
        return labels_agree_too_often(p, lambda rows: fit.recalibrate(rows.probs), sets)

    assert agree(40, 0)
    assert not agree(26, 0)  # E = 13
    assert agree(28, 0)  # E = 14
    # E = 20, D = 2: 2 - 20 + 2 log 10 = -13.4 > log 1e-6 = -13.8; D = 1: 1 - 20 + log 20 = -16
    assert agree(40, 1)
    assert not agree(40, 2)


def test_equal_rows_share_a_number_and_others_do_not():
    x = np.array(
        [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]
    )
    sets = number_equal_rows(Predictions.from_arrays(x, [0, 1, 2, 0]))
    assert sets[0] == sets[2]
    assert len(set(sets.tolist())) == 3
    assert (
        number_equal_rows(Predictions.from_arrays(x[:2], [0, 1], classes=range(3)))
        is None
    )


def test_logits_that_differ_are_no_copies_however_sure_they_are():
    z = np.column_stack([np.arange(800.0, 830.0), np.zeros(30)])
    p = Predictions.from_arrays(None, [0] * 29 + [1], logits=z)
    assert (p.probs[:, 0] == 1.0).all()
    assert number_equal_rows(p) is None


def test_keys_of_votes_do_not_collide():
    grid = np.array([(i, j, 8 - i - j) for i in range(9) for j in range(9 - i)]) / 8
    assert len(np.unique(hash_rows(grid))) == len(grid) == 45
    assert hash_rows(np.array([[0.0, 1.0]])) == hash_rows(np.array([[-0.0, 1.0]]))


def test_text_json_and_report_say_so(rows):
    x, y = rows
    a = mcllo.assess(np.tile(x, (2, 1)), np.tile(y, 2), seed=0, n_resamples=99)
    assert "Every row is there twice" in a.text(brief=True)
    assert any(
        "Every row is there twice" in words for words in a.to_dict()["data_checks"]
    )
    assert a.statements()[-1].kind.startswith("metric")
    page = mcllo.report(a).html()
    assert "Every row is there twice" in page
    assert "Drop the copies" in page


def test_the_command_line_names_its_option(rows):
    x, y = rows

    found = finding(np.tile(x, (2, 1)), np.tile(y, 2)).with_names(FLAG_NAMES)
    assert found.text.endswith("with --groups.")
