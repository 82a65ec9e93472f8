"""`HistogramBinning`: one-vs-rest histogram binning with normalisation (Guo et al. 2017, 4.2).

=================  ==========================================================================
bins               those of ``metrics/_bins.py``, for each class's column of probabilities
answer of bin m    ``q_mk = (s_mk + a pi_k) / (n_mk + a)``: n rows in the bin, s of class k among
                   them, pi_k the share of class k, a = `smoothing`
empty bin          the midpoint of its edges; or 0, pi_k, or the probability itself
prediction         ``q_k = q_{m(x_k), k}``, then ``q_k / sum_j q_j``
=================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from .._utils.results import Floats
from .._validation.predictions import Predictions
from ..exceptions import InputError
from ..metrics._bins import Binning, NBins, bin_index, inner_bin_edges
from ._base import OneVsRest, ZeroRow, check_choice, list_of_floats_from_json

EMPTY_BIN_RULES = ("midpoint", "zero", "prior", "identity")


class HistogramBinning(OneVsRest):
    """Histogram binning of every class's probability, rows then divided by their sum.

    The most probable class may change, and probabilities become 0 where a bin never held the class.

    Parameters
    ----------
    n_bins : int or "sqrt"
        Bins per class; "sqrt" is ``ceil(sqrt(n))``.
    binning : {"width", "mass"}
        Bins of equal width, or of equally many rows.
    empty : {"midpoint", "zero", "prior", "identity"}
        The answer of a bin without rows: the midpoint of its edges, 0, the class's share of the
        labels, or the probability itself.
    zero_row : {"original", "uniform"}
        The answer to a row whose bins all say 0: the row itself, or 1 / c for each class.
    smoothing : float
        Laplace smoothing: a bin with rows counts as having this many more, of which the class's
        share came true.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.

    Attributes
    ----------
    edges_ : list of ndarray
        Inner edges of each class's bins; bins are closed on the right.
    counts_ : list of ndarray
        Rows (their weight) in each bin of each class.
    table_ : list of ndarray
        Answer of each bin of each class; NaN where it is the probability itself.

    See Also
    --------
    IsotonicCalibration : Steps that never fall, without bins to choose.
    BetaCalibration : A smooth function for each class.
    mcllo.reliability_curve : The same bins, as a diagram.

    Notes
    -----
    Histogram binning [1]_ of each class against the rest, the extension to more than two classes of
    [2]_. The default of ten bins is a choice of this package. The bin of a value is found in the
    same way in fitting and predicting, and is closed on the right.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan (2001). Obtaining calibrated probability estimates from decision
           trees and naive Bayesian classifiers. Proceedings of the 18th International Conference on
           Machine Learning, 609-616.
    .. [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
           networks. Proceedings of the 34th International Conference on Machine Learning,
           1321-1330.

    Examples
    --------
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]]
    >>> binned = HistogramBinning(n_bins=2).fit(X, [0, 0, 1, 1, 1])
    >>> binned.table_[0]
    array([0.        , 0.66666667])
    >>> binned.predict_proba([[0.6, 0.4]]).round(3)
    array([[0.667, 0.333]])
    """

    method = "histogram"
    includes_identity = False
    _learned = (
        ("edges", list_of_floats_from_json),
        ("counts", list_of_floats_from_json),
        ("table", list_of_floats_from_json),
        ("absent", tuple),
    )

    def __init__(
        self,
        *,
        n_bins: NBins = 10,
        binning: Binning = "width",
        empty: str = "midpoint",
        zero_row: ZeroRow = "original",
        smoothing: float = 0.0,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.n_bins = n_bins
        self.binning = binning
        self.empty = empty
        self.zero_row = zero_row
        self.smoothing = smoothing

    def _check_options(self) -> None:
        check_choice("empty", self.empty, EMPTY_BIN_RULES)
        check_choice("zero_row", self.zero_row, ("original", "uniform"))
        if not 0.0 <= self.smoothing < np.inf:
            raise InputError(
                f"smoothing must be finite and >= 0; got smoothing={self.smoothing}."
            )

    def _learned_words(self) -> str:
        n_bins = [len(counts) for counts in self.counts_]
        n_filled = sum(int((counts > 0.0).sum()) for counts in self.counts_)
        return f"{n_filled} of {sum(n_bins)} bins hold rows"

    def _learn_each_class(self, predictions: Predictions) -> None:
        self.edges_ = []
        self.counts_ = []
        self.table_ = []
        for k in range(predictions.n_classes):
            edges, counts, answers = self._fit_bins_of_class(predictions, k)
            self.edges_.append(edges)
            self.counts_.append(counts)
            self.table_.append(answers)

    def _fit_bins_of_class(
        self, predictions: Predictions, k: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return inner edges, counts and answers of the bins of class k."""
        values = predictions.probs[:, k]
        edges = inner_bin_edges(
            values, self.n_bins, self.binning, predictions.sample_weight
        )
        bin_of_row = bin_index(values, edges)
        n_bins = len(edges) + 1
        weight = predictions.row_weight
        weight_of_class = weight * (predictions.codes == k)
        counts = np.bincount(bin_of_row, weight, n_bins).astype(np.float64)
        counts_of_class = np.bincount(bin_of_row, weight_of_class, n_bins)

        share = counts_of_class.sum() / counts.sum()
        smoothed_of_class = counts_of_class + self.smoothing * share
        smoothed = counts + self.smoothing
        with np.errstate(
            invalid="ignore"
        ):  # 0 / 0 in bins without rows, which is not taken
            answers = smoothed_of_class / smoothed
        ends = np.concatenate([[0.0], edges, [1.0]])
        midpoints = 0.5 * (ends[:-1] + ends[1:])
        where_empty = {
            "midpoint": midpoints,
            "zero": 0.0,
            "prior": share,
            "identity": np.nan,
        }
        answers = np.where(counts > 0.0, answers, where_empty[self.empty])
        return edges, counts, answers

    def _recalibrate_each_class(self, probs: Floats) -> Floats:
        answers = np.empty_like(probs)
        for k, table in enumerate(self.table_):
            bin_of_row = bin_index(probs[:, k], self.edges_[k])
            answers[:, k] = table[bin_of_row]
        return np.where(np.isnan(answers), probs, answers)
