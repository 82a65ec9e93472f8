"""`Calibrator`: what every calibrator shares, written once; `OneVsRest` for those by class.

====================  ==========================================================================
a method says         ``method``, ``includes_identity``, ``needs_logs`` (whether zeros in X must be
                      raised first), ``_absent`` (what becomes of a class that no label had)
`fit`                 check options, forget, read, warn of absent classes, then `_learn`
`predict_proba`       read, then `_apply`
a saved calibrator    JSON that anyone can read: parameters, classes, and the plain numbers of
                      `_state`, which `_restore` takes back; by default those named in ``_learned``
`Identity`            the calibrator that changes nothing, for tables and as a yardstick
`OneVsRest`           from ``q_k >= 0``, a number for each class alone, to the row
                      ``q_k / sum_j q_j``; classes that no label had keep their predicted
                      probability, and the others share the rest
====================  ==========================================================================

X is a table of probabilities or of logits, as `input` says. ``__init__`` stores, `fit` computes.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._fit.map import read_simplex
from .._ground.files import write_text
from .._ground.results import Floats, none_for_nan, plain
from .._ground.statements import quiet
from .._input.frames import check_index, column_names, shorten
from .._input.labels import RESERVED, class_names
from .._input.predictions import Predictions, as_predictions
from .._input.probabilities import Simplex, clean_probs
from .._input.votes import reclip
from .._input.weights import clean_rows
from .._version import __version__
from ..exceptions import AbsentClassWarning, FileFormatError, InputError

FORMAT = "mcllo calibrator"
FORMAT_VERSION = 1

ZeroRow = Literal["original", "uniform"]


class Calibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all calibrators: a classifier whose X is a table of predictions.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Of methods that take logarithms: floor for small probabilities; by default rows with a 0
        get the floor 1e-6.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.
    n_features_in_ : int
        Their number.
    feature_names_in_ : ndarray of str
        Names of the columns, where X has names.
    """

    method: ClassVar[str]
    includes_identity: ClassVar[bool] = True
    _absent: ClassVar[str] = ""
    _learned: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]] = ()

    def __init__(
        self, *, classes: Sequence[Hashable] | None = None, normalize: bool = False
    ) -> None:
        self.classes = classes
        self.normalize = normalize

    @property
    def input(self) -> str:
        """What X holds: "probs" or "logits"."""
        return "logits" if getattr(self, "on", "") == "logits" else "probs"

    @property
    def needs_logs(self) -> bool:
        """Whether zeros in X must be raised before the method can use it."""
        return True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from predictions and labels.

        Parameters
        ----------
        X : array-like, frame or Predictions of shape (n_samples, n_classes)
            Predicted probabilities, or logits where `input` is "logits".
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        """
        self._check_options()
        self._forget()
        predictions = self._read(X, y, sample_weight)
        if self._absent and predictions.absent:
            named = ", ".join(repr(label) for label in predictions.absent)
            message = f"no row has class {named}; nothing can be learned about it: {self._absent}."
            warnings.warn(message, AbsentClassWarning, stacklevel=2)
        self._learn(predictions)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return recalibrated probabilities, columns in the order of `classes_`."""
        return self._apply(self._rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row (the first of equals)."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned as JSON, atomically; `mcllo.load_calibrator` reads it.

        ``-`` is standard output.
        """
        check_is_fitted(self, "classes_")
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "mcllo_version": __version__,
            "method": self.method,
            "params": plain(self.get_params(deep=False)),
            "classes": self.classes_.tolist(),
            "state": plain(self._state()),
        }
        text = json.dumps(content, indent=1, allow_nan=False) + "\n"
        if str(path) == "-":
            sys.stdout.write(text)
        else:
            write_text(path, text)

    def _check_options(self) -> None:
        """Refuse parameters that are none."""

    def _learn(self, predictions: Predictions) -> None:
        """Set what the method learns from validated rows."""

    def _apply(self, simplex: Simplex) -> Floats:
        """Return what the fitted method makes of validated rows, a new array."""
        raise NotImplementedError

    def _state(self) -> dict[str, Any]:
        """Return what was learned as plain numbers."""
        return {name: none_for_nan(getattr(self, f"{name}_")) for name, _ in self._learned}

    def _restore(self, state: dict[str, Any]) -> None:
        """Take back what `_state` returned."""
        for name, read in self._learned:
            setattr(self, f"{name}_", read(state[name]))

    def _forget(self) -> None:
        """Remove whatever an earlier fit set."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _remember(self, classes: tuple[Any, ...]) -> None:
        """Set the attributes that say what the columns are."""
        self.classes_ = label_array(classes)
        self.n_features_in_ = len(classes)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Predictions:
        """Validate training rows and remember their classes and names."""
        check_kind(X)
        options = {
            name: getattr(self, name)
            for name in ("classes", "baseline", "normalize", "clip")
            if getattr(self, name, None) is not None
        }
        if options.get("baseline") in RESERVED:
            del options["baseline"]  # the calibrator knows what the word asks for
        logits = self.input == "logits"
        if isinstance(X, Predictions):
            baseline = options.get("baseline")
            predictions = as_predictions(X, y, sample_weight=sample_weight, baseline=baseline)
            if logits and predictions.logits is None:
                raise InputError(f"{self.method} needs logits; these predictions have none.")
        elif y is None:
            name = type(self).__name__
            raise InputError(f"{name} requires y to be passed, but the target y is None.")
        elif self.needs_logs:
            probs, scores = (None, X) if logits else (X, None)
            predictions = Predictions.from_arrays(
                probs, y, logits=scores, sample_weight=sample_weight, **options
            )
        else:
            check_index(X=X, y=y, sample_weight=sample_weight)
            named = None if options.get("classes") is None else class_names(options["classes"])
            normalize = options.get("normalize", False)
            simplex = clean_probs(X, columns=named, normalize=normalize, keep_zeros=True)
            facts = clean_rows(len(simplex.probs), sample_weight)
            predictions = Predictions._labelled(simplex, y, named, None, facts)
        self._remember(predictions.classes)
        names = None if isinstance(X, Predictions) else column_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return predictions

    def _rows(self, X: Any) -> Simplex:
        """Validate rows to predict; columns of a frame are found by class name."""
        check_is_fitted(self, "classes_")
        check_kind(X)
        seen = self.n_features_in_
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] != seen:
            raise InputError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {seen} "
                "features as input: a column for each class."
            )
        classes = tuple(self.classes_.tolist())
        if isinstance(X, Predictions):
            if X.classes != classes:
                raise InputError(
                    f"predictions must have the classes {shorten(classes)}; "
                    f"got {shorten(X.classes)}."
                )
            if self.input == "logits" and X.logits is None:
                raise InputError(f"{self.method} needs logits; these predictions have none.")
            floor = getattr(self, "clip_", None)
            held = reclip(X, floor) if floor is not None and X.n_clipped else X
            zeros = (held.raised, held.clip, held.n_zeros)
            return Simplex(held.probs, held.logits, None, *zeros, 0, 0.0)
        normalize = bool(getattr(self, "normalize", False))
        if self.input == "logits":
            return read_simplex(classes, None, X)
        if self.needs_logs:
            clip = getattr(self, "clip_", None) or getattr(self, "clip", None)
            return read_simplex(classes, X, None, normalize, clip)
        simplex = clean_probs(X, columns=classes, normalize=normalize, keep_zeros=True)
        if simplex.probs.shape[1] != seen:
            raise InputError(
                f"probs must have a column for each of the {seen} classes; "
                f"got {simplex.probs.shape[1]}."
            )
        return simplex


