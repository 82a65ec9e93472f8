import numpy as np
import pytest
from independent import simplex

from mcllo._utils.linalg import (
    MAX_SIZE_WITHOUT_CHOLESKY,
    factorized_solver,
    inverse_and_logdet,
    inverse_if_well_conditioned,
    pseudo_inverse,
    scale_to_unit_diagonal,
    smallest_eigenvalue_exceeds,
    smallest_scaled_eigenvalue,
    solve_damped,
    symmetric_inverse,
    whitening_matrix,
)

UNITS = np.array([1e-80, 1.0, 1e60])
"""Parameters in units that no solver survives that takes rounding as absolute."""
SMALL = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 3.0]])
STRETCHED = SMALL * np.outer(UNITS, UNITS)


def random_definite(size, seed=0):
    factor = np.random.default_rng(seed).normal(size=(size, size + 3))
    return factor @ factor.T


def test_unit_diagonal_of_one_and_of_many():
    # 4 and 9 on the diagonal, 3 beside: 3 / (2 * 3) = .5
    one, scale = scale_to_unit_diagonal(np.array([[4.0, 3.0], [3.0, 9.0]]))
    assert one.tolist() == [[1.0, 0.5], [0.5, 1.0]]
    assert scale.tolist() == [2.0, 3.0]
    many, scales = scale_to_unit_diagonal(np.stack([SMALL, 4.0 * SMALL]))
    np.testing.assert_allclose(many[0], many[1])
    np.testing.assert_allclose(scales[1], 2.0 * scales[0])
    nothing, _ = scale_to_unit_diagonal(np.zeros((2, 2)))
    assert not nothing.any()


def test_units_change_no_solution():
    right = np.array([1.0, -2.0, 0.5])
    expected = np.linalg.solve(SMALL, right) / UNITS
    np.testing.assert_allclose(
        pseudo_inverse(STRETCHED) @ (right * UNITS), expected, rtol=1e-12
    )
    found, log_determinant = inverse_and_logdet(STRETCHED)
    np.testing.assert_allclose(found @ (right * UNITS), expected, rtol=1e-12)
    # det SMALL = 2 (3 - .04) - .5 (1.5 + .02) + .1 (-.1 - .1) = 5.14
    assert log_determinant == pytest.approx(
        np.log(5.14) + 2.0 * np.log(UNITS).sum(), rel=1e-12
    )
    np.testing.assert_allclose(
        factorized_solver(STRETCHED)(right * UNITS), expected, rtol=1e-12
    )
    near = np.array([1e-3, 1.0, 1e3])
    stretched = SMALL * np.outer(near, near)
    np.testing.assert_allclose(
        solve_damped(stretched, right * near),
        np.linalg.solve(SMALL, right) / near,
        rtol=1e-12,
    )


def test_a_matrix_that_is_not_definite_is_damped_until_it_is():
    # eigenvalues 2.5 and -.5 on the scale of the diagonal: the first damping above .5 is 1,
    # (H + I)^-1 (1, -1) = (2, -2); without any curvature the right side itself is the direction
    indefinite = np.array([[1.0, 1.5], [1.5, 1.0]])
    np.testing.assert_allclose(
        solve_damped(indefinite, np.array([1.0, -1.0])), [2.0, -2.0]
    )
    np.testing.assert_allclose(
        factorized_solver(indefinite)(np.array([1.0, -1.0])), [2.0, -2.0]
    )
    assert inverse_and_logdet(indefinite) is None
    flat = solve_damped(np.zeros((2, 2)), np.array([3.0, -4.0]))
    assert flat[0] > 0.0 > flat[1]


