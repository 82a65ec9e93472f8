"""Targets that are files: ``csv``, ``parquet`` and ``command``, the verbs on both.

=============  ==========================================================================
csv            text by our own hand or a seed file, with edits; numbers as Python's csv reads
parquet        tables of any type with any options, some with flipped bytes; numbers as Arrow's
command        assess, fit and apply: the exit codes of ``--help``, one line where refused,
               no control character on the terminal, finite probabilities in what is written
=============  ==========================================================================
"""

from __future__ import annotations

import contextlib
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

import mcllo
from fuzz import checks, odd
from fuzz.case import CASE
from mcllo.__main__ import run_command_line
from mcllo._apps.io.container import detect_encoding

CORPUS = Path(__file__).with_name("corpus")
ROWS = (
    (0.2, 0.3, 0.5),
    (0.7, 0.2, 0.1),
    (1.0, 0.0, 0.0),
    (0.25, 0.5, 0.25),
    (0.1, 0.1, 0.8),
)
GOOD, REFUSED = 0, 2
"""Exit codes without ``--gate``."""


def seeds(kind: str) -> list[bytes]:
    """Return the seed files of a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / kind).iterdir())]


# --- CSV


@st.composite
def csv_files(draw: Any) -> tuple[bytes, str]:
    """Return a file and its separator."""
    if draw(st.integers(0, 3)) == 0:
        return draw(odd.edited(st.sampled_from(seeds("csv")))), ","
    separator = draw(st.sampled_from([",", ",", ",", ";", "\t", "|"]))
    n_classes = draw(st.integers(2, 3))
    header = ["a", "b", "c"][:n_classes]
    if draw(st.integers(0, 3)) == 0:
        header = draw(odd.names(n_classes))
    lines = [[*header, "y"]]
    for _ in range(draw(st.integers(0, 6))):
        row = draw(st.sampled_from(ROWS))[:n_classes]
        cells = [repr(x / sum(row)) for x in row]
        cells.append(draw(st.sampled_from(header)))
        lines.append(cells)
    for _ in range(draw(st.integers(0, 2))):
        line = draw(st.sampled_from(lines))
        line[draw(st.integers(0, len(line) - 1))] = draw(
            st.sampled_from(odd.CELLS + odd.LABELS)
        )
    if draw(st.integers(0, 7)) == 0:
        draw(st.sampled_from(lines)).append(draw(st.sampled_from(odd.CELLS)))
    quote = draw(st.sampled_from(["never", "needed", "needed", "always"]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    text = end.join(
        separator.join(_quoted(c, quote, separator) for c in line) for line in lines
    )
    coding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    content = (text + end).encode(coding, "replace")
    if draw(st.integers(0, 7)) == 0:
        content = gzip.compress(content, mtime=0)
    if draw(st.integers(0, 3)) == 0:
        content = draw(odd.edited(st.just(content)))
    return content, separator


def _quoted(cell: str, how: str, separator: str) -> str:
    needs = any(mark in cell for mark in (separator, '"', "\n", "\r"))
    if how == "always" or (how == "needed" and needs):
        return '"' + cell.replace('"', '""') + '"'
    return cell


READING = st.fixed_dictionaries(
    {},
    optional={
        "normalize": st.booleans(),
        "clip": st.sampled_from([None, 0.0, 1e-6, 0.1]),
        "percent": st.just(True),
        "missing": st.sampled_from(["refuse", "drop"]),
        "classes": st.sampled_from(
            [["a", "b"], ["a", "b", "c"], ["c", "a", "b"], ["a"], []]
        ),
        "baseline": st.sampled_from(["a", "b", "zz"]),
        "logits": st.just(True),
        "weight": st.sampled_from(["a", "w"]),
        "encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "no such"]),
    },
)
FEW = st.one_of(st.just({}), st.just({}), READING)
"""How a file is read: mostly without options."""


@odd.attempt
@given(csv_files(), FEW)
def csv(file: tuple[bytes, str], options: dict[str, Any]) -> None:
    """Read CSV text."""
    content, separator = file
    CASE.begin(table__csv=content, options__txt=repr(options))
    path = CASE.write("table.csv", content)
    p = checks.allowed(lambda: mcllo.read_predictions(path, label="y", **options))
    if p is None:
        return
    CASE.accept()
    checks.predictions(p)
    if not options and checks.untouched(p):
        CASE.compare(checks.same_as_csv(p, content, separator, "y"))


# --- Parquet


@st.composite
def tables(draw: Any) -> pa.Table:
    """Return a table of Arrow: mostly probabilities and labels, some columns of other types."""
    n = draw(st.integers(0, 5))
    rows = [draw(st.sampled_from(ROWS)) for _ in range(n)]
    columns = {name: [row[k] for row in rows] for k, name in enumerate("abc")}
    kinds: dict[str, Any] = dict.fromkeys("abc", pa.float64())
    labels: list[Any] = [draw(st.sampled_from("abc")) for _ in range(n)]
    types = st.sampled_from(
        [
            *(
                pa.float64(),
                pa.float32(),
                pa.float16(),
                pa.int64(),
                pa.uint8(),
                pa.bool_(),
            ),
            *(pa.string(), pa.large_string(), pa.binary(), pa.null(), pa.date32()),
            *(pa.decimal128(20, 10), pa.timestamp("us"), pa.list_(pa.float64())),
            *(pa.struct([("x", pa.float64())]), pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    for name in draw(st.lists(st.sampled_from("abc"), max_size=1)):
        kinds[name] = draw(types)
    for _ in range(draw(st.integers(0, 2)) if n else 0):
        column, row = draw(st.sampled_from("abc")), draw(st.integers(0, n - 1))
        columns[column][row] = draw(st.sampled_from([None, *odd.NUMBERS]))
    kind = draw(st.one_of(st.just(pa.string()), st.just(pa.string()), types))
    if draw(st.integers(0, 5)) == 0:
        labels = [draw(st.sampled_from([None, 0, 1, 2, *odd.LABELS])) for _ in range(n)]
    arrays = {name: _array(columns[name], kinds[name]) for name in "abc"}
    arrays["y"] = _array(labels, kind)
    if draw(st.integers(0, 7)) == 0:
        arrays["extra"] = _array(labels, draw(types))
    return pa.table(arrays)


def _array(values: list[Any], kind: Any) -> pa.Array:
    """Return values of a type, as near as they come; nulls where they do not."""
    for tried in (values, [str(v) for v in values], [[v] for v in values]):
        with contextlib.suppress(
            pa.ArrowException, TypeError, ValueError, OverflowError
        ):
            return pa.array(tried, type=kind)
        with contextlib.suppress(
            pa.ArrowException, TypeError, ValueError, OverflowError
        ):
            return pa.array(tried).cast(kind)
    return pa.nulls(len(values), kind)


WRITING = st.fixed_dictionaries(
    {},
    optional={
        "compression": st.sampled_from(["none", "snappy", "gzip", "zstd"]),
        "row_group_size": st.integers(1, 3),
        "use_dictionary": st.booleans(),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "write_page_checksum": st.booleans(),
        "write_statistics": st.booleans(),
    },
)


@st.composite
def parquet_files(draw: Any) -> tuple[bytes, pa.Table | None]:
    """Return a file, and the table in it unless bytes were changed."""
    if draw(st.integers(0, 4)) == 0:
        return draw(odd.edited(st.sampled_from(seeds("parquet")))), None
    table, sink = draw(tables()), io.BytesIO()
    try:
        pq.write_table(table, sink, **draw(WRITING))
    except (pa.ArrowException, OSError):  # a type that Parquet has not
        sink = io.BytesIO()
        pq.write_table(pa.table({"a": [0.5], "b": [0.5], "y": ["a"]}), sink)
        return sink.getvalue(), None
    if draw(st.integers(0, 2)) == 0:
        return draw(odd.edited(st.just(sink.getvalue()))), None
    return sink.getvalue(), table


@odd.attempt
@given(parquet_files(), FEW)
def parquet(file: tuple[bytes, pa.Table | None], options: dict[str, Any]) -> None:
    """Read Parquet."""
    content, table = file
    CASE.begin(table__parquet=content, options__txt=repr(options))
    path = CASE.write("table.parquet", content)
    p = checks.allowed(lambda: mcllo.read_predictions(path, label="y", **options))
    if p is None:
        return
    CASE.accept()
    checks.predictions(p)
    if table is None or options or not checks.untouched(p):
        return
    numbers = [[float(v) for v in table[str(name)].to_pylist()] for name in p.classes]
    checks.must(
        np.array_equal(np.array(numbers).T, p.probs), "other numbers than Arrow reads"
    )
    for said, code in zip(table["y"].to_pylist(), p.codes.tolist(), strict=True):
        word = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        checks.must(checks.same_label(p.classes[code], word), f"label {said!r}")
    CASE.compare()


# --- the command line

VERBS = ("assess", "fit", "apply", "assess --json", "assess --full")


@odd.attempt
@given(
    st.one_of(csv_files(), parquet_files()),
    st.sampled_from(VERBS),
    st.sampled_from(["y", "a"]),
)
def command(file: tuple[bytes, Any], verb: str, label: str) -> None:
    """Run a verb on a file."""
    content, other = file
    name = "table.csv" if isinstance(other, str) else "table.parquet"
    CASE.begin(**{name.replace(".", "__"): content}, verb__txt=verb)
    path, model = CASE.write(name, content), CASE.tmp / "model.json"
    out = CASE.tmp / (
        "recalibrated.csv" if isinstance(other, str) else "recalibrated.parquet"
    )
    words = [*verb.split(), str(path), "--label", label]
    if verb.startswith("assess"):
        words += ["--seed", "0", "--draws", "99"]
    elif verb == "fit":
        words += ["-o", str(model)]
    else:
        model.write_bytes(seeds("model")[0])
        out.unlink(missing_ok=True)
        words = ["apply", str(model), str(path), "-o", str(out)]
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = run_command_line(words)
    checks.must(
        code in (GOOD, REFUSED), f"exit code {code}: {errors.getvalue()[-2000:]}"
    )
    checks.printed(output.getvalue())
    checks.printed(errors.getvalue())
    if code == REFUSED:
        said = errors.getvalue().splitlines()
        checks.must(
            len(said) == 1 and said[0].startswith("mcllo: "), f"refused with {said}"
        )
        checks.must(not output.getvalue(), "refused, and printed something")
        return
    CASE.accept()
    if verb == "apply":
        _check_recalibrated(out)


def _check_recalibrated(path: Path) -> None:
    """Check the columns that ``apply`` wrote."""
    if path.suffix == ".parquet":
        table = pq.read_table(path).to_pydict()
    else:
        import csv as plain

        encoding = detect_encoding(path.read_bytes())  # of the file that was read
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        with path.open(newline="", encoding=encoding) as lines:
            header, *rows = plain.reader(lines)
        table = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    columns = [name for name in table if name.strip() in ("a", "b", "c")]
    if len(columns) != 3:
        return
    numbers = np.array([[float(v) for v in table[name]] for name in columns]).T
    if len(numbers):
        checks.probabilities(numbers, 3)
        CASE.compare()
