"""Class frequencies of rows to come: keep, known, estimated; against slow and exact references."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize as minimize_by_scipy

from mcllo.calibrators import (
    AutoCalibrator,
    MCLLOCalibrator,
    TemperatureScaling,
    load_calibrator,
)
from mcllo.calibrators._prior import estimated_shares, raked, shift_test, shifted
from mcllo.exceptions import AbsentClassWarning, InputError, LabelShiftWarning

ALL = [MCLLOCalibrator, AutoCalibrator, TemperatureScaling]
SHARES = np.array([0.4, 0.35, 0.25])
MEANS = 1.5 * np.eye(3)


def labelled(n, shares, seed, slope=1.6):
    """Return predictions of a model that knows SHARES, too bold by `slope`, labels, and the truth.

    Rows of a class look alike whatever the frequencies: features are N(mean of the class, 1).
    """
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=shares)
    z = (MEANS[y] + rng.normal(size=(n, 3))) @ MEANS.T - 0.5 * (MEANS**2).sum(axis=1)

    def posterior(scores, prior):
        p = np.exp(scores) * prior
        return p / p.sum(axis=1, keepdims=True)

    return posterior(slope * z, SHARES), y, posterior(z, shares)


def loss(p, y):
    return -np.log(p[np.arange(len(y)), y]).mean()


def test_raking_against_iterative_proportional_fitting():
    rng = np.random.default_rng(0)
    q, weight = rng.dirichlet([0.5, 1.0, 2.0, 0.3], size=80), rng.exponential(size=80)
    target = np.array([0.1, 0.5, 0.2, 0.2])
    factor = np.ones(4)
    for _ in range(5000):
        p = q * factor
        p /= p.sum(axis=1, keepdims=True)
        factor *= target / np.average(p, axis=0, weights=weight)
    expected = np.log(factor) - np.log(factor).mean()
    np.testing.assert_allclose(raked(q, target, weight), expected, atol=1e-6)
    found = shifted(q, raked(q, target, weight))
    np.testing.assert_allclose(np.average(found, axis=0, weights=weight), target, atol=1e-8)


def test_hand_sized_shift():
    # Odds 4 : 1 under shares 1 : 1; under shares 1 : 4 they are 1 : 1.
    found = shifted(np.array([[0.8, 0.2]]), np.log([0.2, 0.8]) - np.log([0.5, 0.5]))
    np.testing.assert_allclose(found, [[0.5, 0.5]], atol=1e-15)


def test_estimated_shares_against_scipy():
    q, _, _ = labelled(400, [0.1, 0.2, 0.7], 1, slope=1.0)
    found = estimated_shares(q, SHARES)

    def negative(z):  # 20 = 0.05 n rows of the reference's shares are added
        pi = np.exp(np.append(z, 0.0))
        pi /= pi.sum()
        return -np.log(q @ (pi / SHARES)).sum() - 20.0 * SHARES @ np.log(pi)

    end = minimize_by_scipy(negative, np.zeros(2), tol=1e-12)
    pi = np.exp(np.append(end.x, 0.0))
    np.testing.assert_allclose(found.shares, pi / pi.sum(), atol=1e-5)
    # standard errors: of the first two shares, from a numeric Hessian in (pi_1, pi_2)

    def plain(v):
        return -np.log(q @ (np.append(v, 1.0 - v.sum()) / SHARES)).sum()

    at, h = found.shares[:2], 1e-4
    steps = h * np.eye(2)
    numeric = [
        [
            (plain(at + a + b) - plain(at + a - b) - plain(at - a + b) + plain(at - a - b))
            / 4
            / h**2
            for a in steps
        ]
        for b in steps
    ]
    expected = np.sqrt(np.diagonal(np.linalg.inv(numeric)))
    np.testing.assert_allclose(found.se[:2], expected, rtol=1e-3)


@pytest.mark.slow
def test_standard_errors_of_estimated_shares():
    # 300 data sets of 300 rows: the truth lies within 1.96 standard errors in 95 % (se 1.3 %).
    # It is near the reference, to which 0.05 rows for each row pull.
    truth = np.array([0.38, 0.35, 0.27])
    inside = []
    for seed in range(300):
        q, _, _ = labelled(300, truth, seed, slope=1.0)
        found = estimated_shares(q, SHARES)
        inside.append(np.abs(found.shares - truth) < 1.96 * found.se)
    assert np.abs(np.mean(inside, axis=0) - 0.95).max() < 0.04


@pytest.mark.parametrize("kind", ALL)
def test_keep_keeps_the_shares(kind):
    x, y, _ = labelled(600, [0.7, 0.2, 0.1], 2)
    kept = kind(prior="keep").fit(x, y).predict_proba(x)
    np.testing.assert_allclose(kept.mean(axis=0), x.mean(axis=0), atol=1e-7)


@pytest.mark.parametrize("kind", ALL)
def test_label_shift(kind):
    # Learned from rows of frequencies (0.7, 0.2, 0.1); to come are rows of the model's own, and of
    # (0.1, 0.2, 0.7). Losses above that of the truth, fixed seed.
    learn = labelled(2000, [0.7, 0.2, 0.1], 3)[:2]
    new, y, truth = labelled(6000, [0.1, 0.2, 0.7], 4)
    best = loss(truth, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelShiftWarning)
        fit = loss(kind().fit(*learn).predict_proba(new), y) - best
    known = loss(kind(prior=[0.1, 0.2, 0.7]).fit(*learn).predict_proba(new), y) - best
    adapted = kind(prior="unlabelled").fit(*learn).adapt(new)
    found = adapted.new_shares_
    unlabelled = loss(adapted.predict_proba(new), y) - best
    assert known < 0.005 < fit
    assert unlabelled < 0.01
    assert (np.abs(found.shares - [0.1, 0.2, 0.7]) < 4.0 * found.se + 0.04).all()
    same, y, truth = labelled(6000, SHARES, 5)
    keep = loss(kind(prior="keep").fit(*learn).predict_proba(same), y)
    assert keep < loss(same, y)


@pytest.mark.parametrize("kind", ALL)
def test_unlabelled_without_adapt_takes_the_rows_of_the_call(kind):
    learn = labelled(500, SHARES, 6)[:2]
    new = labelled(300, [0.1, 0.2, 0.7], 7)[0]
    calibrator = kind(prior="unlabelled").fit(*learn)
    here = calibrator.predict_proba(new)
    np.testing.assert_array_equal(calibrator.adapt(new).predict_proba(new), here)
    with pytest.raises(InputError, match="adapt"):
        kind(prior="unlabelled").fit(*learn).for_stream()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("prior", ["keep", [0.2, 0.2, 0.6], "unlabelled"])
def test_saved_and_restored(kind, prior, tmp_path):
    x, y, _ = labelled(300, [0.6, 0.2, 0.2], 8)
    calibrator = kind(prior=prior).fit(x, y)
    if prior == "unlabelled":
        calibrator.adapt(x[:100])
    calibrator.save(tmp_path / "model.json")
    again = load_calibrator(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(x[:7]), calibrator.predict_proba(x[:7]))
    assert again.shift_test(x[:50]).pvalue == calibrator.shift_test(x[:50]).pvalue


@pytest.mark.parametrize("kind", ALL)
def test_removed_classes_keep_their_mass(kind):
    x, y, _ = labelled(900, SHARES, 9)
    seen = y != 1
    with pytest.warns(AbsentClassWarning) if kind is not MCLLOCalibrator else pytest.warns():
        calibrator = kind(prior="keep").fit(x[seen], y[seen])
    assert calibrator.learned_.kept == (1,)
    found = calibrator.predict_proba(x[seen])
    np.testing.assert_allclose(found.mean(axis=0), x[seen].mean(axis=0), atol=1e-7)
    assert loss(calibrator.predict_proba(x), y) < loss(x, y)


def test_auto_keeps_removed_classes_by_default_and_zero_is_asked_for():
    x, y, _ = labelled(900, SHARES, 9)
    seen = y != 1
    with pytest.warns(AbsentClassWarning):
        auto = AutoCalibrator().fit(x[seen], y[seen])
    with pytest.warns(AbsentClassWarning):
        none = AutoCalibrator(prior=[0.6, 0.0, 0.4]).fit(x[seen], y[seen])
    np.testing.assert_array_equal(auto.predict_proba(x[seen])[:, 1], x[seen][:, 1])
    assert (none.predict_proba(x)[:, 1] == 0.0).all()


def test_the_warning_and_where_it_is_off():
    learn, new = labelled(2000, SHARES, 10)[:2], labelled(500, [0.1, 0.2, 0.7], 11)[0]
    auto = AutoCalibrator().fit(*learn)
    with pytest.warns(LabelShiftWarning, match="prior='keep'"):
        auto.predict_proba(new)
    auto.predict_proba(new[:9])  # too few rows to tell
    auto.for_stream().predict_proba(new)
    TemperatureScaling().fit(*learn).predict_proba(new)
    AutoCalibrator(prior="keep").fit(*learn).predict_proba(new)
    assert auto.shift_test(new).pvalue < 1e-6


@pytest.mark.parametrize(("n_learned", "n_new"), [(300, 20_000), (20_000, 300)])
def test_it_warns_where_the_test_says(n_learned, n_new):
    # Rows that are no shift at first sight are not tested further: none of them has p < 1e-5.
    calibrator = MCLLOCalibrator().fit(*labelled(n_learned, SHARES, 20)[:2])
    said, tested = [], []
    for moved in np.linspace(0.0, 0.3, 61):
        new = labelled(n_new, SHARES + moved * np.array([-1.0, 0.0, 1.0]), 21)[0]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            calibrator.predict_proba(new)
        said.append(any(issubclass(w.category, LabelShiftWarning) for w in caught))
        tested.append(calibrator.shift_test(new).pvalue)
    assert said == [p < 1e-5 for p in tested]
    assert 10 < sum(said) < 55
    if n_new > n_learned:  # where the rows learned from are all that is uncertain
        assert any(2e-6 < p < 1e-5 for p in tested), "none so near that a laxer look would miss it"


@pytest.mark.slow
def test_size_of_the_shift_test():
    # The same kind of rows comes: at level 0.05 it rejects in at most 5 % (se 1 % of 500 pairs).
    found = []
    for seed in range(500):
        x, y, _ = labelled(200, SHARES, seed)
        calibrator = TemperatureScaling().fit(x, y)
        found.append(calibrator.shift_test(labelled(150, SHARES, 10_000 + seed)[0]).pvalue)
    assert np.mean(np.array(found) < 0.05) < 0.07


def test_grouped_rows_are_not_tested():
    from mcllo import Predictions

    x, y, _ = labelled(400, SHARES, 12)
    rows = Predictions.from_arrays(x, y, groups=np.arange(400) // 4)
    auto = AutoCalibrator().fit(rows)
    assert np.isnan(shift_test(auto.learned_, x[:, ::-1]).pvalue)


def test_classes_may_be_permuted_and_rows_doubled():
    x, y, _ = labelled(300, [0.6, 0.3, 0.1], 13)
    order = np.array([2, 0, 1])
    one = AutoCalibrator(prior=[0.2, 0.3, 0.5]).fit(x, y).predict_proba(x)
    place = np.argsort(order)
    other = AutoCalibrator(prior=np.array([0.2, 0.3, 0.5])[order]).fit(x[:, order], place[y])
    np.testing.assert_allclose(other.predict_proba(x[:, order]), one[:, order], atol=1e-6)
    twice = TemperatureScaling(prior="keep").fit(np.vstack([x, x]), np.r_[y, y])
    weighed = TemperatureScaling(prior="keep").fit(x, y, sample_weight=np.full(300, 2.0))
    np.testing.assert_allclose(twice.predict_proba(x), weighed.predict_proba(x), atol=1e-9)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("kept", "be one of 'fit'"),
        ([0.5, 0.6, 0.1], "sum to 1"),
        ([0.5, 0.5], "each of the 3 classes"),
        ([0.5, 0.7, -0.2], "not negative"),
        (None, "frequency"),
    ],
)
def test_bad_priors_get_one_sentence(prior, words):
    x, y, _ = labelled(50, SHARES, 14)
    with pytest.raises(InputError, match=words):
        TemperatureScaling(prior=prior).fit(x, y)
