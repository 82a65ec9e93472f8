"""`export`, `check`: a fitted calibrator in another form, and whether that form says the same.

==========  =================================  ====================================================
target      options                            what is written
==========  =================================  ====================================================
onnx        input, dtype, inside, opset        a model of plain operators (`_onnx`)
sql         input, dialect, table, prefix,     one SELECT (`_sql`)
            columns, keep
js          input                              an ES module, its types beside it (`_javascript`)
torch       input                              a file with an ``nn.Module`` (`_torch`)
python      input                              a file that needs Python only (`_python`)
==========  =================================  ====================================================
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._utils.atomic_files import replace_atomically, write_text
from .._utils.optional import needed
from .._utils.results import Floats
from .._utils.terminal import standard_output
from ..calibrators._base import Calibrator
from ..exceptions import InputError, Phrase
from ._check import N_CHECK_ROWS, Check, compare_with_calibrator, hard_rows
from ._javascript import write_declaration, write_javascript
from ._onnx import append_to_onnx as append_program
from ._onnx import write_onnx
from ._program import Program
from ._programs import build_program
from ._python import write_python
from ._run_program import namespace, run_javascript, run_onnx, run_python, run_sql, run_torch
from ._sql import check_names, column_names, write_sql
from ._torch import write_torch

KEY = "mcllo_key"


@dataclass(frozen=True)
class Target:
    """A form that calibrators can be written in.

    Attributes
    ----------
    name : str
        Its name on the command line.
    says : str
        What it is, in a few words.
    options : tuple of str
        What else can be asked for.
    write : callable
        From a program and options to text, or bytes.
    """

    name: str
    says: str
    options: tuple[str, ...]
    write: Callable[..., str | bytes]


def _onnx_bytes(program: Program, **options: Any) -> bytes:
    return bytes(write_onnx(program, **options).SerializeToString())


TARGETS = {
    target.name: target
    for target in (
        Target("onnx", "ONNX, opset 18", ("dtype", "inside", "opset"), _onnx_bytes),
        Target("sql", "one SELECT", ("dialect", "table", "prefix", "columns", "keep"), write_sql),
        Target("js", "an ES module", (), write_javascript),
        Target("torch", "an nn.Module", (), write_torch),
        Target("python", "Python without packages", (), write_python),
    )
}
"""All forms, by name."""


def find_target(to: str) -> Target:
    """Return the target of this name, or say which there are."""
    if to not in TARGETS:
        known = ", ".join(map(repr, TARGETS))
        raise InputError(argument="to", rule=f"be one of {known}", value=to)
    return TARGETS[to]


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
        What rows will hold; by default what the calibrator was fitted to. Logits for one that was
        fitted to probabilities go through a softmax first.
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
    target = find_target(to)
    unknown = sorted(set(options) - set(target.options))
    if unknown:
        has = ", ".join(("input", *target.options))
        message = Phrase("{argument} is no option of {}; it has {}.", to, has)
        raise InputError(message, argument=unknown[0])
    program = build_program(calibrator, input)
    content = target.write(program, **options)
    if path is not None:
        _write(path, content)
        if to == "js" and str(path) != "-":
            write_text(declaration_path(path), write_declaration(program))
    return content


def _write(path: str | os.PathLike[str], content: str | bytes) -> None:
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


def declaration_path(path: str | os.PathLike[str]) -> Path:
    """Return where the types of a module belong: ``m.mjs`` has ``m.d.mts``, ``m.js`` ``m.d.ts``."""
    module = Path(path)
    ending = ".d.mts" if module.suffix == ".mjs" else ".d.ts"
    return module.with_name(module.stem + ending)


def check(
    calibrator: Calibrator,
    to: str,
    *,
    input: str | None = None,
    n_rows: int = N_CHECK_ROWS,
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
    rows = hard_rows(program, n_rows)
    dtype, told = "float64", to
    if to == "onnx" and options.get("dtype") == "float32":
        rows, dtype = rows.astype("float32"), "float32"
    if to == "sql":
        told, options = _to_run(program, **options)
    content: Any = export(calibrator, to, input=input, **options)
    found = _run(to, content, rows, options)
    return compare_with_calibrator(told, calibrator, program, rows, found, dtype)


def _to_run(
    program: Program,
    dialect: str = "duckdb",
    table: str = "predictions",
    prefix: str = "",
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> tuple[str, dict[str, Any]]:
    """Return what is told of a check of SQL, and the options of the query that is run."""
    runs, names = dialect, column_names(program, prefix, columns)
    check_names(names, keep, dialect, table)
    told = f"sql ({dialect})"
    if dialect not in ("duckdb", "sqlite"):
        runs, names = "sqlite", [f"column_{j}" for j in range(len(names))]
        told = f"sql ({dialect}, run as sqlite)"
    key = KEY
    while key in map(str.lower, names):
        key += "_"
    return told, {"dialect": runs, "columns": names, "keep": [key]}


def _run(to: str, content: Any, rows: Floats, options: dict[str, Any]) -> Floats:
    if to == "sql":
        return run_sql(content, rows, options["columns"], options["dialect"], options["keep"][0])
    runs: dict[str, Any] = {
        "onnx": run_onnx,
        "js": run_javascript,
        "torch": run_torch,
        "python": run_python,
    }
    return runs[to](content, rows)


def append_to_onnx(
    model: Any, calibrator: Calibrator, *, output: str | None = None, input: str | None = None
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
    needed("torch", "torch")
    text = export(calibrator, "torch", input=input)
    return namespace(str(text))["Calibration"]()
