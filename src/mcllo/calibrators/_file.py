"""The model file: JSON that anyone can read, checked whole before a number of it is used.

=====================  ==========================================================================
`document`             format, its version, method, params, classes, state, training, checksum
training               rows learned from, and their checksum: of each column as read (the
                       probabilities, the codes of the labels, the weights) the sum of (2 i + 1)
                       times the 64 bits of row i, modulo 2^64; of these sums the SHA-256. A word
                       that changes changes its sum, as odd factors have inverses, in a fifth of
                       the time of a SHA-256 of all rows. Null where rows stayed in blocks
checksum               SHA-256 of everything else, written by ``json.dumps`` with sorted keys and
                       without spaces; a file without one is read as it is
limits                 `LARGEST_FILE` bytes, `DEEPEST` brackets, `MOST_CLASSES` classes, numbers
                       that are finite and, in the map, at most `LARGEST` in size
`CHECKS`               what must hold of each method's own numbers: lengths, orders, ranges
=====================  ==========================================================================

A map whose numbers pass gives finite probabilities for every row that passes the door. Scores are
logits, at most 1e100 in size (`_input/probabilities`), or logarithms of positive doubles, at most
745. A linear map of up to 1e5 of them with weights of at most 1e100 stays below 1e206, so the
softmax subtracts finite numbers and its largest term is exp 0. Functions of single classes are
tables of numbers in [0, 1], and rows of which all are 0 have an answer of their own. A pool is a
mean of such rows with weights that sum to 1; look-alike classes add logarithms of positive numbers,
and a full map of what they give stays below 1e212. Class frequencies multiply a row by numbers in
[0, 1] and divide it by its sum; where that is 0 the row stays. That is why no row needs to be tried
but one, for the shapes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._ground.results import plain
from .._ground.statements import quiet
from .._ground.terminal import standard_input
from .._input.labels import class_names
from .._input.predictions import Predictions
from .._version import __version__
from ..exceptions import FileFormatError

if TYPE_CHECKING:
    from ._base import Calibrator

FORMAT = "mcllo calibrator"
FORMAT_VERSION = 2
READ_VERSIONS = (1, 2)
"""Version 1 had no training and no checksum, and always the covariance."""
LARGEST_FILE = 256 * 2**20
DEEPEST = 32
MOST_CLASSES = 100_000
LARGEST = 1e100
N_SHARED = 5
"""As in `_auto/similar_classes`."""


def document(calibrator: Calibrator, covariance: bool) -> dict[str, Any]:
    """Return what is written of a fitted calibrator."""
    state = plain(calibrator._state())
    if not covariance and state.pop("cov_theta", None) is not None:
        state["information"] = "errors"
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "mcllo_version": __version__,
        "method": calibrator.method,
        "params": plain(calibrator.get_params(deep=False)),
        "classes": calibrator.classes_.tolist(),
        "state": state,
        "training": getattr(calibrator, "training_", None),
    }
    return content | {"checksum": checksum(content)}


def checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document but for its checksum.

    Examples
    --------
    >>> checksum({"b": 0.1, "a": [1]}) == checksum({"a": [1], "b": 0.1, "checksum": "any"})
    True
    """
    rest = {name: value for name, value in content.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def training_of(predictions: Predictions) -> dict[str, Any]:
    """Return how many rows were learned from, and the checksum of their numbers."""
    n, sums = predictions.n_samples, hashlib.sha256()
    factors = np.arange(1, 2 * n, 2, dtype=np.uint64)
    parts = ((predictions.probs, np.float64), (predictions.codes, np.int64))
    for part, kind in (*parts, (predictions.sample_weight, np.float64)):
        if part is not None:
            words = np.ascontiguousarray(part, dtype=kind).view(np.uint64).reshape(n, -1)
            sums.update(np.einsum("i,ij->j", factors, words).astype("<u8").data)
    return {"n_samples": int(n), "checksum": f"sha256:{sums.hexdigest()}"}


def restored(path: str | os.PathLike[str], registry: Mapping[str, type[Calibrator]]) -> Calibrator:
    """Return the calibrator saved at `path`, of a method in the `registry`, checked whole."""
    content = _read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} must be a calibrator saved by mcllo (a JSON file with format {FORMAT!r}); "
            "make one with `mcllo fit` or .save()."
        )
    if content.get("format_version") not in READ_VERSIONS:
        known = " or ".join(map(str, READ_VERSIONS))
        raise FileFormatError(
            f"{path} must have format version {known}; it has "
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
        check_document(content)
        return _made(content, registry[method])
    except _DamageError as error:
        raise FileFormatError(f"{path} is damaged: {error} Fit and save again.") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise FileFormatError(
            f"{path} is damaged: {type(error).__name__} at {error}. Fit and save again."
        ) from None


def _made(content: dict[str, Any], kind: type[Calibrator]) -> Calibrator:
    """Return the calibrator of a document that passed; its shapes are tried on one row."""
    estimator = kind(**content["params"])
    estimator._remember(tuple(content["classes"]))
    estimator._restore(content["state"])
    if content.get("training") is not None:
        estimator.training_ = content["training"]
    classes = class_names(estimator.classes_.tolist())
    row = np.zeros(len(classes)) if estimator.input == "logits" else 1.0 / len(classes)
    with quiet(), np.errstate(all="ignore"):
        out = estimator.predict_proba(np.broadcast_to(row, (1, len(classes))))
    if out.shape != (1, len(classes)) or not abs(out.sum() - 1.0) < 1e-6:
        raise ValueError("numbers that do not give probabilities")
    return estimator


class _DamageError(Exception):
    """What must hold of a document and does not, as a sentence."""


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise _DamageError(f"{what}.")


def check_document(content: dict[str, Any]) -> None:
    """Refuse a document that breaks a rule of the module's card."""
    for name, kind in (("params", dict), ("classes", list), ("state", dict)):
        _must(isinstance(content.get(name), kind), f"{name} must be a JSON {_KINDS[kind]}")
    classes, state = content["classes"], content["state"]
    _must(2 <= len(classes) <= MOST_CLASSES, f"classes must name 2 to {MOST_CLASSES:,} classes")
    plain_labels = all(isinstance(label, (str, int, float)) for label in classes)
    _must(plain_labels, "classes must be texts or numbers")
    _must(len(set(map(str, classes))) == len(classes), "classes must differ from each other")
    own = state.get("classes", classes)
    _must(own == classes, "classes and state.classes must be the same")
    for place, value in _numbers(content, "", 0):
        finite = abs(value) <= sys.float_info.max  # also of whole numbers too large for a float
        _must(finite, f"{place} must be a finite number")
    for name in MAP_NUMBERS:
        for place, value in _numbers(state.get(name), f"state.{name}", 0):
            _must(abs(value) <= LARGEST, f"{place} must be at most {LARGEST:g} in size")
    if content["method"] in CHECKS:
        CHECKS[content["method"]](state, len(classes))
    if "checksum" in content:
        same = content["checksum"] == checksum(content)
        _must(same, "its content has changed since it was saved (the checksum is another)")


_KINDS = {dict: "object", list: "list"}
MAP_NUMBERS = (
    *("tau", "gamma", "weights", "intercepts", "coef", "intercept", "inverse_temperature"),
    *("members", "knots", "edges", "table", "low", "high", "theta", "learned", "new_shares"),
)
"""Fields of a state that predictions are made of."""


def _numbers(value: Any, place: str, depth: int) -> Iterator[tuple[str, float]]:
    """Yield every number of a document with its place."""
    _must(depth <= DEEPEST, f"brackets must not be nested deeper than {DEEPEST}")
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _numbers(item, f"{place}.{name}" if place else str(name), depth + 1)
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from _numbers(item, f"{place}[{k}]", depth + 1)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place, value


# what must hold of each method


def _row(values: Any, name: str, c: int) -> list[float]:
    """Return values that are c numbers."""
    fits = isinstance(values, list) and len(values) == c and all(map(_is_number, values))
    _must(fits, f"{name} must be a list of {c} numbers")
    return list(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shares(values: list[float], what: str) -> None:
    _must(all(v >= 0.0 for v in values), f"{what} must not be negative")
    _must(math.isclose(sum(values), 1.0, abs_tol=1e-6), f"{what} must sum to 1")


def _prior(state: dict[str, Any], c: int) -> None:
    learned, found = state.get("learned"), state.get("new_shares")
    for name, value in (("learned", learned), ("new_shares", found)):
        _must(value is None or isinstance(value, dict), f"{name} must be a JSON object or null")
    if learned is not None:
        reference, kept = _row(learned["reference"], "reference", c), learned["kept"]
        _row(learned["offset"], "offset", c)
        _shares(_row(learned["predicted"], "predicted", c), "predicted")
        _shares(reference, "reference")
        _must(min(reference) * LARGEST >= 1.0, "reference must be positive")  # is divided by
        if learned["variances"] is not None:
            _in_unit(_row(learned["variances"], "variances", c), "variances")
        positive = _is_number(learned["weight"]) and learned["weight"] > 0.0
        _must(positive, "weight must be a positive number")
        columns = isinstance(kept, list) and all(type(k) is int and 0 <= k < c for k in kept)
        _must(columns and len(set(kept)) == len(kept) < c, "kept must name some columns")
    if found is not None:
        _shares(_row(found["shares"], "shares", c), "shares")
        _must(all(v >= 0.0 for v in _row(found["se"], "se", c)), "se must not be negative")
        for name in ("n_samples", "n_iter"):
            whole = type(found[name]) is int and found[name] >= 0
            _must(whole, f"{name} must be a whole number, not negative")


def _mcllo(state: dict[str, Any], c: int) -> None:
    _prior(state, c)
    if state.get("baseline") == "all" and "weights" in state:
        _must(
            len(state["weights"]) == len(state["intercepts"]) == c, "weights must have a row each"
        )
        return
    same = len(state["tau"]) == len(state["gamma"]) == c - 1
    _must(same, "tau and gamma must have a value for each class but one")
    _must(state["baseline"] in state["classes"], "baseline must be a class")


def _one_vs_rest(state: dict[str, Any], c: int) -> None:
    absent = state.get("absent", [])
    inside = all(isinstance(k, int) and 0 <= k < c for k in absent)
    _must(inside and len(set(absent)) == len(absent) < c, "absent must name some columns")


def _in_unit(values: list[Any], what: str) -> None:
    _must(all(0.0 <= v <= 1.0 for v in values if v is not None), f"{what} must lie in [0, 1]")


def _histogram(state: dict[str, Any], c: int) -> None:
    _one_vs_rest(state, c)
    edges, table = state["edges"], state["table"]
    _must(len(edges) == len(table) == c, "edges and table must have a row for each class")
    for own, answers in zip(edges, table, strict=True):
        _must(len(answers) == len(own) + 1, "table must have one number more than edges")
        _must(sorted(own) == own, "edges must rise")
        _in_unit(answers, "table")


def _isotonic(state: dict[str, Any], c: int) -> None:
    _one_vs_rest(state, c)
    _must(len(state["knots"]) == c, "knots must have a row for each class")
    for at, value in state["knots"]:
        _must(len(at) == len(value) > 0, "knots must have a value for each place")
        _must(all(a < b for a, b in pairwise(at)), "knots must rise")
        _in_unit(value, "knots")


def _beta(state: dict[str, Any], c: int) -> None:
    _one_vs_rest(state, c)
    whole = len(state["coef"]) == c and all(len(row) == 3 for row in state["coef"])
    _must(whole, "coef must have three numbers for each class")


def _auto(state: dict[str, Any], c: int) -> None:
    _prior(state, c)
    soft, similar = state["members"]["soft"], state["members"].get("similar")
    _shares(list(state["weights"].values()), "weights")
    _must(0.0 <= soft["slip"] <= 1.0, "slip must lie in [0, 1]")
    positive = soft["slip"] * LARGEST >= 1.0 or not (state["members"]["maps"] or similar)
    _must(positive, "slip must be positive where maps take logarithms")
    if similar is not None:
        _must(isinstance(similar, dict), "similar must be a JSON object or null")
        _row(similar["shared"], "shared", N_SHARED)
        _row(similar["intercept"], "intercept", c)
        alike = similar["similarity"]
        _must(len(alike) == c, "similarity must have a row for each class")
        for k in range(c):
            _shares(_row(alike[k], "a row of similarity", c), "a row of similarity")
            _must(alike[k][k] == 0.0, "similarity must be 0 of a class and itself")


def _linear(state: dict[str, Any], c: int) -> None:
    _one_vs_rest(state, c)
    _must(len(state["intercept"]) == c, "intercept must have a number for each class")


def _xu_davoine(state: dict[str, Any], c: int) -> None:
    _must(len(state["low"]) == len(state["high"]) > 0, "low and high must have as many ends")


CHECKS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "mcllo": _mcllo,
    "auto": _auto,
    "temperature": _prior,
    "vector": _linear,
    "matrix": _linear,
    "dirichlet": _linear,
    "histogram": _histogram,
    "isotonic": _isotonic,
    "beta": _beta,
    "xu_davoine": _xu_davoine,
}
"""By method; those without an entry have no lengths or orders of their own."""


def _read_json(path: str | os.PathLike[str]) -> Any:
    """Return what a JSON file holds; ``-`` is standard input."""
    try:
        if str(path) == "-":
            text = standard_input().read(LARGEST_FILE + 1)
        else:
            with Path(path).open(encoding="utf-8") as file:
                text = file.read(LARGEST_FILE + 1)
        if len(text) > LARGEST_FILE:
            raise FileFormatError(
                f"{path} must be at most {LARGEST_FILE >> 20} MB; it is larger. Save it without "
                "its covariance."
            )
        return json.loads(text)
    except FileNotFoundError:
        raise FileFormatError(
            f"{path} must exist; there is no such file. Make one with `mcllo fit` or .save()."
        ) from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} must be a file; it is a directory. Name a file.") from None
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path} cannot be opened: {error.strerror or error}.") from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, numbers of thousands of digits
        raise FileFormatError(
            f"{path} must be a saved calibrator; it is not JSON. "
            "Make one with `mcllo fit` or .save()."
        ) from None
