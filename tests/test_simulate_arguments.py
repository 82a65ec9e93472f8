"""Arguments of mcllo.simulate: what they stand for, and how the wrong ones are refused."""

import os

import numpy as np
import pandas as pd
import pytest

from mcllo import Predictions
from mcllo._simulate_arguments import (
    check_alpha,
    map_of,
    n_workers,
    named_design,
    per_class,
    shifts,
    sizes,
    table_design,
)
from mcllo.exceptions import InputError, ZeroProbabilityWarning

CLASSES = ("a", "b", "c")
ROWS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]


def test_nothing_given_is_the_identity():
    effect = map_of(None, None, CLASSES, 2)
    assert effect.delta.tolist() == [1.0, 1.0]
    assert effect.gamma.tolist() == [1.0, 1.0]
    assert effect.baseline == "c"


def test_parameters_for_all_for_each_and_by_label():
    assert map_of(2.0, 0.8, CLASSES, 0).delta == pytest.approx([2.0, 2.0])
    assert map_of([2.0, 3.0], None, CLASSES, 1).delta == pytest.approx([2.0, 3.0])
    by_label = map_of({"c": 2.0}, {"a": -0.5}, CLASSES, 1)  # compared: a, c
    assert by_label.delta == pytest.approx([1.0, 2.0])
    assert by_label.gamma == pytest.approx([-0.5, 1.0])


def test_named_designs():
    assert named_design("dirichlet_heavy", 3).concentration.tolist() == [3.0, 0.3, 0.3]
    assert named_design("dirichlet", 2).concentration.tolist() == [1.0, 1.0]
    assert named_design("dirichlet", 2, [1, 4]).concentration.tolist() == [1.0, 4.0]
    assert named_design("softmax_normal", 2, scale=3).scale == 3.0


def test_tables_of_every_kind():
    assert table_design(ROWS).classes == (0, 1, 2)
    frame = table_design(pd.DataFrame(ROWS, columns=["x", "y", "z"]), baseline="x")
    assert frame.classes == ("x", "y", "z")
    assert frame.baseline_index == 0
    given = Predictions.from_arrays(ROWS, ["a", "b"], classes=list(CLASSES))
    assert table_design(given, baseline="b").table.baseline == "b"
    picked = pd.DataFrame({"id": [1, 2], "q": [0.5, 0.1], "p": [0.5, 0.9]})
    assert table_design(picked, ["p", "q"]).table.probs.tolist() == [[0.5, 0.5], [0.9, 0.1]]


def test_zeros_are_raised_with_a_warning():
    with pytest.warns(ZeroProbabilityWarning, match="1 of 6 probabilities were 0"):
        design = table_design([[0.2, 0.3, 0.5], [0.7, 0.3, 0.0]])
    assert design.table.clip == 1e-6
    assert design.table.n_clipped == 1


def test_sizes_shifts_and_workers():
    assert sizes(400) == (400,)
    assert sizes(np.array([400, 500])) == (400, 500)
    assert shifts(1) == (1.0,)
    assert shifts((1.0, 1.4)) == (1.0, 1.4)
    assert (n_workers(None), n_workers(3), n_workers(-1)) == (1, 3, os.cpu_count())
    assert check_alpha(0.01) == 0.01
    assert per_class(2, "scale", 1).tolist() == [2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: map_of(0.0, None, CLASSES, 2), "delta must be positive and finite; got delta=0.0"),
        (lambda: map_of([1, 2, 3], None, CLASSES, 2), "delta must be one number or 2 of them"),
        (lambda: map_of(None, np.nan, CLASSES, 2), "gamma must be finite"),
        (lambda: map_of("x", None, CLASSES, 2), "delta must hold numbers; got values such as 'x'"),
        (lambda: map_of({"d": 2}, None, CLASSES, 2), "a label of delta='d' is not a class"),
        (lambda: map_of({"c": 2}, None, CLASSES, 2), "delta must not name the baseline 'c'"),
        (lambda: named_design("dirichlet_heavi", 3), "did you mean 'dirichlet_heavy'"),
        (lambda: named_design("normal", 1), "distribution 'normal' is not known"),
        (lambda: named_design("dirichlet", 1), "n_classes must be a whole number >= 2"),
        (lambda: named_design("dirichlet", 3, 0), "concentration must be positive and finite"),
        (lambda: named_design("dirichlet", 3, scale=2), "scale= belongs to .*'softmax_normal'"),
        (lambda: named_design("softmax_normal", 3, 2), "concentration= belongs to .*'dirichlet'"),
        (lambda: named_design("softmax_normal", 3, scale=[1, 2]), "scale must be one number; got"),
        (lambda: table_design([[0.5, 0.6]]), "each row of probs must sum to 1"),
        (lambda: table_design(ROWS, ["a", "b"]), "classes must name each of the 3 columns"),
        (lambda: table_design(ROWS, baseline=7), "baseline=7 is not a class"),
        (lambda: sizes(0), "n_samples must be a whole number >= 1; got n_samples=0"),
        (lambda: sizes([400, 400]), "n_samples must be distinct"),
        (lambda: sizes([]), "n_samples must be distinct"),
        (lambda: sizes("400"), "n_samples must be a whole number"),
        (lambda: shifts([1.0, -1.0]), "delta_1 must be positive and finite"),
        (lambda: shifts([1.0, 1.0]), "delta_1 must be distinct"),
        (lambda: shifts([]), "delta_1 must be distinct"),
        (lambda: check_alpha(1.0), r"alpha must lie in \(0, 1\); got alpha=1.0"),
        (lambda: check_alpha("5%"), r"alpha must lie in \(0, 1\)"),
        (lambda: n_workers(0), "n_jobs must be a whole number >= 1"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
