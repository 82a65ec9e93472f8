"""What the one-vs-rest methods share: from one number per class to a row that sums to 1.

A method answers, for each class alone, "how often is it this class?" with ``q_k >= 0``; the row is
``q_k / sum_j q_j``. Classes that no label had keep their predicted probability, and the others
share the rest.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .._predictions import Predictions

Floats = NDArray[np.float64]
ZeroRow = Literal["original", "uniform"]


def absent_columns(predictions: Predictions) -> tuple[int, ...]:
    """Return the columns that no label had."""
    return tuple(np.flatnonzero(predictions.class_weight == 0.0).tolist())


def normalize_rows(
    answers: Floats, probs: Floats, *, absent: tuple[int, ...] = (), zero_row: ZeroRow
) -> Floats:
    """Return rows summing to 1.

    Parameters
    ----------
    answers : ndarray of shape (n_samples, n_classes)
        ``q_k`` of every class.
    probs : ndarray of shape (n_samples, n_classes)
        The predictions the answers are about.
    absent : tuple of int
        Columns that keep their prediction.
    zero_row : {"original", "uniform"}
        Where every ``q_k`` is 0: the predictions themselves, or the same for every class.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    >>> normalize_rows(np.array([[0.6, 0.2, 0.0], [0.0, 0.0, 0.0]]), x, zero_row="original")
    array([[0.75, 0.25, 0.  ],
           [0.5 , 0.3 , 0.2 ]])
    """
    rows = probs.copy()
    present = np.setdiff1d(np.arange(probs.shape[1]), absent)
    kept = probs[:, present]
    shared = kept.sum(axis=1, keepdims=True) if absent else np.ones((len(probs), 1))
    total = answers[:, present].sum(axis=1, keepdims=True)
    instead = kept if zero_row == "original" else shared / len(present)
    with np.errstate(invalid="ignore"):
        rows[:, present] = np.where(total > 0.0, answers[:, present] / total * shared, instead)
    return rows
