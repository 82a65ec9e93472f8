"""``assess(by=)``, `subgroups` and ``--by``: what all outputs say of subgroups."""

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from figure_checks import assert_readable, words
from inputs import case

import mcllo
from mcllo.__main__ import run_command_line
from mcllo.exceptions import InputError

CLASSES = ["dry", "rain", "snow"]


@cache
def frame(
    slopes=(("north", 1.6), ("south", 0.62), ("hut", 1.0)), sizes=(700, 700, 30), seed=5
):
    """Return stations whose forecasts are overconfident, underconfident, and few."""
    rng = np.random.default_rng(seed)
    station = np.repeat([name for name, _ in slopes], sizes)
    honest = rng.dirichlet([1.0, 1.0, 1.0], len(station))
    labels = (rng.random((len(station), 1)) > honest.cumsum(axis=1)[:, :-1]).sum(axis=1)
    power = honest ** np.array([dict(slopes)[name] for name in station])[:, None]
    table = pd.DataFrame(power / power.sum(axis=1, keepdims=True), columns=CLASSES)
    return table.assign(station=station), np.array(CLASSES)[labels]


@cache
def opposite():
    """All rows together are calibrated, the stations are not."""
    table, y = frame()
    return mcllo.assess(table, y, by="station", seed=1)


@cache
def calm():
    table, y = frame((("a", 1.0), ("b", 1.0)), (500, 500), 7)
    return mcllo.assess(table, y, by="station", seed=1)


@pytest.fixture
def path(tmp_path):
    table, y = frame()
    table.assign(observed=y).round(9).to_csv(tmp_path / "stations.csv", index=False)
    return str(tmp_path / "stations.csv")


def test_opposite_errors_cancel_and_are_found():
    a = opposite()
    assert a.verdict.kind == "not_detected"
    assert a.subgroups.test.rejects(0.05)
    kinds = {
        g.name: v.kind
        for g, v in zip(a.subgroups.groups, a.subgroups.decide(), strict=True)
    }
    assert kinds == {
        "north": "miscalibrated",
        "south": "miscalibrated",
        "hut": "inconclusive",
    }
    slopes = {g.name: g.slope for g in a.subgroups.groups}
    assert slopes["north"].high < 1.0 < slopes["south"].low


def test_statements_say_so_beside_the_verdict():
    said = opposite().statements()
    (beside,) = (s for s in said if s.kind == "other.by")
    assert beside.level == "bad"
    assert beside.text == "But by station some subgroups are off: see below."
    headline = next(s for s in said if s.kind == "by")
    assert "errors in opposite directions cancel" in headline.text
    assert (headline.numbers["miscalibrated"], headline.numbers["inconclusive"]) == (
        2,
        1,
    )
    assert {s.numbers["subgroup"] for s in said if s.kind == "by.group"} == {
        "north",
        "south",
    }
    assert [s.kind for s in said].count("by.test") == 1
    (remedy,) = (s for s in said if s.kind == "remedy")
    assert "each subgroup that is off" in remedy.text


def test_nothing_is_said_without_reason():
    a = calm()
    assert not [s for s in a.statements() if s.kind in ("other.by", "by.group")]
    assert "No subgroup stands out." in str(a)
    assert "not proof that they are alike" in str(a)
    assert a.subgroups.remedy() == ""


def test_one_error_shared_by_all_asks_for_one_recalibration():
    table, y = frame((("a", 1.7), ("b", 1.7)), (900, 900), 11)
    a = mcllo.assess(table, y, by="station", seed=1)
    assert a.verdict.kind == "miscalibrated"
    (headline,) = (s for s in a.statements() if s.kind == "by")
    assert headline.text.startswith("No difference between the subgroups is found")
    assert a.subgroups.remedy() == ""


def test_the_table_and_the_text_agree():
    found = opposite().subgroups
    table = found.table
    assert table["subgroup"] == ["hut", "north", "south"]
    assert found.to_frame().shape == (3, len(table.columns))
    assert table["verdict"] == [v.kind for v in found.decide()]
    assert all(p <= q for p, q in zip(table["pvalue"], table["adjusted"], strict=True))
    text = str(found)
    for name in table["subgroup"]:
        assert sum(line.startswith(f"{name} ") for line in text.splitlines()) == 1
    assert "95 % confidence" in text
    assert repr(found).startswith("<Subgroups: 3 by 'station'")


def repeated(many):
    """Return the three stations again and again, with other names and slopes."""
    found = opposite().subgroups
    groups = []
    for k in range(many):
        own = found.groups[k % 3]
        name = f"station {k}" if k else "a very long name of a station, with its county"
        slope = type(own.slope)(
            own.slope.value, own.slope.low - 0.01 * k, own.slope.high + 0.02 * k
        )
        groups.append(replace(own, name=name, slope=slope))
    endless = replace(
        groups[1], slope=type(groups[1].slope)(math.inf, 1.2, math.inf), name="endless"
    )
    return replace(found, groups=(*groups[:-1], endless))


def test_many_subgroups_show_the_worst():
    found = repeated(15)
    assert len(found.table_lines(0.05, 0.01, full=True)) == 17
    brief = found.table_lines(0.05, 0.01, full=False)
    assert len(brief) == 15
    assert "3 more subgroups" in brief[-2]


