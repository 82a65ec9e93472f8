"""The repetitions of a study: each must be what the package's own functions say of its table."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo import MCLLOMap, Predictions, calibration_test, metrics
from mcllo._fit.fit import fit_predictions
from mcllo._model.likelihood import identity_theta
from mcllo.exceptions import FileFormatError
from mcllo.simulate import PowerCell, PowerStudy
from mcllo.simulate._design import (
    design_of_distribution,
    design_of_table,
    take_table_of_sample,
)
from mcllo.simulate._run import (
    N_BATCH_LOG_ODDS,
    FinishedCells,
    StudyCell,
    StudyPlan,
    recalibrate_tables,
    run_batch,
    run_cells,
    split_into_batches,
    top_label_ece_by_table,
)
from mcllo.simulate._study import format_effect, wilson_interval

FOUR = design_of_distribution("dirichlet", 4)
THETA = np.array([0.3, 0.0, 0.0, 0.8, 1.0, 1.0])


def tables(design, cell, reps):
    """Return the tables of a cell's repetitions, drawn one by one."""
    for r in range(reps):
        stream = np.random.default_rng([*cell.key, r])
        yield take_table_of_sample(design.sample(cell.theta, cell.n, [stream]))


def ece(codes, probs):
    return metrics.expected_calibration_error(
        codes, probs, classes=range(probs.shape[1])
    )


def assert_as_the_package_says(design, cell, reps):
    """Compare every number of a batch with the package's own functions for the same tables."""
    numbers = run_batch(StudyPlan(design, "chi2", 199, reps), cell, range(reps))
    for r, p in enumerate(tables(design, cell, reps)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test, fit = calibration_test(p, method="chi2"), fit_predictions(p)
        before, after = ece(p.codes, p.probs), ece(p.codes, fit.recalibrate(p.probs))
        expected = [test.pvalue, test.pvalue, before, after]
        np.testing.assert_allclose(numbers[:, r], expected, rtol=1e-6, atol=1e-9)


def test_the_identity_recalibrates_to_the_rows_themselves():
    sample = FOUR.sample(identity_theta(3), 30, [np.random.default_rng(0)])
    same = recalibrate_tables(identity_theta(3)[None], sample.log_odds[:, None], 3)
    np.testing.assert_allclose(same, sample.probs, rtol=1e-12)


def test_ece_by_hand():
    # n = 4 has two bins, (0, .5] and (.5, 1]. Confidence .6 (hit), .8 (miss), .5 (hit), .9 (hit):
    # bin 1: |.5 - 1| = .5; bin 2: |.6 + .8 + .9 - 2| = .3; ECE = .8 / 4
    first = np.array([0.6, 0.8, 0.5, 0.9])
    probs = np.column_stack([first, 1.0 - first])
    assert top_label_ece_by_table(probs, np.array([0, 1, 0, 0]), 1) == pytest.approx(
        [0.2]
    )


def test_ece_of_votes_that_tie():
    rng = np.random.default_rng(0)
    votes = (
        rng.multinomial(4, [0.4, 0.3, 0.3], size=(3, 50)) / 4
    )  # many ties, on bin edges
    codes = rng.integers(0, 3, (3, 50))
    found = top_label_ece_by_table(votes.reshape(150, 3), codes.ravel(), 3)
    expected = [ece(y, x) for x, y in zip(votes, codes, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_each_repetition_is_what_the_package_says_of_its_table():
    assert_as_the_package_says(FOUR, StudyCell(60, None, THETA, (11, 60)), 8)


def test_any_baseline_gives_what_the_package_says():
    rng = np.random.default_rng(5)
    labels = np.array(list("abcd"))[rng.integers(0, 4, 300)]
    probs = rng.dirichlet(np.ones(4), 300)
    table = Predictions.from_arrays(probs, labels, classes=list("abcd"), baseline="b")
    assert_as_the_package_says(
        design_of_table(table), StudyCell(150, None, THETA, (1,)), 3
    )


def test_exact_p_values_are_the_packages_from_the_repetitions_stream():
    cell = StudyCell(40, None, THETA, (3,))
    numbers = run_batch(StudyPlan(FOUR, "exact", 99, 4), cell, range(4))
    for r in range(4):
        stream = np.random.default_rng([3, r])
        p = take_table_of_sample(FOUR.sample(THETA, 40, [stream]))
        seed = int(stream.integers(2**63))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test = calibration_test(p, method="exact", n_resamples=99, seed=seed)
        if test.pvalue * 100 <= 20:  # otherwise drawing stopped at the 20th exceedance
            assert numbers[0, r] == test.pvalue
        else:
            assert numbers[0, r] > 0.2
    assert (numbers[0] != numbers[1]).all()


def test_auto_draws_only_where_chi_square_cannot_be_trusted():
    many, few = StudyCell(2000, None, THETA, (4,)), StudyCell(40, None, THETA, (4,))
    plan = StudyPlan(FOUR, "auto", 99, 3)
    trusted, doubted = run_batch(plan, many, range(3)), run_batch(plan, few, range(3))
    assert (trusted[0] == trusted[1]).all()
    assert (doubted[0] != doubted[1]).all()


def test_batches_cover_every_repetition_once():
    for n, reps in ((400, 1000), (10, 7), (10**6, 3)):
        pieces = split_into_batches(StudyCell(n, None, identity_theta(9), (0,)), reps)
        assert [r for b in pieces for r in b] == list(range(reps)), n
        longest = max(map(len, pieces))
        assert longest == 1 or longest * n * 9 <= N_BATCH_LOG_ODDS, n


@pytest.mark.threads
def test_the_blas_threads_are_given_back():
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    plan = StudyPlan(FOUR, "chi2", 199, 2)
    list(run_cells(plan, [StudyCell(20, None, THETA, (0,))], 1))
    assert [pool["num_threads"] for pool in threadpool_info()][: len(before)] == before
    assert list(run_cells(plan, [], 64)) == []  # nothing to do starts no worker


NUMBERS = np.array([[0.1, 1e-300], [1 / 3, 0.2], [0.0, 1.0], [0.5, 2 / 3]])


def begun(path):
    cells = FinishedCells(path)
    cells.check_same_settings(
        {"seed": 5, "reps": 2, "test": "chi2", "concentration": [3.0, 0.3]}
    )
    return cells


def test_every_digit_comes_back(tmp_path):
    path = tmp_path / "study.json"
    begun(path).add((400, 1.1), NUMBERS)
    again = begun(path)
    assert list(again) == [(400, 1.1)]
    assert (again[400, 1.1] == NUMBERS).all()
    assert again.settings["seed"] == 5
    assert [p.name for p in tmp_path.iterdir()] == [
        "study.json"
    ]  # no temporary file is left
    with pytest.raises(FileFormatError, match="there is no directory"):
        FinishedCells(tmp_path / "absent" / "study.json")


@settings(deadline=None, max_examples=30)
@given(st.floats(0.01, 100.0), st.lists(st.floats(0.0, 1.0), min_size=8, max_size=8))
def test_any_numbers_come_back(tmp_path_factory, shift, values):
    path = tmp_path_factory.mktemp("cells") / "study.json"
    numbers = np.array(values).reshape(4, 2)
    begun(path).add((7, shift), numbers)
    assert (begun(path)[7, shift] == numbers).all()


def test_other_files_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "study.json"
    begun(path).add((400, 1.1), NUMBERS[:, :1])
    missing_repetitions = path.read_text()
    empty_cell = {
        "format": "mcllo power study, 1",
        "settings": {"reps": 1},
        "cells": [{}],
    }
    for text in ("", "[]", "{}", json.dumps(empty_cell), missing_repetitions):
        path.write_text(text)
        with pytest.raises(FileFormatError, match="not an unfinished power study"):
            FinishedCells(path)
        assert path.read_text() == text


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


def test_wilson_by_hand_and_against_scipy():
    from scipy.stats import binomtest

    # 5 of 10, z = 1.959964: z^2 = 3.841459; the middle is .5, the reach
    # 1.959964 sqrt(.025 + 3.841459/400) / 1.3841459 = .263407
    assert wilson_interval(5, 10) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    # 0 of 10: 0 and z^2 / (10 + z^2) = .277533
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.277533), abs=1e-6)
    assert wilson_interval(10, 10) == pytest.approx((0.722467, 1.0), abs=1e-6)
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
    with pytest.raises(ValueError, match="study of one effect"):
        GRID.smallest_n()
    for power in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"power must lie in \(0, 1\]"):
            study.smallest_n(power)


