"""One function decides: the four verdicts by their rule, at every border of it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import assess
from mcllo._assessment.verdict import LEAST_POWER, decide
from mcllo.exceptions import InputError


@cache
def parts():
    a = assess(TOY_X, TOY_Y, method="chi2", n_resamples=99, seed=1)
    return a.test, a.size


def verdict(pvalue=0.5, high=0.05, power=0.9, draws=0, sequential=False, **options):
    """The verdict of a p-value, an upper bound of the size and a power."""
    test, size = parts()
    test = replace(test, pvalue=pvalue, n_resamples=draws, sequential=sequential)
    return decide(test, replace(size, high=high, power=power), **options)


@pytest.mark.parametrize(
    ("given", "kind", "practically"),
    [
        ({"pvalue": 0.05}, "matters", False),
        ({"pvalue": 0.050001}, "none_found", False),
        ({"pvalue": 0.01, "high": 0.0099}, "little", True),
        ({"pvalue": 0.01, "high": 0.01}, "matters", False),
        ({"pvalue": 0.01, "high": np.nan}, "matters", False),
        ({"pvalue": 0.01, "high": 0.04, "tolerance": 0.05}, "little", True),
        ({"pvalue": 0.03, "alpha": 0.01}, "none_found", False),
        ({"high": 0.005}, "none_found", True),
        ({"power": LEAST_POWER - 0.01}, "cannot_tell", False),
        ({"power": np.nan, "high": np.nan}, "cannot_tell", False),
        ({"power": LEAST_POWER}, "none_found", False),
        ({"power": 0.1, "high": 0.005}, "none_found", True),
        ({"power": 0.1, "pvalue": 0.001}, "matters", False),
        ({"pvalue": np.nan}, "cannot_tell", False),
        ({"pvalue": np.nan, "high": np.nan, "power": np.nan}, "cannot_tell", False),
        ({"pvalue": 0.001, "cannot": "3 rows"}, "cannot_tell", False),
        ({"pvalue": 0.1, "draws": 9}, "cannot_tell", False),
        ({"pvalue": 0.05, "draws": 19}, "matters", False),  # 1 / 20 is the least of 19 draws
        ({"pvalue": 0.9, "draws": 56, "sequential": True, "alpha": 0.01}, "none_found", False),
        ({"pvalue": 0.9, "draws": 56, "alpha": 0.01}, "cannot_tell", False),
    ],
)
def test_the_rule(given, kind, practically):
    found = verdict(**given)
    assert (found.kind, found.practically) == (kind, practically)
    assert bool(found.reason) == (kind == "cannot_tell")
    assert found.rejected == (kind in ("matters", "little"))


def test_gates():
    matters, little, none = verdict(0.01), verdict(0.01, 0.001), verdict(0.5)
    assert [v.fails() for v in (matters, little, none)] == [True, False, False]
    assert [v.fails(strict=True) for v in (matters, little, none)] == [True, True, False]


def test_omnibus_tests_speak_up_only_where_the_main_test_is_silent():
    assert verdict(0.5, other=("kernel",)).other == ("kernel",)
    assert verdict(0.01, other=("kernel",)).other == ()


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.1, np.nan])
def test_a_tolerance_is_a_share(tolerance):
    with pytest.raises(InputError, match=r"tolerance must lie in \(0, 1\)"):
        verdict(tolerance=tolerance)


def test_reasons_are_sentences_with_numbers():
    assert verdict(0.1, draws=9).reason == (
        "9 draws give no p-value below 0.1: allow more of them for level 0.05."
    )
    assert verdict(power=0.312).reason.endswith("with a chance of only 31 %.")
