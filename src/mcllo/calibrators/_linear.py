"""Vector, matrix and Dirichlet calibration: three ridges on one map, `_fit/linear_fit.LinearMap`.

===============  =================================  ==========================================
`VectorScaling`  ``softmax(w * z + b)``             ``nll + penalty / 2 (|w - 1|^2 + |b|^2)``
`MatrixScaling`  ``softmax(W z + b)``               ``nll + penalty / 2 (|W - I|^2 + |b|^2)``
`Dirichlet-`     ``softmax(W log p + b)``           ``mean nll + lambda / (c (c - 1)) sum_{i != j}
`Calibration`                                       w_ij^2 + mu / c sum_j b_j^2``
===============  =================================  ==========================================

z are logits or log probabilities, lambda is `off_diagonal` and mu is `intercept`; Dirichlet
calibration leaves the diagonal free (ODIR, Kull et al. 2019).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from .._fit.linear_fit import LinearMap, check_penalty_strength, fit_linear_map
from .._utils.results import Floats
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from ._base import Calibrator


class LinearCalibrator(Calibrator):
    """Base of the methods whose map is a `LinearMap`.

    A class that no label has keeps its predicted probability; the others share the rest.

    Attributes
    ----------
    map_ : LinearMap
        Weights and intercepts, with the solver's steps and whether it converged.
    """

    _absent = "it keeps its predicted probability and the others share the rest"
    _remedy: ClassVar[str]
    map_: LinearMap

    @property
    def coef_(self) -> Floats:
        """Weights."""
        return self.map_.coef

    @property
    def intercept_(self) -> Floats:
        """Intercepts b."""
        return self.map_.intercept

    @property
    def _score_kind(self) -> str:
        """Of what the map is: "logits" or "log_probs"."""
        return getattr(self, "on", "log_probs")

    def _ridge_weights(self, predictions: Predictions) -> Floats:
        """Return the weights r of the penalty, as `fit_linear_map` takes them."""
        raise NotImplementedError

    def _learned_words(self) -> str:
        weights = "a weight" if self.map_.coef.ndim < 2 else "a row of weights"
        words = f"{weights} and a shift for each class"
        return words if self.map_.converged else f"{words} (not converged)"

    def _learn(self, predictions: Predictions) -> None:
        ridge = self._ridge_weights(predictions)
        self.map_ = fit_linear_map(predictions, self._score_kind, ridge, self._remedy)

    def _apply(self, simplex: Simplex) -> Floats:
        return self.map_.apply(simplex, self._score_kind)

    def _state(self) -> dict[str, Any]:
        return self.map_.to_dict()

    def _restore_state(self, state: dict[str, Any]) -> None:
        self.map_ = LinearMap.from_dict(state)


class Scaling(LinearCalibrator):
    """Base of vector and matrix scaling: the same ridge on every parameter."""

    _diagonal: ClassVar[bool]

    def __init__(
        self,
        *,
        on: str = "logits",
        penalty: float = 0.0,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.on = on
        self.penalty = penalty
        self.clip = clip

    def _check_options(self) -> None:
        super()._check_options()
        check_penalty_strength("penalty", self.penalty)

    def _ridge_weights(self, predictions: Predictions) -> Floats:
        n_classes = predictions.n_classes
        n_columns = (
            2 if self._diagonal else n_classes + 1
        )  # one weight, or all; and the intercept
        return np.full((n_classes, n_columns), float(self.penalty))


class VectorScaling(Scaling):
    """Vector scaling: ``softmax(w * z + b)`` of largest likelihood.

    Parameters
    ----------
    on : {"logits", "log_probs"}
        What X holds: logits, or probabilities whose logarithm takes their place. The two give
        different maps, because a number added to all logits of a row matters here.
    penalty : float
        Ridge ``penalty / 2 * (sum b^2 + sum (w - 1)^2)`` towards the identity. 0 is maximum
        likelihood; 1 is safe when rows are few or the estimate does not exist.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes,)
        w.
    intercept_ : ndarray of shape (n_classes,)
        b, summing to 0.

    See Also
    --------
    TemperatureScaling : One factor for all classes.
    MatrixScaling : A full matrix.
    mcllo.MCLLOCalibrator : Slopes of the log odds, the same for logits and probabilities.

    Notes
    -----
    The map is that of [1]_. It is no map of probabilities unless all factors are equal: adding a
    number to all logits of a row changes the result.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
           networks. Proceedings of the 34th International Conference on Machine Learning,
           1321-1330.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> true = 2.0 * logits + [0.5, 0.0, -0.5]
    >>> y = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    >>> scaling = VectorScaling().fit(logits, y)
    >>> bool(abs(scaling.coef_ - 2.0).max() < 0.2)
    True
    >>> bool(abs(scaling.intercept_ - [0.5, 0.0, -0.5]).max() < 0.2)
    True
    """

    method = "vector"
    _remedy = "Use VectorScaling(penalty=1.0)."
    _diagonal = True


class MatrixScaling(Scaling):
    """Matrix scaling: ``softmax(W z + b)`` of largest likelihood.

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
        Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_classes)
        W; row j makes class j's new score. The columns of ``W - I`` sum to 0: a number added to a
        whole column changes no probability.
    intercept_ : ndarray of shape (n_classes,)
        b, summing to 0.

    See Also
    --------
    VectorScaling : W a diagonal.
    DirichletCalibration : Of log probabilities, off-diagonal entries penalised.
    TemperatureScaling : One number.

    Notes
    -----
    The map is that of [1]_, which reports that it overfits with many classes. Columns of ``W - I``
    and b are reported with sum 0, as only differences between rows of W matter.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
           networks. Proceedings of the 34th International Conference on Machine Learning,
           1321-1330.

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

    method = "matrix"
    _remedy = "Use MatrixScaling(penalty=1.0)."
    _diagonal = False


