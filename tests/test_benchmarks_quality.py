"""The arithmetic and words of the quality benchmark; all scores and times here are made up."""

import doctest
import importlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

NAMES = ("cases", "catalogue", "claims", "drive", "figure", "harmless", "methods", "page", "parts")
NAMES += ("run", "sets", "sources", "store", "summary", "view", "words")
parts = {name: importlib.import_module(f"benchmarks.quality.{name}") for name in NAMES}
cases, catalogue, claims, harmless = map(parts.get, ("cases", "catalogue", "claims", "harmless"))
methods, page, run, sets = map(parts.get, ("methods", "page", "run", "sets"))
sources, store, summary, view = map(parts.get, ("sources", "store", "summary", "view"))
Case = cases.Case


def scored(ll, wall=0.1, zero=0, **others):
    return {"ll": ll, "brier": ll / 2, "ece": 0.1, "cw": 0.2, "zero": zero, "wall": wall,
            "cpu": wall, **others}  # fmt: skip


def record(name, n, seed, **done):
    done = {key.replace("_", "-"): value for key, value in done.items()}
    return {"set": name, "n": n, "seed": seed, "judged": 100, "absent": 0, "methods": done}


# set a: auto beats SMS, then loses; set b: SMS fails once, auto returns its input once
RECORDS = [
    record("a", 100, 0, identity=scored(1.0), sms=scored(0.8, 0.2), auto=scored(0.7, 0.1)),
    record("a", 100, 1, identity=scored(1.0), sms=scored(0.8, 0.2), auto=scored(0.9, 0.3)),
    record("b", 100, 0, identity=scored(0.5), sms={"failed": "ValueError: no"}, auto=scored(0.5)),
    record("b", 100, 1, identity=scored(0.5), sms=scored(0.6, 0.2), auto=scored(0.55, 0.1)),
]


def facts_of(name, source, used):
    return {"name": name, "source": source, "origin": "here", "model": "none", "n": 500, "c": 3,
            "used": used, "zeros": 0.0}  # fmt: skip


HARM = [
    record("soccer", 100, 0, auto_gate={"kl": 0.0, "moved": 0.0, "wall": 0.1}),
    record("soccer", 100, 1, auto_gate={"kl": 0.002, "moved": 0.1, "wall": 0.1}),
    record("soccer", 100, 2, auto_gate={"failed": "ValueError: no"}),
]
FACTS = {
    "machine": {"cpu": "A processor", "cores": 2, "versions": {"mcllo": "0.1", "netcal": None}},
    "workers": 2,
    "date": "2026-01-01 10:00 UTC",
    "missing": {"dirichletcal": "not installed"},
    "sets": {"a": facts_of("a", "first", False), "b": facts_of("b", "second", True)},
    "harmless": harmless.summary(HARM),
}


@pytest.fixture
def results():
    return view.View(summary.cells(RECORDS), FACTS)


@pytest.mark.parametrize(
    "name", ["cases", "harmless", "methods", "sources", "store", "summary", "view", "words"]
)
def test_examples_in_docstrings(name):
    found = doctest.testmod(parts[name])
    assert found.attempted > 0
    assert found.failed == 0


# cases


def test_rows_are_drawn_again_alike_and_apart():
    case = Case(3, "a", 300)
    learn, judge = cases.draw(case, 1000)
    again, _ = cases.draw(case, 1000)
    np.testing.assert_array_equal(learn, again)
    assert len(learn) == 300
    assert sorted([*learn, *judge]) == list(range(1000))  # disjoint, and nothing is left out


def test_larger_cases_contain_smaller_ones_and_judge_on_the_same_rows():
    small, held = cases.draw(Case(0, "a", 100), 10_000)
    large, same = cases.draw(Case(0, "a", 3000), 10_000)
    np.testing.assert_array_equal(small, large[:100])
    np.testing.assert_array_equal(held, same)
    assert len(held) == cases.MOST_JUDGED


