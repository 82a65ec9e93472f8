"""Python and JavaScript: files of their own, which refuse rows that are none."""

import ast
import json
import re
import shutil
import subprocess
import sys

import data
import models
import numpy as np
import pytest

from mcllo.calibrators import Identity, MCLLOCalibrator, TemperatureScaling
from mcllo.export import ExportError
from mcllo.export._javascript import write_type_declaration
from mcllo.export._programs import build_program
from mcllo.export._targets import type_declaration_path

ODD = ["näh", "😀 astral", 'quo"te', "back\\slash", "new\nline", "</script>"]


def test_files_import_nothing_that_is_to_be_installed():
    for name in ("mcllo", "auto", "histogram", "isotonic", "beta", "xu_davoine"):
        python = ast.parse(models.model(name).export("python"))
        imports = [node for node in ast.walk(python) if isinstance(node, ast.Import)]
        assert {alias.name for node in imports for alias in node.names} == {
            "bisect",
            "math",
        }, name
        assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(python)), (
            name
        )
        module = models.model(name).export("js")
        assert "import" not in module, name
        assert "require" not in module, name


def test_python_runs_alone(tmp_path):
    calibrator = models.model("auto")
    calibrator.export("python", tmp_path / "recalibration.py")
    rows = data.drawn(3, models.CLASSES, 9)[0]
    code = (
        "import json, recalibration; "
        f"print(json.dumps(recalibration.predict_proba({rows.tolist()})))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = ['.']; {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    np.testing.assert_allclose(
        json.loads(done.stdout), calibrator.predict_proba(rows), atol=1e-15
    )


ROWS = [
    ([0.5, 0.5], "4 numbers"),
    ([0.5, 0.5, 0.5, 0.5], "sum to 1"),
    ([1.5, -0.5, 0.0, 0.0], "probabilities"),
    ([float("nan"), 0.5, 0.25, 0.25], "finite"),
]


def test_python_refuses():
    made = {}
    exec(models.model("mcllo").export("python"), made)
    for row, sentence in ROWS:
        with pytest.raises(ValueError, match=sentence):
            made["predict_proba"]([row])


def test_a_model_without_a_floor_refuses_zeros():
    X, y = data.drawn(60, models.CLASSES, 4)
    strict = MCLLOCalibrator(clip=0.0).fit(X, y)
    made = {}
    exec(strict.export("python"), made)
    with pytest.raises(ValueError, match="positive"):
        made["predict_proba"]([[1.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(
        made["predict_proba"](X), strict.predict_proba(X), atol=1e-15
    )
    assert "v0.includes(0)" in strict.export("js")


def node(folder, code):
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    (folder / "run.mjs").write_text(code)
    done = subprocess.run(
        [found, "run.mjs"], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_javascript_refuses(tmp_path):
    models.model("mcllo").export("js", tmp_path / "recalibration.mjs")
    said = node(
        tmp_path,
        'import { predictRow } from "./recalibration.mjs";\n'
        "const said = (row) => { try { predictRow(row); } catch (e) { return e.message; } };\n"
        f"const rows = {json.dumps([row for row, _ in ROWS[:3]])};\n"
        "console.log(JSON.stringify(rows.map(said)));",
    )
    for message, (_, sentence) in zip(said, ROWS[:3], strict=True):
        assert re.search(sentence, message)


def with_odd_names():
    """Return a calibrator of classes with odd names, and rows."""
    X, y = data.drawn(200, ODD, 3)
    return TemperatureScaling(classes=ODD).fit(X, y), X


def test_odd_names_stay_names_in_python():
    calibrator, X = with_odd_names()
    made = {}
    exec(calibrator.export("python"), made)
    assert made["CLASSES"] == calibrator.classes_.tolist() == ODD
    assert made["predict"](X[:9].tolist()) == calibrator.predict(X[:9]).tolist()


@pytest.mark.slow
def test_odd_names_stay_names_in_javascript(tmp_path):
    calibrator, X = with_odd_names()
    calibrator.export("js", tmp_path / "recalibration.mjs")
    found = node(
        tmp_path,
        'import { classes, predict } from "./recalibration.mjs";\n'
        f"console.log(JSON.stringify([classes, predict({json.dumps(X[:9].tolist())})]));",
    )
    assert found == [ODD, calibrator.predict(X[:9]).tolist()]


def test_a_module_has_its_types(tmp_path):
    models.model("mcllo").export("js", tmp_path / "recalibration.mjs")
    text = (tmp_path / "recalibration.d.mts").read_text()
    assert "export declare const classes: ReadonlyArray<string>;" in text
    module = (tmp_path / "recalibration.mjs").read_text()
    exported = set(re.findall(r"export (?:function|const) (\w+)", module))
    declared = set(re.findall(r"export declare (?:function|const) (\w+)", text))
    assert (
        exported
        == declared
        == {"method", "classes", "predictRow", "predictProba", "predict"}
    )
    assert type_declaration_path("a/b.js").name == "b.d.ts"
    numbers = Identity().fit([[0.5, 0.5], [0.2, 0.8]], [3, 4])
    assert "ReadonlyArray<number>" in write_type_declaration(build_program(numbers))


def test_whole_numbers_that_javascript_has_not():
    far = Identity().fit([[0.5, 0.5], [0.2, 0.8]], [1, 2**53 + 1])
    with pytest.raises(
        ExportError, match="JavaScript has no whole number 9007199254740993"
    ):
        far.export("js")
    assert far.export("python")
