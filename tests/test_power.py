"""The repetitions of a study: each must be what the package's own functions say of its table."""

import warnings

import numpy as np
import pytest

from mcllo import calibration_test, metrics
from mcllo._design import Named, Resampled
from mcllo._fit import fit_predictions
from mcllo._model import identity_theta
from mcllo._power import (
    BATCH_CELLS,
    Batch,
    Cell,
    Plan,
    batches,
    recalibrated,
    run_batch,
    run_cells,
    top_label_errors,
)
from mcllo._predictions import Predictions

FOUR = Named("dirichlet", 4, np.ones(4), 1.0)
THETA = np.array([0.3, 0.0, 0.0, 0.8, 1.0, 1.0])


def tables(design, cell, reps):
    """Return the tables of a cell's repetitions, drawn one by one."""
    for r in range(reps):
        stream = np.random.default_rng([*cell.key, r])
        yield design.sample(cell.theta, cell.n, [stream]).predictions(0)


def quiet_fit(predictions):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_predictions(predictions)


def ece(p, probs):
    return metrics.expected_calibration_error(p.codes, probs, classes=range(probs.shape[1]))


def test_the_identity_recalibrates_to_the_rows_themselves():
    sample = FOUR.sample(identity_theta(3), 30, [np.random.default_rng(0)])
    same = recalibrated(np.tile(identity_theta(3), (1, 1)), sample)
    np.testing.assert_allclose(same, sample.by_class, rtol=1e-12)


def test_ece_by_hand():
    # n = 4 has two bins, (0, .5] and (.5, 1]. Confidence .6 (hit), .8 (miss), .5 (hit), .9 (hit):
    # bin 1: |.5 - 1| = .5; bin 2: |.6 + .8 + .9 - 2| = .3; ECE = .8 / 4
    first = [0.6, 0.8, 0.5, 0.9]
    by_class = np.array([first, [1.0 - p for p in first]])[:, None]
    assert top_label_errors(by_class, np.array([[0, 1, 0, 0]])) == pytest.approx([0.2])


def test_ece_of_votes_that_tie():
    rng = np.random.default_rng(0)
    votes = rng.multinomial(4, [0.4, 0.3, 0.3], size=(3, 50)) / 4  # many ties, on bin edges
    codes = rng.integers(0, 3, (3, 50))
    found = top_label_errors(votes.transpose(2, 0, 1), codes)
    expected = [
        metrics.expected_calibration_error(y, x, classes=range(3))
        for x, y in zip(votes, codes, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [60, 500])
def test_each_repetition_is_what_the_package_says_of_its_table(n):
    cell = Cell(n, None, THETA, (11, n))
    numbers = run_batch(Plan(FOUR, "chi2", 199, 8), Batch(cell, 0, 8))
    for r, p in enumerate(tables(FOUR, cell, 8)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test = calibration_test(p, method="chi2")
        after = quiet_fit(p).recalibrate(p.probs)
        expected = [test.pvalue, test.pvalue, ece(p, p.probs), ece(p, after)]
        np.testing.assert_allclose(numbers[:, r], expected, rtol=1e-6, atol=1e-9)


def test_any_baseline_gives_what_the_package_says():
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.ones(4), 300)
    labels = [list("abcd")[k] for k in rng.integers(0, 4, 300)]
    table = Predictions.from_arrays(probs, labels, classes=list("abcd"), baseline="b")
    cell = Cell(150, None, THETA, (1,))
    numbers = run_batch(Plan(Resampled(table), "chi2", 199, 3), Batch(cell, 0, 3))
    for r, p in enumerate(tables(Resampled(table), cell, 3)):
        fit = quiet_fit(p)
        assert p.baseline == "b"
        assert numbers[1, r] == pytest.approx(calibration_test(p, method="chi2").pvalue, rel=1e-6)
        assert numbers[3, r] == pytest.approx(ece(p, fit.recalibrate(p.probs)), rel=1e-6)


def test_exact_p_values_are_the_packages_from_the_repetitions_stream():
    cell = Cell(40, None, THETA, (3,))
    numbers = run_batch(Plan(FOUR, "exact", 99, 4), Batch(cell, 0, 4))
    for r in range(4):
        stream = np.random.default_rng([3, r])
        p = FOUR.sample(THETA, 40, [stream]).predictions(0)
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
    many, few = Cell(2000, None, THETA, (4,)), Cell(40, None, THETA, (4,))
    plan = Plan(FOUR, "auto", 99, 3)
    trusted, doubted = run_batch(plan, Batch(many, 0, 3)), run_batch(plan, Batch(few, 0, 3))
    assert (trusted[0] == trusted[1]).all()
    assert (doubted[0] != doubted[1]).all()


@pytest.mark.parametrize(("n", "reps"), [(400, 1000), (10, 7), (10**6, 3)])
def test_batches_cover_every_repetition_once(n, reps):
    cell = Cell(n, None, identity_theta(9), (0,))
    pieces = batches(cell, reps)
    assert [r for b in pieces for r in range(b.start, b.stop)] == list(range(reps))
    longest = max(b.stop - b.start for b in pieces)
    assert longest == 1 or longest * n * 9 <= BATCH_CELLS


def test_workers_do_not_change_a_digit():
    cells = [Cell(n, None, THETA, (9, n)) for n in (300, 5000)]  # 5000: several batches
    plan = Plan(FOUR, "chi2", 199, 25)
    one, two = list(run_cells(plan, cells, 1)), list(run_cells(plan, cells, 2))
    for (cell, numbers), (same, others) in zip(one, two, strict=True):
        assert cell.n == same.n
        assert numbers.shape == (4, 25)
        assert (numbers == others).all()


def test_the_blas_threads_are_given_back():
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    list(run_cells(Plan(FOUR, "chi2", 199, 2), [Cell(20, None, THETA, (0,))], 1))
    assert [pool["num_threads"] for pool in threadpool_info()][: len(before)] == before


def test_nothing_to_do_starts_no_worker():
    assert list(run_cells(Plan(FOUR, "chi2", 199, 2), [], 64)) == []
