"""What a user reads, for eight data sets and the command line, against `tests/texts`.

To approve a change: ``python -m pytest tests/public/test_texts.py --approve``, then read the
difference. `approval` says what counts as equal.
"""

import gzip
import io
import re
import shlex
import warnings
from functools import cache

import data
import numpy as np
import pyarrow as pa
import pytest
from approval import check_json, check_text, differences, sections, settled
from pyarrow import parquet

import mcllo
from mcllo.__main__ import run_command_line

VERBS = (
    "assess",
    "fit",
    "compare",
    "apply",
    "plot",
    "power",
    "export",
    "monitor",
    "monitor start",
    "monitor add",
    "monitor show",
    "reproduce",
    "serve",
    "demo",
    "help",
)
GOOD = "cat,dog,truck,y\n0.7,0.2,0.1,cat\n0.2,0.5,0.3,dog\n0.1,0.3,0.6,truck\n0.4,0.3,0.3,dog\n"
FILES = {
    "good.csv": GOOD,
    "label.csv": GOOD.replace("0.3,dog\n0.1", "0.3,lorry\n0.1"),
    "named.csv": "row 1,other,y\n0.7,0.3,other\n0.2,0.8,row 1x\n",
    "b.csv": "a,b,y\n" + "0.5,0.5,a\n" * 6 + "0.5,0.5,row 6\n",
    "clip=[a b].csv": "x classes=[a b],b,y\n0.5,0.5,b\n0.5,0.6,b\n",
    "negative.csv": GOOD.replace("0.7,0.2,0.1", "-0.7,1.6,0.1"),
    "sum.csv": GOOD.replace("0.7,0.2", "0.7,0.1"),
    "word.csv": GOOD.replace("0.7,0.2", "much,0.2"),
    "gap.csv": GOOD.replace("0.7,0.2", ",0.2"),
    "short.csv": GOOD.replace("0.7,0.2,", "0.7,"),
    "ids.csv": "".join(f"{i},{line}\n" for i, line in enumerate(GOOD.splitlines())),
    "zero.csv": GOOD.replace("0.7,0.2", "0.9,0.0"),
    "prefix.csv": GOOD.replace("cat,dog,truck,y", "p_cat,p_dog,p_truck,y"),
    "empty.csv": "",
    "weighted.csv": "".join(
        f"{w},{line}\n" for w, line in zip("w12-3", GOOD.split(), strict=True)
    ).replace("-,", "-1,"),
    "rounded.csv": GOOD.replace("0.7,0.2,0.1", "0.33,0.33,0.33"),
    "fleet.csv": GOOD.replace("truck,y", "ship,y"),
    "header.csv": "cat,dog,truck,y\n",
    "percent.csv": GOOD.replace("0.7,0.2,0.1", "50,25,25"),
    "model.json": '{"format": "other"}\n',
    "broken.json": "{",
    "newer.json": '{"format": "mcllo calibrator", "format_version": 99, "mcllo_version": "9"}\n',
}


def parquet_of(**changes):
    """Return GOOD as Parquet, some of its columns changed."""
    names, *rows = [line.split(",") for line in GOOD.split()]
    cells = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns = {name: list(map(float, cells[name])) for name in names[:3]}
    sink = io.BytesIO()
    parquet.write_table(pa.table({**columns, "y": list(cells["y"]), **changes}), sink)
    return sink.getvalue()


def first_row(cells):
    """Return GOOD with other cells in its first row of data."""
    return GOOD.replace("0.7,0.2,0.1,cat", cells)


