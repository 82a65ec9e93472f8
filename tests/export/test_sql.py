"""SQL beyond the table: other dialects, hostile names, gaps, many classes."""

import sqlite3
import warnings

import data
import forms
import models
import numpy as np
import postgres
import pytest

from mcllo.calibrators import (
    HistogramBinning,
    MatrixScaling,
    MCLLOCalibrator,
    TemperatureScaling,
)
from mcllo.exceptions import InputError
from mcllo.export import ExportError, check, export
from mcllo.export._sql import DIALECTS
from mcllo.export._targets import run_sql

sqlglot = pytest.importorskip("sqlglot")
pytestmark = pytest.mark.slow
HOSTILE = ['a"b', "select", "c; DROP TABLE x --", "é ü", "1", "`t`"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["mcllo", "histogram"])
def test_every_dialect_can_be_read_again(name, dialect):
    text = models.model(name).export(
        "sql", dialect=dialect, table="lab.scores", keep=["id"]
    )
    (query,) = sqlglot.parse(text, dialect=dialect)
    assert query.named_selects == ["id", *models.CLASSES]
    tables = {t.sql(dialect) for t in query.find_all(sqlglot.exp.Table) if t.db}
    assert tables == {"lab.scores"}
    materialized = "AS MATERIALIZED" in text
    assert materialized == (dialect in ("postgres", "sqlite"))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_hostile_names_are_only_names(dialect):
    pytest.importorskip("duckdb")
    X, y = data.drawn(200, HOSTILE, 5)
    calibrator = TemperatureScaling(classes=HOSTILE).fit(X, y)
    text = calibrator.export("sql", dialect=dialect, keep=["mcllo_key"])
    np.testing.assert_allclose(
        run_sql(text, X, HOSTILE, dialect), calibrator.predict_proba(X), atol=1e-14
    )


def test_a_prefix_and_a_key():
    calibrator = models.model("temperature")
    text = calibrator.export(
        "sql", dialect="sqlite", table="t", prefix="p_", keep=["id", "day"]
    )
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (id, p_west, p_east, p_south, p_north, day)")
    database.execute("INSERT INTO t VALUES (7, 0.1, 0.5, 0.2, 0.2, 'monday')")
    database.execute("INSERT INTO t VALUES (8, NULL, 0.5, 0.2, 0.2, 'friday')")
    cursor = database.execute(text)
    assert [column[0] for column in cursor.description] == [
        *("id", "day", "p_east", "p_north", "p_south", "p_west")
    ]
    first, second = cursor.fetchall()
    database.close()
    expected = calibrator.predict_proba([[0.5, 0.2, 0.2, 0.1]])[0]
    assert first[:2] == (7, "monday")
    assert first[2:] == pytest.approx(expected.tolist(), abs=1e-15)
    assert second == (8, "friday", None, None, None, None)  # a gap is not a number


GAPS = [[None, 0.5, 0.3, 0.2], [None, 0.0, 0.5, 0.5], [None] * 4, [0.5, 0.5, 0.0, None]]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
@pytest.mark.parametrize("name", ["mcllo", "histogram", "isotonic"])
def test_a_gap_makes_the_whole_answer_null(name, dialect):
    # GREATEST of DuckDB and PostgreSQL skips NULL, CASE takes it for the last bin
    text = models.model(name).export("sql", dialect=dialect, keep=["mcllo_key"])
    if dialect == "postgres":
        if postgres.why_not():
            pytest.skip(postgres.why_not())
        lines = [
            "\t".join(["\\N" if v is None else str(v) for v in row]) + "\t0"
            for row in GAPS
        ]
        kinds = ", ".join(f"{label} double precision" for label in models.CLASSES)
        script = [f"CREATE TEMP TABLE predictions ({kinds}, mcllo_key integer);"]
        script += [
            "COPY predictions FROM stdin;",
            *lines,
            r"\.",
            f"COPY ({text}) TO STDOUT;",
        ]
        found = forms.database()("\n".join(script)).splitlines()
        assert found == ["\t".join(["0", *["\\N"] * 4])] * len(GAPS)
        return
    database = (
        pytest.importorskip("duckdb").connect()
        if dialect == "duckdb"
        else sqlite3.connect(":memory:")
    )
    kinds = ", ".join(f"{label} DOUBLE" for label in models.CLASSES)
    database.execute(f"CREATE TABLE predictions ({kinds}, mcllo_key INTEGER)")
    database.executemany("INSERT INTO predictions VALUES (?, ?, ?, ?, 0)", GAPS)
    found = database.execute(text).fetchall()
    database.close()
    assert found == [(0, None, None, None, None)] * len(GAPS)


