"""`TemperatureScaling`: one number that makes all predictions bolder or more cautious."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence

import numpy as np

from .._ground.results import Floats
from .._input.predictions import Predictions
from .._input.probabilities import Simplex
from .._math.temperature import inverse_temperature
from ..exceptions import USE_A_PENALTY, ConvergenceWarning, Phrase, SeparationWarning
from ._base import Calibrator, check_choice
from ._linear_fit import LinearMap, transposed_scores


class TemperatureScaling(Calibrator):
    """Temperature scaling (Guo et al. 2017): ``softmax(z / T)`` with the T of largest likelihood.

    The most probable class never changes. Log probabilities and logits give the same map.

    Parameters
    ----------
    on : {"log_probs", "logits"}
        What X holds: probabilities, of which the logarithm is scaled, or logits. Logits serve
        models so sure of themselves that their probabilities are rounded to 0.
    classes, normalize, clip
        As in `Calibrator`.

    Attributes
    ----------
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

    method = "temperature"
    _absent = "its probability is only rescaled as all others are"
    _learned = (("inverse_temperature", float), ("n_iter", int))

    def __init__(
        self,
        *,
        on: str = "log_probs",
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.on = on
        self.clip = clip

    @property
    def temperature_(self) -> float:
        """T."""
        return 1.0 / self.inverse_temperature_

    def _check_options(self) -> None:
        check_choice("on", self.on, ("log_probs", "logits"))

    def _learn(self, predictions: Predictions) -> None:
        scores = transposed_scores(predictions)
        root = inverse_temperature(scores, predictions.codes, predictions.sample_weight)
        self.inverse_temperature_, self.n_iter_ = root.value, root.n_iter
        at = f"1 / T stopped at its bound {root.value:.2g}"
        if root.bound > 0:
            message = Phrase(
                "in every row the class that came true has the largest probability, so the "
                "likelihood rises as T goes to 0; {} and predictions become 0 or 1. Give more "
                "rows, or {}.",
                at,
                USE_A_PENALTY,
            )
            warnings.warn(SeparationWarning(message), stacklevel=3)
        elif root.bound < 0:
            advice = (
                "the classes that came true have lower probabilities than chance would give them, "
                f"so no positive temperature is best; {at} and predictions become equal for all "
                "classes. Check that the columns are in the order of the classes."
            )
            warnings.warn(advice, ConvergenceWarning, stacklevel=3)

    def _apply(self, simplex: Simplex) -> Floats:
        u = np.array(self.inverse_temperature_)
        return LinearMap(u, np.zeros(len(self.classes_))).apply(simplex)
