import copy
from functools import reduce
from itertools import product
from operator import add

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import (
    assert_same_terms,
    central_differences,
    designs,
    direct_nll,
    draw,
    log_odds_of,
    maps,
    power_formula,
    simplex,
)
from scipy.special import logsumexp
from toy import TOY_X, TOY_Y

from mcllo._model.kernel import Derivatives, LogPartition, probabilities_and_log_sums
from mcllo._model.likelihood import (
    NegativeLogLikelihood,
    identity_theta,
    log_odds_from_log_probs,
    log_odds_from_rows,
    recalibrate_from_log_odds,
    recalibrate_rows,
    sufficient_statistic,
)
from mcllo._utils.parallel import ordered_map

pytestmark = pytest.mark.usefixtures("both_kernels")
quick = settings(deadline=None, max_examples=25)
THETA = np.array([0.2, -0.3, 0.8, 1.5])
TOY_L = log_odds_of(TOY_X)


def likelihood(log_odds, codes, weight=None):
    statistic = sufficient_statistic(log_odds, codes, weight)
    return NegativeLogLikelihood(LogPartition(log_odds, weight), statistic)


def test_a_copy_works_on_its_own_rows():
    rng, theta = np.random.default_rng(3), np.array([0.1, -0.2, 1.1, 0.9])
    partition = LogPartition(rng.normal(size=(2, 30)), rng.uniform(size=30))
    copied, expected = copy.deepcopy(partition), partition(theta)
    partition.log_odds[:] = np.nan
    assert_same_terms(copied(theta), expected, rtol=0.0, atol=0.0)


def test_maps_by_hand():
    # eta = (log 2, log 5) against 0: total 1 + 2 + 5 = 8
    theta, odds = (
        np.array([np.log(2.0), 0.0, 0.0, 1.0]),
        np.array([[9.0], [np.log(5.0)]]),
    )
    g, log_total = probabilities_and_log_sums(theta, odds)
    np.testing.assert_allclose(g[:, 0], [2.0 / 8.0, 5.0 / 8.0, 1.0 / 8.0], rtol=1e-14)
    np.testing.assert_allclose(log_total, np.log(8.0), rtol=1e-14)


def test_maps_of_several_thetas_are_those_of_each():
    rng = np.random.default_rng(5)
    theta = rng.normal(size=(6, 3))
    for tables in (1, 3):  # one that all share, or each its own
        odds = rng.normal(size=(3, tables, 7))
        g, log_total = probabilities_and_log_sums(theta, odds)
        assert g.shape == (4, 3, 7)
        for b in range(3):
            own, total = probabilities_and_log_sums(theta[:, b], odds[:, b % tables])
            np.testing.assert_allclose(g[:, b], own, rtol=1e-14)
            np.testing.assert_allclose(log_total[b], total, rtol=1e-14)


@quick
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 30.0, 650.0, 1e5, 1e100]))
def test_log_totals_equal_scipy(both_kernels, seed, scale):
    rng = np.random.default_rng(seed)
    odds, theta = scale * rng.normal(size=(3, 20)), rng.normal(size=6)
    g, log_total = probabilities_and_log_sums(theta, odds)
    eta = np.vstack([theta[:3, None] + theta[3:, None] * odds, np.zeros(20)])
    np.testing.assert_allclose(
        log_total, logsumexp(eta, axis=0), rtol=1e-14, atol=1e-15
    )
    expected = np.exp(eta - logsumexp(eta, axis=0))
    np.testing.assert_allclose(g, expected, rtol=1e-11, atol=1e-300)


