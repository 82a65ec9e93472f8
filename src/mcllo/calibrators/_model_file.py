"""The model file: JSON that anyone can read, checked whole before a number of it is used.

==========  ========================================================================================
`model_document`  format, its version, method, params, classes, input, state, training, checksum
input       what it was fitted to, probs or logits; files before this field have none
training    rows learned from, and their checksum: of each column as read (the probabilities, the
            codes of the labels, the weights) the sum of (2 i + 1) times the 64 bits of row i,
            modulo 2^64; of these sums the SHA-256. A word that changes changes its sum, as odd
            factors have inverses, in a fifth of the time of a SHA-256 of all rows. Null where rows
            stayed in blocks
checksum    SHA-256 of everything else, written by ``json.dumps`` with sorted keys and without
            spaces; a file without one is read as it is
limits      `MAX_FILE_BYTES` bytes, `MAX_DEPTH` brackets, `MAX_CLASSES` classes,
            numbers that are finite and, in the map, at most `MAX_NUMBER` in size
`CHECKS`    what must hold of each method's own numbers: lengths, orders, ranges
==========  ========================================================================================

A map whose numbers pass gives finite probabilities for every row that passes the door. Scores are
logits, at most 1e100 in size (`_validation/probabilities`), or logarithms of positive doubles, at
most 745. A linear map of up to 1e5 of them with weights of at most 1e100 stays below 1e206, so the
softmax subtracts finite numbers and its largest term is exp 0. Functions of single classes are
tables of numbers in [0, 1], and rows of which all are 0 have an answer of their own. A pool is a
mean of such rows with weights that sum to 1; similar classes add logarithms of positive numbers,
and a full map of what they give stays below 1e212. Trees add at most 1e100 a round to a logarithm.
Class frequencies multiply a row by numbers in [0, 1] and divide it by its sum; where that is 0 the
row stays. That is why no row needs to be tried but one, for the shapes.
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

from .._utils.results import to_plain_python
from .._utils.statements import suppress_warnings
from .._utils.terminal import standard_input
from .._validation.labels import as_class_list
from .._validation.predictions import Predictions
from ..exceptions import FileFormatError

if TYPE_CHECKING:
    from ._base import Calibrator

FORMAT = "mcllo calibrator"
FORMAT_VERSION = 2
READABLE_VERSIONS = (1, 2)
"""Version 1 had no training and no checksum, and always the covariance."""
INPUTS = ("probs", "logits")
"""What a calibrator can be fitted to."""
# Limits, all round numbers far beyond any map that was fitted.
MAX_FILE_BYTES = 256 * 2**20
MAX_DEPTH = 32  # of brackets
MAX_CLASSES = 100_000
# size of a number in the map: see above what its products stay below
MAX_NUMBER = 1e100


def model_document(calibrator: Calibrator, covariance: bool) -> dict[str, Any]:
    """Return what is written of a fitted calibrator."""
    from .._version import __version__

    state = to_plain_python(calibrator._state())
    if not covariance and state.pop("cov_theta", None) is not None:
        state["information"] = "errors"
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "mcllo_version": __version__,
        "method": calibrator.method,
        "params": to_plain_python(calibrator.get_params(deep=False)),
        "classes": calibrator.classes_.tolist(),
        "input": getattr(calibrator, "input_", calibrator.input),
        "state": state,
        "training": getattr(calibrator, "training_", None),
    }
    return content | {"checksum": content_checksum(content)}


def content_checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document but for its checksum.

    Examples
    --------
    >>> content = {"b": 0.1, "a": [1]}
    >>> content_checksum(content) == content_checksum({**content, "checksum": "any"})
    True
    """
    rest = {name: value for name, value in content.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def training_summary(predictions: Predictions) -> dict[str, Any]:
    """Return how many rows were learned from, and the checksum of their numbers."""
    n_samples = predictions.n_samples
    columns = [
        np.ascontiguousarray(predictions.probs, dtype=np.float64),
        np.ascontiguousarray(predictions.codes, dtype=np.int64),
    ]
    if predictions.sample_weight is not None:
        columns.append(
            np.ascontiguousarray(predictions.sample_weight, dtype=np.float64)
        )

    odd_numbers = np.arange(1, 2 * n_samples, 2, dtype=np.uint64)
    digest = hashlib.sha256()
    for column in columns:
        words = column.view(np.uint64).reshape(n_samples, -1)
        sums = np.einsum(
            "i,ij->j", odd_numbers, words
        )  # modulo 2^64, as integers overflow
        digest.update(sums.astype("<u8").data)  # little endian on every machine
    return {"n_samples": int(n_samples), "checksum": f"sha256:{digest.hexdigest()}"}


def restore_calibrator(
    path: str | os.PathLike[str], registry: Mapping[str, type[Calibrator]]
) -> Calibrator:
    """Return the calibrator saved at `path`, of a method in the `registry`, checked whole."""
    content = _read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} must be a calibrator saved by mcllo (a JSON file with format {FORMAT!r}); "
            "make one with `mcllo fit` or .save()."
        )
    if content.get("format_version") not in READABLE_VERSIONS:
        known = " or ".join(map(str, READABLE_VERSIONS))
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
        return _build_calibrator(content, registry[method])
    except _DamageError as error:
        raise FileFormatError(
            f"{path} is damaged: {error} Fit and save again."
        ) from None
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        OverflowError,
    ) as error:
        raise FileFormatError(
            f"{path} is damaged: {type(error).__name__} at {error}. Fit and save again."
        ) from None


