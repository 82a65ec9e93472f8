"""`Trees`: a sum of small trees that corrects what a pool of linear maps cannot recalibration.

====================  ==========================================================================
features x            log probabilities of the predictions, (c, n); of two classes their log odds
offset                ``log q``, q the pool's probabilities
corrected             ``b ~ q exp F(x)``, F the sum of trees
tree                  two levels: a split of all rows, and one of each side; four leaves
one round             a tree for each class (one in all for two classes), fitted to the gradient
                      ``g = w (b_j - 1[y = j])`` and the Hessian ``h = w b_j (1 - b_j)``
gain of a split       ``G_l^2 / (H_l + r) + G_r^2 / (H_r + r) - G^2 / (H + r)``, G and H sums of g
                      and h
value of a leaf       ``-rate (c - 1) / c  G / (H + r)``; without (c - 1) / c for two classes
====================  ==========================================================================

Gradient boosting of the multinomial log loss (Friedman 2001, algorithm 6) with Newton steps and
splits by Newton gain under a ridge (Chen and Guestrin 2016). Splits are between `N_BINS` quantiles
of a feature. There are no random numbers: of more than `MAX_ROWS_PER_SEARCH` rows the splits of a
round are searched among every m-th row, ordered by their largest probability and beginning at
another row each round, which is what the random parts of stochastic gradient boosting are for
(Friedman 2002). The values of the leaves are those of all rows.

References
----------
.. [1] Friedman (2001), Greedy function approximation: a gradient boosting machine. Annals of
       Statistics 29, 1189-1232.
.. [2] Friedman (2002), Stochastic gradient boosting. Computational Statistics & Data Analysis 38,
       367-378.
.. [3] Chen, Guestrin (2016), XGBoost: a scalable tree boosting system. KDD 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._model.kernel import softmax
from ..._utils.results import Codes, Floats, Result

Mask = NDArray[np.bool_]
LEARNING_RATE = 0.1
RIDGE = 5.0
"""r: half a dozen rows of even odds, so that a leaf of few rows hardly moves."""
MIN_HESSIAN_OF_SIDE = 1.0
"""Of each side of a split: four rows of even odds, or many sure ones."""
N_BINS = 32
MAX_ROWS_PER_SEARCH = 4_000
N_SPLITS = 3
N_LEAVES = 4
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Trees(Result):
    """Trees of two levels: R rounds of K trees, K the number of classes, or 1 for two classes.

    Attributes
    ----------
    features : ndarray of int, shape (R, K, 3)
        What the first split looks at, that of its left side, and that of its right side.
    thresholds : ndarray of shape (R, K, 3)
        A row goes left where its feature is at most this.
    values : ndarray of shape (R, K, 4)
        Of the leaves, from left to right.
    """

    features: Codes
    thresholds: Floats
    values: Floats

    @property
    def n_rounds(self) -> int:
        """R."""
        return len(self.values)

    def sums(self, x: Floats) -> Floats:
        """Return F, shape (K, n), of features (F, n)."""
        total = np.zeros((self.values.shape[1], x.shape[1]))
        for features, thresholds, values in zip(
            self.features, self.thresholds, self.values, strict=True
        ):
            for k, (first, left, right) in enumerate(features):
                goes_left = x[first] <= thresholds[k, 0]
                inner_left, inner_right = x[left] <= thresholds[k, 1], x[right] <= thresholds[k, 2]
                total[k] += values[k, find_leaves(goes_left, inner_left, inner_right)]
        return total

    def corrected(self, scores: Floats, q: Floats) -> Floats:
        """Return b, shape (c, n), of scores and the pool's probabilities, both (c, n)."""
        b = add_scores(np.log(np.maximum(q, TINY)), self.sums(compute_features(scores)))
        softmax(b)
        return b

    def first(self, n_rounds: int) -> Trees:
        """Return the trees of the first rounds."""
        kept = slice(n_rounds)
        return Trees(self.features[kept], self.thresholds[kept], self.values[kept])

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Trees:
        """Return the trees that `to_dict` described."""
        numbers = (np.array(content[name], dtype=float) for name in ("thresholds", "values"))
        return cls(np.array(content["features"], dtype=np.intp), *numbers)


