"""The walk-through of docs/how-to/spreadsheets.md, line by line, on a workbook made here."""

import datetime
import re
import shlex
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from mcllo import load_calibrator, read_predictions
from mcllo.__main__ import run_command_line

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "spreadsheets.md"
CLASSES = ("dry", "rain", "snow")


def write_forecasts(path):
    """Write 400 days of forecasts that are too sure, as texts such as ``70,5 %``."""
    rng = np.random.default_rng(0)
    honest = rng.dirichlet([1.0, 1.0, 1.0], size=400)
    codes = (honest.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
    mills = np.maximum(
        np.round(1000 * honest**2 / (honest**2).sum(axis=1, keepdims=True)), 1
    )
    mills[np.arange(400), mills.argmax(axis=1)] += 1000 - mills.sum(axis=1)
    book = openpyxl.Workbook()
    book.active.append(["day", *CLASSES, "seen"])
    for day, (row, code) in enumerate(zip(mills, codes, strict=True)):
        cells = [f"{m / 10:.1f} %".replace(".", ",") for m in row]
        date = datetime.date(2025, 1, 1) + datetime.timedelta(days=day)
        book.active.append([date, *cells, CLASSES[code]])
    book.save(path)


def sessions():
    """Return each command of the page with what it shows."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        command, *shown = block.strip().split("\n")
        yield command.removeprefix("$ mcllo "), "\n".join(shown)


def pattern(shown):
    """Return a regular expression for lines of which ``...`` stands for any."""
    return "(?:.*\n)*".join(map(re.escape, f"{shown}\n".split("...\n")))


@pytest.mark.slow
def test_the_walk_through_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_forecasts("forecasts.xlsx")
    lines = list(sessions())
    assert len(lines) == 4
    for command, shown in lines:
        capsys.readouterr()
        code = run_command_line(shlex.split(command))
        out, err = capsys.readouterr()
        assert code == (2 if shown.startswith("mcllo: ") else 0), err
        said = err if code else out
        assert re.match(pattern(shown.removesuffix("\n...")), said), (
            f"$ mcllo {command}\n{said}"
        )
    assert "70% is 0.7" in Path("report.html").read_text()
    model = load_calibrator("model.json")
    given = read_predictions("forecasts.xlsx", label="seen", classes=CLASSES)
    recalibrated = read_predictions("recalibrated.xlsx", label="seen", classes=CLASSES)
    np.testing.assert_allclose(
        recalibrated.probs, model.predict_proba(given.probs), atol=1e-12
    )
    first = openpyxl.load_workbook("recalibrated.xlsx").active[2]
    assert first[0].value == datetime.datetime(2025, 1, 1)
    assert first[1].number_format == "0.0%"
