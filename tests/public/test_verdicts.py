"""One verdict: text, JSON, statements, Markdown, page and exit code of a run never disagree."""

import json
import re
from functools import cache

import numpy as np
import pytest

import mcllo
from mcllo.__main__ import run_command_line

KINDS = ("miscalibrated", "negligible", "not_detected", "inconclusive")
WORDS = {
    "miscalibrated": "do not read them as frequencies",
    "negligible": "iscalibrated, but negligibly",
    "not_detected": "o miscalibration found",
    "inconclusive": "hese rows cannot tell",
}
DESIGNS = {
    "sharp": (800, 0.6, 0, "miscalibrated"),
    "negligible": (60_000, 0.96, 0, "negligible"),
    "calm": (800, 1.0, 0, "not_detected"),
    "few": (15, 1.0, 0, "inconclusive"),
    "three groups": (730, 1.6, 3, "inconclusive"),
    "thirty groups": (730, 0.5, 30, "miscalibrated"),
}
EXIT = {"miscalibrated": 1, "negligible": 0, "not_detected": 0, "inconclusive": 3}
STRICT = EXIT | {"negligible": 1}
each_design = pytest.mark.parametrize("name", DESIGNS)


@cache
def rows(name):
    """Predictions, labels and groups: labels follow the rows with another slope."""
    n, slope, n_groups, _ = DESIGNS[name]
    rng = np.random.default_rng([14, n])
    x = rng.dirichlet(np.ones(3), size=n)
    truth = x**slope / (x**slope).sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return (
        x,
        np.array(["dry", "rain", "snow"])[y],
        np.arange(n) % n_groups if n_groups else None,
    )


@cache
def assessed(name):
    x, y, groups = rows(name)
    classes = ["dry", "rain", "snow"]
    return mcllo.assess(x, y, classes=classes, groups=groups, n_resamples=199, seed=0)


@pytest.mark.usefixtures("undrawn")
@each_design
def test_text_statements_dictionary_and_report(name):
    a, kind = assessed(name), DESIGNS[name][-1]
    assert a.verdict.kind == kind
    assert [k for k in KINDS if WORDS[k] in " ".join(str(a).split())] == [kind]
    assert {s.kind: s for s in a.statements()}["verdict"].numbers["kind"] == kind
    content = json.loads(json.dumps(a.to_dict(), allow_nan=False))
    assert content["verdict"]["kind"] == kind
    assert content["effect_size"]["high"] == pytest.approx(a.effect_size.high)
    report = mcllo.report(a, date="today")
    assert report.summary.verdict.kind == kind
    assert [k for k in KINDS if WORDS[k] in report.markdown()] == [kind]
    page = report.html()
    assert re.findall(r'data-test-verdict="(\w+)"', page) == [kind]
    assert [k for k in KINDS if WORDS[k] in page] == [kind]
    assert json.loads(report.json())["result"]["verdict"] == content["verdict"]


def write_csv(name, file):
    """Write the rows of a design; without groups each row is its own station."""
    x, y, groups = rows(name)
    stations = range(len(y)) if groups is None else groups
    lines = ["dry,rain,snow,station,y"]
    for probs, station, label in zip(x.tolist(), stations, y, strict=True):
        lines.append(",".join([*map(repr, probs), str(station), label]))
    file.write_text("\n".join(lines))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", ["sharp", "calm", "few", "three groups"])
def test_exit_code_and_json_of_the_command_line(name, tmp_path, capsys):
    groups = rows(name)[2]
    kind, file = DESIGNS[name][-1], tmp_path / "rows.csv"
    write_csv(name, file)
    call = [
        "assess",
        str(file),
        "--label",
        "y",
        "--classes",
        "dry,rain,snow",
        "--draws",
        "199",
    ]
    call += ["--seed", "0"] + (["--groups", "station"] if groups is not None else [])
    assert run_command_line([*call, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["kind"] == kind
    assert (
        run_command_line([*call, "--gate", "--html", str(tmp_path / "page.html")])
        == EXIT[kind]
    )
    assert WORDS[kind] in " ".join(capsys.readouterr().out.split())
    assert f'data-test-verdict="{kind}"' in (tmp_path / "page.html").read_text()
    assert run_command_line([*call, "--strict"]) == STRICT[kind]


@pytest.mark.usefixtures("undrawn")
def test_level_and_tolerance_reach_every_output(tmp_path, capsys):
    assert assessed("sharp").decide(tolerance=0.3).kind == "negligible"
    file = tmp_path / "rows.csv"
    write_csv("sharp", file)
    call = ["assess", str(file), "--label", "y", "--classes", "dry,rain,snow"]
    call += ["--tolerance", "0.3", "--gate"]
    html, made = tmp_path / "page.html", tmp_path / "page.json"
    assert run_command_line([*call, "--html", str(html)]) == EXIT["negligible"]
    assert WORDS["negligible"] in " ".join(capsys.readouterr().out.split())
    assert 'data-test-verdict="negligible"' in html.read_text()
    assert run_command_line([*call, "--html", str(made), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["verdict"]
    stored = json.loads(made.read_text())["result"]["verdict"]
    assert (printed["kind"], printed["tolerance"], stored["kind"]) == (
        "negligible",
        0.3,
        "negligible",
    )
    assert run_command_line([*call, "--strict"]) == STRICT["negligible"]
    capsys.readouterr()
    assert (
        run_command_line(["assess", str(file), "--label", "y", "--tolerance", "2"]) == 2
    )
    assert "--tolerance" in capsys.readouterr().err


def test_few_rows_and_few_groups_do_not_pass_a_gate():
    few, grouped = assessed("few").verdict, assessed("three groups").verdict
    assert "too few" in few.reason
    assert "3 groups give no p-value below 0.25" in grouped.reason
    assert "no miscalibration found" not in str(assessed("three groups"))


def test_one_prediction_is_no_frequency(tmp_path, capsys):
    # the label had 3 %: p = 0.03 for any test, and yet nothing is known of such predictions
    file = tmp_path / "one.csv"
    file.write_text("a,b,c,y\n0.03,0.9,0.07,a\n")
    assessing = ["assess", str(file), "--label", "y", "--seed", "0"]
    assert run_command_line([*assessing, "--gate"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "Calibration of 1 prediction of 3 classes" in said
    assert "these rows cannot tell" in said
    assert "One prediction says nothing of how often such predictions come true" in said
    file.write_text("a,b,c,y\n" + "0.03,0.9,0.07,a\n" * 2)
    assert run_command_line([*assessing, "--gate"]) == 1


def test_small_results_show_themselves_as_tables():
    probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    a = mcllo.assess(probs, [0, 1, 1, 0, 0, 0, 1, 1] * 5, seed=0, n_resamples=19)
    for result in (
        a.test,
        a.effect_size,
        a.verdict,
        a.verdict.__class__(
            "not_detected", 0.0, 0.05, float("nan"), 0.01, False, "<b>&</b>"
        ),
    ):
        page = result._repr_html_()
        assert page.startswith(f"<table><caption>{type(result).__name__}</caption>")
        for name in result.to_dict():
            assert f"<th>{name}</th>" in page
    assert "<td>&lt; 1e-300</td>" in page  # a p-value is never 0
    assert "<th>high</th><td>-</td>" in page
    assert "&lt;b&gt;&amp;&lt;/b&gt;" in page
