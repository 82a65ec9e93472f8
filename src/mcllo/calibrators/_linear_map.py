r"""``softmax(W z + b)``: the map behind temperature, vector, matrix scaling and Dirichlet calibration.

``z`` are logits, or log probabilities. Arrays over rows are transposed, as in ``_model.py``.

====================  ===================================================================
scores                ``z_ji``: logits or log probabilities                        (c, n)
features              ``x_j = (z_j, 1)`` (vector: class j sees its own score)      (2, n)
                      ``x_j = (z_1, ..., z_c, 1)`` (matrix: all scores)            (c + 1, n)
parameters            ``theta_j``, one row per class: weights, then the intercept  (c, d)
eta                   ``eta_ji = theta_j . x_ji``
probabilities         ``g_i = softmax(eta_i)``
negative log lik.     ``sum_i w_i (log sum_j exp eta_ji - eta_{y_i, i})``
gradient              ``sum_i w_i (g_ji - 1[y_i = j]) x_ji``
Hessian, block (j,k)  ``sum_i w_i g_ji (1[j = k] - g_ki) x_ji x_ki'``
====================  ===================================================================

Adding one vector to every ``theta_j`` of a matrix map (one number to every intercept of a vector
map) changes no probability; whoever minimises must choose, and does so in ``_linear_fit.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._model import CHUNK_ELEMENTS, Terms
from .._predictions import Predictions
from .._probabilities import Simplex

Floats = NDArray[np.float64]


def transposed_scores(source: Predictions | Simplex) -> Floats:
    """Return z, shape (c, n), a new array: the logits when there are any, else ``log(probs)``."""
    scores = np.empty(source.probs.shape[::-1])
    if source.logits is None:
        np.log(source.probs.T, out=scores)
    else:
        scores[:] = source.logits.T
    return scores


def softmax_columns(eta: Floats) -> Floats:
    """Replace each column by its softmax; return the columns' ``log sum exp``."""
    top = eta.max(axis=0)
    eta -= top
    np.exp(eta, out=eta)
    total: Floats = eta.sum(axis=0)
    eta /= total
    np.log(total, out=total)
    total += top
    return total


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A fitted map and how its fit ended.

    Attributes
    ----------
    coef : ndarray
        W: shape () for one common weight, (c,) for a diagonal, (c, c) for a matrix.
    intercept : ndarray of shape (c,)
        b, summing to 0.
    absent : tuple of int
        Columns that no label had. They keep their predicted probability, the other columns share
        the rest; their entries of W and b are the identity's and are not used.
    n_iter : int
        Steps of the solver.
    converged : bool
        Whether the solver met its tolerance.
    separated : bool
        Whether the rows leave the best parameters without a finite value, or all but so.
    """

    coef: Floats
    intercept: Floats
    absent: tuple[int, ...] = ()
    n_iter: int = 0
    converged: bool = True
    separated: bool = False

    def apply(self, simplex: Simplex) -> Floats:
        """Return the mapped probabilities, shape (n, c)."""
        n_samples, n_classes = simplex.probs.shape
        present = np.setdiff1d(np.arange(n_classes), self.absent)
        mapped = simplex.probs.copy()
        rows = max(256, CHUNK_ELEMENTS // n_classes)
        scores = transposed_scores(simplex)
        for start in range(0, n_samples, rows):
            eta = self._eta(scores[:, start : start + rows], present)
            softmax_columns(eta)
            block = mapped[start : start + rows]
            if self.absent:
                eta *= block[:, present].sum(axis=1)
                block[:, present] = eta.T
            else:
                block[:] = eta.T
        return mapped

    def _eta(self, scores: Floats, present: NDArray[np.intp]) -> Floats:
        if self.coef.ndim == 2:
            eta: Floats = self.coef[present] @ scores
        else:
            eta = np.broadcast_to(self.coef, len(scores))[present, None] * scores[present]
        eta += self.intercept[present, None]
        return eta

    def to_dict(self) -> dict[str, object]:
        """Return plain Python values."""
        return {
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
            "absent": list(self.absent),
            "n_iter": self.n_iter,
            "converged": self.converged,
            "separated": self.separated,
        }

    @classmethod
    def from_dict(cls, content: dict[str, object]) -> LinearMap:
        """Return the map that `to_dict` described."""
        fields = dict(content)
        coef = np.array(fields.pop("coef"), dtype=np.float64)
        intercept = np.array(fields.pop("intercept"), dtype=np.float64)
        absent = tuple(fields.pop("absent"))  # type: ignore[arg-type, var-annotated]
        return cls(coef, intercept, absent, **fields)  # type: ignore[arg-type]


class LinearMapLoss:
    """``theta -> Terms`` of the negative log likelihood for fixed scores; buffers are reused.

    Parameters
    ----------
    scores : ndarray of shape (c, n)
        z.
    codes : ndarray of shape (n,)
        Which of the `m` modelled classes came true.
    weight : ndarray of shape (n,), optional
        Row weights.
    classes : ndarray of shape (m,), optional
        Columns of the modelled classes; by default all c.
    diagonal : bool
        Vector map (features ``z_j, 1``) rather than matrix map (features ``z_1 .. z_c, 1``).
    """

    def __init__(
        self,
        scores: Floats,
        codes: NDArray[np.intp],
        weight: Floats | None = None,
        *,
        classes: NDArray[np.intp] | None = None,
        diagonal: bool = False,
    ) -> None:
        if diagonal and classes is not None:
            scores = scores[classes]
        self.scores, self.diagonal, self.n_samples = scores, diagonal, len(codes)
        self.root = np.ones(len(codes)) if weight is None else np.sqrt(weight)
        n_modelled = len(scores) if classes is None else len(classes)
        self.shape = (n_modelled, 2 if diagonal else len(scores) + 1)
        size = n_modelled * self.shape[1]
        self._rows = min(self.n_samples, max(256, CHUNK_ELEMENTS // size))
        self._features = np.ones((n_modelled if diagonal else 1, self.shape[1], self._rows))
        self._products = np.empty((*self.shape, self._rows))
        self.statistic = self._label_sums(codes, weight)

    def __call__(self, theta: Floats) -> Terms:
        """Return value, gradient and Hessian at `theta`, flat: class after class."""
        m, d = self.shape
        value, gram, blocks = 0.0, np.zeros((m * d, m * d)), np.zeros((m, d, d))
        for start in range(0, self.n_samples, self._rows):
            features, root, g, total = self._chunk(theta, start)
            value += float(total @ (root * root))
            g *= root
            products = np.multiply(
                g[:, None, :], features, out=self._products[..., : len(root)]
            ).reshape(m * d, -1)
            gram += products @ products.T
            blocks += products.reshape(m, d, -1) @ (features * root).transpose(0, 2, 1)
        hessian = -gram
        for j in range(m):
            hessian[j * d : (j + 1) * d, j * d : (j + 1) * d] += blocks[j]
        gradient = (blocks[:, :, -1] - self.statistic).ravel()  # the last feature is 1
        return Terms(value - float(theta @ self.statistic.ravel()), gradient, hessian)

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return what `__call__` does, without the Hessian."""
        value, gradient = -float(theta @ self.statistic.ravel()), -self.statistic
        for start in range(0, self.n_samples, self._rows):
            features, root, g, total = self._chunk(theta, start)
            weight = root * root
            value += float(total @ weight)
            g *= weight
            if self.diagonal:
                gradient = gradient + np.einsum("ji,jki->jk", g, features)
            else:
                gradient = gradient + g @ features[0].T
        return value, gradient.ravel()

    def feature_gram(self) -> Floats:
        """Return ``sum_i w_i x_ji x_ji'``, shape (m, d, d), or (1, d, d) when all share it."""
        gram = np.zeros((len(self._features), self.shape[1], self.shape[1]))
        for start in range(0, self.n_samples, self._rows):
            features, root = self._design(start)
            scaled = features * root
            gram += scaled @ scaled.transpose(0, 2, 1)
        return gram

    def _design(self, start: int) -> tuple[Floats, Floats]:
        """Return the features of a chunk, shape (m or 1, d, rows), and the roots of its weights."""
        scores = self.scores[:, start : start + self._rows]
        features = self._features[..., : scores.shape[1]]
        if self.diagonal:
            features[:, 0] = scores
        else:
            features[0, :-1] = scores
        return features, self.root[start : start + self._rows]

    def _chunk(self, theta: Floats, start: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return a chunk's features, weight roots, probabilities and ``log sum exp``."""
        features, root = self._design(start)
        rows = theta.reshape(self.shape)
        if self.diagonal:
            eta = rows[:, :1] * features[:, 0]
            eta += rows[:, 1:]
        else:
            eta = rows @ features[0]
        return features, root, eta, softmax_columns(eta)

    def _label_sums(self, codes: NDArray[np.intp], weight: Floats | None) -> Floats:
        """Return ``sum_i w_i 1[y_i = j] x_ji``, all that the loss knows of the labels."""
        m, d = self.shape
        sums = np.empty((m, d))
        sums[:, -1] = np.bincount(codes, weights=weight, minlength=m)
        if self.diagonal:
            own = self.scores[codes, np.arange(len(codes))]
            own *= 1.0 if weight is None else weight
            sums[:, 0] = np.bincount(codes, weights=own, minlength=m)
            return sums
        for k, scores in enumerate(self.scores):
            weighted = scores if weight is None else scores * weight
            sums[:, k] = np.bincount(codes, weights=weighted, minlength=m)
        return sums
