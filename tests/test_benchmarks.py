"""The benchmarks' arithmetic and words; nothing is timed here, all times are made up."""

import copy
import doctest
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from mcllo._fit.fit.fit import fit_predictions

from mcllo import Predictions

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed


def part(name):
    return importlib.import_module(f"benchmarks.{name}")


fits, page, plain, real, results = map(part, ("fits", "page", "plain", "real", "results"))
run, study, tables, targets = map(part, ("run", "study", "tables", "targets"))
words, worker, figure = map(part, ("words", "worker", "figure"))
bound, predictions = part("limits").bound, part("data").predictions


def timed(*seconds, **found):
    return {"status": "ok", "seconds": list(seconds), **found}


LIMITS = {"exp64": 1.0, "exp32": 0.5, "log64": 2.0, "gemm64": 81.0, "gemm32": 160.0}
LIMITS |= {"gram": 20.0, "read": 8.0}
LOAD = {
    "load_at_begin": [0.1, 0.2, 0.3],
    "load_start": [0.1, 0.2, 0.3],
    "load_end": [1.0, 1.0, 0.5],
}
RESULTS = {
    "quick": False,
    "limit": 300.0,
    "machine": {
        "cpu": "A processor",
        "vector unit": "avx2",
        "cores": 2,
        "memory_gb": 16.0,
        "system": "Linux x86_64",
        "blas": "openblas 0.3",
        "blas_threads": 1,
        "versions": {"mcllo": "0.1", "numpy": "2.0", "netcal": None},
    },
    "runs": {"fits": {"date": "2026-01-01 10:00 UTC", "date_end": "2026-01-01 11:00 UTC", **LOAD}},
    "limits": LIMITS,
    "fits": {
        "132x7": {"mcllo": timed(0.001, 0.001, 0.003), "mcllo-1": timed(0.001, nll=10.0)},
        "8000x10": {
            "mcllo-1": timed(0.004, 0.004, 0.005, nll=100.0, steps=5),
            "mcllo": timed(0.005, nll=100.0, steps=5),
            "sklearn-temperature": timed(0.012, 0.010, 0.030),
            "r-analytic": timed(0.4, nll=100.25),
            "r-numeric": {"status": "over", "limit": 300.0, "seconds": []},
            "netcal-temperature": {"status": "missing", "reason": "netcal", "seconds": []},
        },
        "100000x10": {"mcllo-1": timed(0.06, nll=5.0, steps=5)},
        "10000x10": {"mcllo-1": timed(0.006, nll=5.0, steps=5)},
        "10000x100": {"mcllo-1": timed(0.1, nll=5.0, steps=7)},
    },
    "apply": {
        "rows": 4_000_000,
        "records": {
            "apply-mcllo": timed(0.2),
            "apply-mcllo-1": timed(0.4),
            "apply-softmax": timed(1.0),
        },
    },
    "study": {
        "cells": {"500": {"mcllo": [0.002], "bfgs": [0.02]}},
        "processes": 2,
        "gain": 1.5,
    },
    "parquet": {
        "rows": 10_000_000,
        "classes": 10,
        "file_mb": 400.0,
        "passes": 5,
        "fit": timed(12.0, peak_mb=400.0),
        "pass": timed(2.0, peak_mb=300.0),
    },
    "real": {
        "digits": {
            "learn": 900,
            "judge": 1800,
            "classes": 10,
            "methods": {
                "untouched": timed(1e-5, log_loss=0.5, difference=0.1, se=0.01),
                "mcllo-1": timed(0.004, log_loss=0.4, difference=0.0, se=0.0),
            },
        },
        "elsewhere": {"missing": True},
    },
}


def judged(demand, found=RESULTS, work="8000 x 10"):
    matching = [t for t in targets.TARGETS if t.work == work and demand in t.demand]
    (target,) = matching
    return target.judge(found)


# numbers


