import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import assert_same_terms, central_differences
from scipy.optimize import brentq
from scipy.special import log_softmax, logsumexp
from scipy.special import softmax as their_softmax
from toy import TOY_X, TOY_Y

from mcllo._model.kernel import log_sum_exp, softmax_in_place
from mcllo._model.linear_map import LinearMapLoss
from mcllo._model.temperature import fit_inverse_temperature

Z = np.log(TOY_X).T.copy()
KINDS = pytest.mark.parametrize("diagonal", [True, False], ids=["vector", "matrix"])


def plain_loss(theta, z, y, weight, diagonal):
    """The loss row by row, in the words of the equation card."""
    slope = theta[:, :1] * z if diagonal else theta[:, :-1] @ z
    eta = slope + theta[:, -1:]
    return float(-weight @ log_softmax(eta, axis=0)[y, np.arange(len(y))])


def random_problem(seed, n, c, diagonal):
    rng = np.random.default_rng(seed)
    z, y = rng.normal(size=(c, n)), rng.integers(0, c, n)
    theta = rng.normal(size=(c, 2 if diagonal else c + 1))
    return z, y, rng.exponential(size=n), theta


@KINDS
def test_identity_on_toy(diagonal):
    # methods.md 0.4: NLL at the identity 12.6033816017.
    theta = np.array([[1.0, 0.0]] * 3) if diagonal else np.eye(3, 4)
    value = LinearMapLoss(Z, TOY_Y, diagonal=diagonal)(theta.ravel()).value
    assert value == pytest.approx(12.6033816017, abs=1e-9)


def test_hand_sized_example():
    # One row, z = (1, 0), label 0, theta = 0: g = (1/2, 1/2). Features of class 0 are (1, 1), of
    # class 1 (0, 1). Gradient (g - 1[y]) x = (-1/2, -1/2, 0, 1/2); g_0 g_1 = 1/4 fills the Hessian.
    terms = LinearMapLoss(np.array([[1.0], [0.0]]), np.array([0]), diagonal=True)(
        np.zeros(4)
    )
    assert terms.value == pytest.approx(np.log(2.0))
    np.testing.assert_allclose(terms.gradient, [-0.5, -0.5, 0.0, 0.5])
    expected = 0.25 * np.array(
        [[1, 1, 0, -1], [1, 1, 0, -1], [0, 0, 0, 0], [-1, -1, 0, 1]]
    )
    np.testing.assert_allclose(terms.hessian, expected)


@KINDS
def test_value_against_the_plain_loss(diagonal):
    z, y, weight, theta = random_problem(0, 500, 4, diagonal)
    loss = LinearMapLoss(z, y, weight, diagonal=diagonal)
    terms, light = loss(theta.ravel()), loss.value_and_gradient(theta.ravel())
    expected = plain_loss(theta, z, y, weight, diagonal)
    assert terms.value == pytest.approx(expected, rel=1e-13)
    assert light.value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(light.gradient, terms.gradient, atol=1e-10)


@KINDS
def test_derivatives_against_finite_differences(diagonal):
    z, y, weight, theta = random_problem(1, 60, 3, diagonal)
    for own in (weight, None):
        loss = LinearMapLoss(z, y, own, diagonal=diagonal)
        terms, x = loss(theta.ravel()), theta.ravel()
        slope = central_differences(lambda x, loss=loss: loss(x).value, x, h=1e-5)
        np.testing.assert_allclose(terms.gradient, slope, atol=1e-7)
        bend = central_differences(lambda x, loss=loss: loss(x).gradient, x, h=1e-5)
        np.testing.assert_allclose(terms.hessian, bend, atol=1e-7)


@KINDS
def test_feature_gram(diagonal):
    z, y, weight, _ = random_problem(3, 700, 3, diagonal)
    gram = LinearMapLoss(z, y, weight, diagonal=diagonal).feature_gram()
    ones = np.ones(700)
    features = (
        [np.stack([row, ones]) for row in z] if diagonal else [np.vstack([z, ones])]
    )
    np.testing.assert_allclose(gram, [(x * weight) @ x.T for x in features])


@KINDS
def test_some_classes_modelled(diagonal):
    # The softmax runs over classes 0 and 2; a matrix map still sees the score of class 1.
    z, _, weight, theta = random_problem(4, 80, 3, diagonal)
    y = np.random.default_rng(5).integers(0, 2, 80)
    rows = theta[[0, 2]]
    loss = LinearMapLoss(z, y, weight, classes=np.array([0, 2]), diagonal=diagonal)
    expected = plain_loss(rows, z[[0, 2]] if diagonal else z, y, weight, diagonal)
    assert loss(rows.ravel()).value == pytest.approx(expected, rel=1e-13)


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 900), diagonal=st.booleans())
def test_terms_of_any_parts_add_up(seed, n, diagonal):
    # Chunks of 75000 // (12 * 13) = 480 and 75000 // (100 * 2) = 375 rows.
    z, y, weight, theta = random_problem(seed, n, 100 if diagonal else 12, diagonal)
    cut = seed % (n - 1) + 1
    whole = LinearMapLoss(z, y, weight, diagonal=diagonal)(theta.ravel())
    first, rest = (
        LinearMapLoss(z[:, rows], y[rows], weight[rows], diagonal=diagonal)(
            theta.ravel()
        )
        for rows in (slice(cut), slice(cut, None))
    )
    assert_same_terms(first + rest, whole, atol=1e-9)