def _build_calibrator(content: dict[str, Any], kind: type[Calibrator]) -> Calibrator:
    """Return the calibrator of a document that passed; its shapes are tried on one row."""
    estimator = kind(**content["params"])
    estimator._set_classes(tuple(content["classes"]))
    estimator._restore_state(content["state"])
    estimator.input_ = content.get("input", estimator.input)
    if content.get("training") is not None:
        estimator.training_ = content["training"]
    classes = as_class_list(estimator.classes_.tolist())
    # A row that says nothing: equal logits, or equal probabilities.
    same_for_all = 0.0 if estimator.input == "logits" else 1.0 / len(classes)
    row = np.full((1, len(classes)), same_for_all)
    with suppress_warnings(), np.errstate(all="ignore"):
        probs = estimator.predict_proba(row)
    if probs.shape != row.shape or not abs(probs.sum() - 1.0) < 1e-6:
        raise ValueError("numbers that do not give probabilities")
    return estimator


class _DamageError(Exception):
    """What must hold of a document and does not, as a sentence."""


def _require(is_met: bool, rule: str) -> None:
    if not is_met:
        raise _DamageError(f"{rule}.")


def check_document(content: dict[str, Any]) -> None:
    """Refuse a document that breaks a rule of the module's table."""
    for name, kind, called in (
        ("params", dict, "object"),
        ("classes", list, "list"),
        ("state", dict, "object"),
    ):
        _require(isinstance(content.get(name), kind), f"{name} must be a JSON {called}")
    state = content["state"]
    classes = content["classes"]
    _require(
        2 <= len(classes) <= MAX_CLASSES,
        f"classes must name 2 to {MAX_CLASSES:,} classes",
    )
    are_plain = all(isinstance(label, (str, int, float)) for label in classes)
    _require(are_plain, "classes must be texts or numbers")
    _require(
        len(set(map(str, classes))) == len(classes),
        "classes must differ from each other",
    )
    is_known = content.get("input", "probs") in INPUTS
    _require(is_known, "input must be probs or logits")
    are_same = state.get("classes", classes) == classes
    _require(are_same, "classes and state.classes must be the same")

    for place, value in _iterate_numbers(content, "", 0):
        is_finite = (
            abs(value) <= sys.float_info.max
        )  # also of integers too large for a float
        _require(is_finite, f"{place} must be a finite number")
    for name in MAP_NUMBERS:
        for place, value in _iterate_numbers(state.get(name), f"state.{name}", 0):
            _require(
                abs(value) <= MAX_NUMBER,
                f"{place} must be at most {MAX_NUMBER:g} in size",
            )
    if content["method"] in CHECKS:
        check_state = CHECKS[content["method"]]
        check_state(state, len(classes))
    if "checksum" in content:
        is_same = content["checksum"] == content_checksum(content)
        _require(
            is_same,
            "its content has changed since it was saved (the checksum is another)",
        )


