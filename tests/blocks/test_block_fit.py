import numpy as np
import pytest
from block_data import blocks_of, rows, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._blocks.fit import fit_blocks
from mcllo._fit.fit import fit_predictions
from mcllo.exceptions import ConvergenceWarning, InputError, SeparationWarning


def same_fit(found, expected, tol=1e-10):
    """Estimates in standard errors, the covariance and the statistic, to 1e-10."""
    se = np.sqrt(np.diagonal(expected.cov_theta))
    away = np.abs(found.theta - expected.theta) / np.where(np.isnan(se), 1.0, se)
    assert away.max() <= tol
    np.testing.assert_allclose(found.cov_theta, expected.cov_theta, rtol=tol, atol=tol * 1e-3)
    assert found.statistic == pytest.approx(expected.statistic, rel=tol, abs=1e-9)
    names = ("classes", "baseline", "n_samples", "df", "converged", "separated", "penalty")
    for name in (*names, "separated_classes", "n_iter"):
        assert getattr(found, name) == getattr(expected, name), name


def test_toy_reference_values():
    # methods.md 4, TOY: the likelihood ratio statistic of fit_predictions has its own references
    expected = fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y))
    same_fit(fit_blocks(blocks_of((TOY_X, TOY_Y))), expected)


@given(st.lists(st.integers(0, 900), max_size=6), st.booleans(), st.integers(0, 3))
@settings(deadline=None, max_examples=20)
def test_any_partition_gives_the_same_fit(at, weighted, baseline):
    parts = rows(n=900, c=4, weighted=weighted)
    p = whole(n=900, c=4, weighted=weighted, baseline=baseline)
    blocks = blocks_of(parts, at, baseline=baseline, classes=range(4))
    same_fit(fit_blocks(blocks), fit_predictions(p))


def test_many_rows_where_the_fit_in_memory_takes_float32_steps():
    parts = rows(n=30_000)[:2]
    expected = fit_predictions(whole(n=30_000))
    found = fit_blocks(blocks_of(parts))
    other = fit_blocks(blocks_of(parts, (7, 11_000)))
    same_fit(other, found)
    # that Hessian is the last step's, which float32 led to: good to 3e-7 (`_newton.SETTLED`)
    np.testing.assert_allclose(found.cov_theta, expected.cov_theta, rtol=1e-5, atol=1e-12)
    assert np.abs(found.theta - expected.theta).max() < 1e-11
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-11)


@pytest.mark.parametrize("penalty", [0.5, "auto"])
def test_penalties(penalty):
    parts = rows(n=400, c=3)
    found = fit_blocks(blocks_of(parts, (150,)), penalty=penalty)
    expected = fit_predictions(whole(n=400, c=3), penalty=penalty)
    same_fit(found, expected, 1e-10 if penalty == 0.5 else 1e-6)
    assert found.penalty_rule == expected.penalty_rule


def test_constant_log_odds_fix_gamma():
    probs = np.array([[0.2, 0.3, 0.5], [0.4, 0.1, 0.5], [0.2, 0.3, 0.5], [0.1, 0.4, 0.5]] * 20)
    probs[:, 2], probs[:, 0] = probs[:, 1], 1.0 - 2.0 * probs[:, 1]  # class 1 ties the baseline
    y = np.arange(80) * 7 % 3
    p = Predictions.from_arrays(probs, y)
    found = fit_blocks(blocks_of((probs, y), (30,)))
    same_fit(found, fit_predictions(p))
    assert found.df == 3
    assert found.gamma[1] == 1.0


def test_zeros_are_said_once():
    probs, y, _ = rows(n=200, zeros=True)
    with pytest.warns(match="were raised to 1e-06") as caught:
        found = fit_blocks(blocks_of((probs, y), (50, 100)))
    assert len(caught) == 1
    with pytest.warns(match="were raised") as expected:
        p = Predictions.from_arrays(probs, y)
    assert str(caught[0].message) == str(expected[0].message)
    same_fit(found, fit_predictions(p))


def test_an_absent_class_is_separation():
    probs, y, _ = rows(n=200, c=3)
    keep = y != 1
    with pytest.warns(SeparationWarning, match="no row has class 1"):
        found = fit_blocks(blocks_of((probs[keep], y[keep]), (50,), classes=range(3)))
    assert (found.separated, found.separated_classes) == (True, (1,))
    assert np.isnan(found.cov_theta).all()


def separated_rows():
    probs, _, _ = rows(n=200, c=3)
    return probs, probs.argmax(axis=1)


def test_separated_labels_are_found_in_memory():
    probs, y = separated_rows()
    with pytest.warns(SeparationWarning, match="the log odds separate the labels"):
        found = fit_blocks(blocks_of((probs, y), (50,)))
    with pytest.warns(SeparationWarning):
        expected = fit_predictions(Predictions.from_arrays(probs, y))
    assert found.separated_classes == expected.separated_classes
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6)


def test_too_many_rows_to_look_for_separation_say_so():
    probs, y = separated_rows()
    with pytest.warns(ConvergenceWarning, match="was not decided: the linear program is too large"):
        found = fit_blocks(blocks_of((probs, y), (50,)), most_gathered=10)
    assert (found.converged, found.separated) == (False, False)
    assert np.isnan(found.cov_theta).all()


def test_the_first_pass_is_the_first_evaluation():
    blocks = blocks_of(rows())
    fit = fit_blocks(blocks)
    assert blocks.n_passes == fit.n_iter


def test_bad_penalties_are_refused():
    blocks = blocks_of((TOY_X, TOY_Y))
    with pytest.raises(InputError, match="penalty must be finite and not negative"):
        fit_blocks(blocks, penalty=-1.0)
    with pytest.raises(InputError, match="'firth' needs all rows in memory"):
        fit_blocks(blocks, penalty="firth")
