"""Symmetric matrices on the scale of their diagonals: solve, invert, whiten, test.

Entries of a Hessian have the units of its parameters, and these differ by many powers of ten. With
``s_i = sqrt(H_ii)``, and ``R_ij = H_ij / (s_i s_j)`` whose diagonal is 1, rounding is relative to
something:

=============================  ====================================================================
`scale_to_unit_diagonal`       R and s, of one matrix or many
`solve_damped`                 ``(H + d diag H)^-1 u``, d the least of `DAMPING_FACTORS` that makes
                               H definite
`cholesky_in_place`            L with ``L L' = H``, and `solve_lower_triangular` ``L^-1 u``
`solve_batch`                  the same as `solve_damped` for many at once
`factorized_solver`            the same for one H and many u, one after the other
`symmetric_inverse`            ``H^-1``; a large one from its Cholesky factor
`inverse_if_well_conditioned`  ``H^-1`` of a large H that is surely definite, else None
`inverse_and_logdet`           ``H^-1`` and ``log |H|``, or None where H is not definite
`whitening_matrix`             W with ``W W' = H^+``, one column for each eigenvalue of R above
                               1e-12
`pseudo_inverse`               ``H^+ = W W'``
`smallest_scaled_eigenvalue`   of H in any units, of one matrix or many
`smallest_eigenvalue_exceeds`  whether that is above a bound: one Cholesky factor, no eigenvalues
=============================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .results import Floats

TINY = float(np.finfo(np.float64).tiny)
MAX_FLAT_DIAGONAL = 1e-290
"""Diagonal entry up to which a coordinate is flat: its square root can still be divided by."""
DAMPING_FACTORS = (0.0, *(10.0**power for power in range(-14, 3)))
"""Multiples of the diagonal that `solve_damped` tries in turn: from rounding to a gradient step."""
MAX_SIZE_WITHOUT_CHOLESKY = 150
"""Size above which LAPACK's Cholesky routines, called one by one, pay: a round number."""


