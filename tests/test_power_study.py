"""Rates, their intervals, and how a study prints."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo import MCLLOMap
from mcllo._power_study import PowerCell, PowerStudy, effect_words, wilson_interval

P = np.array([0.001, 0.05, 0.2, 0.9])


def cell(n=100, delta_1=1.2, pvalues=P, chi2=P):
    return PowerCell(n, delta_1, 0.05, pvalues, chi2, np.full(4, 0.1), np.full(4, 0.05))


def planning(*rates):
    effect = MCLLOMap(np.zeros(1), np.array([0.8]), ("a", "b"), "b")
    rows = tuple(
        cell(100 * (k + 1), None, np.where(np.arange(4) < 4 * rate, 0.01, 0.5))
        for k, rate in enumerate(rates)
    )
    return PowerStudy(rows, "auto", 0.05, 7, "drawn from 50 predictions", 2, effect)


GRID = PowerStudy((cell(), cell(200, 1.0)), "chi2", 0.05, 5, "Dirichlet(1, 1)", 2)


def test_wilson_by_hand():
    # 5 of 10, z = 1.959964: z^2 = 3.841459; the middle is .5, the reach
    # 1.959964 sqrt(.025 + 3.841459/400) / 1.3841459 = .263407
    assert wilson_interval(5, 10) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    # 0 of 10: 0 and z^2 / (10 + z^2) = .277533
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.277533), abs=1e-6)
    assert wilson_interval(10, 10) == pytest.approx((0.722467, 1.0), abs=1e-6)


def test_wilson_against_scipy():
    from scipy.stats import binomtest

    for hits, trials in ((1, 20), (37, 200), (999, 1000)):
        expected = binomtest(hits, trials).proportion_ci(method="wilson")
        assert wilson_interval(hits, trials) == pytest.approx(tuple(expected), rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 5000), st.data())
def test_the_interval_holds_its_rate(trials, data):
    hits = data.draw(st.integers(0, trials))
    low, high = wilson_interval(hits, trials)
    assert 0.0 <= low <= hits / trials <= high <= 1.0


def test_a_p_value_equal_to_the_level_rejects():
    assert cell().power == 0.5  # .001 and .05 of four; as CalibrationTest.rejects
    assert cell(chi2=np.array([0.01, 0.02, 0.03, 0.9])).power_chi2 == 0.75
    assert (cell().low, cell().high) == wilson_interval(2, 4)


def test_to_dict_is_plain_json_without_repetitions():
    content = json.loads(json.dumps(GRID.to_dict()))
    assert {"n", "delta_1", "power", "low", "high"} <= set(content["rows"][0])
    assert content["rows"][0]["ece_before"] == pytest.approx(0.1)
    assert all(not isinstance(value, list) for value in content["rows"][0].values())
    assert content["seed"] == 5
    one = planning(0.25).to_dict()
    assert "delta_1" not in one["rows"][0]
    assert one["effect"]["gamma"] == [0.8]


def test_tables():
    assert GRID.table["n"] == [100, 200]
    assert GRID.to_frame().shape[0] == 2
    single = GRID.repetitions()
    assert len(single) == 8
    assert single["delta_1"] == [1.2] * 4 + [1.0] * 4
    assert single["pvalue"] == [*P, *P]
    assert single["repetition"] == [0, 1, 2, 3] * 2
    assert "delta_1" not in planning(0.5).repetitions().columns


def test_smallest_n():
    study = planning(0.25, 0.75, 1.0)
    assert study.smallest_n(0.5) == 200
    assert study.smallest_n() == 300
    assert planning(0.25).smallest_n() is None


def test_it_prints_what_was_done():
    text = str(GRID)
    assert "rejected at level 0.05" in text
    assert "chi-square p-values" in text
    assert "seed 5" in text
    assert "size of the test" in text
    assert "0.500  [0.150, 0.850]" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "smallest n above with an estimated power of 80 %: 200" in str(planning(0.5, 1.0))
    assert "No n above" in str(planning(0.5))
    assert "by chi-square" in str(planning(0.5))
    assert repr(GRID) == "<PowerStudy of 2 settings: Dirichlet(1, 1)>"
    assert repr(GRID.rows[0]) == "PowerCell(n=100, delta_1=1.2, power=0.500, reps=4)"


def test_the_effect_in_words():
    classes = ("a", "b", "c")
    one = MCLLOMap(np.log([1.5, 1.0]), np.ones(2), classes, "c")
    assert effect_words(one) == "delta 1.50 for a (baseline c)"
    assert effect_words(MCLLOMap(np.zeros(2), np.ones(2), classes, "c")).startswith("as predicted")
    many = MCLLOMap(np.arange(1.0, 7.0), np.ones(6), tuple("abcdefg"), "g")
    assert effect_words(many).endswith("delta of 2 more classes (baseline g)")


@pytest.mark.parametrize("power", [0.0, 1.5, float("nan")])
def test_impossible_powers_are_refused(power):
    with pytest.raises(ValueError, match=r"power must lie in \(0, 1\]"):
        planning(0.5).smallest_n(power)


def test_smallest_n_of_a_grid_is_refused():
    with pytest.raises(ValueError, match="study of one effect"):
        GRID.smallest_n()
