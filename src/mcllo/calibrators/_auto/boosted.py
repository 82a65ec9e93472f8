"""Small boosted trees that correct what a pool of linear maps cannot.

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

Gradient boosting of the multinomial log loss ([1]_, algorithm 6) with Newton steps and splits by
Newton gain under a ridge [3]_. Splits are between `N_BINS` quantiles of a feature. There are no
random numbers: of more than `MAX_ROWS_PER_SEARCH` rows the splits of a round are searched among
every m-th row, ordered by their largest probability and beginning at another row each round, which
is what the random parts of stochastic gradient boosting are for [2]_. The values of the leaves are
those of all rows.

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

from ..._model.kernel import softmax_in_place
from ..._utils.linalg import TINY
from ..._utils.results import Codes, Floats, Result

Mask = NDArray[np.bool_]

RIDGE = 5.0  # r: the Hessian of 20 rows of even odds (1/4 each), so that small leaves hardly move
# of each side of a split: four rows of even odds, or many sure ones
MIN_HESSIAN_OF_SIDE = 1.0
N_BINS = 32  # quantiles between which splits are; a round number
MAX_ROWS_PER_SEARCH = 4_000  # for the splits of one round; a round number
N_LEAVES = 4


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
        n_rounds, n_trees, _ = self.values.shape
        total = np.zeros((n_trees, x.shape[1]))
        for i in range(n_rounds):
            for k in range(n_trees):
                values = x[self.features[i, k]]
                is_left = values <= self.thresholds[i, k][:, None]
                leaf = find_leaves(is_left[0], is_left[1], is_left[2])
                total[k] += self.values[i, k, leaf]
        return total

    def corrected(self, scores: Floats, q: Floats) -> Floats:
        """Return b, shape (c, n), of scores and the pool's probabilities, both (c, n)."""
        log_q = np.log(np.maximum(q, TINY))
        b = add_scores(log_q, self.sums(compute_features(scores)))
        softmax_in_place(b)
        return b

    def first(self, n_rounds: int) -> Trees:
        """Return the trees of the first rounds."""
        kept = slice(n_rounds)
        return Trees(self.features[kept], self.thresholds[kept], self.values[kept])

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Trees:
        """Return the trees that `to_dict` described."""
        features = np.array(content["features"], dtype=np.intp)
        thresholds = np.array(content["thresholds"], dtype=float)
        values = np.array(content["values"], dtype=float)
        return cls(features, thresholds, values)


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
        corrected = self.trees.corrected(scores, pooled.T).T
        return (1.0 - self.trust) * pooled + self.trust * corrected

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Correction:
        """Return the correction that `to_dict` described."""
        known = dict(content)
        if known["trees"] is not None:
            known["trees"] = Trees.from_dict(known["trees"])
        return cls(**known)


def find_leaves(goes_left: Mask, inner_left: Mask, inner_right: Mask) -> Codes:
    """Return the leaf, from 0 on the left to 3, by what the three splits say of each row."""
    inner = np.where(goes_left, inner_left, inner_right)
    return np.asarray(3 - 2 * goes_left.astype(np.intp) - inner)


def compute_features(scores: Floats) -> Floats:
    """Return the features of the trees, from scores: logits or log probabilities, (c, n)."""
    if len(scores) == 2:
        return np.asarray(scores[:1] - scores[1:], dtype=np.float64)
    x = np.array(scores, dtype=np.float64)
    x -= softmax_in_place(
        x.copy()
    )  # so that a number added to all logits of a row changes nothing
    return x


def add_scores(log_q: Floats, sums: Floats) -> Floats:
    """Return ``log q + F``; one sum of two classes is the first one's."""
    log_q = log_q.copy()
    log_q[: len(sums)] += sums
    return log_q


