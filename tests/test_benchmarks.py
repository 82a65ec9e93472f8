"""The benchmarks' arithmetic and words; times and scores are made up, but for the slow test."""

import copy
import doctest
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from mcllo import CALIBRATORS, MCLLOCalibrator
from mcllo._utils.parallel import threads

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1])
)  # benchmarks are not installed
NAMES = (
    "figures",
    "machine",
    "methods",
    "pages",
    "quality",
    "race",
    "sets",
    "speed",
    "targets",
)
NAMES += ("versus",)
part = {name: importlib.import_module(f"benchmarks.{name}") for name in NAMES}
figures, machine, methods, pages, quality, race, sets, speed, targets, versus = (
    part.values()
)
Case = quality.Case


def test_examples_in_docstrings():
    for name, module in part.items():
        found = doctest.testmod(module)
        assert found.attempted > 0, name
        assert found.failed == 0, name


@pytest.mark.slow
def test_pages_and_figures_are_what_the_stored_results_say():
    facts = {"performance": pages.speed_facts(machine.read(machine.LATEST))}
    facts["quality"] = pages.quality_facts(quality.latest())
    for name, found in facts.items():
        text = (pages.DOCS / f"{name}.md").read_text()
        assert pages.rebuilt(name, found) == text, "run: python -m benchmarks page"
    assert quality.CELLS.stat().st_size + quality.FACTS.stat().st_size < 600_000
    left, right = figures.draw_speed(machine.read(machine.LATEST))
    (ours,) = [line for line in left.get_lines() if line.get_label() == "_mcllo-1"]
    assert list(ours.get_xdata()) == [1000, 8000, 10_000, 100_000, 1_000_000]
    assert right.get_xscale() == right.get_yscale() == "log"


def test_a_quick_or_busy_or_small_run_says_so(tmp_path):
    results = machine.read(machine.LATEST)
    busy = copy.deepcopy(results) | {"quick": True}
    next(iter(busy["runs"].values()))["load_at_begin"] = [3.0, 3.0, 3.0]
    text = pages.measured("performance", pages.speed_facts(busy))
    assert "The machine was busy" in text
    assert "This is a quick run" in text
    assert "not met" not in text
    few = {key: results[key] for key in ("quick", "limit", "machine", "runs")}
    text = pages.measured("performance", pages.speed_facts(few))
    assert "### Whole fits" not in text
    assert (
        text.count("| not measured | not measured |")
        == len(targets.speed_outcomes(few))
        == 28
    )
    (tmp_path / "old.svg").touch()
    figures.write_speed(few, tmp_path / "old.svg")
    assert not (tmp_path / "old.svg").exists()


# set a: auto beats SMS, then loses; set b: SMS fails once, auto returns its input once


def scored(ll, wall=0.1):
    return {
        "ll": ll,
        "brier": ll / 2,
        "ece": 0.1,
        "cw": 0.2,
        "zero": 0,
        "wall": wall,
        "cpu": wall,
    }


LOSSES = {("a", 0): (1.0, (0.8, 0.2), (0.7, 0.1)), ("a", 1): (1.0, (0.8, 0.2), (0.9, 0.3)),
          ("b", 0): (0.5, None, (0.5, 0.1)), ("b", 1): (0.5, (0.6, 0.2), (0.55, 0.1))}  # fmt: skip
CELLS = quality.cells(
    {"set": name, "n": 100, "methods": {
        "identity": scored(base), "auto": scored(*auto),
        "sms": scored(*sms) if sms else {"failed": "ValueError: no"}}}
    for (name, _), (base, sms, auto) in LOSSES.items()
)  # fmt: skip
GATED = [{"kl": 0.0, "moved": 0.0, "wall": 0.1}, {"kl": 0.002, "moved": 0.1, "wall": 0.1},
         {"failed": "no"}]  # fmt: skip
KNOWN = {"origin": "here", "model": "none", "n": 500, "c": 3, "zeros": 0.0}
VIEW = quality.View(CELLS, {
    "machine": {"cpu": "A processor", "cores": 2, "versions": {"mcllo": "0.1", "netcal": None}},
    "workers": 2, "date": "2026-01-01 10:00 UTC", "missing": {"dirichletcal": "not installed"},
    "sets": {name: KNOWN | {"source": name, "used": name == "b"} for name in "ab"},
    "harmless": quality.harmless_rows(
        {"set": "soccer", "n": 100, "methods": {"auto-gate": g}} for g in GATED)})  # fmt: skip


