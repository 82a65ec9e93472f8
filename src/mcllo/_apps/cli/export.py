"""`mcllo export`: a model in another form, and the proof that it says the same."""

from __future__ import annotations

from typing import Any

import typer

from . import options
from .echo import echo

EXIT_FAILED = 1
TARGET = typer.Option(..., "--to", help="onnx, sql, js, torch or python.")
OUT = typer.Option(
    None, "--output", "-o", metavar="OUT", help="File to write; - is standard output."
)
CHECK = typer.Option(
    False,
    "--check",
    help="Run the form on a thousand hard rows beside predict_proba and print the largest "
    "difference; exit with code 1 when it is more than rounding.",
)
INPUT = typer.Option(
    None, help="What rows will hold: probs or logits. Default: what the model was fitted to."
)
DTYPE = typer.Option(None, help="onnx: float64 (the default) or float32, of input and output.")
DIALECT = typer.Option(
    None, help="sql: duckdb (the default), sqlite, postgres, bigquery, snowflake or spark."
)
TABLE = typer.Option(
    None, help="sql: the table with a column for each class. Default: predictions."
)
PREFIX = typer.Option(None, help="sql: what stands before a class in its column's name.")
COLUMNS = typer.Option(
    None, help="sql: names of the columns in the order of the classes, as in p1,p2,p3."
)
KEEP = typer.Option(None, help="sql: columns to pass through, such as a key, as in id,day.")


def export(
    model: str = options.MODEL,
    to: str = TARGET,
    output: str | None = OUT,
    check: bool = CHECK,
    input: str | None = INPUT,
    dtype: str | None = DTYPE,
    dialect: str | None = DIALECT,
    table: str | None = TABLE,
    prefix: str | None = PREFIX,
    columns: str | None = COLUMNS,
    keep: str | None = KEEP,
) -> None:
    """Write a model as ONNX, SQL, JavaScript, PyTorch or plain Python."""
    from ... import export as targets
    from ..._utils.atomic_files import check_writable
    from ...calibrators import load_calibrator

    if output is None and not check:
        raise typer.BadParameter(
            "name a file, or - for standard output; --check needs none.", param_hint="--output"
        )
    if output not in (None, "-"):
        check_writable(str(output))
    asked = {"input": input, "dtype": dtype, "dialect": dialect, "table": table, "prefix": prefix}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    for name, value in (("columns", columns), ("keep", keep)):
        if value is not None:
            given[name] = options.split_names(value)
    calibrator = load_calibrator(model)
    if output is not None:
        targets.export(calibrator, to, output, **given)
        if output != "-":
            echo(f"{output}: {calibrator.method} for {len(calibrator.classes_)} classes")
    if check:
        found = targets.check(calibrator, to, **given)
        echo(str(found), err=output == "-")
        if not found.holds:
            raise typer.Exit(EXIT_FAILED)
