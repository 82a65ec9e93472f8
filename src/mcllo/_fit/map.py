"""Recalibration maps: `MCLLOMap` of one baseline, `AllBaselinesMap` in which no class is special.

For one baseline, Eq. (3)-(4), the maps form a group: applying ``(tau_a, gamma_a)`` and then
``(tau_b, gamma_b)`` is the map ``(tau_b + gamma_b tau_a, gamma_a gamma_b)``; the inverse of
``(tau, gamma)`` is ``(-tau / gamma, 1 / gamma)``.

The map of baseline b is affine in the log probabilities z before its softmax:
``eta_j = tau_j + gamma_j (z_j - z_b)``, ``eta_b = 0``, that is ``eta = W_b z + a_b`` with

=====================  ==============================================================
weights                ``W_b[j, j] = gamma_j``, ``W_b[j, b] = -gamma_j``, else 0
intercepts             ``a_b[j] = tau_j``, ``a_b[b] = 0``
geometric mean         ``g ~ prod_b g_b^(1/c)``, rows divided by their sum
                       ``= softmax(mean_b W_b z + mean_b a_b)``
=====================  ==============================================================

Permuting classes permutes the columns of the mean and changes no number. For c = 2 all maps are
one, and so is their mean. A softmax ignores what all rows of W share, so W and a are stored with
columns that sum to 0; then equal maps have equal numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._model.likelihood import log_odds_from_logs, recalibrate_rows
from .._utils.notebook import NotebookResult
from .._utils.results import Floats
from .._validation.labels import Classes, find_class
from .._validation.probabilities import Simplex, clean_logits, clean_probs
from ..exceptions import InputError


class RecalibrationMap(ABC):
    """What turns the probabilities of all classes into others."""

    classes: Classes

    @abstractmethod
    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""

    def recalibrate(
        self,
        probs: Any = None,
        *,
        logits: Any = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> Floats:
        """Return recalibrated probabilities.

        Parameters
        ----------
        probs : array-like or frame of shape (n_samples, n_classes)
            Predictions; a frame's columns are found by class name, in any order.
        logits : array-like or frame, optional
            Scores before the softmax, instead of `probs`.
        normalize, clip
            As in `Predictions.from_arrays`; a 0 is first clipped to 1e-6.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes`; rows sum to 1.
        """
        return self.apply(read_simplex(self.classes, probs, logits, normalize, clip))


@dataclass(frozen=True, eq=False)
class MCLLOMap(RecalibrationMap, NotebookResult):
    """A multicategory linear log odds map.

    Attributes
    ----------
    tau, gamma : ndarray of shape (n_classes - 1,)
        Shift (``log delta``) and scale of each class's log odds against the baseline, for the
        classes other than the baseline in column order.
    classes : tuple
        All classes, in column order.
    baseline : label
        The reference class.

    See Also
    --------
    MCLLOFit : A map with standard errors.
    MCLLOCalibrator : Fits one.
    mcllo.simulate.draw : Draws labels that follow one.
    mcllo.plot.calibration_map : Draws it.

    Notes
    -----
    The map of [1]_: ``log(g_j / g_b) = tau_j + gamma_j log(x_j / x_b)`` with baseline b. Maps with
    one baseline compose to maps, and have inverses where no gamma is 0.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> half = MCLLOMap(np.zeros(2), np.full(2, 0.5), ("a", "b", "c"), "c")
    >>> half.recalibrate([[0.64, 0.32, 0.04]]).round(3)
    array([[0.511, 0.361, 0.128]])
    >>> half.compose(half.inverse()).gamma
    array([1., 1.])
    """

    tau: Floats
    gamma: Floats
    classes: Classes
    baseline: Hashable

    @property
    def delta(self) -> Floats:
        """Odds multipliers ``exp(tau)``."""
        return np.exp(self.tau)

    @property
    def theta(self) -> Floats:
        """``(tau_1 .. tau_K, gamma_1 .. gamma_K)``."""
        return np.concatenate([self.tau, self.gamma])

    @property
    def compared(self) -> Classes:
        """The classes other than the baseline, in column order."""
        b = self.baseline_index
        return self.classes[:b] + self.classes[b + 1 :]

    @property
    def baseline_index(self) -> int:
        """Column of the baseline."""
        return find_class(self.baseline, self.classes, "baseline")

    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""
        given = simplex.logits is not None
        rows = simplex.probs if simplex.logits is None else simplex.logits
        return recalibrate_rows(self.theta, rows, self.baseline_index, logarithms=given)

    def log_odds(self, simplex: Simplex) -> Floats:
        """Return log odds against the baseline, shape (n_classes - 1, n_samples)."""
        logs = np.empty(simplex.probs.shape[::-1])
        if simplex.logits is None:
            np.log(simplex.probs.T, out=logs)
        else:
            logs[:] = simplex.logits.T
        return log_odds_from_logs(logs, self.baseline_index)

    def compose(self, other: MCLLOMap) -> MCLLOMap:
        """Return the map that applies this one first and `other` to its result.

        Parameters
        ----------
        other : MCLLOMap
            A map of the same classes and baseline.

        Returns
        -------
        MCLLOMap
            One map that does what both do.
        """
        if other.classes != self.classes or other.baseline != self.baseline:
            raise InputError(
                "maps to compose must share classes and baseline; "
                f"got baselines {self.baseline!r} and {other.baseline!r}."
            )
        tau = other.tau + other.gamma * self.tau
        return MCLLOMap(tau, other.gamma * self.gamma, self.classes, self.baseline)

    def inverse(self) -> MCLLOMap:
        """Return the map that undoes this one."""
        if (self.gamma == 0.0).any():
            flat = self.compared[int(np.argmax(self.gamma == 0.0))]
            raise InputError(f"a map with gamma = 0 has no inverse; class {flat!r} has gamma 0.")
        return MCLLOMap(-self.tau / self.gamma, 1.0 / self.gamma, self.classes, self.baseline)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "classes": list(self.classes),
            "baseline": self.baseline,
            "tau": self.tau.tolist(),
            "gamma": self.gamma.tolist(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class AllBaselinesMap(RecalibrationMap):
    """The geometric mean of one map for each baseline.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_classes)
        Of the log probabilities; every row and every column sums to 0.
    intercepts : ndarray of shape (n_classes,)
        Sum to 0.
    classes : tuple
        All classes, in column order.

    Examples
    --------
    >>> half = [MCLLOMap(np.zeros(2), np.full(2, 0.5), ("a", "b", "c"), b) for b in "abc"]
    >>> AllBaselinesMap.from_maps(half).recalibrate([[0.64, 0.32, 0.04]]).round(3)
    array([[0.511, 0.361, 0.128]])
    """

    weights: Floats
    intercepts: Floats
    classes: Classes

    @classmethod
    def from_maps(cls, maps: Sequence[MCLLOMap]) -> AllBaselinesMap:
        """Return the mean of maps of the same classes, one for each baseline."""
        classes = maps[0].classes
        if {m.baseline_index for m in maps} != set(range(len(maps))) or len(maps) != len(classes):
            raise InputError(
                f"maps must hold one map for each of the {len(classes)} classes as baseline; "
                f"got baselines {[m.baseline for m in maps]}."
            )
        c = len(classes)
        weights, intercepts = np.zeros((c, c, c)), np.zeros((c, c))
        for one in maps:
            b = one.baseline_index
            others = np.delete(np.arange(c), b)
            weights[b, others, others] = one.gamma
            weights[b, others, b] = -one.gamma
            intercepts[b, others] = one.tau
        w, a = weights.mean(axis=0), intercepts.mean(axis=0)
        return cls(w - w.mean(axis=0), a - a.mean(), classes)

    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""
        raw = np.log(simplex.probs) if simplex.logits is None else simplex.logits
        # W ignores what a whole row shares; without it large logits stay small numbers
        centred = np.subtract(raw, raw.max(axis=1, keepdims=True), dtype=np.float64)
        eta: Floats = centred @ self.weights.T + self.intercepts
        eta -= eta.max(axis=1, keepdims=True)
        np.exp(eta, out=eta)
        eta /= eta.sum(axis=1, keepdims=True)
        return eta

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "classes": list(self.classes),
            "baseline": "all",
            "weights": self.weights.tolist(),
            "intercepts": self.intercepts.tolist(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> AllBaselinesMap:
        """Return the map that `to_dict` described."""
        classes = tuple(content["classes"])
        weights = np.array(content["weights"], dtype=np.float64)
        intercepts = np.array(content["intercepts"], dtype=np.float64)
        c = len(classes)
        if weights.shape != (c, c) or intercepts.shape != (c,):
            raise ValueError(
                f"weights and intercepts must have shapes ({c}, {c}) and ({c},); "
                f"got {weights.shape} and {intercepts.shape}"
            )
        return cls(weights, intercepts, classes)

    def __repr__(self) -> str:
        return f"AllBaselinesMap(classes={self.classes!r})"


def read_simplex(
    classes: Classes,
    probs: Any,
    logits: Any = None,
    normalize: bool = False,
    clip: float | None = None,
) -> Simplex:
    """Validate rows to be recalibrated: as many columns as `classes`, frames matched by name."""
    if (probs is None) == (logits is None):
        raise InputError("give exactly one of probs and logits=.")
    if logits is not None:
        simplex = clean_logits(logits, columns=classes)
    else:
        simplex = clean_probs(probs, columns=classes, normalize=normalize, clip=clip)
    if simplex.probs.shape[1] != len(classes):
        raise InputError(
            f"probs must have a column for each of the {len(classes)} classes; "
            f"got {simplex.probs.shape[1]}."
        )
    return simplex
