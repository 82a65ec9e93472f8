"""The table of docs/how-to/export.md: every step in plain Python; slow: every cell."""

import importlib.util
import json
import shutil
from pathlib import Path

import forms
import models
import postgres
import pytest

from mcllo.export._programs import RUN, build_program
from mcllo.export._targets import compare_with_calibrator, run_python, stress_test_rows

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "docs" / "how-to" / "export.json").read_text())
NEEDED = {"onnx": ("onnx", "onnxruntime"), "sql": ("sqlglot",), "torch": ("torch",)}
CARRIERS = (
    "mcllo, clip 0.01",
    "mcllo, all baselines",
    "auto, removed class",
    "auto, trees",
    "vector, absent class",
    "histogram, identity in empty bins",
    "histogram, absent class",
    "isotonic",
    "beta, absent class",
    "xu_davoine",
)
"""Models that take every step, and both kinds of those that have two."""


def absent(form):
    """Return why a form cannot be run here, or nothing."""
    if form == "PostgreSQL" and postgres.why_not():
        return postgres.why_not()
    if form == "JavaScript" and shutil.which("node") is None:
        return "node is not installed"
    packages = NEEDED.get(forms.FORMS[form][0], ())
    if form in ("SQL: DuckDB", forms.TRANSLATED):
        packages += ("duckdb",)
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"{missing[0]} is not installed" if missing else ""


def differs(name, form):
    """Return what a cell says that the page does not, or nothing."""
    found, shown = forms.measured(name, form), RESULTS[name][form]
    if isinstance(shown, str):
        return "" if found == shown else str(found)
    as_shown = found.holds and found.n_rows == 1000 and shown <= found.limit
    return "" if as_shown else str(found)


def test_every_step_has_a_carrier():
    used = {
        step.op for name in CARRIERS for step in build_program(models.model(name)).steps
    }
    assert used == set(RUN)


@pytest.mark.parametrize("name", CARRIERS)
def test_steps_in_plain_python(name):
    calibrator = models.model(name)
    program = build_program(calibrator)
    rows = stress_test_rows(program, 120)
    found = run_python(calibrator.export("python"), rows)
    found = compare_with_calibrator(
        "python", calibrator, program, rows, found, "float64"
    )
    assert found.holds, str(found)


@pytest.mark.slow
@pytest.mark.parametrize("form", forms.FORMS)
def test_every_cell_of_a_form(form):
    if absent(form):
        pytest.skip(absent(form))
    wrong = {name: said for name in models.MAKERS if (said := differs(name, form))}
    assert wrong == {}


def test_the_page_shows_the_results():
    path = ROOT / "docs" / "make_export.py"
    spec = importlib.util.spec_from_file_location("make_export", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.PAGE.read_text()
    assert script.page(text, RESULTS) == text
    assert list(RESULTS) == list(models.MAKERS)
    assert all(list(cells) == list(forms.FORMS) for cells in RESULTS.values())
