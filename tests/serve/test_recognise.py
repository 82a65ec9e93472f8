"""What a table seems to hold, and what the form then asks the command line for."""

import json

import openpyxl
import pytest
from inputs import csv_text, parquet_bytes, parquet_table

from mcllo._apps.serve.choices import (
    command_line_options,
    initial_form_fields,
    read_form_options,
)
from mcllo._apps.serve.column_detection import detect_table
from mcllo._apps.serve.limits import LIMITS, ServerLimits
from mcllo.exceptions import FileFormatError, InputError


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Return a function that writes a file and looks at it."""
    monkeypatch.chdir(tmp_path)

    def look(text, name="t.csv", limits=LIMITS, **options):
        (tmp_path / name).write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
        return detect_table(name, limits, **options)

    return look


def roles(found):
    return {column.name: column.role for column in found.columns if column.role}


PLAIN = {"cat": "class", "dog": "class", "truck": "class", "y": "label"}


def test_labels_name_their_columns(seen):
    found = seen(csv_text())
    assert roles(found) == PLAIN
    assert (found.n_rows, found.labels, found.ending) == (
        60,
        ("cat", "dog", "truck"),
        ".csv",
    )
    assert found.guess == {
        "scale": "probs",
        "normalize": False,
        "missing": "refuse",
        "positive": "",
        "prefix": "",
    }
    assert json.loads(json.dumps(found.to_dict()))["name"] == "t.csv"


def test_other_columns_are_left_alone(seen):
    lines = csv_text().splitlines()
    text = "\n".join(f"{i},{0.5 + i / 1000},{line}" for i, line in enumerate(lines))
    text = text.replace("0,0.5,cat", "id,chance,cat", 1)
    assert roles(seen(text)) == PLAIN


def test_a_class_that_never_came_true_is_found_by_the_sums_of_rows(seen):
    rows = "0.5,0.25,0.25,a\n0.25,0.5,0.25,b\n" * 5
    assert roles(seen("a,b,c,y\n" + rows)) == {
        "a": "class",
        "b": "class",
        "c": "class",
        "y": "label",
    }


def test_a_common_beginning_of_names_is_a_prefix(seen):
    found = seen(csv_text(header=("p_cat", "p_dog", "p_truck", "y")))
    assert roles(found)["p_cat"] == "class"
    assert found.guess["prefix"] == "p_"
    reading = read_form_options(found, initial_form_fields(found), LIMITS)
    assert command_line_options("assess", reading) == ["--label", "y", "--prefix", "p_"]


def test_how_numbers_are_written(seen):
    for row, scale, normalize in (
        ("70,20,10,a", "percent", False),
        ("33,33,33,a", "percent", True),
        ("0.33,0.33,0.33,a", "probs", True),
        ("70%,20%,10%,a", "probs", False),
        ("1.5,-2,0.5,a", "logits", False),
    ):
        found = seen("a,b,c,y\n" + f"{row}\n{row[:-1]}b\n{row[:-1]}c\n" * 3)
        assert roles(found) == {
            "a": "class",
            "b": "class",
            "c": "class",
            "y": "label",
        }, row
        assert (found.guess["scale"], found.guess["normalize"]) == (scale, normalize), (
            row
        )


def test_gaps_are_seen(seen):
    assert seen(csv_text() + ",0.5,0.5,cat\n").guess["missing"] == "drop"


def test_one_column_for_a_yes_or_no(seen):
    for yes, no, name in (
        ("yes", "no", "chance"),
        ("1", "0", "chance"),
        ("rain", "dry", "rain"),
    ):
        rows = "".join(f"d{k},0.{k + 1},{(yes, no)[k % 2]}\n" for k in range(8))
        found = seen(f"day,{name},seen\n{rows}")
        assert roles(found) == {name: "class", "seen": "label"}
        assert found.guess["positive"] == yes
        reading = read_form_options(found, initial_form_fields(found), LIMITS)
        assert (reading["classes"], reading["positive"]) == ([name], yes)
        assert command_line_options("apply", reading) == [
            "--classes",
            name,
            "--positive",
            yes,
        ]


def test_nothing_is_guessed_where_nothing_is_known(seen):
    found = seen("a,b,c\n" + "1.5,x1,7\n2.5,x2,9\n3.5,x3,8\n")
    assert roles(found) == {}
    with pytest.raises(
        InputError, match=r"one column must be “What came true”; none is\."
    ):
        read_form_options(found, initial_form_fields(found), LIMITS)


def test_an_index_without_a_name_is_no_class_and_no_label(seen):
    lines = csv_text().splitlines()
    found = seen("\n".join(f"{i or ''},{line}" for i, line in enumerate(lines)))
    assert roles(found) == PLAIN
    assert (
        read_form_options(found, initial_form_fields(found), LIMITS)["classes"] is None
    )


def test_parquet_and_the_kind_of_the_recalibrated_table(seen):
    found = seen(parquet_bytes(parquet_table()), "t.bin")
    assert (roles(found), found.ending) == (PLAIN, ".parquet")
    assert seen(csv_text(separator="\t"), "t.tsv").ending == ".tsv"


def test_sheets_can_be_chosen(seen, tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "empty talk"
    book.active.append(["note", "more"])
    book.active.append(["hello", "you"])
    rows = book.create_sheet("rows")
    for line in csv_text().splitlines():
        rows.append(line.split(","))
    book.save(tmp_path / "book.xlsx")
    content = (tmp_path / "book.xlsx").read_bytes()
    found = seen(content, "t.xlsx")
    assert (found.sheets, found.sheet, found.ending) == (
        ("empty talk", "rows"),
        "empty talk",
        ".xlsx",
    )
    other = seen(content, "t.xlsx", sheet="rows")
    assert (roles(other), other.sheet) == (PLAIN, "rows")
    assert (
        read_form_options(other, initial_form_fields(other), LIMITS)["sheet"] == "rows"
    )


def test_a_first_sheet_that_cannot_be_read_is_no_dead_end(seen, tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "two names"
    book.active.append(["note", "more", None, None])  # two columns have no name
    book.active.append(["hello", "you", 1, 2])
    rows = book.create_sheet("rows")
    rows["A1"] = "Forecasts of pets"
    for k, line in enumerate(csv_text().splitlines()):
        for j, cell in enumerate(line.split(",")):
            is_number = k > 0 and j < 3
            rows.cell(3 + k, 1 + j, float(cell) if is_number else cell)
    book.save(tmp_path / "book.xlsx")
    found = seen((tmp_path / "book.xlsx").read_bytes(), "t.xlsx")
    assert (found.sheets, found.sheet) == (("two names", "rows"), "rows")
    assert roles(found) == PLAIN
    assert "named in row 3; 1 row above it was left out" in " ".join(found.notes)


def test_names_that_look_like_options_are_names(seen):
    found = seen(csv_text(header=("--html", "-o", "a b", "--label")))
    fields = {
        "role-0": "class",
        "role-1": "class",
        "role-2": "class",
        "role-3": "label",
    }
    reading = read_form_options(found, fields | {"baseline": "-o"}, LIMITS)
    assert command_line_options("assess", reading) == [
        "--label=--label",
        "--baseline=-o",
    ]


def test_what_a_form_may_not_say(seen):
    found = seen(csv_text())
    fields = initial_form_fields(found)
    with pytest.raises(
        InputError, match=r"one column may be “What came true”; 2 are\."
    ):
        read_form_options(found, fields | {"role-0": "label"}, LIMITS)
    with pytest.raises(
        InputError, match=r"at least one column must be “Probability of a class”"
    ):
        read_form_options(found, {"role-3": "label"}, LIMITS)
    with pytest.raises(InputError, match="must be a number; got 'negligible'"):
        read_form_options(found, fields | {"clip": "negligible"}, LIMITS)
    with pytest.raises(InputError, match="must be named as in 'p_'; 'cat' is not"):
        read_form_options(found, fields | {"prefix": "p_"}, LIMITS)
    with pytest.raises(
        InputError, match="at most 2 columns may be classes here; got 3"
    ):
        read_form_options(found, fields, ServerLimits(classes=2))
    strange = read_form_options(
        found, fields | {"role-0": "thief", "scale": "x", "missing": "y"}, LIMITS
    )
    assert (strange["classes"], strange["missing"], strange["logits"]) == (
        ["dog", "truck"],
        "refuse",
        False,
    )


def test_what_is_no_table_for_a_page(seen):
    for text, limits, sentence in (
        (
            csv_text(),
            {"rows": 59},
            r"t\.csv must have at most 59 rows here; it has more\.",
        ),
        (
            csv_text(),
            {"columns": 3},
            r"t\.csv must have at most 3 columns here; it has more\.",
        ),
        ("a,b,y\n", {}, r"t\.csv must have at least one row; it has only a header\."),
        (b"%PDF-1.4 ...", {}, "it looks like a PDF"),
    ):
        with pytest.raises(FileFormatError, match=sentence):
            seen(text, limits=ServerLimits(**limits))


def test_a_long_fraction_is_rounded_never_cut(seen):
    # cut after 24 letters, 2.831699651706305123456e-06 would read as 2.83
    text = "id,cat,dog,y\n"
    text += (
        "12345678901234567890,2.831699651706305123456e-06,0.999997168300348293695,cat\n"
        * 2
    )
    found = {column.name: column.examples[0] for column in seen(text).columns}
    assert found == {
        "id": "12345678901234567890",
        "cat": "2.832e-06",
        "dog": "1",
        "y": "cat",
    }