BROKEN = {
    "blank lines": "\n\n \n",
    "header only": "cat,dog,truck,y\n",
    "header without line end": "cat,dog,truck,y",
    "no other column": "y\ncat\ndog\n",
    "spaces between cells": "cat dog y\n1 0 cat\n",
    "no class column": "cat,y\n1,cat\n",
    "label nearly": GOOD.replace("truck,y", "truck,Y"),
    "no header": GOOD.split("\n", 1)[1],
    "duplicate columns": GOOD.replace("cat,dog", "cat,cat", 1),
    "two unnamed columns": GOOD.replace("cat,dog", ",", 1),
    "long line": first_row("0.5,0.25,0.25,cat,dog"),
    "decimal marks of both kinds": GOOD.replace(",", ";").replace("0.7", "0,7"),
    "percent sign": first_row("50%,25%,25%,cat"),
    "percentages": first_row("50,25,25,cat"),
    "NaN": first_row("0.5,nan,0.5,cat"),
    "NA": first_row("0.5,NA,0.5,cat"),
    "infinity": first_row("0.5,inf,0.5,cat"),
    "missing label": first_row("0.5,0.25,0.25,"),
    "labels are positions": "cat,dog,y\n0.5,0.5,0\n0.25,0.75,1\n",
    "labels in capitals": "cat,dog,y\n0.5,0.5,CAT\n0.25,0.75,DOG\n",
    "a hair below zero": first_row("-1e-9,0.5,0.5,cat"),
    "above one": first_row("1.5,0,0,cat"),
    "rounded": first_row("0.33,0.33,0.33,cat"),
    "words": "".join(f"{i}.png,{line}\n" for i, line in enumerate(GOOD.split())),
    "suffix": GOOD.replace("cat,dog,truck,y", "cat_p,dog_p,truck_p,y", 1),
    "open quote": first_row('0.5,0.25,0.25,"cat'),
    "latin-1": first_row("0.5,0.25,0.25,caf\xe9").encode("latin-1"),
    "latin-1 header": GOOD.replace("truck,y", "tr\xfcck,y").encode("latin-1"),
    "one chance": "day,chance,y\nmon,0.7,yes\ntue,0.2,no\n",
    "one column": "chance,y\n0.7,yes\n0.2,no\n",
    "binary": bytes(range(200, 256)) + bytes(range(256)),
    "parquet without rows": parquet_of(
        **dict.fromkeys(("cat", "dog", "truck"), pa.array([], pa.float64())),
        y=pa.array([], pa.string()),
    ),
    "parquet text column": parquet_of(cat=["x"] * 4),
    "parquet gap": parquet_of(cat=pa.array([None] * 4, pa.float64())),
    "parquet label gap": parquet_of(y=[None] * 4),
    "parquet fractional label": parquet_of(y=[0.5] * 4),
    "spreadsheet": b"PK\x03\x04 and more",
    "json": '[{"cat": 1}]',
    "html": "<!doctype html><p>Log in",
    "numpy": b"\x93NUMPY and more",
    "gzip of json": gzip.compress(b'{"a": 1}', mtime=0),
}
"""Files that `assess` refuses, by what is wrong with them."""
REFUSED = """
assess nothing.csv --label y
assess goood.csv --label y
assess good.csv
assess good.csv --label z
assess label.csv --label y
assess named.csv --label y
assess b.csv --label y
assess 'clip=[a b].csv' --label y
assess negative.csv --label y
assess sum.csv --label y
assess word.csv --label y
assess gap.csv --label y
assess short.csv --label y
assess ids.csv --label y
assess zero.csv --label y --clip 0
assess prefix.csv --label y
assess empty.csv --label y
assess good.csv --label y --classes cat,dgo,truck
assess good.csv --label y --baseline trcuk
assess good.csv --label y --weight w
assess good.csv --label y --alpha 5
assess good.csv --label y --method magic
assess good.csv --label y --statistic t
assess good.csv --label y --colour
asses good.csv --label y
assess none/x.csv --label y
assess --label y
assess good.csv --label yy
assess good.csv --label y --baseline 7
assess good.csv --label y --classes cat,dog,cat
assess good.csv --label y --classes cat
assess good.csv --label y --classes=
assess good.csv --label y --classes cat,dog,y
assess good.csv --label y --classes cat,dog
assess good.csv --label y --prefix q_
assess good.csv --label y --weight y
assess weighted.csv --label y --weight w
assess good.csv --label cat --weight y --classes dog,truck
assess good.csv --label y --alpha nan
assess good.csv --label y --statistic wald --method exact
assess good.csv --label y --method exact --seed -1
assess good.csv --label y --method exact --draws 0
assess good.csv --label y --clip 0.5
fit good.csv --label y
fit good.csv --label y -o nowhere/model.json
fit good.csv --label y -o good.csv
fit good.csv --label y -o model.json --method magic
fit good.csv --label y -o model.json --penalty -1
fit good.csv --label y -o model.json --method beta --penalty 1
fit good.csv --label y -o .
fit good.csv --label y -o model.json --method tempature
fit good.csv --label y -o model.json --method auto --baseline dog
fit good.csv --label y -o model.json --method auto --baseline all
fit good.csv --label y -o model.json --method matrix
fit good.csv --label y -o model.json --method beta --clip 0.01
assess good.csv --label y --missing ignore
assess good.csv --label y --encoding klingon
assess good.csv --label y --positive cat
assess good.csv --label y --html report.pdf
assess good.csv --label y --open
fit good.csv --label y -o model.xlsx
compare good.csv good.csv --label y --cv 4
compare good.csv --label y --cv 1
compare good.csv good.csv --label y --baseline lorry
compare good.csv good.csv --label y --methods temprature
compare good.csv good.csv --label y --methods mcllo,magic
apply model.json good.csv
apply broken.json good.csv
apply newer.json good.csv
apply nothing.json good.csv
apply good.csv model.json
apply map.json
apply - -
apply . good.csv
apply good.csv good.csv
apply map.json good.csv -o nowhere/x.csv
apply map.json good.csv -o x.xls
apply map.json good.csv -o x.npy
apply map.json good.csv -o x.parquet.gz
apply map.json prefix.csv
apply map.json fleet.csv
apply map.json rounded.csv
apply map.json zero.csv --clip 0
apply map.json percent.csv
apply map.json header.csv
plot . --label y -o o.svg
plot good.csv --label y -o figure.doc
plot good.csv --label y -o figure.svg --kind pie
export map.json --to excel -o x
export map.json --to sql
export map.json --to sql --dialect oracle -o x.sql
export map.json --to js --dialect sqlite -o x.mjs
export map.json --to python -o nowhere/x.py
export map.json --to python --input images -o x.py
export good.csv --to python -o x.py
power good.csv --label y
power good.csv --label y --gamma much
power good.csv --label y --gamma 0.8 --n 0
power good.csv --label y --delta truck=2
power --gamma 0.8
power good.csv --label y --gamma 0.8 --power 0.8 --n 100
power good.csv --label y --gamma 1 --power 0.8
power good.csv --label y --gamma 0.8 --power 2
help asess
"""


