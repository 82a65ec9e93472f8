"""How the tests of this folder call the program: in this process, or in one of its own."""

import os
import subprocess
import sys

from inputs import csv_text

from mcllo.__main__ import run_command_line

LABEL = ["--label", "y"]
CONTROLS = {*range(32), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}


def said(capsys, *arguments):
    """Run a command line here; return its exit code and what it printed."""
    capsys.readouterr()
    code = run_command_line([str(word) for word in arguments])
    return code, *capsys.readouterr()


def refused(capsys, *arguments):
    """Return the one line of a command that must be refused as bad input."""
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("mcllo: ")
    assert err.count("\n") == 1
    assert len(err) < 600
    assert "Traceback" not in err
    return err


def shows_no_commands(text):
    """Whether a terminal would only show this."""
    return not {ord(letter) for letter in text} & CONTROLS


def redirected(how, *arguments):
    """Run the program from a shell that redirects its streams, as in ``<&-``."""
    line = [sys.executable, "-m", "mcllo", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", f'"$@" {how}', "sh", *line],
        capture_output=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ),
    )


def saved_model(folder, capsys=None):
    """Fit a model to a small file; return both."""
    good, model = folder / "good.csv", folder / "model.json"
    good.write_text(csv_text())
    assert run_command_line(["fit", str(good), *LABEL, "-o", str(model)]) == 0
    if capsys is not None:
        capsys.readouterr()
    return good, model