@KINDS
def test_weights_count_rows(diagonal):
    z, y, _, theta = random_problem(6, 40, 3, diagonal)
    times = np.arange(40) % 3
    weighted = LinearMapLoss(z, y, times.astype(float), diagonal=diagonal)(
        theta.ravel()
    )
    repeated = np.repeat(np.arange(40), times)
    written = LinearMapLoss(z[:, repeated], y[repeated], diagonal=diagonal)(
        theta.ravel()
    )
    assert_same_terms(weighted, written, atol=1e-12)


def test_small_losses_keep_their_digits():
    # One row, label leading by 50: the loss is log(1 + e^-50), 1.9e-22, not the rounding of 1e6.
    z = np.array([[1e6 + 50.0], [1e6]])
    loss = LinearMapLoss(z, np.array([0]), diagonal=True)
    assert 0.0 <= loss(np.array([1.0, 0.0, 1.0, 0.0])).value < 1e-15


@pytest.mark.parametrize("scale", [1.0, 2000.0])
def test_softmax_against_scipy(scale):
    for shape, order in [((3, 5), "C"), ((3, 2, 5), "C"), ((3, 5), "F")]:
        eta = scale * np.random.default_rng(0).normal(size=shape)
        g = np.array(eta, order=order)
        logs = softmax_in_place(g)
        np.testing.assert_allclose(g, their_softmax(eta, axis=0), atol=1e-12)
        np.testing.assert_allclose(logs, logsumexp(eta, axis=0), rtol=1e-12, atol=1e-12)


def test_softmax_of_scores_that_are_all_low():
    eta = np.full((2, 3), -2e3)  # exp of it is 0
    np.testing.assert_allclose(softmax_in_place(eta), np.log(2.0) - 2e3)
    np.testing.assert_allclose(eta, 0.5)


@pytest.mark.usefixtures("both_kernels")
def test_probabilities_of_less_than_c_knows_are_0():
    # exp(-400) / exp(320) is a number of few digits, which C calls 0; 1e-6 stands for a 0 later on
    eta = np.array([[320.0, 1.0], [-400.0, 2.0]])
    softmax_in_place(eta)
    assert eta[1, 0] == 0.0
    assert eta[0, 1] == pytest.approx(1.0 / (1.0 + np.e), rel=1e-15)


def test_errors_of_single_precision_do_not_add_up():
    # exp of float32 may err to one side: without a largest term of exactly 1 that was 9e-4 here.
    eta = np.log(
        np.random.default_rng(0).dirichlet(np.ones(10), size=100_000).T
    ).astype("f4")
    exact = np.log(np.exp(eta.astype(float)).sum(axis=0))
    assert abs((softmax_in_place(eta).astype(float) - exact).sum()) < 2e-4


