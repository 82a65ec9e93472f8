"""The schema, the page and the files say the same."""

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from test_model_file import (
    BROKEN,
    changed,
    with_prior,  # noqa: F401
)
from test_model_file import files as model_files  # noqa: F401

import mcllo

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "model-file.md").read_text()
SCHEMA = json.loads(files("mcllo.calibrators").joinpath("model.schema.json").read_text())
OLD = json.loads((ROOT / "tests" / "reference" / "models.json").read_text())
VALID = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]["method"]["enum"]) == set(mcllo.CALIBRATORS)


@pytest.mark.parametrize("method", mcllo.CALIBRATORS)
def test_files_keep_to_the_schema(method, model_files):  # noqa: F811
    VALID.validate(model_files[method])
    VALID.validate(OLD[method]["file"])


@pytest.mark.parametrize("options", [{"baseline": "all", "penalty": 1.0}, {"gate": 0.05}])
def test_other_states_keep_to_it_too(options, tmp_path):
    import data

    X, y = data.drawn(80, ["a", "b", "c"], 3)
    mcllo.MCLLOCalibrator(**options).fit(X, y).save(tmp_path / "m.json", covariance=True)
    VALID.validate(json.loads((tmp_path / "m.json").read_text()))


def test_class_frequencies_keep_to_it_and_are_named(with_prior):  # noqa: F811
    for content in with_prior.values():
        VALID.validate(content)
        learned, found = content["state"]["learned"], content["state"]["new_shares"]
        for name in learned:
            assert f"`learned.{name}`" in PAGE, name
        for name in found or ():
            assert f"`{name}`" in PAGE or f"`new_shares.{name}`" in PAGE, name


@pytest.mark.parametrize("number", [6, 8, 13, 17])  # classes [], a list for a label, 7.0, coef
def test_what_breaks_a_type_breaks_the_schema(number, model_files):  # noqa: F811
    method, where, value, _ = BROKEN[number]
    assert not VALID.is_valid(changed(model_files[method], where, value))


def test_a_new_file_needs_its_checksum(model_files):  # noqa: F811
    content = dict(model_files["mcllo"])
    del content["checksum"]
    assert not VALID.is_valid(content)


@pytest.mark.parametrize("method", mcllo.CALIBRATORS)
def test_the_page_and_the_schema_name_every_field(method, model_files):  # noqa: F811
    content = model_files[method]
    rule = next(r for r in SCHEMA["allOf"] if r["if"]["properties"]["method"]["const"] == method)
    state = rule["then"]["properties"]["state"]
    known = set().union(*(s.get("properties", {}) for s in state.get("anyOf", [state])))
    for name in [*content, *content["state"]]:
        assert f"`{name}`" in PAGE or f"`state.{name}`" in PAGE, name
    assert set(content["state"]) <= known
    assert f"| `{method}`" in PAGE or f"`{method}`" in PAGE


def test_the_ten_lines_of_javascript_are_right(model_files, tmp_path):  # noqa: F811
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = re.search(r"```javascript\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    (tmp_path / "temperature.mjs").write_text(text)
    content, row = model_files["temperature"], [0.75, 0.25, 0.0]
    (tmp_path / "run.mjs").write_text(
        'import { temperature } from "./temperature.mjs";\n'
        f"console.log(JSON.stringify(temperature({json.dumps(content)}, {row})));"
    )
    done = subprocess.run(
        [node, str(tmp_path / "run.mjs")], capture_output=True, text=True, check=True
    )
    (tmp_path / "m.json").write_text(json.dumps(content))
    expected = mcllo.load_calibrator(tmp_path / "m.json").predict_proba([row])[0]
    # the page leaves out that a raised row is divided by its sum: softmax forgets a common factor
    assert json.loads(done.stdout) == pytest.approx(expected.tolist(), abs=1e-15)
