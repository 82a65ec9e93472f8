"""mcllo.simulate: the generator, the paper's study, and planning from one's own predictions."""

import numpy as np
import pandas as pd
import pytest

from mcllo import Predictions, simulate
from mcllo.exceptions import ZeroProbabilityWarning
from mcllo.simulate._design import build_map, design_of_table
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
    identity = build_map(None, None, CLASSES, 2)
    assert identity.delta.tolist() == identity.gamma.tolist() == [1.0, 1.0]
    assert identity.baseline == "c"
    assert build_map(2.0, 0.8, CLASSES, 0).delta == pytest.approx([2.0, 2.0])
    assert build_map([2.0, 3.0], None, CLASSES, 1).delta == pytest.approx([2.0, 3.0])
    by_label = build_map({"c": 2.0}, {"a": -0.5}, CLASSES, 1)  # compared: a, c
    assert by_label.delta == pytest.approx([1.0, 2.0])
    assert by_label.gamma == pytest.approx([-0.5, 1.0])


def test_tables_of_every_kind():
    assert design_of_table(ROWS).classes == (0, 1, 2)
    frame = design_of_table(pd.DataFrame(ROWS, columns=["x", "y", "z"]), baseline="x")
    assert frame.classes == ("x", "y", "z")
    assert frame.baseline_index == 0
    given = Predictions.from_arrays(ROWS, ["a", "b"], classes=list(CLASSES))
    assert design_of_table(given, baseline="b").table.baseline == "b"
    picked = pd.DataFrame({"id": [1, 2], "q": [0.5, 0.1], "p": [0.5, 0.9]})
    assert design_of_table(picked, ["p", "q"]).table.probs.tolist() == [
        [0.5, 0.5],
        [0.9, 0.1],
    ]


def test_zeros_are_clipped_with_a_warning():
    message = "probabilities of 0 .* labels are drawn from the clipped rows"
    with pytest.warns(ZeroProbabilityWarning, match=message) as caught:
        design = design_of_table([[0.2, 0.3, 0.5], [0.7, 0.3, 0.0]])
    assert caught[0].message.text().startswith("1 of 6 probabilities were 0")
    assert (design.table.clip, design.table.n_clipped) == (1e-6, 1)
