"""`export`, `check`: a fitted calibrator in another form, and whether that form says the same.

==========  =================================  ====================================================
target      options                            what is written
==========  =================================  ====================================================
onnx        input, dtype, inside, opset        a model of plain operators (`_graph`)
sql         input, dialect, table, prefix,     one SELECT (`_sql`)
            columns, keep
js          input                              an ES module, its types beside it (`_javascript`)
torch       input                              a file with an ``nn.Module`` (`_torch`)
python      input                              a file that needs Python only (`_python`)
==========  =================================  ====================================================

`check` runs what a target wrote (``run_...``, which take it and rows, and return the probabilities
that came out) and compares it with ``predict_proba`` on rows that are hard on purpose:

====================  ==========================================================================
rows                  a thousand by default: spread over the simplex and near its corners, rows
                      with zeros, tiny values down to 1e-300, ties, multiples of 1/20 (the edges of
                      bins), numbers at which step functions jump or bend, and every corner point
logits                the logarithms of such rows, moved and stretched
difference            largest ``|exported - predict_proba|``; the form holds below 1e-12, in float32
                      below 1e-6
====================  ==========================================================================
"""

from __future__ import annotations

import hashlib
import json
import linecache
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._utils.atomic_files import replace_atomically, write_text
from .._utils.optional import ONNX_EXTRA, import_optional
from .._utils.results import Floats, Result
from .._utils.statements import suppress_warnings
from .._utils.terminal import standard_output
from ..calibrators._base import Calibrator
from ..calibrators._choice_calibrator import ChoiceCalibrator
from ..exceptions import InputError
from ._graph import append_program, write_onnx
from ._javascript import write_javascript, write_type_declaration
from ._programs import Program, build_program
from ._python import write_python
from ._sql import check_column_names, class_column_names, write_sql
from ._torch import write_torch

NODE = """
import {{ readFileSync }} from "node:fs";
import {{ predictProba }} from {module};
const rows = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(predictProba(rows)));
"""


def execute_source(source: str) -> dict[str, Any]:
    """Return what a written Python file defines; its source stays known, as torch.jit asks."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    name = f"<exported by mcllo {digest[:16]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    # torch.jit.script asks linecache for the source of what it compiles
    definitions: dict[str, Any] = {"__name__": "exported"}
    exec(compile(source, name, "exec"), definitions)
    return definitions


def run_python(source: str, rows: Floats) -> Floats:
    """Run the target "python"."""
    return np.array(execute_source(source)["predict_proba"](rows.tolist()))


def run_javascript(source: str, rows: Floats) -> Floats:
    """Run the target "javascript" in node."""
    node = shutil.which("node")
    if node is None:
        raise InputError(
            "this needs node, which is not installed; the module runs in any browser."
        )
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder, "exported.mjs")
        module.write_text(source, encoding="utf-8")
        script = Path(folder, "run.mjs")
        script.write_text(
            NODE.format(module=json.dumps(module.as_uri())), encoding="utf-8"
        )
        completed = subprocess.run(
            [node, str(script)],
            input=json.dumps(rows.tolist()),
            capture_output=True,
            text=True,
        )
    if completed.returncode:
        raise InputError(
            f"node could not run the module: {completed.stderr.strip()[-300:]}"
        )
    return np.array(json.loads(completed.stdout))


def run_onnx(model: bytes, rows: Floats, output_name: str | None = None) -> Floats:
    """Run the target "onnx" in onnxruntime, in the model's own dtype."""
    runtime = import_optional("onnxruntime", ONNX_EXTRA)
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    model_input = session.get_inputs()[0]
    # onnxruntime refuses the other type rather than cast it
    dtype = np.float32 if model_input.type == "tensor(float)" else np.float64
    found = session.run(
        [output_name or "calibrated"], {model_input.name: rows.astype(dtype)}
    )
    return np.asarray(found[0])


def run_torch(source: str, rows: Floats) -> Floats:
    """Run the target "torch"."""
    torch = import_optional("torch", "torch")
    module = execute_source(source)["Calibration"]()
    with torch.no_grad():
        return np.asarray(module(torch.from_numpy(rows)).numpy())


