"""Zeros of rounded probabilities: what rounding allows, a share for all rows, what stays."""

import math

import numpy as np
import pytest
from independent import sample

import mcllo
from mcllo import Predictions, calibration_test, subgroups
from mcllo._utils.statements import suppress_warnings
from mcllo._validation.rounding import ZeroLimits, undo_rounding


def read(probs, y, **options):
    """Return predictions of rounded rows without the warning about zeros."""
    with suppress_warnings():
        return Predictions.from_arrays(probs, y, normalize=True, **options)


@pytest.fixture(scope="module")
def rows():
    """Return 1500 sharp calibrated rows of four classes, before rounding."""
    return sample(1500, 4, seed=5, sharpness=5.0)


def test_limits_by_hand():
    # two decimals, h = .005. Row 1: one other number, two zeros: .005 / 2. Row 2: two numbers, one
    # zero: 2 x .005 > .005, so .005. Row 3: .49 + .49 = .98: .02 + .01 for one zero, so .005.
    probs = np.array([[1.0, 0.0, 0.0], [0.61, 0.39, 0.0], [0.5, 0.5, 0.0]])
    more = np.random.default_rng(0).dirichlet([1, 1, 1], 50).round(2)
    more /= more.sum(axis=1, keepdims=True)
    found = ZeroLimits.from_probs(np.vstack([probs, more]), 2)
    assert found.largest_zero[:3] == pytest.approx([0.0025, 0.005, 0.005])
    assert found.n_zeros[:3].tolist() == [2, 1, 1]
    assert found.sums[:3] == pytest.approx([1.0, 1.0, 1.0])


def test_sums_are_those_of_the_file():
    raw = np.random.default_rng(1).dirichlet([0.5] * 12, 400).round(2)
    found = ZeroLimits.from_probs(raw / raw.sum(axis=1, keepdims=True), 2)
    assert np.mean(np.isclose(found.sums, raw.sum(axis=1))) > 0.99
    # many zeros, and .97 in the file: .03 + k h is shared by the zeros
    row = int(np.argmin(raw.sum(axis=1)))
    zeros = (raw[row] == 0).sum()
    lost = 1.0 - raw[row].sum() + (12 - zeros) * 0.005
    assert found.largest_zero[row] == pytest.approx(min(0.005, lost / zeros))


def test_as_many_labels_are_expected_on_zeros_as_fell_on_them():
    # 4 rows of two zeros each, S = 1, limits 1/4: f 0.5 / (1 + f 0.5) each, 4 rows promise 1 when
    # f 0.5 = 1 / 3, so f = 2 / 3
    found = ZeroLimits(np.ones(4), np.full(4, 2.0), np.full(4, 0.25))
    assert found.find_share_of_limit(1.0, np.ones(4), 1e-6) == pytest.approx(
        2 / 3, rel=1e-6
    )
    assert found.expected_labels_on_zeros(2 / 3, np.ones(4)) == pytest.approx(1.0)
    assert found.expected_labels_on_zeros(2 / 3, np.full(4, 3.0)) == pytest.approx(
        3.0
    )  # a row of weight 3
    assert (
        found.find_share_of_limit(2.0, np.ones(4), 1e-6) == 1.0
    )  # 4/3 at most: more than rounding explains


def test_that_share_has_the_largest_likelihood(rows):
    x, y = rows
    p = read(x.round(2), y)
    numbers = undo_rounding(p).notes[0].numbers
    raw = x.round(2)
    largest_zero = ZeroLimits.from_probs(
        raw / raw.sum(axis=1, keepdims=True), 2
    ).largest_zero[:, None]

    def nll(share):
        q = np.where(raw == 0.0, share * largest_zero, raw)
        return -np.log((q / q.sum(axis=1, keepdims=True))[np.arange(len(y)), y]).sum()

    shares = np.geomspace(0.01, 1.0, 2001)
    best = shares[np.argmin([nll(share) for share in shares])]
    # N + 1/2 labels in the place of N
    assert numbers["n_labels"] >= 1
    assert best < numbers["share"] < best * (1 + 1 / numbers["n_labels"])


def test_rows_stay_on_the_simplex_and_what_was_done_is_noted(rows):
    x, y = rows
    p = read(x.round(2), y)
    found = undo_rounding(p)
    assert found.probs.min() > 0.0
    assert found.probs.sum(axis=1) == pytest.approx(1.0)
    assert (found.n_clipped, found.clip, found.raised) == (0, None, None)
    assert found.n_zeros == p.n_zeros == (x.round(2) == 0).sum()
    (note,) = found.notes
    assert note.kind == "note.rounded"
    assert "rounded to 0.01: a 0 stands for up to 0.005" in note.text
    assert note.numbers["decimals"] == 2
    assert 0.0 < note.numbers["mean"] < 0.005
    assert undo_rounding(found) is found


@pytest.mark.parametrize("clip", [1e-6, 1e-3])
def test_a_floor_that_was_asked_for_stays(rows, clip):
    x, y = rows
    p = read(x.round(2), y, clip=clip)
    assert undo_rounding(p) is p


def test_votes_and_numbers_that_were_not_rounded_stay(rows):
    x, y = rows
    rng = np.random.default_rng(2)
    votes = read(rng.multinomial(25, x) / 25, y)
    assert undo_rounding(votes) is votes
    some_zeros = read(np.where(x < 1e-4, 0.0, x), y)
    assert undo_rounding(some_zeros) is some_zeros
    none = read(x, y)
    assert undo_rounding(none) is none


def test_no_label_on_a_zero_leaves_a_small_number():
    rng = np.random.default_rng(4)
    x = rng.dirichlet([0.1] * 3, 100)
    found = undo_rounding(read(x.round(2), x.argmax(axis=1), classes=range(3)))
    numbers = found.notes[0].numbers
    assert numbers["n_labels"] == 0
    assert "none fell on them" in found.notes[0].text
    assert 0.0 < numbers["mean"] < 0.005


def test_text_json_and_the_test_agree(rows):
    x, y = rows
    with suppress_warnings():
        a = mcllo.assess(x.round(2), y, normalize=True, seed=0, n_resamples=199)
        test = calibration_test(x.round(2), y, normalize=True, seed=0, n_resamples=199)
        own = subgroups(x.round(2), y, by=np.arange(1500) % 2, normalize=True, seed=0)
    assert math.isclose(a.test.statistic, test.statistic)
    assert sum(group.n_samples for group in own.groups) == 1500
    text = a.text()
    assert text.count("rounded to 0.01") == 1
    assert "rounded to 0.01" in a.text(brief=True)
    assert "may stand for" not in text
    assert a.details.zeros is None
    assert [note["kind"] for note in a.to_dict()["data"]["notes"]] == ["note.rounded"]
    assert "rounded to 0.01" in mcllo.report(a).html()


def test_floors_of_rounded_zeros_do_not_refute_them(rows):
    x, y = rows
    found = mcllo.zero_sensitivity(
        x.round(2), y, normalize=True, seed=0, n_resamples=99
    )
    assert found.n_clipped_true > 0
    kinds = [said.kind for said in found.statements()]
    assert kinds == ["zeros.floors", "zeros.resolution"]
    assert "below 0.005" in found.sentences()[-1]
