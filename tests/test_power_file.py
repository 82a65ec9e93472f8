"""Finished cells on disk: every digit comes back, and nothing is mixed."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo._power_file import FinishedCells
from mcllo.exceptions import FileFormatError, InputError

SETTINGS = {"seed": 5, "reps": 2, "test": "chi2", "concentration": [3.0, 0.3]}
NUMBERS = np.array([[0.1, 1e-300], [1 / 3, 0.2], [0.0, 1.0], [0.5, 2 / 3]])


def begun(path, settings=SETTINGS):
    cells = FinishedCells(path)
    cells.agree_on(settings)
    return cells


def test_every_digit_comes_back(tmp_path):
    path = tmp_path / "study.json"
    begun(path).add((400, 1.1), NUMBERS)
    again = begun(path)
    assert (400, 1.1) in again
    assert (400, 1.2) not in again
    assert (again[400, 1.1] == NUMBERS).all()
    assert again.seed == 5
    assert [p.name for p in tmp_path.iterdir()] == ["study.json"]  # no temporary file is left


@settings(deadline=None, max_examples=30)
@given(st.floats(0.01, 100.0), st.lists(st.floats(0.0, 1.0), min_size=8, max_size=8))
def test_any_numbers_come_back(tmp_path_factory, shift, values):
    path = tmp_path_factory.mktemp("cells") / "study.json"
    numbers = np.array(values).reshape(4, 2)
    begun(path).add((7, shift), numbers)
    assert (begun(path)[7, shift] == numbers).all()


def test_without_a_path_cells_live_in_memory():
    cells = begun(None)
    cells.add((400, 1.0), NUMBERS)
    assert (cells[400, 1.0] == NUMBERS).all()
    assert FinishedCells(None).seed is None


@pytest.mark.parametrize(("name", "value"), [("seed", 6), ("reps", 3), ("n_resamples", 99)])
def test_other_settings_are_refused(tmp_path, name, value):
    path = tmp_path / "study.json"
    begun(path).add((400, 1.1), NUMBERS)
    with pytest.raises(InputError, match=rf"holds a study with {name}=.*this one has {name}="):
        begun(path, {**SETTINGS, name: value})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "other"}',
        json.dumps({"format": "mcllo power study, 1", "settings": {"reps": 1}, "cells": [{}]}),
    ],
)
def test_other_files_are_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "study.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match="not an unfinished power study"):
        FinishedCells(path)
    assert path.read_text() == text


def test_a_cell_with_missing_repetitions_is_refused(tmp_path):
    path = tmp_path / "study.json"
    begun(path).add((400, 1.1), NUMBERS[:, :1])
    with pytest.raises(FileFormatError, match="not an unfinished power study"):
        FinishedCells(path)


def test_a_place_that_cannot_be_written_is_refused_first(tmp_path):
    with pytest.raises(FileFormatError, match="there is no directory"):
        FinishedCells(tmp_path / "absent" / "study.json")
