"""`Calibrator`: what every calibrator shares, written once; `OneVsRest` for those by class.

====================  ==========================================================================
a method says         ``method``, ``includes_identity``, ``needs_logs`` (whether zeros in X must be
                      raised first), ``_absent`` (what becomes of a class that no label had)
`fit`                 check options, forget, read, warn of absent classes, then `_learn`, then
                      `_learn_prior` where the method has a ``prior``
`predict_proba`       read, then `_apply`
a saved calibrator    JSON that anyone can read: parameters, classes, and the plain numbers of
                      `_state`, which `_restore_state` takes back; by default those named in
                      ``_learned``
`Identity`            the calibrator that changes nothing, for tables and as a yardstick
`OneVsRest`           from ``q_k >= 0``, a number for each class alone, to the row
                      ``q_k / sum_j q_j``; classes that no label had keep their predicted
                      probability, and the others share the rest
====================  ==========================================================================

X is a table of probabilities or of logits, as `input` says. ``__init__`` stores, `fit` computes.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable, Hashable, Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._fit.map import validate_rows_to_recalibrate
from .._utils.atomic_files import write_text
from .._utils.formatting import format_count
from .._utils.results import Floats, none_for_nonfinite
from .._utils.statements import warn, warn_once
from .._utils.terminal import standard_output
from .._validation.arguments import names_unknown_keywords
from .._validation.frames import (
    check_row_indexes,
    column_names,
    find_common_affixes,
    n_columns,
    shorten,
)
from .._validation.labels import RESERVED_LABELS, as_class_list, distinct_labels_as_text
from .._validation.predictions import (
    Predictions,
    as_predictions,
    refuse_choice_sets,
)
from .._validation.probabilities import Simplex, clean_probs, refuse_flag_as_logits
from .._validation.rounding import change_clip
from .._validation.weights import clean_row_facts
from ..exceptions import AbsentClassWarning, InputError
from ._model_file import model_document, training_summary

ZeroRow = Literal["original", "uniform"]


MIN_EXPECTED_ROWS = 3.0
"""Rows of a class expected below which none is no news: calibrated predictions leave none with a
chance of ``exp(-3)``, 5 %, or more."""
# absent classes that a warning names: about two lines of a terminal
MAX_NAMED_CLASSES = 6


def absent_class_warning(
    predictions: Predictions, consequence: str
) -> AbsentClassWarning:
    """Return the warning that labels lack classes, and what so many rows say of these.

    Of n rows without it a class has a share of at most ``1 - 0.05^(1/n)`` with 95 % confidence
    (Clopper and Pearson 1934, 0 of n). Groups count as one row each, and weights that are no counts
    as ``(sum w)^2 / sum w^2`` rows (Kish 1965).
    """
    columns = np.flatnonzero(predictions.class_weight == 0.0)
    expected = (predictions.row_weight @ predictions.probs)[columns]
    n, unit = _effective_size_and_unit(predictions)
    limit = -float(np.expm1(math.log(0.05) / n))  # 1 - 0.05^(1/n) without cancellation
    named = [
        f"{label!r} ({count:.3g} expected)"
        for label, count in zip(predictions.absent, expected, strict=True)
    ]
    if len(named) > MAX_NAMED_CLASSES:
        n_more = len(named) - MAX_NAMED_CLASSES
        named = [*named[:MAX_NAMED_CLASSES], f"{n_more} more"]
    if expected.max() < MIN_EXPECTED_ROWS:
        say = "too few were expected for that to tell anything"
    else:
        what = "a share" if len(columns) == 1 else "shares"
        say = f"these {format_count(round(n))} {unit} rule out {what} above {100.0 * limit:.2g} %"
        say += " (95 % confidence)"
        if expected.min() < MIN_EXPECTED_ROWS:
            say += f"; where fewer than {MIN_EXPECTED_ROWS:g} were expected nothing was learned"
    numbers = {
        "classes": predictions.absent,
        "expected": expected.tolist(),
        "limit": limit,
        "rows": n,
    }
    sentence = f"{consequence[0].upper()}{consequence[1:]}."
    message = f"no row has class {', '.join(named)}: {say}. {sentence}"
    return AbsentClassWarning(message, numbers=numbers)


def _effective_size_and_unit(predictions: Predictions) -> tuple[float, str]:
    """Return as how many independent rows these count, and what they are called."""
    weight = predictions.row_weight
    if predictions.groups is not None:
        groups = np.unique(predictions.groups[weight > 0.0])
        return float(len(groups)), "groups"
    total = float(weight.sum())
    if predictions.weight_kind == "frequency" and predictions.has_whole_weights:
        return total, "rows"
    return total**2 / float(weight @ weight), "effective rows"


def refuse_choice_calibrator(calibrator: Any) -> None:
    """Refuse a calibrator of choice sets where rows have a column for each class."""
    if getattr(calibrator, "method", "") == "choice_sets":
        raise InputError(
            "this calibrator is of choice sets; its predict_proba and export take them."
        )


class Calibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all calibrators: a classifier whose X is a table of predictions.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Of methods that take logarithms: smaller probabilities are clipped to this; by default rows
        with a 0 are clipped to 1e-6.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.
    n_features_in_ : int
        Their number.
    feature_names_in_ : ndarray of str
        Names of the columns, where X has names.
    input_ : {"probs", "logits"}
        What it was fitted to: an export takes the same.
    training_ : dict
        Number and checksum of the rows learned from; a saved model keeps them.
    """

    method: ClassVar[str]
    includes_identity: ClassVar[bool] = True
    _absent: ClassVar[str] = ""
    _learned: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]] = ()
    input_: str
    training_: dict[str, Any]

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

    @warn_once()
    @names_unknown_keywords
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        logits: Any = None,
    ) -> Self:
        """Learn from predictions and labels.

        Parameters
        ----------
        X : array-like, frame or Predictions of shape (n_samples, n_classes)
            Predicted probabilities, or logits where `input` is "logits".
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        logits : array-like or frame of shape (n_samples, n_classes), optional
            Scores before the softmax in the place of X, for any method: ``fit(y=y, logits=z)``.

        Returns
        -------
        Calibrator
            Itself, fitted.
        """
        self._check_options()
        self._check_prior()
        self._clear_fitted_attributes()
        try:
            predictions = self._validate_training_rows(X, y, sample_weight, logits)
        except InputError as error:
            raise _explain_prefixed_columns(
                error, X if logits is None else logits, y
            ) from None
        if self._absent and predictions.absent:
            warn(absent_class_warning(predictions, self._absent_class_consequence()))
        self._learn(self._reweight_to_prior(predictions))
        self._learn_prior(predictions)
        self.input_ = "probs" if predictions.logits is None else "logits"
        self.training_ = training_summary(predictions)
        return self

    def predict_proba(self, X: Any = None, *, logits: Any = None) -> Floats:
        """Return recalibrated probabilities of X, or of `logits`; columns as in `classes_`.

        Parameters
        ----------
        X : array-like, frame or Predictions
            Predicted probabilities, shape (n_samples, n_classes); logits where `input` is "logits".
        logits : array-like or frame, optional
            Scores before the softmax in the place of X, for any method.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        simplex = self._validate_rows(X, logits)
        return self._apply(simplex)

    def predict(self, X: Any = None, *, logits: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row (the first of equals).

        Parameters
        ----------
        X : array-like, frame or Predictions
            Predicted probabilities, shape (n_samples, n_classes); logits where `input` is "logits".
        logits : array-like or frame, optional
            Scores before the softmax in the place of X, for any method.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        probs = self.predict_proba(X, logits=logits)
        most_probable = probs.argmax(axis=1)
        return np.asarray(self.classes_[most_probable])

    def summary(self) -> str:
        """Say in a line what was fitted, from how many rows.

        Returns
        -------
        str
            For people: its words may change between versions, `get_params` and attributes do not.

        Examples
        --------
        >>> import mcllo
        >>> probs = [[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]]
        >>> print(mcllo.calibrators.Identity().fit(probs, [0, 1, 1, 0]).summary())
        identity map of 2 classes from 4 rows
        """
        check_is_fitted(self, "classes_")
        n_samples = getattr(self, "training_", {}).get("n_samples")
        words = f"{self.method} map of {len(self.classes_)} classes"
        if n_samples is not None:
            words += f" from {format_count(n_samples)} rows"
        learned = self._learned_words()
        return f"{words}: {learned}" if learned else words

    def _learned_words(self) -> str:
        """Return what was learned in a few words; empty where there is nothing to say."""
        return ""

    def for_stream(self) -> Self:
        """Return a copy for rows that come part by part."""
        return copy.copy(self)

    def save(self, path: str | os.PathLike[str], *, covariance: bool = False) -> None:
        """Write what was learned as JSON, atomically; `mcllo.load_calibrator` reads it.

        Parameters
        ----------
        path : path
            The file; ``-`` is standard output.
        covariance : bool
            Also write the covariance of an MCLLO fit: of 100 classes it is 1 MB. Standard errors
            are always there; intervals of recalibrated probabilities need the covariance.
        """
        check_is_fitted(self, "classes_")
        document = model_document(self, covariance)
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
        if str(path) == "-":
            standard_output().write(text)
        else:
            write_text(path, text)

    def export(
        self, to: str, path: str | os.PathLike[str] | None = None, **options: Any
    ) -> str | bytes:
        """Write what was learned in another form, as `mcllo.export.export` does.

        Parameters
        ----------
        to : {"onnx", "sql", "js", "torch", "python"}
            The form.
        path : path, optional
            Where to write it; ``-`` is standard output.
        **options
            Of the form; see `mcllo.export.export`.

        Returns
        -------
        str, or bytes of an ONNX model
        """
        writer = import_module(
            "mcllo.export"
        )  # a later room: known by name, loaded when asked
        return writer.export(self, to, path, **options)

    def _check_options(self) -> None:
        """Refuse parameters that are none."""
        if hasattr(self, "on"):
            check_choice("on", self.on, ("log_probs", "logits"))

    def _absent_class_consequence(self) -> str:
        """Return what becomes of a class that no label has."""
        return self._absent

    def _check_prior(self) -> None:
        """Refuse class frequencies that are none."""

    def _learn(self, predictions: Predictions) -> None:
        """Set what the method learns from validated rows."""

    def _reweight_to_prior(self, predictions: Predictions) -> Predictions:
        """Return the rows with the class frequencies of those to come, where these are known."""
        return predictions

    def _learn_prior(self, predictions: Predictions) -> None:
        """Set what `calibrators/_label_shift` knows of the rows, once the method has learned."""

    def _apply(self, simplex: Simplex) -> Floats:
        """Return what the fitted method makes of validated rows, a new array."""
        raise NotImplementedError

    def _state(self) -> dict[str, Any]:
        """Return what was learned as plain numbers."""
        state = {}
        for name, _ in self._learned:
            learned = getattr(self, f"{name}_")
            state[name] = none_for_nonfinite(learned)  # JSON has no NaN
        return state

    def _restore_state(self, state: dict[str, Any]) -> None:
        """Take back what `_state` returned."""
        for name, read in self._learned:
            setattr(self, f"{name}_", read(state[name]))

    def _clear_fitted_attributes(self) -> None:
        """Remove whatever an earlier fit set: what ends with an underscore, as scikit-learn has it.

        A fit that fails must not leave half of an earlier one behind.
        """
        for name in list(self.__dict__):
            if name.endswith("_"):
                delattr(self, name)

    def _set_classes(self, classes: tuple[Any, ...]) -> None:
        """Set the attributes that say what the columns are."""
        self.classes_ = label_array(classes)
        self.n_features_in_ = len(classes)

    def _validate_training_rows(
        self, X: Any, y: Any, sample_weight: Any, scores: Any = None
    ) -> Predictions:
        """Validate training rows and remember their classes and names."""
        X, logits = self._resolve_scores(X, scores)
        options = {}  # of those that the method has, as they were given
        for name in ("classes", "baseline", "normalize", "clip"):
            value = getattr(self, name, None)
            if value is not None:
                options[name] = value
        if options.get("baseline") in RESERVED_LABELS:
            del options["baseline"]  # the calibrator knows what the word asks for
        if isinstance(X, Predictions):
            baseline = options.get("baseline")
            predictions = as_predictions(
                X, y, sample_weight=sample_weight, baseline=baseline
            )
            if self.input == "logits" and predictions.logits is None:
                raise InputError(
                    f"{self.method} needs logits; these predictions have none."
                )
        elif y is None:
            name = type(self).__name__
            raise InputError(
                f"{name} requires y to be passed, but the target y is None."
            )
        elif self.needs_logs or logits is not None:
            predictions = Predictions.from_arrays(
                X, y, logits=logits, sample_weight=sample_weight, **options
            )
        else:
            # A method that takes no logarithms sees zeros as they are.
            check_row_indexes(X=X, y=y, sample_weight=sample_weight)
            named = None
            if "classes" in options:
                named = as_class_list(options["classes"])
            normalize = options.get("normalize", False)
            simplex = clean_probs(
                X, columns=named, normalize=normalize, keep_zeros=True
            )
            facts = clean_row_facts(len(simplex.probs), sample_weight)
            predictions = Predictions._labelled(simplex, y, named, None, facts)
        self._set_classes(predictions.classes)
        if not isinstance(X, Predictions):
            names = column_names(X if logits is None else logits)
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
        return predictions

    def _resolve_scores(self, X: Any, logits: Any) -> tuple[Any, Any]:
        """Return X and logits, of which one is None: X holds logits where `input` says so."""
        refuse_flag_as_logits(logits)
        if logits is not None and X is not None:
            rule = "be left out where logits are given, or they where X is"
            raise InputError(argument="X", rule=rule, found="both")
        refuse_sparse_or_complex(X if logits is None else logits)
        if self.input == "logits" and logits is None and not isinstance(X, Predictions):
            return None, X
        return X, logits

    def _validate_rows(self, X: Any, scores: Any = None) -> Simplex:
        """Validate rows to predict; columns of a frame are found by class name."""
        check_is_fitted(self, "classes_")
        X, logits = self._resolve_scores(X, scores)
        seen = self.n_features_in_
        table = X if logits is None else logits
        if isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] != seen:
            raise InputError(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting {seen} "
                "features as input: a column for each class."
            )
        classes = tuple(self.classes_.tolist())
        if isinstance(X, Predictions):
            refuse_choice_sets(X)
            if X.classes != classes:
                raise InputError(
                    f"predictions must have the classes {shorten(classes)}; "
                    f"got {shorten(X.classes)}."
                )
            if self.input == "logits" and X.logits is None:
                raise InputError(
                    f"{self.method} needs logits; these predictions have none."
                )
            return self._clipped_simplex(X)
        normalize = bool(getattr(self, "normalize", False))
        if logits is not None:
            return validate_rows_to_recalibrate(classes, None, logits)
        if self.needs_logs:
            clip = getattr(self, "clip_", None) or getattr(self, "clip", None)
            return validate_rows_to_recalibrate(classes, X, None, normalize, clip)
        simplex = clean_probs(X, columns=classes, normalize=normalize, keep_zeros=True)
        if simplex.probs.shape[1] != seen:
            raise InputError(
                f"probs must have a column for each of the {seen} classes; "
                f"got {simplex.probs.shape[1]}."
            )
        return simplex

    def _clipped_simplex(self, predictions: Predictions) -> Simplex:
        """Return rows that were read already, clipped as those learned from were."""
        clip = getattr(self, "clip_", None)
        if clip is not None and predictions.n_clipped:
            predictions = change_clip(predictions, clip)
        return Simplex(
            probs=predictions.probs,
            logits=predictions.logits,
            names=None,
            raised=predictions.raised,
            clip=predictions.clip,
            n_zeros=predictions.n_zeros,
            n_renormalized=0,
            max_row_error=0.0,
        )


def _explain_prefixed_columns(error: InputError, table: Any, y: Any) -> InputError:
    """Return the error of a frame whose columns are labels and a prefix with a remedy for X."""
    placed = error.row is not None or error.column is not None
    if (
        not placed
        or error.argument not in ("y", "probs", "logits")
        or n_columns(y) != 1
    ):
        return error
    names = column_names(table)
    if names is None:
        return error
    before, after = find_common_affixes(names, distinct_labels_as_text(y))
    if not before or after:
        return error
    rename = "X.columns = [name.removeprefix({before!r}) for name in X.columns]"
    told = (
        f"The columns are labels with {{before!r}} before them; rename them: {rename}."
    )
    return error.with_remedy(told, before=before)


class Identity(Calibrator):
    """Return predictions as they are.

    Rows are validated like everywhere else and divided by their sum; zeros stay zeros.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.

    See Also
    --------
    mcllo.compare : Shows it as the rows without recalibration.
    TemperatureScaling : The smallest map that changes something.
    mcllo.MCLLOCalibrator : The paper's method.

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
        self._learn_each_class(predictions)

    def _apply(self, simplex: Simplex) -> Floats:
        answers = self._recalibrate_each_class(simplex.probs)
        return normalize_rows(
            answers, simplex.probs, absent=self.absent_, zero_row=self.zero_row
        )

    def _learn_each_class(self, predictions: Predictions) -> None:
        """Set what the method learns about each class."""

    def _recalibrate_each_class(self, probs: Floats) -> Floats:
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
    probs_of_present = probs[:, present]
    shared = np.ones((len(probs), 1))
    if absent:
        shared = probs_of_present.sum(axis=1, keepdims=True)
    where_all_are_zero = (
        probs_of_present if zero_row == "original" else shared / len(present)
    )

    total = answers[:, present].sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # 0 / 0, which is not taken
        normalized = answers[:, present] / total * shared
    rows[:, present] = np.where(total > 0.0, normalized, where_all_are_zero)
    return rows


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value of the argument `name` that is not one of `choices`."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InputError(argument=name, rule=f"be one of {known}", value=value)


def refuse_sparse_or_complex(X: Any) -> None:
    """Refuse sparse and complex tables in the words that scikit-learn's users know."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputError(
            "X must be dense; sparse input is not supported. Pass X.toarray()."
        )
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InputError(
            f"X must hold real numbers; got {X.dtype}. Complex data not supported."
        )


def floats_from_json(numbers: Any) -> Floats:
    """Return saved numbers as an array; None becomes NaN."""
    return np.array(numbers, dtype=float)


def list_of_floats_from_json(rows: Any) -> list[Floats]:
    """Return saved lists of numbers as arrays."""
    return [floats_from_json(row) for row in rows]


def label_array(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels as an array of their own type."""
    array = np.array(classes)
    if array.tolist() != list(classes):  # of mixed types NumPy makes texts
        array = np.empty(len(classes), dtype=object)
        array[:] = classes
    return array
