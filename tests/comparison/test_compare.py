import data
import numpy as np
import pytest
from scipy.stats import chi2

import mcllo
from mcllo import Predictions, compare
from mcllo._comparison.compare import chi_square_mixture_tail
from mcllo._comparison.methods import assign_random_folds


def sharpened(n, seed, c=3, power=2.0):
    """Labels from honest rows, predictions overconfident."""
    probs, y = data.drawn(n, range(c), seed, power=power)
    return probs, np.array(y)


TRAIN, HOLDOUT = sharpened(800, 0), sharpened(400, 1)


def recalibrated(calibrator, held):
    """Return what a map of the rows that are not held out makes of those that are."""
    return calibrator.fit(TRAIN[0][~held], TRAIN[1][~held]).predict_proba(
        TRAIN[0][held]
    )


def test_cross_validation_judges_every_row_once():
    c = compare(TRAIN, cv=4, methods=["mcllo"], seed=0)
    assert c.cross_validated
    assert [row.method for row in c.rows] == ["uncalibrated", "mcllo"]
    assert c["mcllo"].n == 800
    assert c["mcllo"].pvalue_corrected is None
    held = assign_random_folds(800, 4, 0) == 2
    expected = recalibrated(mcllo.MCLLOCalibrator(), held)
    np.testing.assert_allclose(c.recalibrated["mcllo"].probs[held], expected)


def test_folds_are_balanced_and_repeatable():
    folds = assign_random_folds(62, 5, seed=3)
    assert sorted(np.bincount(folds)) == [12, 12, 12, 13, 13]
    assert (assign_random_folds(62, 5, seed=3) == folds).all()
    assert not (assign_random_folds(62, 5, seed=4) == folds).all()


def test_rows_of_a_group_are_left_out_together():
    groups = np.random.default_rng(0).integers(0, 11, size=200)
    folds = assign_random_folds(200, 5, 0, groups)
    assert all(len(set(folds[groups == g])) == 1 for g in range(11))
    assert set(folds) == {0, 1, 2, 3, 4}
    p = Predictions.from_arrays(*TRAIN, groups=np.arange(800) // 8)
    c = compare(p, cv=4, methods=["temperature"], seed=0)
    held = assign_random_folds(800, 4, 0, p.groups) == 1
    expected = recalibrated(mcllo.calibrators.TemperatureScaling(), held)
    np.testing.assert_allclose(c.recalibrated["temperature"].probs[held], expected)


@pytest.mark.parametrize("fitted", [1, 3])
def test_mixture_tail_against_simulation(fitted):
    rng = np.random.default_rng(0)
    draws = 1.25 * rng.chisquare(fitted, 200_000) + rng.chisquare(4 - fitted, 200_000)
    for value in (2.0, 6.0, 12.0):
        share = np.mean(draws > value)
        assert chi_square_mixture_tail(value, 4, fitted, 1.25) == pytest.approx(
            share, abs=0.004
        )


def test_mixture_tail_limits():
    assert chi_square_mixture_tail(5.0, 6, 6, 1.5) == pytest.approx(
        chi2.sf(5.0 / 1.5, 6)
    )
    assert chi_square_mixture_tail(5.0, 6, 0, 1.5) == pytest.approx(chi2.sf(5.0, 6))
    assert chi_square_mixture_tail(5.0, 6, 2, 1.0) == pytest.approx(
        chi2.sf(5.0, 6), abs=1e-3
    )


def judged(n_train, **options):
    """Return a comparison of MCLLO fitted to some rows and judged on 120 others."""
    train, holdout = sharpened(n_train, 5), sharpened(120, 6)
    return compare(
        train, holdout, methods=["mcllo"], n_resamples=99, seed=0, **options
    )["mcllo"]


def test_with_few_training_errors_labels_of_both_samples_are_drawn():
    # about 0.35 errors a row and 4 parameters: 30 rows hold 2.6 errors each, 800 hold 70
    few, many = judged(30), judged(800)
    assert few.corrected_method == "bootstrap"
    assert "expected errors per parameter" in few.corrected_reason
    assert few.pvalue_corrected >= 0.01
    assert many.corrected_method == many.pvalue_method
    assert (many.corrected_reason, many.correction) == ("", None)


def test_a_corrected_p_that_cannot_be_drawn_is_withheld_and_says_why():
    row = judged(30, fitted_on=30.0)
    assert (row.pvalue_corrected, row.corrected_method) == (None, "")
    assert row.correction.level == "doubt"
    assert "the rows the map was fitted on are not at hand" in row.correction.text
    train = Predictions.from_arrays(
        *sharpened(30, 5), sample_weight=np.full(30, 1.5), weight_kind="importance"
    )
    row = compare(train, sharpened(120, 6), methods=["mcllo"], n_resamples=99, seed=0)[
        "mcllo"
    ]
    assert "rows are grouped, or weighted by no counts" in row.correction.text
    assert row.to_dict()["corrected_reason"] == row.corrected_reason


def test_a_narrow_terminal_leaves_columns_out_in_order_and_names_them():
    c = compare(TRAIN, HOLDOUT, methods=["mcllo"], n_resamples=19, seed=0)
    whole, narrow, half = c.to_text(), c.to_text(80), c.to_text(110)
    assert str(c) == whole  # no terminal: standard output is captured
    assert max(len(line) for line in narrow.splitlines()) <= 80
    assert max(len(line) for line in half.splitlines()) <= 110
    assert "Left out" not in whole
    # The first that go are the time to fit and class-wise ECE; what is left out is named.
    assert "Left out for the width: fit s, cw ECE" in half
    head = next(line for line in narrow.splitlines() if line.startswith("method"))
    assert head.split() == [
        "method",
        "p",
        "p",
        "corr.",
        "log",
        "loss",
        "worse",
        "than",
        "best",
        "by",
    ]
    assert {"ece", "brier", "fit_seconds"} <= set(c.to_dict()["rows"][0])


def test_print_takes_the_width_of_a_terminal(monkeypatch):
    c = compare(TRAIN, HOLDOUT, methods=["mcllo"], n_resamples=19, seed=0)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert str(c) == c.to_text(80)
