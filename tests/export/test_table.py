"""Every cell of the table in docs/how-to/export.md."""

import importlib.util
import json
import shutil
from pathlib import Path

import forms
import models
import postgres
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "docs" / "how-to" / "export.json").read_text())


def absent(form):
    """Return why a form cannot be run here, or nothing."""
    if form == "PostgreSQL":
        return postgres.why_not()
    if form == "JavaScript" and shutil.which("node") is None:
        return "node is not installed"
    if form == "PyTorch" and importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    return ""


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("name", models.MAKERS)
def test_cell(name, form):
    if absent(form):
        pytest.skip(absent(form))
    found, shown = forms.measured(name, form), RESULTS[name][form]
    if isinstance(shown, str):
        assert found == shown
    else:
        assert found.holds, str(found)
        assert found.n_rows == 1000
        assert shown <= found.limit


def test_the_page_shows_the_results():
    path = ROOT / "docs" / "make_export.py"
    spec = importlib.util.spec_from_file_location("make_export", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.PAGE.read_text()
    assert script.page(text, RESULTS) == text
    assert list(RESULTS) == list(models.MAKERS)
    assert all(list(cells) == list(forms.FORMS) for cells in RESULTS.values())
