"""What `compare` runs: the recalibrations, by what name, on which folds; and what one map gains.

==================  ============================================================================
a key               of `CALIBRATORS`; its name is the key. Where there are no logits, a method of
                    logits reads log probabilities and says so: ``vector_log_probs``
an object           a calibrator, not fitted, of this package or another; its name is its key with
                    whatever differs from the default: ``mcllo(penalty=1.0)``
a mapping           of names to keys and objects
``cv=k``            `assign_random_folds`: at random, whatever the labels; groups stay together
a splitter, pairs   as in scikit-learn, as long as each row is held out exactly once
==================  ============================================================================

What a map gains on rows that it was not fitted to (`estimate_held_out_gain`), before anybody
relies on it:

==========  =======================================================================================
judged      each row by a map of the same method, fitted to the other folds (5 of them, at random
            with a fixed seed, whatever the labels; rows of one group share theirs)
gain        log loss as it is less log loss after, with a 95 % interval (`_comparison/recommend`)
helps       the interval lies above 0
harms       the gain is below 0: leaving the predictions as they are has the lower log loss
unclear     anything else: the gain may be chance
==========  =======================================================================================

Maximum likelihood on few rows fits noise (`docs/explanation/do-no-harm.md`). Tables of more than
two million numbers are not judged: a map of a few parameters fits hardly any noise there, and five
more fits take time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._utils.results import Result
from .._utils.statements import Statement, suppress_warnings
from .._validation.frames import did_you_mean
from .._validation.predictions import Predictions
from ..calibrators import CALIBRATORS, ChoiceCalibrator
from ..calibrators._choice import (
    Fold,
    assign_random_folds,
    check_folds,
    is_mcllo_calibrator,
    make_calibrator,
    non_default_parameters,
)
from ..exceptions import InputError
from .recommend import UNCALIBRATED, recommend

LARGE_MAPS = ("matrix", "dirichlet")
"""Maps with a parameter for each pair of classes."""
MAX_CLASSES_FOR_LARGE_MAPS = 20
"""Classes beyond which these are compared only by name: a round number, 400 parameters."""
DEFAULT_METHODS = (
    "auto",
    *(name for name in CALIBRATORS if name not in ("auto", "identity")),
)
"""What suits the data is compared, the default of all that recalibrates first."""
RESERVED = (UNCALIBRATED, f"{UNCALIBRATED}_train")
"""Names that the table has for the predictions themselves."""

CHOICE_METHODS: dict[str, dict[str, Any]] = {
    "slope": {"terms": "slope", "penalty": 0.0},
    "slope_ridge": {"terms": "slope"},
    "positions": {"terms": "positions", "penalty": 0.0},
    "positions_ridge": {"terms": "positions"},
    "both": {"terms": "both", "penalty": 0.0},
    "both_ridge": {"terms": "both"},
}
"""Methods of choice sets: what differs from the defaults of `ChoiceCalibrator`."""

Methods = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Method:
    """A recalibration to compare: what it is called, and a calibrator to clone."""

    name: str
    calibrator: Any

    @property
    def family(self) -> str:
        """The key of a method as theory knows it, without penalty, gate or other choices."""
        if not is_mcllo_calibrator(self.calibrator):
            return ""
        if isinstance(self.calibrator, ChoiceCalibrator):
            is_penalized = self.calibrator.penalty != 0.0
            is_gated = self.calibrator.gate is not None
            return "" if is_penalized or is_gated else self.calibrator.terms
        harmless = {"baseline", "classes", "on", "normalize"}  # which change no family
        has_choices = bool(non_default_parameters(self.calibrator).keys() - harmless)
        return "" if has_choices else self.calibrator.method


def suggest_method_names(unknown_name: str) -> str:
    """Return what a word that is no method was meant to be, or what there is."""
    return did_you_mean(unknown_name, tuple(CALIBRATORS), "known are")


def choose_methods(
    training: Predictions, evaluation: Predictions, methods: Methods | str | None
) -> tuple[list[Method], dict[str, str]]:
    """Return the methods to run, and why others are not."""
    has_logits = training.logits is not None and evaluation.logits is not None
    of_choices = training.offered is not None
    if methods is None and of_choices:
        methods = tuple(CHOICE_METHODS)
    if methods is None:
        return _suitable_methods(training.n_classes, has_logits)
    if isinstance(methods, str) or hasattr(methods, "predict_proba"):
        methods = [methods]
    if isinstance(methods, Mapping):
        found = [
            Method(str(name), _as_method(what, has_logits, of_choices).calibrator)
            for name, what in methods.items()
        ]
    else:
        found = [_as_method(what, has_logits, of_choices) for what in methods]
    names = [method.name for method in found]
    for name in names:
        if names.count(name) > 1 or name in RESERVED:
            rule = f"have names of their own, other than {' and '.join(RESERVED)}"
            remedy = "Pass a dict of names and calibrators."
            raise InputError(argument="methods", rule=rule, value=name, remedy=remedy)
    return found, {}


def _suitable_methods(
    n_classes: int, has_logits: bool
) -> tuple[list[Method], dict[str, str]]:
    """Return all methods that suit so many classes, and why others are left out."""
    skipped = {}
    if n_classes > MAX_CLASSES_FOR_LARGE_MAPS:
        why = f"more than {n_classes**2} parameters; ask for it by name"
        skipped = {_method_name(key, has_logits): why for key in LARGE_MAPS}
    found = [_as_method(key, has_logits) for key in DEFAULT_METHODS]
    return [method for method in found if method.name not in skipped], skipped


def _as_method(
    key_or_calibrator: Any, has_logits: bool, of_choices: bool = False
) -> Method:
    """Return a key or an object as a method, reading logits where there are any."""
    if of_choices:
        return _as_choice_method(key_or_calibrator)
    if not isinstance(key_or_calibrator, str):
        own = make_calibrator(key_or_calibrator, CALIBRATORS)
        options = ", ".join(
            f"{name}={value!r}" for name, value in non_default_parameters(own).items()
        )
        key = own.method if is_mcllo_calibrator(own) else type(own).__name__
        return Method(f"{key}({options})" if options else key, own)
    if key_or_calibrator not in CALIBRATORS:
        raise InputError(
            "{method_found} is not known; {known}",
            argument="methods",
            value=key_or_calibrator,
            values={
                "method": key_or_calibrator,
                "known": suggest_method_names(key_or_calibrator),
            },
        )
    own = CALIBRATORS[key_or_calibrator]()
    if own.input == "logits" and not has_logits:
        own.set_params(on="log_probs")
    return Method(_method_name(key_or_calibrator, has_logits), own)


def _as_choice_method(key_or_calibrator: Any) -> Method:
    """Return a key or a `ChoiceCalibrator` as a method of choice sets."""
    if isinstance(key_or_calibrator, ChoiceCalibrator):
        changed = non_default_parameters(key_or_calibrator)
        options = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        name = f"ChoiceCalibrator({options})"
        return Method(name, key_or_calibrator)
    if isinstance(key_or_calibrator, str) and key_or_calibrator in CHOICE_METHODS:
        options_of_key = CHOICE_METHODS[key_or_calibrator]
        return Method(key_or_calibrator, ChoiceCalibrator(**options_of_key))
    known = ", ".join(CHOICE_METHODS)
    rule = f"be one of {known}, or a ChoiceCalibrator, for choice sets"
    raise InputError(argument="methods", rule=rule, value=key_or_calibrator)


def _method_name(key: str, has_logits: bool) -> str:
    """Return what a method is called: of log probabilities where it is a method of logits."""
    if has_logits or CALIBRATORS[key]().input == "probs":
        return key
    return f"{key}_log_probs"


def fold_indices(cv: Any, training: Predictions, seed: int) -> list[Fold]:
    """Return (training rows, held-out rows) of each fold."""
    if hasattr(cv, "split") and not isinstance(cv, str):
        cv = _split_or_refuse(cv, training)
    elif isinstance(cv, str) or not isinstance(cv, Iterable):
        codes = assign_random_folds(training.n_samples, cv, seed, training.groups)
        n_folds = int(codes.max()) + 1
        return [
            (np.flatnonzero(codes != k), np.flatnonzero(codes == k))
            for k in range(n_folds)
        ]
    remedy = (
        "Use KFold or another splitter of scikit-learn that does, or a number of folds."
    )
    return check_folds(cv, training.n_samples, "", remedy)


def _split_or_refuse(splitter: Any, training: Predictions) -> list[Any]:
    """Return the folds of a splitter of scikit-learn, or in one sentence why it refuses."""
    try:
        return list(
            splitter.split(training.probs, training.codes, groups=training.groups)
        )
    except ValueError as error:
        remedy = "If it goes by groups, pass {groups}."
        raise InputError(
            "cv must split these rows; {splitter} says: {error}",
            argument="cv",
            remedy=remedy if training.groups is None else None,
            values={"splitter": type(splitter).__name__, "error": str(error)},
        ) from None


N_FOLDS = 5
SEED = 0
"""Folds that one map is judged by, and what they are drawn from: the same rows, the same answer."""
MIN_ROWS = 10
"""Rows from which it is judged: two to a fold."""
MAX_CELLS = 2_000_000
"""Rows times classes up to which it is judged: a round number."""


@dataclass(frozen=True)
class HeldOutGain(Result):
    """The gain of a map on rows left out, in nats of log loss a row.

    Attributes
    ----------
    gain, low, high : float
        Mean and its 95 % interval; negative where the map does harm.
    improves : bool
        Whether it is shown to help.
    folds, n_samples : int
        How it was judged.
    """

    gain: float
    low: float
    high: float
    improves: bool
    folds: int
    n_samples: int

    @property
    def kind(self) -> Literal["helps", "harms", "unclear"]:
        """What it comes to."""
        if self.improves:
            return "helps"
        return "harms" if self.gain < 0.0 else "unclear"

    def statement(self) -> Statement:
        """Return what it comes to, in words."""
        does = "lowers"
        low = self.low
        high = self.high
        if self.gain < 0.0:
            does = "raises"
            low = -self.high
            high = -self.low
        text = (
            f"On rows that it was not fitted to ({self.folds} folds) it {does} log loss by "
            f"{abs(self.gain):.4f} ({low:.4f} to {high:.4f})"
        )
        if self.kind == "helps":
            return Statement(
                "gain", f"{text}: expected to help.", "good", self.to_dict()
            )
        if self.kind == "unclear":
            return Statement(
                "gain", f"{text}, which may be chance.", "doubt", self.to_dict()
            )
        harm = (
            "expected to do harm"
            if self.high < 0.0
            else "more likely to do harm than good"
        )
        template = (
            f"{text}: {harm}. Use {{auto_calibrator}}, which leaves predictions alone where no "
            "recalibration pays, or learn from more rows."
        )
        return Statement.filled("gain", template, {}, "bad", self.to_dict())


def estimate_held_out_gain(
    calibrator: Any, predictions: Predictions
) -> HeldOutGain | None:
    """Return what an unfitted calibrator gains on rows left out; None where that is not asked.

    Examples
    --------
    >>> from mcllo import MCLLOCalibrator, simulate
    >>> calm = simulate.draw(60, n_classes=4, distribution="dirichlet", seed=4)
    >>> estimate_held_out_gain(MCLLOCalibrator(), calm).kind  # predictions that are right
    'harms'
    """
    n_samples = predictions.n_samples
    if n_samples < MIN_ROWS or predictions.probs.size > MAX_CELLS:
        return None
    folds = assign_random_folds(n_samples, N_FOLDS, SEED, predictions.groups)
    params = calibrator.get_params(deep=False)
    recalibrated = np.empty(predictions.probs.shape)
    with suppress_warnings():  # the fit of all rows says what there is to say
        for fold in range(N_FOLDS):
            held = folds == fold
            fitted = type(calibrator)(**params).fit(predictions.take(~held))
            recalibrated[held] = fitted.predict_proba(predictions.take(held))
        sets = {UNCALIBRATED: predictions, "map": predictions.with_probs(recalibrated)}
        found = recommend(sets, cross_validated=True)
    # Differences are to the better of the two; the gain is that of the map over doing nothing.
    if found.method == UNCALIBRATED:
        worse = found.difference("map")
        sign = -1.0
    else:
        worse = found.difference(UNCALIBRATED)
        sign = 1.0
    assert worse is not None
    low, high = sorted((sign * worse.low, sign * worse.high))
    return HeldOutGain(
        sign * worse.difference, low, high, found.improves, N_FOLDS, n_samples
    )