class DirichletCalibration(LinearCalibrator):
    """Dirichlet calibration with off-diagonal and intercept regularisation.

    Parameters
    ----------
    off_diagonal : float
        Weight lambda of the mean square of W's off-diagonal entries beside the mean negative log
        likelihood. 0 is maximum likelihood; as it grows the map becomes vector scaling of log
        probabilities. The default is a compromise: sharp predictions of ten classes want 10,
        blurred ones of four classes 0.1. To choose it from data, search over powers of 10 with
        ``GridSearchCV(DirichletCalibration(), ..., scoring="neg_log_loss")``.
    intercept : float
        Weight mu of the mean square of the intercepts.
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_classes)
        W; row j makes class j's new score.
    intercept_ : ndarray of shape (n_classes,)
        b.

    See Also
    --------
    MatrixScaling : The same map of logits under a plain ridge.
    VectorScaling : Without off-diagonal entries.
    BetaCalibration : The case of two classes.
    mcllo.AutoCalibrator : Chooses between maps by cross-validation.

    Notes
    -----
    The map ``softmax(W log p + b)`` with the penalty called ODIR in [1]_. The means of squares are
    taken over the off-diagonal entries and over the intercepts, as the paper writes it; the
    authors' code sums instead by default.

    References
    ----------
    .. [1] M. Kull, M. Perello Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach (2019). Beyond
           temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet
           calibration. arXiv:1910.12656.

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

    method = "dirichlet"
    _remedy = 'Use MatrixScaling(on="log_probs", penalty=1.0).'

    def __init__(
        self,
        *,
        off_diagonal: float = 1.0,
        intercept: float = 0.01,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.clip = clip

    def _check_options(self) -> None:
        check_penalty_strength("off_diagonal", self.off_diagonal)
        check_penalty_strength("intercept", self.intercept)

    def _ridge_weights(self, predictions: Predictions) -> Floats:
        total = float(predictions.class_weight.sum())
        return odir_ridge(
            predictions.n_classes, total * self.off_diagonal, total * self.intercept
        )


def odir_ridge(n_classes: int, off_diagonal: float, intercept: float) -> Floats:
    """Return ODIR as weights r of ``1/2 sum r_jk (theta_jk - identity_jk)^2``, shape (c, c + 1)."""
    n_off_diagonal = n_classes * (n_classes - 1)
    ridge = np.full((n_classes, n_classes + 1), 2.0 * off_diagonal / n_off_diagonal)
    np.fill_diagonal(ridge, 0.0)
    ridge[:, -1] = 2.0 * intercept / n_classes
    return ridge