class Identity(Calibrator):
    """Return predictions as they are.

    Rows are validated like everywhere else and divided by their sum; zeros stay zeros.

    Parameters
    ----------
    classes, normalize
        As in `Calibrator`.

    Examples
    --------
    >>> Identity().fit([[0.7, 0.3], [0.2, 0.8]], ["cat", "dog"]).predict_proba([[0.9, 0.1]])
    array([[0.9, 0.1]])
    """

    method = "identity"
    _absent = "it keeps its predicted probability, as all classes do"
    needs_logs = False

    def _apply(self, simplex: Simplex) -> Floats:
        return simplex.probs.copy()


class OneVsRest(Calibrator):
    """Base of methods that answer for each class alone how often it comes true.

    Attributes
    ----------
    zero_row : {"original", "uniform"}
        The answer to a row of which every class's answer is 0.
    absent_ : tuple of int
        Columns that no label had; they keep their predicted probability.
    """

    _absent = "its probability is kept, and the other classes share the rest"
    needs_logs = False
    zero_row: ZeroRow = "uniform"
    absent_: tuple[int, ...]

    def _learn(self, predictions: Predictions) -> None:
        self.absent_ = tuple(np.flatnonzero(predictions.class_weight == 0.0).tolist())
        self._learn_classes(predictions)

    def _apply(self, simplex: Simplex) -> Floats:
        answers, probs = self._answers(simplex.probs), simplex.probs
        return normalize_rows(answers, probs, absent=self.absent_, zero_row=self.zero_row)

    def _learn_classes(self, predictions: Predictions) -> None:
        """Set what the method learns about each class."""

    def _answers(self, probs: Floats) -> Floats:
        """Return ``q_k`` of every class, shape (n_samples, n_classes)."""
        raise NotImplementedError


