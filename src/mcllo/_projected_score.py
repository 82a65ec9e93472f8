r"""The score statistic of a larger model at a smaller one, for many draws without a refit.

With ``u = s - grad A(theta)`` at theta, the smaller model's estimate, and the information H there,

===================  ====================================================================
score of a model     ``S_B = u' B (B' H B)^+ B' u``, B its directions
statistic            ``S_large - S_small``: what is left when the smaller model's part of the
                     score is projected out; a quadratic form of s
===================  ====================================================================

On the data the smaller model's score is 0, and the statistic is Rao's. Draws are made and scored at
the same theta: what a refit of the smaller model would move is projected out instead, to first
order (Neyman's C(alpha)). Against the identity, which has no parameters, nothing is left out and
the p-value is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._batch import TIE
from ._restriction import Family

Floats = NDArray[np.float64]

ROUNDING = 1e-12
"""Information, of a Hessian with unit diagonal, that is lost in rounding."""


class ProjectedScore:
    """``s -> S_large - S_small`` at fixed parameters.

    Parameters
    ----------
    family : Family
        Of the larger model.
    theta : ndarray of shape (n_parameters,)
        The smaller model's estimate.
    small, large : ndarray of shape (n_parameters, df)
        Directions of the two models.
    """

    def __init__(self, family: Family, theta: Floats, small: Floats, large: Floats) -> None:
        terms = family.partition()(theta)
        self.mean = terms.gradient
        self.form = _form(terms.hessian, large) - _form(terms.hessian, small)

    def __call__(self, statistics: Floats) -> Floats:
        """Return the statistic of each row of sufficient statistics."""
        u = statistics - self.mean
        scores: Floats = np.einsum("bi,ij,bj->b", u, self.form, u, optimize=True)
        return scores

    def reaches(self, statistics: Floats, observed: Floats) -> NDArray[np.bool_]:
        """Return which rows reach the statistic of `observed`, ties included."""
        value = float(self(observed[None])[0])
        reached: NDArray[np.bool_] = self(statistics) >= value * (1.0 - TIE) - 1e-12
        return reached


def _form(hessian: Floats, basis: Floats) -> Floats:
    """Return ``B (B' H B)^+ B'``."""
    own = basis.T @ hessian @ basis
    scale = np.sqrt(np.maximum(np.diagonal(own), 1e-300))
    unit = np.linalg.pinv(own / np.outer(scale, scale), rcond=ROUNDING, hermitian=True)
    scaled = basis / scale
    form: Floats = scaled @ unit @ scaled.T
    return form
