"""`TemperatureScaling`: one number that makes all predictions bolder or more cautious."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from .._ground.results import Floats
from .._math.temperature import Root, inverse_temperature
from ..exceptions import USE_A_PENALTY, ConvergenceWarning, Phrase, SeparationWarning
from ._base import check_choice, predict_labels, read_rows, read_training, save_calibrator
from ._linear_fit import LinearMap, input_of, transposed_scores, warn_absent


class TemperatureScaling(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Temperature scaling (Guo et al. 2017): ``softmax(z / T)`` with the T of largest likelihood.

    The most probable class never changes. Log probabilities and logits give the same map.

    Parameters
    ----------
    on : {"log_probs", "logits"}
        What X holds: probabilities, of which the logarithm is scaled, or logits. Logits serve
        models so sure of themselves that their probabilities are rounded to 0.
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
    inverse_temperature_ : float
        1 / T; below 1 the predictions were too bold.
    temperature_ : float
        T.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=1000)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> round(TemperatureScaling().fit(sharp, y).temperature_)
    2
    """

    method: ClassVar[str] = "temperature"
    includes_identity: ClassVar[bool] = True

    def __init__(
        self,
        *,
        on: str = "log_probs",
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        self.on = on
        self.classes = classes
        self.normalize = normalize
        self.clip = clip

    @property
    def input(self) -> str:
        """What X holds: "probs" or "logits"."""
        return input_of(self.on)

    @property
    def temperature_(self) -> float:
        """T."""
        return 1.0 / self.inverse_temperature_

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TemperatureScaling:
        """Find the temperature from predictions and labels.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes)
            Predicted probabilities, or logits when ``on="logits"``.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        """
        check_choice("on", self.on, ("log_probs", "logits"))
        predictions = read_training(self, X, y, sample_weight)
        warn_absent(predictions, "its probability is only rescaled as all others are")
        root = inverse_temperature(
            transposed_scores(predictions), predictions.codes, predictions.sample_weight
        )
        self.inverse_temperature_ = root.value
        self.n_iter_ = root.n_iter
        _warn(root)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        rows = read_rows(self, X)
        u = np.array(self.inverse_temperature_)
        return LinearMap(u, np.zeros(len(self.classes_))).apply(rows)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return predict_labels(self, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map as JSON; `mcllo.load_calibrator` reads it."""
        save_calibrator(self, path)

    def _state(self) -> dict[str, Any]:
        return {"inverse_temperature": self.inverse_temperature_, "n_iter": self.n_iter_}

    def _restore(self, state: dict[str, Any]) -> None:
        self.inverse_temperature_ = float(state["inverse_temperature"])
        self.n_iter_ = int(state["n_iter"])


def _warn(root: Root) -> None:
    if root.bound == 0:
        return
    at = f"1 / T stopped at its bound {root.value:.2g}"
    if root.bound > 0:
        message = Phrase(
            "in every row the class that came true has the largest probability, so the likelihood "
            "rises as T goes to 0; {} and predictions become 0 or 1. Give more rows, or {}.",
            at,
            USE_A_PENALTY,
        )
        warnings.warn(SeparationWarning(message), stacklevel=3)
        return
    advice = (
        "the classes that came true have lower probabilities than chance would give them, so no "
        f"positive temperature is best; {at} and predictions become equal for all classes. Check "
        "that the columns are in the order of the classes."
    )
    warnings.warn(advice, ConvergenceWarning, stacklevel=3)
