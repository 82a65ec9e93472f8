"""Which calibrator is meant, by its key, as an object of ours, or of another package.

========================  ==========================================================================
`make_calibrator`         a key of the registry or an unfitted calibrator -> a calibrator of one's
                          own
`input_kind`              what its X holds: "probs" or "logits"; another package's reads
                          probabilities
`is_mcllo_calibrator`     whether it takes ``logits=`` and `Predictions`, and knows all classes
`assign_random_folds`     a fold for each row, whatever its label
`check_folds`             folds that hold out each row exactly once, which one row's judgement needs
`non_default_parameters`  what is not the default
`clone_and_fit`           a clone fitted to `Predictions`, whoever wrote it
`apply_calibrator`        what it makes of other rows
========================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from .._utils.results import Codes, Floats
from .._validation.frames import shorten
from .._validation.predictions import Predictions
from ..exceptions import InputError, show
from ._base import Calibrator, label_array

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def make_calibrator(
    key_or_calibrator: Any, registry: Mapping[str, type[Calibrator]]
) -> Any:
    """Return a calibrator of one's own, not fitted: made from its key, or cloned."""
    if isinstance(key_or_calibrator, str):
        if key_or_calibrator not in registry:
            platt = ""
            if key_or_calibrator == "sigmoid":
                platt = (
                    " (scikit-learn's 'sigmoid', Platt scaling, is 'mcllo' here: of two classes "
                    "the same curve, of more its multinomial form)"
                )
            raise InputError(
                "calibrator must be one of {known}; got {key!r}{platt}.",
                argument="calibrator",
                value=key_or_calibrator,
                values={
                    "known": ", ".join(registry),
                    "key": key_or_calibrator,
                    "platt": platt,
                },
            )
        return registry[key_or_calibrator]()
    is_calibrator = hasattr(key_or_calibrator, "fit") and hasattr(
        key_or_calibrator, "predict_proba"
    )
    if isinstance(key_or_calibrator, type) or not is_calibrator:
        raise InputError(
            f"calibrator must be one of {', '.join(registry)}, or a calibrator such as "
            f"mcllo.MCLLOCalibrator(penalty=1.0); got {show(key_or_calibrator)}."
        )
    return clone(key_or_calibrator)


def is_mcllo_calibrator(calibrator: Any) -> bool:
    """Whether a calibrator is one of this package."""
    return isinstance(calibrator, Calibrator)


def input_kind(calibrator: Any) -> str:
    """Return what X of a calibrator holds; one of another package reads probabilities."""
    return str(getattr(calibrator, "input", "probs"))


def assign_random_folds(
    n_samples: int, n_folds: Any, seed: int, groups: Codes | None = None
) -> Codes:
    """Return a fold for each row, whatever its label; rows of one group share theirs."""
    is_whole = isinstance(n_folds, (int, np.integer)) and not isinstance(n_folds, bool)
    if not is_whole or n_folds < 2:
        rule = "be a whole number of at least 2 folds"
        raise InputError(argument="cv", rule=rule, value=n_folds)
    n_units = n_samples if groups is None else int(groups.max()) + 1
    if n_folds > n_units:
        units = "rows" if groups is None else "groups"
        rule = f"not exceed the number of {units} ({n_units})"
        raise InputError(argument="cv", rule=rule, value=n_folds)
    order = np.random.default_rng([seed, 1]).permutation(n_units)
    folds = np.empty(n_units, dtype=np.intp)
    folds[order] = np.arange(n_units) % n_folds
    return folds if groups is None else folds[groups]


def check_folds(
    folds: Iterable[Any], n_samples: int, when: str, remedy: str
) -> list[Fold]:
    """Return the folds as row numbers; refuse those that leave out or repeat a row."""
    pairs = []
    for train, test in folds:
        pairs.append((np.asarray(train), np.asarray(test)))
    held_out = np.concatenate([test for _, test in pairs])
    times = np.bincount(held_out, minlength=n_samples)
    is_wrong = times != 1
    if is_wrong.any():
        row = int(np.argmax(is_wrong))  # the first
        raise InputError(
            f"cv must hold out each row exactly once{when}; row {row} is held out "
            f"{times[row]} times. {remedy}",
            argument="cv",
            row=row,
        )
    return pairs


def non_default_parameters(calibrator: Any) -> dict[str, Any]:
    """Return the parameters of a calibrator that are not the default ones."""
    parameters = signature(type(calibrator)).parameters
    changed = {}
    for name, value in calibrator.get_params(deep=False).items():
        # As text: arrays have no single answer to whether they are equal.
        is_default = name in parameters and repr(value) == repr(
            parameters[name].default
        )
        if not is_default:
            changed[name] = value
    return changed


def clone_and_fit(calibrator: Any, predictions: Predictions) -> Any:
    """Return a clone fitted to these rows; a baseline that was left open is theirs."""
    own = clone(calibrator)
    if is_mcllo_calibrator(own):
        if "baseline" in own.get_params() and own.baseline is None:
            own.set_params(baseline=predictions.baseline)
        return own.fit(predictions)
    labels = label_array(predictions.classes)[predictions.codes]
    weight = predictions.sample_weight
    if weight is None or not has_fit_parameter(own, "sample_weight"):
        return own.fit(predictions.probs, labels)
    return own.fit(predictions.probs, labels, sample_weight=weight)


def apply_calibrator(fitted: Any, rows: Predictions) -> Floats:
    """Return what a fitted calibrator makes of these rows, columns in the order of the classes."""
    if is_mcllo_calibrator(fitted):
        return fitted.predict_proba(rows)
    probs = np.asarray(fitted.predict_proba(rows.probs), dtype=np.float64)
    known = np.asarray(getattr(fitted, "classes_", rows.classes)).tolist()
    if probs.shape != rows.probs.shape or known != list(rows.classes):
        raise InputError(
            f"{type(fitted).__name__} must give a column for each of the classes "
            f"{shorten(rows.classes)}; it gives the shape {probs.shape} for {shorten(known)}."
        )
    return probs
