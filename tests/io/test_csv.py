"""CSV as text, read and written, and Parquet written beside it."""

import csv
import datetime
import gzip
import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from mcllo._apps.io.csv_text import (
    find_first_fault,
    find_line_of_row,
    find_number_fault,
    find_open_quote,
    has_odd_quotes,
    header_looks_like_data,
    read_header,
)
from mcllo._apps.io.write import csv_header, csv_lines, open_writer, split_endings
from mcllo.exceptions import FileFormatError, fill_template

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def stream(text):
    return io.BytesIO(text if isinstance(text, bytes) else text.encode())


def test_header():
    for text, names, separator in (
        ("a,b,y\n1,0,a\n", ["a", "b", "y"], ","),
        ("a\tb\ty", ["a", "b", "y"], "\t"),
        ("a|b|y", ["a", "b", "y"], "|"),
        ("\ufeffa,b\r\n", ["a", "b"], ","),
        ("\n\r\n\na,b\n", ["a", "b"], ","),
        (
            '"a,1";"b,2";c\n',
            ["a,1", "b,2", "c"],
            ";",
        ),  # separators inside quotes do not count
        ('"two\nlines",b\n1,2\n', ["two\nlines", "b"], ","),
        ('"say ""hi""",b\n', ['say "hi"', "b"], ","),
        (",a , 猫\n", ["", "a ", " 猫"], ","),
        ("alone\n", ["alone"], ","),
        ("", [], ","),
    ):
        assert read_header(stream(text)) == (names, separator), text
    # one that is not UTF-8 is refused; other lines do not matter
    with pytest.raises(UnicodeDecodeError):
        read_header(stream(b"gr\xf6\xdfe,b\n"))
    assert read_header(stream(b"a,b\ngr\xf6\xdfe,1\n"))[0] == ["a", "b"]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(WORDS, min_size=2, max_size=2), max_size=6),
    st.sampled_from(",;\t|"),
)
def test_lines_of_rows_count_line_ends(rows, separator):
    head = io.StringIO(newline="")
    writer = csv.writer(
        head, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL
    )
    writer.writerow(["a", "b"])
    for k, row in enumerate(rows):
        text = head.getvalue()
        # csv.reader counts \n, \r and \r\n as line ends
        before = text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
        writer.writerow(row)
        assert find_line_of_row(stream(head.getvalue()), separator, k) == before + 1
    assert not has_odd_quotes(stream(head.getvalue()))
    assert find_first_fault(stream(head.getvalue()), separator, ["a", "b"], []) is None


NUMBERS = [
    "1",
    "-0.5",
    "+1",
    ".5",
    "1.",
    "1e-3",
    "1E+3",
    "nan",
    "NaN",
    "-inf",
    " 0.5 ",
    "",
    "  ",
]


def test_cells_that_are_no_numbers_are_shown_with_a_remedy():
    assert [find_number_fault(cell) for cell in NUMBERS] == [None] * len(NUMBERS)
    assert len(find_number_fault("x" * 1000)[0]) < 50
    for cells, remedy in (
        (["NA", "null"], "Drop or correct that row, or pass missing='drop'."),
        (["0,5"], "Write all decimals alike: with a point, or all with a comma."),
        (["50%"], "Write all cells of that column with a percent sign, or none."),
        (["cat", "1_0", "0x1"], "Choose the columns that are classes with classes=."),
    ):
        for cell in cells:
            shown, template = find_number_fault(cell)
            assert (shown, fill_template(template, {})) == (repr(cell), remedy)


def test_open_quote():
    for text, line in (
        ('a,b\n1,"x\n2,y\n', 2),  # never closed: it would swallow line 3
        ('a,b\n1,x\n2,"y', 3),
        ('a,b\n1,"x" inch"\n', 2),  # a quote inside quotes must be doubled
        ('a,b\n1,5" pipe\n', None),  # a quote inside a plain cell is only a letter
        ('a,b\n"1","x""y"\n', None),
    ):
        assert find_open_quote(stream(text), ",") == line, text
        assert has_odd_quotes(stream(text)) == (text.count('"') % 2 == 1), text


def test_looks_like_data():
    assert header_looks_like_data(["0.7", "0.3", "cat"])
    assert header_looks_like_data(["1e-3", "0.999", "0"])
    assert not header_looks_like_data(
        ["0", "1", "2"]
    )  # integers are good names of classes
    assert not header_looks_like_data(["cat", "dog", "y"])
    assert not header_looks_like_data(["v1.0", "v2.0"])


