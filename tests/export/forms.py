"""Every form that the page's table has a column for, run on hard rows."""

from contextlib import ExitStack
from functools import cache

import models
import postgres

from mcllo.export import ExportError, check, export
from mcllo.export._programs import build_program
from mcllo.export._targets import compare_with_calibrator, run_sql, stress_test_rows

FORMS = {
    "ONNX": ("onnx", {"dtype": "float64"}),
    "ONNX, float32": ("onnx", {"dtype": "float32"}),
    "SQL: DuckDB": ("sql", {"dialect": "duckdb"}),
    "SQLite": ("sql", {"dialect": "sqlite"}),
    "PostgreSQL": ("sql", {"dialect": "postgres"}),
    "BigQuery, Snowflake, Spark": ("sql", {}),
    "JavaScript": ("js", {}),
    "PyTorch": ("torch", {}),
    "Python": ("python", {}),
}
TRANSLATED = "BigQuery, Snowflake, Spark"
OTHERS = ("bigquery", "snowflake", "spark")
OPEN = ExitStack()
"""Holds the server until the process ends; `conftest` and the script close it."""


@cache
def database():
    """Return the function that runs scripts, of a server that is started once."""
    return OPEN.enter_context(postgres.server())


def measured(name, form):
    """Return the check of a model in a form, or the sentence that says why there is none."""
    to, options = FORMS[form]
    calibrator = models.model(name)
    try:
        if form == "PostgreSQL":
            return _in_postgres(calibrator)
        if form == TRANSLATED:
            # long queries take sqlglot half a minute each
            few = len(calibrator.classes_) <= 20
            found = [
                _translated(calibrator, other)
                for other in (OTHERS if few else OTHERS[:1])
            ]
            return max(found, key=lambda check: check.difference)
        return check(calibrator, to, **options)
    except ExportError as error:
        return str(error)


def _in_postgres(calibrator):
    text = export(calibrator, "sql", dialect="postgres", keep=["mcllo_key"])
    program = build_program(calibrator)
    rows = stress_test_rows(program)
    found = postgres.run_postgres(database(), text, rows, list(program.classes))
    return compare_with_calibrator(
        "sql (postgres)", calibrator, program, rows, found, "float64"
    )


def _translated(calibrator, dialect):
    """Return the check of a dialect that sqlglot reads and writes for DuckDB, which runs it."""
    import sqlglot

    text = export(calibrator, "sql", dialect=dialect, keep=["mcllo_key"])
    (text,) = sqlglot.transpile(text, read=dialect, write="duckdb")
    program = build_program(calibrator)
    rows = stress_test_rows(program)
    found = run_sql(text, rows, list(program.classes), "duckdb")
    return compare_with_calibrator(
        f"sql ({dialect}, translated)", calibrator, program, rows, found, "float64"
    )
