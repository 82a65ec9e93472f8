"""What `compare` runs: the recalibrations, by what name, on which folds.

==================  ============================================================================
a key               of `CALIBRATORS`; its name is the key. Where there are no logits, a method of
                    logits reads log probabilities and says so: ``vector_log_probs``
an object           a calibrator, not fitted, of this package or another; its name is its key with
                    whatever differs from the default: ``mcllo(penalty=1.0)``
a mapping           of names to keys and objects
``cv=k``            `random_folds`: at random, whatever the labels; rows of a group share theirs
a splitter, pairs   as in scikit-learn, as long as each row is held out exactly once
==================  ============================================================================

What a map gains on rows that it was not fitted to: by folds, before anybody relies on it.

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

from .._utils.results import Codes, Result
from .._utils.statements import Statement, suppress_warnings
from .._validation.frames import did_you_mean
from .._validation.predictions import Predictions
from ..calibrators import CALIBRATORS
from ..calibrators._choice import Fold, changed_parameters, check_folds, is_ours, make_calibrator
from ..exceptions import InputError
from .recommend import UNCALIBRATED, recommend

MAX_CLASSES_FOR_LARGE_MAPS = 20
LARGE_MAPS = ("matrix", "dirichlet")
DEFAULT_METHODS = tuple(name for name in CALIBRATORS if name != "identity")
RESERVED = (UNCALIBRATED, f"{UNCALIBRATED}_train")
"""Names that the table has for the predictions themselves."""

Methods = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Method:
    """A recalibration to compare: what it is called, and a calibrator to clone."""

    name: str
    calibrator: Any

    @property
    def family(self) -> str:
        """The key of a method as theory knows it, without penalty, gate or other choices."""
        others = changed_parameters(self.calibrator).keys() - {
            "baseline",
            "classes",
            "on",
            "normalize",
        }
        return self.calibrator.method if is_ours(self.calibrator) and not others else ""


def known_methods(name: str) -> str:
    """Return what a word that is no method was meant to be, or what there is."""
    return did_you_mean(name, tuple(CALIBRATORS), "known are")


def choose_methods(
    learn: Predictions, judge: Predictions, methods: Methods | str | None
) -> tuple[list[Method], dict[str, str]]:
    """Return the methods to run, and why others are not."""
    logits = learn.logits is not None and judge.logits is not None
    if methods is None:
        skipped = {}
        if learn.n_classes > MAX_CLASSES_FOR_LARGE_MAPS:
            why = f"more than {learn.n_classes**2} parameters; ask for it by name"
            skipped = {_name(name, logits): why for name in LARGE_MAPS}
        found = [_method(key, logits) for key in DEFAULT_METHODS]
        return [method for method in found if method.name not in skipped], skipped
    if isinstance(methods, str) or hasattr(methods, "predict_proba"):
        methods = [methods]
    if isinstance(methods, Mapping):
        given = {str(name): _method(what, logits) for name, what in methods.items()}
        found = [Method(name, method.calibrator) for name, method in given.items()]
    else:
        found = [_method(what, logits) for what in methods]
    names = [method.name for method in found]
    for name in names:
        if names.count(name) > 1 or name in RESERVED:
            rule = f"have names of their own, other than {' and '.join(RESERVED)}"
            remedy = "Pass a dict of names and calibrators."
            raise InputError(argument="methods", rule=rule, value=name, remedy=remedy)
    return found, {}


def _method(what: Any, logits: bool) -> Method:
    """Return a key or an object as a method, reading logits where there are any."""
    if not isinstance(what, str):
        own = make_calibrator(what, CALIBRATORS)
        options = ", ".join(f"{name}={value!r}" for name, value in changed_parameters(own).items())
        key = own.method if is_ours(own) else type(own).__name__
        return Method(f"{key}({options})" if options else key, own)
    if what not in CALIBRATORS:
        raise InputError(
            "{method_found} is not known; {known}",
            argument="methods",
            value=what,
            values={"method": what, "known": known_methods(what)},
        )
    own = CALIBRATORS[what]()
    if own.input == "logits" and not logits:
        own.set_params(on="log_probs")
    return Method(_name(what, logits), own)


def _name(key: str, logits: bool) -> str:
    """Return what a method is called: of log probabilities where it is a method of logits."""
    return key if logits or CALIBRATORS[key]().input == "probs" else f"{key}_log_probs"


def fold_indices(cv: Any, learn: Predictions, seed: int) -> list[Fold]:
    """Return (training rows, held-out rows) of each fold."""
    if hasattr(cv, "split") and not isinstance(cv, str):
        cv = _split(cv, learn)
    elif isinstance(cv, str) or not isinstance(cv, Iterable):
        codes = random_folds(learn.n_samples, cv, seed, learn.groups)
        parts = (codes == fold for fold in range(int(codes.max()) + 1))
        return [(np.flatnonzero(~held), np.flatnonzero(held)) for held in parts]
    remedy = "Use KFold or another splitter of scikit-learn that does, or a number of folds."
    return check_folds(cv, learn.n_samples, "", remedy)


def _split(splitter: Any, learn: Predictions) -> list[Any]:
    """Return the folds of a splitter of scikit-learn, or in one sentence why it refuses."""
    try:
        return list(splitter.split(learn.probs, learn.codes, groups=learn.groups))
    except ValueError as error:
        remedy = "If it goes by groups, pass {groups}."
        raise InputError(
            "cv must split these rows; {splitter} says: {error}",
            argument="cv",
            remedy=remedy if learn.groups is None else None,
            values={"splitter": type(splitter).__name__, "error": str(error)},
        ) from None


def random_folds(n_samples: int, n_folds: Any, seed: int, groups: Codes | None = None) -> Codes:
    """Return a fold for each row, whatever its label; rows of one group share theirs."""
    if isinstance(n_folds, bool) or not isinstance(n_folds, (int, np.integer)) or n_folds < 2:
        rule = "be a whole number of at least 2 folds"
        raise InputError(argument="cv", rule=rule, value=n_folds)
    units, word = n_samples, "rows"
    if groups is not None:
        units, word = int(groups.max()) + 1, "groups"
    if n_folds > units:
        rule = f"not exceed the number of {word} ({units})"
        raise InputError(argument="cv", rule=rule, value=n_folds)
    folds = np.empty(units, dtype=np.intp)
    folds[np.random.default_rng([seed, 1]).permutation(units)] = np.arange(units) % n_folds
    return folds if groups is None else folds[groups]


N_FOLDS = 5
SEED = 0
MIN_ROWS = 10
MAX_CELLS = 2_000_000
"""Rows times classes up to which a map is judged by folds."""


@dataclass(frozen=True)
class HeldOut(Result):
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
        lowers = self.gain >= 0.0
        low, high = (self.low, self.high) if lowers else (-self.high, -self.low)
        does = "lowers" if lowers else "raises"
        text = (
            f"On rows that it was not fitted to ({self.folds} folds) it {does} log loss by "
            f"{abs(self.gain):.4f} ({low:.4f} to {high:.4f})"
        )
        if self.kind == "helps":
            return Statement("gain", f"{text}: expected to help.", "good", self.to_dict())
        if self.kind == "unclear":
            return Statement("gain", f"{text}, which may be chance.", "doubt", self.to_dict())
        harm = "expected to do harm" if self.high < 0.0 else "more likely to do harm than good"
        template = (
            f"{text}: {harm}. Use {{auto_calibrator}}, which leaves predictions alone where no "
            "recalibration pays, or learn from more rows."
        )
        return Statement.filled("gain", template, {}, "bad", self.to_dict())


def held_out(estimator: Any, predictions: Predictions) -> HeldOut | None:
    """Return what an unfitted calibrator gains on rows left out; None where that is not asked.

    Examples
    --------
    >>> from mcllo import MCLLOCalibrator, simulate
    >>> calm = simulate.draw(60, n_classes=4, distribution="dirichlet", seed=4)
    >>> held_out(MCLLOCalibrator(), calm).kind  # predictions that are right as they are
    'harms'
    """
    n = predictions.n_samples
    if n < MIN_ROWS or predictions.probs.size > MAX_CELLS:
        return None
    folds = random_folds(n, N_FOLDS, SEED, predictions.groups)
    recalibrated, params = np.empty(predictions.probs.shape), estimator.get_params(deep=False)
    with suppress_warnings():  # the fit of all rows says what there is to say
        for fold in range(N_FOLDS):
            held = folds == fold
            own = type(estimator)(**params).fit(predictions.take(~held))
            recalibrated[held] = own.predict_proba(predictions.take(held))
        sets = {UNCALIBRATED: predictions, "map": predictions.with_probs(recalibrated)}
        found = recommend(sets, cross_validated=True)
    sign = -1.0 if found.method == UNCALIBRATED else 1.0
    other = found.difference("map" if found.method == UNCALIBRATED else UNCALIBRATED)
    assert other is not None
    low, high = sorted((sign * other.low, sign * other.high))
    return HeldOut(sign * other.difference, low, high, found.improves, N_FOLDS, n)
