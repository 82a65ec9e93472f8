"""`Identity`: the calibrator that changes nothing, for tables and as a yardstick."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ._base import predict_labels, read_rows, read_training, save_calibrator
from ._linear_fit import warn_absent


class Identity(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Return predictions as they are.

    Rows are validated like everywhere else and divided by their sum; zeros stay zeros.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows that do not sum to 1 and divide them by their sum.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.

    Examples
    --------
    >>> Identity().fit([[0.7, 0.3], [0.2, 0.8]], ["cat", "dog"]).predict_proba([[0.9, 0.1]])
    array([[0.9, 0.1]])
    """

    method: ClassVar[str] = "identity"
    input: ClassVar[str] = "probs"
    includes_identity: ClassVar[bool] = True
    needs_logs: ClassVar[bool] = False

    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
    ) -> None:
        self.classes = classes
        self.normalize = normalize

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Identity:
        """Validate predictions and labels and remember the classes.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes)
            Predicted probabilities.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Validated; has no effect.
        """
        predictions = read_training(self, X, y, sample_weight)
        warn_absent(predictions, "it keeps its predicted probability, as all classes do")
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities themselves, columns in the order of `classes_`."""
        return read_rows(self, X).probs.copy()

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return predict_labels(self, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classes as JSON; `mcllo.load_calibrator` reads it."""
        save_calibrator(self, path)

    def _state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""