def test_cells_average_pairs_count_and_come_back_from_their_file(tmp_path):
    a, b = VIEW.of("auto")
    assert (a["d_sms"], a["ratio"], a["d_ll"]) == pytest.approx((0.0, 1.0, -0.2))
    assert (a["pairs"], a["wins"], a["ties"], a["worse"]) == (2, 1, 0, 0)
    assert (b["cases"], b["pairs"], b["paired"], b["worse"]) == (
        2,
        1,
        2,
        1,
    )  # SMS ran once
    assert b["worst"] == pytest.approx(0.05)  # returning the input is not worse
    assert (VIEW.of("sms")[1]["failed"], VIEW.of("sms")[1]["reason"]) == (
        1,
        "ValueError: no",
    )
    shares = (
        VIEW.wins("auto", 100),
        VIEW.worse("auto", 100),
        VIEW.total_ratio("auto", 100),
    )
    assert shares == pytest.approx(
        (0.75, 0.25, 0.75)
    )  # (1/2 + 1/1) / 2; (0/2 + 1/2) / 2; 0.3/0.4
    assert {row["set"] for row in VIEW.group("new").rows} == {"a"}
    one, two = (tmp_path / f"{name}.csv.gz" for name in ("one", "two"))
    quality.write_cells(one, CELLS)
    quality.write_cells(two, quality.read(one))
    assert one.read_bytes() == two.read_bytes()


def test_claims_and_page_say_what_was_measured():
    found = targets.quality_outcomes(VIEW)
    words = {name: found[f"{name}_all"].measured for name in ("lower", "wins", "time")}
    assert words == {
        "lower": "-0.0250 at 100",
        "wins": "75 % at 100",
        "time": "0.75 times at 100",
    }
    assert (found["lower_all"].met, found["wins_new"].met) == (
        True,
        False,
    )  # 1 of 2 is not 60 %
    assert found["harm_all"].verdict == "**not met**"
    assert "25 % of cases" in found["harm_all"].measured
    assert "changed 50 % of 2 data sets" in found["gate"].measured
    (simulated,) = VIEW.facts["harmless"]
    counts = [
        simulated[key] for key in ("repetitions", "failed", "changed", "kl", "kl_max")
    ]
    assert counts == [2, 1, 1, 0.001, 0.002]
    nothing = targets.quality_outcomes(quality.View([], {"sets": {}}))
    assert {outcome.verdict for outcome in nothing.values()} == {"not measured"}
    text = pages.measured("quality", pages.quality_facts(VIEW))
    for said in ("2 of 20 seeds were run", "| all sets | 100 | 2 | -0.0250 [",
                 "| sets used while designing | 100 | 1 | -0.0500 |",
                 "50 %; 0.001 (0.002)",
                 "| probmetrics SMS | 1 of 4 | `ValueError: no` | 0 |",
                 "Not there: dirichletcal (not installed)."):  # fmt: skip
        assert said in text
    _, harm, wall = figures.draw_quality(VIEW)
    drawn = [list(line.get_ydata()) for ax in (harm, wall) for line in ax.lines
             if line.get_label() == "_auto"]  # fmt: skip
    assert drawn == [[25.0], [0.75]]


def in_two_classes(n=1000):
    """Return the view above with a set of two classes that is in the tables of its part alone."""
    facts = VIEW.facts["sets"] | {
        "t": KNOWN | {"c": 2, "source": "t", "used": False, "part": "two"}
    }
    records = [{"set": "t", "n": n, "absent": 1, "methods": {
        "identity": scored(1.0), "auto": scored(0.5), "venn-abers": scored(0.6),
        "mcllo-fixed": scored(0.4)}}]  # fmt: skip
    copies = [{"set": "t", "n": 200, "methods": {
        "identity": scored(1.0), "auto": scored(0.5), "auto-copied": scored(1.25)}}]  # fmt: skip
    rows = [*VIEW.rows, *quality.cells(records)]
    absent = quality.absent_rows(records, facts)
    more = {"sets": facts, "absent": absent, "copies": quality.shifted_rows(copies)}
    return quality.View(rows, VIEW.facts | more)


