import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcllo._utils.formatting import (
    LATEX,
    Table,
    align_columns,
    ellipsis,
    escape_latex,
    format_count,
    format_interval,
    format_number,
    format_pvalue,
)
from mcllo.exceptions import FileFormatError


def test_p_values():
    for pvalue, text in (
        (1.0, "= 1"),
        (0.11839659, "= 0.12"),
        (0.0341, "= 0.034"),
        (0.0005, "= 0.0005"),
        (1e-4, "= 0.0001"),
        (2.134e-5, "= 2.1e-05"),
        (1.9e-22, "= 1.9e-22"),
        (1e-300, "= 1.0e-300"),
        (9.9e-301, "< 1e-300"),
        (0.0, "< 1e-300"),
        (math.nan, "not available"),
    ):
        assert format_pvalue(pvalue) == text


def test_numbers():
    for value, text in (
        (-0.0, "0.00"),
        (1.0, "1.00"),
        (0.94538, "0.95"),
        (0.05, "0.050"),
        (-3.14159, "-3.14"),
        (12.345, "12.3"),
        (123.45, "123"),
        (1220.97, "1221"),
        (1234567.0, "1234567"),
        (1e7, "1e+07"),
        (1.23e8, "1.2e+08"),
        (1e-4, "0.00010"),
        (3.1e-7, "3.1e-07"),
        (math.nan, "-"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
    ):
        assert format_number(value) == text


@settings(deadline=None, max_examples=50)
@given(st.floats(min_value=1e-300, max_value=1e300) | st.floats(-1e300, -1e-300))
def test_a_number_reads_back_as_nearly_itself(value):
    # two significant digits at least: relative error at most 5 per cent
    assert float(format_number(value)) == pytest.approx(value, rel=0.0501)


@settings(deadline=None, max_examples=50)
@given(st.floats(min_value=0.0, max_value=1.0))
def test_a_p_value_never_prints_as_zero(pvalue):
    assert float(format_pvalue(pvalue).split()[1]) > 0.0


def test_intervals_counts_and_other_digits():
    assert format_interval(0.514, 0.6) == "[0.51, 0.60]"
    assert format_interval(0.514, math.inf) == "[0.51, inf]"
    assert format_interval(math.nan, 0.6) == format_interval(0.5, math.nan) == "[-, -]"
    assert (format_count(10000), format_count(16.0)) == ("10,000", "16")
    # 4 digits: three decimals at 1, none at 1000
    assert (format_number(1.23456, 4), format_number(1234.56, 4)) == ("1.235", "1235")


def test_align():
    assert align_columns([["class", "n"], ["a", "10"]]) == "class   n\na      10"
    assert align_columns([["class", "n"], ["a", "10"]], left=2) == "class  n\na      10"
    assert (
        align_columns([["a", ""], ["b", "word"]]) == "a\nb  word"
    )  # no blanks at the end of a line
    with pytest.raises(ValueError, match="zip"):
        align_columns([["a", "b"], ["c", "d", "e"]])


def test_ellipsis_cuts_and_stays_on_one_line():
    assert ellipsis("cat") == "cat"
    assert ellipsis("two\nlines\tand  gaps") == "two lines and gaps"
    assert ellipsis("x" * 24) == "x" * 24
    assert ellipsis("x" * 25) == "x" * 23 + "…"
    assert ellipsis(12345, width=4) == "123…"


@pytest.fixture
def table():
    return Table(
        {"class": ["cat", "dog"], "n": np.array([3, 1200]), "delta": [1.0, 0.948]}
    )


def test_reads_as_columns_and_rows(table):
    assert table.columns == ("class", "n", "delta")
    assert len(table) == 2
    assert table["n"] == [3, 1200]
    rows = [("cat", 3, 1.0), ("dog", 1200, 0.948)]
    assert table.rows() == [dict(zip(table.columns, row, strict=True)) for row in rows]
    table.to_dict()["n"].append(5)  # a copy
    assert len(table["n"]) == 2
    with pytest.raises(KeyError, match="gamma"):
        table["gamma"]


def test_numpy_scalars_become_python_ones():
    table = Table({"x": np.array([1.5]), "k": [np.int64(2)], "s": [np.str_("a")]})
    assert [type(v) for v in table.rows()[0].values()] == [float, int, str]


def test_prints_aligned(table):
    assert str(table) == "class     n  delta\ncat       3   1.00\ndog    1200   0.95"
    assert repr(table) == "<Table of 2 rows: class, n, delta>"
    # missing numbers are a dash, long names are cut
    text = str(Table({"class": ["x" * 40], "se": [math.nan]}))
    assert text.splitlines()[1] == "x" * 23 + "…   -"


def test_empty_tables_and_columns_of_unequal_length():
    assert len(Table({})) == 0
    assert Table({"a": []}).rows() == []
    assert str(Table({"a": []})) == "a"
    with pytest.raises(ValueError, match="one length"):
        Table({"a": [1], "b": [1, 2]})


HOSTILE = Table(
    {
        "class_name": ["R&D_50%", "$x^2$ ~ {a}\\b", "<i>|#", "two\nlines\x00"],
        "n": [1, -2, 3000, None],
        "tau": [-0.5, 0.0, math.nan, math.inf],
        "pvalue": [0.034, 2.14e-5, 0.0, None],
        "kept": [True, False, True, False],
    }
)


def test_latex_by_hand():
    lines = HOSTILE.to_latex().splitlines()
    assert lines == [
        r"\begin{tabular}{lrrrl}",
        r"\toprule",
        r"class name & n & tau & pvalue & kept \\",
        r"\midrule",
        r"R\&D\_50\% & 1 & $-0.50$ & 0.034 & True \\",
        r"\$x\textasciicircum{}2\$ \textasciitilde{} \{a\}\textbackslash{}b & $-2$ & 0.00 & "
        r"$2.1 \times 10^{-5}$ & False \\",
        r"\textless{}i\textgreater{}\textbar{}\# & 3000 & -- & $< 10^{-300}$ & True \\",
        r"two lines &  & $\infty$ &  & False \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_numbers_of_a_column_have_the_same_decimals():
    for values, words in (
        ([1.0, 12.345, 123.4], ["1.0", "12.3", "123.4"]),
        ([0.0123, 0.5, 0.04], ["0.012", "0.500", "0.040"]),
        ([1e-9, 2.5e-8], [r"$1.00 \times 10^{-9}$", r"$2.50 \times 10^{-8}$"]),
        ([0.0, 0.0], ["0.00", "0.00"]),
        ([1234.5, 20000.0], ["1234", "20000"]),
    ):
        body = Table({"x": values}).to_latex().splitlines()[4:-2]
        assert [line.removesuffix(r" \\") for line in body] == words


def test_a_caption_makes_it_float_and_formats_are_the_users(tmp_path):
    table = Table({"share": [0.125, 0.5], "q": [0.001, 1e-6]})
    text = table.to_latex(
        tmp_path / "t.tex",
        caption="Shares of $x$.",
        label="tab:x",
        formats={"share": ".1%", "q": "p"},
    )
    assert (tmp_path / "t.tex").read_text() == text
    assert text.splitlines()[:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Shares of $x$.}",
        r"\label{tab:x}",
    ]
    assert r"12.5\% & 0.001 \\" in text
    assert r"50.0\% & $1.0 \times 10^{-6}$ \\" in text


def test_csv_has_all_digits_and_is_whole_or_not_there(tmp_path):
    path = tmp_path / "t.csv"
    text = HOSTILE.to_csv(path)
    assert path.read_text() == text
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == list(HOSTILE.columns)
    assert rows[1] == ["R&D_50%", "1", "-0.5", "0.034", "True"]
    assert rows[3][2] == rows[4][1] == ""  # no number, nothing
    third = Table({"x": [1 / 3]}).to_csv().splitlines()[1]
    assert float(third) == 1 / 3
    with pytest.raises(FileFormatError, match="there is no directory"):
        HOSTILE.to_csv(tmp_path / "nowhere" / "t.csv")
    assert not list(tmp_path.glob("*.tmp"))


@given(st.text(max_size=20))
def test_any_words_become_latex_without_commands(words):
    text = escape_latex(words)
    bare = text
    for found in sorted(LATEX.values(), key=len, reverse=True):
        bare = bare.replace(found, "")
    assert not set(bare) & set("&%$#_{}\\~^\n")
