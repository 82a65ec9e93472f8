"""(y_true, y_prob) in the order of `sklearn.metrics` -> `Predictions` whose zeros stay zeros."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ._frames import n_columns
from ._labels import class_names
from ._predictions import Predictions, as_predictions
from ._probabilities import clean_probs
from ._rows import clean_rows
from .exceptions import InputError


def scored_predictions(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    keep_zeros: bool = True,
) -> Predictions:
    """Validate what is scored, in the order of `sklearn.metrics`; zeros stay zeros by default.

    A `Predictions` stands for itself, with ``y_true=None``. One-dimensional `y_prob` is, as in
    scikit-learn's binary scorers, the probability of the second of two classes.
    """
    options = {"sample_weight": sample_weight, "classes": classes, "baseline": baseline}
    if not isinstance(y_prob, Predictions) and n_columns(y_true) > 1 and n_columns(y_prob) == 1:
        raise InputError(
            "y_true must be labels and y_prob a table of probabilities; they seem to be swapped. "
            "Call with (y_true, y_prob)."
        )
    if not isinstance(y_prob, Predictions):
        y_prob = _both_columns(y_prob)
    if isinstance(y_prob, Predictions) or not keep_zeros:
        return as_predictions(y_prob, y_true, **options)
    classes = None if classes is None else class_names(classes)
    simplex = clean_probs(y_prob, columns=classes, keep_zeros=True)
    facts = clean_rows(len(simplex.probs), sample_weight)
    return Predictions._labelled(simplex, y_true, classes, baseline, facts)


def _both_columns(y_prob: Any) -> Any:
    """Return ``[1 - p, p]`` for one-dimensional numbers, anything else as it is."""
    if isinstance(y_prob, np.ndarray) and y_prob.ndim == 1 and y_prob.dtype.kind == "f":
        return np.column_stack([1.0 - y_prob, y_prob])
    return y_prob
