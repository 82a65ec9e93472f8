"""`mcllo.simulate`, by public names."""

import json
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from inputs import case
from toy import TOY_X

from mcllo import MCLLOMap, Predictions, calibration_test, simulate
from mcllo.exceptions import InputError

SMALL = {"n_classes": 3, "reps": 6, "seed": 1}


ARRAYS = ("pvalues", "pvalues_chi2", "ece_before", "ece_after")


def same(study, other):
    """Whether two studies have the same cells, to the last digit."""
    assert [(a.n, a.delta_1) for a in study.rows] == [
        (b.n, b.delta_1) for b in other.rows
    ]
    return all(
        (getattr(a, name) == getattr(b, name)).all()
        for a, b in zip(study.rows, other.rows, strict=True)
        for name in ARRAYS
    )


def test_by_default_a_draw_is_calibrated():
    p = simulate.draw(5000, seed=3)
    assert (p.classes, p.baseline, p.n_clipped) == (tuple(range(10)), 9, 0)
    # under H0 a p-value below .001 comes once in a thousand seeds; the seed is fixed
    assert calibration_test(p, method="chi2").pvalue > 0.001
    assert (
        calibration_test(simulate.draw(5000, delta=1, gamma=1, seed=3)).pvalue > 0.001
    )


def test_a_draw_follows_its_parameters():
    p = simulate.draw(20_000, delta={0: 2.0}, gamma=0.7, n_classes=3, seed=4)
    truth = MCLLOMap(np.log([2.0, 1.0]), np.full(2, 0.7), (0, 1, 2), 2)
    g = p.with_probs(truth.recalibrate(p.probs))
    assert calibration_test(g, method="chi2").pvalue > 0.001
    assert calibration_test(p, method="chi2").pvalue < 1e-20


def test_draws_repeat():
    one, two = simulate.draw(50, seed=1), simulate.draw(50, seed=1)
    assert (one.probs == two.probs).all()
    assert (one.codes == two.codes).all()
    assert (one.probs != simulate.draw(50, seed=2).probs).any()
    generator = np.random.default_rng(1)
    first, second = (simulate.draw(50, seed=generator) for _ in range(2))
    assert (first.probs != second.probs).any()


def test_draws_of_every_distribution():
    assert (
        simulate.draw(30, distribution="dirichlet", concentration=0.5, seed=0).n_classes
        == 10
    )
    assert simulate.draw(
        30, distribution="softmax_normal", scale=2, n_classes=4, seed=0
    ).n_classes
    rows = simulate.draw(200, distribution=TOY_X, seed=0)
    assert rows.n_classes == 3
    assert {tuple(row) for row in rows.probs.tolist()} == {
        tuple(row) for row in TOY_X.tolist()
    }


def test_the_json_that_the_command_line_prints():
    study = simulate.power(n_samples=(30, 40), delta_1=(1.0, 1.4), **SMALL)
    rows = json.loads(json.dumps(study.to_dict()))["rows"]
    assert [(row["n"], row["delta_1"]) for row in rows] == list(
        product((30, 40), (1.0, 1.4))
    )
    assert all(0.0 <= row["low"] <= row["power"] <= row["high"] <= 1.0 for row in rows)
    # a setting does not depend on the rest of the grid
    one = simulate.power(n_samples=40, delta_1=1.4, **SMALL)
    assert (study.rows[3].pvalues == one.rows[0].pvalues).all()
    assert (study.rows[2].pvalues != one.rows[0].pvalues).all()


@pytest.mark.slow
def test_two_workers_give_the_same_study():
    # the second n takes several batches
    grid = {"n_samples": (50, 3000), "delta_1": (1.0, 1.4), "reps": 15, "seed": 2}
    assert same(simulate.power(**grid, n_jobs=1), simulate.power(**grid, n_jobs=2))


def test_a_stopped_study_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "study.json"
    grid = {"n_samples": (30, 40), "delta_1": (1.0, 1.4), **SMALL}
    whole = simulate.power(**grid)
    run_cells, ran, stop_after = simulate.run_cells, [], {2}

    def counted(plan, cells, n_jobs):
        for cell, numbers in run_cells(plan, cells, n_jobs):
            if len(ran) in stop_after:
                raise KeyboardInterrupt
            ran.append((cell.n, cell.delta_1))
            yield cell, numbers

    monkeypatch.setattr(simulate, "run_cells", counted)
    with pytest.raises(KeyboardInterrupt):
        simulate.power(**grid, resume=path)
    stop_after.clear()
    assert same(simulate.power(**grid, resume=path), whole)
    assert ran == list(product((30, 40), (1.0, 1.4)))  # none of them twice
    del grid["seed"]  # taken from the file
    assert same(simulate.power(**grid, resume=path), whole)
    assert len(ran) == 4