def test_seeds_and_sets_differ():
    first, _ = cases.draw(Case(0, "a", 100), 1000)
    assert (first != cases.draw(Case(1, "a", 100), 1000)[0]).any()
    assert (first != cases.draw(Case(0, "b", 100), 1000)[0]).any()


def test_a_case_needs_75_rows_and_a_quarter_to_judge_on():
    assert cases.allowed(100, 175)
    assert not cases.allowed(100, 174)
    assert not cases.allowed(1000, 1249)


def test_cases_come_seed_by_seed():
    plan = cases.planned({"a": 500, "b": 200}, (100, 300), range(2))
    expected = [("a", 100, 0), ("a", 300, 0), ("b", 100, 0)]
    assert [case.key for case in plan[:3]] == expected
    assert {case.seed for case in plan[3:]} == {1}


def test_scores_of_two_rows():
    # -(log 0.8 + log 0.5) / 2; ((0.2^2 + 0.2^2) + (0.5^2 + 0.5^2)) / 2
    found = cases.scores(np.array([[0.8, 0.2], [0.5, 0.5]]), np.array([0, 1]))
    assert found["ll"] == pytest.approx(-(math.log(0.8) + math.log(0.5)) / 2)
    assert found["brier"] == pytest.approx(0.29)
    assert found["zero"] == 0


def test_a_true_class_of_zero_costs_much_and_is_noted():
    found = cases.scores(np.array([[1.0, 0.0]]), np.array([1]))
    assert found["ll"] == pytest.approx(-math.log(1e-15))
    assert found["zero"] == 1


def _wrong(*_):
    raise ValueError("two classes wanted")


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (_wrong, "ValueError: two classes wanted"),
        (lambda *_: lambda rows: rows[:, :2], "shape"),
        (lambda *_: lambda rows: rows * np.nan, "no probabilities"),
    ],
)
def test_what_goes_wrong_is_recorded(fit, words):
    probs, y = np.full((4, 3), 1 / 3), np.array([0, 1, 2, 0])
    found = cases.attempt(methods.Method("wrong", "", fit), (probs, y), (probs, y))
    assert set(found) == {"failed"}
    assert words in found["failed"]


# our own methods on a small set


def small_set(tmp_path, monkeypatch, n=260):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=n)
    y = harmless.drawn_labels(probs, 1)
    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    sets.load.cache_clear()
    source = sources.Source("small", "drawn here", lambda: (probs, y))
    monkeypatch.setattr(sets, "READY", (source,))
    monkeypatch.setattr(sets, "TABLES", ())
    assert sets.build(say=lambda _: None) == {}
    return probs, y


def test_a_set_comes_back_from_its_file(tmp_path, monkeypatch):
    probs, y = small_set(tmp_path, monkeypatch)
    found = sets.known()
    assert found["small"].n == 260
    assert found["small"].c == 3
    np.testing.assert_allclose(sets.load("small")[0], probs)
    np.testing.assert_array_equal(sets.load("small")[1], y)


def test_sets_that_cannot_be_made_say_why(tmp_path, monkeypatch):
    def absent():
        raise ModuleNotFoundError("No module named 'river'")

    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    monkeypatch.setattr(sets, "READY", (sources.Source("gone", "nowhere", absent),))
    monkeypatch.setattr(sets, "TABLES", ())
    assert "river" in sets.build(say=lambda _: None)["gone"]


