"""Tables as people have them: every format and way of writing gives the same numbers, and says so.

The rows are forecasts of three classes in thousandths: ``70.5%`` and ``0,705`` hold them exactly.
What is expected is `Predictions.from_arrays` of the same numbers.
"""

import datetime
import json
import re
import shutil
import sys
from functools import cache

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import mcllo
from mcllo import Predictions, read_predictions
from mcllo.__main__ import run_command_line
from mcllo.exceptions import FileFormatError, InputError

CLASSES = ("dry", "rain", "snow")
N = 150


def forecasts():
    """Return thousandths, shape (N, 3), and what came true, by draws from a flatter forecast."""
    rng = np.random.default_rng(8)
    honest = rng.dirichlet([1.0, 1.0, 1.0], size=N)
    codes = (honest.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1)
    sharp = np.maximum(
        np.round(1000 * honest**2 / (honest**2).sum(axis=1, keepdims=True)), 1
    )
    sharp[np.arange(N), sharp.argmax(axis=1)] += 1000 - sharp.sum(axis=1)
    return sharp.astype(int), np.array(CLASSES)[codes]


MILLS, SEEN = forecasts()
PROBS = MILLS / 1000


@cache
def right_statistic():
    """Return the statistic that every way of writing must give."""
    return mcllo.assess(PROBS, SEEN, classes=CLASSES, seed=1).test.statistic


def text(separator=",", decimal=".", percent="", label="seen", head=CLASSES):
    """Return the table as CSV: thousandths as shares, or in percent with one decimal."""
    lines = [separator.join(["day", *head, label])]
    for day, (row, seen) in enumerate(zip(MILLS, SEEN, strict=True)):
        cells = [f"{m / 10:.1f}" if percent else f"{m / 1000:.3f}" for m in row]
        cells = [
            cell.replace(".", decimal) + (percent if percent == "%" else "")
            for cell in cells
        ]
        lines.append(separator.join([f"d{day}", *cells, str(seen)]))
    return "\n".join(lines) + "\n"


def frame():
    return pa.table(
        {**{c: PROBS[:, j] for j, c in enumerate(CLASSES)}, "seen": SEEN.tolist()}
    )


def workbook(path, cell=float, number_format="General", sheets=("Forecasts",)):
    """Write a workbook; `cell` makes the value of a cell out of thousandths."""
    book = openpyxl.Workbook()
    page = book.active
    page.title = sheets[0]
    page.append(["day", *CLASSES, "seen"])
    for day, (row, seen) in enumerate(zip(MILLS.tolist(), SEEN.tolist(), strict=True)):
        date = datetime.date(2025, 1, 1) + datetime.timedelta(days=day)
        page.append([date, *(cell(m) for m in row), seen])
        for j in (2, 3, 4):
            page.cell(row=day + 2, column=j).number_format = number_format
    for title in sheets[1:]:
        book.create_sheet(title)["A1"] = "nothing"
    book.save(path)


def packed(path, kind):
    with pa.output_stream(str(path), compression=kind) as stream:
        stream.write(text().encode())


def streamed(path):
    with pa.ipc.new_stream(str(path), frame().schema) as stream:
        stream.write_table(frame(), max_chunksize=40)


def saved(path, **arrays):
    np.savez_compressed(path, **arrays)
    shutil.move(f"{path}.npz", path)


def array(path):
    with open(path, "wb") as file:
        np.save(file, PROBS)
    np.save("labels.npy", SEEN)


