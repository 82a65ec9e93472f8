import io
import sys

from mcllo._progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_pipe_there_is_silence(capsys):
    with progress("working") as advance:
        advance(10)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_the_work_is_counted(monkeypatch, capsys):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress("working", "methods") as advance:
        advance(1200)
        advance(34)
    assert "working" in screen.getvalue()
    assert "1,234 methods" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_rows_on_a_terminal_are_not_disturbed(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", Terminal())
    with progress("working", out="-") as advance:
        advance(1)
    assert screen.getvalue() == ""
    with progress("working", out="f.csv") as advance:
        advance(1)
    assert "working" in screen.getvalue()