@pytest.mark.filterwarnings("error")
def test_a_row_that_would_overflow_changes_no_digit_of_another():
    odds, theta = np.array([[800.0, 2.1], [1.0, 3.3]]), identity_theta(2)
    both, total = probabilities_and_log_sums(theta, odds)
    assert total[0] == 800.0
    np.testing.assert_array_equal(both[:, 0], [1.0, 0.0, 0.0])
    of_both, of_alone = LogPartition(odds)(theta), LogPartition(odds[:, 1:])(theta)
    np.testing.assert_allclose(
        of_both.gradient[1::2], of_alone.gradient[1::2], rtol=1e-15
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neither_threads_nor_chunks_change_the_terms(dtype):
    rng = np.random.default_rng(2)
    odds = rng.normal(scale=3.0, size=(3, 60_000)).astype(
        dtype
    )  # three chunks, the last shorter
    weight, theta = rng.uniform(size=60_000), rng.normal(size=6)
    one, *others = [LogPartition(odds, weight, n_jobs=n)(theta) for n in (1, 2, 3)]
    for terms in others:
        assert_same_terms(terms, one, rtol=0.0, atol=0.0)
    halves = [slice(20_000), slice(20_000, None)]
    parts = [LogPartition(odds[:, rows], weight[rows])(theta) for rows in halves]
    assert_same_terms(parts[0] + parts[1], one, rtol=1e-11)
    rows = [
        recalibrate_from_log_odds(theta, odds, baseline=1, n_jobs=n) for n in (1, 2, 3)
    ]
    np.testing.assert_array_equal(rows[1:], [rows[0]] * 2)
    parts = [
        recalibrate_from_log_odds(theta, odds[:, rows], baseline=1) for rows in halves
    ]
    np.testing.assert_array_equal(np.vstack(parts), rows[0])


@pytest.mark.parametrize(("k", "weighted"), [(3, True), (40, False)])
def test_a_light_pass_has_value_gradient_and_diagonal_of_the_whole_one(k, weighted):
    rng = np.random.default_rng(k)
    odds, theta = rng.normal(scale=2.0, size=(k, 700)), rng.normal(size=2 * k)
    partition = LogPartition(
        odds, rng.uniform(0.1, 3.0, size=700) if weighted else None
    )
    whole, light = partition(theta), partition.with_hessian_diagonal(theta)
    assert light.value == whole.value
    np.testing.assert_array_equal(light.gradient, whole.gradient)
    diagonal = np.diagonal(whole.hessian)
    np.testing.assert_allclose(
        light.hessian, diagonal, rtol=1e-12, atol=1e-12 * diagonal.max()
    )


def test_several_threads_may_call_at_once():
    rng = np.random.default_rng(3)
    partition = LogPartition(rng.normal(size=(9, 4000)))
    thetas = rng.normal(size=(8, 18))
    alone = [partition(theta) for theta in thetas]
    together = list(ordered_map(partition, thetas, 4))
    for first, second in zip(alone, together, strict=True):
        assert_same_terms(first, second, rtol=0.0, atol=0.0)


def test_a_row_has_the_same_digits_in_any_company():
    # beyond eta = 600 a row is shifted before exp; its neighbours are not
    for far in (590.0, 610.0, 1e100):
        odds = np.array([[far, 0.3, -2.0], [-far, 1.7, 0.2]])
        together = recalibrate_from_log_odds(THETA, odds, baseline=2)
        for i in range(3):
            alone = recalibrate_from_log_odds(THETA, odds[:, [i]], 2)[0]
            np.testing.assert_array_equal(alone, together[i], err_msg=f"{far}, row {i}")
        assert np.isfinite(together).all()


@pytest.mark.filterwarnings("error")
def test_log_odds_of_1e100_stay_finite():
    # the square of the largest log odds, times the rows, is far from the largest number
    odds = np.array([[1e100, -1e100, 1e100, 0.1], [-1e100, -1e100, 1e100, 0.2]])
    terms = LogPartition(odds)(identity_theta(2))
    assert terms.value == pytest.approx(2e100)
    assert np.isfinite(terms.gradient).all()
    assert np.isfinite(terms.hessian).all()


def test_one_row_by_hand():
    # x = (.8, .2): odds 4; delta = 2, gamma = 1/2 give odds 2 * sqrt(4) = 4, so g = (.8, .2);
    # A = log(1 + 4); dA/dtau = .8, dA/dgamma = .8 log 4; curvature .8 * .2 = .16 times (1, l, l^2)
    odds, theta, own = np.log([[4.0]]), np.array([np.log(2.0), 0.5]), np.log(4.0)
    curvature = 0.16 * np.array([[1.0, own], [own, own * own]])
    expected = Derivatives(np.log(5.0), np.array([0.8, 0.8 * own]), curvature)
    assert_same_terms(LogPartition(odds)(theta), expected, rtol=1e-13, atol=0.0)
    np.testing.assert_allclose(
        recalibrate_from_log_odds(theta, odds, baseline=1), [[0.8, 0.2]], rtol=1e-14
    )


def test_sufficient_statistic_by_hand():
    # labels 0, 2 (baseline), 0, 1 with weights 1, 2, 3, 4: counts (1 + 3, 4); sums of own log odds
    odds = np.array([[0.5, 9.0, -1.0, 9.0], [9.0, 9.0, 9.0, 2.0]])
    s = sufficient_statistic(
        odds, np.array([0, 2, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    )
    np.testing.assert_allclose(s, [4.0, 4.0, 0.5 - 3.0, 8.0])


@quick
@given(designs(max_sharpness=3.0), st.data())
def test_equals_the_power_formula_of_the_paper_and_the_identity_changes_nothing(
    design, data
):
    probs, _ = design
    delta, gamma = data.draw(maps(probs.shape[1] - 1))
    theta = np.concatenate([np.log(delta), gamma])
    k, odds = len(delta), log_odds_of(probs)
    ours = recalibrate_from_log_odds(theta, odds, baseline=k)
    np.testing.assert_allclose(
        ours, power_formula(probs, delta, gamma), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        recalibrate_from_log_odds(identity_theta(k), odds, k), probs, rtol=1e-12
    )


@quick
@given(designs(), st.data())
def test_value_is_the_sum_over_rows_and_derivatives_match_finite_differences(
    design, data
):
    probs, codes = design
    theta = np.concatenate(data.draw(maps(probs.shape[1] - 1)))
    odds, weight = log_odds_of(probs), np.arange(1.0, len(codes) + 1.0)
    found = likelihood(odds, codes, weight)(theta).value
    assert found == pytest.approx(
        direct_nll(theta, odds, codes, weight), rel=1e-11, abs=1e-11
    )
    terms = likelihood(odds, codes)(theta)
    slope = central_differences(lambda t: direct_nll(t, odds, codes), theta)
    curvature = central_differences(
        lambda t: likelihood(odds, codes)(t).gradient, theta
    )
    scale = 1.0 + np.abs(odds).max() ** 2 * len(codes)
    np.testing.assert_allclose(terms.gradient, slope, atol=1e-7 * scale)
    np.testing.assert_allclose(terms.hessian, curvature, atol=1e-7 * scale)


def test_derivatives_match_50_digits():
    # two rows, three classes, log odds near and far; mpmath differentiates Eq. (5) itself
    odds, codes = np.array([[0.3, -30.0], [-1.1, 2.0]]), [0, 1]

    def nll(*theta):
        total = mpmath.mpf(0)
        for i, y in enumerate(codes):
            eta = [
                theta[j] + theta[2 + j] * mpmath.mpf(odds[j, i]) for j in range(2)
            ] + [0]
            total += mpmath.log(sum(mpmath.exp(e) for e in eta)) - eta[y]
        return total

    with mpmath.workdps(50):
        point = [mpmath.mpf(t) for t in THETA]
        unit = np.eye(4, dtype=int)
        value = float(nll(*point))
        gradient = [float(mpmath.diff(nll, point, tuple(e))) for e in unit]
        hessian = [
            [float(mpmath.diff(nll, point, tuple(e + f))) for f in unit] for e in unit
        ]
    terms = likelihood(odds, np.array(codes))(THETA)
    assert terms.value == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(terms.gradient, gradient, rtol=1e-12)
    np.testing.assert_allclose(terms.hessian, hessian, rtol=1e-10)


@pytest.mark.parametrize(
    ("theta", "value", "gradient", "upper"),
    [
        (
            THETA,
            12.432299736356,
            [-0.51703510, 0.49214269, -1.88607023, 0.37044143],
            [
                [2.95923143, -1.52432517, 0.70168355, -1.10133928],
                [0.0, 2.55783988, -1.08148279, 1.33966546],
                [0.0, 0.0, 5.24113455, -1.32287545],
                [0.0, 0.0, 0.0, 2.77459233],
            ],
        ),
        (
            identity_theta(2),
            12.6033816017,
            [-0.8, 0.8, -0.77466884, -0.89888965],
            [
                [2.72, -1.6025, 1.1679991, -1.15904058],
                [0.0, 3.09, -1.07675746, 1.17403546],
                [0.0, 0.0, 4.26876982, -1.36154283],
                [0.0, 0.0, 0.0, 3.67947098],
            ],
        ),
    ],
)
def test_toy_gradient_and_hessian(theta, value, gradient, upper):
    # methods specification 0.4, TOY, baseline 2
    terms = likelihood(TOY_L, TOY_Y)(theta)
    assert terms.value == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(terms.gradient, gradient, atol=6e-9)
    np.testing.assert_allclose(np.triu(terms.hessian), upper, atol=6e-9)
    np.testing.assert_allclose(terms.hessian, terms.hessian.T, atol=1e-12)


def test_toy_row():
    # methods specification 0.4, TOY, baseline 2, at theta = (.2, -.3, .8, 1.5)
    g = recalibrate_from_log_odds(THETA, TOY_L, baseline=2)[0]
    np.testing.assert_allclose(g, [0.65176965, 0.23572924, 0.11250111], atol=6e-9)


@quick
@given(designs(max_sharpness=50.0), st.data())
def test_recalibrated_rows_lie_on_the_simplex(design, data):
    probs = np.maximum(design[0], 1e-300)
    k = probs.shape[1] - 1
    theta = np.concatenate(data.draw(maps(k)))
    rows = recalibrate_from_log_odds(
        theta, log_odds_of(probs), data.draw(st.integers(0, k))
    )
    assert (rows >= 0.0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)


@quick
@given(designs(min_rows=3), st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_any_partition_into_blocks_adds_to_the_same_terms(design, seed, n_blocks):
    probs, codes = design
    odds, rng = log_odds_of(probs), np.random.default_rng(seed)
    theta = rng.normal(size=2 * len(odds))
    owner = rng.integers(0, n_blocks, size=len(codes))
    blocks = [np.flatnonzero(owner == b) for b in range(n_blocks) if (owner == b).any()]
    parts = [likelihood(odds[:, rows], codes[rows])(theta) for rows in blocks]
    assert_same_terms(reduce(add, parts), likelihood(odds, codes)(theta))


@quick
@given(designs(), st.integers(0, 2**32 - 1))
def test_weights_count_as_repetitions(design, seed):
    probs, codes = design
    rng = np.random.default_rng(seed)
    repeat = rng.integers(0, 4, size=len(codes))
    repeat[0] = 1
    odds, theta = log_odds_of(probs), rng.normal(size=2 * (probs.shape[1] - 1))
    weighted = likelihood(odds, codes, repeat.astype(float))(theta)
    repeated = likelihood(np.repeat(odds, repeat, axis=1), np.repeat(codes, repeat))(
        theta
    )
    assert_same_terms(weighted, repeated)


def test_float32_log_odds_are_computed_in_float64():
    # stored in float32 and computed in float64: a likelihood ratio would lose four digits else
    rng = np.random.default_rng(5)
    probs = simplex(rng, 3000, 3, 2.0)
    small, codes = log_odds_of(probs).astype(np.float32), draw(probs, rng)
    terms = likelihood(small, codes)(THETA)
    assert terms.hessian.dtype == np.float64
    assert_same_terms(terms, likelihood(small.astype(float), codes)(THETA), rtol=1e-14)


def test_extreme_log_odds_give_finite_terms_and_rows():
    # rows at every corner, labels right and wrong
    codes = np.array([0, 2, 0, 1, 1, 2])
    for far, theta in product(
        [40.0, 700.0, 1e5], [identity_theta(2), THETA, -THETA, 100 * THETA]
    ):
        odds = np.array(
            [[far, far, -far, -far, far, 0.1], [-far, far, far, -far, 0.0, -0.2]]
        )
        case, terms = f"{far}, {theta}", likelihood(odds, codes)(theta)
        assert terms.value == pytest.approx(
            direct_nll(theta, odds, codes), rel=1e-12
        ), case
        assert np.isfinite(terms.gradient).all(), case
        assert np.isfinite(terms.hessian).all(), case
        assert np.linalg.eigvalsh(terms.hessian)[0] >= -1e-16 * far**2, case
        rows = recalibrate_from_log_odds(theta, odds, baseline=2)
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-14, err_msg=case)


def test_probabilities_of_1e_minus_300():
    # g_1 / g_2 = x_1 / x_2 = 1e-300 at the identity, and its square root with gamma = 1/2
    odds = log_odds_of(np.array([[1e-300, 1.0]]))
    for gamma, expected in ((1.0, 1e-300), (0.5, 1e-150)):
        found = recalibrate_from_log_odds(np.array([0.0, gamma]), odds, baseline=1)[
            0, 0
        ]
        assert found == pytest.approx(expected, rel=1e-12)


def test_saturated_rows_leave_a_positive_definite_hessian():
    rng = np.random.default_rng(0)
    odds = rng.choice([-1.0, 1.0], size=(3, 500)) * rng.uniform(
        300.0, 700.0, size=(3, 500)
    )
    hessian = LogPartition(odds)(identity_theta(3)).hessian
    scale = np.sqrt(np.diagonal(hessian))
    assert np.linalg.eigvalsh(hessian / np.outer(scale, scale))[0] > 0.0


@pytest.mark.parametrize(("baseline", "n"), [(0, 100), (2, 40_000), (4, 100)])
def test_rows_are_recalibrated_as_their_log_odds_are(baseline, n):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(5), size=n)
    theta = rng.normal(1.0, 0.3, size=8)
    whole = recalibrate_from_log_odds(
        theta, log_odds_from_rows(probs, baseline), baseline
    )
    np.testing.assert_array_equal(recalibrate_rows(theta, probs, baseline), whole)
    logs = np.log(probs)
    whole = recalibrate_from_log_odds(
        theta, log_odds_from_log_probs(logs.T.copy(), baseline), baseline
    )
    found = recalibrate_rows(theta, logs, baseline, rows_are_logs=True)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_log_odds_of_rows_by_hand(baseline):
    # powers of two: log odds are whole multiples of log 2, classes in their order
    powers = np.array([[-1, -2, -2], [-3, -1, -4], [-2, -6, -1]])
    others = [j for j in range(3) if j != baseline]
    expected = np.log(2.0) * (powers[:, others] - powers[:, [baseline]]).T
    for logarithms in (False, True):
        rows = powers * np.log(2.0) if logarithms else 2.0**powers
        found = log_odds_from_rows(rows, baseline, rows_are_logs=logarithms)
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    shares = 2.0**powers / (2.0**powers).sum(axis=1, keepdims=True)
    back = recalibrate_from_log_odds(identity_theta(2), found, baseline)
    np.testing.assert_allclose(back, shares, rtol=1e-13)
