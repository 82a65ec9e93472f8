"""`MCLLOCalibrator`: the paper's map as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from .._fit import MCLLOFit, fit_predictions
from ._contract import predict_labels, read_rows, read_training, save_calibrator

Floats = NDArray[np.float64]


class MCLLOCalibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multicategory linear log odds recalibration.

    Parameters
    ----------
    baseline : label, optional
        Reference class of the log odds; the last class when not given.
    penalty : float
        Ridge ``penalty / 2 * (sum tau^2 + sum (gamma - 1)^2)`` towards the identity. 0 is maximum
        likelihood; 1 is safe when rows are few or the estimate does not exist.
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
    fit_ : MCLLOFit
        Estimates, standard errors and convergence.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=4000)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> calibrator = MCLLOCalibrator().fit(sharp, y)
    >>> calibrator.fit_.gamma.round(1)
    array([0.5, 0.5])
    >>> bool(abs(calibrator.predict_proba(sharp) - honest).mean() < 0.01)
    True
    """

    method: ClassVar[str] = "mcllo"
    input: ClassVar[str] = "probs"
    includes_identity: ClassVar[bool] = True

    def __init__(
        self,
        *,
        baseline: Hashable | None = None,
        penalty: float = 0.0,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        self.baseline = baseline
        self.penalty = penalty
        self.classes = classes
        self.normalize = normalize
        self.clip = clip

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MCLLOCalibrator:
        """Estimate the map from predictions and labels.

        Parameters
        ----------
        X : array-like, frame or Predictions of shape (n_samples, n_classes)
            Predicted probabilities.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        """
        predictions = read_training(self, X, y, sample_weight)
        self.fit_ = fit_predictions(predictions, penalty=self.penalty)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        rows = read_rows(self, X)
        return self.fit_.apply(rows)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return predict_labels(self, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map as JSON; `mcllo.load_calibrator` reads it."""
        save_calibrator(self, path)

    def _state(self) -> dict[str, Any]:
        return self.fit_.to_dict()

    def _restore(self, state: dict[str, Any]) -> None:
        self.fit_ = MCLLOFit.from_dict(state)
