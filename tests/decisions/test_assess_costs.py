"""Costs in an assessment, on the command line and in figures."""

import json

import numpy as np
import pandas as pd
import pytest
from inputs import refusal

import mcllo
from mcllo import assess, decision_value, plot, simulate
from mcllo.__main__ import run_command_line

SHORT = {"miss": {1: 10}}


def rows(n=600, gamma=0.5):
    return simulate.draw(n, n_classes=3, gamma=gamma, distribution="dirichlet", seed=2)


def assessed(**options):
    return assess(rows(), n_resamples=19, seed=0, **options)


def test_an_assessment_says_what_decisions_cost():
    a = assessed(costs=SHORT)
    alone = decision_value(rows(), costs=SHORT)
    assert a.decision_value.to_dict() == alone.to_dict()
    said = [s for s in a.statements() if s.kind.split(".")[0] == "value"]
    assert [s.text for s in said] == [s.text for s in alone.statements()]
    assert "What decisions cost" in str(a)
    assert a.to_dict()["decision_value"]["price"] == alone.price.to_dict()
    assert assessed().decision_value is None
    assert "What decisions cost" not in str(assessed())


def test_the_tolerance_may_be_a_cost():
    high = assessed(costs=SHORT).decision_value.price.high
    loose = assessed(costs=SHORT, cost_tolerance=high + 0.01)
    assert loose.verdict.kind == "negligible"
    assert "would save" in loose.statements()[2].text
    tight = assessed(costs=SHORT, cost_tolerance=high - 0.01)
    assert tight.verdict.kind == "miscalibrated"
    assert tight.decide(cost_tolerance=high + 0.01).kind == "negligible"
    assert loose.verdict.to_dict()["cost_high"] == high
    assert tight.statements()[1].level == "bad"
    assert "needs costs" in str(refusal(assessed, cost_tolerance=1.0))
    assert "needs costs" in str(refusal(assessed().decide, cost_tolerance=1.0))
    a = assessed(costs=SHORT)
    assert "not negative" in str(refusal(a.decide, cost_tolerance=-1.0))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = rows()
    names = np.array(["a", "b", "c"])
    frame = pd.DataFrame(drawn.probs, columns=names)
    frame["y"] = names[drawn.codes]
    frame.to_csv("rows.csv", index=False)
    (tmp_path / "costs.json").write_text('{"miss": {"b": 10}}')


def test_the_command(files, capsys):
    line = ["assess", "rows.csv", "--label", "y", "--json", "--costs", "costs.json"]
    assert run_command_line(line) == 0
    content = json.loads(capsys.readouterr().out)
    found = decision_value(rows(), costs=SHORT)
    assert content["decision_value"]["price"] == pytest.approx(found.price.to_dict())
    tolerant = [*line, "--cost-tolerance", "99", "--gate"]
    assert run_command_line(tolerant) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["kind"] == "negligible"
    assert run_command_line([*line, "--cost-tolerance", "0", "--gate"]) == 1
    capsys.readouterr()
    assert run_command_line([*line[:5], "--cost-tolerance", "1"]) == 2
    assert "--cost-tolerance" in capsys.readouterr().err
    assert run_command_line([*line, "--cost-tolerance", "-1"]) == 2
    assert "not negative" in capsys.readouterr().err


def test_rows_in_blocks_refuse_costs():
    dask = pytest.importorskip("dask.array", reason="dask is not installed")
    drawn = rows()
    probs = dask.from_array(drawn.probs, chunks=(300, 3))
    labels = dask.from_array(drawn.codes, chunks=300)
    said = str(refusal(assess, probs, labels, costs=SHORT))
    assert "all rows in memory" in said


def lines_of(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_figures_show_the_tables():
    found = decision_value(rows(), costs=SHORT, calibrator="temperature")
    ax = plot.decision_value(found, caption=True)
    assert lines_of(ax)["_promised"].get_xdata()[0] == found.promised.value
    low_high = lines_of(ax)["_recalibrated"].get_xdata()
    assert list(low_high) == [found.recalibrated.low, found.recalibrated.high]
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert labels[2] == f"always {found.constant_action}"
    same = plot.decision_value(assessed(costs=SHORT))
    assert same.get_xlabel() == "Cost of a case"
    assert "has none" in str(refusal(plot.decision_value, assessed()))

    curve = mcllo.abstention_curve(rows(), calibrator="temperature")
    drawn = lines_of(plot.abstention(curve, what="cost", caption=True))
    costs = curve.table["cost"]
    assert drawn["as predicted"].get_ydata().tolist() == costs[:20]
    assert drawn["recalibrated"].get_ydata().tolist() == costs[20:]
    assert "'error' or 'cost'" in str(refusal(plot.abstention, curve, what="x"))

    net = mcllo.decision_curve(rows(), positive=1, calibrator="temperature")
    drawn = lines_of(plot.decision_curve(net, caption=True))
    benefits = net.table["net_benefit"]
    assert drawn["as predicted"].get_ydata().tolist() == benefits
    assert drawn["treat all"].get_ydata().tolist() == net.table["treat_all"]
    assert drawn["recalibrated"].get_ydata().tolist() == net.table["recalibrated"]


def test_the_report_has_the_statement_the_figure_and_the_table():
    page = mcllo.report(assessed(costs=SHORT))
    html = page.html()
    assert 'data-test-part="decisions"' in html
    assert "Cost of a case" in html  # of the figure
    # numbers are typeset
    for words in ("Recalibration would save", "always 1", "more than promised"):
        assert words in html
        assert words in page.markdown()
    assert 'data-test-part="decisions"' not in mcllo.report(assessed()).html()
