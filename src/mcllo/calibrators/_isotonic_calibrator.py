"""`IsotonicCalibration`: one-vs-rest isotonic regression (Zadrozny and Elkan 2002).

=================  ==========================================================================
answer of class k  ``q_k = f_k(x_k)``, f_k the least-squares fit of ``1{y = k}`` on ``x_k`` among
                   functions that never fall; straight lines between its knots, constant outside
prediction         ``q_k / sum_j q_j``; ``1 / c`` for each class where every q_k is 0
=================  ==========================================================================
"""

from __future__ import annotations

import numpy as np

from .._utils.results import Floats
from .._validation.predictions import Predictions
from ._base import OneVsRest, list_of_floats_from_json


class IsotonicCalibration(OneVsRest):
    """Isotonic regression of every class against the rest, rows then divided by their sum.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.

    Attributes
    ----------
    knots_ : list of ndarray of shape (2, n_knots)
        Where each class's function bends: probabilities, and its values there.

    See Also
    --------
    HistogramBinning : Steps in bins.
    BetaCalibration : A smooth function for each class.
    mcllo.isotonic_curve : The same regression, as a reliability diagram.

    Notes
    -----
    Isotonic regression as in [1]_, of each class against the rest. A class's function is constant
    beyond the smallest and the largest probability that it was fitted to. Probabilities of exactly
    0 and 1 occur, so that the log loss of new rows may be infinite.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan (2002). Transforming classifier scores into accurate multiclass
           probability estimates. Proceedings of the 8th ACM SIGKDD International Conference on
           Knowledge Discovery and Data Mining, 694-699.

    Examples
    --------
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.2, 0.8]]
    >>> isotonic = IsotonicCalibration().fit(X, [0, 1, 0, 1, 1])
    >>> isotonic.predict_proba([[0.8, 0.2], [0.95, 0.05]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """

    method = "isotonic"
    _learned = (("knots", list_of_floats_from_json), ("absent", tuple))

    def _learned_words(self) -> str:
        counts = [at.size for at, _ in self.knots_]
        return f"a rising curve for each class, of {min(counts)} to {max(counts)} knots"

    def _learn_each_class(self, predictions: Predictions) -> None:
        from sklearn.isotonic import IsotonicRegression

        self.knots_ = []
        for k in range(predictions.n_classes):
            regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            values = predictions.probs[:, k]
            target = (predictions.codes == k).astype(np.float64)
            regression.fit(values, target, sample_weight=predictions.sample_weight)
            knots = np.stack([regression.X_thresholds_, regression.y_thresholds_])
            self.knots_.append(knots)

    def _recalibrate_each_class(self, probs: Floats) -> Floats:
        answers = np.empty_like(probs)
        for k, (at, value) in enumerate(self.knots_):
            answers[:, k] = np.interp(probs[:, k], at, value)
        return answers
