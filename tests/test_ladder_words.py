from dataclasses import replace

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._ladder import ladder
from mcllo._ladder_words import ladder_sentence
from mcllo._nested_test import TOO_COSTLY, TOO_MANY
from mcllo._restriction import RestrictedFit

TOY = Predictions.from_arrays(TOY_X, np.array(["a", "b", "c"])[TOY_Y])
ROWS = ladder(TOY, method="chi2").rows


def sentence(chosen, theta=(0.1, 0.7, 0.5, 0.5), kept=(), **top):
    """The sentence when `chosen`, all that holds it and `kept` survive."""
    order = [row.model for row in ROWS]
    rows = [
        replace(
            row,
            rejected=order.index(row.model) < order.index(chosen) and row.model not in kept,
            **(top if row.model == "mcllo" else {}),
        )
        for row in ROWS
    ]
    fit = RestrictedFit(np.array(theta), -1.0, np.eye(4), True)
    return ladder_sentence(rows, rows[order.index(chosen)], fit, TOY, 0.05)


def test_no_departure_is_not_called_calibrated():
    text = sentence("identity")
    assert text == "No departure found. At level 0.05, p = 0.89; that is not proof of calibration."


@pytest.mark.parametrize(
    ("chosen", "theta", "words"),
    [
        ("temperature", (0, 0, 0.5, 0.5), "all log odds are too extreme (slope 0.50)"),
        ("temperature", (0, 0, 1.5, 1.5), "all log odds are too timid (slope 1.50)"),
        ("temperature", (0, 0, -0.5, -0.5), "ranked the wrong way (slope -0.50)"),
        ("shift", (0.1, np.log(2), 1, 1), "most for 'b' against 'c', odds times 2.00"),
        ("scale", (0, 0, 0.4, 2), "Classes differ in slope against 'c'"),
        ("common_slope", (0.1, -0.7, 0.5, 0.5), "odds times 0.50), and all log odds are too"),
        ("mcllo", (0.1, -0.7, 0.5, 2), "its own shift and slope against 'c'"),
        ("full", (0,), "depend on the probabilities of the others"),
    ],
)
def test_kinds(chosen, theta, words):
    assert words in sentence(chosen, theta)


def test_other_models_that_survive_are_named():
    assert "Not rejected either: shift." in sentence("temperature")
    assert "Not rejected either: temperature." in sentence("shift", kept=("temperature",))
    assert "Not rejected either" not in sentence("mcllo")
    assert "Not rejected either: common_slope." in sentence("scale")


def test_the_full_map_above_the_choice_is_mentioned():
    text = sentence("temperature", larger_pvalue=0.001)
    assert "But the full map fits better than MCLLO (p = 0.001)" in text
    weak = sentence("full", larger_pvalue=0.001, larger_reason=f"few errors, but {TOO_COSTLY}")
    assert "chi-square's, which so little information may not support" in weak
    assert "But the full map" not in weak
    many = {"larger_pvalue": 0.4, "larger_reason": f"few errors, but {TOO_MANY}"}
    assert "chi-square's" in sentence("mcllo", **many)
    assert "chi-square's" not in sentence("mcllo", larger_method="bound", **many)