MAP_NUMBERS = (
    *(
        "tau",
        "gamma",
        "weights",
        "intercepts",
        "coef",
        "intercept",
        "inverse_temperature",
    ),
    *(
        "members",
        "knots",
        "edges",
        "table",
        "low",
        "high",
        "theta",
        "learned",
        "new_shares",
    ),
    "correction",
)
"""Fields of a state that predictions are made of."""


def _iterate_numbers(value: Any, place: str, depth: int) -> Iterator[tuple[str, float]]:
    """Yield every number of a document with its place."""
    _require(depth <= MAX_DEPTH, f"brackets must not be nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _iterate_numbers(
                item, f"{place}.{name}" if place else str(name), depth + 1
            )
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from _iterate_numbers(item, f"{place}[{k}]", depth + 1)
    elif _is_number(value):
        yield place, value


# The words of the rules: what numbers and lists may be asked for.


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_index(value: Any, size: int) -> bool:
    return type(value) is int and 0 <= value < size


def _is_rising(values: list[float]) -> bool:
    return all(before < after for before, after in pairwise(values))


def _check_object_or_null(value: Any, name: str) -> None:
    _require(
        value is None or isinstance(value, dict),
        f"{name} must be a JSON object or null",
    )


def _checked_row(values: Any, name: str, n_classes: int) -> list[float]:
    """Return values that are c numbers."""
    is_list = isinstance(values, list) and len(values) == n_classes
    _require(
        is_list and all(map(_is_number, values)),
        f"{name} must be a list of {n_classes} numbers",
    )
    return list(values)


def _check_not_negative(values: list[float], value_name: str) -> None:
    _require(
        all(value >= 0.0 for value in values), f"{value_name} must not be negative"
    )


def _check_shares(values: list[float], value_name: str) -> None:
    _check_not_negative(values, value_name)
    _require(
        math.isclose(sum(values), 1.0, abs_tol=1e-6), f"{value_name} must sum to 1"
    )


def _check_positive_shares(values: list[float], value_name: str) -> None:
    _check_shares(values, value_name)
    _require(
        min(values) * MAX_NUMBER >= 1.0, f"{value_name} must be positive"
    )  # the map divides by them


def _check_unit_interval(values: list[Any], value_name: str) -> None:
    is_inside = all(0.0 <= value <= 1.0 for value in values if value is not None)
    _require(is_inside, f"{value_name} must lie in [0, 1]")


def _check_proper_subset(columns: Any, name: str, n_classes: int) -> None:
    """Ask for different columns, not all of them."""
    are_columns = isinstance(columns, list) and all(
        _is_index(column, n_classes) for column in columns
    )
    is_fine = are_columns and len(set(columns)) == len(columns) < n_classes
    _require(is_fine, f"{name} must name some columns")


# What must hold of the numbers of each method, of c classes.


def _check_mcllo(state: dict[str, Any], n_classes: int) -> None:
    _check_prior_state(state, n_classes)
    if state.get("baseline") == "all" and "weights" in state:
        has_rows = len(state["weights"]) == len(state["intercepts"]) == n_classes
        _require(has_rows, "weights must have a row each")
        return
    has_values = len(state["tau"]) == len(state["gamma"]) == n_classes - 1
    _require(has_values, "tau and gamma must have a value for each class but one")
    _require(state["baseline"] in state["classes"], "baseline must be a class")


def _check_prior_state(state: dict[str, Any], n_classes: int) -> None:
    _check_object_or_null(state.get("learned"), "learned")
    _check_object_or_null(state.get("new_shares"), "new_shares")
    if state.get("learned") is not None:
        _check_learned(state["learned"], n_classes)
    if state.get("new_shares") is not None:
        _check_new_shares(state["new_shares"], n_classes)


def _check_learned(learned: dict[str, Any], n_classes: int) -> None:
    """Check `calibrators/_label_shift.Learned`."""
    reference = _checked_row(learned["reference"], "reference", n_classes)
    _checked_row(learned["offset"], "offset", n_classes)
    _check_shares(
        _checked_row(learned["predicted"], "predicted", n_classes), "predicted"
    )
    _check_positive_shares(reference, "reference")
    if learned["variances"] is not None:
        _check_unit_interval(
            _checked_row(learned["variances"], "variances", n_classes), "variances"
        )
    is_positive = _is_number(learned["weight"]) and learned["weight"] > 0.0
    _require(is_positive, "weight must be a positive number")
    _check_proper_subset(learned["kept"], "kept", n_classes)
    _check_object_or_null(learned.get("tempered"), "tempered")
    if learned.get("tempered") is not None:
        _check_temperature_with_lapse(learned["tempered"])
    if learned.get("own") is not None:
        _check_positive_shares(_checked_row(learned["own"], "own", n_classes), "own")