def test_a_file_of_another_study_is_refused(tmp_path):
    path, study = tmp_path / "study.json", {"n_samples": 30, "delta_1": 1.0, **SMALL}
    options = study | {"exact": True, "n_resamples": 19, "resume": path}
    simulate.power(**options)
    text = path.read_text()
    for name, change in (
        ("reps", {"reps": 7}),
        ("seed", {"seed": 2}),
        ("test", {"exact": False}),
        ("n_resamples", {"n_resamples": 39}),
        ("n_classes", {"n_classes": 4}),
    ):
        with pytest.raises(
            InputError, match=rf"holds a study with {name}=.*this one has {name}="
        ):
            simulate.power(**options | change)
    assert path.read_text() == text
    wider = simulate.power(**options | {"delta_1": (1.0, 1.2), "alpha": 0.1})
    assert len(wider.rows) == 2


def test_exact_p_values_stand_beside_chi_square():
    options = {"n_samples": 40, "delta_1": 1.3, **SMALL}
    exact = simulate.power(exact=True, n_resamples=99, **options)
    plain = simulate.power(**options)
    assert (exact.test, plain.test) == ("exact", "chi2")
    (cell,), (other,) = exact.rows, plain.rows
    assert all(getattr(cell, name).shape == (6,) for name in ARRAYS)
    assert ((other.pvalues > 0.0) & (other.pvalues <= 1.0)).all()
    assert (other.pvalues == other.pvalues_chi2).all()
    assert (other.pvalues == cell.pvalues_chi2).all()
    assert (other.pvalues != cell.pvalues).any()
    assert cell.pvalues.min() >= 0.01


def test_planning_from_ones_own_rows():
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 300)
    study = simulate.power_for(probs, gamma=0.5, n_samples=(100, 400), reps=40, seed=0)
    assert study.test == "auto"
    assert study.rows[0].power < study.rows[1].power
    assert study.smallest_n(0.9) == 400
    assert study.effect.gamma.tolist() == [0.5, 0.5]
    again = simulate.power_for(probs, gamma=[0.5, 0.5], n_samples=400, reps=40, seed=0)
    assert (again.rows[0].pvalues == study.rows[1].pvalues).all()


def test_planning_by_label_with_any_baseline():
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 100)
    y = np.array(["cat", "dog", "owl"])[np.arange(100) % 3]
    table = Predictions.from_arrays(probs, y, baseline="cat")
    options = {"delta": {"owl": 3.0}, "n_samples": 60, "reps": 5, "seed": 0}
    given = simulate.power_for(table, **options)
    arrays = simulate.power_for(
        probs, classes=["cat", "dog", "owl"], baseline="cat", **options
    )
    assert same(given, arrays)
    assert given.effect.delta == pytest.approx([1.0, 3.0])
    assert "delta 3.00 for owl (baseline cat)" in str(given)


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_rows_with_zeros_are_judged_by_exact_p_values():
    probs = np.random.default_rng(0).dirichlet([1, 1], 4000)
    probs[0] = [1.0, 0.0]
    study = simulate.power_for(
        probs[:50], delta=1, n_samples=3000, reps=2, n_resamples=19, seed=0
    )
    assert (study.rows[0].pvalues != study.rows[0].pvalues_chi2).all()
    clean = simulate.power_for(probs[1:51], delta=1, n_samples=3000, reps=2, seed=0)
    assert (clean.rows[0].pvalues == clean.rows[0].pvalues_chi2).all()


def test_callers_arrays_are_left_alone():
    probs = np.array(TOY_X)
    simulate.power_for(probs, gamma=0.5, n_samples=30, reps=2, seed=0)
    simulate.draw(20, distribution=probs, seed=0)
    assert (probs == TOY_X).all()
    assert probs.flags.writeable


@pytest.mark.slow
def test_power_is_near_our_first_run():
    # methods.md 7, our run: 500 repetitions at n = 400, 300 at n = 1000
    first = {
        400: (500, [0.068, 0.054, 0.140, 0.244, 0.428]),
        1000: (300, [0.040, 0.090, 0.320, 0.593, 0.893]),
    }
    study = simulate.power(n_samples=(400, 1000), reps=250, seed=20)
    for cell in study.rows:
        reps, rates = first[cell.n]
        rate = rates[[1.0, 1.1, 1.2, 1.3, 1.4].index(cell.delta_1)]
        pooled = (rate * reps + cell.power * cell.reps) / (reps + cell.reps)
        error = np.sqrt(pooled * (1.0 - pooled) * (1.0 / reps + 1.0 / cell.reps))
        assert abs(cell.power - rate) < 3.3 * error, (
            cell
        )  # 10 cells: .01 in all by chance