def test_it_prints_what_was_done():
    lines = str(GRID).splitlines()
    assert lines[2] == "Rows: Dirichlet(1, 1); 2 classes; 4 repetitions a line; seed 5"
    assert lines[5] == "100     1.20     0.500  [0.150, 0.850]  0.1000  0.0500"
    assert lines[-1] == "delta_1 = 1: H0 holds, so the rate is the size of the test."
    assert "smallest n above with an estimated power of 80 %: 200" in str(
        planning(0.5, 1.0)
    )
    assert repr(GRID) == "<PowerStudy of 2 settings: Dirichlet(1, 1)>"
    assert repr(GRID.rows[0]) == "PowerCell(n=100, delta_1=1.2, power=0.500, reps=4)"


EFFECTS = [
    ([1.5, 1.0], [1.0, 1.0], "delta 1.50 for a (baseline c)"),
    ([1.0, 1.0], [0.8, 0.8], "gamma 0.80 (baseline c)"),
    ([1.0, 1.0], [1.0, 1.0], "as predicted (baseline c)"),
    (np.arange(2.0, 8.0), np.ones(6), "delta of 2 more classes (baseline g)"),
]


def test_the_effect_in_words():
    for delta, gamma, words in EFFECTS:
        classes = tuple("abcdefg"[: len(delta) + 1])
        effect = MCLLOMap(np.log(delta), np.asarray(gamma), classes, classes[-1])
        assert format_effect(effect).endswith(words), words
