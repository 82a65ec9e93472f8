"""What every calibrator shares, as functions: reading X and y, predicting labels, saving.

A calibrator is a scikit-learn estimator whose X is a table of probabilities (``input = "probs"``)
or of logits (``input = "logits"``). ``__init__`` stores, ``fit`` computes and forgets what came
before. Its fitted state is plain numbers, returned by ``_state()`` and taken back by
``_restore(state)``, so that a saved calibrator is a JSON file anyone can read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._atomic import write_text
from .._frames import column_names
from .._map import read_simplex
from .._predictions import Predictions, as_predictions
from .._probabilities import Simplex
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
    logits = estimator.input == "logits"
    estimator.__dict__.pop("feature_names_in_", None)
    if isinstance(X, Predictions):
        baseline = options.get("baseline")
        predictions = as_predictions(X, y, sample_weight=sample_weight, baseline=baseline)
        if logits and predictions.logits is None:
            raise InputError(f"{estimator.method} needs logits; these predictions have none.")
        remember(estimator, predictions)
        return predictions
    predictions = Predictions.from_arrays(
        None if logits else X,
        y,
        logits=X if logits else None,
        sample_weight=sample_weight,
        **options,
    )
    remember(estimator, predictions)
    names = column_names(X)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return predictions


def remember(estimator: Any, predictions: Predictions) -> None:
    """Set the attributes that say what a calibrator was fitted on."""
    estimator.classes_ = label_array(predictions.classes)
    estimator.n_features_in_ = predictions.n_classes


def read_rows(estimator: Any, X: Any) -> Simplex:
    """Validate rows to predict; columns of a frame are found by class name."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "classes_")
    classes = tuple(estimator.classes_.tolist())
    normalize, clip = bool(getattr(estimator, "normalize", False)), getattr(estimator, "clip", None)
    if estimator.input == "logits":
        return read_simplex(classes, None, X)
    return read_simplex(classes, X, None, normalize, clip)


def predict_labels(estimator: Any, X: Any) -> NDArray[Any]:
    """Return the most probable class of each row (the first of equals)."""
    labels: NDArray[Any] = estimator.classes_[estimator.predict_proba(X).argmax(axis=1)]
    return labels


def label_array(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels as an array of their own type."""
    array = np.array(classes)
    if array.tolist() != list(classes):
        array = np.empty(len(classes), dtype=object)
        array[:] = classes
    return array


def save_calibrator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator as JSON, atomically."""
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
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def load_calibrator(path: str | os.PathLike[str]) -> Any:
    """Return the calibrator that ``save`` wrote to `path`.

    Raises
    ------
    FileFormatError
        When the file is not a calibrator of a format this version reads.
    """
    from . import CALIBRATORS

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
    if method not in CALIBRATORS:
        raise FileFormatError(
            f"{path} holds the method {method!r}, which this version does not know; "
            f"known are {sorted(CALIBRATORS)}."
        )
    try:
        estimator = CALIBRATORS[method](**content["params"])
        estimator.classes_ = label_array(tuple(content["classes"]))
        estimator.n_features_in_ = len(estimator.classes_)
        estimator._restore(content["state"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(
            f"{path} is damaged: {type(error).__name__} at {error}. Fit and save again."
        ) from None
    return estimator


def _read_json(path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileFormatError(f"{path} must exist; there is no such file.") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory.") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise FileFormatError(f"{path} must be a saved calibrator; it is not JSON.") from None


def plain(value: Any) -> Any:
    """Return JSON-ready Python values for arrays, tuples and NumPy scalars."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
