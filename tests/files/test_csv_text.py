import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo._files.csv_text import (
    first_fault,
    has_odd_quotes,
    line_of_row,
    looks_like_data,
    number_fault,
    open_quote,
    read_header,
    records,
)


def stream(text):
    return io.BytesIO(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("text", "names", "separator"),
    [
        ("a,b,y\n1,0,a\n", ["a", "b", "y"], ","),
        ("a;b;y\n", ["a", "b", "y"], ";"),
        ("a\tb\ty", ["a", "b", "y"], "\t"),
        ("a|b|y", ["a", "b", "y"], "|"),
        ("\ufeffa,b\r\n", ["a", "b"], ","),
        ("\n\r\n\na,b\n", ["a", "b"], ","),
        ('"a,1";"b,2";c\n', ["a,1", "b,2", "c"], ";"),  # separators inside quotes do not count
        ('"two\nlines",b\n1,2\n', ["two\nlines", "b"], ","),
        ('"say ""hi""",b\n', ['say "hi"', "b"], ","),
        (",a,b\n", ["", "a", "b"], ","),
        (" a , b\n", [" a ", " b"], ","),
        ("größe,猫\n", ["größe", "猫"], ","),
        ("alone\n", ["alone"], ","),
        ("", [], ","),
    ],
)
def test_header(text, names, separator):
    assert read_header(stream(text)) == (names, separator)


def test_a_header_that_is_not_utf8_is_refused_and_other_lines_do_not_matter():
    with pytest.raises(UnicodeDecodeError):
        read_header(stream(b"gr\xf6\xdfe,b\n"))
    assert read_header(stream(b"a,b\ngr\xf6\xdfe,1\n"))[0] == ["a", "b"]


def test_records_know_their_line():
    # line 1 header, 2-3 a quoted cell of two lines, 4 empty, 5-6 rows
    text = 'id,a\n"x\ny",1\n\nz,2\nw,3\n'
    assert list(records(stream(text), ",")) == [
        (2, ["x\ny", "1"]),
        (5, ["z", "2"]),
        (6, ["w", "3"]),
    ]
    assert [line_of_row(stream(text), ",", row) for row in range(3)] == [2, 5, 6]


def test_a_row_that_python_cannot_find_is_guessed():
    assert line_of_row(stream("a,b\n1,2\n"), ",", 7) == 9


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(cells, min_size=2, max_size=2), max_size=6), st.sampled_from(",;\t|"))
def test_lines_of_rows_count_line_ends(rows, separator):
    head = io.StringIO(newline="")
    writer = csv.writer(head, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b"])
    for k, row in enumerate(rows):
        text = head.getvalue()
        # csv.reader counts \n, \r and \r\n as line ends
        before = text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
        writer.writerow(row)
        assert line_of_row(stream(head.getvalue()), separator, k) == before + 1
    assert not has_odd_quotes(stream(head.getvalue()))
    assert first_fault(stream(head.getvalue()), separator, ["a", "b"], []) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a,b\n1,0\n1\n", "line 3 has 1. Complete that line or drop it."),
        ("a,b\n1,0\n1,2,3\n", "line 3 has 3. Put quotes around cells that hold commas."),
        ("a,b\n\n\n1,x\n", "column 'b' must hold numbers; line 4 has 'x'. Choose the columns"),
        (b"a,b\n1,\xe9\n", "column 'b' must hold numbers; line 2"),
        ("a,b\n1,0\n", None),
    ],
)
def test_first_fault(text, fault):
    found = first_fault(stream(text), ",", ["a", "b"], ["a", "b"])
    assert found is None if fault is None else fault in f"{found.rule} {found.remedy}"


def test_foreign_bytes_are_a_fault_of_their_line():
    text = b"a,b\n1,ok\n0,caf\xe9\n"
    found = first_fault(stream(text), ",", ["a", "b"], ["a"])
    assert found.rule.startswith("line 3 must be UTF-8 text")


@pytest.mark.parametrize(
    "cell", ["1", "-0.5", "+1", ".5", "1.", "1e-3", "1E+3", "nan", "NaN", "-inf", " 0.5 ", "", "  "]
)
def test_numbers_and_gaps_are_no_fault(cell):
    assert number_fault(cell) is None


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("NA", "Drop or repair that row."),
        ("null", "Drop or repair that row."),
        ("0,5", "Write decimals with a point."),
        ("50%", "Write 0.7 for 70%."),
        ("cat", "Choose the columns that are classes with classes=."),
        ("1_0", "Choose the columns that are classes with classes=."),
        ("0x1", "Choose the columns that are classes with classes=."),
    ],
)
def test_other_cells_are_shown_with_a_remedy(cell, remedy):
    assert tuple(map(str, number_fault(cell))) == (repr(cell), remedy)


def test_long_cells_are_cut():
    assert len(number_fault("x" * 1000)[0]) < 50


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n1,"x\n2,y\n', 2),  # never closed: it would swallow line 3
        ('a,b\n1,x\n2,"y', 3),
        ('a,b\n1,"x" inch"\n', 2),  # a quote inside quotes must be doubled
        ('a,b\n1,5" pipe\n', None),  # a quote inside a plain cell is only a letter
        ('a,b\n"1","x""y"\n', None),
    ],
)
def test_open_quote(text, line):
    assert open_quote(stream(text), ",") == line
    assert has_odd_quotes(stream(text)) == (text.count('"') % 2 == 1)


@pytest.mark.parametrize(
    ("names", "data"),
    [
        (["0.7", "0.3", "cat"], True),
        (["1e-3", "0.999", "0"], True),
        (["0", "1", "2"], False),  # integers are good names of classes
        (["cat", "dog", "y"], False),
        (["v1.0", "v2.0"], False),
    ],
)
def test_looks_like_data(names, data):
    assert looks_like_data(names) is data