@pytest.mark.parametrize("name", ["words", "limits", "real", "figure", "sections"])
def test_examples_in_docstrings(name):
    found = doctest.testmod(part(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_quartiles_of_five_and_of_one():
    # sorted 1 2 3 4 9: the quartiles of five numbers are the second and the fourth
    assert results.quartiles([9.0, 1.0, 3.0, 2.0, 4.0]) == (2.0, 4.0)
    assert results.quartiles([7.0]) == (7.0, 7.0)


def test_ratio_of_medians_bounds_and_unknown():
    records = RESULTS["fits"]["8000x10"]
    assert results.ratio(records, "mcllo-1", "sklearn-temperature") == (3.0, False)  # 12 / 4
    assert results.ratio(records, "mcllo-1", "r-numeric") == (75_000.0, True)  # 300 / 0.004
    assert results.ratio(records, "mcllo-1", "netcal-temperature") == (None, False)
    assert results.ratio(records, "mcllo-1", "absent") == (None, False)


def test_rounding_keeps_likelihoods_and_drops_what_is_no_number():
    given = {"nll": 12356.736982715385, "seconds": [0.123456789], "pvalue": float("nan")}
    expected = {"nll": 12356.7369827, "seconds": [0.123457], "pvalue": None}
    assert results.rounded(given) == expected


def test_results_come_back_from_their_file(tmp_path):
    path = tmp_path / "deep" / "results.json"
    assert results.read(path) == {}
    results.write(path, RESULTS)
    assert results.read(path) == results.rounded(RESULTS)
    assert [p.name for p in path.parent.iterdir()] == ["results.json"]


def test_study_is_scaled_by_rows_of_the_nearest_n():
    # sizes 400 450 500 600 1000 5000 sum to 7950 rows; 5000 repetitions each of 0.002 s / 500 rows
    ours, loop = study.whole(RESULTS["study"])
    assert ours == pytest.approx(7950 / 500 * 0.002 * 5000)
    assert loop == pytest.approx(10 * ours)


def test_expected_time_comes_from_the_largest_smaller_table():
    done = {
        "1000x10": {"slow": timed(1.0), "over": timed(1.0), "gone": timed(1.0)},
        "8000x10": {
            "slow": timed(10.0),
            "over": {"status": "over", "limit": 30.0, "seconds": []},
            "gone": {"status": "failed", "seconds": []},
            "skipped": {"status": "skipped", "expected": 80.0, "seconds": []},
        },
    }
    found = {
        name: fits.expected(done, name, "80000x10") for name in ("slow", "over", "gone", "skipped")
    }
    assert found == {"slow": 100.0, "over": 300.0, "gone": 80.0, "skipped": 800.0}
    assert fits.expected(done, "slow", "80000x20") is None


# tables and models


def test_a_table_comes_back_from_its_files(tmp_path):
    probs, y = predictions(20, 3)
    rows = tables.read(tables.write(tmp_path, probs[:15], y[:15], (probs[15:], y[15:])))
    np.testing.assert_array_equal(rows.probs, probs[:15])
    np.testing.assert_array_equal(rows.held_probs, probs[15:])
    np.testing.assert_array_equal(np.append(rows.y, rows.held_y), y)


def test_the_plain_program_fits_the_same_model():
    probs, y = predictions(600, 4, seed=1)
    ours = fit_predictions(Predictions.from_arrays(probs, y))
    theirs = plain.fit(probs, y, "BFGS")
    assert theirs["nll"] == pytest.approx(-ours.log_likelihood, abs=1e-6)
    assert theirs["se"] == pytest.approx(ours.se_tau[0], rel=1e-4)
    for way in (plain.apply_softmax, plain.apply_powers):
        np.testing.assert_allclose(way(ours.theta, probs), ours.recalibrate(probs), atol=1e-12)


def test_row_losses_divide_rows_by_their_sum_and_never_are_infinite():
    losses = worker.row_losses(np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([0, 1]))
    np.testing.assert_allclose(losses, [np.log(2.0), -np.log(1e-15)])


def test_halves_judge_every_row_once():
    probs, y = predictions(11, 3)
    splits = real.halves(probs, y)
    judged_rows = np.concatenate([split[2] for split in splits])
    np.testing.assert_array_equal(np.sort(judged_rows, axis=0), np.sort(probs, axis=0))
    assert not {tuple(r) for r in splits[0][0]} & {tuple(r) for r in splits[0][2]}


@pytest.mark.parametrize(
    ("line", "key"), [("load nowhere", "error"), ("run", "error"), ("nonsense", "error")]
)
def test_a_worker_answers_whatever_goes_wrong(line, key):
    assert key in worker.answer(worker.Worker("untouched"), line)


def test_a_worker_loads_runs_and_scores(tmp_path):
    probs, y = predictions(40, 3)
    tables.write(tmp_path, probs[:30], y[:30], (probs[30:], y[30:]))
    w = worker.Worker("untouched")
    assert worker.answer(w, f"load {tmp_path}\n") == {"ready": True}
    assert worker.answer(w, "run\n")["seconds"] >= 0.0
    score = worker.answer(w, f"score {tmp_path / 'losses.bin'}\n")
    own = -np.log(probs[np.arange(30, 40), y[30:]])
    assert score["log_loss"] == pytest.approx(own.mean())
    np.testing.assert_allclose(np.fromfile(tmp_path / "losses.bin"), own)


# targets


def test_a_target_that_is_missed_says_by_how_much():
    outcome = judged("4 times as fast as scikit")  # 12 / 5 = 2.4 of 4 times: short by 1.67
    assert outcome.measured == "2.4 times (one thread 3.0)"
    assert outcome.verdict == "**not met**, by a factor of 1.67"


def test_a_target_that_is_met():
    assert judged("R with the gradient").verdict == "met"  # 0.4 / 0.005 = 80 times
    assert judged("2 ms", work="132 x 7").verdict == "met"


def test_a_peer_over_its_limit_is_a_lower_bound():
    outcome = judged("at least 500")
    assert outcome.measured == "at least 60,000 times (one thread 75,000)"  # 300 / 0.005
    assert outcome.verdict == "met"
    slow = copy.deepcopy(RESULTS)
    slow["fits"]["8000x10"]["r-numeric"]["limit"] = 1.0  # 200 times at least, of 500
    assert judged("at least 500", slow).verdict.startswith("not decided")


def test_the_bound_counts_passes():
    # 0.06 s / 100,000 rows / 5 passes = 120 ns = 5 x 24; own bound 9 + 2 + 4 + 9 = 24
    outcome = judged("bound", work="100k x 10")
    assert bound(LIMITS, 9) == 24.0
    assert outcome.margin == pytest.approx(1.0)
    assert "120 ns a row and pass (5 passes); 5.0 times this machine's 24 ns" in outcome.measured


def test_apply_study_and_parquet():
    apply = judged("plain NumPy", work="apply, 10M x 10")
    assert apply.measured == "5.0 times (one thread 2.5), on 4M rows"
    assert judged("BFGS loop", work="study, 30,000 repetitions").margin == pytest.approx(1.5)
    parquet = judged("passes", work="Parquet, 100M x 10")  # 12 / (5 x 2) = 1.2
    assert parquet.margin == pytest.approx(1.25)
    assert parquet.measured == "1.2 times: 12 s, 5 passes of 2.0 s, on 10M rows"


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda t: f"{t.work}: {t.demand}")
def test_what_was_not_measured_is_said(target):
    outcome = target.judge({})
    assert outcome.margin is None
    assert outcome.verdict == "not measured"


# page and figure


def test_the_page_is_written_between_its_markers():
    text = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    once = page.rebuilt(text, RESULTS)
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert "old" not in once
    assert page.rebuilt(once, RESULTS) == once
    with pytest.raises(ValueError, match="must hold"):
        page.rebuilt("no markers", RESULTS)


def test_the_page_names_machine_versions_load_and_what_is_missing():
    text = page.measured(RESULTS)
    for words_ in ("A processor (avx2), 2 processors, 16 GB", "numpy 2.0", "Not installed: netcal"):
        assert words_ in text
    assert "load average 0.10 at the start, 1.00 at the end" in text
    assert "| MCLLO by R optim, as in the paper |" in text
    assert "over 300 s" in text
    assert "0.25 below the best (MCLLO by R optim, analytic gradient, 8000 x 10)" in text
    assert "| as predicted | 0.5000 ± 0.0100 |" in text
    assert "Not for quoting" not in text


def test_a_quick_run_or_a_busy_machine_is_not_for_quoting():
    busy = copy.deepcopy(RESULTS)
    busy["runs"]["fits"]["load_at_begin"] = [3.0, 3.0, 3.0]
    assert "busy" in page.measured(busy)
    text = page.measured(RESULTS | {"quick": True})
    assert "Not for quoting" in text
    assert "not met" not in text


def test_a_run_of_few_parts_still_makes_a_page():
    some = {key: RESULTS[key] for key in ("quick", "limit", "machine", "runs")} | {"fits": {}}
    assert "### Whole fits" not in page.measured(some)


def test_the_page_in_docs_is_what_the_results_say():
    if not results.LATEST.exists():
        pytest.skip("no full run is recorded in benchmarks/results/latest.json")
    text = page.PAGE.read_text()
    found = page.rebuilt(text, results.read(results.LATEST))
    assert found == text, "run: python -m benchmarks page"


def test_the_figure_draws_medians_of_the_methods_that_were_timed(tmp_path):
    left, right = figure.draw(RESULTS)
    lines = {line.get_label(): line for line in left.get_lines()}
    ours = lines["_mcllo-1"]
    np.testing.assert_allclose(ours.get_xdata(), [8000, 10_000, 100_000])
    np.testing.assert_allclose(ours.get_ydata(), [0.004, 0.006, 0.06])
    assert (left.get_xscale(), left.get_yscale(), right.get_xscale()) == ("log", "log", "log")
    figure.write(RESULTS, tmp_path / "figure.svg")
    assert "Time against classes" in (tmp_path / "figure.svg").read_text()


def test_one_point_makes_no_figure(tmp_path):
    fits = {size: RESULTS["fits"][size] for size in list(RESULTS["fits"])[:1]}
    few, path = RESULTS | {"fits": fits}, tmp_path / "figure.svg"
    path.write_text("of an earlier run")
    figure.write(few, path)
    assert not path.exists()
    assert "No figure" in page.measured(few)
    assert "performance.svg" in page.measured(RESULTS)


# command line


def test_only_takes_sizes_and_parts(capsys):
    assert run.options(["--only", "8000x10, apply"]).parts == ["8000x10", "apply"]
    quick = run.options(["--quick"])
    assert (quick.limit, quick.rounds) == (20.0, 1)
    with pytest.raises(SystemExit):
        run.options(["--only", "8000by10"])
    assert "got 8000by10" in capsys.readouterr().err


def test_cells_say_why_there_is_no_time():
    assert words.cell({"status": "failed", "reason": "x", "seconds": []}) == "failed"
    assert words.cell({"status": "missing", "reason": "x", "seconds": []}) == "not installed"