@dataclass(frozen=True, eq=False)
class Correction(Result):
    """Trees on a pool, and how far they are trusted.

    Attributes
    ----------
    trees : Trees or None
        What was grown; None where nothing is corrected.
    trust : float
        Part of the corrected probabilities in the answer; the pool has the rest.
    gain, gain_se : float
        What the trees add to the pool's gain, by cross-validation, and its standard error.
    reason : str
        Why nothing was grown; else empty.
    """

    trees: Trees | None
    trust: float = 0.0
    gain: float = 0.0
    gain_se: float = 0.0
    reason: str = ""

    def applied(self, scores: Floats, pooled: Floats) -> Floats:
        """Return the answer, shape (n, c), of scores (c, n) and the pool's probabilities."""
        if self.trees is None:
            return pooled
        b = self.trees.corrected(scores, pooled.T).T
        return (1.0 - self.trust) * pooled + self.trust * b

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Correction:
        """Return the correction that `to_dict` described."""
        trees = content["trees"]
        return cls(**{**content, "trees": None if trees is None else Trees.from_dict(trees)})


def find_leaves(goes_left: Mask, inner_left: Mask, inner_right: Mask) -> Codes:
    """Return the leaf, from 0 on the left to 3, by what the three splits say of each row."""
    inner = np.where(goes_left, inner_left, inner_right)
    return np.asarray(3 - 2 * goes_left.astype(np.intp) - inner)


def compute_features(scores: Floats) -> Floats:
    """Return the features of the trees, from scores: logits or log probabilities, (c, n)."""
    if len(scores) == 2:
        return np.asarray(scores[:1] - scores[1:], dtype=np.float64)
    x = np.array(scores, dtype=np.float64)
    p = x.copy()
    x -= softmax(p)  # so that a number added to all logits of a row changes nothing
    return x


def add_scores(log_q: Floats, sums: Floats) -> Floats:
    """Return ``log q + F``; one sum of two classes is the first one's."""
    log_q = log_q.copy()
    log_q[: len(sums)] += sums
    return log_q


