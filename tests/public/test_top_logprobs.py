"""Choice sets of the likeliest tokens of an answer."""

from types import SimpleNamespace

import numpy as np
import pytest

import mcllo
from mcllo import choices_from_top_logprobs
from mcllo.exceptions import InputError

LETTERS = ["A", "B", "C"]


def read(listed, y="B"):
    return choices_from_top_logprobs([listed], [y], options=LETTERS)


def test_probabilities_by_hand():
    # A and C are not listed: half of the last one, 0.1 / 2; all else has 1 - 0.7 - 0.1
    p = read({"B": np.log(0.7), "The": np.log(0.1)})
    assert p.classes == ("A", "B", "C", "other")
    assert p.probs[0] == pytest.approx([0.05, 0.7, 0.05, 0.2])
    # of the rest, 0.06, each of two that are not listed gets a third
    p = read({"B": np.log(0.5), "The": np.log(0.44)})
    assert p.probs[0] == pytest.approx([0.02, 0.5, 0.02, 0.46])


def test_spaces_do_not_count_and_entries_are_read_as_interfaces_write_them():
    by_name = read({"B": np.log(0.6), " B": np.log(0.1), "A\n": np.log(0.2)})
    assert by_name.probs[0, :2] == pytest.approx([0.2, 0.7])
    entries = [("B", 0.6), (" B", 0.1), ("A\n", 0.2)]
    pairs = [{"token": token, "logprob": np.log(p)} for token, p in entries]
    objects = [SimpleNamespace(**pair) for pair in pairs]
    assert np.array_equal(read(pairs).probs, by_name.probs)
    assert np.array_equal(read(objects, y=1).probs, by_name.probs)


def test_what_is_refused():
    for listed in (
        {},
        {"A": 0.5},
        {"A": None},
        {"A": float("nan")},
        ["A"],
        3,
        {"A": 1e4},
    ):
        with pytest.raises(InputError, match="row 1 does not"):
            choices_from_top_logprobs([{"A": -1.0}, listed], [0, 0], options=LETTERS)
    with pytest.raises(InputError, match="not hold 'other'"):
        choices_from_top_logprobs([{"A": -1.0}], [0], options=["A", "other"])
    with pytest.raises(InputError, match="row 0 has 'D'"):
        read({"A": -1.0}, y="D")


def test_a_map_takes_away_what_other_never_gets():
    rng = np.random.default_rng(0)
    listed = []
    answers = []
    for _ in range(400):
        honest = rng.dirichlet([1.0, 1.0, 1.0])
        answers.append(int(rng.choice(3, p=honest)))
        listed.append(dict(zip(LETTERS, np.log(0.8 * honest), strict=True)))
    by = ["law", "physics"] * 200
    p = choices_from_top_logprobs(listed, answers, options=LETTERS, by=by)
    assert p.probs[:, -1] == pytest.approx(0.2)
    assert p.by.names == ("law", "physics")
    better = mcllo.ChoiceCalibrator().fit(p).predict_proba(p)
    assert better[:, -1].max() < 0.02
