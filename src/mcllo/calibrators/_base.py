"""What every calibrator shares, as functions: reading X and y, predicting labels, saving.

A calibrator is a scikit-learn estimator whose X is a table of probabilities (``input = "probs"``)
or of logits (``input = "logits"``). ``__init__`` stores, ``fit`` computes and forgets what came
before. A method that takes no logarithm of X says ``needs_logs = False``: zeros then stay zeros,
without a warning. Its fitted state is plain numbers, returned by ``_state()`` and taken back by
``_restore(state)``, so that a saved calibrator is a JSON file anyone can read.

What the one-vs-rest methods share: from one number per class to a row that sums to 1.

A method answers, for each class alone, "how often is it this class?" with ``q_k >= 0``; the row is
``q_k / sum_j q_j``. Classes that no label had keep their predicted probability, and the others
share the rest.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._fit.map import read_simplex
from .._ground.files import write_text
from .._ground.results import Floats, plain
from .._input.frames import column_names, shorten
from .._input.labels import RESERVED, class_names
from .._input.predictions import Predictions, as_predictions
from .._input.probabilities import Simplex, clean_probs
from .._input.weights import clean_rows
from .._input.zeros import reclip
from .._version import __version__
from ..exceptions import FileFormatError, InputError

FORMAT = "mcllo calibrator"
FORMAT_VERSION = 1


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Predictions:
    """Validate training rows and set ``classes_``, ``n_features_in_`` and ``feature_names_in_``."""
    options = {
        name: getattr(estimator, name)
        for name in ("classes", "baseline", "normalize", "clip")
        if getattr(estimator, name, None) is not None
    }
    if options.get("baseline") in RESERVED:
        del options["baseline"]  # the calibrator knows what the word asks for
    logits = estimator.input == "logits"
    estimator.__dict__.pop("feature_names_in_", None)
    check_kind(X)
    if y is None and not isinstance(X, Predictions):
        name = type(estimator).__name__
        raise InputError(f"{name} requires y to be passed, but the target y is None.")
    if isinstance(X, Predictions):
        baseline = options.get("baseline")
        predictions = as_predictions(X, y, sample_weight=sample_weight, baseline=baseline)
        if logits and predictions.logits is None:
            raise InputError(f"{estimator.method} needs logits; these predictions have none.")
        remember(estimator, predictions)
        return predictions
    if needs_logs(estimator):
        predictions = Predictions.from_arrays(
            None if logits else X,
            y,
            logits=X if logits else None,
            sample_weight=sample_weight,
            **options,
        )
    else:
        predictions = _read_with_zeros(
            X,
            y,
            sample_weight,
            classes=options.get("classes"),
            normalize=options.get("normalize", False),
        )
    remember(estimator, predictions)
    names = column_names(X)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return predictions


def needs_logs(estimator: Any) -> bool:
    """Return whether zeros in X must be raised before the method can use it."""
    return bool(getattr(estimator, "needs_logs", True))


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value of the argument `name` that is not one of `choices`."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InputError(argument=name, rule=f"be one of {known}", value=value)


def _read_with_zeros(
    X: Any, y: Any, sample_weight: Any, *, classes: Any, normalize: bool
) -> Predictions:
    """Validate training rows whose zeros stay zeros."""
    named = None if classes is None else class_names(classes)
    simplex = clean_probs(X, columns=named, normalize=normalize, keep_zeros=True)
    facts = clean_rows(len(simplex.probs), sample_weight)
    return Predictions._labelled(simplex, y, named, None, facts)


def remember(estimator: Any, predictions: Predictions) -> None:
    """Set the attributes that say what a calibrator was fitted on."""
    estimator.classes_ = label_array(predictions.classes)
    estimator.n_features_in_ = predictions.n_classes


def read_rows(estimator: Any, X: Any) -> Simplex:
    """Validate rows to predict; columns of a frame are found by class name."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "classes_")
    check_kind(X)
    check_width(estimator, X)
    classes = tuple(estimator.classes_.tolist())
    if isinstance(X, Predictions):
        return _held_rows(estimator, X, classes)
    normalize = bool(getattr(estimator, "normalize", False))
    clip = getattr(estimator, "clip_", None) or getattr(estimator, "clip", None)
    if estimator.input == "logits":
        return read_simplex(classes, None, X)
    if needs_logs(estimator):
        return read_simplex(classes, X, None, normalize, clip)
    simplex = clean_probs(X, columns=classes, normalize=normalize, keep_zeros=True)
    if simplex.probs.shape[1] != len(classes):
        raise InputError(
            f"probs must have a column for each of the {len(classes)} classes; "
            f"got {simplex.probs.shape[1]}."
        )
    return simplex


