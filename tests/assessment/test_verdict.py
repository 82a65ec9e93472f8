"""One function decides: the four verdicts by their rule, at every border of it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import assess
from mcllo._assessment.verdict import MIN_POWER, decide_verdict
from mcllo._inference.goodness_of_fit import GoodnessOfFit
from mcllo._utils.statements import Statement
from mcllo.exceptions import InputError

THREE_ROWS = Statement("obstacle.units", "3 rows.")


@cache
def parts():
    a = assess(TOY_X, TOY_Y, method="chi2", n_resamples=99, seed=1)
    return a.test, a.effect_size


def verdict(pvalue=0.5, high=0.05, power=0.9, draws=0, sequential=False, **options):
    """The verdict of a p-value, an upper bound of the size and a power."""
    test, size = parts()
    test = replace(test, pvalue=pvalue, n_resamples=draws, sequential=sequential)
    at_least, left = options.pop("at_least", 0.0), options.pop("left", None)
    if left is not None:
        fit = GoodnessOfFit(
            0.0, None, left, "bootstrap", 99, 1, expected=0.0, high=0.0, n_samples=100
        )
        options["goodness_of_fit"] = fit
    options.setdefault("n_samples", 100)
    return decide_verdict(
        test, replace(size, high=high, power=power, at_least=at_least), **options
    )


def test_the_rule():
    for given, kind, equivalent in (
        ({"pvalue": 0.05}, "miscalibrated", False),
        ({"pvalue": 0.050001}, "not_detected", False),
        ({"pvalue": 0.01, "high": 0.0099}, "negligible", True),
        ({"pvalue": 0.01, "high": 0.01}, "miscalibrated", False),
        ({"pvalue": 0.01, "high": np.nan}, "miscalibrated", False),
        ({"pvalue": 0.01, "high": 0.04, "tolerance": 0.05}, "negligible", True),
        ({"pvalue": 0.03, "alpha": 0.01}, "not_detected", False),
        ({"high": 0.005}, "not_detected", True),
        ({"power": MIN_POWER - 0.01}, "inconclusive", False),
        ({"pvalue": 0.001, "n_samples": 1}, "inconclusive", False),
        ({"pvalue": 0.001, "n_samples": 2}, "miscalibrated", False),
        ({"power": np.nan, "high": np.nan}, "inconclusive", False),
        ({"power": MIN_POWER}, "not_detected", False),
        ({"power": 0.1, "high": 0.005}, "not_detected", True),
        ({"power": 0.1, "pvalue": 0.001}, "miscalibrated", False),
        ({"pvalue": np.nan}, "inconclusive", False),
        ({"pvalue": np.nan, "high": np.nan, "power": np.nan}, "inconclusive", False),
        ({"pvalue": 0.001, "obstacle": THREE_ROWS}, "inconclusive", False),
        ({"pvalue": 0.1, "draws": 9}, "inconclusive", False),
        (
            {"pvalue": 0.05, "draws": 19},
            "miscalibrated",
            False,
        ),  # 1 / 20 is the least of 19 draws
        (
            {"pvalue": 0.9, "draws": 56, "sequential": True, "alpha": 0.01},
            "not_detected",
            False,
        ),
        ({"pvalue": 0.9, "draws": 56, "alpha": 0.01}, "inconclusive", False),
    ):
        found = verdict(**given)
        assert (found.kind, found.equivalent) == (kind, equivalent), given
        assert bool(found.reason) == (kind == "inconclusive"), given
        assert found.rejected == (kind in ("miscalibrated", "negligible")), given


def test_gates():
    matters, little, none = verdict(0.01), verdict(0.01, 0.001), verdict(0.5)
    assert [v.fails() for v in (matters, little, none)] == [True, False, False]
    assert [v.fails(strict=True) for v in (matters, little, none)] == [
        True,
        True,
        False,
    ]


def test_a_tolerance_is_a_share():
    for tolerance in (0.0, 1.0, np.nan):
        with pytest.raises(InputError, match=r"tolerance must lie in \(0, 1\)"):
            verdict(tolerance=tolerance)


def test_reasons_are_sentences_with_numbers():
    assert verdict(0.1, draws=9).reason.startswith("9 draws give no p-value below 0.1")


HL = ("hosmer_lemeshow",)


@pytest.mark.parametrize(
    ("given", "kind", "equivalent"),
    [
        # the main test sees nothing: an omnibus test counts where what is seen is above tolerance
        ({"other": HL, "at_least": 0.02}, "miscalibrated", False),
        ({"other": HL, "at_least": 0.01}, "not_detected", False),
        ({"other": (), "at_least": 0.02}, "not_detected", False),
        ({"other": HL, "at_least": 0.02, "tolerance": 0.03}, "not_detected", False),
        ({"other": HL, "at_least": 0.02, "power": 0.1}, "miscalibrated", False),
        (
            {"other": HL, "at_least": 0.02, "obstacle": THREE_ROWS},
            "inconclusive",
            False,
        ),
        # no bound where something else was found
        ({"high": 0.005, "other": HL}, "not_detected", False),
        ({"high": 0.005, "left": 0.01}, "not_detected", False),
        ({"high": 0.005, "left": 0.2}, "not_detected", True),
        # beside a main test that rejects, the fit of the map tells whether there is more
        ({"pvalue": 0.01, "high": 0.005, "other": HL, "left": 0.2}, "negligible", True),
        (
            {"pvalue": 0.01, "high": 0.005, "other": HL, "left": 0.01},
            "miscalibrated",
            False,
        ),
        ({"pvalue": 0.01, "high": 0.005, "other": HL}, "miscalibrated", False),
        ({"pvalue": 0.01, "high": 0.005, "left": 0.01}, "miscalibrated", False),
    ],
)
def test_errors_of_another_kind(given, kind, equivalent):
    found = verdict(**given)
    assert (found.kind, found.equivalent) == (kind, equivalent)
    assert found.other == given.get("other", ())  # never kept back
    assert found.beyond == (
        given.get("left") == 0.01 or (bool(found.other) and "pvalue" not in given)
    )