DICTIONARY = frame().set_column(3, "seen", pa.array(SEEN.tolist()).dictionary_encode())
NAMED = "--label seen --classes dry,rain,snow"
WAYS = {
    "csv": (lambda p: p.write_text(text()), NAMED, ()),
    "gzip": (lambda p: packed(p, "gzip"), NAMED, ()),
    "zstd": (lambda p: packed(p, "zstd"), NAMED, ()),
    "tabs, decimal commas": (
        lambda p: p.write_text(text("\t", ",")),
        NAMED,
        ("decimal",),
    ),
    "percent signs": (lambda p: p.write_text(text(percent="%")), NAMED, ("percent",)),
    "both": (
        lambda p: p.write_text(text(";", ",", "%")),
        NAMED,
        ("decimal", "percent"),
    ),
    "0 to 100": (
        lambda p: p.write_text(text(percent="0")),
        f"{NAMED} --percent",
        ("percent",),
    ),
    "latin-1": (
        lambda p: p.write_bytes(text(label="möglich").encode("latin-1")),
        "--label möglich --classes dry,rain,snow",
        ("encoding",),
    ),
    "UTF-16": (lambda p: p.write_bytes(text().encode("utf-16")), NAMED, ("encoding",)),
    "UTF-16 without mark": (
        lambda p: p.write_bytes(text().encode("utf-16-be")),
        NAMED,
        ("encoding",),
    ),
    "named encoding": (
        lambda p: p.write_bytes(text().encode("cp037")),
        f"{NAMED} --encoding cp037",
        (),
    ),
    "parquet": (lambda p: pa.parquet.write_table(frame(), p), NAMED, ()),
    "feather": (lambda p: pa.feather.write_feather(DICTIONARY, str(p)), NAMED, ()),
    "arrow stream": (streamed, NAMED, ()),
    "xlsx": (lambda p: workbook(p, lambda m: m / 1000, "0.0%"), NAMED, ()),
    "xlsx of several": (
        lambda p: workbook(p, lambda m: m / 1000, sheets=("A", "B")),
        NAMED,
        ("sheet",),
    ),
    "xlsx, 0 to 100": (
        lambda p: workbook(p, lambda m: m / 10),
        f"{NAMED} --percent",
        ("percent",),
    ),
    "xlsx of words": (
        lambda p: workbook(p, lambda m: f"{m / 10:.1f} %".replace(".", ",")),
        NAMED,
        ("decimal", "percent"),
    ),
    "npz": (lambda p: saved(p, probs=PROBS, seen=SEEN), NAMED, ("columns",)),
    "npy": (array, "--label labels.npy --classes dry,rain,snow", ("columns",)),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def said(capsys):
    """Return a function that runs a line: exit code, standard output, standard error."""

    def call(line):
        capsys.readouterr()
        code = run_command_line(line.split())
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


BLOCKS = ("csv", "zstd", "both", "latin-1", "arrow stream", "xlsx, 0 to 100", "npz")
"""Ways whose rows are also read in blocks: one for each reader and each kind of note."""


@pytest.mark.parametrize(
    ("way", "blocks"),
    [*((way, False) for way in WAYS), *((way, True) for way in BLOCKS)],
)
def test_every_way_of_writing_gives_the_same_numbers(
    folder, said, monkeypatch, way, blocks
):
    write, options, notes = WAYS[way]
    write(folder / "table")
    if blocks:
        monkeypatch.setattr(
            "mcllo._apps.streaming.assess_file.MIN_BYTES_FOR_BLOCKS", 10
        )
    code, out, err = said(f"assess table {options} --json --seed 1")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["test"]["statistic"] == pytest.approx(right_statistic(), rel=1e-9)
    assert found["data"]["classes"] == list(CLASSES)
    assert found["data"]["n_samples"] == N
    assert [note["kind"] for note in found["data"]["notes"]] == [
        f"note.{kind}" for kind in notes
    ]


@pytest.mark.usefixtures("undrawn")
def test_the_text_and_the_report_say_what_was_assumed(folder, said):
    (folder / "table").write_text(text(";", ",", "%"))
    notes = read_predictions("table", label="seen", classes=CLASSES).notes
    code, printed, _ = said(f"assess table {NAMED} --seed 1 --html report.html")
    assert code == 0
    page = " ".join((folder / "report.html").read_text().replace("&#39;", "'").split())
    assert len(notes) == 2
    for note in notes:
        assert str(note) in page
        assert str(note)[1:40] in " ".join(printed.split())


def test_large_files_were_read_in_blocks(folder, monkeypatch):
    from mcllo._apps.streaming.assess_file import (
        BlockAssessment,
        assess_file,
        is_large_file,
    )

    packed(folder / "table", "zstd")
    monkeypatch.setattr(
        "mcllo._apps.streaming.assess_file.MIN_BYTES_FOR_BLOCKS", len(text()) - 1
    )
    assert (folder / "table").stat().st_size < len(text()) / 2  # by what it unpacks to
    assert is_large_file("table")
    assert (
        type(assess_file("table", {"label": "seen", "classes": CLASSES}))
        is BlockAssessment
    )
    monkeypatch.setattr(
        "mcllo._apps.streaming.assess_file.MIN_BYTES_FOR_BLOCKS", len(text())
    )
    assert not is_large_file("table")


GAPS = {3: "NA", 10: "", 11: "nan", 77: "-"}
"""Cells of the column rain in some rows."""


def with_gaps():
    lines = text().splitlines()
    for row, cell in GAPS.items():
        cells = lines[row + 1].split(",")
        lines[row + 1] = ",".join([*cells[:2], cell, *cells[3:]])
    lines[60 + 1] = lines[60 + 1].rsplit(",", 1)[0] + ", "  # no label
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("blocks", [False, True], ids=["whole", "in blocks"])
def test_rows_with_gaps_are_dropped_on_request_and_counted(
    folder, said, monkeypatch, blocks
):
    (folder / "gaps.csv").write_text(with_gaps())
    if blocks:
        monkeypatch.setattr(
            "mcllo._apps.streaming.assess_file.MIN_BYTES_FOR_BLOCKS", 10
        )
    code, _, err = said(f"assess gaps.csv {NAMED}")
    assert code == 2
    assert "line 5 has 'NA'. Drop or correct that row, or pass --missing drop." in err
    code, out, _ = said(f"assess gaps.csv {NAMED} --missing drop --json --seed 1")
    assert code == 0
    kept = np.setdiff1d(np.arange(N), [*GAPS, 60])
    expected = mcllo.assess(PROBS[kept], SEEN[kept], classes=CLASSES, seed=1)
    found = json.loads(out)
    assert found["test"]["statistic"] == pytest.approx(
        expected.test.statistic, rel=1e-9
    )
    (note,) = found["data"]["notes"]
    assert note["text"] == (
        "5 of 150 rows were dropped for missing values (the first: line 5 of gaps.csv)."
    )


def test_errors_after_dropped_rows_name_the_line_of_the_file(folder, said):
    lines = with_gaps().splitlines()
    lines[100] = "d99,0.5,0.5,0.5,dry"
    (folder / "gaps.csv").write_text("\n".join(lines) + "\n")
    for more in (f"assess gaps.csv {NAMED}", f"fit gaps.csv {NAMED} -o m.json"):
        _, _, err = said(f"{more} --missing drop")
        assert "line 101 of gaps.csv sums to 1.5" in err


def test_a_label_such_as_none_is_a_gap_only_where_it_is_no_class(folder, said):
    (folder / "t.csv").write_text(
        "none,snow,y\n0.7,0.3,none\n0.2,0.8,snow\n0.5,0.5,NA\n"
    )
    p = read_predictions("t.csv", label="y", missing="drop")
    assert p.classes == ("none", "snow")
    assert p.codes.tolist() == [0, 1]
    assert [note.kind for note in p.notes] == ["note.missing"]
    (folder / "t.csv").write_text("a,b,y\nNA,0.3,a\n0.2,,b\n")
    err = said("assess t.csv --label y --missing drop")[2]
    assert "must have a row in which nothing is missing" in err


# ---- one column for a yes/no outcome

RAIN = np.where(SEEN == "rain", "yes", "no")


def yes_no(column="chance", words=RAIN):
    rows = zip(MILLS[:, 1], words, strict=True)
    return f"day,{column},came\n" + "".join(f"d,{m / 1000},{w}\n" for m, w in rows)


@pytest.mark.parametrize(
    ("column", "words", "options", "classes", "blocks"),
    [
        ("chance", RAIN, "--positive yes --classes chance", ["yes", "no"], False),
        ("chance", RAIN, "--positive yes --classes chance", ["yes", "no"], True),
        (
            "rain",
            np.where(RAIN == "yes", "rain", "dry"),
            "--positive rain",
            ["rain", "dry"],
            False,
        ),
        (
            "rain",
            RAIN,
            "--positive rain",
            ["yes", "no"],
            False,
        ),  # the column is named after it
    ],
)
def test_one_column_of_probabilities(
    folder, said, monkeypatch, column, words, options, classes, blocks
):
    (folder / "t.csv").write_text(yes_no(column, words))
    if blocks:
        monkeypatch.setattr(
            "mcllo._apps.streaming.assess_file.MIN_BYTES_FOR_BLOCKS", 10
        )
    code, out, err = said(f"assess t.csv --label came {options} --json --seed 1")
    assert (code, err) == (0, "")
    found = json.loads(out)
    p = MILLS[:, 1] / 1000
    expected = mcllo.assess(np.column_stack([p, 1 - p]), words, classes=classes, seed=1)
    assert found["test"]["statistic"] == pytest.approx(
        expected.test.statistic, rel=1e-9
    )
    assert found["data"]["classes"] == classes
    (note,) = found["data"]["notes"]
    assert note["text"].startswith(f"Column {column!r} was read as the probability of")


def test_one_column_of_logits(folder):
    z = np.log(MILLS[:, 1] / (1000 - MILLS[:, 1]))
    pd.DataFrame({"z": z, "came": RAIN}).to_csv("z.csv", index=False)
    found = read_predictions("z.csv", label="came", positive="yes", logits=True)
    (folder / "p.csv").write_text(yes_no())
    p = read_predictions("p.csv", label="came", positive="yes", classes=["chance"])
    np.testing.assert_allclose(found.probs, p.probs, rtol=1e-12)


def test_what_to_type_for_one_column(folder, said):
    (folder / "t.csv").write_text(yes_no())
    for options, words in (
        ("--classes chance", "say of which: --positive "),
        ("", "pass --positive yes and name it with --classes."),
        ("--positive rain", "Name it: --classes chance."),
        ("--positive rain --classes chance", "Say --positive yes or --positive no."),
        (
            "--positive yes --classes day,chance",
            "name one column beside --positive yes",
        ),
    ):
        code, out, err = said(f"assess t.csv --label came {options}")
        assert (code, out) == (2, "")
        assert words in err
    # the name of the label column is no label
    (folder / "t.csv").write_text("chance,rain\n0.7,yes\n0.2,no\n")
    err = said("assess t.csv --label rain --positive rain")[2]
    assert "Say --positive yes or --positive no." in err


def test_a_chance_above_1_is_shown_as_it_stands(folder, said):
    (folder / "t.csv").write_text(
        yes_no().replace(f"d,{MILLS[4, 1] / 1000},", "d,45,", 1)
    )
    err = said("assess t.csv --label came --positive yes --classes chance")[2]
    assert "got 45 in column 'chance', line " in err
    assert "For percentages pass --percent" in err


# ---- apply keeps the way of writing


@pytest.fixture
def model(folder, said):
    (folder / "train.csv").write_text(text())
    assert said(f"fit train.csv {NAMED} -o model.json")[0] == 0
    return mcllo.load_calibrator("model.json")


@pytest.mark.parametrize(
    ("way", "flags", "out", "given"),
    [
        ("gzip", "", "out.csv", {}),
        ("both", "", "out.csv", {}),
        ("0 to 100", "--percent", "out.csv", {"percent": True}),
        ("UTF-16", "", "out.csv", {}),
        ("named encoding", "--encoding cp037", "out.csv", {"encoding": "cp037"}),
        ("parquet", "", "out.parquet", {}),
        ("feather", "", "out.feather", {}),
        ("arrow stream", "", "out.arrow", {}),
        ("xlsx, 0 to 100", "--percent", "out.xlsx", {"percent": True}),
        ("xlsx of words", "", "out.xlsx", {}),
        ("npz", "", "out.csv", {}),
    ],
)
def test_apply_takes_every_way_and_what_it_writes_reads_the_same_way(
    folder, said, model, way, flags, out, given
):
    write, _, notes = WAYS[way]
    write(folder / "table")
    code, _, err = said(f"apply model.json table {flags} -o {out}")
    assert code == 0
    assert err.count("mcllo: note: ") == len(notes)
    found = read_predictions(out, label="seen", classes=CLASSES, **given)
    np.testing.assert_allclose(
        found.probs, model.predict_proba(PROBS), rtol=0, atol=1e-12
    )
    assert [found.classes[code] for code in found.codes] == SEEN.tolist()


def test_csv_cells_are_written_as_they_came(folder, said, model):
    (folder / "t.csv").write_text(text(";", ",", "%"))
    said("apply model.json t.csv -o out.csv")
    head, first, *_ = (folder / "out.csv").read_text().splitlines()
    assert head == "day;dry;rain;snow;seen"
    day, *cells, seen = first.split(";")
    assert (day, seen) == ("d0", SEEN[0])
    for cell, p in zip(cells, model.predict_proba(PROBS)[0], strict=True):
        assert re.fullmatch(r"\d+(,\d+)?(e-\d+)?%", cell)
        assert float(cell[:-1].replace(",", ".")) == pytest.approx(100 * p, rel=1e-12)


def test_a_workbook_keeps_dates_and_formats_and_a_formula_stays_a_text(
    folder, said, model
):
    workbook(folder / "t.xlsx", lambda m: m / 1000, "0.0%")
    assert said("apply model.json t.xlsx -o out.xlsx")[0] == 0
    rows = list(openpyxl.load_workbook("out.xlsx").active.iter_rows())
    assert [cell.value for cell in rows[0]] == ["day", *CLASSES, "seen"]
    assert rows[1][0].value == datetime.datetime(2025, 1, 1)
    assert rows[1][1].number_format == "0.0%"
    assert rows[1][1].value == pytest.approx(
        model.predict_proba(PROBS)[0, 0], rel=1e-12
    )
    said("apply model.json t.xlsx -o out.csv")
    assert (folder / "out.csv").read_text().splitlines()[1].startswith("2025-01-01,")
    (folder / "t.csv").write_text("day,dry,rain,snow\n=1+1,0.5,0.25,0.25\n")
    assert said("apply model.json t.csv -o out.xlsx")[0] == 0
    cell = openpyxl.load_workbook("out.xlsx").active["A2"]
    assert (cell.value, cell.data_type) == ("=1+1", "s")


def test_arrays_in_and_out(folder, said, model):
    np.save("t.npy", PROBS)
    code, _, err = said("apply model.json t.npy -o out.npy")
    assert code == 0
    assert "Columns of t.npy have no names" in err
    np.testing.assert_array_equal(np.load("out.npy"), model.predict_proba(PROBS))


def test_one_column_is_recalibrated_alone(folder, said):
    (folder / "t.csv").write_text(yes_no())
    one = "--classes chance --positive yes"
    assert said(f"fit t.csv --label came {one} -o one.json")[0] == 0
    code, _, err = said(f"apply one.json t.csv {one} -o out.csv")
    assert code == 0
    assert "Column 'chance' was read as" in err
    p = MILLS[:, 1] / 1000
    expected = mcllo.load_calibrator("one.json").predict_proba(
        np.column_stack([p, 1 - p])
    )[:, 0]
    found = pd.read_csv("out.csv")
    np.testing.assert_allclose(found["chance"], expected, rtol=1e-14)
    assert found["came"].tolist() == RAIN.tolist()
    assert (
        "one of the two classes"
        in said("apply one.json t.csv --positive maybe -o o.csv")[2]
    )


def test_apply_keeps_rows_with_gaps_in_their_places(folder, said, model):
    (folder / "gaps.csv").write_text(with_gaps())
    code, out, err = said("apply model.json gaps.csv --missing drop -o out.csv.zst")
    assert code == 0
    # the row without a label has no gap that matters here
    assert "4 of 150 rows have missing values (the first: line 5" in err
    assert "stay in their places with empty class columns" in err
    assert "146 rows recalibrated" in out
    kept = np.setdiff1d(np.arange(N), list(GAPS))
    code, _, _ = said("apply model.json gaps.csv --missing drop -o plain.csv")
    given = (folder / "gaps.csv").read_text().splitlines()
    written = (folder / "plain.csv").read_text().splitlines()
    assert len(written) == len(given)
    columns = given[0].split(",")
    before = dict(zip(columns, given[4].split(","), strict=True))  # line 5, a gap
    after = dict(zip(columns, written[4].split(","), strict=True))
    assert [after[name] for name in CLASSES] == [""] * len(CLASSES)
    others = [name for name in columns if name not in CLASSES]
    assert [after[name] for name in others] == [before[name] for name in others]
    found = read_predictions(
        "out.csv.zst", label="seen", classes=CLASSES, missing="drop"
    )
    kept = kept[kept != 60]
    np.testing.assert_allclose(
        found.probs, model.predict_proba(PROBS[kept]), atol=1e-12
    )


# ---- limits and refusals


@pytest.mark.parametrize(
    ("name", "remedy"), [("t.xlsx", "as CSV"), ("t.npz", "one by one as .npy")]
)
def test_packed_files_have_a_limit(folder, said, monkeypatch, name, remedy):
    workbook(folder / "t.xlsx")
    np.savez_compressed("t.npz", probs=PROBS, seen=SEEN)
    monkeypatch.setattr("mcllo._apps.io.arrays.MAX_UNPACKED_BYTES", 2000)
    err = said(f"assess {name} --label seen")[2]
    assert f"mcllo: {name} unpacks to 0.0 GB; packed files are read at once" in err
    assert remedy in err


def test_a_workbook_without_openpyxl(folder, said, monkeypatch):
    workbook(folder / "t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    err = said("assess t.xlsx --label seen")[2]
    assert "pip install 'mcllo[excel]', or save the sheet as CSV." in err


def test_pickled_arrays_are_never_loaded(folder, said):
    np.save("t.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert (
        "it holds Python objects, which are never loaded"
        in said("assess t.npy --label y")[2]
    )


def test_arrays_that_do_not_say_what_they_are(folder, said):
    one = {"a": PROBS, "y": SEEN}
    no_labels = (
        "it has ['0', '1', '2']. Labels in a file of their own are --label y.npy."
    )
    for arrays, options, words in (
        (one | {"b": PROBS}, "", "holds 2 tables: a and b. Choose one with --sheet"),
        (one, "", "give them with --classes"),
        (one, "--classes dry,rain", "has 3 columns without names; got 2 classes"),
        (one | {"y": SEEN[:9]}, "", no_labels),
        (one, "--sheet b", "has no table 'b'; it has ['a']"),
    ):
        np.savez("t.npz", **arrays)
        assert words in said(f"assess t.npz --label y {options}")[2]


def test_a_sheet_is_chosen_by_name(folder, said):
    workbook(folder / "t.xlsx", lambda m: m / 1000, sheets=("A", "B"))
    assert said(f"assess t.xlsx {NAMED} --sheet A --seed 1")[0] == 0
    assert "did you mean 'B'?" in said(f"assess t.xlsx {NAMED} --sheet b")[2]
    read = "Sheet 'A' was read; choose another with --sheet B."
    assert read in said("assess t.xlsx --label came")[2]
    assert read not in said("assess t.xlsx --label came --sheet A")[2]
    book = openpyxl.load_workbook("t.xlsx")
    book.move_sheet("B", -1)
    book.save("t.xlsx")  # notes come first
    code, out, _ = said(f"assess t.xlsx {NAMED}")  # a cover in front is passed over
    assert code == 0
    assert "sheet 'A', the first with a table of 2" in " ".join(out.split())


def test_shares_are_no_percentages(folder, said):
    (folder / "t.csv").write_text(text())
    err = said(f"assess t.csv {NAMED} --percent")[2]
    assert (
        "line 2 of t.csv sums to 0.01. They are shares already: leave --percent out."
        in err
    )
    (folder / "t.csv").write_text(
        text().replace("d0,", "d0,9", 1)
    )  # 9 percent, and 1 in all
    assert "leave --percent out" not in said(f"assess t.csv {NAMED} --percent")[2]


def test_a_fit_says_nothing_of_p_values(folder, said):
    # what was raised matters to them, and a fit has none
    (folder / "t.csv").write_text(
        "a,b,y\n" + "1,0,a\n0.3,0.7,b\n0.4,0.6,a\n0.6,0.4,b\n" * 9
    )
    code, _, err = said("fit t.csv --label y -o m.json")
    assert code == 0
    assert "9 were clipped to 1e-06" in err
    assert "p-value" not in err


def test_a_cell_of_a_workbook_is_named_by_its_row(folder, said):
    workbook(folder / "t.xlsx", lambda m: m / 1000)
    book = openpyxl.load_workbook("t.xlsx")
    book.active["C9"] = "soon"
    book.save("t.xlsx")
    assert (
        "column 'rain' must hold numbers; row 9 has 'soon'"
        in said(f"assess t.xlsx {NAMED}")[2]
    )
    book.active["C9"] = 0.999
    book.save("t.xlsx")
    assert "row 9 of t.xlsx sums to" in said(f"assess t.xlsx {NAMED}")[2]


def test_python_reads_the_same_and_keeps_what_was_assumed(folder):
    (folder / "t.csv").write_bytes(
        text(";", ",", "%", label="möglich").encode("latin-1")
    )
    p = read_predictions("t.csv", label="möglich", classes=CLASSES)
    assert isinstance(p, Predictions)
    assert [note.kind for note in p.notes] == [
        "note.encoding",
        "note.decimal",
        "note.percent",
    ]
    with pytest.raises(InputError, match="missing must be 'refuse' or 'drop'"):
        read_predictions("t.csv", label="möglich", missing="ignore")
    with pytest.raises(FileFormatError, match="cannot be read as utf-16 text"):
        read_predictions("t.csv", label="möglich", encoding="utf-16")


@pytest.mark.usefixtures("undrawn")
def test_a_directory_is_read_whole_for_a_report(folder, said):
    (folder / "parts").mkdir()
    lines = text().splitlines()
    for k, (a, b) in enumerate(((1, 60), (60, 100), (100, N + 1))):
        (folder / "parts" / f"{k}.csv").write_text(
            "\n".join([lines[0], *lines[a:b]]) + "\n"
        )
    p = read_predictions("parts", label="seen", classes=CLASSES)
    np.testing.assert_array_equal(p.probs, PROBS)
    code, _, err = said(f"assess parts {NAMED} --html report.html --seed 1")
    assert (code, err) == (0, "report.html: report written\n")
    assert "150 predictions" in (folder / "report.html").read_text()
    (folder / "parts" / "1.csv").write_text(
        "\n".join([lines[0], *lines[60:99], "d,1,1,1,dry"])
    )
    err = said(f"assess parts {NAMED} --html report.html")[2]
    assert "line 41 of parts/1.csv sums to 3" in err


# ---- frames


def test_a_prefix_and_a_label_column_of_a_frame():
    import polars as pl

    wide = pd.DataFrame(PROBS, columns=[f"prob_{c}" for c in CLASSES])
    wide = wide.assign(id=range(N), seen=SEEN)
    expected = mcllo.assess(PROBS, SEEN, classes=CLASSES, seed=1).test.statistic
    for table in (wide, pl.DataFrame(wide), pa.Table.from_pandas(wide)):
        for y in ("seen", SEEN):
            a = mcllo.assess(table, y, prefix="prob_", seed=1)
            assert a.predictions.classes == CLASSES
            assert a.test.statistic == pytest.approx(expected, rel=1e-12)
    chosen = mcllo.assess(wide, "seen", prefix="prob_", classes=CLASSES[::-1], seed=1)
    assert chosen.predictions.classes == CLASSES[::-1]
    only = wide.drop(columns=["id", "seen"])
    named = wide.rename(columns=lambda name: name.removeprefix("prob_"))
    for call, words in (
        (lambda: mcllo.assess(only, SEEN), "pass prefix='prob_'"),
        (
            lambda: mcllo.assess(wide, "seen"),
            "pass prefix='prob_'",
        ),  # 'id' is no probability
        (
            lambda: mcllo.assess(named, "seen"),
            "If 'id' is not a class, pass classes=['dry', ",
        ),
        (
            lambda: mcllo.assess("wide.csv", "seen"),
            "read_predictions('wide.csv', label='seen')",
        ),
        *(
            (
                lambda make=make: make().fit(only, SEEN),
                "rename them: X.columns = [name.remove",
            )
            for make in (mcllo.MCLLOCalibrator, mcllo.CALIBRATORS["isotonic"])
        ),
        (
            lambda: mcllo.assess(PROBS, SEEN, prefix="prob_"),
            "needs a frame whose columns",
        ),
        (lambda: mcllo.assess(wide, SEEN, prefix="p_"), "at least two columns"),
        (lambda: mcllo.assess(wide, "sen", prefix="prob_"), "did you mean 'seen'?"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert words in str(caught.value)
    only.columns = [name.removeprefix("prob_") for name in only.columns]  # as it says
    assert mcllo.MCLLOCalibrator().fit(only, SEEN).classes_.tolist() == list(CLASSES)
    assert mcllo.compare(
        wide, y="seen", prefix="prob_", cv=2, methods=["temperature"]
    ).rows


def forecast_workbook(path):
    """A workbook as people keep them: a cover, titles, a header below, gaps, a mean at the end."""
    book = openpyxl.Workbook()
    cover = book.active
    cover.title = "README"
    cover["A1"] = "Forecast verification 2025/26"
    page = book.create_sheet("Verification")
    page["A1"] = "Forecasts, station 10471"
    page["A2"] = "All values in percent"
    header = ["Date", "Station", *(f"P({name})" for name in CLASSES), "Observed"]
    for j, name in enumerate(header, start=1):
        page.cell(4, j, name)
    for i in range(N):
        cells = [f"d{i}", "Harz", *PROBS[i].tolist(), str(SEEN[i])]
        for j, value in enumerate(cells, start=1):
            page.cell(5 + i, j, value)
    page.cell(5 + 7, 4).value = "n/a"
    page.cell(5 + N, 1, "Mean")
    page.cell(5 + N, 3, f"=AVERAGE(C5:C{4 + N})")
    book.save(path)


def test_a_workbook_as_people_keep_them(folder, said, model):
    forecast_workbook(folder / "fc.xlsx")
    reading = "--prefix P(*) --missing drop"
    code, out, err = said(f"assess fc.xlsx --label Observed {reading} --json --seed 1")
    assert code == 0, err
    notes = " ".join(note["text"] for note in json.loads(out)["data"]["notes"])
    assert "Sheet 'Verification', the first with a table of 2, was read" in notes
    assert "named in row 4; 2 rows above it were left out" in notes
    kept = np.delete(np.arange(N), 7)
    expected = mcllo.assess(PROBS[kept], SEEN[kept], classes=CLASSES).test.statistic
    assert json.loads(out)["test"]["statistic"] == pytest.approx(expected)
    # the same where the row is named; another row is refused by what it holds
    same = f"assess fc.xlsx --label Observed {reading} --sheet Verification --header 4"
    assert said(f"{same} --json --seed 1")[0] == 0
    assert "row 3 is empty" in said(same.replace("--header 4", "--header 3"))[2]
    # without --prefix the remedy is the option
    assert "pass --prefix 'P(*)'" in said("assess fc.xlsx --label Observed")[2]
    (folder / "t.csv").write_text("a,b,y\n0.5,0.5,a\n")
    assert (
        "--header 4 is the row of a workbook"
        in said("assess t.csv --label y --header 4")[2]
    )


def test_a_workbook_comes_back_whole(folder, said, model):
    forecast_workbook(folder / "fc.xlsx")
    code, _, err = said(
        "apply model.json fc.xlsx --prefix P(*) --missing drop -o o.xlsx"
    )
    assert code == 0, err
    before = openpyxl.load_workbook(folder / "fc.xlsx")
    after = openpyxl.load_workbook(folder / "o.xlsx")
    assert after.sheetnames == ["README", "Verification"]
    assert after["README"]["A1"].value == before["README"]["A1"].value
    kept = np.delete(np.arange(N), 7)
    expected = dict(zip(kept.tolist(), model.predict_proba(PROBS[kept]), strict=True))
    old, new = before["Verification"], after["Verification"]
    assert new.max_row == old.max_row
    for line in range(1, old.max_row + 1):
        i = line - 5
        is_row = 0 <= i < N
        for column in range(1, old.max_column + 1):
            found, given = new.cell(line, column).value, old.cell(line, column).value
            is_changed = is_row and 3 <= column < 3 + len(CLASSES)
            if is_changed and i in expected:
                assert found == pytest.approx(expected[i][column - 3], abs=1e-12)
            elif is_changed:
                assert found is None  # a gap: nobody takes it for a recalibrated number
            elif line < old.max_row:
                assert found == given
    assert new.cell(old.max_row, 1).value == "Mean"
