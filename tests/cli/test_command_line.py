"""The command line itself: its start, help, completion, what is checked before any work."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from inputs import csv_text

import mcllo
from mcllo.__main__ import run_command_line

LABEL = ["--label", "y"]
MEGABYTE = 1024 if sys.platform == "linux" else 1024**2


@pytest.fixture
def good(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(csv_text(200))
    return "good.csv"


def said(capsys, *arguments):
    capsys.readouterr()
    code = run_command_line(list(arguments))
    return code, *capsys.readouterr()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs resource")
def test_help_takes_little_memory():
    # a process of its own, whose child's peak is measured; 26 MB when this was written
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'mcllo', '--help'], check=True, "
        "stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) / MEGABYTE < 60


def completed(words, place):
    env = {
        "COMP_WORDS": words,
        "COMP_CWORD": str(place),
        "_MCLLO_COMPLETE": "complete_bash",
    }
    line = [sys.executable, "-c", "from mcllo.__main__ import main; main()"]
    done = subprocess.run(
        line, env=os.environ | env, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def test_a_shell_completes_verbs_options_and_values():
    assert "--positive" in completed("mcllo assess f.csv --po", 3)
    assert completed("mcllo fit f.csv --method te", 4) == ["temperature"]


def test_what_completion_offers_is_what_there_is():
    from mcllo._apps.cli.options import RECALIBRATIONS

    assert set(RECALIBRATIONS.split()) == set(mcllo.CALIBRATORS)


def test_help_is_a_verb(capsys):
    for verb in ([], ["assess"]):
        asked = said(capsys, "help", *verb)
        assert asked == said(capsys, *verb, "--help")
        assert asked[0] == 0


def test_outputs_are_checked_before_any_work(good, capsys):
    # there is no input: whoever reads first would say so
    for line in (
        "assess nothing.csv --label y --html report.pdf",
        "assess nothing.csv --label y --html nowhere/report.html",
        "compare nothing.csv --label y --html report.txt",
        "fit nothing.csv --label y -o model.csv",
        "fit nothing.csv --label y -o nowhere/model.json",
        "plot nothing.csv --label y -o figure.doc",
        "plot nothing.csv --label y -o nowhere/figure.svg",
        "plot nothing.csv --label y -o figure.svg --kind pie",
        "apply nothing.json nothing.csv -o out.xls",
        "apply nothing.json nothing.csv -o nowhere/out.csv",
    ):
        code, out, err = said(capsys, *line.split())
        assert (code, out) == (2, ""), line
        assert "no such file" not in err, line


TWO_VERBS = """
import sys, time
from mcllo.__main__ import run_command_line

class SlowDisk:
    def find_spec(self, name, path=None, target=None):
        time.sleep(0.05 if name.startswith("matplotlib.") else 0.0)

