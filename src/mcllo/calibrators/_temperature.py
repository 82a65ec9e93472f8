"""`TemperatureScaling`: one number that makes all predictions sharper or less sharp."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .._fit.linear_fit import LinearMap, transposed_scores
from .._model.temperature import fit_inverse_temperature
from .._utils.results import Floats
from .._utils.statements import warn
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from ..exceptions import ConvergenceWarning, SeparationWarning
from ._label_shift import PriorCalibrator


class TemperatureScaling(PriorCalibrator):
    """Temperature scaling: ``softmax(z / T)`` with the T of largest likelihood.

    The most probable class never changes. Log probabilities and logits give the same map.

    Parameters
    ----------
    on : {"log_probs", "logits"}
        What X holds: probabilities, of which the logarithm is scaled, or logits. Logits serve
        models so sure of themselves that their probabilities are rounded to 0.
    prior : {"fit", "keep", "unlabelled"} or array of shape (n_classes,)
        Class frequencies of the rows to come. "fit": the temperature is all that is done; "keep"
        leaves the mean probability of each class on the rows learned from as predicted; an array
        are known frequencies; "unlabelled" estimates them from the rows to recalibrate.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.

    Attributes
    ----------
    inverse_temperature_ : float
        1 / T; below 1 the predictions were overconfident.
    temperature_ : float
        T.

    See Also
    --------
    VectorScaling : A factor and a shift for each class.
    mcllo.MCLLOCalibrator : A slope and a shift for each class against the baseline.
    mcllo.AutoCalibrator : Chooses between maps by cross-validation.

    Notes
    -----
    The map is that of [1]_. The likelihood is concave in 1 / T, and its maximum is found as the
    root of the derivative instead of by a number of gradient steps. As ``log p`` and z differ by
    one number a row, probabilities do as well as logits. Frequencies of unlabelled rows are
    estimated by EM [2]_.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
           networks. Proceedings of the 34th International Conference on Machine Learning,
           1321-1330.
    .. [2] M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a classifier to
           new a priori probabilities: a simple procedure. Neural Computation 14:21-41.

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
    _warns_of_shift = False  # one number for all classes carries no frequencies over
    _has_intercepts = False
    _learned = (("inverse_temperature", float), ("n_iter", int))

    def __init__(
        self,
        *,
        on: str = "log_probs",
        prior: str | Sequence[float] = "fit",
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.on = on
        self.prior = prior
        self.clip = clip

    @property
    def temperature_(self) -> float:
        """T."""
        return 1.0 / self.inverse_temperature_

    def _learned_words(self) -> str:
        words = f"temperature {self.temperature_:.3g}"
        if abs(math.log(self.inverse_temperature_)) < 0.005:  # 1.00 as printed
            return f"{words}, which changes next to nothing"
        kind = "over" if self.temperature_ > 1.0 else "under"
        return f"{words}, as predictions were {kind}confident"

    def _learn(self, predictions: Predictions) -> None:
        scores = transposed_scores(predictions)
        root = fit_inverse_temperature(
            scores, predictions.codes, predictions.sample_weight
        )
        self.inverse_temperature_ = root.value
        self.n_iter_ = root.n_iter
        numbers = {"inverse_temperature": root.value}
        if root.bound > 0:
            message = (
                "in every row the class that came true has the largest probability, so the "
                "likelihood rises as T goes to 0; it stopped at its bound and predictions become "
                "0 or 1. Give more rows, or {use_a_penalty}."
            )
            warn(SeparationWarning(message, numbers=numbers, values={}))
        elif root.bound < 0:
            advice = (
                "the classes that came true have lower probabilities than chance would give them, "
                "so no positive temperature is best; 1 / T stopped at its bound and predictions "
                "become equal for all classes. Check that the columns are in the order of the "
                "classes."
            )
            warn(ConvergenceWarning(advice, numbers=numbers))

    def _apply(self, simplex: Simplex) -> Floats:
        factor = np.array(self.inverse_temperature_)
        no_intercept = np.zeros(len(self.classes_))
        return LinearMap(factor, no_intercept).apply(simplex)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), **self._prior_state()}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        self._restore_prior(state)
