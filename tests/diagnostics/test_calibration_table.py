"""Intercepts and slopes as papers print them: against VGAM, logistic regression and profiles."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import Predictions, calibration_table, profile_intervals
from mcllo.__main__ import run_command_line
from mcllo._diagnostics.calibration_table import one_class_versus_rest
from mcllo._fit.covariance import with_robust_covariance
from mcllo._fit.fit import fit_predictions
from mcllo._utils.formatting import Table
from mcllo.exceptions import InputError

VGAM = json.loads(
    (Path(__file__).parents[1] / "reference" / "vgam_nested_models.json").read_text()
)


def estimates(found, model, parameter):
    return [
        row["estimate"]
        for row in found.parameters.rows()
        if (row["model"], row["parameter"]) == (model, parameter)
    ]


def sample(n=400, c=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(c), n)
    y = (rng.random((n, 1)) > x.cumsum(axis=1)[:, :-1]).sum(axis=1)
    sharp = x**1.4
    return sharp / sharp.sum(axis=1, keepdims=True), y


def test_estimates_are_those_of_vgam():
    found, toy = calibration_table(TOY_X, TOY_Y, seed=0), VGAM["sets"]["toy"]
    for model, parameters in (
        ("shift", ("intercept",)),
        ("mcllo", ("intercept", "slope")),
        ("common_slope", ("intercept", "slope")),
        ("temperature", ("slope",)),
    ):
        ours = np.concatenate([estimates(found, model, name) for name in parameters])
        np.testing.assert_allclose(ours, toy[model]["coefficients"], rtol=2e-6)
    # statistics from VGAM's log likelihoods; the identity's is that of the rows themselves
    null = np.log(TOY_X[np.arange(len(TOY_Y)), TOY_Y]).sum()
    values = {name: toy[name]["log_likelihood"] for name in ("shift", "mcllo")}
    expected = [
        2 * (values["shift"] - null),
        2 * (values["mcllo"] - values["shift"]),
        2 * (values["mcllo"] - null),
    ]
    np.testing.assert_allclose(found.tests["statistic"], expected, atol=1e-7)
    assert found.tests["df"] == [2, 2, 4]


def test_standard_errors_are_those_of_a_numeric_hessian():
    x, y = sample()
    odds = np.log(x[:, :2] / x[:, 2:])

    def loss(tau, gamma):
        eta = np.column_stack([tau + gamma * odds, np.zeros(len(x))])
        return -(eta[np.arange(len(y)), y] - np.log(np.exp(eta).sum(axis=1))).sum()

    models = {
        "shift": (2, lambda b: loss(b, np.ones(2))),
        "common_slope": (3, lambda b: loss(b[:2], b[2])),
        "temperature": (1, lambda b: loss(np.zeros(2), b[0])),
        "mcllo": (4, lambda b: loss(b[:2], b[2:])),
    }
    found = calibration_table(x, y, seed=0)
    for model, (size, objective) in models.items():
        end = minimize(
            objective, np.full(size, 0.7), method="BFGS", options={"gtol": 1e-8}
        )
        step, eye = 1e-4, np.eye(size)
        hessian = np.array(
            [
                [
                    (
                        objective(end.x + step * (a + b))
                        - objective(end.x + step * (a - b))
                        - objective(end.x - step * (a - b))
                        + objective(end.x - step * (a + b))
                    )
                    / (4 * step**2)
                    for b in eye
                ]
                for a in eye
            ]
        )
        rows = [row for row in found.parameters.rows() if row["model"] == model]
        rows.sort(key=lambda row: row["parameter"])  # intercepts first
        np.testing.assert_allclose([r["estimate"] for r in rows], end.x, atol=1e-4)
        errors = np.sqrt(np.diagonal(np.linalg.inv(hessian)))
        np.testing.assert_allclose([r["se"] for r in rows], errors, rtol=1e-3)
        for row in rows:
            ends = (
                row["estimate"] - 1.959964 * row["se"],
                row["estimate"] + 1.959964 * row["se"],
            )
            assert (row["low"], row["high"]) == pytest.approx(ends)


def test_against_the_rest_is_logistic_regression():
    x, y = sample()
    found = calibration_table(x, y, versus="rest", seed=0)
    assert found.baseline is None
    for k in range(3):
        at, hit = logit(x[:, k]), y == k

        def loss(b, at=at, hit=hit):
            eta = b[0] + b[1] * at
            return (np.logaddexp(0, eta) - hit * eta).sum()

        whole = minimize(loss, [0.0, 1.0], method="BFGS").x
        shift = minimize(lambda b, loss=loss: loss([b[0], 1.0]), [0.0], method="BFGS").x
        own = [row["estimate"] for row in found.parameters.rows() if row["class"] == k]
        np.testing.assert_allclose(own, [shift[0], *whole], atol=1e-4)
    assert found.tests["class"] == [0, 1, 2]
    two = one_class_versus_rest(Predictions.from_arrays(x, y), 1)
    np.testing.assert_allclose(expit(two.log_odds[0]), x[:, 1])


@pytest.mark.parametrize("model", ["shift", "mcllo", "common_slope", "temperature"])
def test_profiles_end_where_the_likelihood_has_fallen(model):
    found = calibration_table(TOY_X, TOY_Y, interval="profile", level=0.9, seed=0)
    rows = [row for row in found.parameters.rows() if row["model"] == model]
    if model == "mcllo":
        ends = profile_intervals(TOY_X, TOY_Y, level=0.9)
        expected = np.stack([ends.tau, ends.gamma], axis=1).reshape(-1, 2)
        ours = [[row["low"], row["high"]] for row in rows]
        np.testing.assert_allclose(ours, expected, rtol=1e-3)
        return
    odds = np.log(TOY_X[:, :2] / TOY_X[:, 2:])

    def loss(b):
        tau = b[:2] if model != "temperature" else np.zeros(2)
        gamma = b[-1] if model != "shift" else 1.0
        eta = np.column_stack([tau + gamma * odds, np.zeros(len(odds))])
        return -(
            eta[np.arange(len(TOY_Y)), TOY_Y] - np.log(np.exp(eta).sum(axis=1))
        ).sum()

    best = [row["estimate"] for row in rows]
    least = loss(np.array(best))
    for k, row in enumerate(rows):
        for end in (row["low"], row["high"]):

            def held(free, k=k, end=end):
                return loss(np.insert(free, k, end))

            start = np.delete(best, k)
            value = (
                minimize(held, start, method="BFGS").fun if len(start) else held(start)
            )
            assert 2 * (value - least) == pytest.approx(2.705543, rel=1e-3)


def test_weights_are_rows():
    x, y = sample(150)
    weight = np.random.default_rng(1).integers(0, 4, 150)
    one = calibration_table(x, y, sample_weight=weight, seed=0)
    other = calibration_table(
        np.repeat(x, weight, axis=0), np.repeat(y, weight), seed=0
    )
    for name in ("estimate", "se", "pvalue", "adjusted"):
        np.testing.assert_allclose(
            one.parameters[name], other.parameters[name], rtol=1e-6
        )


def test_dependent_rows_have_robust_errors_and_no_joint_tests():
    x, y = sample(200)
    groups = np.repeat(np.arange(50), 4)
    rows = Predictions.from_arrays(x, y, groups=groups)
    found = calibration_table(rows, seed=0)
    assert found.robust
    assert len(found.tests) == 0
    fit = with_robust_covariance(rows, fit_predictions(rows))
    ours = [row["se"] for row in found.parameters.rows() if row["model"] == "mcllo"]
    np.testing.assert_allclose(
        ours, np.stack([fit.se_tau, fit.se_gamma], axis=1).ravel()
    )
    with pytest.raises(InputError, match="interval='profile' needs independent rows"):
        calibration_table(rows, interval="profile")


def test_holm_adjusts_within_intercepts_and_slopes():
    x, y = sample()
    rows = calibration_table(x, y, seed=0).parameters.rows()
    slopes = [
        row for row in rows if row["parameter"] == "slope" and row["model"] == "mcllo"
    ]
    small, large = sorted(row["pvalue"] for row in slopes)
    assert sorted(row["adjusted"] for row in slopes) == pytest.approx(
        [min(1.0, 2 * small), min(1.0, max(2 * small, large))]
    )
    common = next(
        row for row in rows if row["model"] == "common_slope" and row["class"] is None
    )
    assert common["adjusted"] == common["pvalue"]


def test_separated_and_constant_rows_have_empty_places():
    x = np.array(
        [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9]]
    )
    for interval in ("wald", "profile"):
        found = calibration_table(x, [0, 0, 0, 1, 1, 1], interval=interval, seed=0)
        assert np.isnan(estimates(found, "mcllo", "slope")).all()
        assert np.isfinite(estimates(found, "shift", "intercept")).all()
        assert found.paper["slope"] == ["-", "-", "-"]
        assert " -- " in found.to_latex()
    same = calibration_table(np.full((20, 2), [0.3, 0.7]), [0] * 8 + [1] * 12, seed=0)
    # log odds of .3 are the same in every row: only the intercept can be told
    assert np.isnan(estimates(same, "mcllo", "slope")).all()
    assert estimates(same, "shift", "intercept") == pytest.approx(
        [logit(0.4) - logit(0.3)]
    )
    assert np.isnan(estimates(same, "common_slope", "slope")).all()


def test_a_class_that_never_occurs():
    x, y = sample(100)
    y = np.where(y == 1, 0, y)
    found = calibration_table(x, y, classes=[0, 1, 2], seed=0)
    assert np.isnan(estimates(found, "shift", "intercept")).all()
    rest = calibration_table(x, y, classes=[0, 1, 2], versus="rest", seed=0)
    assert np.isnan(estimates(rest, "shift", "intercept")).tolist() == [
        False,
        True,
        False,
    ]


def test_papers_and_files(tmp_path):
    x, y = sample()
    names = np.array(["R&D", "50 %", "a_b"])
    found = calibration_table(x, names[y], classes=names, seed=0)
    text = found.to_latex(tmp_path / "table.tex", label="tab:cal")
    assert (tmp_path / "table.tex").read_text() == text
    assert r"against a\_b ($n = 400$)" in text
    assert r"R\&D & " in text
    assert r"50 \% & " in text
    assert r"\label{tab:cal}" in text
    assert text.count(r" \\") == 1 + 2 + 2
    assert r"$\chi^2_{4} = " in text
    assert r"\caption{mine}" in found.to_latex(caption="mine")
    rows = list(csv.DictReader(io.StringIO(found.to_csv(tmp_path / "table.csv"))))
    assert [float(row["estimate"]) for row in rows] == found.parameters["estimate"]
    assert (tmp_path / "table.csv").read_text() == found.to_csv()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["baseline"] == "a_b"
    assert found.to_frame().shape == (10, 9)
    assert str(found).count("\n") == 1 + 4 + 3


def test_an_assessment_has_the_same_table():
    x, y = sample()
    a = mcllo.assess(x, y, baseline=0, seed=0, n_resamples=99)
    found = a.calibration_table(level=0.9)
    assert found.baseline == 0
    same = calibration_table(x, y, baseline=0, level=0.9, seed=0, n_resamples=99)
    assert found.parameters.rows() == same.parameters.rows()
    assert a.calibration_table(versus="rest").versus == "rest"


def test_bad_options_are_refused():
    for options, words in (
        ({"versus": "all"}, "versus must be 'baseline' or 'rest'; got versus='all'"),
        (
            {"interval": "exact"},
            "interval must be 'wald' or 'profile'; got interval='exact'",
        ),
        ({"level": 2}, "level must lie in"),
    ):
        with pytest.raises(InputError, match=words):
            calibration_table(TOY_X, TOY_Y, **options)


def of_two_sizes(n):
    rng = np.random.default_rng(7)
    truth = rng.dirichlet([2.0, 1.0, 1.0], size=n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    sharp = truth**1.8 / (truth**1.8).sum(axis=1, keepdims=True)
    return mcllo.calibration_table(sharp, y, seed=0, n_resamples=199)


def test_a_simulated_pvalue_is_not_that_of_a_chi_square():
    few, many = of_two_sizes(40), of_two_sizes(3000)
    assert set(few.tests["method"]) & {"exact", "sequential", "bootstrap"}
    assert r"\chi^2" not in few.to_latex()
    assert r"$D_{4} = " in few.to_latex()
    assert "(simulated)" in few.to_latex()
    assert "(simulated)" in str(few)
    assert f"simulated with seed {few.seed}" in few.methods
    assert set(many.tests["method"]) == {"chi2"}
    assert r"$\chi^2_{4} = " in many.to_latex()
    assert "simulated" not in str(many) + many.to_latex() + many.methods
    assert "(p-values: chi-square)" in many.methods
    assert "(n = 3,000)" in many.methods
    assert "each class against 2" in many.methods


def test_tiny_pvalues_and_minus_zero():
    found = of_two_sizes(3000)
    rows = found.parameters.to_dict()
    rows["pvalue"] = [0.0] * len(rows["pvalue"])
    rows["estimate"] = [-0.001] * len(rows["estimate"])
    edge = replace(found, parameters=Table(rows))
    assert "< 1e-300" in str(edge)
    assert "0.00 (" in str(edge)
    assert "\N{MINUS SIGN}0.00 (" not in str(edge)


def test_the_table_of_a_file(tmp_path, capsys):
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([1.0, 1.0, 1.0], size=400)
    y = (truth.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    names = ["a", "b", "c"]
    lines = ["a,b,c,y"]
    for row, code in zip(truth.tolist(), y, strict=True):
        lines.append(",".join([*map(repr, row), names[code]]))
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines) + "\n")
    found = mcllo.calibration_table(truth, np.array(names)[y], seed=0)
    asked = ["table", str(file), "--label", "y", "--seed", "0"]
    assert run_command_line(asked) == 0
    assert capsys.readouterr().out == f"{found}\n\n{found.methods}\n"
    assert run_command_line([*asked, "--latex"]) == 0
    printed = capsys.readouterr().out
    assert printed == f"{found.to_latex().rstrip()}\n% {found.methods}\n"
    assert run_command_line([*asked, "--json", "--versus", "rest"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["versus"] == "rest"
    assert run_command_line([*asked, "--versus", "others"]) == 2
    assert "versus must be" in capsys.readouterr().err