def test_sets_of_a_part_have_tables_of_their_own_alone():
    text = pages.measured("quality", pages.quality_facts(in_two_classes()))
    assert "### Two classes\n\n1 sets from 1 data sets" in text
    for said in (
        "| 1000 | mcllo auto | 1 | 1 | -0.50 | 50.0 % |  | 0 % | 100 ms |",
        "| 1000 | venn-abers Venn-Abers | 1 | 1 | -0.40 | 40.0 % | -0.1000 | 0 % | 100 ms |",
        "| mcllo MCLLO, penalty=1 | 1 | 1 | 1.0 | 0.500 | 0.400 | +0.1000 | +0.1000 | 100 % |",
        "| mcllo auto | 1 | -0.50 | 0 % | -0.50 | +0.25 | 100 % | +0.25 |",
    ):
        assert said in text
    assert (
        "### All methods, 1000 rows" not in text
    )  # the tables of all sets leave it out
    assert "- 2 sets from 2 data sets" in text
    without = pages.measured("quality", pages.quality_facts(VIEW))
    for title in (
        "Two classes",
        "Hundreds of classes",
        "Many rows",
        "Copies of rows",
        "that no row",
    ):
        assert title not in without
    share = pages.measured("quality", pages.quality_facts(VIEW)).partition(
        "| share removed |"
    )[2]
    (line,) = [line for line in share.splitlines() if line.startswith("| mcllo auto |")]
    assert line.split(" | ")[2] == "7.5 %"  # (0.2 / 1.0 - 0.025 / 0.5) / 2


def test_a_part_names_its_sizes_and_known_methods():
    for sizes, seeds, names in quality.PARTS.values():
        assert sizes
        assert seeds >= 1
        assert set(names) <= {*methods.QUALITY, *methods.LARGE}
        assert "identity" in names
    assert {source.part for source in sets.SOURCES} == {"", *quality.PARTS}
    plan = quality.planned_by_part(
        {"b": {"n": 126_000, "part": "large"}}, [3000, 100_000], 9
    )
    seeds = quality.PARTS["large"][1]
    assert plan == [Case("b", 100_000, seed) for seed in range(seeds)]


def test_copies_are_of_the_rows_to_learn_from(small, monkeypatch):
    seen = {}

    def fit(name, probs, y):
        seen[name] = {tuple(row) for row in probs}, len(y)
        return lambda rows: rows

    for name in ("auto", "auto-copied"):
        made = methods.Method(name, "", lambda probs, y, name=name: fit(name, probs, y))
        monkeypatch.setitem(methods.METHODS, name, made)
    quality.run(Case("small", 100, 0), ["auto", "auto-copied"], "copies")
    rows, n = seen["auto"]
    copied, drawn = seen["auto-copied"]
    assert (n, drawn, len(rows)) == (100, 800, 100)
    assert copied <= rows
    assert len(copied) > 90  # (1 - 1/100)^800 leaves out 0.03 rows of 100


def test_two_files_are_compared_case_by_case():
    facts = {name: {"source": name, "c": c} for name, c in (("a", 2), ("b", 20))}

    def of(**losses):
        return {
            Case(name, 100, seed): {
                "methods": {"identity": {"ll": 1.0}, "auto": {"ll": ll}}
            }
            for name, values in losses.items()
            for seed, ll in enumerate(values)
        }

    before, after = (
        of(a=[0.8, 1.2], b=[0.9]),
        of(a=[0.6, 1.2], b=[1.1, 0.3]),
    )  # b, 1: after alone
    pairs = versus.paired(before, after, "auto", "auto")
    found = versus.compared(pairs, facts, {Case("b", 100, 0)})
    whole, main, two, many, lacking = found
    titles = ["all", "tables of all sets", "2", "16 to 50", "lacking in the rows"]
    assert [row["classes"] for row in found] == titles
    assert lacking["after less before"] == many["after less before"]
    assert main | {"classes": "all"} == whole
    assert (whole["sets"], whole["cases"], two["cases"]) == (2, 3, 2)
    assert two["after less before"] == "-0.10"  # (-0.2 + 0) / 2
    assert many["after less before"] == "+0.20"
    assert whole["after less before"].startswith("+0.0500 [")
    assert (whole["harm before"], whole["harm after"]) == (
        "25 %",
        "75 %",
    )  # sets count once
    assert (whole["better"], whole["worse"], whole["at worst"]) == (
        "33 %",
        "33 %",
        "+0.20",
    )


