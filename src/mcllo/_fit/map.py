"""`MCLLOMap`: a recalibration map with given parameters, Eq. (3)-(4), and its group operations.

For one baseline the maps form a group: applying ``(tau_a, gamma_a)`` and then ``(tau_b, gamma_b)``
is the map ``(tau_b + gamma_b tau_a, gamma_a gamma_b)``; the inverse of ``(tau, gamma)`` is
``(-tau / gamma, 1 / gamma)``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._ground.results import Floats
from .._input.labels import Classes, find_class
from .._input.probabilities import Simplex, clean_logits, clean_probs
from .._math.likelihood import log_odds_from_logs, recalibrate_rows
from ..exceptions import InputError


@dataclass(frozen=True, eq=False)
class MCLLOMap:
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

    def recalibrate(
        self,
        probs: Any = None,
        *,
        logits: Any = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> Floats:
        """Return recalibrated probabilities, Eq. (3)-(4).

        Parameters
        ----------
        probs : array-like or frame of shape (n_samples, n_classes)
            Predictions; a frame's columns are found by class name, in any order.
        logits : array-like or frame, optional
            Scores before the softmax, instead of `probs`.
        normalize, clip
            As in `Predictions.from_arrays`; a 0 is first raised to 1e-6.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes`; rows sum to 1.
        """
        return self.apply(read_simplex(self.classes, probs, logits, normalize, clip))

    def apply(self, simplex: Simplex) -> Floats:
        """Return the map of already validated probabilities."""
        given = simplex.logits is not None
        rows = simplex.logits if simplex.logits is not None else simplex.probs
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
        """Return the map that applies this one first and `other` to its result."""
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
