"""`MatrixScaling`: a full linear map of the logits."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ._contract import check_choice, predict_labels, read_rows, read_training, save_calibrator
from ._linear_fit import check_penalty, fit_map
from ._linear_map import LinearMap, input_of

Floats = NDArray[np.float64]


class MatrixScaling(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Matrix scaling (Guo et al. 2017): ``softmax(W z + b)`` of largest likelihood.

    With c classes that is ``(c - 1)(c + 1)`` parameters: more than a few hundred rows determine
    when c is 10. Compare log losses on rows of their own, or give a penalty.

    Parameters
    ----------
    on : {"logits", "log_probs"}
        What X holds: logits, or probabilities whose logarithm takes their place. The two give
        different maps, because a number added to all logits of a row matters here.
    penalty : float
        Ridge ``penalty / 2 * (sum b^2 + sum (W - I)^2)`` towards the identity. 0 is maximum
        likelihood; 1 is safe when rows are few or the estimate does not exist.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Floor for small probabilities; by default rows with a 0 get the floor 1e-6.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.
    coef_ : ndarray of shape (n_classes, n_classes)
        W; row j makes class j's new score. The columns of ``W - I`` sum to 0: a number added to a
        whole column changes no probability.
    intercept_ : ndarray of shape (n_classes,)
        b, summing to 0.
    map_ : LinearMap
        Both, with the solver's steps and whether it converged.

    Notes
    -----
    A class that no label has keeps its predicted probability; the others share the rest.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> true = logits @ np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> y = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    >>> W = MatrixScaling().fit(logits, y).coef_
    >>> (W - W[2]).round()[:2]  # against the last class
    array([[ 1.,  1., -1.],
           [ 0.,  2., -1.]])
    """

    method: ClassVar[str] = "matrix"
    includes_identity: ClassVar[bool] = True

    def __init__(
        self,
        *,
        on: str = "logits",
        penalty: float = 0.0,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        self.on = on
        self.penalty = penalty
        self.classes = classes
        self.normalize = normalize
        self.clip = clip

    @property
    def input(self) -> str:
        """What X holds: "logits" or "probs"."""
        return input_of(self.on)

    @property
    def coef_(self) -> Floats:
        """Weights W."""
        return self.map_.coef

    @property
    def intercept_(self) -> Floats:
        """Intercepts b."""
        return self.map_.intercept

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MatrixScaling:
        """Estimate the map from logits (or probabilities) and labels.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes)
            Logits, or probabilities when ``on="log_probs"``.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        """
        check_choice("on", self.on, ("logits", "log_probs"))
        check_penalty("penalty", self.penalty)
        predictions = read_training(self, X, y, sample_weight)
        c = predictions.n_classes
        ridge = np.full((c, c + 1), float(self.penalty))
        self.map_ = fit_map(predictions, self.on, ridge, "Use MatrixScaling(penalty=1.0).")
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        rows = read_rows(self, X)
        return self.map_.apply(rows, self.on)

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
