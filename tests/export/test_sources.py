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
from mcllo.export._javascript import write_declaration
from mcllo.export._programs import program_of
from mcllo.export._targets import declaration_path

ODD = ["näh", "😀 astral", 'quo"te', "back\\slash", "new\nline", "</script>"]


@pytest.mark.parametrize("name", models.MAKERS)
def test_python_needs_nothing(name, tmp_path):
    text = models.model(name).export("python")
    imported = {
        alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported == {"bisect", "math"}
    assert "ImportFrom" not in {type(node).__name__ for node in ast.walk(ast.parse(text))}


def test_python_runs_alone(tmp_path):
    calibrator = models.model("auto")
    calibrator.export("python", tmp_path / "repair.py")
    rows = data.drawn(3, models.CLASSES, 9)[0]
    code = f"import json, repair; print(json.dumps(repair.predict_proba({rows.tolist()})))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = ['.']; {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    np.testing.assert_allclose(json.loads(done.stdout), calibrator.predict_proba(rows), atol=1e-15)


ROWS = [
    ([0.5, 0.5], "4 numbers"),
    ([0.5, 0.5, 0.5, 0.5], "sum to 1"),
    ([1.5, -0.5, 0.0, 0.0], "probabilities"),
    ([float("nan"), 0.5, 0.25, 0.25], "finite"),
]


@pytest.mark.parametrize(("row", "sentence"), ROWS)
def test_python_refuses(row, sentence):
    made = {}
    exec(models.model("mcllo").export("python"), made)
    with pytest.raises(ValueError, match=sentence):
        made["predict_proba"]([row])


def test_a_model_without_a_floor_refuses_zeros():
    X, y = data.drawn(60, models.CLASSES, 4)
    strict = MCLLOCalibrator(clip=0.0).fit(X, y)
    made = {}
    exec(strict.export("python"), made)
    with pytest.raises(ValueError, match="positive"):
        made["predict_proba"]([[1.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(made["predict_proba"](X), strict.predict_proba(X), atol=1e-15)
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


@pytest.mark.parametrize(("row", "sentence"), ROWS[:3])
def test_javascript_refuses(row, sentence, tmp_path):
    models.model("mcllo").export("js", tmp_path / "repair.mjs")
    said = node(
        tmp_path,
        'import { predictRow } from "./repair.mjs";\n'
        f"try {{ predictRow({json.dumps(row)}); }} "
        "catch (error) { console.log(JSON.stringify(error.message)); }",
    )
    assert re.search(sentence, said)


def test_odd_names_stay_names(tmp_path):
    X, y = data.drawn(200, ODD, 3)
    calibrator = TemperatureScaling(classes=ODD).fit(X, y)
    calibrator.export("js", tmp_path / "repair.mjs")
    found = node(
        tmp_path,
        'import { classes, predict } from "./repair.mjs";\n'
        f"console.log(JSON.stringify([classes, predict({json.dumps(X[:9].tolist())})]));",
    )
    assert found[0] == calibrator.classes_.tolist() == ODD
    assert found[1] == calibrator.predict(X[:9]).tolist()
    made = {}
    exec(calibrator.export("python"), made)
    assert made["CLASSES"] == calibrator.classes_.tolist()
    assert made["predict"](X[:9].tolist()) == calibrator.predict(X[:9]).tolist()


def test_a_module_has_its_types(tmp_path):
    models.model("mcllo").export("js", tmp_path / "repair.mjs")
    text = (tmp_path / "repair.d.mts").read_text()
    assert "export declare const classes: ReadonlyArray<string>;" in text
    module = (tmp_path / "repair.mjs").read_text()
    exported = set(re.findall(r"export (?:function|const) (\w+)", module))
    declared = set(re.findall(r"export declare (?:function|const) (\w+)", text))
    assert exported == declared == {"method", "classes", "predictRow", "predictProba", "predict"}
    assert declaration_path("a/b.js").name == "b.d.ts"
    numbers = Identity().fit([[0.5, 0.5], [0.2, 0.8]], [3, 4])
    assert "ReadonlyArray<number>" in write_declaration(program_of(numbers))


def test_whole_numbers_that_javascript_has_not():
    far = Identity().fit([[0.5, 0.5], [0.2, 0.8]], [1, 2**53 + 1])
    with pytest.raises(ExportError, match="JavaScript has no whole number 9007199254740993"):
        far.export("js")
    assert far.export("python")


def test_nothing_is_imported_by_the_module():
    text = models.model("auto").export("js")
    assert "import" not in text
    assert "require" not in text