@cache
def made(name):
    """Return the assessment, the comparison and the warnings of a data set."""
    rows = data.SETS[name]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assessment, comparison = rows.assess(), rows.compare()
    said = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return assessment, comparison, "\n".join(said) or "none"


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command line in a folder of its own and shows it all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def shown(line):
        capsys.readouterr()
        code = run_command_line(shlex.split(line))
        out, err = capsys.readouterr()
        text = f"$ mcllo {line}\n{out}{err}[exit code {code}]"
        return settled(text.replace(str(tmp_path), "FOLDER"))

    return shown


def help_words(page):
    """Return a page of help without frames and names of types, which depend on typer's version."""
    bare = re.sub(r"[╭╮╰╯│─]|<[\w\[\]]+>|\b(TEXT|INTEGER|FLOAT|BOOLEAN)\b", " ", page)
    bare = re.sub(r"\{(\w+)\}", r"\1", bare)
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", data.SETS)
def test_words(name, approve):
    assessment, comparison, said = made(name)
    parts = {
        "assess": str(assessment),
        "assess, full": assessment.text(full=True),
        "compare": str(comparison),
        "report of the assessment": mcllo.report(
            assessment, date="1 January 2026"
        ).markdown(),
        "report of the comparison": mcllo.report(
            comparison, date="1 January 2026"
        ).markdown(),
        "warnings": said,
    }
    check_text(f"{name}.txt", sections(parts, drifting=name == "separated"), approve)