@pytest.mark.parametrize("size", [1, 40])
def test_the_cholesky_way_is_the_same_inverse(size):
    matrix = random_definite(size)
    found = symmetric_inverse(matrix, large=0)
    np.testing.assert_allclose(found, symmetric_inverse(matrix), rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(matrix, random_definite(size))  # untouched


def test_an_indefinite_matrix_is_inverted_all_the_same():
    np.testing.assert_allclose(
        symmetric_inverse(np.diag([1.0, -2.0]), large=0), np.diag([1.0, -0.5])
    )


@pytest.mark.parametrize("rank", [3, 2, 0])
def test_whitening_is_a_root_of_the_pseudo_inverse(rank):
    half = np.random.default_rng(0).normal(size=(3, rank))
    h = half @ half.T
    root = whitening_matrix(h)
    assert root.shape == (3, rank)
    # a generalised inverse: H W W' H = H
    np.testing.assert_allclose(h @ root @ root.T @ h, h, atol=1e-12)


def test_whitening_leaves_out_what_rounding_hides():
    # counts of four classes add up to n: their covariance has rank 3, whatever the units
    rows = simplex(np.random.default_rng(1), 50, 4)
    spread = np.diag(rows.sum(axis=0)) - rows.T @ rows
    units = np.array([1.0, 1e-6, 1e3, 1.0])
    for matrix in (spread, spread * np.outer(units, units)):
        roots = whitening_matrix(matrix)
        assert roots.shape == (4, 3)
        np.testing.assert_allclose(roots.T @ matrix @ roots, np.eye(3), atol=1e-9)
    assert whitening_matrix(np.zeros((2, 2))).shape == (2, 0)
    assert not pseudo_inverse(np.zeros((2, 2))).any()
    np.testing.assert_allclose(
        pseudo_inverse(np.diag([4.0, 0.0])), np.diag([0.25, 0.0])
    )


def test_least_eigenvalue_in_other_units():
    # diag(1, 8) in units of (2, 4) is diag(.5, 2)
    unit = np.array([2.0, 4.0])
    assert smallest_scaled_eigenvalue(np.diag([1.0, 8.0]), unit) == pytest.approx(0.5)
    both = smallest_scaled_eigenvalue(
        np.stack([np.diag([1.0, 8.0]), np.diag([4.0, 1.0])]), unit
    )
    np.testing.assert_allclose(both, [0.5, 0.25])
    assert smallest_eigenvalue_exceeds(np.diag([1.0, 8.0]), 0.49, unit)
    assert not smallest_eigenvalue_exceeds(np.diag([1.0, 8.0]), 0.51, unit)


def test_exceeds_on_the_scale_of_the_diagonal():
    # R = [[1, .5], [.5, 1]] has the eigenvalues .5 and 1.5
    matrix = np.array([[4e80, 3.0], [3.0, 9e-80]])
    assert smallest_eigenvalue_exceeds(matrix, 0.49)
    assert not smallest_eigenvalue_exceeds(matrix, 0.51)
    assert not smallest_eigenvalue_exceeds(np.diag([1.0, 0.0]), 1e-9)
    assert not smallest_eigenvalue_exceeds(np.diag([1.0, np.nan]), 1e-9)


def test_a_large_definite_matrix_is_inverted_and_solved_by_its_factor(monkeypatch):
    rng = np.random.default_rng(0)
    n = MAX_SIZE_WITHOUT_CHOLESKY + 20
    root = rng.normal(size=(n, 2 * n))
    units = 10.0 ** rng.uniform(-2, 2, n)
    matrix, right = units[:, None] * (root @ root.T) * units, rng.normal(size=n)

    def none(*args, **options):
        raise AssertionError("eigenvalues, or a second factor, of a large matrix")

    for name in ("eigh", "svd", "solve", "inv"):
        monkeypatch.setattr(np.linalg, name, none)
    found = inverse_if_well_conditioned(matrix, 1e-15)
    product = (matrix / units[:, None] / units) @ (found * units[:, None] * units)
    np.testing.assert_allclose(product, np.eye(n), atol=1e-9)
    np.testing.assert_allclose(matrix @ solve_damped(matrix, right), right, atol=1e-8)


def test_a_large_matrix_that_may_be_singular_is_left_to_others():
    n = MAX_SIZE_WITHOUT_CHOLESKY + 20
    assert inverse_if_well_conditioned(np.ones((n, n)), 1e-15) is None
    assert inverse_if_well_conditioned(np.diag([1e-14, *np.ones(n - 1)]), 1e-13) is None
    assert inverse_if_well_conditioned(np.diag([0.0, *np.ones(n - 1)]), 1e-13) is None
    assert (
        inverse_if_well_conditioned(np.eye(MAX_SIZE_WITHOUT_CHOLESKY), 1e-13) is None
    )  # small ones as ever