def scores_and_labels(n, c, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, c))
    return (z * scale).T.copy(), (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def root_of_the_likelihood_equation(z, y, weight=None):
    """The same equation by Brent's method on log u, rows written out one by one."""
    w = np.ones(len(y)) if weight is None else weight

    def h(v):
        p = their_softmax(math.exp(v) * z, axis=0)
        return float(w @ ((p * z).sum(axis=0) - z[y, np.arange(len(y))]))

    return math.exp(brentq(h, -16.0, 16.0, xtol=1e-13, rtol=1e-14))


def test_scores_that_need_no_change():
    # 3 of 4 labels where p = 3/4: the likelihood equation holds at u = 1.
    z = np.log(np.tile([[0.75], [0.25]], 4))
    root = fit_inverse_temperature(z, np.array([0, 0, 0, 1]))
    assert root.value == pytest.approx(1.0, abs=1e-12)
    assert root.bound == 0


def test_hand_sized_temperature():
    # Scores (1, 0) in every row, 4 labels of 5 for the first: expit(u) = 4/5, u = log 4.
    z = np.tile([[1.0], [0.0]], 5)
    assert fit_inverse_temperature(z, np.array([0, 0, 0, 0, 1])).value == pytest.approx(
        math.log(4.0)
    )


@pytest.mark.parametrize(
    ("n", "c", "weighted"), [(50, 2, False), (5000, 10, False), (600, 4, True)]
)
def test_against_brent(n, c, weighted):
    weight = np.random.default_rng(2).exponential(size=n) if weighted else None
    for scale in (1e-5, 1.0, 30.0, 1e5):
        z, y = scores_and_labels(n, c, seed=n, scale=scale)
        expected = root_of_the_likelihood_equation(z, y, weight)
        assert fit_inverse_temperature(z, y, weight).value == pytest.approx(
            expected, rel=1e-9
        ), scale


def test_all_labels_on_the_largest_or_smallest_score():
    z, _ = scores_and_labels(100, 3, seed=0)
    for labels, bound in ((z.argmax(axis=0), 1), (z.argmin(axis=0), -1)):
        root = fit_inverse_temperature(z, labels)
        assert (root.value, root.bound) == (math.exp(16.0 * bound), bound)


def test_one_hard_row_among_easy_ones_has_a_root():
    z, _ = scores_and_labels(500, 3, seed=0)
    y = z.argmax(axis=0)
    y[0] = z[:, 0].argmin()
    expected = root_of_the_likelihood_equation(z, y)
    assert fit_inverse_temperature(z, y).value == pytest.approx(expected, rel=1e-9)


def test_scores_that_never_differ_leave_u_at_one():
    assert (
        fit_inverse_temperature(np.full((3, 10), 7.0), np.arange(10) % 3).value == 1.0
    )


def test_the_first_guess_does_not_matter():
    # 4000 rows are worth a guess from every 8th, 3999 are not; one row twice, at half its weight.
    z, y = scores_and_labels(3999, 5, seed=3, scale=4.0)
    plain = fit_inverse_temperature(z.copy(), y).value
    rows = np.append(np.arange(3999), 0)
    weight = np.where(rows == 0, 0.5, 1.0)
    guessed = fit_inverse_temperature(z[:, rows], y[rows], weight).value
    assert guessed == pytest.approx(plain, rel=1e-11)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6), log_scale=st.floats(-10, 10), shift=st.floats(-100, 100)
)
def test_scaled_and_shifted_scores(seed, log_scale, shift):
    z, y = scores_and_labels(40, 3, seed)
    root = fit_inverse_temperature(z.copy(), y)
    if root.bound == 0 and abs(math.log(root.value)) < 5.0:
        scale = math.exp(log_scale)
        moved = fit_inverse_temperature(scale * (z + shift), y)
        assert moved.value * scale == pytest.approx(root.value, rel=1e-6)


def test_a_plateau_far_out_does_not_overflow():
    # found by hypothesis: at exp(9.78) times the scores the slope at u = 1 all but vanishes
    z, y = scores_and_labels(40, 3, 0)
    root = fit_inverse_temperature(z.copy(), y)
    scale = math.exp(9.78125)
    assert fit_inverse_temperature(scale * z, y).value * scale == pytest.approx(
        root.value, rel=1e-6
    )


@KINDS
def test_curvature_along_a_direction_is_the_hessian_s(diagonal):
    z, y, weight, theta = random_problem(3, 900, 4, diagonal)
    loss = LinearMapLoss(z, y, weight, diagonal=diagonal)
    along = np.random.default_rng(4).normal(size=theta.size)
    expected = along @ loss(theta.ravel()).hessian @ along
    assert loss.directional_curvature(theta.ravel(), along) == pytest.approx(
        expected, rel=1e-11
    )


@KINDS
@pytest.mark.parametrize("n", [8, 400])
def test_class_blocks_are_the_hessian_s_where_all_rows_count_and_near_it_elsewhere(
    diagonal, n
):
    z, y, weight, theta = random_problem(5, n, 3, diagonal)
    loss = LinearMapLoss(z, y, weight, diagonal=diagonal)
    found, d = (
        loss.approximate_class_blocks(theta.ravel(), loss.feature_gram()),
        theta.shape[1],
    )
    hessian = loss(theta.ravel()).hessian
    exact = np.array([hessian[j * d : j * d + d, j * d : j * d + d] for j in range(3)])
    if n == 8:  # fewer rows than are counted one by one, 5 for each of 2 or 4 features
        np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-10)
    else:
        spread = np.linalg.eigvals(np.linalg.solve(found, exact)).real
        assert 0.2 < spread.min() < spread.max() < 2.0
        assert np.abs(found - exact).max() > 1e-3


def test_log_sum_exp_is_that_of_scipy_and_leaves_its_argument():
    eta = np.array([[-1e3, 0.0, 700.0], [-1e3, 1.0, -700.0], [-999.0, 2.0, 710.0]])
    before = eta.copy()
    np.testing.assert_allclose(log_sum_exp(eta), logsumexp(eta, axis=0), rtol=1e-15)
    np.testing.assert_array_equal(eta, before)