@pytest.mark.parametrize(
    ("names", "dialect", "said"),
    [
        (["A", "a", "b"], "duckdb", "duckdb takes the columns 'A' and 'a' for one"),
        (
            ["x" * 70 + "1", "x" * 70 + "2", "b"],
            "postgres",
            "for one; name the columns with",
        ),
        (["", "a", "b"], "postgres", "a column must have a name"),
        (["a\0z", "a", "b"], "sqlite", "a column must have a name"),
    ],
)
def test_names_that_a_database_cannot_have(names, dialect, said):
    X, y = data.drawn(60, ["p", "q", "r"], 6)
    labels = [names["pqr".index(label)] for label in y]
    calibrator = TemperatureScaling(classes=names).fit(X, labels)
    for use in (export, check):
        with pytest.raises(ExportError, match=said):
            use(calibrator, "sql", dialect=dialect)
        assert use(calibrator, "sql", dialect=dialect, columns=["one", "two", "three"])
    if "A" in names:
        assert export(calibrator, "sql", dialect="postgres")
        assert check(calibrator, "sql", dialect="postgres").holds


def test_columns_by_name_and_names_that_the_query_uses_itself():
    calibrator = models.model("temperature")
    columns = ["mcllo_key", "p2", "p3", "p4"]
    assert check(calibrator, "sql", columns=columns).holds
    text = calibrator.export(
        "sql", dialect="sqlite", table="mcllo_0", columns=columns, keep=["mcllo_1_0"]
    )
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE mcllo_0 (mcllo_1_0, mcllo_key, p2, p3, p4)")
    database.execute("INSERT INTO mcllo_0 VALUES (7, 0.5, 0.2, 0.2, 0.1)")
    (found,) = database.execute(text).fetchall()
    database.close()
    expected = calibrator.predict_proba([[0.5, 0.2, 0.2, 0.1]])[0]
    assert found == pytest.approx((7, *expected.tolist()), abs=1e-15)


def test_what_is_asked_wrongly():
    with pytest.raises(
        InputError, match="columns must name a column for each of the 4 classes"
    ):
        export(models.model("mcllo"), "sql", columns=["a", "b"])
    with pytest.raises(InputError, match="table must name a table"):
        export(models.model("mcllo"), "sql", table="")
    with pytest.raises(InputError, match="dialect must be one of"):
        export(models.model("mcllo"), "sql", dialect="oracle")
    with pytest.raises(InputError, match="keep must name columns that are no classes"):
        export(models.model("mcllo"), "sql", keep=["west"])


@pytest.mark.parametrize(
    ("make", "n_classes"),
    [
        (TemperatureScaling, 300),
        (lambda: MatrixScaling(on="log_probs", penalty=1.0), 45),
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_many_classes(make, n_classes, dialect):
    # beyond the 127 arguments of a function in SQLite, and its depth of expressions
    pytest.importorskip("duckdb")
    names = [f"c{k:03d}" for k in range(n_classes)]
    X, y = data.drawn(700, names, 5)
    calibrator = make()
    calibrator.set_params(classes=names)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrator.fit(X, y)
    text = calibrator.export("sql", dialect=dialect, keep=["mcllo_key"])
    assert "COALESCE" not in text  # GREATEST is written as the database means it
    found = run_sql(text, X[:20], names, dialect)
    np.testing.assert_allclose(found, calibrator.predict_proba(X[:20]), atol=1e-13)


def test_nothing_overflows():
    # far logits: exp(900) is no number, exp(-900) is one that PostgreSQL refuses
    calibrator = models.model("temperature, logits")
    rows = np.array([[900.0, -900.0, 0.0, 1.0], [1e6, 1e6, -1e6, 0.0]])
    text = calibrator.export("sql", dialect="sqlite", keep=["mcllo_key"])
    found = run_sql(text, rows, models.CLASSES, "sqlite")
    np.testing.assert_allclose(found, calibrator.predict_proba(rows), atol=1e-15)


def test_a_bin_for_all_and_a_map_of_two_classes():
    X, y = data.drawn(50, ["no", "yes"], 2)
    for calibrator in (HistogramBinning(n_bins=1), MCLLOCalibrator()):
        calibrator.fit(X, y)
        text = calibrator.export("sql", dialect="sqlite", keep=["mcllo_key"])
        found = run_sql(text, X, ["no", "yes"], "sqlite")
        np.testing.assert_allclose(found, calibrator.predict_proba(X), atol=1e-15)
        source = {}
        exec(calibrator.export("python"), source)
        np.testing.assert_allclose(
            source["predict_proba"](X), calibrator.predict_proba(X), atol=1e-15
        )
        onnx = pytest.importorskip("onnx")
        onnx.checker.check_model(onnx.load_from_string(calibrator.export("onnx")))
