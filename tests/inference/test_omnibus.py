import numpy as np
import pytest
from scipy.stats import chi2
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import Predictions, calibration_test, omnibus_test
from mcllo._inference.budget import MOST_KERNEL_ROWS
from mcllo._inference.omnibus import HosmerLemeshow, kernel_companion

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


def wave(n, seed):
    """Predictions off by a wave that has no shift and no slope (methods specification 8h)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.1, 0.9, n)
    truth = x + 0.08 * np.cos(4 * np.pi * (x - 0.5) / 0.8)
    return np.column_stack([1 - x, x]), (rng.random(n) < truth).astype(int)


def test_one_group_is_the_multinomial_chi_square_by_hand():
    # one group of 4 rows at (1/2, 1/2), labels 0 0 0 1: D = 3 - 2 = 1, V = 4 * 1/4 = 1
    p = Predictions.from_arrays([[0.5, 0.5]] * 4, [0, 0, 0, 1])
    assert HosmerLemeshow(p, 1).of_labels(p.codes[None]) == pytest.approx([1.0])


@pytest.mark.parametrize(("reference", "value"), [(0, 2.05239011), (2, 6.27578671)])
def test_toy_quadratic_form(reference, value):
    # methods specification 5.1, TOY, 4 groups
    statistic = HosmerLemeshow(TOY, 4, reference)
    assert statistic.of_labels(TOY_Y[None])[0] == pytest.approx(value, abs=1e-7)


def test_toy_groups_are_those_of_the_classical_statistic():
    # methods specification 5.1: R generalhoslem, reference 0; sum (O - E)^2 / E
    own = HosmerLemeshow(TOY, 4, 0)
    gap = own.observed(TOY_Y[None])[0] - own.expected
    assert (gap**2 / own.expected).sum() == pytest.approx(1.81411415, abs=1e-7)


def test_many_labels_at_once_equal_one_by_one():
    labels = np.random.default_rng(0).integers(0, 3, size=(7, 16))
    statistic = HosmerLemeshow(TOY, 4)
    assert statistic.of_labels(labels) == pytest.approx(
        [statistic.of_labels(row[None])[0] for row in labels]
    )


def test_it_sees_what_the_likelihood_ratio_test_cannot():
    probs, y = wave(5000, seed=0)
    assert not calibration_test(probs, y).rejects(0.05)
    assert omnibus_test(probs, y, seed=1).pvalue <= 0.001


def test_assess_says_so_in_words():
    probs, y = wave(5000, seed=0)
    text = str(mcllo.assess(probs, y, seed=1))
    assert "no miscalibration found" in text
    assert "But these reject: something is wrong that is no shift or slope" in text


@pytest.mark.slow
def test_power_against_the_wave():
    # methods specification 8h: LRT .050 (its size), Hosmer-Lemeshow 1.0 at n = 5000
    lr = np.mean([calibration_test(*wave(5000, s)).rejects(0.05) for s in range(200)])
    hl = np.mean(
        [omnibus_test(*wave(5000, s), n_resamples=99, seed=s).pvalue <= 0.05 for s in range(30)]
    )
    assert abs(lr - 0.05) < 2.6 * np.sqrt(0.05 * 0.95 / 200)
    assert hl == 1.0


def test_more_groups_than_rows():
    assert HosmerLemeshow(TOY, 100).n_groups == 16


def test_the_kernel_companion_is_for_few_rows():
    assert set(kernel_companion(TOY, 19, 0)) == {"kernel"}
    probs, y = wave(MOST_KERNEL_ROWS + 1, seed=0)
    assert kernel_companion(Predictions.from_arrays(probs, y), 19, 0) == {}


def test_very_many_rows_use_chi_square(monkeypatch):
    probs, y = wave(3000, seed=0)
    monkeypatch.setattr("mcllo._assessment.assessment.MOST_NULLS_ENTRIES", 10)
    a = mcllo.assess(probs, y, seed=1)
    test = a.companions["hosmer_lemeshow"]
    assert a.nulls == {}
    assert (test.n_resamples, test.expected) == (0, 10.0)
    assert test.pvalue == pytest.approx(chi2.sf(test.statistic, 10))
    assert test.statistic == pytest.approx(omnibus_test(probs, y, seed=1).statistic)