# writing


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def test_a_small_batch_by_hand():
    rows = batch(
        id=["a", None, 'say "hi"', "x,y"], p=[0.1, 1.0, 1e-300, None], n=[1, 2, 3, None]
    )
    assert csv_lines(rows) == 'a,0.1,1\n,1,2\n"say ""hi""",1e-300,3\n"x,y",,\n'
    assert csv_header(["a", "b,c", 'd"']) == 'a,"b,c","d"""\n'
    # only the separator in use needs quotes
    assert csv_lines(batch(a=["x,y", "x;y"], b=["", ""]), ";") == 'x,y;\n"x;y";\n'
    assert csv_lines(batch(a=["x\ty"], b=["|"]), "\t") == '"x\ty"\t|\n'
    assert csv_lines(batch(a=["x|y", "x"], b=["1", "2"]), "|") == '"x|y"|1\nx|2\n'
    assert csv_header(["a;b", "c,d"], ";") == '"a;b";c,d\n'


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5),
    st.sampled_from(",;\t|"),
    st.sampled_from(
        [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    ),
)
def test_python_reads_back_any_text(rows, separator, kind):
    columns = [pa.array(column).cast(kind) for column in zip(*rows, strict=True)]
    text = csv_lines(pa.RecordBatch.from_arrays(columns, names=["a", "b"]), separator)
    read = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    assert [tuple(row) for row in read] == rows


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_numbers_come_back_exactly(values):
    cells = csv_lines(batch(a=values, b=values)).splitlines()
    assert [float(line.split(",")[0]) for line in cells] == values
    table = arrow_csv.read_csv(
        io.BytesIO(("a,b\n" + "\n".join(cells)).encode()),
        convert_options=arrow_csv.ConvertOptions(column_types={"a": pa.float64()}),
    )
    assert table["a"].to_pylist() == values


def test_every_type_has_a_short_text():
    noon = datetime.datetime(2024, 2, 29, 12, 30)
    rows = batch(
        a=[noon.date()],
        b=[noon],
        c=[True],
        d=[2**62 + 1],
        e=[Decimal("1.50")],
        f=[b"raw"],
    )
    days = "2024-02-29,2024-02-29 12:30:00.000000"
    assert csv_lines(rows) == f"{days},true,4611686018427387905,1.50,raw\n"
    numbers = [0.1, 0.30000000000000004, 2.0**-30]
    assert csv_lines(batch(a=numbers)).split() == list(map(repr, numbers))
    single = pa.RecordBatch.from_arrays([pa.array(np.float32([0.1]))], names=["a"])
    assert csv_lines(single) == "0.1\n"


@pytest.mark.parametrize("value", [{"x": 1}, b"\xff"])
def test_what_csv_cannot_hold_is_refused_by_name(value):
    with pytest.raises(
        FileFormatError, match=r"column 'z' holds .*, which CSV cannot\. Write Parq"
    ):
        csv_lines(batch(a=[1], z=[value]))


def written(path, *batches, separator=","):
    with open_writer(path, separator) as writer:
        for rows in batches:
            writer.write(rows)
    return path


ONE, TWO = batch(a=["x", "y"], b=[0.5, 0.25]), batch(a=["z"], b=[1.0])
TEXT = "a,b\nx,0.5\ny,0.25\nz,1\n"


def test_the_name_says_how_rows_are_written(tmp_path, capsys):
    for name, separator, between in (
        ("f", ";", ";"),
        ("f.TAB", ";", "\t"),
        ("f.csv.gz", ",", ","),
        ("f.tsv.gz", ",", "\t"),
    ):
        raw = written(tmp_path / name, ONE, TWO, separator=separator).read_bytes()
        text = gzip.decompress(raw) if name.endswith(".gz") else raw
        assert text.decode() == TEXT.replace(",", between), name
    table = parquet.read_table(written(tmp_path / "f.PQ", ONE, TWO))
    assert table.to_pydict() == {"a": ["x", "y", "z"], "b": [0.5, 0.25, 1.0]}
    written("-", ONE, TWO)
    assert capsys.readouterr().out == TEXT


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.parquet"])
def test_a_crash_leaves_the_old_file(tmp_path, name):
    def crash():
        with open_writer(tmp_path / name) as writer:
            writer.write(ONE)
            raise RuntimeError

    (tmp_path / name).write_text("old")
    with pytest.raises(RuntimeError):
        crash()
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_formats_are_refused_by_name():
    for name in ("f.JSON", "f.npz", "f.parquet.gz", "a.csv.zip"):
        with pytest.raises(
            FileFormatError, match=r"Choose a name that ends in \.csv, \.xlsx or"
        ):
            split_endings(name)
    for name in ("f", "v1.2.csv", "f.txt", "f.csv.zst", "f.xlsx", "/dev/null"):
        split_endings(name)
