"""Targets that are in memory: ``arrays`` (NumPy, lists) and ``frames`` (Arrow, pandas, polars).

What the door takes is what was given: rows without a change keep every digit, and the class of a
code is the label of its row. Every fourth is fitted, and the map gives probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import mcllo
from fuzz import checks, odd
from fuzz.case import CASE
from fuzz.files import ROWS, tables

TYPES = ("f8", "f8", "f8", "f4", "f2", "O", "U8", "i8", "?", "c16", "M8[s]", ">f8", "g")


@st.composite
def arrays(draw: Any) -> Any:
    """Return probabilities: an array, a list of lists, or something else."""
    n, c = draw(st.integers(0, 5)), draw(st.integers(2, 3))
    rows = [draw(st.sampled_from(ROWS))[:c] for _ in range(n)]
    table: list[list[Any]] = [[x / sum(row) for x in row] for row in rows]
    for _ in range(draw(st.integers(0, 2)) if n else 0):
        row, column = draw(st.integers(0, n - 1)), draw(st.integers(0, c - 1))
        table[row][column] = draw(st.sampled_from([None, "x", *odd.NUMBERS]))
    shape = draw(
        st.sampled_from(
            ["list", "array", "array", "array", "ragged", "flat", "deep", "T"]
        )
    )
    if shape == "list":
        return table
    if shape == "ragged" and n:
        table[0] = table[0][:-1]
        return table
    with np.errstate(all="ignore"):
        try:
            made = np.array(table, dtype=draw(st.sampled_from(TYPES)))
        except (TypeError, ValueError, OverflowError):
            made = np.array(table, dtype=object)
    if shape == "flat":
        return made.ravel()
    if shape == "deep":
        return made[None]
    return np.asfortranarray(made) if shape == "T" else made


@st.composite
def columns(draw: Any, values: tuple[Any, ...]) -> Any:
    """Return a column of some of these values in one of many kinds."""
    found = draw(st.lists(st.sampled_from(values), max_size=5))
    kind = draw(
        st.sampled_from(["list", "array", "object", "arrow", "tuple", "column"])
    )
    try:
        if kind == "array":
            return np.array(found)
        if kind == "arrow":
            return pa.array(found)
        if kind == "column":
            return np.array(found).reshape(-1, 1)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return found
    if kind == "object":
        made = np.empty(len(found), dtype=object)
        made[:] = found
        return made
    return tuple(found) if kind == "tuple" else found


GAPS = (
    None,
    float("nan"),
    [1],
    {},
    b"a",
    1.5,
    2**70,
    -1,
    "a\x00",
    "a\x00",
    np.datetime64("NaT"),
)
WORDS = columns(("a", "b", "c", "a", "b", "c", *odd.LABELS[:3]))
LABELS = st.one_of(
    WORDS,
    columns((0, 1, 2)),
    columns((True, False)),
    columns(("a", "b", 0, 1.0, *GAPS)),
)
ONE_HOT = st.lists(
    st.lists(st.sampled_from([0, 1, 2, -1, 0.5]), min_size=2, max_size=3), max_size=5
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "classes": st.sampled_from(
            [
                ["a", "b"],
                ["a", "b", "c"],
                ["c", "b", "a"],
                [2, 0, 1],
                ["a", "a\x00", "b"],
                "ab",
                3,
            ]
        ),
        "baseline": st.sampled_from(["a", "auto", 0, None, "zz"]),
        "sample_weight": columns((0.0, 1.0, 2.0, 0.5, *odd.NUMBERS)),
        "weight_kind": st.sampled_from(["frequency", "survey", "importance", "x"]),
        "groups": columns(("g", "h", 0, None)),
        "normalize": st.booleans(),
        "clip": st.sampled_from([None, 0.0, 1e-6, 0.4, -1.0, float("nan"), "x"]),
    },
)


def labels_for(probs: Any) -> st.SearchStrategy[Any]:
    """Return labels, mostly as many as there are rows."""
    n = len(probs) if hasattr(probs, "__len__") else 1
    fitting = st.lists(st.sampled_from(["a", "b"]), min_size=n, max_size=n)
    return st.one_of(fitting, fitting, fitting.map(np.array), LABELS, ONE_HOT)


@st.composite
def given_rows(draw: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return probabilities, labels and options."""
    probs = draw(arrays())
    options = draw(st.one_of(st.just({}), st.just({}), OPTIONS))
    if "classes" not in options and draw(st.booleans()):
        options = {
            **options,
            "classes": ["a", "b", "c"][: np.shape(probs[0])[0] if _rows(probs) else 2],
        }
    return probs, draw(labels_for(probs)), options


def _rows(probs: Any) -> bool:
    return len(probs) > 0 and np.ndim(probs[0]) == 1


@odd.attempt
@given(given_rows(), st.integers(0, 3))
def arrays_target(given_: tuple[Any, Any, dict[str, Any]], then: int) -> None:
    """Give arrays to the door."""
    probs, y, options = given_
    CASE.begin(input__txt=f"probs = {probs!r}\ny = {y!r}\noptions = {options!r}\n")
    _taken(probs, y, options, then)


@odd.attempt
@given(
    tables(), st.sampled_from(["table", "batch", "pandas", "polars"]), st.integers(0, 7)
)
def frames_target(table: pa.Table, kind: str, then: int) -> None:
    """Give frames to the door."""
    CASE.begin(input__txt=f"{kind} of {table.schema}\n{table.to_pydict()!r}\n")
    frame: Any = table.select(["a", "b", "c"]) if then % 2 else table
    y: Any = table["y"] if then % 2 else "y"
    try:
        if kind == "batch":
            frame = frame.combine_chunks().to_batches()[0] if len(frame) else frame
        elif kind == "pandas":
            frame = frame.to_pandas()
        elif kind == "polars":
            import polars as pl

            frame = pl.from_arrow(frame)
    except Exception:  # what others cannot make is nothing to ask mcllo about
        return
    _taken(frame, y, {}, then)


def _taken(probs: Any, y: Any, options: dict[str, Any], then: int) -> None:
    p = checks.allowed(lambda: mcllo.Predictions.from_arrays(probs, y, **options))
    if p is None:
        return
    CASE.accept()
    checks.predictions(p)
    plain = isinstance(probs, np.ndarray) and not options and checks.untouched(p)
    if plain and len(probs) == p.n_samples and probs.dtype.kind == "f":
        checks.must(
            np.array_equal(probs.astype(float), p.probs), "other numbers than given"
        )
        if (
            np.ndim(y) == 1
            and len(y) == p.n_samples
            and isinstance(y, (list, np.ndarray))
        ):
            for said, code in zip(list(y), p.codes.tolist(), strict=True):
                checks.must(
                    checks.same_label(p.classes[code], str(said)), f"label {said!r}"
                )
        CASE.compare()
    if then == 0:
        fitted = checks.allowed(lambda: mcllo.MCLLOCalibrator(penalty=1.0).fit(p))
        if fitted is not None:
            checks.probabilities(fitted.predict_proba(p.probs), p.n_classes)