@pytest.mark.filterwarnings("ignore")
def test_every_method_of_ours_runs_and_doing_nothing_changes_nothing(tmp_path, monkeypatch):
    small_set(tmp_path, monkeypatch)
    names = [name for name, method in methods.METHODS.items() if method.package in ("", "mcllo")]
    found = cases.run(Case(0, "small", 150), names)
    assert not [name for name, result in found["methods"].items() if "failed" in result]
    probs, y = sets.load("small")
    _, judge = cases.draw(Case(0, "small", 150), len(y))
    plain = -np.log(probs[judge, y[judge]]).mean()
    assert found["methods"]["identity"]["ll"] == pytest.approx(plain, rel=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", ["probmetrics", "scikit-learn", "netcal"])
def test_peers_run_where_they_are_installed(package, tmp_path, monkeypatch):
    if package != "scikit-learn":
        pytest.importorskip(package, reason=f"{package} is an optional peer of the benchmark")
    small_set(tmp_path, monkeypatch)
    names = [name for name, method in methods.METHODS.items() if method.package == package]
    found = cases.run(Case(0, "small", 150), names)
    assert set(found["methods"]) == set(names)
    assert not [name for name, result in found["methods"].items() if "failed" in result]


# going on where a run stopped


def test_a_run_goes_on_where_it_stopped(tmp_path):
    kept = store.Store(tmp_path / "cases.jsonl")
    plan = cases.planned({"a": 500}, (100, 300), range(2))
    table = {"identity": methods.METHODS["identity"], "sms": methods.METHODS["sms"]}
    assert len(list(run.jobs(plan, kept.records(), table, None))) == 4
    kept.add(record("a", 100, 0, identity=scored(1.0), sms=scored(1.0)))
    kept.add(record("a", 300, 0, identity=scored(1.0)))
    todo = [job for _, job in run.jobs(plan, kept.records(), table, None)]
    assert todo[0] == (Case(0, "a", 300), ["sms"])  # the first is done, the second half done
    assert [case.key for case, _ in todo[1:]] == [("a", 100, 1), ("a", 300, 1)]


def test_methods_can_be_run_again_and_later_lines_count(tmp_path):
    kept = store.Store(tmp_path / "cases.jsonl")
    kept.add(record("a", 100, 0, identity=scored(1.0), sms=scored(1.0)))
    case, table = Case(0, "a", 100), {"sms": methods.METHODS["sms"]}
    assert run.missing_of(case, kept.records(), table) == []
    assert run.missing_of(case, kept.records(), table, again=["sms"]) == ["sms"]
    kept.add(record("a", 100, 0, sms=scored(0.5)))
    (found,) = kept.records().values()
    assert found["methods"]["sms"]["ll"] == 0.5
    assert found["methods"]["identity"]["ll"] == 1.0


def test_a_line_that_was_cut_off_is_run_again(tmp_path):
    kept = store.Store(tmp_path / "cases.jsonl")
    kept.path.write_text('{"set": "a", "n": 100, "se')
    kept.add(record("b", 100, 0, identity=scored(1.0)))
    assert list(kept.records()) == [("b", 100, 0)]


def test_slow_methods_take_part_in_few_cases():
    slow = methods.Method("slow", "", None, seeds=3, most_rows=3000)
    assert slow.suits(3000, 2)
    assert not slow.suits(3000, 3)
    assert not slow.suits(10_000, 0)


def test_our_own_methods_may_not_be_missing(monkeypatch):
    def absent(*_):
        raise ImportError("half written")

    monkeypatch.setitem(methods.ALL, "peer", methods.Method("peer", "elsewhere", absent))
    monkeypatch.setitem(methods.ALL, "own", methods.Method("own", "mcllo", absent))
    assert methods.warm_up(["peer"]) == {"peer": "half written"}
    with pytest.raises(ImportError, match="half written"):
        methods.warm_up(["own"])


# aggregation


def cell_of(rows, name, method):
    (found,) = [row for row in rows if row["set"] == name and row["method"] == method]
    return found


def test_a_cell_averages_pairs_and_counts():
    rows = summary.cells(RECORDS)
    auto = cell_of(rows, "a", "auto")
    assert auto["d_sms"] == pytest.approx(0.0)  # (-0.1 + 0.1) / 2
    assert (auto["pairs"], auto["wins"], auto["ties"]) == (2, 1, 0)
    assert auto["ratio"] == pytest.approx(1.0)  # median of 0.5 and 1.5
    assert auto["d_ll"] == pytest.approx(-0.2)  # (-0.3 - 0.1) / 2
    assert auto["worse"] == 0
    other = cell_of(rows, "b", "auto")
    assert (other["cases"], other["pairs"], other["wins"]) == (2, 1, 1)  # SMS ran once
    assert (other["paired"], other["worse"]) == (2, 1)  # returning the input is not worse
    assert other["worst"] == pytest.approx(0.05)


def test_failures_are_counted_with_the_reason():
    sms = cell_of(summary.cells(RECORDS), "b", "sms")
    assert (sms["cases"], sms["failed"], sms["paired"]) == (2, 1, 1)
    assert sms["reason"] == "ValueError: no"


def test_a_method_that_always_fails_has_a_row():
    rows = summary.cells([record("a", 100, 0, sms={"failed": "no"}, identity=scored(1.0))])
    sms = cell_of(rows, "a", "sms")
    assert sms["failed"] == sms["cases"] == 1
    assert sms["ll"] is None


def test_sets_of_one_source_are_taken_together():
    # deviations -2, 0, 2; sources {-2, 0} and {2}: sums -2 and 2;
    # error sqrt(2 / 1 * (4 + 4)) / 3 = 4 / 3; t of 1 degree is 12.706
    found = summary.clustered([0.0, 2.0, 4.0], ["x", "x", "y"])
    assert found.value == 2.0
    assert found.high - found.value == pytest.approx(12.7062 * 4 / 3, rel=1e-4)
    assert summary.clustered([1.0, 2.0], ["x", "x"]).low is None


def test_shares_count_each_set_once(results):
    # a: 1 of 2 won; b: 1 of 1
    assert results.wins("auto", 100) == pytest.approx(0.75)
    # a: 0 of 2 worse than nothing; b: 1 of 2
    assert results.worse("auto", 100) == pytest.approx(0.25)
    assert results.worse_on_average("auto", 100) == pytest.approx(0.5)
    assert results.total_ratio("auto", 100) == pytest.approx(0.3 / 0.4)


def test_groups_are_apart(results):
    assert {row["set"] for row in results.group("new").rows} == {"a"}
    assert {row["set"] for row in results.group("used").rows} == {"b"}
    assert results.group("all").rows == results.rows


def test_rows_come_back_from_their_file_and_its_bytes_are_the_same(tmp_path):
    rows = summary.cells(RECORDS)
    one, two = tmp_path / "one.csv.gz", tmp_path / "two.csv.gz"
    summary.write_cells(one, rows)
    found = summary.read_cells(one)
    summary.write_cells(two, found)
    assert one.read_bytes() == two.read_bytes()
    assert [row["reason"] for row in found] == [row["reason"] for row in rows]
    assert cell_of(found, "b", "auto")["d_ll"] == pytest.approx(0.025)


# claims


def test_claims_say_what_was_measured(results):
    lower, wins, harm, fast = (claim.judge(results) for claim in claims.CLAIMS)
    assert lower.met  # mean of 0 and -0.05
    assert lower.measured == "-0.0250 at 100"
    assert wins.met
    assert wins.measured == "75 % at 100"
    assert not harm.met
    assert harm.verdict == "**not met**"
    assert "25 % of cases" in harm.measured
    assert fast.met
    assert "0.75 times" in fast.measured  # medians of a and b: 1.0 and 0.5


def test_claims_fail_where_they_should(results):
    (fewer,) = [claim for claim in claims.CLAIMS if "60 %" in claim.demand]
    assert not fewer.judge(results.group("new")).met  # 1 of 2


def test_claims_without_results_are_not_measured():
    nothing = view.View([], {"sets": {}})
    for claim in (*claims.CLAIMS, claims.GATE_CLAIM):
        assert claim.judge(nothing).verdict == "not measured"


# do no harm


def test_the_cost_of_a_change_by_hand():
    # 0.8 log(0.8 / 0.5) + 0.2 log(0.2 / 0.5), and 0 for the second row
    p = np.array([[0.8, 0.2], [0.3, 0.7]])
    q = np.array([[0.5, 0.5], [0.3, 0.7]])
    expected = (0.8 * math.log(1.6) + 0.2 * math.log(0.4)) / 2
    assert harmless.divergence(p, q) == pytest.approx(expected)
    assert harmless.divergence(p, p) == 0.0


def test_labels_follow_the_predictions():
    probs = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    share = np.bincount(harmless.drawn_labels(probs, 0)) / 20_000
    np.testing.assert_allclose(share, [0.2, 0.5, 0.3], atol=0.015)  # se at most 0.0036


def test_the_simulation_is_summed_up():
    (cell,) = harmless.summary(HARM)
    assert (cell["repetitions"], cell["failed"], cell["changed"]) == (2, 1, 1)
    assert cell["kl"] == pytest.approx(0.001)
    assert cell["kl_max"] == cell["kl_changed"] == pytest.approx(0.002)


def test_the_gate_is_judged_by_all_data_sets(results):
    found = claims.GATE_CLAIM.judge(results)
    assert not found.met  # one of two was changed
    assert "changed 50 % of 2 data sets" in found.measured


@pytest.mark.filterwarnings("ignore")
def test_a_repetition_of_the_simulation(tmp_path, monkeypatch):
    small_set(tmp_path, monkeypatch)
    found = harmless.run(Case(0, "small", 150), ["temperature", "mcllo"])["methods"]
    assert found["temperature"]["kl"] > 0.0
    assert found["mcllo"]["moved"] > harmless.CHANGED


# sources


def test_features_from_columns():
    given = np.array([1.0, None, 3.0], dtype=object)
    np.testing.assert_array_equal(sources.column(given)[:, 0], [1.0, 2.0, 3.0])
    assert sources.column(np.array(["x", "y", "z"])).tolist() == [[0, 0], [1, 0], [0, 1]]
    assert sources.column(np.array([f"id {k}" for k in range(50)])).shape == (50, 0)


def test_rare_classes_are_left_out():
    y = np.array([0] * 6 + [1] * 5 + [3] * 6)
    _, kept = sets.frequent(np.zeros((17, 1)), y)
    assert np.bincount(kept).tolist() == [6, 6]


def test_names_of_sets_are_unique_and_models_known():
    names = [name for name, _, _ in sets.planned()]
    assert len(set(names)) == len(names)
    known = {name for name, source, _ in sets.planned() if not source.used}
    assert set(harmless.SETS) <= set(names)
    assert len(known) >= 60


# page and figure


def test_the_page_shows_the_numbers_of_the_results(results):
    text = page.measured(results)
    assert "Not for quoting" in text  # two seeds
    assert "2 sets from 2 data sets: 1 sets from 1 data sets are new" in text
    assert "| all sets | 100 | 2 | -0.0250 [" in text
    assert "Not there: dirichletcal (not installed)." in text
    assert "| probmetrics SMS | 1 of 4 | `ValueError: no` | 0 |" in text
    assert "50 %; 0.001 (0.002)" in text


def test_the_page_keeps_what_stands_outside_its_markers(results):
    begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
    made = page.rebuilt(f"above\n{begin}\nold\n{end}\nbelow\n", results)
    assert made.startswith("above\n")
    assert made.endswith("below\n")
    assert "old" not in made
    with pytest.raises(ValueError, match="must hold"):
        page.rebuilt("no markers", results)


def test_the_written_page_is_made_of_the_results_file():
    latest = run.latest()
    text = page.PAGE.read_text()
    assert text == page.rebuilt(text, latest), "run: python -m benchmarks.quality page"
    assert summary.CELLS.stat().st_size + summary.FACTS.stat().st_size < 400_000
    assert json.loads(summary.FACTS.read_text())["sets"]


def test_the_figure_has_three_panels(results):
    loss, harm, time = parts["figure"].draw(results)
    (line,) = [line for line in harm.lines if line.get_label() == "_auto"]
    assert list(line.get_ydata()) == [25.0]
    (line,) = [line for line in time.lines if line.get_label() == "_auto"]
    assert list(line.get_ydata()) == [0.75]
    assert "SMS" in loss.get_ylabel()
