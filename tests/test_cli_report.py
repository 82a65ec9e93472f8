"""`--html`, `--open` and `mcllo plot`, through the real entry point."""

import pytest
from toy import TOY_X, TOY_Y

from mcllo.__main__ import run


@pytest.fixture
def file(tmp_path):
    lines = ["ant,bee,cat,y"]
    for row, code in zip(TOY_X, TOY_Y, strict=True):
        lines.append(",".join(map(str, row)) + f",{('ant', 'bee', 'cat')[code]}")
    path = tmp_path / "toy.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_assess_writes_a_report(file, tmp_path, capsys, ending):
    out = tmp_path / f"report.{ending}"
    assert run(["assess", file, "--label", "y", "--seed", "0", "--html", str(out)]) == 0
    printed = capsys.readouterr()
    assert "report written" in printed.err
    assert "Calibration of 16 predictions" in printed.out
    assert "toy.csv" in out.read_text()


def test_compare_writes_a_report(file, tmp_path, capsys):
    out = tmp_path / "compare.html"
    arguments = ["compare", file, "--cv", "2", "--label", "y", "--methods", "temperature"]
    assert run([*arguments, "--seed", "0", "--html", str(out)]) == 0
    capsys.readouterr()
    assert "temperature" in out.read_text().lower()


def test_open_needs_a_report_and_opens_it(file, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", lambda path: opened.append(path))
    assert run(["assess", file, "--label", "y", "--open"]) == 2
    assert "--html OUT" in capsys.readouterr().err
    out = str(tmp_path / "r.html")
    assert run(["assess", file, "--label", "y", "--html", out, "--open"]) == 0
    assert opened == [out]


@pytest.mark.parametrize("name", ["r.pdf", "no/such/dir/r.html"])
def test_reports_that_cannot_be_written(file, tmp_path, capsys, name):
    assert run(["assess", file, "--label", "y", "--html", str(tmp_path / name)]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_plot(file, tmp_path, capsys, ending):
    out = tmp_path / f"figure.{ending}"
    assert run(["plot", file, "--label", "y", "-o", str(out)]) == 0
    assert out.stat().st_size > 1000
    assert "reliability figure written" in capsys.readouterr().out


def test_plot_refuses_what_it_does_not_know(file, tmp_path, capsys):
    assert run(["plot", file, "--label", "y", "-o", str(tmp_path / "x.bmp2")]) == 2
    assert run(["plot", file, "--label", "y", "-o", str(tmp_path / "x.svg"), "--kind", "pie"]) == 2
    assert "Traceback" not in capsys.readouterr().err