def run_sql(
    query: str,
    rows: Floats,
    columns: list[str],
    dialect: str,
    key_column: str = "mcllo_key",
) -> Floats:
    """Run the target "sql" over a table ``predictions``; `key_column` tells its rows apart.

    In DuckDB for its own dialect, else in the SQLite that Python has, which reads the query only in
    its own dialect.
    """
    quoted = [f'''"{name.replace('"', '""')}"''' for name in columns]
    if dialect == "duckdb":
        database = import_optional("duckdb", "duckdb").connect()
    else:
        import sqlite3

        database = sqlite3.connect(":memory:")
    kinds = ", ".join(f"{name} DOUBLE" for name in quoted)
    database.execute(f"CREATE TABLE predictions ({kinds}, {key_column} INTEGER)")
    column_values = [*rows.T.tolist(), list(range(len(rows)))]
    if dialect == "duckdb":
        marks = ", ".join(["unnest(?)"] * len(column_values))
        database.execute(f"INSERT INTO predictions SELECT {marks}", column_values)
    else:
        marks = ", ".join("?" * len(column_values))
        database.executemany(
            f"INSERT INTO predictions VALUES ({marks})",
            zip(*column_values, strict=True),
        )
    fetched = database.execute(query).fetchall()
    database.close()
    return np.array([row[1:] for row in sorted(fetched)], dtype=np.float64)


MAX_ROUNDING_DIFFERENCES = {"float64": 1e-12, "float32": 1e-6}
"""Largest difference that is rounding: round numbers above the precision of each."""


@dataclass(frozen=True)
class Check(Result):
    """An exported form beside ``predict_proba``.

    Attributes
    ----------
    target : str
        The form, with what ran it.
    difference : float
        Largest difference of a probability.
    limit : float
        What it may be.
    n_rows : int
        Rows compared.

    See Also
    --------
    check : Makes it.
    export : Writes the form that is checked.
    ExportError : Where there is no such form.

    Examples
    --------
    >>> from mcllo.export import check
    >>> from mcllo.calibrators import TemperatureScaling
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> temperature = TemperatureScaling().fit(X, ["cat", "cat", "dog", "dog"])
    >>> found = check(temperature, "python", n_rows=50)
    >>> found.holds, found.difference <= found.limit
    (True, True)
    """

    target: str
    difference: float
    limit: float
    n_rows: int

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding."""
        return self.difference <= self.limit

    def __str__(self) -> str:
        verdict = "the same" if self.holds else "NOT the same"
        return (
            f"{self.target}: {verdict} as predict_proba on {self.n_rows:,} rows; "
            f"largest difference {self.difference:.2g} (limit {self.limit:g})"
        )


def stress_test_rows(program: Program, n_rows: int = 1000, seed: int = 0) -> Floats:
    """Return rows for a program: probabilities, or logits where it takes these.

    Examples
    --------
    >>> rows = stress_test_rows(Program("identity", ("a", "b", "c"), "probs"), 200)
    >>> rows.shape, bool((rows == 0.0).any()), bool((rows == 1.0).any())
    ((200, 3), True, True)
    >>> bool(abs(rows.sum(axis=1) - 1.0).max() < 1e-9)
    True
    """
    rng = np.random.default_rng(seed)
    c = len(program.classes)
    size = max(1, n_rows // 6)  # of each kind but the first
    corners = np.eye(c)
    middle = np.full((1, c), 1.0 / c)
    spread = rng.dirichlet(np.full(c, 1.0), size=size)
    near_corners = rng.dirichlet(np.full(c, 0.1), size=size)
    # from 1 to 1e-300 in one row: logarithms of the small ones are what forms get wrong
    tiny = rng.dirichlet(np.ones(c), size=size)
    tiny *= 10.0 ** -rng.integers(0, 300, size=(size, c))
    tiny /= tiny.sum(axis=1, keepdims=True)
    tied = rng.integers(0, 3, size=(size, c)).astype(float)
    tied[:, 0] += tied.sum(axis=1) == 0.0  # a row of zeros is none
    tied /= tied.sum(axis=1, keepdims=True)
    # bins of width 1/10 and 1/20 have their edges at these numbers
    twentieths = rng.multinomial(20, np.full(c, 1.0 / c), size=size) / 20.0
    at_jumps = _rows_at_jumps(program, size, rng)
    rows = np.concatenate(
        [corners, middle, spread, near_corners, tiny, tied, twentieths, at_jumps]
    )
    n_missing = n_rows - len(rows)
    if n_missing > 0:
        rows = np.concatenate([rows, rng.dirichlet(np.ones(c), size=n_missing)])
    rows = rows[:n_rows]
    if not program.zeros:
        rows = np.maximum(rows, 1e-300)
    if program.input == "probs":
        return rows
    logs = np.log(np.maximum(rows, 1e-300))
    stretch = rng.uniform(0.5, 2.0, (len(rows), 1))
    shift = rng.normal(0, 20.0, (len(rows), 1))
    return logs * stretch + shift


def _rows_at_jumps(program: Program, n_rows: int, rng: np.random.Generator) -> Floats:
    """Return rows of which one entry is where a step function of its class jumps or bends."""
    c = len(program.classes)
    rows = rng.dirichlet(np.ones(c), size=n_rows)
    for step in program.steps:
        jumps = step.parameters.get("edges", step.parameters.get("at"))
        if jumps is None or c == 1:
            continue
        for i, j in enumerate(rng.integers(0, len(jumps), size=n_rows)):
            if len(jumps[j]) == 0:
                continue
            x = float(rng.choice(jumps[j]))
            if 0.0 <= x < 1.0:
                others = np.delete(rows[i], j)
                others = others / others.sum() * (1.0 - x)
                rows[i] = np.insert(others, j, x)
    return rows


def calibrator_probabilities(
    calibrator: Calibrator, program: Program, rows: Floats
) -> Floats:
    """Return what ``predict_proba`` says of rows in the program's input."""
    with suppress_warnings():
        if program.input == "logits":
            return np.asarray(calibrator.predict_proba(logits=rows))
        return np.asarray(calibrator.predict_proba(rows))


