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
(`approximate_class_blocks`): the others count as rows of the mean kind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Floats
from .kernel import NO_HESSIAN, Derivatives, row_chunks, softmax_in_place

N_SAMPLED_ROWS_PER_FEATURE = 100
"""Rows for each feature that `approximate_class_blocks` looks at. A round number."""
N_COUNTED_ROWS_PER_FEATURE = 5
"""Rows for each feature that `approximate_class_blocks` counts one by one. A round number."""


class LinearMapLoss:
    """``theta -> Derivatives`` of the negative log likelihood for fixed scores; adds over rows.

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
        n_modelled = len(scores) if classes is None else len(classes)
        n_features = 2 if diagonal else len(scores) + 1
        self.scores = scores
        self.codes = codes
        self.diagonal = diagonal
        self.n_samples = len(codes)
        self.weight = weight
        self.root = np.ones(self.n_samples) if weight is None else np.sqrt(weight)
        self.shape = (n_modelled, n_features)
        self.statistic = self._feature_sums_by_label()

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`, flat: class after class."""
        m, d = self.shape
        value = 0.0
        gram = np.zeros((m * d, m * d))
        blocks = np.zeros((m, d, d))
        # larger arrays are handed out page by page, as in `kernel.log_partition`
        for rows in row_chunks(self.n_samples, 2 * m * d):
            features = self._features_of_rows(rows)
            root = self.root[rows]
            g = self._linear_predictor(theta, self.scores[:, rows])
            losses = self._softmax_and_row_losses(
                theta, g, rows
            )  # g are the probabilities from here on
            value += float(losses @ root**2)
            g *= root
            a = g[:, None, :] * features
            flat = a.reshape(m * d, -1)
            gram += flat @ flat.T
            blocks += self._weighted_feature_blocks(a, features, root)
        hessian = np.negative(gram, out=gram)
        for j in range(m):
            own = slice(j * d, (j + 1) * d)
            hessian[own, own] += blocks[j]
        gradient = blocks[:, :, -1] - self.statistic  # the last feature is 1
        return Derivatives(value, gradient.ravel(), hessian)

    def value_and_gradient(self, theta: Floats) -> Derivatives:
        """Return value and gradient alone; labels enter by their sums."""
        value = -float(theta.ravel() @ self.statistic.ravel())
        gradient = -self.statistic
        for rows in row_chunks(self.n_samples, max(self.shape)):
            scores = self.scores[:, rows]
            g = self._linear_predictor(theta, scores)
            log_sums = softmax_in_place(g)
            if self.weight is None:
                value += float(log_sums.sum())
            else:
                value += float(log_sums @ self.weight[rows])
                g *= self.weight[rows]
            if self.diagonal:
                gradient[:, 0] += np.einsum("ji,ji->j", g, scores)
            else:
                gradient[:, :-1] += g @ scores.T
            gradient[:, -1] += g.sum(axis=1)
        return Derivatives(value, gradient.ravel(), NO_HESSIAN)

    def directional_curvature(self, theta: Floats, direction: Floats) -> float:
        """Return ``d' H d`` for the direction d = `direction`: the rows' variances of d's eta."""
        total = 0.0
        for rows in row_chunks(self.n_samples, max(self.shape)):
            g = self._linear_predictor(theta, self.scores[:, rows])
            softmax_in_place(g)
            slope = self._linear_predictor(direction, self.scores[:, rows])
            slope -= np.einsum("ji,ji->i", g, slope)
            variance = np.einsum("ji,ji,ji->i", g, slope, slope)
            total += float(variance @ self.root[rows] ** 2)
        return total

    def approximate_class_blocks(self, theta: Floats, feature_gram: Floats) -> Floats:
        """Return the Hessian's blocks on single classes, about, shape (m, d, d).

        `feature_gram` is what the method returns. Of some of the rows those of largest v_ji are
        counted one by one; the others count as rows of the mean kind.
        """
        m, d = self.shape
        step = max(1, self.n_samples // (N_SAMPLED_ROWS_PER_FEATURE * d))
        sampled = slice(None, None, step)
        root = self.root[sampled]
        n_sampled = len(root)
        n_counted = min(n_sampled, N_COUNTED_ROWS_PER_FEATURE * d)
        g = self._linear_predictor(theta, self.scores[:, sampled])
        softmax_in_place(g)
        v = g * (1.0 - g)
        v *= step * root**2
        counted = np.argpartition(v, n_sampled - n_counted, axis=1)[
            :, n_sampled - n_counted :
        ]
        counted_v = np.take_along_axis(v, counted, axis=1)
        rest = np.maximum(v.sum(axis=1) - counted_v.sum(axis=1), 0.0)
        total_weight = self.root @ self.root
        blocks = rest[:, None, None] * (feature_gram / total_weight)
        features = np.ascontiguousarray(
            self._features_of_rows(sampled).transpose(0, 2, 1)
        )
        for j in range(m):
            x = features[j if self.diagonal else 0][counted[j]]
            blocks[j] += (x.T * counted_v[j]) @ x
        return blocks

    def feature_gram(self) -> Floats:
        """Return ``sum_i w_i x_ji x_ji'``, shape (m, d, d), or (1, d, d) when all share it."""
        m, d = self.shape
        gram = np.zeros((len(self.scores) if self.diagonal else 1, d, d))
        for rows in row_chunks(self.n_samples, m * d):
            scaled = self._features_of_rows(rows) * self.root[rows]
            gram += scaled @ scaled.transpose(0, 2, 1)
        return gram

    def _features_of_rows(self, rows: slice) -> Floats:
        """Return x of these rows, shape (m, d, rows), or (1, d, rows) when all share it."""
        scores = self.scores[:, rows]
        scores = scores[:, None] if self.diagonal else scores[None]
        ones = np.ones((len(scores), 1, scores.shape[2]))
        return np.concatenate([scores, ones], axis=1)

    def _linear_predictor(self, theta: Floats, scores: Floats) -> Floats:
        theta = theta.reshape(self.shape)
        eta: Floats = theta[:, :1] * scores if self.diagonal else theta[:, :-1] @ scores
        eta += theta[:, -1:]
        return eta

    def _softmax_and_row_losses(
        self, theta: Floats, eta: Floats, rows: slice
    ) -> Floats:
        """Replace eta by the probabilities; return the rows' negative log likelihoods."""
        labels = (self.codes[rows], np.arange(eta.shape[1]))
        log_sums = softmax_in_place(eta)
        p = eta[labels]
        if p.min() > 1e-300:
            return -np.log(p)  # small losses keep their digits
        return log_sums - self._linear_predictor(theta, self.scores[:, rows])[labels]

    def _weighted_feature_blocks(
        self, weighted_features: Floats, features: Floats, root_weight: Floats
    ) -> Floats:
        """Return ``sum_i w_i g_ji x_ji x_ji'`` of a chunk, shape (m, d, d)."""
        m, d = self.shape
        flat = weighted_features.reshape(m * d, -1)
        if not self.diagonal:
            return np.asarray(flat @ (features[0] * root_weight).T).reshape(m, d, d)
        # of the vector map: the score's square, the score and 1
        blocks = np.empty((m, 2, 2))
        blocks[:, 0, 0] = np.einsum(
            "ji,ji->j", weighted_features[:, 0], features[:, 0] * root_weight
        )
        scores, ones = (flat @ root_weight).reshape(m, d).T
        blocks[:, 0, 1] = scores
        blocks[:, 1, 0] = scores
        blocks[:, 1, 1] = ones
        return blocks

    def _feature_sums_by_label(self) -> Floats:
        """Return ``sum_i w_i 1[y_i = j] x_ji``, the labels' part of the gradient."""
        m = self.shape[0]
        sums = np.empty(self.shape)
        sums[:, -1] = np.bincount(self.codes, weights=self.weight, minlength=m)
        if self.diagonal:
            own = self.scores[self.codes, np.arange(self.n_samples)]
            if self.weight is not None:
                own = own * self.weight
            sums[:, 0] = np.bincount(self.codes, weights=own, minlength=m)
            return sums
        for k, scores in enumerate(self.scores):
            weighted = scores if self.weight is None else scores * self.weight
            sums[:, k] = np.bincount(self.codes, weights=weighted, minlength=m)
        return sums