def _held_rows(estimator: Any, held: Predictions, classes: tuple[Any, ...]) -> Simplex:
    """Return the rows of validated predictions."""
    if held.classes != classes:
        raise InputError(
            f"predictions must have the classes {shorten(classes)}; got {shorten(held.classes)}."
        )
    if estimator.input == "logits" and held.logits is None:
        raise InputError(f"{estimator.method} needs logits; these predictions have none.")
    floor = getattr(estimator, "clip_", None)
    if floor is not None and held.n_clipped:
        held = reclip(held, floor)
    return Simplex(held.probs, held.logits, None, held.raised, held.clip, held.n_zeros, 0, 0.0)


def check_kind(X: Any) -> None:
    """Refuse sparse and complex tables in the words that scikit-learn's users know."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputError("X must be dense; sparse input is not supported. Pass X.toarray().")
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InputError(f"X must hold real numbers; got {X.dtype}. Complex data not supported.")


def check_width(estimator: Any, X: Any) -> None:
    """Refuse an array with another number of columns than `fit` saw."""
    seen = estimator.n_features_in_
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] != seen:
        raise InputError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {seen} "
            "features as input: a column for each class."
        )


def predict_labels(estimator: Any, X: Any) -> NDArray[Any]:
    """Return the most probable class of each row (the first of equals)."""
    best = estimator.predict_proba(X).argmax(axis=1)
    labels: NDArray[Any] = estimator.classes_[best]
    return labels


def label_array(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels as an array of their own type."""
    array = np.array(classes)
    if array.tolist() != list(classes):
        array = np.empty(len(classes), dtype=object)
        array[:] = classes
    return array


def save_calibrator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator as JSON, atomically; ``-`` is standard output."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "classes_")
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "mcllo_version": __version__,
        "method": estimator.method,
        "params": {name: plain(value) for name, value in estimator.get_params(deep=False).items()},
        "classes": estimator.classes_.tolist(),
        "state": plain(estimator._state()),
    }
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        write_text(path, text)


def restored(path: str | os.PathLike[str], registry: Mapping[str, Any]) -> Any:
    """Return the calibrator saved at `path`, of a method in the `registry`."""
    content = _read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} must be a calibrator saved by mcllo (a JSON file with format {FORMAT!r}); "
            "make one with `mcllo fit` or .save()."
        )
    if content.get("format_version") != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} must have format version {FORMAT_VERSION}; it has "
            f"{content.get('format_version')!r}. Use the version of mcllo that wrote it "
            f"({content.get('mcllo_version')}), or fit again."
        )
    method = content.get("method")
    if not isinstance(method, str) or method not in registry:
        raise FileFormatError(
            f"{path} holds the method {method!r}, which this version does not know; "
            f"known are {sorted(registry)}."
        )
    try:
        estimator = registry[method](**content["params"])
        estimator.classes_ = label_array(tuple(content["classes"]))
        estimator.n_features_in_ = len(estimator.classes_)
        estimator._restore(content["state"])
        _try_out(estimator)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FileFormatError(
            f"{path} is damaged: {type(error).__name__} at {error}. Fit and save again."
        ) from None
    return estimator


def _try_out(estimator: Any) -> None:
    """Refuse a state that does not fit its classes: one row must come out as probabilities."""
    classes = class_names(estimator.classes_.tolist())
    row = np.zeros(len(classes)) if estimator.input == "logits" else 1.0 / len(classes)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        out = estimator.predict_proba(np.broadcast_to(row, (1, len(classes))))
    if out.shape != (1, len(classes)) or not abs(out.sum() - 1.0) < 1e-6:
        raise ValueError("numbers that do not give probabilities")


def _read_json(path: str | os.PathLike[str]) -> Any:
    try:
        text = sys.stdin.read() if str(path) == "-" else Path(path).read_text(encoding="utf-8")
        return json.loads(text)
    except FileNotFoundError:
        raise FileFormatError(
            f"{path} must exist; there is no such file. Make one with `mcllo fit` or .save()."
        ) from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory. Name a file.") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise FileFormatError(
            f"{path} must be a saved calibrator; it is not JSON. "
            "Make one with `mcllo fit` or .save()."
        ) from None


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
