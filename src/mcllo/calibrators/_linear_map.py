r"""``softmax(W z + b)``: the map of temperature, vector, matrix scaling and Dirichlet calibration.

``z`` are logits, or log probabilities. Arrays over rows are transposed, ``(c, n)``, as in
``_model.py``. Adding a number to every score of a row changes no probability iff all rows of W have
the same sum: it is so for temperature scaling and for no other of the four, which therefore differ
on logits and on log probabilities.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model import CHUNK_ELEMENTS
from .._predictions import Predictions
from .._probabilities import Simplex
from ..exceptions import AbsentClassWarning

Floats = NDArray[np.float64]


def input_of(on: str) -> str:
    """Return what a calibrator that works `on` these scores takes: "logits" or "probs"."""
    return "logits" if on == "logits" else "probs"


def warn_absent(predictions: Predictions, meaning: str, stacklevel: int = 3) -> None:
    """Say which classes have no row, and what that means for the map."""
    if predictions.absent:
        named = ", ".join(repr(label) for label in predictions.absent)
        message = f"no row has class {named}; nothing can be learned about it: {meaning}."
        warnings.warn(message, AbsentClassWarning, stacklevel=stacklevel)


def transposed_scores(source: Predictions | Simplex, on: str = "logits") -> Floats:
    """Return z, shape (c, n), a new array.

    On "log_probs" these are log probabilities, also where logits are held: ``z - log sum exp z``.
    On "logits" they are the logits, or log probabilities where none are held.
    """
    scores = np.empty(source.probs.shape[::-1])
    if source.logits is None:
        return np.log(source.probs.T, out=scores)
    scores[:] = source.logits.T
    if on == "log_probs":
        scores -= scores.max(axis=0)
        scores -= np.log(np.exp(scores).sum(axis=0))
    return scores


def softmax_columns(eta: Floats) -> Floats:
    """Replace each column by its softmax; return the columns' ``log sum exp``."""
    top = eta.max(axis=0)
    eta -= top
    log_sum = softmax_of_gaps(eta)
    log_sum += top
    return log_sum


def softmax_of_gaps(gaps: Floats) -> Floats:
    """Do what `softmax_columns` does, for columns whose largest entry is 0."""
    np.exp(gaps, out=gaps)
    total: Floats = gaps.sum(axis=0)
    gaps /= total
    return np.log(total, out=total)


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

    def apply(self, simplex: Simplex, on: str = "logits") -> Floats:
        """Return the mapped probabilities, shape (n, c); `on` as in `transposed_scores`."""
        n_samples, n_classes = simplex.probs.shape
        present = np.setdiff1d(np.arange(n_classes), self.absent)
        mapped = simplex.probs.copy()
        rows = max(256, CHUNK_ELEMENTS // n_classes)
        scores = transposed_scores(simplex, on)
        for start in range(0, n_samples, rows):
            g = self._eta(scores[:, start : start + rows], present)
            softmax_columns(g)
            block = mapped[start : start + rows]
            if self.absent:
                g *= block[:, present].sum(axis=1)
                block[:, present] = g.T
            else:
                block[:] = g.T
        return mapped

    def _eta(self, scores: Floats, present: NDArray[np.intp]) -> Floats:
        """Return eta of the present classes."""
        if self.coef.ndim == 2:
            eta: Floats = self.coef[present] @ scores
        else:
            eta = np.broadcast_to(self.coef, len(scores))[present, None] * scores[present]
        eta += self.intercept[present, None]
        return eta

    def to_dict(self) -> dict[str, Any]:
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
    def from_dict(cls, content: dict[str, Any]) -> LinearMap:
        """Return the map that `to_dict` described."""
        arrays = {name: np.array(content[name], dtype=float) for name in ("coef", "intercept")}
        return cls(**{**content, **arrays, "absent": tuple(content["absent"])})