class Bins:
    """Features in bins, and the parts of the rows among which splits are searched.

    Parameters
    ----------
    x : ndarray of shape (F, n)
        Features.
    weight : ndarray of shape (n,)
        Of the rows; those of weight 0 do not count for the quantiles.

    Attributes
    ----------
    edges : list of ndarray
        Of each feature the numbers between its bins.
    codes : ndarray of shape (F, n)
        The bin of each row.
    parts : list of ndarray
        Rows among which the splits of a round are searched; one part for each round, by turns.
    in_bin : list of sparse arrays of shape (F * N_BINS, len(part))
        Of each part: which row is in which bin of which feature, 0 or 1. Sums of gradients in bins
        are a product with it.
    """

    def __init__(self, x: Floats, weight: Floats) -> None:
        n_features, n_rows = x.shape
        self.largest = x.max(axis=1)
        self.edges = [_edges(values, weight) for values in x]
        self.codes = np.empty(x.shape, dtype=np.uint8)
        for feature, edges in enumerate(self.edges):
            self.codes[feature] = np.searchsorted(edges, x[feature])

        order = np.argsort(x.max(axis=0), kind="stable")
        self.n_parts = max(1, n_rows // MAX_ROWS_PER_SEARCH)
        self.parts = [order[first :: self.n_parts] for first in range(self.n_parts)]
        first_bin_of_feature = (
            N_BINS * np.arange(n_features)[:, None]
        )  # numbered one after another
        self.in_bin = [
            _indicators(self.codes[:, part] + first_bin_of_feature)
            for part in self.parts
        ]

    def threshold(self, feature: int, code: int) -> float:
        """Return the number between a bin and the next; the largest where there is no next."""
        edges = self.edges[feature]
        return float(edges[code] if code < len(edges) else self.largest[feature])


def _indicators(bins: NDArray[Any]) -> Any:
    """Return which column of `bins`, shape (F, m), holds which bin: sparse, (F * N_BINS, m)."""
    from scipy import sparse

    n_features, n_rows = bins.shape
    column = np.tile(np.arange(n_rows), n_features)
    ones = np.ones(bins.size)
    shape = (N_BINS * n_features, n_rows)
    return sparse.csr_array((ones, (bins.ravel(), column)), shape=shape)


def _edges(values: Floats, weight: Floats) -> Floats:
    """Return numbers between quantiles and the next larger value, rising: at most `N_BINS` - 1."""
    is_there = weight > 0.0
    distinct, place = np.unique(values[is_there], return_inverse=True)
    weight_of_value = np.bincount(place, weight[is_there])
    weight_up_to = np.cumsum(weight_of_value)
    asked = weight_up_to[-1] * np.arange(1, N_BINS) / N_BINS
    quantile = np.unique(np.searchsorted(weight_up_to, asked))
    quantile = quantile[
        quantile < len(distinct) - 1
    ]  # nothing is larger than the last value
    return np.asarray(0.5 * (distinct[quantile] + distinct[quantile + 1]))


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
        c = len(log_q)
        self.bins = bins
        self.eta = log_q.copy()
        self.weight = weight
        self.n_trees = 1 if c == 2 else c
        self.is_label = codes == np.arange(self.n_trees)[:, None]
        self.rate = 0.1  # as usual
        if c > 2:
            self.rate *= (
                c - 1.0
            ) / c  # Friedman's factor: c sums, of which one is redundant
        self.grown: list[
            tuple[Codes, Floats, Floats]
        ] = []  # features, thresholds, values

    def trees(self) -> Trees:
        """Return what was grown."""
        features, thresholds, values = zip(*self.grown, strict=True)
        return Trees(np.array(features), np.array(thresholds), np.array(values))

    def grow(self) -> None:
        """Add one round."""
        b = self.eta.copy()
        softmax_in_place(b)
        b = b[: self.n_trees]
        residual = b - self.is_label
        gradient = residual * self.weight
        hessian = b * (1.0 - b) * self.weight
        features, codes, leaf = self._split(gradient, hessian)

        # Leaves of all trees are numbered one after the other.
        leaf_in_all = leaf + N_LEAVES * np.arange(self.n_trees)[:, None]
        place = leaf_in_all.ravel()
        n_leaves = N_LEAVES * self.n_trees
        gradient_sum = np.bincount(place, gradient.ravel(), n_leaves)
        hessian_sum = np.bincount(place, hessian.ravel(), n_leaves)
        values = -self.rate * gradient_sum / (hessian_sum + RIDGE)
        self.eta[: self.n_trees] += values[leaf_in_all]

        thresholds = np.empty(features.shape)
        for place_of_split in np.ndindex(*features.shape):
            feature = int(features[place_of_split])
            code = int(codes[place_of_split])
            thresholds[place_of_split] = self.bins.threshold(feature, code)
        self.grown.append(
            (features, thresholds, values.reshape(self.n_trees, N_LEAVES))
        )

    def _split(self, gradient: Floats, hessian: Floats) -> tuple[Codes, Codes, Codes]:
        """Return features and bins of the splits, shape (K, 3), and the leaf of each row (K, n)."""
        bins = self.bins
        turn = len(self.grown) % bins.n_parts
        part = bins.parts[turn]
        in_bin = bins.in_bin[turn]
        g = gradient[:, part]
        h = hessian[:, part]

        in_all = _histograms(in_bin, g, h)
        first, first_code = _best_splits(in_all, bins.n_parts)
        goes_left = bins.codes[first] <= first_code[:, None]

        part_goes_left = goes_left[:, part]
        on_left = _histograms(in_bin, g * part_goes_left, h * part_goes_left)
        left, left_code = _best_splits(on_left, bins.n_parts)
        right, right_code = _best_splits(in_all - on_left, bins.n_parts)
        inner_left = bins.codes[left] <= left_code[:, None]
        inner_right = bins.codes[right] <= right_code[:, None]

        features = np.stack([first, left, right], axis=1)
        codes = np.stack([first_code, left_code, right_code], axis=1)
        return features, codes, find_leaves(goes_left, inner_left, inner_right)


def _histograms(in_bin: Any, g: NDArray[Any], h: NDArray[Any]) -> Floats:
    """Return sums of g and h, shape (K, m), in each bin: shape (2, K, F, `N_BINS`)."""
    n_trees = len(g)
    sums = in_bin @ np.concatenate([g, h]).T
    by_tree = np.ascontiguousarray(sums.T)
    return by_tree.reshape(2, n_trees, -1, N_BINS)


def _best_splits(histograms: Floats, n_parts: int) -> tuple[Codes, Codes]:
    """Return the feature and the last bin on the left of the best split, for each tree.

    Sums are those of one part of the rows of `n_parts`; so is the ridge.
    """
    ridge = RIDGE / n_parts
    min_hessian = MIN_HESSIAN_OF_SIDE / n_parts
    gradient, hessian = histograms.cumsum(axis=3)
    gradient_left = gradient[..., :-1]
    hessian_left = hessian[..., :-1]
    gradient_right = gradient[..., -1:] - gradient_left
    hessian_right = hessian[..., -1:] - hessian_left

    # Without ``- G^2 / (H + r)``, which is the same for all splits of a tree's rows.
    gain = gradient_left**2 / (hessian_left + ridge)
    gain += gradient_right**2 / (hessian_right + ridge)
    is_too_small = (hessian_left < min_hessian) | (hessian_right < min_hessian)
    gain[is_too_small] = -1.0
    best = gain.reshape(len(gain), -1).argmax(axis=1)
    n_splits = N_BINS - 1
    return best // n_splits, best % n_splits