class Bins:
    """Features in bins, and the parts of the rows among which splits are searched."""

    def __init__(self, x: Floats, weight: Floats) -> None:
        from scipy import sparse

        n, self.largest = x.shape[1], x.max(axis=1)
        self.edges = [_edges(values, weight) for values in x]
        self.codes = np.array(
            [np.searchsorted(e, values) for e, values in zip(self.edges, x, strict=True)],
            dtype=np.uint8,
        )
        order = np.argsort(x.max(axis=0), kind="stable")
        self.n_parts = max(1, n // MAX_ROWS_PER_SEARCH)
        self.parts = [order[first :: self.n_parts] for first in range(self.n_parts)]
        place = N_BINS * np.arange(len(x))[:, None]
        self.in_bin = []  # of each part: which row is in which bin of which feature, 0 or 1
        for part in self.parts:
            rows = (self.codes[:, part] + place).ravel()
            columns = np.tile(np.arange(len(part)), len(x))
            shape = (N_BINS * len(x), len(part))
            ones = np.ones(len(rows))
            self.in_bin.append(sparse.csr_array((ones, (rows, columns)), shape=shape))

    def threshold(self, feature: int, code: int) -> float:
        """Return the number between a bin and the next; the largest where there is no next."""
        edges = self.edges[feature]
        return float(edges[code] if code < len(edges) else self.largest[feature])


def _edges(values: Floats, weight: Floats) -> Floats:
    """Return numbers between quantiles and the next larger value, rising: at most `N_BINS` - 1."""
    taken = weight > 0.0
    distinct, place = np.unique(values[taken], return_inverse=True)
    below = np.cumsum(np.bincount(place, weight[taken]))
    asked = below[-1] * np.arange(1, N_BINS) / N_BINS
    last = np.unique(np.minimum(np.searchsorted(below, asked), len(distinct) - 1))
    last = last[last < len(distinct) - 1]
    return np.asarray(0.5 * (distinct[last] + distinct[last + 1]))


class Boosting:
    """Grows trees, round after round, on rows of given weight; all rows are followed.

    Parameters
    ----------
    bins : Bins
        Of the features of all rows.
    log_q : ndarray of shape (c, n)
        The offset.
    codes : ndarray of shape (n,)
        Labels.
    weight : ndarray of shape (n,)
        Rows of weight 0 take no part, but `eta` has them.

    Attributes
    ----------
    eta : ndarray of shape (c, n)
        ``log q + F`` of all rows.
    """

    def __init__(self, bins: Bins, log_q: Floats, codes: Codes, weight: Floats) -> None:
        self.bins, self.eta, self.weight = bins, log_q.copy(), weight
        c = len(log_q)
        self.n_trees = 1 if c == 2 else c
        self.is_label = codes == np.arange(self.n_trees)[:, None]
        self.rate = LEARNING_RATE * (1.0 if c == 2 else (c - 1.0) / c)
        self.grown: list[tuple[Codes, Floats, Floats]] = []

    def trees(self) -> Trees:
        """Return what was grown."""
        features, thresholds, values = (np.array(part) for part in zip(*self.grown, strict=True))
        return Trees(features, thresholds, values)

    def grow(self) -> None:
        """Add one round."""
        p = self.eta.copy()
        softmax(p)
        p = p[: self.n_trees]
        gradient, hessian = (p - self.is_label) * self.weight, p * (1.0 - p) * self.weight
        splits, codes, leaf = self._split(gradient, hessian)
        place = (leaf + N_LEAVES * np.arange(self.n_trees)[:, None]).ravel()
        size = N_LEAVES * self.n_trees
        G, H = (np.bincount(place, part.ravel(), size) for part in (gradient, hessian))
        values = -self.rate * G / (H + RIDGE)
        self.eta[: self.n_trees] += values[place].reshape(p.shape)
        thresholds = [
            [self.bins.threshold(f, code) for f, code in zip(*tree, strict=True)]
            for tree in zip(splits, codes, strict=True)
        ]
        self.grown.append((splits, np.array(thresholds), values.reshape(self.n_trees, N_LEAVES)))

    def _split(self, gradient: Floats, hessian: Floats) -> tuple[Codes, Codes, Codes]:
        """Return features and bins of the splits, shape (K, 3), and the leaf of each row (K, n)."""
        bins, turn = self.bins, len(self.grown) % self.bins.n_parts
        part, in_bin = bins.parts[turn], bins.in_bin[turn]
        g, h = gradient[:, part], hessian[:, part]
        whole = _histograms(in_bin, g, h)
        first, first_code = _best_splits(whole, bins.n_parts)
        goes_left = bins.codes[first] <= first_code[:, None]
        on_left = _histograms(in_bin, g * goes_left[:, part], h * goes_left[:, part])
        left, left_code = _best_splits(on_left, bins.n_parts)
        right, right_code = _best_splits(whole - on_left, bins.n_parts)
        inner_left = bins.codes[left] <= left_code[:, None]
        inner_right = bins.codes[right] <= right_code[:, None]
        splits = np.stack([first, left, right], axis=1)
        split_codes = np.stack([first_code, left_code, right_code], axis=1)
        return splits, split_codes, find_leaves(goes_left, inner_left, inner_right)


def _histograms(in_bin: Any, g: NDArray[Any], h: NDArray[Any]) -> Floats:
    """Return sums of g and h, shape (K, m), in each bin: shape (2, K, F, `N_BINS`)."""
    sums = in_bin @ np.concatenate([g, h]).T
    return np.ascontiguousarray(sums.T).reshape(2, len(g), -1, N_BINS)


def _best_splits(histograms: Floats, n_parts: int) -> tuple[Codes, Codes]:
    """Return the feature and the last bin on the left of the best split, for each tree.

    Sums are those of one part of the rows of `n_parts`; so is the ridge.
    """
    ridge, least = RIDGE / n_parts, MIN_HESSIAN_OF_SIDE / n_parts
    G, H = histograms.cumsum(axis=3)
    G_left, H_left = G[..., :-1], H[..., :-1]
    G_right, H_right = G[..., -1:] - G_left, H[..., -1:] - H_left
    gain = G_left**2 / (H_left + ridge) + G_right**2 / (H_right + ridge)
    gain[(H_left < least) | (H_right < least)] = -1.0
    best = gain.reshape(len(gain), -1).argmax(axis=1)
    return best // (N_BINS - 1), best % (N_BINS - 1)
