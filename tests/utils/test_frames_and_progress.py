"""Tables as frames, and long work in a notebook that is made of a few lines."""

import sys
import types
from threading import get_ident
from time import sleep

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mcllo._utils import notebook
from mcllo._utils.formatting import Table
from mcllo._utils.notebook import show_progress

COLUMNS = {
    "class": ["cat", "dog", "雪"],
    "n": [1, 2, 3],
    "p": [0.5, None, 0.25],
    "gamma": [1.0, float("nan"), float("inf")],
    "converged": [True, False, True],
}


@pytest.fixture
def table():
    return Table(COLUMNS)


def test_pandas_makes_a_frame_of_a_table(table):
    frame = pd.DataFrame(table)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(COLUMNS))
    pd.testing.assert_frame_equal(frame, table.to_frame())
    assert list(table) == table.rows()


def test_others_make_a_frame_of_a_table(table):
    frame, arrow = pl.DataFrame(table), pa.table(table)
    assert frame.columns == arrow.column_names == list(COLUMNS)
    assert frame["class"].to_list() == arrow["class"].to_pylist() == COLUMNS["class"]
    assert frame.schema["p"] == pl.Float64
    assert frame["p"].to_list() == arrow["p"].to_pylist() == [0.5, None, 0.25]
    assert frame["converged"].to_list() == [True, False, True]
    assert np.isnan(frame["gamma"][1])
    # labels of two kinds are words
    mixed = Table({"class": ["all", 1, 2]})
    assert pl.DataFrame(mixed)["class"].to_list() == ["all", "1", "2"]
    # the interchange protocol
    found = table.__dataframe__()
    assert list(found.column_names()) == list(COLUMNS)
    assert found.num_rows() == 3


class Shell:
    """A shell with a kernel, and what was shown in it."""

    kernel = object()

    def __init__(self):
        self.seen, self.threads = [], set()

    def display(self, thing, display_id):
        assert display_id
        self.update(thing)
        return self

    def update(self, thing):
        self.seen.append(thing._repr_html_())
        self.threads.add(get_ident())


@pytest.fixture
def shell(monkeypatch):
    found = Shell()
    module, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.get_ipython, display.display = (lambda: found), found.display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(notebook, "PROGRESS_DELAY_SECONDS", 0.02)
    monkeypatch.setattr(notebook, "PROGRESS_INTERVAL_SECONDS", 0.02)
    return found


def test_long_work_is_shown_and_then_taken_away(shell):
    with show_progress("reading <rows>", "rows") as advance:
        advance(1234)
        sleep(0.2)
    assert "reading &lt;rows&gt;, 1,234 rows, 0 s" in shell.seen[0]
    assert shell.seen[-1] == ""
    assert len(shell.seen) >= 3
    before = len(shell.seen)
    sleep(0.1)
    assert len(shell.seen) == before  # nobody goes on


def test_short_work_is_not_shown(shell, monkeypatch):
    monkeypatch.setattr(notebook, "PROGRESS_DELAY_SECONDS", 10.0)
    with show_progress("short"):
        pass
    assert shell.seen == []


def test_work_inside_work_takes_over_its_line(shell):
    @show_progress("inner")
    def inner():
        sleep(0.15)

    with show_progress("outer"):
        sleep(0.15)
        inner()
        sleep(0.15)
    words = [line.partition(">")[2].partition(",")[0] for line in shell.seen[:-1]]
    assert words[0] == words[-1] == "outer"
    assert "inner" in words
    assert len(shell.threads) == 1


def test_a_failure_takes_the_line_away(shell):
    @show_progress("failing")
    def failing():
        sleep(0.1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        failing()
    assert shell.seen[-1] == ""
    with show_progress("again"):
        sleep(0.1)
    assert "again" in "".join(shell.seen)


def test_nothing_is_shown_in_a_terminal(capsys):
    assert notebook.notebook_shell() is None
    with show_progress("work") as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")