def _check_new_shares(new_shares: dict[str, Any], n_classes: int) -> None:
    """Check `calibrators/_class_shares.ClassShares`."""
    _check_shares(_checked_row(new_shares["shares"], "shares", n_classes), "shares")
    _check_not_negative(_checked_row(new_shares["se"], "se", n_classes), "se")
    if "likeliest" in new_shares:
        _check_shares(
            _checked_row(new_shares["likeliest"], "likeliest", n_classes), "likeliest"
        )
        _check_unit_interval(
            _checked_row(new_shares["trust"], "trust", n_classes), "trust"
        )
    for name in ("n_samples", "n_iter"):
        is_count = type(new_shares[name]) is int and new_shares[name] >= 0
        _require(is_count, f"{name} must be a whole number, not negative")


def _check_temperature_with_lapse(soft: dict[str, Any]) -> None:
    """Check a temperature with a lapse rate."""
    are_numbers = _is_number(soft["inverse_temperature"]) and _is_number(soft["slip"])
    _require(are_numbers, "inverse_temperature and slip must be numbers")
    _require(0.0 <= soft["slip"] <= 1.0, "slip must lie in [0, 1]")


def _check_auto(state: dict[str, Any], n_classes: int) -> None:
    _check_prior_state(state, n_classes)
    members = state["members"]
    _check_shares(list(state["weights"].values()), "weights")
    _check_temperature_with_lapse(members["soft"])
    curves = members.get("curves", {})
    _check_curves(curves, n_classes)
    similar = members.get("similar")
    takes_logs = members["maps"] or similar or curves
    is_positive = members["soft"]["slip"] * MAX_NUMBER >= 1.0
    _require(
        is_positive or not takes_logs,
        "slip must be positive where maps take logarithms",
    )
    _check_object_or_null(similar, "similar")
    if similar is not None:
        _check_similar_classes(similar, n_classes)
    if state.get("correction") is not None:
        _check_tree_correction(state["correction"], n_classes)


def _check_similar_classes(similar: dict[str, Any], n_classes: int) -> None:
    """Check `calibrators/_auto/similarity.SimilarClasses`."""
    _checked_row(
        similar["shared"], "shared", 5
    )  # the features A x, A g, g, x and log(A g)
    _checked_row(similar["intercept"], "intercept", n_classes)
    similarity = similar["similarity"]
    _require(len(similarity) == n_classes, "similarity must have a row for each class")
    for k in range(n_classes):
        row = _checked_row(similarity[k], "a row of similarity", n_classes)
        _check_shares(row, "a row of similarity")
        _require(row[k] == 0.0, "similarity must be 0 of a class and itself")


def _check_curves(curves: Any, n_classes: int) -> None:
    """Check `calibrators/_auto/curves.Curve`, one or several."""
    _require(isinstance(curves, dict), "curves must be a JSON object")
    _require(n_classes == 2 or not curves, "curves must be of two classes")
    for curve in curves.values():
        has_values = len(curve["at"]) == len(curve["value"]) > 0
        _require(has_values, "curves must have a value for each place")
        _require(_is_rising(curve["at"]), "curves must rise in their places")


def _check_tree_correction(correction: Any, n_classes: int) -> None:
    """Check `calibrators/_auto/boosted.Correction`: trees of three splits and four leaves."""
    _require(isinstance(correction, dict), "correction must be a JSON object or null")
    _check_unit_interval([correction["trust"]], "trust")
    trees = correction["trees"]
    if trees is None:
        return
    n_trees = 1 if n_classes == 2 else n_classes
    n_rounds = len(trees["features"])
    for name, size in (("features", 3), ("thresholds", 3), ("values", 4)):
        has_rounds = len(trees[name]) == n_rounds > 0
        _require(
            has_rounds,
            f"{name} of trees must have as many rounds as features, at least one",
        )
        for trees_of_round in trees[name]:
            has_trees = len(trees_of_round) == n_trees
            _require(has_trees, f"a round of {name} must have {n_trees} trees")
            for numbers in trees_of_round:
                _checked_row(numbers, f"{name} of a tree", size)
    for trees_of_round in trees["features"]:
        for features in trees_of_round:
            are_known = all(_is_index(feature, n_trees) for feature in features)
            _require(
                are_known,
                f"features of trees must be whole numbers from 0 to {n_trees - 1}",
            )