sys.meta_path.insert(0, SlowDisk())
first = ["assess", sys.argv[1], "--label", "y", "--seed", "1"]
assert run_command_line(first) == 0
assert run_command_line([*first, "--html", sys.argv[2]]) == 0
"""


@pytest.mark.slow
def test_a_report_waits_for_what_a_thread_loads(good, tmp_path):
    # once the first verb has imported all but matplotlib, rows are ready before a slow disk is: the
    # main thread then met a half-loaded matplotlib (AttributeError, exit code 70)
    page = tmp_path / "report.html"
    call = [sys.executable, "-c", TWO_VERBS, str(good), str(page)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert page.exists()


def test_compare_of_one_file_cross_validates_and_says_so(good, capsys):
    line = [
        "compare",
        good,
        *LABEL,
        "--methods",
        "temperature",
        "--seed",
        "1",
        "--json",
    ]
    code, out, err = said(capsys, *line)
    assert code == 0
    assert err == "mcllo: note: no HOLDOUT: good.csv is judged by 5 folds.\n"
    assert json.loads(out)["cross_validated"] is True
    code, asked, err = said(capsys, *line, "--cv", "5")
    assert (code, err) == (0, "")
    assert settled(asked) == settled(out)


def test_compare_takes_the_papers_p_values_and_a_number_of_draws(good, capsys):
    line = ["compare", good, *LABEL, "--methods", "temperature", "--seed", "1"]
    code, out, _ = said(capsys, *line, "--method", "chi2")
    assert code == 0
    heads = next(x for x in out.splitlines() if x.startswith("method"))
    assert heads.split()[:5] == ["method", "n", "statistic", "df", "p"]
    code, out, _ = said(capsys, *line, "--method", "exact", "--draws", "9", "--json")
    pvalues = [row["pvalue"] for row in json.loads(out)["rows"]]
    assert code == 0
    # 9 draws: multiples of a tenth
    assert [round(10 * p, 9) % 1 for p in pvalues] == [0.0] * len(pvalues)
    code, _, err = said(capsys, *line, "--method", "chisq")
    assert code == 2
    assert "--method must be 'auto', 'chi2'" in err


def settled(text):
    content = json.loads(text)
    for row in content["rows"]:
        row["fit_seconds"] = 0.0
    return content


def test_the_report_of_the_command_line_advises_what_was_typed(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    honest = rng.dirichlet([1.0, 1.0, 1.0], size=600)
    codes = (honest.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    sharp = honest**3 / (honest**3).sum(axis=1, keepdims=True)
    lines = ["p_a,p_b,p_c,out come"]
    lines += [
        f"{x},{y},{z},{'abc'[k]}" for (x, y, z), k in zip(sharp, codes, strict=True)
    ]
    (tmp_path / "my rows.csv").write_text("\n".join(lines) + "\n")
    flags = ["--label", "out come", "--prefix", "p_", "--normalize"]
    read = "--label 'out come' --prefix p_ --normalize"
    assert (
        run_command_line(
            ["assess", "my rows.csv", *flags, "--seed", "1", "--html", "r.md"]
        )
        == 0
    )
    page = (tmp_path / "r.md").read_text()
    assert (
        f"mcllo compare 'my rows.csv' {read} --cv 5 --html recalibrations.html" in page
    )
    assert "mcllo.compare(" not in page
    compare = [
        "compare",
        "my rows.csv",
        *flags,
        "--methods",
        "temperature",
        "--html",
        "c.md",
    ]
    assert run_command_line(compare) == 0
    page = (tmp_path / "c.md").read_text()
    assert f"mcllo fit 'my rows.csv' {read} --method temperature -o model.json" in page
    assert (
        "mcllo apply model.json NEW.csv --prefix p_ --normalize -o recalibrated.csv"
        in page
    )
    # in Python, Python
    page = mcllo.report(mcllo.assess(sharp, codes, seed=1)).markdown()
    assert "mcllo.compare((probs, y), cv=5)" in page


# ---- the gain of a map on rows left out


def test_fit_prints_the_gain_on_rows_left_out_or_warns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = mcllo.simulate.draw(60, n_classes=4, distribution="dirichlet", seed=4)
    many = mcllo.simulate.draw(
        900, n_classes=3, gamma=0.5, distribution="dirichlet", seed=1
    )
    from mcllo._apps.cli.demo import write_predictions_csv

    write_predictions_csv(tmp_path / "few.csv", few)
    write_predictions_csv(tmp_path / "many.csv", many)
    line = ["--label", "class", "-o", "m.json"]
    mcllo_line = [*line, "--method", "mcllo"]
    code, out, err = said(capsys, "fit", "many.csv", *mcllo_line)
    assert (code, err) == (0, "")
    assert "On rows that it was not fitted to (5 folds) it lowers log loss by 0." in out
    assert out.endswith("expected to help.\n")
    code, out, err = said(capsys, "fit", "few.csv", *mcllo_line, "--json")
    assert code == 0
    assert err.startswith(
        "mcllo: warning: On rows that it was not fitted to (5 folds) it raises"
    )
    assert "Use --method auto" in err
    found = json.loads(out)["held_out"]
    assert found["gain"] < 0
    # auto knows its own gain
    out = said(capsys, "fit", "few.csv", *line, "--json")[1]
    assert json.loads(out)["held_out"] is None


def test_the_gain_by_hand():
    from mcllo._comparison.methods import (
        N_FOLDS,
        SEED,
        assign_random_folds,
        estimate_held_out_gain,
    )

    rows = mcllo.simulate.draw(
        200, n_classes=3, gamma=0.6, distribution="dirichlet", seed=3
    )
    folds = assign_random_folds(200, N_FOLDS, SEED)
    total = 0.0
    for fold in range(N_FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        made = mcllo.MCLLOCalibrator(penalty=1.0).fit(rows.take(inside))
        y = rows.codes[outside]
        after = made.predict_proba(rows.probs[outside])[np.arange(len(y)), y]
        total += float(np.log(after / rows.probs[outside, y]).sum())
    found = estimate_held_out_gain(mcllo.MCLLOCalibrator(penalty=1.0), rows)
    assert found.gain == pytest.approx(total / 200, rel=1e-9)
    assert found.low < found.gain < found.high


@pytest.mark.slow
def test_few_rows_of_calibrated_predictions_are_warned_of():
    # every recalibration does harm here: a row more or less of a hundred decides which sign folds
    # see
    from mcllo._comparison.methods import estimate_held_out_gain

    kinds = []
    for seed in range(60):
        rows = mcllo.simulate.draw(
            100, n_classes=4, distribution="dirichlet", seed=seed
        )
        kinds.append(estimate_held_out_gain(mcllo.MCLLOCalibrator(), rows).kind)
    assert kinds.count("harms") >= 50
    assert kinds.count("helps") <= 1


# ---- how many rows a power takes


@pytest.mark.parametrize("noncentrality", [0.3, 0.0007])
def test_the_solver_finds_the_n_of_a_known_curve(noncentrality):
    # rates of 20,000 repetitions without noise; the answer by scipy.stats' own distribution
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    from mcllo.simulate._study import solve_for_sample_size

    critical = chi2.ppf(0.95, 6)

    def rejected(n):
        return round(20_000 * ncx2.sf(critical, 6, noncentrality * n)), 20_000

    right = brentq(lambda n: ncx2.sf(critical, 6, noncentrality * n) - 0.8, 1, 1e6)
    found = solve_for_sample_size(rejected, 6, 0.8, 0.05)
    assert found.n == pytest.approx(right, rel=0.03)
    assert found.low <= right * 1.02
    assert found.high >= right * 0.98
    assert not found.extrapolated


def test_what_is_too_large_to_simulate_is_extrapolated():
    from scipy.stats import chi2, ncx2

    from mcllo.simulate._study import MAX_ROWS, solve_for_sample_size

    sizes = []

    def rejected(n):
        sizes.append(n)
        return round(20_000 * ncx2.sf(chi2.ppf(0.95, 6), 6, 1e-6 * n)), 20_000

    found = solve_for_sample_size(rejected, 6, 0.8, 0.05)
    assert max(sizes) <= MAX_ROWS
    assert found.extrapolated
    assert "extrapolation" in str(found)
    assert 0.5 < found.n / 13.6e6 < 2.0  # ncx2.sf(chi2.ppf(.95, 6), 6, 13.6) = 0.80


@pytest.mark.slow
def test_power_solves_for_n(good, capsys):
    line = [
        "power",
        good,
        *LABEL,
        "--gamma",
        "0.5",
        "--power",
        "0.8",
        "--reps",
        "100",
        "--seed",
    ]
    code, out, _ = said(capsys, *line, "1", "--json")
    assert code == 0
    found = json.loads(out)
    needed = found["needed"]
    assert needed["low"] < needed["n"] < needed["high"]
    assert said(capsys, *line, "1")[1].endswith(")." + "\n")
    # that many rows have that power, by a study of its own
    check = mcllo.simulate.power_for(
        mcllo.read_predictions(good, label="y"),
        gamma=0.5,
        n_samples=needed["n"],
        reps=300,
        seed=7,
    )
    assert 0.7 < check.rows[0].power < 0.9


def test_the_papers_design_is_solved_too(capsys):
    line = ["power", "--power", "0.5", "--delta1", "1.4", "--reps", "60", "--seed", "1"]
    code, out, _ = said(capsys, *line)
    assert code == 0
    assert "A power of 50 % takes about" in out
    assert "needs one --delta1" in said(capsys, "power", "--power", "0.5")[2]


@pytest.mark.newest  # older versions of Typer refuse in words of their own
@pytest.mark.parametrize(
    ("option", "word", "rule"),
    [
        ("--seed", "abc", "a whole number"),
        ("--seed", "1.5", "a whole number"),
        ("--alpha", "x", "a number"),
    ],
)
def test_what_is_no_number_is_refused_in_our_words(good, capsys, option, word, rule):
    code, out, err = said(capsys, "assess", good, *LABEL, option, word)
    assert (code, out) == (2, "")
    assert f"'{option}': it must be {rule}; got '{word}'. See" in err
    assert "Input should" not in err
