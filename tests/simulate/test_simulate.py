"""mcllo.simulate: the generator, the paper's study, and planning from one's own predictions."""

import os

import numpy as np
import pandas as pd
import pytest

from mcllo import Predictions, simulate
from mcllo.exceptions import ZeroProbabilityWarning
from mcllo.simulate._design import (
    check_alpha,
    map_of,
    n_workers,
    named_design,
    per_class,
    shifts,
    sizes,
    table_design,
)
from mcllo.simulate._study import wilson_interval


@pytest.mark.slow
def test_the_default_p_value_keeps_its_level_where_chi_square_does_not():
    # methods.md 8e: on sharp rows chi-square rejects far too often, the exact p-value does not
    logits = np.random.default_rng(0).normal(0.0, 1.0, (3000, 3))
    logits[np.arange(3000), np.arange(3000) % 3] += 5.0
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    options = {"n_samples": 60, "reps": 120, "n_resamples": 39, "seed": 1}
    cell = simulate.power_for(probs, delta=1, **options).rows[0]
    assert cell.low <= 0.05 <= cell.high
    assert wilson_interval(round(120 * cell.power_chi2), 120)[0] > 0.05


CLASSES = ("a", "b", "c")
ROWS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]


def test_parameters_for_all_for_each_and_by_label():
    identity = map_of(None, None, CLASSES, 2)
    assert identity.delta.tolist() == identity.gamma.tolist() == [1.0, 1.0]
    assert identity.baseline == "c"
    assert map_of(2.0, 0.8, CLASSES, 0).delta == pytest.approx([2.0, 2.0])
    assert map_of([2.0, 3.0], None, CLASSES, 1).delta == pytest.approx([2.0, 3.0])
    by_label = map_of({"c": 2.0}, {"a": -0.5}, CLASSES, 1)  # compared: a, c
    assert by_label.delta == pytest.approx([1.0, 2.0])
    assert by_label.gamma == pytest.approx([-0.5, 1.0])


def test_named_designs():
    assert named_design("dirichlet_heavy", 3).settings["concentration"] == [3.0, 0.3, 0.3]
    assert named_design("dirichlet", 2).settings["concentration"] == [1.0, 1.0]
    assert named_design("dirichlet", 2, [1, 4]).settings["concentration"] == [1.0, 4.0]
    assert named_design("softmax_normal", 2, scale=3).settings["scale"] == 3.0


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
    message = "probabilities of 0 .* labels are drawn from the raised rows"
    with pytest.warns(ZeroProbabilityWarning, match=message) as caught:
        design = table_design([[0.2, 0.3, 0.5], [0.7, 0.3, 0.0]])
    assert caught[0].message.text().startswith("1 of 6 probabilities were 0")
    assert (design.table.clip, design.table.n_clipped) == (1e-6, 1)


def test_sizes_shifts_and_workers():
    design = named_design("dirichlet", 2)
    assert sizes(400, design) == (400,)
    assert sizes(np.array([400, 500]), design) == (400, 500)
    assert shifts(1) == (1.0,)
    assert shifts((1.0, 1.4)) == (1.0, 1.4)
    assert (n_workers(None), n_workers(3), n_workers(-1)) == (1, 3, os.cpu_count())
    assert check_alpha(0.01) == 0.01
    assert per_class(2, "scale", 1).tolist() == [2.0]