def compare_with_calibrator(
    target: str,
    calibrator: Calibrator,
    program: Program,
    rows: Floats,
    exported_probs: Any,
    dtype: str,
) -> Check:
    """Return how far exported probabilities are from ``predict_proba``; NaN is infinitely far."""
    expected = calibrator_probabilities(calibrator, program, rows)
    difference = np.abs(np.asarray(exported_probs, dtype=np.float64) - expected)
    largest = float(difference.max()) if np.isfinite(difference).all() else np.inf
    return Check(target, largest, MAX_ROUNDING_DIFFERENCES[dtype], len(rows))


@dataclass(frozen=True)
class ExportTarget:
    """A form that calibrators can be written in.

    Attributes
    ----------
    name : str
        Its name on the command line.
    description : str
        What it is, in a few words.
    options : tuple of str
        What else can be asked for.
    write : callable
        From a program and options to text, or bytes.
    """

    name: str
    description: str
    options: tuple[str, ...]
    write: Callable[..., str | bytes]


def _write_onnx_bytes(program: Program, **options: Any) -> bytes:
    return bytes(write_onnx(program, **options).SerializeToString())


ALL_TARGETS = (
    ExportTarget(
        "onnx", "ONNX, opset 18", ("dtype", "inside", "opset"), _write_onnx_bytes
    ),
    ExportTarget(
        "sql",
        "one SELECT",
        ("dialect", "table", "prefix", "columns", "keep"),
        write_sql,
    ),
    ExportTarget("js", "an ES module", (), write_javascript),
    ExportTarget("torch", "an nn.Module", (), write_torch),
    ExportTarget("python", "Python without packages", (), write_python),
)
TARGETS = {target.name: target for target in ALL_TARGETS}
"""All forms, by name."""


def find_target(target_name: str) -> ExportTarget:
    """Return the target of this name, or say which there are."""
    if target_name not in TARGETS:
        known = ", ".join(map(repr, TARGETS))
        raise InputError(argument="to", rule=f"be one of {known}", value=target_name)
    return TARGETS[target_name]


