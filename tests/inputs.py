"""Small inputs for the tests of the door, of files and of the command line, and how it refuses."""

import io
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from mcllo.exceptions import InputError

CLASSES = ["cat", "dog", "truck"]


@contextmanager
def case(name):
    """Name the case of a loop in whatever fails there."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {name!r}")
        raise


def refusal(function, *args, **options):
    """Return the InputError of a call; it must be one line of text without a foreign traceback."""
    with pytest.raises(InputError) as caught:
        function(*args, **options)
    error = caught.value
    message = str(error)
    assert "\n" not in message
    assert message[-1] in ".?"
    assert len(message) < 300
    assert error.__context__ is None or error.__suppress_context__
    return error


def objects(*values):
    """Return a one-dimensional array of the very objects that are given."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def columns_of(words):
    """Return a column of words in every kind that the door reads, by a name of its kind."""
    encoded = pa.array(words).dictionary_encode()
    kinds = [
        words,
        tuple(words),
        np.array(words),
        np.array(words, dtype=object),
        np.array(words, dtype="S"),
        [[word] for word in words],
        pd.Series(words, index=np.arange(len(words)) // 2),
        pd.Series(words, dtype="string"),
        pd.Series(words, dtype="category"),
        pd.Categorical(words, categories=[*sorted(set(words), reverse=True), "unused"]),
        pd.Index(words),
        pd.DataFrame({5: words}),
        pl.Series(words),
        pl.Series(words, dtype=pl.Categorical),
        pl.Series(words, dtype=pl.Enum(sorted(set(words), reverse=True))),
        pl.DataFrame({"y": words}),
        pa.array(words),
        encoded,
        pa.chunked_array([words[:1], words[1:]]),
        pa.chunked_array([encoded]),
        pa.table({"y": words}),
    ]
    return [
        pytest.param(kind, id=f"{type(kind).__name__} {k}")
        for k, kind in enumerate(kinds)
    ]


def predictions(n=60, seed=0):
    """Return probabilities of three classes, and labels drawn from a sharpened version of them."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([1.0, 1.0, 1.0], size=n)
    true = probs**2 / (probs**2).sum(axis=1, keepdims=True)
    return probs, [str(rng.choice(CLASSES, p=row)) for row in true]


def csv_rows(header, probs, labels, separator=","):
    """Return probabilities as CSV with the label last."""
    lines = [
        [*map(repr, row), label]
        for row, label in zip(probs.tolist(), labels, strict=True)
    ]
    return "".join(separator.join(line) + "\n" for line in [list(header), *lines])


def csv_text(n=60, seed=0, separator=",", header=("cat", "dog", "truck", "y")):
    """Return those predictions as CSV with the label last."""
    return csv_rows(header, *predictions(n, seed), separator)


def parquet_table(**changes):
    """Return those predictions as a table of pyarrow, some of its columns changed."""
    probs, y = predictions()
    return pa.table({**dict(zip(CLASSES, probs.T, strict=True)), "y": y, **changes})


def parquet_bytes(table, **options):
    """Return a table as the bytes of a Parquet file."""
    sink = io.BytesIO()
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


def replaced(line, old, new, text=None):
    """Return CSV text with one line (counted from 1) changed."""
    lines = (csv_text() if text is None else text).splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return "".join(lines)


def with_line(line, new):
    """Return CSV text with a line (counted from 1) replaced."""
    lines = csv_text().splitlines(keepends=True)
    lines[line - 1] = new + "\n"
    return "".join(lines)