def test_the_plain_program_fits_the_same_model():
    probs, y = sets.predictions(600, 4, seed=1)
    ours, plain = (
        MCLLOCalibrator().fit(probs, y).fit_,
        methods.METHODS["scipy-bfgs"].fit(probs, y),
    )
    assert plain.found["nll"] == pytest.approx(-ours.log_likelihood, abs=1e-6)
    assert plain.found["se"] == pytest.approx(ours.se_tau[0], rel=1e-4)
    for way in (methods.apply_softmax, methods.apply_powers):
        np.testing.assert_allclose(
            way(ours.theta, probs), ours.recalibrate(probs), atol=1e-12
        )


@pytest.fixture
def small(tmp_path, monkeypatch):
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=260)
    y = sets.drawn_labels(probs, np.random.default_rng(1))
    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    sets.load.cache_clear()
    sources = (
        sets.Source("small", "here", lambda: (probs, y)),
        sets.Source("gone", "", _absent),
    )
    monkeypatch.setattr(sets, "SOURCES", sources)
    assert sets.build(say=lambda _: None) == {
        "gone": "ImportError: No module named 'river'"
    }
    return probs, y


def _absent(*_):
    raise ImportError("No module named 'river'")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", ["mcllo", "scikit-learn", "probmetrics", "netcal"])
def test_methods_run_where_they_are_installed(package, small):
    if package in ("probmetrics", "netcal"):
        pytest.importorskip(
            package, reason=f"{package} is an optional peer of the benchmark"
        )
    names = [
        k for k, method in methods.QUALITY.items() if method.package in ("", package)
    ]
    found = quality.run(Case("small", 150, 0), names)["methods"]
    assert (set(found), [k for k in names if "failed" in found[k]]) == (set(names), [])
    (probs, y), (_, judge) = small, quality.draw(Case("small", 150, 0), 260)
    plain = -np.log(probs[judge, y[judge]]).mean()
    assert found["identity"]["ll"] == pytest.approx(plain, rel=1e-12)
    moved = quality.run(Case("small", 150, 0), ["mcllo"], kind="harmless")["methods"][
        "mcllo"
    ]
    assert moved["kl"] > 0.0
    assert moved["moved"] > quality.MOVED


def test_peers_may_be_missing_and_ours_may_not(monkeypatch):
    for package in ("elsewhere", "mcllo"):
        monkeypatch.setitem(
            methods.METHODS, package, methods.Method("", package, _absent)
        )
    assert methods.warm_up(["elsewhere"]) == {"elsewhere": "No module named 'river'"}
    with pytest.raises(ImportError, match="river"):
        methods.warm_up(["mcllo"])
    with pytest.raises(SystemExit):
        speed.options(["--only", "8000by10"])


@pytest.mark.parametrize("name", ["venn-abers", "splinecalib", "betacal"])
def test_peers_of_two_classes_may_be_missing(name, monkeypatch):
    monkeypatch.setitem(
        sys.modules, name.replace("-", "_"), None
    )  # importing raises ImportError
    assert set(methods.warm_up([name])) == {name}
    assert methods.METHODS[name].most_classes == 2


def test_an_option_that_a_revision_does_not_have_is_missing(monkeypatch):
    monkeypatch.setitem(CALIBRATORS, "auto", CALIBRATORS["temperature"])
    why = "auto of this revision has no option flexible"
    assert methods.warm_up(["auto-flexible"]) == {"auto-flexible": why}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["venn-abers", "splinecalib", "betacal"])