@pytest.mark.parametrize("name", data.SETS)
def test_numbers(name, approve):
    assessment, comparison, _ = made(name)
    content = {"assess": assessment.to_dict(), "compare": comparison.to_dict()}
    check_json(f"{name}.json", content, approve, drifting=name == "separated")


@pytest.mark.newest
def test_help(call, monkeypatch, approve):
    monkeypatch.setenv(
        "COLUMNS", "1000"
    )  # one line for each option, whatever typer's columns
    pages = [call("--help"), *(call(f"{verb} --help") for verb in VERBS)]
    check_text("help.txt", "\n".join(map(help_words, pages)), approve)


def test_command_line(call, tmp_path, approve):
    lines = []
    for name in ("sharp", "votes", "hostile"):
        rows = data.SETS[name]()
        rows.write_csv(tmp_path / f"{name}.csv")
        rows.holdout.write_csv(tmp_path / f"{name}_holdout.csv")
        lines.append(f"assess {name}.csv --label y --seed 0")
    lines += [
        "assess sharp.csv --label y --seed 0 --gate --alpha 0.01",
        "compare hostile.csv hostile_holdout.csv --label y --seed 0 --methods mcllo,beta",
        "compare sharp.csv --label y --seed 0 --cv 4 --methods temperature,histogram",
        "fit sharp.csv --label y -o auto.json",
        "fit votes.csv --label y -o mcllo.json --method mcllo",
        "fit votes.csv --label y -o pulled.json --penalty 1",
        "apply auto.json sharp_holdout.csv -o recalibrated.csv",
        "export auto.json --to python -o recalibration.py",
        "compare sharp.csv --label y --seed 0 --methods temperature",
        "plot sharp.csv --label y -o reliability.svg",
        "power sharp.csv --label y --gamma 0.8 --n 100 --reps 50 --seed 0",
        "power sharp.csv --label y --gamma 0.8 --power 0.8 --reps 50 --seed 0",
        "power hostile.csv --label y --delta seed=1=1.5 --n 100 --reps 50 --seed 0",
    ]
    check_text("command_line.txt", "\n".join(map(call, lines)), approve)


@pytest.mark.newest
def test_errors(call, tmp_path, approve):
    for name, content in (FILES | BROKEN).items():
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(raw)
    call("fit good.csv --label y --penalty 1 -o map.json")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    lines = REFUSED.strip().splitlines() + [
        f"assess '{name}' --label y" for name in BROKEN
    ]
    shown = [call(line) for line in lines]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    for text in shown:
        _, said, code = text.strip().split("\n")
        assert said.startswith("mcllo: ")
        assert len(said) < 300
        assert code == "[exit code 2]"
    check_text("errors.txt", "\n".join(shown), approve)


def test_a_change_is_seen():
    old = {"a": [1.0, 2.0], "b": 3, "c": "x", "d": None}
    assert not list(differences(old, {**old, "a": [1.0 + 1e-7, 2.0]}))
    changes = [
        {"a": [1.0 + 1e-5, 2.0]},
        {"a": [1.0]},
        {"b": 4},
        {"b": 3.0},
        {"c": "y"},
        {"d": 0.0},
    ]
    for now in [
        *({**old, **change} for change in changes),
        {"a": [1.0, 2.0], "b": 3, "c": "x"},
    ]:
        assert list(differences(old, now))


def test_the_sets_are_what_they_are_called():
    for name in data.SETS:
        assessment = made(name)[0]
        rows = data.SETS[name]()
        assert np.array_equal(rows.probs, data.SETS[name].__wrapped__().probs), name
        assert bool(assessment.test.rejects(0.05)) == (name not in ("toy", "calm")), (
            name
        )
        assert assessment.fit.separated == (name == "separated"), name
        assert bool((rows.probs == 0.0).mean() > 0.2) == (name == "votes"), name