@pytest.mark.slow
def test_ece_is_near_our_first_run():
    # methods.md 7, our run: mean ECE(X) / ECE(X*) at n = 5000, 60 repetitions, three decimals
    first = {1.0: (0.034, 0.035), 1.2: (0.043, 0.034), 1.4: (0.061, 0.036)}
    study = simulate.power(n_samples=5000, delta_1=tuple(first), reps=60, seed=21)
    for cell in study.rows:
        for values, mean in zip(
            (cell.ece_before, cell.ece_after), first[cell.delta_1], strict=True
        ):
            error = values.std() * np.sqrt(2.0 / 60.0)
            assert abs(values.mean() - mean) < 3.3 * error + 0.0005, cell
    assert study.rows[-1].power == 1.0


@pytest.mark.slow
def test_a_script_that_does_not_guard_its_workers_is_told_so(tmp_path):
    script = tmp_path / "study.py"
    script.write_text(
        "from mcllo import simulate\n"
        "simulate.power(n_samples=20, delta_1=1, n_classes=3, reps=2, seed=0, n_jobs=2)\n"
    )
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 1
    assert "InputError: n_jobs=2 needs processes" in run.stderr
    assert "if __name__ == '__main__':" in run.stderr.splitlines()[-1]


LEAST = {"draw": {"n_samples": 5}, "power": {}, "power_for": {"probs": TOY_X}}
DIRICHLET, LOGITS = {"distribution": "dirichlet"}, {"distribution": "softmax_normal"}
REFUSED = [
    (
        "draw",
        {"n_samples": 0},
        "n_samples must be a whole number >= 1; got n_samples=0",
    ),
    ("draw", {"distribution": "uniform"}, "distribution 'uniform' is not known"),
    ("draw", {"distribution": "dirichlet_heavi"}, "did you mean 'dirichlet_heavy'"),
    ("draw", {"n_classes": 1}, "n_classes must be a whole number >= 2"),
    ("draw", {"distribution": TOY_X, "scale": 2}, "belong to named distributions"),
    (
        "draw",
        {**DIRICHLET, "concentration": 0},
        "concentration must be positive and finite",
    ),
    ("draw", {**DIRICHLET, "scale": 2}, "scale= belongs to .*'softmax_normal'"),
    ("draw", {**LOGITS, "scale": [1, 2]}, "scale must be one number; got"),
    ("draw", {"delta": 0.0}, "delta must be positive and finite; got delta=0.0"),
    (
        "draw",
        {"delta": [1, 2, 3], "n_classes": 3},
        "delta must be one number or 2 of them",
    ),
    ("draw", {"delta": "x"}, "delta must hold numbers; got values such as 'x'"),
    ("draw", {"gamma": np.nan}, "gamma must be finite"),
    ("draw", {"seed": -1}, "seed must be a whole number >= 0"),
    ("power", {"reps": 0}, "reps must be a whole number >= 1"),
    ("power", {"alpha": 1.0}, r"alpha must lie in \(0, 1\); got alpha=1.0"),
    ("power", {"alpha": "5%"}, r"alpha must lie in \(0, 1\)"),
    ("power", {"n_resamples": 0}, "n_resamples must be at least 1"),
    ("power", {"n_jobs": 0}, "n_jobs must be a whole number >= 1"),
    ("power", {"n_samples": [400, 400]}, "n_samples must be distinct"),
    ("power", {"n_samples": "400"}, "n_samples must be a whole number"),
    ("power", {"delta_1": [1.0, -1.0]}, "delta_1 must be positive and finite"),
    ("power", {"delta_1": []}, "delta_1 must be distinct"),
    ("power_for", {}, "must know how wrong the predictions are"),
    ("power_for", {"gamma": {3: 1}}, "a label of gamma=3 is not a class"),
    ("power_for", {"delta": {2: 1}}, "delta must not name the baseline 2"),
    (
        "power_for",
        {"gamma": 1, "probs": TOY_X[:, :2]},
        "each row of probs must sum to 1",
    ),
    (
        "power_for",
        {"gamma": 1, "classes": ["a", "b"]},
        "must name each of the 3 columns",
    ),
    ("power_for", {"gamma": 1, "baseline": 7}, "baseline=7 is not a class"),
]


def test_wrong_arguments_are_refused():
    for name, options, message in REFUSED:
        with case((name, options)), pytest.raises(InputError, match=message):
            getattr(simulate, name)(**LEAST[name] | options)
