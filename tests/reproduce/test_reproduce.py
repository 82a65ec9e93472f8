"""`mcllo.reproduce`: the paper's numbers as printed, ours beside them, in the paper's order."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import mcllo
from mcllo.__main__ import run_command_line
from mcllo.exceptions import InputError
from mcllo.metrics import accuracy
from mcllo.reproduce import ITEMS, printed, reproduce

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper" / "mcllo_paper.tex"


def called(*arguments):
    text = StringIO()
    with redirect_stdout(text):
        code = run_command_line(["reproduce", *map(str, arguments)])
    return code, text.getvalue()


@pytest.mark.skipif(not PAPER.exists(), reason="the paper is not part of the project")
def test_the_printed_numbers_are_those_of_the_paper():
    text = PAPER.read_text()
    for name, label in (
        ("table1", "cifar_parameters"),
        ("table3", "obesity_parameters"),
    ):
        part = text[text.index(rf"\label{{table:{label}}}") :]
        part = part[: part.index(r"\end{longtable}")]
        found = [
            tuple(map(float, pair))
            for pair in re.findall(r"(\d\.\d+) \((\d\.\d+)\)", part)
        ]
        rows, parts = printed(name), []
        for which in dict.fromkeys(row.get("part") for row in rows):
            own = [row for row in rows if row.get("part") == which]
            for what in ("delta", "gamma"):
                parts += [
                    (row[f"paper_{what}"], row[f"paper_se_{what}"]) for row in own
                ]
        assert found == parts
    for name, label in (("table2", "fig:comparison_charts_cifar"),
                        ("table4", "tab:obesity:calibration.metrics")):  # fmt: skip
        part = text[text.index(rf"\label{{{label}}}") :]
        part = part[part.index(r"\endlastfoot") : part.index(r"\end{longtable}")]
        short = {"MCLLO": "mcllo", "Xu": "xu_davoine", "EB": "histogram"}
        short |= {"TS": "temperature", "VS": "vector", "t": "uncalibrated_train"}
        known = {row["set"]: row for row in printed(name)}
        lines = [line.split("&") for line in part.splitlines() if line.startswith("$")]
        assert len(lines) == len(known)
        for first, n, p, ece, right, change in lines:
            found = re.search(r"text\{(\w+)\}|_\{(t|h)\}", first)
            row = known[short.get(found[1] or found[2], "uncalibrated")]
            assert int(n) in (8000, 2000, 396, 132)
            assert row["p"] == (0.001 if "<" in p else float(p))
            assert row["ece"] == float(ece)
            assert f"{100 * row['accuracy']:.1f}" in right
            shown = re.search(r"[\d.]+", change)
            assert row["label_change"] == (None if "--" in change else
                                           pytest.approx(float(shown[0]) / 100))  # fmt: skip


def test_the_order_and_names_are_the_papers():
    heads = [line[0] for line in reproduce("table2").shown]
    assert heads == ["", "X_t", "X_h", "MCLLO", "Xu", "EB", "TS", "VS"]
    heads = [line[0] for line in reproduce("table4").shown]
    assert heads[1:6] == ["X_t", "X_h", "MCLLO", "EB", "Xu"]


@pytest.mark.slow
def test_figures_have_the_papers_panels_and_titles():
    titles = [ax.get_title(loc="left") for ax in reproduce("figure5").axes]
    methods = [re.sub(r".*\((\w+)\)", r"\1", title) for title in titles]
    assert methods == ["X_h", "MCLLO", "TS", "VS", "EB", "Xu"]
    drawn = reproduce("figure6").axes
    assert len(drawn) == 4
    assert (
        len({ax.get_position().y0 for ax in drawn}) == 1
    )  # one row: nothing in mid-air
    for name, made in ITEMS.items():
        found = made()
        number = re.search(r"\d$", name)
        assert number is None or found.title.endswith(number[0])
        if found.axes is not None:
            assert found.title in found.axes[0].get_figure().get_suptitle()


def test_table_2_by_the_letter():
    """Statistic and p-value of MCLLO's row by equation (3) and SciPy's optimiser."""
    data = mcllo.datasets.load_cifar10_vgg()
    row = next(
        r for r in reproduce("table2").table.rows() if r["set"] == "uncalibrated"
    )
    x, codes = data.holdout.probs, data.holdout.codes
    logs = np.log(x[:, :-1] / x[:, -1:])

    def loss(theta):
        odds = theta[:9] + theta[9:] * logs
        whole = np.column_stack([odds, np.zeros(len(x))])
        top = whole.max(axis=1, keepdims=True)
        total = np.log(np.exp(whole - top).sum(axis=1)) + top[:, 0]
        return float(np.mean(total - whole[np.arange(len(x)), codes]))

    start = np.concatenate([np.zeros(9), np.ones(9)])
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-7})
    statistic = 2 * len(x) * (loss(start) - found.fun)
    assert row["statistic"] == pytest.approx(statistic, rel=1e-3)
    assert row["p_chi2"] == pytest.approx(chi2.sf(row["statistic"], 18))
    assert row["accuracy"] == accuracy(None, data.holdout)


def test_estimates_are_those_of_the_fit():
    data = mcllo.datasets.load_obesity_forest()
    rows = reproduce("table3").table.rows()
    fit = mcllo.MCLLOCalibrator(baseline="Normal_Weight").fit(data.train).fit_
    np.testing.assert_allclose([row["delta"] for row in rows], fit.delta)
    np.testing.assert_allclose([row["se_gamma"] for row in rows], fit.se_gamma)


def test_the_command_prints_what_python_prints(tmp_path):
    code, text = called("table3")
    assert code == 0
    assert text.rstrip("\n") == str(reproduce("table3"))
    code, text = called("figure4", "-o", tmp_path / "new", "--format", "png")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "figure4.csv", "figure4.png",
    ]  # fmt: skip
    assert text.count("written: ") == 2
    code, text = called("power", "--json")
    content = json.loads(text)
    assert (code, content["name"], len(content["rows"])) == (0, "power", 30)


def test_bad_names(capsys, tmp_path):
    assert run_command_line(["reproduce", "tabel2"]) == 2
    assert "table2" in capsys.readouterr().err
    assert run_command_line(["reproduce", "figure1", "--format", "gif"]) == 2
    with pytest.raises(InputError, match=r"table1 is a table: write it as \.csv"):
        reproduce("table1").save(tmp_path / "table1.png")


@pytest.mark.slow
def test_all_of_it(tmp_path):
    code, text = called("all", "-o", tmp_path)
    assert code == 0
    assert {path.stem for path in tmp_path.iterdir()} == set(ITEMS)
    for name in ITEMS:
        assert str(reproduce(name)).splitlines()[0] in text
