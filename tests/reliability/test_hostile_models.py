"""F6: model files that once gave NaN, other numbers or a traceback; the rest is in
`tests/calibrators/test_model_file.py`."""

import json

import numpy as np
import pytest
from calls import LABEL, refused, said, saved_model

import mcllo


def broken(content, change):
    content.pop("checksum", None)  # models of 8c4857c had none
    change(content)
    text = json.dumps(content)
    return text.replace('"BIG"', "1" + "0" * 400).replace('"LONG"', "9" * 5000)


CHANGES = {
    "a_huge_gamma": ("mcllo", lambda c: c["state"]["gamma"].__setitem__(0, 1e308)),
    "b_two_orders": ("mcllo", lambda c: c["classes"].reverse()),
    "c_10_to_400": ("mcllo", lambda c: c["state"]["tau"].__setitem__(0, "BIG")),
    "c_5000_digits": ("mcllo", lambda c: c["state"]["tau"].__setitem__(0, "LONG")),
    "d_one_edge_more": ("histogram", lambda c: c["state"]["edges"][0].append(0.999)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_F6_a_broken_model_is_refused_when_it_is_loaded(kind, tmp_path, capsys):
    method, change = CHANGES[kind]
    good, model = saved_model(tmp_path, capsys)
    assert said(capsys, "fit", good, *LABEL, "--method", method, "-o", model)[0] == 0
    model.write_text(broken(json.loads(model.read_text()), change))
    with good.open("a") as file:
        file.write("1,0,0,cat\n")  # beyond the edge that is one too many
    for verb in (["apply", model, good], ["export", model, "--to", "python"]):
        line = refused(capsys, *verb, "-o", tmp_path / "out.csv")
        assert str(model) in line
        assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("size", [-1e99, 1e-99])
def test_F6_what_is_loaded_gives_probabilities_for_every_row(size, tmp_path, capsys):
    good, model = saved_model(tmp_path, capsys)
    content = json.loads(model.read_text())
    content.pop("checksum")
    content["state"]["gamma"], content["state"]["tau"] = [size, -size], [size, size]
    model.write_text(json.dumps(content))
    rows = np.array(
        [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [5e-324, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    )
    with np.errstate(all="ignore"):
        found = mcllo.load_calibrator(model).predict_proba(rows)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert said(capsys, "apply", model, good, "-o", tmp_path / "out.csv")[0] == 0
    assert "nan" not in (tmp_path / "out.csv").read_text()
