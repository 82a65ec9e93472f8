"""Model files written by version 0.1.0 still load, and still give the same probabilities.

``reference/models.json`` holds for each calibrator the document that ``save`` wrote and what it
predicted then. `write` made it, from 40 overconfident rows of four classes. A user's old files stay
as they are: add to this one when a calibrator is new, do not write it again.
"""

import json
import warnings
from pathlib import Path

import data
import numpy as np
import pytest
from approval import differences

import mcllo

PATH = Path(__file__).parents[1] / "reference" / "models.json"
STORED = json.loads(PATH.read_text()) if PATH.exists() else {}


def write(path=PATH):
    """Fit every calibrator, and keep its file, its rows and its probabilities."""
    classes = ["east", "north", "south", "west"]
    X, y = data.drawn(40, classes, 20, power=1.5)
    rows = data.drawn(6, classes, 21, power=1.5)[0].round(6)
    rows[0] = [0.5, 0.25, 0.125, 0.125]
    rows[-1] = [0.0, 0.0, 0.25, 0.75]
    rows[:, -1] = 1.0 - rows[:, :-1].sum(axis=1)
    models = {}
    for name, make in mcllo.CALIBRATORS.items():
        calibrator = make()
        scores = calibrator.input == "logits"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calibrator.fit(np.log(X) if scores else X, y)
            calibrator.save(path)
            given = np.log(np.maximum(rows, 1e-3)).round(6) if scores else rows
            found = calibrator.predict_proba(given)
        models[name] = {
            "file": json.loads(path.read_text()),
            "rows": given.tolist(),
            "probs": [[float(f"{p:.15g}") for p in row] for row in found],
        }
    lines = (
        f"{json.dumps(name)}: {json.dumps(model)}" for name, model in models.items()
    )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


@pytest.mark.parametrize("name", STORED)
def test_old_files_load_predict_and_are_saved_again(name, tmp_path):
    stored = STORED[name]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(stored["file"]))
    calibrator = mcllo.load_calibrator(path)
    assert calibrator.method == name
    assert calibrator.classes_.tolist() == stored["file"]["classes"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mcllo.exceptions.ZeroProbabilityWarning)
        found = calibrator.predict_proba(np.array(stored["rows"]))
    np.testing.assert_allclose(found, stored["probs"], rtol=0.0, atol=1e-12)
    # saved again it is the same document, with what later versions added
    calibrator.save(path, covariance=True)
    again = json.loads(path.read_text()) | {"mcllo_version": "0.1.0"}
    assert again["format_version"] == 2  # which adds two fields
    old = stored["file"]
    again = {key: again[key] for key in old} | {"format_version": 1}
    again["state"] = {key: again["state"][key] for key in old["state"]}
    again["params"] = {
        key: again["params"][key] for key in old["params"]
    }  # new ones may be added
    if "members" in old["state"]:
        assert (
            again["state"]["members"].pop("similar") is None
        )  # full maps of log g, as then
        assert again["state"]["members"].pop("curves") == {}
    assert not list(differences(old, again))


def test_every_calibrator_has_a_file():
    assert set(mcllo.CALIBRATORS) <= set(STORED)
