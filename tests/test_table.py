import math

import numpy as np
import pytest

from mcllo._table import Table


@pytest.fixture
def table():
    return Table({"class": ["cat", "dog"], "n": np.array([3, 1200]), "delta": [1.0, 0.948]})


def test_reads_as_columns(table):
    assert table.columns == ("class", "n", "delta")
    assert len(table) == 2
    assert table["n"] == [3, 1200]


def test_rows_are_dicts(table):
    assert table.rows() == [
        {"class": "cat", "n": 3, "delta": 1.0},
        {"class": "dog", "n": 1200, "delta": 0.948},
    ]


def test_numpy_scalars_become_python_ones():
    table = Table({"x": np.array([1.5]), "k": [np.int64(2)], "s": [np.str_("a")]})
    assert [type(v) for v in table.rows()[0].values()] == [float, int, str]


def test_prints_aligned(table):
    assert str(table) == "class     n  delta\ncat       3   1.00\ndog    1200   0.95"


def test_prints_missing_numbers_as_a_dash_and_long_names_cut():
    text = str(Table({"class": ["x" * 40], "se": [math.nan]}))
    assert text.splitlines()[1] == "x" * 23 + "…   -"


def test_repr_says_what_it_holds(table):
    assert repr(table) == "<Table of 2 rows: class, n, delta>"


def test_to_dict_gives_copies(table):
    table.to_dict()["n"].append(5)
    assert len(table["n"]) == 2


def test_frame_and_arrow_hold_the_same(table):
    assert table.to_frame().to_dict("list") == table.to_dict()
    assert table.to_arrow().to_pydict() == table.to_dict()


def test_arrow_takes_labels_of_mixed_type():
    assert Table({"class": ["a", 1]}).to_arrow().to_pydict() == {"class": ["a", "1"]}


def test_empty_tables():
    assert len(Table({})) == 0
    assert Table({"a": []}).rows() == []
    assert str(Table({"a": []})) == "a"


def test_refuses_columns_of_unequal_length():
    with pytest.raises(ValueError, match="one length"):
        Table({"a": [1], "b": [1, 2]})


def test_an_unknown_column_is_a_key_error(table):
    with pytest.raises(KeyError, match="gamma"):
        table["gamma"]