def _check_linear_map(state: dict[str, Any], n_classes: int) -> None:
    _check_absent_classes(state, n_classes)
    _require(
        len(state["intercept"]) == n_classes,
        "intercept must have a number for each class",
    )


def _check_absent_classes(state: dict[str, Any], n_classes: int) -> None:
    _check_proper_subset(list(state.get("absent", [])), "absent", n_classes)


def _check_histogram(state: dict[str, Any], n_classes: int) -> None:
    _check_absent_classes(state, n_classes)
    has_rows = len(state["edges"]) == len(state["table"]) == n_classes
    _require(has_rows, "edges and table must have a row for each class")
    for edges, answers in zip(state["edges"], state["table"], strict=True):
        _require(
            len(answers) == len(edges) + 1, "table must have one number more than edges"
        )
        _require(sorted(edges) == edges, "edges must rise")
        _check_unit_interval(answers, "table")


def _check_isotonic(state: dict[str, Any], n_classes: int) -> None:
    _check_absent_classes(state, n_classes)
    _require(len(state["knots"]) == n_classes, "knots must have a row for each class")
    for at, value in state["knots"]:
        _require(len(at) == len(value) > 0, "knots must have a value for each place")
        _require(_is_rising(at), "knots must rise")
        _check_unit_interval(value, "knots")


def _check_beta(state: dict[str, Any], n_classes: int) -> None:
    _check_absent_classes(state, n_classes)
    has_numbers = len(state["coef"]) == n_classes and all(
        len(row) == 3 for row in state["coef"]
    )
    _require(has_numbers, "coef must have three numbers for each class")


def _check_xu_davoine(state: dict[str, Any], n_classes: int) -> None:
    _require(
        len(state["low"]) == len(state["high"]) > 0,
        "low and high must have as many ends",
    )


def _check_choice_sets(state: dict[str, Any], n_positions: int) -> None:
    _checked_row(state["tau"], "tau", n_positions)
    _require(_is_number(state["gamma"]), "gamma must be a number")
    _check_object_or_null(state["gate"], "gate")
    _require(isinstance(state["fit"], dict), "fit must be a JSON object")


CHECKS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "mcllo": _check_mcllo,
    "auto": _check_auto,
    "temperature": _check_prior_state,
    "vector": _check_linear_map,
    "matrix": _check_linear_map,
    "dirichlet": _check_linear_map,
    "histogram": _check_histogram,
    "isotonic": _check_isotonic,
    "beta": _check_beta,
    "xu_davoine": _check_xu_davoine,
    "choice_sets": _check_choice_sets,
}
"""By method; those without an entry have no lengths or orders of their own."""


def _read_json(path: str | os.PathLike[str]) -> Any:
    """Return what a JSON file holds; ``-`` is standard input."""
    try:
        if str(path) == "-":
            text = standard_input().read(MAX_FILE_BYTES + 1)
        else:
            with Path(path).open(encoding="utf-8") as file:
                text = file.read(MAX_FILE_BYTES + 1)
        if len(text) > MAX_FILE_BYTES:
            raise FileFormatError(
                f"{path} must be at most {MAX_FILE_BYTES >> 20} MB; it is larger. Save it without "
                "its covariance."
            )
        return json.loads(text)
    except FileNotFoundError:
        raise FileFormatError(
            f"{path} must exist; there is no such file. Make one with `mcllo fit` or .save()."
        ) from None
    except IsADirectoryError:
        raise FileFormatError(
            f"{path} must be a file; it is a directory. Name a file."
        ) from None
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(
            f"{path} cannot be opened: {error.strerror or error}."
        ) from None
    except (
        ValueError,
        RecursionError,
    ):  # no JSON, no UTF-8, numbers of thousands of digits
        raise FileFormatError(
            f"{path} must be a saved calibrator; it is not JSON. "
            "Make one with `mcllo fit` or .save()."
        ) from None
