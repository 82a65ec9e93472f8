"""`mcllo compare`, through the real entry point."""

import json

import numpy as np
import pytest

from mcllo.__main__ import run


def write(path, n, seed):
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet([1.0, 1.0, 1.0], size=n)
    y = (rng.random((n, 1)) > honest.cumsum(axis=1)[:, :-1]).sum(axis=1)
    probs = honest**2 / (honest**2).sum(axis=1, keepdims=True)
    lines = ["id,ant,bee,cat,y"]
    names = ("ant", "bee", "cat")
    for i, (row, code) in enumerate(zip(probs, y, strict=True)):
        lines.append(f"{i}," + ",".join(repr(float(v)) for v in row) + f",{names[code]}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "train.csv", 300, 0), write(tmp_path / "holdout.csv", 200, 1)


OPTIONS = ["--label", "y", "--classes", "ant,bee,cat", "--seed", "0"]


def test_json_rows(files, capsys):
    assert run(["compare", *files, *OPTIONS, "--methods", "mcllo,histogram", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in content["rows"]] == [
        "uncalibrated_train",
        "uncalibrated",
        "mcllo",
        "histogram",
    ]
    keys = {"n", "pvalue", "pvalue_corrected", "ece", "accuracy", "label_change", "log_loss"}
    assert keys | {"brier"} <= set(content["rows"][2])
    assert content["skipped"] == {}


def test_all_methods_and_what_is_skipped(files, capsys):
    assert run(["compare", *files, *OPTIONS, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["skipped"]) == {"vector", "matrix"}
    assert {"auto", "temperature", "xu_davoine", "dirichlet", "isotonic", "beta"} <= {
        row["method"] for row in content["rows"]
    }


def test_text_and_cross_validation(files, capsys):
    assert run(["compare", files[0], "--cv", "4", *OPTIONS, "--methods", "temperature"]) == 0
    text = capsys.readouterr().out
    assert "cross-validated" in text
    assert "temperature" in text
    assert "* best value" in text
    assert "Recommended: temperature, which has the lowest log loss." in text
    assert "Its cross-validated log loss, 0." in " ".join(text.split())


def test_the_recommendation_is_in_the_json(files, capsys):
    assert run(["compare", *files, *OPTIONS, "--methods", "temperature,isotonic", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["recommendation"]
    assert found["method"] == "temperature"
    assert found["improves"] is True
    keys = {"method", "difference", "standard_error", "low", "high"}
    assert all(set(other) == keys for other in found["differences"])
    assert found["text"].startswith("Recommended: temperature")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--methods", "temprature"], "did you mean 'temperature'?"),
        (["--cv", "4"], "compare must get a holdout or cv="),
        (["--baseline", "dog"], "is not a class"),
    ],
)
def test_bad_input_is_one_line(files, capsys, extra, message):
    assert run(["compare", *files, *OPTIONS, *extra]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err.replace("--cv", "cv=").replace("cv==", "cv=")
