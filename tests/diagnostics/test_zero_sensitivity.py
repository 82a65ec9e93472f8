"""`zero_sensitivity`: the test at other floors, and what is said of zeros."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import direct_nll, draw, log_odds_of
from scipy.optimize import minimize
from scipy.stats import chi2

from mcllo import MCLLOCalibrator, Predictions, calibration_test, zero_sensitivity
from mcllo._diagnostics.zero_sensitivity import (
    CLIP_VALUES,
    _clip_values_to_try,
    compute_zero_sensitivity,
)
from mcllo._fit.fit import fit_predictions
from mcllo._validation.rounding import clip_for_recalibration

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def votes(seed, n=150, c=3, total=25):
    """Votes that labels follow: a label is one of the votes, so never one without."""
    rng = np.random.default_rng(seed)
    probs = np.array(
        [rng.multinomial(total, row) for row in rng.dirichlet([0.6] * c, size=n)]
    )
    return probs / total, draw(probs / total, rng)


def with_a_true_zero(seed):
    probs, y = votes(seed)
    row = int(np.argmax(probs[:, 0] == 0.0))
    y[row] = 0
    return probs, y


def test_hand_sized():
    # (1, 0) and (0, 1) with right labels, (1/2, 1/2) twice: of 8 probabilities 4 are 0, none true
    probs = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    found = zero_sensitivity(probs, [0, 1, 0, 1], method="chi2")
    assert found.floors == CLIP_VALUES == (1e-12, 1e-6, 1e-4)
    assert (found.n_probs, found.n_clipped, found.n_clipped_true, found.all_zero) == (
        8,
        2,
        0,
        True,
    )
    # identity: -log L = 2 log 2 - 2 log(1 - floor); nothing fits better but for the last term
    assert found.table["statistic"] == pytest.approx([0.0, 4e-6, 4e-4], abs=1e-6)


def test_a_true_zero_costs_twice_the_log_of_the_floor():
    # -2 log likelihood at the identity grows by 2 log(1e6) between the floors 1e-6 and 1e-12
    probs, y = with_a_true_zero(0)
    found = zero_sensitivity(probs, y, n_resamples=19, seed=0)
    null = [
        fit_predictions(Predictions.from_arrays(probs, y, clip=f)).log_likelihood_null
        for f in found.floors
    ]
    assert 2 * (null[1] - null[0]) == pytest.approx(2 * np.log(1e6), abs=0.001)
    assert found.n_clipped_true == 1


def test_statistics_are_those_of_another_solver():
    probs, y = votes(1)
    found = zero_sensitivity(probs, y, method="chi2")
    for floor, statistic, pvalue in zip(
        found.floors, found.table["statistic"], found.table["pvalue"], strict=True
    ):
        raised = np.maximum(probs, floor)
        odds = log_odds_of(raised / raised.sum(axis=1, keepdims=True))
        start = np.array([0.0, 0.0, 1.0, 1.0])
        best = minimize(direct_nll, start, args=(odds, y), method="BFGS", tol=1e-10)
        expected = 2 * (direct_nll(start, odds, y) - best.fun)
        assert statistic == pytest.approx(expected, abs=1e-5)
        assert pvalue == pytest.approx(chi2.sf(expected, 4), abs=1e-5)


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_the_default_floor_gives_the_test_itself():
    probs, y = votes(2)
    found = zero_sensitivity(probs, y, n_resamples=199, seed=5)
    test = calibration_test(probs, y, n_resamples=199, seed=5)
    assert found.tests[1].to_dict() == test.to_dict()
    same = compute_zero_sensitivity(
        Predictions.from_arrays(probs, y), n_resamples=199, seed=5
    )
    assert same.to_dict() == found.to_dict()


def test_a_chosen_floor_is_tried_too():
    probs, y = votes(3)
    found = zero_sensitivity(probs, y, clip=0.01, n_resamples=19)
    assert found.floors == (1e-12, 1e-6, 1e-4, 0.01)
    assert found.recalibration_clip == found.clip == 0.01


def test_floors_stay_below_1_over_c():
    probs = np.zeros((2, 20_000))
    probs[:, :2] = 0.5
    p = Predictions.from_arrays(probs, [0, 1], classes=range(20_000), clip=1e-5)
    assert _clip_values_to_try(p) == (1e-12, 1e-6, 1e-5)  # 1e-4 is more than 1/20,000


def test_large_tables_with_enough_information_take_chi_square():
    probs, y = votes(4, n=14_000)
    found = zero_sensitivity(probs, y)
    assert [test.method for test in found.tests] == ["chi2"] * 3
    assert zero_sensitivity(probs, y, n_resamples=9).tests[0].method == "exact"


def test_a_decision_that_hangs_on_the_floor_is_said():
    probs, y = votes(7)
    found = zero_sensitivity(probs, y, method="chi2")
    low, high = min(found.table["pvalue"]), max(found.table["pvalue"])
    assert low < high
    between = (low + high) / 2
    assert found.hangs_on_the_floor(between)
    assert not found.hangs_on_the_floor(low / 2)


def test_to_dict_is_strict_json():
    found = zero_sensitivity(*with_a_true_zero(9), n_resamples=19, seed=0)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["clip"] for row in content["rows"]] == list(CLIP_VALUES)
    assert content["lattice"] == 25
    assert content["sentences"] == found.sentences()
    assert str(found).splitlines()[:3] == found.sentences()


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(seed):
    probs, y = votes(seed, n=40)
    order = np.random.default_rng(seed).permutation(40)
    a = zero_sensitivity(probs, y, classes=range(3), method="chi2")
    b = zero_sensitivity(probs[order], y[order], classes=range(3), method="chi2")
    assert a.table["statistic"] == pytest.approx(b.table["statistic"], abs=1e-5)
    assert (a.lattice, a.decimals) == (b.lattice, b.decimals)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_obesity_forests_of_25_trees_recalibrate_better_with_half_a_vote():
    """methods.md 8d, ridge 1, T=25: mean hold-out log loss .667 at 1e-6, .541 at 1/(2T)."""
    pytest.importorskip("pandas")
    path = DATA / "obesity" / "obesity.csv"
    if not path.exists():
        pytest.skip("the obesity data are not part of this package")
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier

    frame = pd.read_csv(path)
    y = frame.pop("NObeyesdad").to_numpy()
    x = pd.get_dummies(frame.drop(columns=["Height", "Weight"])).to_numpy(float)
    for seed in range(
        3
    ):  # gains of .10 to .12 in each, far beyond the noise between splits
        rows = np.random.default_rng(seed).permutation(len(y))
        grow, fit, judge = rows[:-528], rows[-528:-132], rows[-132:]
        forest = RandomForestClassifier(25, random_state=seed).fit(x[grow], y[grow])
        classes = list(forest.classes_)
        train = Predictions.from_arrays(
            forest.predict_proba(x[fit]), y[fit], classes=classes
        )
        assert clip_for_recalibration(train).clip == 0.02
        new, codes = forest.predict_proba(x[judge]), np.searchsorted(classes, y[judge])
        loss = []
        for clip in (1e-6, 0.02):
            calibrator = MCLLOCalibrator(
                penalty=1.0, clip=clip, classes=classes, baseline="Normal_Weight"
            ).fit(forest.predict_proba(x[fit]), y[fit])
            g = calibrator.predict_proba(new)
            loss.append(-np.log(g[np.arange(len(codes)), codes]).mean())
        assert loss[1] < loss[0] - 0.05


def test_all_floors_share_the_draws():
    probs, y = votes(3)
    found = zero_sensitivity(probs, y, n_resamples=99)
    assert len({test.seed for test in found.tests}) == 1
    assert {test.method for test in found.tests} == {"exact"}


def test_dependent_rows_get_the_robust_test():
    probs, y = votes(4)
    found = zero_sensitivity(probs, y, groups=np.arange(150) // 3)
    assert {test.kind for test in found.tests} == {"robust_score"}
