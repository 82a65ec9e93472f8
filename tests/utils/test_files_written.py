import io
import os
import stat
import sys
import threading

import pytest

from mcllo._utils import atomic_files as _atomic
from mcllo._utils.atomic_files import (
    check_writable,
    progress,
    replace_atomically,
    write_text,
)
from mcllo.exceptions import FileFormatError

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_text_is_written_whole(tmp_path):
    write_text(tmp_path / "f", "größe\n")
    assert (tmp_path / "f").read_bytes() == "größe\n".encode()
    write_text(str(tmp_path / "f"), "new")
    assert (tmp_path / "f").read_text() == "new"
    write_text(tmp_path / ("n" * 250), "x")  # a long name
    assert names(tmp_path) == ["f", "n" * 250]


def test_the_file_appears_when_the_block_ends(tmp_path):
    with replace_atomically(tmp_path / "f") as temporary:
        temporary.write_text("x")
        assert not (tmp_path / "f").exists()
        assert temporary.parent == tmp_path
    assert names(tmp_path) == ["f"]


def no_space(*args):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    "kind",
    [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit, "a failed rename"],
)
def test_a_crash_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, kind):
    def crash():
        with replace_atomically(tmp_path / "f") as temporary:
            temporary.write_text("half of the n")
            if not isinstance(kind, str):
                raise kind

    (tmp_path / "f").write_text("old")
    if isinstance(kind, str):
        monkeypatch.setattr(_atomic.os, "replace", no_space)
    expected = (FileFormatError, "No space") if isinstance(kind, str) else (kind, None)
    with pytest.raises(expected[0], match=expected[1]):
        crash()
    assert (tmp_path / "f").read_text() == "old"
    assert names(tmp_path) == ["f"]


@posix
def test_permissions_are_the_old_files_or_those_of_a_new_one(tmp_path):
    mask = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "x")
        (tmp_path / "old").touch()
        (tmp_path / "old").chmod(0o600)
        write_text(tmp_path / "old", "x")
        assert os.umask(0o027) == 0o027  # the mask is as it was
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600


@posix
def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@posix
def test_what_is_no_file_is_written_to_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    seen = []
    reader = threading.Thread(
        target=lambda: seen.append((tmp_path / "pipe").read_text())
    )
    reader.start()
    write_text(tmp_path / "pipe", "through")
    reader.join(10)
    assert seen == ["through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    write_text("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path):
    for place, message in (
        (tmp_path, r"it is a directory\. Name a file in it\.$"),
        (
            tmp_path / "nowhere" / "f",
            r"there is no directory .*nowhere\. Make it first\.$",
        ),
    ):
        with pytest.raises(FileFormatError, match=message):
            check_writable(place)
    check_writable(tmp_path / "f")
    assert names(tmp_path) == []


def read_only(**options):
    raise OSError(30, "Read-only file system")


@pytest.mark.parametrize(
    ("module", "name", "fails", "message"),
    [
        ("os", "access", lambda path, mode: False, "permission was denied"),
        ("tempfile", "mkstemp", read_only, "cannot be written: Read-only file system"),
    ],
)
def test_a_disk_that_refuses_is_one_sentence(
    tmp_path, monkeypatch, module, name, fails, message
):
    monkeypatch.setattr(getattr(_atomic, module), name, fails)
    with pytest.raises(FileFormatError, match=message):
        write_text(tmp_path / "f", "x")
    assert names(tmp_path) == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_the_work_is_counted_and_in_a_pipe_there_is_silence(
    monkeypatch, capsys
):
    with progress("working") as advance:
        advance(10)
    assert capsys.readouterr() == ("", "")
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
    for out, shown in (("-", False), ("f.csv", True)):
        with progress("working", out=out) as advance:
            advance(1)
        assert ("working" in screen.getvalue()) == shown