def normalize_rows(
    answers: Floats, probs: Floats, *, absent: tuple[int, ...] = (), zero_row: ZeroRow
) -> Floats:
    """Return ``q_k / sum_j q_j`` of the answers q to `probs`; `absent` columns keep theirs.

    Where every ``q_k`` is 0: the predictions themselves, or the same for every class.
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


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value of the argument `name` that is not one of `choices`."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InputError(argument=name, rule=f"be one of {known}", value=value)


def check_kind(X: Any) -> None:
    """Refuse sparse and complex tables in the words that scikit-learn's users know."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputError("X must be dense; sparse input is not supported. Pass X.toarray().")
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InputError(f"X must hold real numbers; got {X.dtype}. Complex data not supported.")


def float_array(numbers: Any) -> Floats:
    """Return saved numbers as an array; None becomes NaN."""
    return np.array(numbers, dtype=float)


def float_arrays(rows: Any) -> list[Floats]:
    """Return saved lists of numbers as arrays."""
    return [float_array(row) for row in rows]


def label_array(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels as an array of their own type."""
    array = np.array(classes)
    if array.tolist() != list(classes):
        array = np.empty(len(classes), dtype=object)
        array[:] = classes
    return array


def restored(path: str | os.PathLike[str], registry: Mapping[str, type[Calibrator]]) -> Calibrator:
    """Return the calibrator saved at `path`, of a method in the `registry`.

    One row must come out as probabilities, else the state does not fit its classes.
    """
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
        estimator._remember(tuple(content["classes"]))
        estimator._restore(content["state"])
        classes = class_names(estimator.classes_.tolist())
        row = np.zeros(len(classes)) if estimator.input == "logits" else 1.0 / len(classes)
        with quiet(), np.errstate(all="ignore"):
            out = estimator.predict_proba(np.broadcast_to(row, (1, len(classes))))
        if out.shape != (1, len(classes)) or not abs(out.sum() - 1.0) < 1e-6:
            raise ValueError("numbers that do not give probabilities")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FileFormatError(
            f"{path} is damaged: {type(error).__name__} at {error}. Fit and save again."
        ) from None
    return estimator


def _read_json(path: str | os.PathLike[str]) -> Any:
    """Return what a JSON file holds; ``-`` is standard input."""
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