def export(
    calibrator: Calibrator,
    to: str,
    path: str | os.PathLike[str] | None = None,
    *,
    input: str | None = None,
    **options: Any,
) -> str | bytes:
    """Write a fitted calibrator in another form.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted one.
    to : {"onnx", "sql", "js", "torch", "python"}
        The form.
    path : path-like, optional
        Where to write it, atomically; ``-`` is standard output. The types of an ES module are
        written beside it.
    input : {"probs", "logits"}, optional
        What rows will hold; by default what the calibrator was fitted to (its ``input_``).
    **options
        Of onnx: `dtype` ("float64", "float32"), `inside`, `opset`. Of sql: `dialect`, `table`,
        `prefix` or `columns` (names of the classes' columns), `keep` (columns to pass through).

    Returns
    -------
    str or bytes
        What was written; bytes of an ONNX model.

    Raises
    ------
    ExportError
        Where this calibrator has no such form; the message says why, and what has.

    See Also
    --------
    check : Runs the form beside ``predict_proba``.
    append_to_onnx : Behind a classifier.
    torch_module : As a module of PyTorch.
    mcllo.load_calibrator : Reads what ``save`` wrote.

    Examples
    --------
    >>> import numpy as np
    >>> from mcllo.calibrators import TemperatureScaling
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> temperature = TemperatureScaling().fit(X, ["cat", "cat", "dog", "dog"])
    >>> text = export(temperature, "python")
    >>> made = {}
    >>> exec(text, made)
    >>> made["CLASSES"]
    ['cat', 'dog']
    >>> np.allclose(made["predict_proba"](X), temperature.predict_proba(X), rtol=1e-14, atol=0.0)
    True
    """
    check_is_fitted(calibrator, "classes_")
    if isinstance(calibrator, ChoiceCalibrator):  # has forms of its own
        return calibrator.export(to, path, **options)
    target = find_target(to)
    unknown = sorted(set(options) - set(target.options))
    if unknown:
        has = ", ".join(("input", *target.options))
        message = f"{{argument}} is no option of {to}; it has {has}."
        raise InputError(message, argument=unknown[0])
    program = build_program(calibrator, input)
    content = target.write(program, **options)
    if path is not None:
        write_content(path, content)
        if to == "js" and str(path) != "-":
            write_text(type_declaration_path(path), write_type_declaration(program))
    return content