def test_peers_of_two_classes_recalibration_where_they_are_installed(name):
    pytest.importorskip(name.replace("-", "_"), reason=f"{name} is an optional peer")
    probs, y = sets.predictions(600, 2, seed=2)
    new, truth = sets.predictions(4000, 2, seed=3)
    found = methods.METHODS[name].fit(probs, y)(new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    before, after = (quality.scores(p, truth)["ll"] for p in (new, found))
    assert after < before + 0.02


@pytest.mark.parametrize(
    ("form", "package"), [("form-torch", "torch"), ("form-onnx", "onnx")]
)
def test_a_form_whose_package_is_not_there_is_missing_and_no_failure(
    form, package, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)  # importing it raises ImportError
    assert set(methods.warm_up([form])) == {form}


@pytest.mark.parametrize(
    "found", [lambda r: r[:, :2], lambda r: r * np.nan, lambda r: r["no"]]
)
def test_what_goes_wrong_is_recorded(found):
    probs, y = np.full((4, 3), 1 / 3), np.array([0, 1, 2, 0])
    assert set(quality.attempt(lambda *_: found, (probs, y), probs, dict)) == {"failed"}


@pytest.mark.parametrize("name", ["mcllo-1", "apply-mcllo-1", "pass"])
def test_a_worker_answers_whatever_goes_wrong(name, tmp_path):
    speed.rows("60x7-forest").write(tmp_path)
    one = race.Worker(name)
    assert "error" in one.answer("load nowhere")
    assert "error" in one.answer("nonsense")
    with threads(None):
        assert one.answer(f"load {tmp_path}\n") == {"ready": True}
        found = one.answer("run\n")
    assert found["seconds"] >= 0.0
    assert ("nll" in found) == (name == "mcllo-1")


@pytest.mark.slow
def test_the_numpy_kernel_has_its_own_process_where_there_is_c(monkeypatch):
    names = ["pass", "pass-numpy"]
    monkeypatch.setattr(methods, "kernel_name", lambda: "NumPy")
    assert methods.runnable(names) == ["pass"]
    monkeypatch.setattr(methods, "kernel_name", lambda: "C")
    assert methods.runnable(names) == names
    with race.Race() as one:
        found = one.run(speed.rows("40x3-calibrated"), ["exact-1-numpy"], 1, 1.0, 60.0)
    assert 0.0 < found["exact-1-numpy"]["pvalue"] <= 1.0


def test_a_part_measured_alone_joins_the_others_of_the_same_machine(
    tmp_path, monkeypatch
):
    def run(name, begun):
        load = {
            "load_at_begin": [0.2] * 3,
            "load_start": [0.2] * 3,
            "load_end": [1.0] * 3,
        }
        return {name: load | {"begun": begun, "date": begun, "date_end": begun}}

    large, path = speed.LARGE, tmp_path / "latest.json"
    runs = run("study", "first") | run("fits 9x3", "first") | run("fits 8x3", "second")
    old = {"machine": {"kernel": "C"}, "runs": runs | run(f"parquet {large}", "first")}
    old |= {"fits": {"9x3": {}}, "parquet": {large: {}, "9x3": {}}}
    machine.write(path, old)
    some, whole = speed.options(["--only", "study"]), speed.options([])
    assert speed.kept(some, path, {"kernel": "C"})["fits"] == {"9x3": {}}
    found = speed.kept(whole, path, {"kernel": "C"})
    assert ("fits" in found, found["parquet"], list(found["runs"])) == (
        False, {large: {}}, [f"parquet {large}"])  # fmt: skip
    assert speed.kept(whole, path, {"kernel": "NumPy"})["runs"] == {}
    with pytest.raises(SystemExit, match="another machine, kernel or versions"):
        speed.kept(some, path, {"kernel": "NumPy"})
    first, second = pages._runs(runs)
    assert (first["what"], second["what"]) == ("study, fits 9x3", "fits 8x3")


@pytest.mark.slow
def test_a_quick_run_of_every_part(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "QUICK", tmp_path / "quick.json")
    others = "limits,passes,exact,apply,forms,study,shell,parquet"
    found = speed.main(["--quick", "--only", f"60x3,132x7-forest,{others}"])
    for name in ("fits", "passes", "exact", "apply", "forms", "shell", "parquet"):
        records = [record for part in found[name].values() for record in part.values()]
        assert {record["status"] for record in records} <= {"ok", "missing"}
    text = pages.measured("performance", pages.speed_facts(found))
    for title in re.findall(
        r"(?m)^### [\w ]+", (pages.HERE / "performance.md").read_text()
    ):
        assert title in text
    assert "not measured" not in text.replace("| not measured | not measured |", "")
