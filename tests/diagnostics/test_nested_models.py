"""`nested_models`: its models against hand calculations and VGAM (R), its choice, and what it
says.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from approval import check_text, sections
from independent import draw, sample, simplex
from scipy.stats import chi2
from shared_data import load_hpc_cv, load_soccer_538
from toy import TOY_X, TOY_Y

from mcllo import Predictions, calibration_test, nested_models
from mcllo._diagnostics.class_tests import closed_test
from mcllo._diagnostics.nested_models import (
    INSIDE,
    UNTOLD,
    FittedNestedModels,
    closed_testing_pvalues,
    describe_kind,
    fit_nested_models,
    free_directions_by_model,
    nested_models_rows,
)
from mcllo._diagnostics.restricted_models import (
    Family,
    PValuePlan,
    RestrictedFit,
    nested_lr_statistic,
    pvalue_of_identity,
    restricted_fit,
)
from mcllo._fit.fit import fit_predictions
from mcllo._inference.hypothesis_test import Reason, TestResult
from mcllo._inference.likelihood_tests import run_test
from mcllo.exceptions import SeparationWarning

TOY = Predictions.from_arrays(TOY_X, np.array(["a", "b", "c"])[TOY_Y])
NESTED_MODELS = nested_models(TOY, method="chi2")

MODELS = ("identity", "temperature", "shift", "scale", "common_slope", "mcllo", "full")


def test_toy():
    # methods specification 8f, TOY: negative log likelihoods, and lambda against the identity
    rows = NESTED_MODELS.rows
    reached = [
        12.6033816017,
        12.302730003,
        12.460926236,
        12.298153121,
        12.138374571,
        12.030275892,
    ]
    expected = [
        0.0,
        0.601303196,
        0.284910732,
        0.610456962,
        0.930014060,
        1.146211420,
        1.410980507,
    ]
    assert [row.model for row in rows] == list(MODELS)
    assert [-row.log_likelihood for row in rows] == pytest.approx(
        [*reached, 11.897891348], abs=2e-9
    )
    assert [row.statistic for row in rows] == pytest.approx(expected, abs=5e-9)
    assert [row.df for row in rows] == [0, 1, 2, 2, 3, 4, 6]
    assert (rows[0].statistic, rows[0].pvalue) == (0.0, 1.0)
    for row in rows[1:]:
        assert row.pvalue == pytest.approx(chi2.sf(row.statistic, row.df), rel=1e-9)
    # "df full vs model" there: 2c-3, c-1, c-1, c-2; MCLLO against full (c-1)(c-2)
    assert [row.larger_df for row in rows] == [4, 3, 2, 2, 1, 2, 0]


def test_a_fit_and_a_test_made_already_are_used():
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    fit, test = (
        fit_predictions(p),
        calibration_test(p, method="exact", n_resamples=49, seed=9),
    )
    found = fit_nested_models(p, fit, test=test, n_resamples=99, seed=3)
    assert (
        found.row("mcllo").pvalue == found.row("identity").larger_pvalue == test.pvalue
    )
    score = calibration_test(
        p, statistic="score", method="exact", n_resamples=49, seed=9
    )
    again = fit_nested_models(
        p, fit, test=score, n_resamples=99, seed=3
    )  # not a likelihood ratio
    assert again.row("mcllo").n_resamples != 49
    assert (
        again.to_dict() == nested_models(TOY_X, TOY_Y, n_resamples=99, seed=3).to_dict()
    )


def test_results_as_dict_frame_and_text():
    found = NESTED_MODELS
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"model", "df", "statistic", "pvalue", "aic", "bic"} <= set(
        content["rows"][0]
    )
    assert content["rows"][6]["larger_pvalue"] is None
    assert found.to_frame()["model"].tolist() == list(MODELS)
    assert found.table["df"] == [row.df for row in found.rows]
    assert str(found).splitlines()[0] == found.sentence


@pytest.mark.slow
def test_size_of_the_exact_p_values():
    # H0 true: each p-value is at most 0.1 in about a tenth of 120 samples (binomial sd .027)
    rng = np.random.default_rng(11)
    probs = simplex(rng, 30, 3, 2.0)
    found = []
    for k in range(120):
        p = Predictions.from_arrays(probs, draw(probs, rng), classes=[0, 1, 2])
        found.append(nested_models_pvalues(p, seed=1000 + k))
    share = (np.array(found) <= 0.1).mean(axis=0)
    assert (np.abs(share - 0.1) < 0.08).all(), share


def nested_models_pvalues(predictions, seed):
    """Exact p-values of the identity against the models up to MCLLO, without the rest."""
    family = Family(predictions)
    plan = PValuePlan.from_predictions(
        predictions, method="exact", n_resamples=39, seed=seed, n_tests=8
    )
    bases = free_directions_by_model(2)
    null = restricted_fit(family, bases.pop("identity"))
    values = {
        m: nested_lr_statistic(null, restricted_fit(family, basis))
        for m, basis in bases.items()
    }
    return [
        pvalue_of_identity(plan, family, bases[m], value).pvalue
        for m, value in values.items()
    ]


def models_of(probs, y, **options):
    p = Predictions.from_arrays(probs, y, **options)
    return FittedNestedModels(p, fit_predictions(p))


def test_the_lattice_is_closed_under_intersection():
    # what two hypotheses have in common must be a hypothesis of the family: closed testing needs it
    below = {name: {name, *INSIDE[name]} for name in MODELS}
    for a in MODELS:
        for b in MODELS:
            common = below[a] & below[b]
            largest = max(common, key=lambda name: len(below[name]))
            assert below[largest] == common


def test_inside_says_what_the_directions_say():
    bases = free_directions_by_model(3)
    for model in MODELS[:-1]:
        for other in MODELS[:-1]:
            both = np.hstack([bases[model], bases[other]])
            rank = np.linalg.matrix_rank(both) if both.size else 0
            contained = bases[other].size == 0 or rank == bases[model].shape[1]
            assert contained == (other == model or other in INSIDE[model]), (
                model,
                other,
            )


def test_models_without_a_baseline():
    # methods specification 8f: shift, common slope and temperature are invariant; so is full
    fits = [models_of(TOY_X, TOY_Y, baseline=b).fits for b in range(3)]
    for model in ("temperature", "shift", "common_slope", "full"):
        reached = {round(own[model].log_likelihood, 8) for own in fits}
        assert len(reached) == 1, model


def test_for_two_classes_models_coincide():
    probs = TOY_X[:, :2] / TOY_X[:, :2].sum(axis=1, keepdims=True)
    found = nested_models(probs, TOY_Y % 2, n_resamples=99, seed=0)
    assert (
        found.row("common_slope").larger_pvalue
        == found.row("mcllo").larger_pvalue
        == 1.0
    )
    fits = models_of(probs, TOY_Y % 2).fits
    assert fits["scale"].log_likelihood == pytest.approx(
        fits["temperature"].log_likelihood
    )
    for model in ("common_slope", "full"):
        assert fits[model].df == fits["mcllo"].df == 2
        assert fits[model].log_likelihood == pytest.approx(fits["mcllo"].log_likelihood)


def test_the_full_map_is_left_out_with_a_reason():
    few = nested_models(TOY_X[:6], [0, 1, 2, 1, 2, 0], method="chi2")
    assert "(the full map is left out: 6 parameters for 6 rows)" in str(few)
    assert few.row("mcllo").larger is None
    models = models_of(*sample(1200, 31, 0), classes=list(range(31)))
    assert "more than 30 classes" in models.skipped
    assert "full" not in models.fits
    p = Predictions.from_arrays(
        TOY_X, TOY_Y
    )  # 16 rows x 6^2 = 576 products at 200 a cell
    assert (
        "too much data" in FittedNestedModels(p, fit_predictions(p), work=2.0).skipped
    )
    assert FittedNestedModels(p, fit_predictions(p), work=3.0).skipped == ""


def rows_of(alpha, y=TOY_Y, method="chi2"):
    p = Predictions.from_arrays(TOY_X, y)
    fit = fit_predictions(p)
    plan = PValuePlan.from_predictions(
        p, method=method, n_resamples=99, seed=0, n_tests=10
    )
    test = run_test(p, fit, method=method, n_resamples=99, seed=0)
    return {
        r.model: r
        for r in nested_models_rows(FittedNestedModels(p, fit), plan, test, alpha)
    }


def test_statistics_add_up_along_the_nested_models():
    rows = rows_of(0.05)
    for name in ("identity", "temperature", "shift", "scale", "common_slope"):
        total = rows[name].statistic + rows[name].larger_statistic
        assert total == pytest.approx(rows["mcllo"].statistic, abs=1e-9)
        assert rows[name].df + rows[name].larger_df == rows["mcllo"].df
    assert rows["mcllo"].larger == "full"


@pytest.mark.parametrize("alpha", [0.05, 0.7, 0.95])
def test_rejections_are_those_of_closed_testing(alpha):
    # TOY chi-square p-values lie between .64 and .91, so these levels reject none, some and most
    # models below MCLLO leave a fifth of the level to MCLLO's test against the full map (p = .877)
    rows = rows_of(alpha)
    own = {name: row.larger_pvalue for name, row in rows.items()}
    local = {
        name: p <= 0.8 * alpha or own["mcllo"] <= 0.2 * alpha for name, p in own.items()
    }
    local |= {name: own[name] <= alpha for name in ("identity", "mcllo", "full")}
    for name, row in rows.items():
        assert row.rejected == (
            local[name] and all(local[part] for part in INSIDE[name])
        )
    assert not rows["full"].rejected


def test_chi_square_p_values_are_there_whatever_the_method():
    chi2, exact = rows_of(0.05), rows_of(0.05, method="exact")
    for name, row in exact.items():
        for column in ("chi2_pvalue", "larger_chi2_pvalue"):
            assert getattr(row, column) == pytest.approx(
                getattr(chi2[name], column), nan_ok=True
            )


def climbed(chosen, theta=(0.1, 0.7, 0.5, 0.5), kept=(), **top):
    """The nested models when `chosen`, all that holds it and `kept` survive; `top` is MCLLO's
    row.
    """
    order = [row.model for row in NESTED_MODELS.rows]
    rows = [
        replace(
            row,
            rejected=order.index(row.model) < order.index(chosen)
            and row.model not in kept,
            aic=10.0 * (row.model != chosen),
            bic=10.0 * (row.model != chosen),
            **(top if row.model == "mcllo" else {}),
        )
        for row in NESTED_MODELS.rows
    ]
    kind = describe_kind(
        chosen, RestrictedFit(np.array(theta), -1.0, np.eye(4), True), TOY
    )
    return replace(NESTED_MODELS, rows=tuple(rows), chosen=chosen, kind=kind)


def better(found, **best):
    """The nested models with AIC and BIC smallest at other models."""
    rows = [
        replace(
            row, **{name: -10.0 for name, model in best.items() if model == row.model}
        )
        for row in found.rows
    ]
    return replace(found, rows=tuple(rows))


COSTLY = {"larger_too_costly": True, "larger_pvalue": 0.4}
SAID = {
    "no departure": climbed("identity"),
    "overconfident": climbed("temperature", (0, 0, 0.5, 0.5)),
    "underconfident": climbed("temperature", (0, 0, 1.5, 1.5)),
    "wrong way": climbed("temperature", (0, 0, -0.5, -0.5)),
    "shifted": climbed("shift", (0.1, np.log(2), 1, 1)),
    "shifted, or extreme": climbed("shift", kept=("temperature",)),
    "slopes": climbed("scale", (0, 0, 0.4, 2)),
    "shifts and a slope": climbed("common_slope", (0.1, -0.7, 0.5, 0.5)),
    "shifts and slopes": climbed("mcllo", (0.1, -0.7, 0.5, 2)),
    "the full map": climbed("full", (0,)),
    "the full map above one temperature": replace(
        climbed("full", larger_pvalue=0.001), simple="temperature"
    ),
    "the full map, a bound": climbed(
        "full", larger_pvalue=2e-20, larger_method="bound"
    ),
    "separated": replace(climbed("temperature"), separated=True, kind=UNTOLD),
    "AIC against it": better(climbed("temperature"), aic="common_slope"),
    "AIC and BIC against it": better(
        climbed("scale"), aic="temperature", bic="temperature"
    ),
    "AIC and BIC disagree": better(climbed("shift"), aic="full", bic="temperature"),
    "weak evidence": climbed("mcllo", **COSTLY),
    "a bound is not weak": climbed("mcllo", larger_method="bound", **COSTLY),
}


def test_what_is_said_of_each_choice(approve):
    lines = {
        name: "\n".join(map(str, found.statements())) for name, found in SAID.items()
    }
    check_text("nested_models.txt", sections(lines), approve)


def test_the_full_map_belongs_to_the_closed_test():
    # temperature is not rejected against MCLLO, but MCLLO is against the full map
    def found(temperature, full, **tail):
        local = {
            "identity": 0.001,
            "temperature": temperature,
            "shift": 0.001,
            "scale": 0.001,
        }
        local |= {"common_slope": 0.001, "mcllo": full}
        above = {k: TestResult(1.0, 1, p, "exact") for k, p in local.items()}
        above["mcllo"] = TestResult(1.0, 1, full, **({"method": "exact"} | tail))
        return closed_test(closed_testing_pvalues(above), INSIDE, 0.05)

    assert not found(0.3, 0.02)["mcllo"]  # not said: 0.02 is above a fifth of the level
    assert all(found(0.3, 0.01).values())
    assert not found(0.045, 0.5)["temperature"]  # four fifths of the level are left
    assert found(0.04, 0.5)["temperature"]
    assert found(0.04, 0.04)["mcllo"]  # nothing below stands: MCLLO has the whole level
    costly = Reason("few_errors", 1.0, ("full_map",))
    assert not found(0.3, 1e-9, method="chi2", why=costly)["mcllo"]  # not to be trusted
    assert found(0.045, 1e-9, method="chi2", why=costly)[
        "temperature"
    ]  # and so takes no share


def test_no_kind_is_named_where_labels_are_separated():
    # users: twelve rows, separated, "one temperature is enough ... (slope -504)"
    rng = np.random.default_rng(3)
    probs = rng.dirichlet([1, 1, 1], size=12)
    with pytest.warns(SeparationWarning):
        found = nested_models(probs, probs.argmin(axis=1), n_resamples=99, seed=0)
    assert found.separated
    assert found.statements()[0].text == UNTOLD
    assert found.statements()[0].level == "doubt"
    assert all("enough" not in said.text for said in found.statements())


VGAM = json.loads(
    (Path(__file__).parents[1] / "reference" / "vgam_nested_models.json").read_text()
)["sets"]
LOADERS = {
    "toy": lambda: Predictions.from_arrays(TOY_X, TOY_Y),
    "hpc_cv": load_hpc_cv,
    "soccer_538": load_soccer_538,
}


@pytest.fixture(scope="module", params=LOADERS)
def fitted(request):
    predictions = LOADERS[request.param]()
    return VGAM[request.param], FittedNestedModels(
        predictions, fit_predictions(predictions)
    ).fits


def free_part(model, theta):
    """Return what is estimated in a model, of all shifts and slopes."""
    k = len(theta) // 2
    return {
        "temperature": theta[-1:],
        "shift": theta[:k],
        "scale": theta[k:],
        "common_slope": np.append(theta[:k], theta[-1]),
        "mcllo": theta,
    }[model]


def test_likelihoods_and_estimates_are_those_of_vgam(fitted):
    reference, fits = fitted
    for model in MODELS[1:]:
        expected = reference[model]["log_likelihood"]
        assert fits[model].log_likelihood == pytest.approx(
            expected, rel=1e-11, abs=1e-9
        ), model
    for model in MODELS[1:-1]:
        ours = free_part(model, fits[model].theta)
        expected = np.array(reference[model]["coefficients"])
        # VGAM stops at 1e-7 here
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-7, err_msg=model)


def test_words_are_printed_and_keys_are_kept_for_machines():
    text = str(NESTED_MODELS)
    assert "shifts and one slope" in text
    assert "common_slope" not in text
    assert tuple(row["model"] for row in NESTED_MODELS.to_dict()["rows"]) == MODELS
    assert tuple(row.model for row in NESTED_MODELS.rows) == MODELS
