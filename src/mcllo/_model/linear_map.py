"""The negative log likelihood of ``softmax(W z + b)`` with its derivatives; it adds over rows.

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

With the rows ``a_jk = sqrt(w) g_j x_jk`` stacked, the second part of the Hessian is one gram
product ``-A A'`` and the first, the diagonal blocks, ``A_j (sqrt(w) x_j)'``.

Where parameters are many the Hessian is not made. Its blocks on a single class, ``sum_i v_ji x_i
x_i'`` with ``v_ji = w_i g_ji (1 - g_ji)``, are all but made by the rows of largest v_ji
(`class_blocks`): the others count as rows of the mean kind.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from .kernel import CHUNK_ELEMENTS, Derivatives, softmax

TINY = 1e-300
"""Probability of a label down to which its loss is known better from it than from eta."""
N_SAMPLED_ROWS_PER_FEATURE = 100
"""Rows for each feature that `class_blocks` looks at."""
N_COUNTED_ROWS_PER_FEATURE = 5
"""Rows for each feature that `class_blocks` counts one by one."""


class LinearMapLoss:
    """``theta -> Derivatives`` of the negative log likelihood for fixed scores; buffers are reused.

    `classes` are the columns of the m classes that are modelled, by default all c, and `codes` say
    which of these came true. ``diagonal=True`` is the vector map, otherwise the matrix map.
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
        self.scores, self.codes, self.diagonal = scores, codes, diagonal
        self.n_samples, self.weighted = len(codes), weight is not None
        self.root = np.ones(len(codes)) if weight is None else np.sqrt(weight)
        n_modelled = len(scores) if classes is None else len(classes)
        self.shape = (n_modelled, 2 if diagonal else len(scores) + 1)
        size = n_modelled * self.shape[1]
        self._rows = min(self.n_samples, max(256, CHUNK_ELEMENTS // size))
        self._light = min(self.n_samples, max(256, CHUNK_ELEMENTS // max(self.shape)))
        self._products = np.empty(size * self._rows)
        self.statistic = self._label_sums(weight)

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`, flat: class after class."""
        m, d = self.shape
        value, gram, blocks = 0.0, np.zeros((m * d, m * d)), np.zeros((m, d, d))
        for part in self._parts(self._rows):
            features, root = self._design(part), self.root[part]
            g = self._eta(theta, self.scores[:, part])
            value += float(self._losses(theta, g, part) @ (root * root))
            g *= root
            stack = self._products[: m * d * len(root)].reshape(m, d, -1)
            np.multiply(g[:, None, :], features, out=stack)
            rows = stack.reshape(m * d, -1)
            gram += rows @ rows.T
            blocks += self._blocks(stack, features, root)
        hessian = -gram
        for j in range(m):
            hessian[j * d : (j + 1) * d, j * d : (j + 1) * d] += blocks[j]
        gradient = blocks[:, :, -1] - self.statistic  # the last feature is 1
        return Derivatives(value, gradient.ravel(), hessian)

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return what `__call__` does, without the Hessian; labels enter by their sums alone."""
        rounded = theta.astype(self.scores.dtype)  # as in eta: else values err by as much
        value, gradient = -float(rounded @ self.statistic.ravel()), -self.statistic
        for part in self._parts(self._light):
            scores, g = self.scores[:, part], self._eta(theta, self.scores[:, part])
            if self.weighted:
                weight = self.root[part] ** 2
                value += float(softmax(g) @ weight)
                g *= weight
            else:
                value += float(softmax(g).sum(dtype=np.float64))
            if self.diagonal:
                gradient[:, 0] += np.einsum("ji,ji->j", g, scores)
            else:
                gradient[:, :-1] += g @ scores.T
            gradient[:, -1] += g.sum(axis=1)
        return value, gradient.ravel()

    def curvature(self, theta: Floats, along: Floats) -> float:
        """Return ``d' H d`` for the direction d = `along`: the rows' variances of d's eta."""
        total = 0.0
        for part in self._parts(self._light):
            g, t = (self._eta(flat, self.scores[:, part]) for flat in (theta, along))
            softmax(g)
            t -= np.einsum("ji,ji->i", g, t)
            total += float(np.einsum("ji,ji,ji->i", g, t, t) @ self.root[part] ** 2)
        return total

    def class_blocks(self, theta: Floats, gram: Floats) -> Floats:
        """Return the Hessian's blocks on single classes, about, shape (m, d, d); `feature_gram`."""
        m, d = self.shape
        step = max(1, self.n_samples // (N_SAMPLED_ROWS_PER_FEATURE * d))
        some = slice(None, None, step)
        root = self.root[some]
        n, counted = len(root), min(len(root), N_COUNTED_ROWS_PER_FEATURE * d)
        g = self._eta(theta, self.scores[:, some])
        softmax(g)
        spread = g * (1.0 - g)
        spread *= step * root * root
        most = np.argpartition(spread, n - counted, axis=1)[:, n - counted :]
        own = np.take_along_axis(spread, most, axis=1)
        rest = spread.sum(axis=1) - own.sum(axis=1)
        blocks = np.maximum(rest, 0.0)[:, None, None] * (gram / (self.root @ self.root))
        rows = np.ascontiguousarray(self._design(some).transpose(0, 2, 1))
        for j in range(m):
            x = rows[j if self.diagonal else 0][most[j]]
            blocks[j] += (x.T * own[j]) @ x
        return blocks

    def feature_gram(self) -> Floats:
        """Return ``sum_i w_i x_ji x_ji'``, shape (m, d, d), or (1, d, d) when all share it."""
        d = self.shape[1]
        gram = np.zeros((len(self.scores) if self.diagonal else 1, d, d))
        for part in self._parts(self._rows):
            scaled = self._design(part) * self.root[part]
            gram += scaled @ scaled.transpose(0, 2, 1)
        return gram

    def _parts(self, rows: int) -> Iterator[slice]:
        return (slice(start, start + rows) for start in range(0, self.n_samples, rows))

    def _design(self, part: slice) -> Floats:
        """Return the features of these rows, shape (m or 1, d, rows)."""
        scores = self.scores[:, part]
        scores = scores[:, None] if self.diagonal else scores[None]
        return np.concatenate([scores, np.ones((len(scores), 1, scores.shape[2]))], axis=1)

    def _eta(self, theta: Floats, scores: Floats) -> Floats:
        theta = theta.reshape(self.shape).astype(scores.dtype)
        eta: Floats = theta[:, :1] * scores if self.diagonal else theta[:, :-1] @ scores
        eta += theta[:, -1:]
        return eta

    def _losses(self, theta: Floats, eta: Floats, part: slice) -> Floats:
        """Replace eta by the probabilities; return the rows' negative log likelihoods."""
        logs, own = softmax(eta), (self.codes[part], np.arange(eta.shape[1]))
        p = eta[own]
        if p.min() > TINY:  # small losses keep their digits
            return -np.log(p)
        return logs - self._eta(theta, self.scores[:, part])[own]

    def _blocks(self, stack: Floats, features: Floats, root: Floats) -> Floats:
        """Return ``sum_i w_i g_ji x_ji x_ji'`` of a chunk, shape (m, d, d)."""
        m, d = self.shape
        if not self.diagonal:
            blocks: Floats = stack.reshape(m * d, -1) @ (features[0] * root).T
            return blocks.reshape(m, d, d)
        sums = stack.reshape(m * d, -1) @ root
        squares = np.einsum("ji,ji->j", stack[:, 0], features[:, 0] * root)
        first, last = sums.reshape(m, d).T
        return np.array([[squares, first], [first, last]]).transpose(2, 0, 1)

    def _label_sums(self, weight: Floats | None) -> Floats:
        """Return ``sum_i w_i 1[y_i = j] x_ji``, the labels' part of the gradient."""
        codes, m, sums = self.codes, self.shape[0], np.empty(self.shape)
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
