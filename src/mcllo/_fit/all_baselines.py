"""`AllBaselinesMap`: the geometric mean of the fits of all baselines; no class is special in it.

The fit with baseline b is affine in the log probabilities z before its softmax:
``eta_j = tau_j + gamma_j (z_j - z_b)``, ``eta_b = 0``, that is ``eta = W_b z + a_b`` with

=====================  ==============================================================
weights                ``W_b[j, j] = gamma_j``, ``W_b[j, b] = -gamma_j``, else 0
intercepts             ``a_b[j] = tau_j``, ``a_b[b] = 0``
geometric mean         ``g ~ prod_b g_b^(1/c)``, rows divided by their sum
                       ``= softmax(mean_b W_b z + mean_b a_b)``
=====================  ==============================================================

Permuting classes permutes the columns of the mean and changes no number. For c = 2 all fits are one
map, and so is their mean. A softmax ignores what all rows of W share, so W and a are stored with
columns that sum to 0; then equal maps have equal numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._ground.quiet import OF_ESTIMATES, quiet
from .._ground.results import Floats
from .._input.labels import Classes
from .._input.predictions import Predictions
from .._input.probabilities import Simplex
from ..exceptions import ConvergenceWarning, Either, InputError, Option, Phrase, SeparationWarning
from .fit import MCLLOFit, fit_predictions
from .map import MCLLOMap, read_simplex

MOST_BASELINES = 50
"""Baselines that are fitted without being asked for one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class AllBaselinesMap:
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
        parts = [_affine(m) for m in maps]
        weights: Floats = np.mean([w for w, _ in parts], axis=0)
        intercepts: Floats = np.mean([a for _, a in parts], axis=0)
        return cls(weights - weights.mean(axis=0), intercepts - intercepts.mean(), classes)

    def recalibrate(
        self,
        probs: Any = None,
        *,
        logits: Any = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> Floats:
        """Return recalibrated probabilities, shape (n_samples, n_classes); see `MCLLOMap`."""
        return self.apply(read_simplex(self.classes, probs, logits, normalize, clip))

    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""
        raw = np.log(simplex.probs) if simplex.logits is None else simplex.logits
        # W ignores what a whole row shares; without it large logits stay small numbers
        eta: Floats = (raw - raw.max(axis=1, keepdims=True)) @ self.weights.T + self.intercepts
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


def fit_all_baselines(predictions: Predictions, **options: Any) -> AllBaselinesMap:
    """Fit MCLLO with every class as the baseline and return the geometric mean of the fits.

    `options` are those of `fit_predictions`. One warning speaks for all fits that have no finite
    estimate.

    Examples
    --------
    >>> p = Predictions.from_arrays([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]], [0, 1, 1, 0])
    >>> fit_all_baselines(p).recalibrate([[0.7, 0.3]]).round(4)
    array([[0.7418, 0.2582]])
    """
    fits = fit_each_baseline(predictions, predictions.classes, **options)
    warn_once(fits)
    return AllBaselinesMap.from_maps(fits)


def fit_each_baseline(
    predictions: Predictions, baselines: Sequence[Hashable], **options: Any
) -> list[MCLLOFit]:
    """Return one fit for each baseline; their flags say what single warnings would have said."""
    if len(baselines) > MOST_BASELINES:
        raise InputError(
            f"at most {MOST_BASELINES} baselines are fitted at once; got {len(baselines)} classes.",
            remedy=Phrase(
                "Name one with {}{}.",
                Option("baseline"),
                Either(", or the ones to try with baselines= of baseline_sensitivity", shell=""),
            ),
        )
    with quiet(*OF_ESTIMATES):
        return [fit_predictions(predictions.with_baseline(b), **options) for b in baselines]


def _affine(fitted: MCLLOMap) -> tuple[Floats, Floats]:
    """Return W_b and a_b."""
    c, b = len(fitted.classes), fitted.baseline_index
    others = np.delete(np.arange(c), b)
    weights, intercepts = np.zeros((c, c)), np.zeros(c)
    weights[others, others] = fitted.gamma
    weights[others, b] = -fitted.gamma
    intercepts[others] = fitted.tau
    return weights, intercepts


def warn_once(fits: Sequence[MCLLOFit]) -> None:
    """Warn of the fits without a finite estimate, in one sentence."""
    bad = [f for f in fits if not f.converged]
    if not bad:
        return
    which = f"baseline {bad[0].baseline!r}" + (f" and {len(bad) - 1} more" if bad[1:] else "")
    remedy = "To recalibrate, use a penalty (1.0 is a good start)."
    if any(f.separated for f in bad):
        message = f"the maximum likelihood estimate does not exist ({which}): estimates drift to "
        warnings.warn(f"{message}infinity. {remedy}", SeparationWarning, stacklevel=3)
    else:
        message = f"the likelihood is all but flat ({which}): estimates are not determined. "
        warnings.warn(message + remedy, ConvergenceWarning, stacklevel=3)