def test_levels_and_tolerances_reach_the_subgroups():
    found = opposite().subgroups
    assert {v.alpha for v in found.decide(0.2)} == {0.2}
    assert {v.kind for v in found.decide(tolerance=0.5)} == {
        "negligible",
        "not_detected",
    }
    assert [v.kind for v in found.decide(alpha=1e-12)].count("miscalibrated") == 0


def test_the_function_is_the_same_as_the_assessment():
    table, y = frame()
    found = mcllo.subgroups(table, y, by="station", seed=1)
    assert found.to_dict() == opposite().subgroups.to_dict()
    arrays = mcllo.subgroups(
        table[CLASSES].to_numpy(),
        y,
        classes=CLASSES,
        by=table["station"].to_numpy(),
        seed=1,
    )
    assert arrays.test.pvalue == found.test.pvalue
    assert (arrays.by, found.by) == ("group", "station")


def test_a_chosen_baseline_is_paid_for_in_each():
    table, y = frame()
    found = mcllo.subgroups(
        table, y, by="station", baseline="auto", seed=1, n_resamples=99
    )
    assert {group.test.kind for group in found.groups} == {"max_score"}
    assert found.test.rejects(0.05)


def test_json_is_strict_and_whole():
    plain = opposite().to_dict()
    text = json.dumps(plain, allow_nan=False, default=str)
    groups = json.loads(text)["subgroups"]["groups"]
    assert [group["verdict"]["kind"] for group in groups].count("miscalibrated") == 2


def test_without_by_there_are_none():
    a = mcllo.assess([[0.6, 0.4]] * 9, [0, 1, 0] * 3, seed=1)
    assert a.subgroups is None
    assert a.to_dict()["subgroups"] is None
    assert "By " not in str(a)
    with pytest.raises(InputError, match=r"it has none\. Assess with by="):
        mcllo.plot.subgroups(a)


def test_dependent_rows_are_refused():
    table, y = frame()
    survey = {"sample_weight": np.linspace(1, 2, 1430), "weight_kind": "survey"}
    for options in ({"groups": np.arange(1430) % 40}, survey):
        words = "by= needs independent rows that each count once; got"
        with case(list(options)), pytest.raises(InputError, match=words):
            mcllo.assess(table, y, by="station", **options)


@pytest.mark.slow  # needs Dask
def test_blocks_are_refused():
    dask = pytest.importorskip("dask.array")
    table, y = frame()
    lazy = dask.from_array(table[CLASSES].to_numpy(), chunks=(500, 3))
    with pytest.raises(InputError, match="by= needs all rows in memory"):
        mcllo.assess(lazy, y, by=table["station"].to_numpy())


def test_many_classes_are_refused():
    probs = np.random.default_rng(0).dirichlet(np.ones(201), 300)
    with pytest.raises(InputError, match="of at most 200 classes; got 201"):
        mcllo.subgroups(probs, np.arange(300) % 201, by=np.arange(300) % 2)


def test_a_gate_closes_on_a_subgroup(path, capsys):
    command = [
        "assess",
        path,
        "--label",
        "observed",
        "--seed",
        "1",
        "--normalize",
        "--gate",
    ]
    assert run_command_line([*command, "--classes", "dry,rain,snow"]) == 0
    assert "\nBy station\n" not in capsys.readouterr().out
    assert run_command_line([*command, "--by", "station"]) == 1
    out = capsys.readouterr().out
    assert "\nBy station\n" in out
    assert "But by station some subgroups are off" in out
    assert run_command_line([*command, "--by", "station", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["subgroups"]["by"] == "station"


def test_columns_are_checked(path, capsys):
    for options, message in (
        (["--by", "statoin"], "did you mean 'station'"),
        (["--by", "station", "--groups", "station"], "a column must play one part"),
        (["--by", "observed"], "a column must play one part"),
    ):
        assert run_command_line(["assess", path, "--label", "observed", *options]) == 2
        assert message in capsys.readouterr().err, options
    lines = Path(path).read_text().splitlines()
    lines[4] = lines[4].replace("north", "")
    Path(path).write_text("\n".join(lines))
    command = ["assess", path, "--label", "observed", "--by", "station", "--normalize"]
    assert run_command_line(command) == 2
    assert "column 'station' is empty in line 5" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_a_section_and_a_picture():
    report = mcllo.report(opposite())
    page = report.html()
    assert 'data-test-part="subgroups"' in page
    assert 'data-test-figure="subgroups"' in page
    assert "But by station some subgroups are off" in page
    assert "By station: are all alike?" in mcllo.report(calm()).html()
    text = report.markdown()
    assert "## By station: are all alike?" in text
    assert "Fit a calibrator of its own" in text


def test_the_forest_is_readable():
    found = repeated(40)
    left, right = mcllo.plot.subgroups(found, caption=True)
    assert_readable(left.figure)
    assert (left.get_xlabel(), right.get_xlabel()) == (
        "Slope",
        "Mean change (percentage points)",
    )
    assert "One row for each subgroup" in words(left.figure)
    few = mcllo.plot.subgroups(found, max_subgroups=2)
    assert len(few[0].get_yticks()) == 2
