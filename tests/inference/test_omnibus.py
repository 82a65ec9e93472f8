import numpy as np
import pytest
from independent import sample
from scipy.stats import chi2
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import Predictions, calibration_test, omnibus_test
from mcllo._inference.budget import MAX_KERNEL_ROWS
from mcllo._inference.monte_carlo import critical_value
from mcllo._inference.omnibus import (
    MAX_MERGED_GROUPS,
    HosmerLemeshow,
    OmnibusTest,
    _quadratic_form_by_columns,
    kernel_omnibus_test,
    pooled_quadratic_form,
)
from mcllo._model.many_classes import MIN_CLASSES_FOR_PCG

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


def test_toy_quadratic_form():
    # methods specification 5.1, TOY, 4 groups
    for reference, value in ((0, 2.05239011), (2, 6.27578671)):
        statistic = HosmerLemeshow(TOY.with_baseline(reference), 4)
        assert statistic.of_labels(TOY_Y[None])[0] == pytest.approx(value, abs=1e-7)


def test_toy_groups_are_those_of_the_classical_statistic():
    # methods specification 5.1: R generalhoslem, reference 0; sum (O - E)^2 / E
    own = HosmerLemeshow(TOY.with_baseline(0), 4)
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
    assert omnibus_test(probs, y, n_resamples=999, seed=1).pvalue <= 0.001
    (other,) = (
        s for s in mcllo.assess(probs, y, seed=1).statements() if s.kind == "other"
    )
    assert "what is wrong is no shift or slope" in other.text


@pytest.mark.slow
def test_power_against_the_wave():
    # methods specification 8h: LRT .050 (its size), Hosmer-Lemeshow 1.0 at n = 5000
    lr = np.mean([calibration_test(*wave(5000, s)).rejects(0.05) for s in range(200)])
    hl = np.mean(
        [
            omnibus_test(*wave(5000, s), n_resamples=99, seed=s).pvalue <= 0.05
            for s in range(30)
        ]
    )
    assert abs(lr - 0.05) < 2.6 * np.sqrt(0.05 * 0.95 / 200)
    assert hl == 1.0


def test_more_groups_than_rows():
    assert HosmerLemeshow(TOY, 100).n_groups == 16


def test_the_kernel_omnibus_test_is_for_few_rows():
    assert set(kernel_omnibus_test(TOY, 19, 0)) == {"kernel"}
    probs, y = wave(MAX_KERNEL_ROWS + 1, seed=0)
    assert kernel_omnibus_test(Predictions.from_arrays(probs, y), 19, 0) == {}


def test_very_many_rows_use_chi_square(monkeypatch):
    probs, y = wave(3000, seed=0)
    monkeypatch.setattr("mcllo._assessment.assessment.MAX_NULLS_ENTRIES", 10)
    a = mcllo.assess(probs, y, seed=1)
    test = a.omnibus_tests["hosmer_lemeshow"]
    assert a.null_distributions == {}
    assert (test.n_resamples, test.expected, test.df) == (0, 10.0, 10)
    assert test.pvalue == pytest.approx(chi2.sf(test.statistic, 10))
    assert test.statistic == pytest.approx(
        omnibus_test(probs, y, n_resamples=9).statistic
    )


# ---- very many rows: chi-square of what varies enough -------------------------------------------


def test_counts_that_vary_enough_give_the_quadratic_form_itself():
    p = Predictions.from_arrays(*sample(20_000, 4, seed=0))
    test = OmnibusTest.large_sample(p)
    assert (test.df, test.expected, test.method) == (30, 30.0, "chi2")
    assert test.statistic == pytest.approx(
        HosmerLemeshow(p).of_labels(p.codes[None])[0]
    )
    assert test.pvalue == pytest.approx(chi2.sf(test.statistic, 30))
    assert test.high == pytest.approx(chi2.isf(0.05, 30))
    assert str(test).endswith("(chi-square on 30 df)")


def multinomial(n, shares):
    """Return the covariance of the counts of n rows with these probabilities."""
    shares = np.array(shares)
    return n * (np.diag(shares) - np.outer(shares, shares))


def test_rare_classes_are_pooled_by_hand():
    # variances of 1000 rows at (.96, .015, .015, .01): 38.4, 14.8, 14.8, 9.9. The second and third
    # together have 1000 * .03 * .97 = 29.1, the fourth is left out: counts of {0} and {1, 2}
    spread = multinomial(1000, [0.96, 0.015, 0.015, 0.01])
    away = np.array([-12.0, 9.0, 1.0, 2.0])
    both = np.array([[38.4, -28.8], [-28.8, 29.1]])
    d = np.array([-12.0, 10.0])
    small, large = np.linalg.eigvalsh(both)
    assert small < 20.0 < large  # one direction is left
    (u,) = np.linalg.eigh(both)[1][:, 1:].T
    value, df = pooled_quadratic_form(away[None], spread[None])
    assert df == 1
    assert value == pytest.approx((u @ d) ** 2 / large)


def test_groups_that_expect_nothing_join_their_neighbours():
    # 2 classes: one count of variance v varies by 2 v along (1, -1) / sqrt 2, where away is (d, -d)
    shares = [
        1e-6,
        0.5,
        1e-6,
        1e-6,
    ]  # the last ones go to the last group that was found
    spread = np.array([multinomial(1000, [q, 1 - q]) for q in shares])
    away = np.array([[1.0, -1.0], [20.0, -20.0], [0.0, 0.0], [2.0, -2.0]])
    value, df = pooled_quadratic_form(away, spread)
    assert df == 1
    assert value == pytest.approx(23.0**2 / spread[:, 0, 0].sum())


