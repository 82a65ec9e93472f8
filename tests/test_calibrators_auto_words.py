import numpy as np
import pytest

from mcllo.calibrators._auto_members import Ladder
from mcllo.calibrators._auto_stack import Stack
from mcllo.calibrators._auto_words import describe, reason, shares
from mcllo.calibrators._soft_temperature import SoftTemperature

NAMES = ("identity", "temperature", "mcllo", "full_tight", "full_loose")


def stack_of(*weights, u=1.0, gain=0.0475, se=0.01):
    ladder = Ladder(SoftTemperature(u, 0.01), {})
    return Stack(ladder, dict(zip(NAMES, weights, strict=True)), 0.2295 - gain, 0.2295, gain, se)


def test_the_sentence():
    words = describe(stack_of(0.002, 0.078, 0.3, 0.2, 0.42))
    assert words == (
        "62 % full map, 30 % MCLLO, 8 % temperature: classes leak into each other; "
        "cross-validated log loss 0.1820 against 0.2295 raw"
    )


def test_full_maps_are_one_kind_and_the_largest_comes_first():
    kinds = shares(stack_of(0.1, 0.2, 0.3, 0.15, 0.25).weights)
    assert list(kinds) == ["full map", "MCLLO", "temperature", "identity"]
    assert kinds["full map"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (stack_of(0.1, 0.2, 0.6, 0.1, 0.0), "some classes are predicted too often or too boldly"),
        (stack_of(0.2, 0.7, 0.1, 0.0, 0.0, u=0.5), "predictions are too bold"),
        (stack_of(0.2, 0.7, 0.1, 0.0, 0.0, u=1.5), "predictions are too cautious"),
        (stack_of(0.2, 0.7, 0.1, 0.0, 0.0, u=1.01), "sure predictions fail now and then"),
        (stack_of(0.6, 0.4, 0.0, 0.0, 0.0), "there is little to repair"),
        (stack_of(1.0, 0.0, 0.0, 0.0, 0.0, gain=-0.01), "no repair promises a gain"),
    ],
)
def test_reasons(stack, expected):
    assert reason(stack) == expected
    assert expected in describe(stack)


def test_no_gain_is_said_of_the_repair():
    words = describe(stack_of(1.0, 0.0, 0.0, 0.0, 0.0, gain=-0.01))
    assert words.endswith("cross-validated log loss of a repair 0.2395 against 0.2295 raw")


def test_nothing_left_out():
    words = describe(stack_of(1.0, 0.0, 0.0, 0.0, 0.0, gain=0.0, se=np.inf))
    assert words == "100 % identity: too few rows to leave any out"
