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

from mcllo._files.write import check_ending, csv_header, csv_lines, writing
from mcllo.exceptions import FileFormatError


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def test_a_small_batch_by_hand():
    rows = batch(id=["a", None, 'say "hi"', "x,y"], p=[0.1, 1.0, 1e-300, None], n=[1, 2, 3, None])
    assert csv_lines(rows) == 'a,0.1,1\n,1,2\n"say ""hi""",1e-300,3\n"x,y",,\n'
    assert csv_header(["a", "b,c", 'd"']) == 'a,"b,c","d"""\n'


def test_only_the_separator_in_use_needs_quotes():
    assert csv_lines(batch(a=["x,y", "x;y"], b=["", ""]), ";") == 'x,y;\n"x;y";\n'
    assert csv_lines(batch(a=["x\ty"], b=["|"]), "\t") == '"x\ty"\t|\n'
    assert csv_lines(batch(a=["x|y", "x"], b=["1", "2"]), "|") == '"x|y"|1\nx|2\n'
    assert csv_header(["a;b", "c,d"], ";") == '"a;b";c,d\n'


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(words, words), min_size=1, max_size=5),
    st.sampled_from(",;\t|"),
    st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]),
)
def test_python_reads_back_any_text(rows, separator, kind):
    columns = [pa.array(column).cast(kind) for column in zip(*rows, strict=True)]
    text = csv_lines(pa.RecordBatch.from_arrays(columns, names=["a", "b"]), separator)
    read = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    assert [tuple(row) for row in read] == rows


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_come_back_exactly(values):
    cells = csv_lines(batch(a=values, b=values)).splitlines()
    assert [float(line.split(",")[0]) for line in cells] == values
    table = arrow_csv.read_csv(
        io.BytesIO(("a,b\n" + "\n".join(cells)).encode()),
        convert_options=arrow_csv.ConvertOptions(column_types={"a": pa.float64()}),
    )
    assert table["a"].to_pylist() == values


def test_numbers_are_written_short():
    assert csv_lines(batch(a=[0.1, 0.30000000000000004, 2.0**-30])).split() == [
        "0.1",
        "0.30000000000000004",
        repr(2.0**-30),
    ]
    single = pa.RecordBatch.from_arrays([pa.array(np.float32([0.1]))], names=["a"])
    assert csv_lines(single) == "0.1\n"


def test_other_types_have_a_text():
    day = datetime.date(2024, 2, 29)
    rows = batch(
        a=[day],
        b=[datetime.datetime(2024, 2, 29, 12, 30)],
        c=[True],
        d=[2**62 + 1],
        e=[Decimal("1.50")],
        f=[b"raw"],
    )
    assert (
        csv_lines(rows)
        == "2024-02-29,2024-02-29 12:30:00.000000,true,4611686018427387905,1.50,raw\n"
    )


@pytest.mark.parametrize("value", [[1, 2], {"x": 1}, b"\xff"])
def test_what_csv_cannot_hold_is_refused_by_name(value):
    with pytest.raises(
        FileFormatError, match=r"column 'z' holds .*, which CSV cannot\. Write Parq"
    ):
        csv_lines(batch(a=[1], z=[value]))


def written(path, *batches, separator=","):
    with writing(path, separator) as writer:
        for rows in batches:
            writer.write(rows)
    return path


ONE, TWO = batch(a=["x", "y"], b=[0.5, 0.25]), batch(a=["z"], b=[1.0])
TEXT = "a,b\nx,0.5\ny,0.25\nz,1\n"


def test_csv_in_batches(tmp_path):
    assert written(tmp_path / "f.csv", ONE, TWO).read_bytes() == TEXT.encode()
    assert written(tmp_path / "f", ONE, TWO).read_bytes() == TEXT.encode()


def test_the_separator_is_the_inputs_or_that_of_the_name(tmp_path):
    semicolons = written(tmp_path / "f.csv", ONE, TWO, separator=";")
    assert semicolons.read_text() == TEXT.replace(",", ";")
    for name in ("f.tsv", "f.TAB"):
        assert written(tmp_path / name, ONE, TWO).read_text() == TEXT.replace(",", "\t")


def test_gzip_by_name(tmp_path):
    path = written(tmp_path / "f.csv.gz", ONE, TWO)
    assert gzip.decompress(path.read_bytes()).decode() == TEXT
    path = written(tmp_path / "f.tsv.gz", ONE, TWO)
    assert gzip.decompress(path.read_bytes()).decode() == TEXT.replace(",", "\t")


@pytest.mark.parametrize("name", ["f.parquet", "f.PQ"])
def test_parquet_by_name(tmp_path, name):
    table = parquet.read_table(written(tmp_path / name, ONE, TWO))
    assert table.to_pydict() == {"a": ["x", "y", "z"], "b": [0.5, 0.25, 1.0]}


def test_standard_output(capsys):
    written("-", ONE, TWO)
    assert capsys.readouterr().out == TEXT


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.parquet"])
def test_a_crash_leaves_the_old_file(tmp_path, name):
    def crash():
        with writing(tmp_path / name) as writer:
            writer.write(ONE)
            raise RuntimeError

    (tmp_path / name).write_text("old")
    with pytest.raises(RuntimeError):
        crash()
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["f.xlsx", "f.JSON", "f.feather", "f.parquet.gz", "a.csv.zip"])
def test_other_formats_are_refused_by_name(name):
    with pytest.raises(FileFormatError, match=r"Choose a name that ends in \.csv or \.parquet\.$"):
        check_ending(name)


@pytest.mark.parametrize("name", ["f", "f.csv", "v1.2.csv", "f.txt", "f.csv.gz", "/dev/null"])
def test_other_names_are_csv(name):
    check_ending(name)