@pytest.mark.parametrize(
    "n", [60, 150, 400, 8000]
)  # groups that wait, merge, and stand alone
@pytest.mark.parametrize("sharp", [1.0, 6.0])
def test_many_classes_are_pooled_from_the_rows_as_from_covariances(n, sharp):
    rng = np.random.default_rng(n)
    c = MIN_CLASSES_FOR_PCG + 1
    scores = sharp * rng.normal(size=(n, c)) - 2.0 * np.log1p(np.arange(c))
    probs = np.exp(scores - scores.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    y = (probs.cumsum(axis=1) > rng.random((n, 1)) * 0.999999).argmax(axis=1)
    p = Predictions.from_arrays(probs, y, classes=range(c), baseline=0)
    groups = HosmerLemeshow(p)
    excess = groups.observed(p.codes[None])[0] - groups.expected
    direct = pooled_quadratic_form(excess, groups.spread)
    found = _quadratic_form_by_columns(p.probs, groups.group, excess)
    if found is None:  # more than so many groups had to wait: the covariances say it
        per_group = np.einsum("kjj->k", groups.spread)
        assert per_group.sum() / 10 * MAX_MERGED_GROUPS < 10 * 20.0
    else:
        assert found[1] == direct[1] > 0
        assert found[0] == pytest.approx(direct[0], rel=1e-9)
    test = OmnibusTest.large_sample(p)
    if direct[1] == 0:
        assert test.method == "none"
    else:
        assert (test.statistic, test.df) == (
            pytest.approx(direct[0], rel=1e-9),
            direct[1],
        )


def test_what_cannot_be_said_is_left_out_with_the_reason():
    p = Predictions.from_arrays([[1 - 2e-6, 1e-6, 1e-6]] * 50, [0] * 50)
    test = OmnibusTest.large_sample(p)
    assert (test.method, test.df) == ("none", None)
    assert np.isnan(test.pvalue)
    assert "its groups expect too little for chi-square" in str(test)
    assert test.to_dict()["statistic"] is None
    assert test.null_text == "-"


def test_the_last_bits_of_a_group_do_not_decide():
    p = Predictions.from_arrays(*sample(3000, 3, seed=2, sharpness=4.0))
    groups = HosmerLemeshow(p)
    excess = groups.observed(p.codes[None])[0] - groups.expected
    same = pooled_quadratic_form(excess, groups.spread * (1.0 + 1e-14))
    assert same == pytest.approx(
        pooled_quadratic_form(excess, groups.spread), rel=1e-10
    )


# ---- the range that goes with the p-value -------------------------------------------------------


def test_the_range_agrees_with_the_p_value():
    for n_draws in (19, 99, 199, 999):
        drawn = (
            np.random.default_rng(n_draws).integers(0, 40, n_draws).astype(float)
        )  # with ties
        high = critical_value(drawn, 0.95)
        for observed in np.arange(-0.5, 41.0, 0.5):
            pvalue = (1 + (drawn >= observed).sum()) / (n_draws + 1)
            assert (observed > high) == (pvalue <= 0.05), n_draws


@pytest.mark.parametrize("kind", ["hosmer_lemeshow", "kernel"])
def test_statistic_range_and_p_never_contradict_each_other(kind):
    seen = set()
    for seed in range(30):
        x, y = sample(40, 3, seed=seed, sharpness=2.0)
        sharper = x**1.6 / (x**1.6).sum(axis=1, keepdims=True)
        test = omnibus_test(sharper, y, kind=kind, n_resamples=99, seed=seed)
        rejected = test.pvalue <= 0.05
        assert (test.statistic > test.high) == rejected
        assert (
            float(test.statistic_text) > float(test.null_text.split()[-1])
        ) == rejected
        assert str(test).endswith("(simulated)")
        seen.add(rejected)
    assert seen == {False, True}


def test_so_few_draws_have_no_range():
    test = omnibus_test(TOY_X, TOY_Y, n_resamples=9, seed=0)
    assert test.high == np.inf
    assert test.null_text == "-"
    assert test.to_dict()["high"] is None


def test_equal_looking_numbers_get_more_digits():
    test = OmnibusTest(
        171.04,
        None,
        0.049,
        "exact",
        kind="hosmer_lemeshow",
        expected=90.0,
        low=0.0,
        high=171.01,
    )
    assert str(test) == (
        "Hosmer-Lemeshow 171.04 (calibrated: 95 % below 171.01), p = 0.049 (simulated)"
    )


@pytest.mark.parametrize("concentration", [1.0, 0.05])
def test_groups_of_fewer_rows_than_classes_have_the_same_form(concentration):
    """The covariance of counts is inverted as a matrix, in units of its diagonal."""
    rng = np.random.default_rng(5)
    n, c = 17, 210  # groups of one row and of two
    probs = np.maximum(rng.dirichlet(np.full(c, concentration), n), 1e-9)
    probs /= probs.sum(axis=1, keepdims=True)
    form = HosmerLemeshow(Predictions.from_arrays(probs, np.zeros(n), classes=range(c)))
    assert form._few_rows is not None
    labels = rng.integers(0, c, (5, n))
    expected = np.zeros(5)
    for k, excess in enumerate(np.moveaxis(form.observed(labels), 1, 0)):
        away = (excess - form.expected[k])[:, :-1]
        covariance = form.spread[k][:-1, :-1]
        unit = np.sqrt(np.diagonal(covariance))
        inverse = np.linalg.pinv(covariance / unit / unit[:, None], 1e-14, True)
        expected += np.einsum("bi,ij,bj->b", away / unit, inverse, away / unit)
    np.testing.assert_allclose(form.of_labels(labels), expected, rtol=1e-7)