def scale_to_unit_diagonal(
    matrix: Floats, unit: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return R and s; `unit` stands for the diagonal where other units are asked for."""
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1) if unit is None else unit
    scale = np.sqrt(np.maximum(diagonal, TINY))
    # one division after the other: the product of two scales may overflow or underflow
    scaled = matrix / scale[..., :, None]
    scaled /= scale[..., None, :]
    return scaled, scale


def solve_damped(matrix: Floats, right: Floats) -> Floats:
    """Return ``H^-1 u``, with the least multiple of the diagonal that makes H definite."""
    diagonal = np.abs(np.diagonal(matrix))
    largest = float(diagonal.max())
    # a coordinate that is flat beside the largest must not become a huge step
    least = 1e-14 * largest if largest > MAX_FLAT_DIAGONAL else 1.0
    scaled, scale = scale_to_unit_diagonal(matrix, np.maximum(diagonal, least))
    scaled_right = right / scale
    for damping in DAMPING_FACTORS:
        damped = scaled
        if damping > 0.0:
            damped = scaled + damping * np.eye(len(scaled_right))
        try:
            solution = _solve_positive_definite(damped, scaled_right) / scale
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(solution).all():
            return solution
    return scaled_right / scale


def _solve_positive_definite(matrix: Floats, right: Floats) -> Floats:
    """Solve, or fail where the matrix is not definite; a large one by the factor that shows it."""
    factor = np.linalg.cholesky(matrix)
    if len(matrix) <= MAX_SIZE_WITHOUT_CHOLESKY:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((factor, True), right, check_finite=False), np.float64)


def cholesky_in_place(matrix: Floats) -> Floats:
    """Return the lower Cholesky factor; a large one takes the place of `matrix`.

    NumPy holds two more copies meanwhile, which of 1,000 classes are 64 MB.
    """
    if len(matrix) <= MAX_SIZE_WITHOUT_CHOLESKY:
        return np.asarray(np.linalg.cholesky(matrix), np.float64)
    from scipy.linalg.lapack import dpotrf

    # H is its own transpose, and the transpose has the order of columns that LAPACK works in place
    factor, failed = dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return np.asarray(factor, np.float64)


def solve_lower_triangular(factor: Floats, right: Floats) -> Floats:
    """Return ``L^-1 u`` of a lower triangular L."""
    if len(factor) <= MAX_SIZE_WITHOUT_CHOLESKY:
        return np.asarray(np.linalg.solve(factor, right), np.float64)
    from scipy.linalg import solve_triangular

    return np.asarray(
        solve_triangular(factor, right, lower=True, check_finite=False), np.float64
    )


def solve_batch(matrices: Floats, rights: Floats) -> Floats:
    """Return ``H^-1 u`` for each of many, shape (B, size), by `solve_damped` where it must be."""
    try:
        columns = np.linalg.solve(matrices, rights[..., None])
        solutions = np.asarray(columns[..., 0], np.float64)
    except (
        np.linalg.LinAlgError
    ):  # one singular matrix, and there are no solutions at all
        solutions = np.full_like(rights, np.nan)
    is_finite = np.isfinite(solutions).all(axis=1)
    # u' H^-1 u is negative only where H is not definite: the step would go uphill
    descends = np.einsum("bi,bi->b", solutions, rights) >= 0.0
    for b in np.flatnonzero(~(is_finite & descends)):
        solutions[b] = solve_damped(matrices[b], rights[b])
    return solutions


def factorized_solver(matrix: Floats) -> Callable[[Floats], Floats]:
    """Return ``u -> H^-1 u``: by a Cholesky factor, or as `solve_damped` does."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    scaled, scale = scale_to_unit_diagonal(matrix)
    factor, failed = dpotrf(scaled.T, lower=1, clean=0)
    if failed:
        return partial(solve_damped, matrix)

    def solve(right: Floats) -> Floats:
        solution, _ = dpotrs(factor, right / scale, lower=1)
        return np.asarray(solution / scale, np.float64)

    return solve


def symmetric_inverse(
    matrix: Floats, *, large: int = MAX_SIZE_WITHOUT_CHOLESKY
) -> Floats:
    """Return ``H^-1``; above size `large` from its Cholesky factor, in two fifths of the time."""
    if len(matrix) > large:
        from scipy.linalg.lapack import dpotrf, dpotri

        factor, failed = dpotrf(matrix, lower=1, clean=0)
        if not failed:
            half, failed = dpotri(factor, lower=1, overwrite_c=1)
        if not failed:
            # LAPACK leaves the other half as it was
            half = np.tril(half)
            half += np.tril(half, -1).T
            return half
    return np.asarray(np.linalg.inv(matrix), np.float64)


def inverse_if_well_conditioned(matrix: Floats, rcond: float) -> Floats | None:
    """Return ``H^-1`` of a large H all of whose eigenvalues are above `rcond` of the largest.

    None where that is not sure: they are at least the least one of R times the least entry of the
    diagonal. A Cholesky factor takes a fifth of the time of a pseudo-inverse.
    """
    diagonal = np.diagonal(matrix)
    if (
        len(matrix) <= MAX_SIZE_WITHOUT_CHOLESKY
        or not diagonal.min() > MAX_FLAT_DIAGONAL
    ):
        return None
    # The largest eigenvalue is the trace at most, the smallest that of R times the least entry.
    needed = rcond * float(diagonal.sum() / diagonal.min())
    # An inverse of R keeps half of its 16 digits where all eigenvalues are above this.
    needed = max(needed, 1e-8)
    scaled, scale = scale_to_unit_diagonal(matrix)
    if needed < 1.0 and smallest_eigenvalue_exceeds(
        scaled, needed, np.ones(len(scaled))
    ):
        return symmetric_inverse(scaled) / scale[:, None] / scale
    return None


def inverse_and_logdet(matrix: Floats) -> tuple[Floats, float] | None:
    """Return ``H^-1`` and ``log |H|``; None where H is not numerically definite."""
    scaled, scale = scale_to_unit_diagonal(matrix)
    try:
        factor = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return None
    log_determinant = 2.0 * float(np.log(np.diagonal(factor) * scale).sum())
    inverted = np.linalg.inv(scaled) / scale[:, None] / scale
    return inverted, log_determinant


def whitening_matrix(matrix: Floats, free: NDArray[np.bool_] | None = None) -> Floats:
    """Return W of shape (size, rank) with ``W W'`` the (pseudo) inverse.

    Of the coordinates that are `free`, where some are not; the others have rows of 0.
    """
    if free is not None:
        own = whitening_matrix(matrix[np.ix_(free, free)])
        padded = np.zeros((len(free), own.shape[1]))
        padded[free] = own
        return padded
    scaled, scale = scale_to_unit_diagonal(matrix)
    eigenvalues, eigenvectors = np.linalg.eigh(scaled)
    # Smaller ones are lost in rounding: size times 2e-16, and some digits of the Hessian itself.
    is_seen = eigenvalues > 1e-12 * eigenvalues.max(initial=0.0)
    whitened = eigenvectors[:, is_seen] / np.sqrt(eigenvalues[is_seen])
    return whitened / scale[:, None]


def pseudo_inverse(matrix: Floats) -> Floats:
    """Return the inverse among the directions that rounding leaves."""
    roots = whitening_matrix(matrix)
    return roots @ roots.T


def smallest_scaled_eigenvalue(matrix: Floats, unit: Floats) -> Floats:
    """Return the smallest eigenvalue in these units, of each matrix."""
    scaled, _ = scale_to_unit_diagonal(matrix, unit)
    eigenvalues = np.linalg.eigvalsh(scaled)  # in ascending order
    return np.asarray(eigenvalues[..., 0], np.float64)


def smallest_eigenvalue_exceeds(
    matrix: Floats, bound: float, unit: Floats | None = None
) -> bool:
    """Whether the smallest eigenvalue, in units of the diagonal or of `unit`, is above `bound`."""
    if unit is None and not np.diagonal(matrix).min() > MAX_FLAT_DIAGONAL:
        return False
    # R - bound I has a Cholesky factor exactly if all eigenvalues of R are above the bound
    scaled, _ = scale_to_unit_diagonal(matrix, unit)
    scaled[np.diag_indices_from(scaled)] -= bound
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return False
    return True