def write_content(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write text or bytes, to standard output where the path is ``-``."""
    if str(path) == "-" and isinstance(content, str):
        standard_output().write(content)
    elif str(path) == "-":
        standard_output().buffer.write(bytes(content))  # type: ignore[arg-type]
    elif isinstance(content, str):
        write_text(path, content)
    else:
        with replace_atomically(path) as temporary:
            temporary.write_bytes(content)


def type_declaration_path(module_path: str | os.PathLike[str]) -> Path:
    """Return where the types of a module belong: ``m.mjs`` has ``m.d.mts``, ``m.js`` ``m.d.ts``."""
    module = Path(module_path)
    ending = ".d.mts" if module.suffix == ".mjs" else ".d.ts"
    return module.with_name(module.stem + ending)


def check(
    calibrator: Calibrator,
    to: str,
    *,
    input: str | None = None,
    n_rows: int = 1000,
    **options: Any,
) -> Check:
    """Return how far an exported form is from ``predict_proba``, on rows that are hard on purpose.

    The form is written anew and run: ONNX by onnxruntime, JavaScript by node, SQL by DuckDB in its
    dialect and else by SQLite in SQLite's.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted one.
    to : {"onnx", "sql", "js", "torch", "python"}
        The form.
    input : {"probs", "logits"}, optional
        What rows will hold; by default what the calibrator was fitted to.
    n_rows : int
        Rows to compare: with zeros, ones, tiny values, ties and all corner points.
    **options
        Options of the form; see `export`.

    Returns
    -------
    Check
        `difference`, `limit`, `holds`; ``print`` it.

    See Also
    --------
    export : Writes the form.
    Check : What comes out.
    mcllo.load_calibrator : Reads what ``save`` wrote.

    Examples
    --------
    >>> from mcllo.calibrators import TemperatureScaling
    >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> temperature = TemperatureScaling().fit(X, ["cat", "cat", "dog", "dog"])
    >>> check(temperature, "python").holds
    True
    """
    program = build_program(calibrator, input)
    rows = stress_test_rows(program, n_rows)
    dtype = "float64"
    if to == "onnx" and options.get("dtype") == "float32":
        dtype = "float32"
        rows = rows.astype(np.float32)
    name = to
    if to == "sql":
        name, options = _query_options_to_run(program, **options)
    content: Any = export(calibrator, to, input=input, **options)
    found = _run_exported(to, content, rows, options)
    return compare_with_calibrator(name, calibrator, program, rows, found, dtype)


def _query_options_to_run(
    program: Program,
    dialect: str = "duckdb",
    table: str = "predictions",
    prefix: str = "",
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> tuple[str, dict[str, Any]]:
    """Return the name of a check of SQL, and the options of the query that is run."""
    names = class_column_names(program, prefix, columns)
    check_column_names(names, keep, dialect, table)
    check_name = f"sql ({dialect})"
    if dialect not in ("duckdb", "sqlite"):  # a server, which is not here
        check_name = f"sql ({dialect}, run as sqlite)"
        dialect = "sqlite"
        names = [f"column_{j}" for j in range(len(names))]
    key = "mcllo_key"
    while key in [name.lower() for name in names]:
        key += "_"
    return check_name, {"dialect": dialect, "columns": names, "keep": [key]}


def _run_exported(
    to: str, content: Any, rows: Floats, options: dict[str, Any]
) -> Floats:
    if to == "sql":
        return run_sql(
            content, rows, options["columns"], options["dialect"], options["keep"][0]
        )
    runs: dict[str, Any] = {
        "onnx": run_onnx,
        "js": run_javascript,
        "torch": run_torch,
        "python": run_python,
    }
    return runs[to](content, rows)


def append_to_onnx(
    model: Any,
    calibrator: Calibrator,
    *,
    output: str | None = None,
    input: str | None = None,
) -> Any:
    """Return an ONNX classifier whose probabilities are recalibrated, under the same names.

    Parameters
    ----------
    model : onnx.ModelProto
        The classifier, opset 13 or later; it is not changed. Its columns must be the calibrator's
        classes in their order.
    calibrator : Calibrator
        The fitted recalibration.
    output : str, optional
        The output to recalibrate, where several could hold probabilities: a tensor of shape (rows,
        c), or what a ZipMap made of one. An output of labels is made anew from the recalibrated
        ones.
    input : {"probs", "logits"}, optional
        What that output holds; by default what the calibrator was fitted to.

    Returns
    -------
    onnx.ModelProto
        A new model: the classifier, followed by the calibrator.

    Raises
    ------
    ExportError
        When the model's output or the calibrator has no such form; the message says why.
    ImportError
        When onnx is not installed.

    See Also
    --------
    export : The calibrator alone.
    check : How far an exported form is from ``predict_proba``.
    register_skl2onnx : Whole scikit-learn classifiers.

    Examples
    --------
    >>> import onnx  # doctest: +SKIP
    >>> both = append_to_onnx(onnx.load("net.onnx"), calibrator)  # doctest: +SKIP
    >>> onnx.save(both, "calibrated.onnx")  # doctest: +SKIP
    """
    check_is_fitted(calibrator, "classes_")
    return append_program(model, build_program(calibrator, input), output)


def torch_module(calibrator: Calibrator, *, input: str | None = None) -> Any:
    """Return a fitted calibrator as a ``torch.nn.Module``, of float64 parameters.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted one.
    input : {"probs", "logits"}, optional
        What rows will hold; by default what the calibrator was fitted to.

    Returns
    -------
    torch.nn.Module
        Takes rows as a tensor of shape (n_samples, n_classes), returns probabilities of that shape.

    Raises
    ------
    ExportError
        When this calibrator has no such form; the message says why, and what has.
    ImportError
        When PyTorch is not installed.

    See Also
    --------
    export : The module's source.
    check : How far it is from ``predict_proba``.
    mcllo.calibrators.TemperatureScaling : The usual calibrator of networks.

    Examples
    --------
    >>> module = torch_module(calibrator)  # doctest: +SKIP
    >>> probs = module(torch.softmax(net(images), dim=1))  # doctest: +SKIP
    """
    import_optional("torch", "torch")
    text = export(calibrator, "torch", input=input)
    return execute_source(str(text))["Calibration"]()
