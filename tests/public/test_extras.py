"""Without its extras the package works on arrays, and says what the rest needs."""

import json
import subprocess
import sys

import pytest
import without_extras

from mcllo.__main__ import run_command_line


def test_arrays_need_no_extra_and_the_rest_says_which():
    call = [sys.executable, without_extras.__file__, "--hide"]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    without_extras.check_said(json.loads(done.stdout))


@pytest.mark.parametrize(
    "package", ["typer", "rich", "pyarrow", "jinja2", "matplotlib"]
)
def test_the_command_says_it_in_one_line(package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert run_command_line(["--version"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == without_extras.COMMAND.replace("typer", package)
