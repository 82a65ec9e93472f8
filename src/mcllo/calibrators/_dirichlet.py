r"""`DirichletCalibration`: a full linear map of the log probabilities, off-diagonals held back.

====================  ==========================================================================
map                   ``softmax(W log p + b)``
minimised             ``mean nll + lambda / (c (c - 1)) sum_{i != j} w_ij^2 + mu / c sum_j b_j^2``
====================  ==========================================================================

lambda is `off_diagonal` and mu is `intercept`; the diagonal is free (ODIR, Kull et al. 2019).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ._contract import predict_labels, read_rows, read_training, save_calibrator
from ._linear_fit import check_penalty, fit_map
from ._linear_map import LinearMap

Floats = NDArray[np.float64]


class DirichletCalibration(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Dirichlet calibration with off-diagonal and intercept regularisation (Kull et al. 2019).

    Parameters
    ----------
    off_diagonal : float
        lambda: weight of the mean square of W's off-diagonal entries beside the mean negative log
        likelihood. 0 is maximum likelihood; as it grows the map becomes vector scaling of log
        probabilities. The default is a compromise: sharp predictions of ten classes want 10,
        blurred ones of four classes 0.1. To choose it from data, search over powers of 10 with
        ``GridSearchCV(DirichletCalibration(), ..., scoring="neg_log_loss")``.
    intercept : float
        mu: weight of the mean square of the intercepts.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Floor for small probabilities; by default rows with a 0 get the floor 1e-6.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.
    coef_ : ndarray of shape (n_classes, n_classes)
        W; row j makes class j's new score.
    intercept_ : ndarray of shape (n_classes,)
        b.
    map_ : LinearMap
        Both, with the solver's steps and whether it converged.

    Notes
    -----
    A class that no label has keeps its predicted probability; the others share the rest.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=1000)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> calibration = DirichletCalibration().fit(sharp, y)
    >>> bool(abs(calibration.predict_proba(sharp) - honest).mean() < 0.03)
    True
    """

    method: ClassVar[str] = "dirichlet"
    input: ClassVar[str] = "probs"
    includes_identity: ClassVar[bool] = True

    def __init__(
        self,
        *,
        off_diagonal: float = 1.0,
        intercept: float = 0.01,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.classes = classes
        self.normalize = normalize
        self.clip = clip

    @property
    def coef_(self) -> Floats:
        """Weights W."""
        return self.map_.coef

    @property
    def intercept_(self) -> Floats:
        """Intercepts b."""
        return self.map_.intercept

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DirichletCalibration:
        """Estimate the map from predictions and labels.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes)
            Predicted probabilities.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        """
        check_penalty("off_diagonal", self.off_diagonal)
        check_penalty("intercept", self.intercept)
        predictions = read_training(self, X, y, sample_weight)
        total_weight = float(predictions.class_weight.sum())
        ridge = odir_ridge(
            predictions.n_classes, total_weight * self.off_diagonal, total_weight * self.intercept
        )
        self.map_ = fit_map(
            predictions, "log_probs", ridge, 'Use MatrixScaling(on="log_probs", penalty=1.0).'
        )
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        rows = read_rows(self, X)
        return self.map_.apply(rows, "log_probs")

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return predict_labels(self, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map as JSON; `mcllo.load_calibrator` reads it."""
        save_calibrator(self, path)

    def _state(self) -> dict[str, Any]:
        return self.map_.to_dict()

    def _restore(self, state: dict[str, Any]) -> None:
        self.map_ = LinearMap.from_dict(state)


def odir_ridge(n_classes: int, off_diagonal: float, intercept: float) -> Floats:
    """Return ODIR as weights r of ``1/2 sum r_jk (theta_jk - identity_jk)^2``, shape (c, c + 1)."""
    ridge = np.full((n_classes, n_classes + 1), 2.0 * off_diagonal / (n_classes * (n_classes - 1)))
    np.fill_diagonal(ridge, 0.0)
    ridge[:, -1] = 2.0 * intercept / n_classes
    return ridge
