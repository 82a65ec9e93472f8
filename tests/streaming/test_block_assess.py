import json

import numpy as np
import pytest
from block_data import blocks_of, rows, same_fit, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import Assessment, Predictions, calibration_posterior
from mcllo._apps.streaming.assess_file import assess_blocks, fit_blocks
from mcllo._fit.covariance import with_robust_covariance
from mcllo._fit.fit import fit_predictions
from mcllo._utils.statements import suppress_warnings
from mcllo._validation.predictions import DataFacts
from mcllo.exceptions import ConvergenceWarning, InputError, SeparationWarning


def toy_blocks():
    return blocks_of((TOY_X, TOY_Y))


# --- fits


def test_toy_reference_values():
    # methods.md 4, TOY: the likelihood ratio statistic of fit_predictions has its own references
    expected, blocks = (
        fit_predictions(Predictions.from_arrays(TOY_X, TOY_Y)),
        toy_blocks(),
    )
    same_fit(fit_blocks(blocks), expected)
    assert blocks.n_passes == expected.n_iter  # the first pass is the first evaluation


@given(st.lists(st.integers(0, 900), max_size=6), st.booleans(), st.integers(0, 3))
@settings(deadline=None, max_examples=10)
def test_any_partition_gives_the_same_fit(at, weighted, baseline):
    parts = rows(n=900, c=4, weighted=weighted)
    p = whole(n=900, c=4, weighted=weighted, baseline=baseline)
    blocks = blocks_of(parts, at, baseline=baseline, classes=range(4))
    same_fit(fit_blocks(blocks), fit_predictions(p))


def test_many_rows():
    parts = rows(n=30_000)[:2]
    expected = fit_predictions(whole(n=30_000))
    found = fit_blocks(blocks_of(parts))
    other = fit_blocks(blocks_of(parts, (7, 11_000)))
    same_fit(other, found)
    # that Hessian is the last step's: good to 3e-7 (`_math.newton.HESSIAN_DECREMENT_RATIO`)
    np.testing.assert_allclose(
        found.cov_theta, expected.cov_theta, rtol=1e-5, atol=1e-12
    )
    assert np.abs(found.theta - expected.theta).max() < 1e-11
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-11)


@pytest.mark.parametrize("penalty", [0.5, "auto"])
def test_penalties(penalty):
    parts = rows(n=400, c=3)
    found = fit_blocks(blocks_of(parts, (150,)), penalty=penalty)
    expected = fit_predictions(whole(n=400, c=3), penalty=penalty)
    same_fit(found, expected, 1e-10 if penalty == 0.5 else 1e-6)
    assert found.penalty_rule == expected.penalty_rule


def test_constant_log_odds_fix_gamma():
    probs = np.array(
        [[0.2, 0.3, 0.5], [0.4, 0.1, 0.5], [0.2, 0.3, 0.5], [0.1, 0.4, 0.5]] * 20
    )
    probs[:, 2], probs[:, 0] = (
        probs[:, 1],
        1.0 - 2.0 * probs[:, 1],
    )  # class 1 ties the baseline
    y = np.arange(80) * 7 % 3
    p = Predictions.from_arrays(probs, y)
    found = fit_blocks(blocks_of((probs, y), (30,)))
    same_fit(found, fit_predictions(p))
    assert found.df == 3
    assert found.gamma[1] == 1.0


def test_zeros_are_said_once():
    probs, y, _ = rows(n=200, zeros=True)
    with pytest.warns(match="were clipped to 1e-06") as caught:
        found = fit_blocks(blocks_of((probs, y), (50, 100)))
    assert len(caught) == 1
    with pytest.warns(match="were clipped") as expected:
        p = Predictions.from_arrays(probs, y)
    assert caught[0].message.text() == expected[0].message.text()
    assert caught[0].message.numbers == expected[0].message.numbers
    same_fit(found, fit_predictions(p))


def test_an_absent_class_is_separation():
    probs, y, _ = rows(n=200, c=3)
    keep = y != 1
    with pytest.warns(SeparationWarning, match="no row has class 1"):
        found = fit_blocks(blocks_of((probs[keep], y[keep]), (50,), classes=range(3)))
    assert (found.separated, found.separated_classes) == (True, (1,))
    assert np.isnan(found.cov_theta).all()


def test_separated_labels_are_found_in_memory_or_not_looked_for():
    probs, _, _ = rows(n=200, c=3)
    y = probs.argmax(axis=1)
    with pytest.warns(SeparationWarning, match="the log odds separate the labels"):
        found = fit_blocks(blocks_of((probs, y), (50,)))
    with pytest.warns(SeparationWarning):
        expected = fit_predictions(Predictions.from_arrays(probs, y))
    assert found.separated_classes == expected.separated_classes
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6)
    with pytest.warns(
        ConvergenceWarning, match="was not decided: the linear program is too large"
    ):
        found = fit_blocks(blocks_of((probs, y), (50,)), most_gathered=10)
    assert (found.converged, found.separated) == (False, False)
    assert np.isnan(found.cov_theta).all()


# --- assessments


def streamed(blocks, **options):
    """Treat a small table as a large one."""
    return assess_blocks(blocks, most_cells=0, **options)


def test_full_details_of_a_small_table_are_computed_while_its_rows_are_there():
    probs, y, _ = rows(n=300)
    options = {"n_resamples": 99, "seed": 0}
    expected = mcllo.assess(probs, y, full=True, **options)
    found = assess_blocks(blocks_of((probs, y)), full=True, **options)
    assert found.details.to_dict() == expected.details.to_dict()
    brief = assess_blocks(blocks_of((probs, y)), **options)
    with pytest.raises(InputError, match="class_tests needs all rows in memory"):
        brief.class_tests()


def test_small_tables_of_rounded_numbers_are_assessed_in_memory():
    probs, y, _ = rows(n=400, c=3, zeros=True)
    with suppress_warnings():
        expected = mcllo.assess(probs, y, normalize=True, seed=1)
        found = assess_blocks(blocks_of((probs, y), (90, 91), normalize=True), seed=1)
    assert "rounded to 0.01" in str(expected)
    assert str(found) == str(expected)


def test_small_tables_are_assessed_in_memory():
    probs, y, _ = rows(n=400, c=3, zeros=True)
    expected = mcllo.assess(probs, y, clip=1e-6, seed=1)
    found = assess_blocks(blocks_of((probs, y), (90, 91), clip=1e-6), seed=1)
    assert str(found) == str(expected)
    assert found.text(full=True) == expected.text(full=True)
    assert found.subsample is None
    assert found.test.to_dict() == expected.test.to_dict()


@pytest.mark.parametrize("weighted", [False, True])
def test_large_tables_give_the_same_numbers(weighted):
    parts = rows(n=4000, weighted=weighted)
    p = whole(n=4000, weighted=weighted)
    expected = mcllo.assess(p, seed=0)
    found = streamed(blocks_of(parts, (1000, 1003)), seed=0)
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-12, abs=1e-14)
    assert found.test.statistic == pytest.approx(expected.test.statistic, rel=1e-10)
    assert found.test.pvalue == pytest.approx(expected.test.pvalue, rel=1e-8)
    assert (found.test.method, found.test.reason) == ("chi2", expected.test.reason)
    for name in ("predicted", "observed", "z"):
        np.testing.assert_allclose(
            found.in_the_large[name], expected.in_the_large[name], rtol=1e-9
        )
    assert ("hosmer_lemeshow" in found.omnibus_tests) == (not weighted)


def test_the_partition_changes_nothing():
    parts = rows(n=3000, zeros=True)
    whole_, split = (
        streamed(blocks_of(parts, at, clip=1e-6), seed=3)
        for at in ((), (5, 1000, 2990))
    )
    assert split.metrics == pytest.approx(whole_.metrics, rel=1e-12)
    assert split.subsample.statistic == pytest.approx(
        whole_.subsample.statistic, rel=1e-10
    )
    assert split.subsample.pvalue == whole_.subsample.pvalue
    hl = "hosmer_lemeshow"
    assert split.omnibus_tests[hl].statistic == pytest.approx(
        whole_.omnibus_tests[hl].statistic
    )


def test_doubt_is_said_and_met_by_an_exact_subsample():
    probs, y, _ = rows(n=3000, zeros=True)
    found = streamed(blocks_of((probs, y), clip=1e-6), seed=3, subsample_rows=500)
    assert found.test.method == "chi2"
    assert (
        found.test.reason
        == "zeros were clipped, but the data are too large to simulate"
    )
    assert (
        found.subsample.reason == "On 500 of 3,000 rows, chosen at random with seed 3"
    )
    assert found.subsample.method in ("exact", "bound")
    assert "Chi-square is in doubt: zeros were clipped" in " ".join(str(found).split())
    asked = streamed(blocks_of((probs, y), clip=1e-6), method="chi2", seed=3)
    assert (asked.test.reason, asked.subsample) == ("as asked", None)


@pytest.mark.parametrize("n", [40, 150])
def test_few_errors_and_rare_classes_are_doubted_as_ever(n):
    probs, y, _ = rows(n=n, c=3)
    if n == 150:
        probs[:, 1] *= 1e-3
        probs /= probs.sum(axis=1, keepdims=True)
        y[5] = 1
    expected = mcllo.assess(probs, y, seed=0)
    found = streamed(blocks_of((probs, y)), seed=0)
    assert expected.test.method != "chi2"
    assert (
        found.test.reason
        == f"{expected.test.reason}, but the data are too large to simulate"
    )
    assert found.subsample is not None


def test_fractional_weights_are_refused():
    probs, y, _ = rows(n=40, c=3)
    weight = np.where(np.arange(40) == 30, 2.5, 1.0)
    with pytest.raises(
        InputError, match=r"whole numbers where .* got sample_weight=2\.5"
    ):
        streamed(blocks_of((probs, y, weight)), seed=0)


def test_fractional_weights_are_learned_from_with_robust_errors():
    probs, y, _ = rows(n=400, c=3)
    weight = np.random.default_rng(0).gamma(1.0, 3.0, 400)
    p = Predictions.from_arrays(
        probs, y, sample_weight=weight, weight_kind="importance"
    )
    expected = with_robust_covariance(p, fit_predictions(p))
    for blocks in (
        blocks_of((probs, y, weight)),
        blocks_of((probs, y, weight), [100, 101, 350]),
    ):
        found = fit_blocks(blocks)
        assert found.tau == pytest.approx(expected.tau, abs=1e-8)
        assert found.se_gamma == pytest.approx(expected.se_gamma)


@pytest.mark.parametrize("statistic", ["score", "wald"])
def test_other_statistics(statistic):
    p = whole(n=4000)
    expected = mcllo.calibration_test(p, statistic=statistic, seed=0)
    found = streamed(blocks_of(rows(n=4000)), statistic=statistic, seed=0).test
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert found.kind == statistic


def test_what_needs_rows_is_refused():
    for function, options, words in (
        (fit_blocks, {"penalty": -1.0}, "penalty must be finite and not negative"),
        (fit_blocks, {"penalty": "firth"}, "'firth' needs all rows in memory"),
        (streamed, {"method": "exact"}, "'exact' draws labels for rows in memory; 16"),
        (streamed, {"method": "bootstrap"}, "method must be"),
    ):
        with pytest.raises(InputError, match=words):
            function(toy_blocks(), **options)


def test_facts_are_those_of_predictions():
    probs, y, weight = rows(n=300, zeros=True, weighted=True)
    y[y == 4] = 3
    options = {"classes": range(5), "clip": 1e-6}
    p = Predictions.from_arrays(probs, y, sample_weight=weight, **options)
    found = blocks_of((probs, y, weight), (100,), **options).facts
    expected = DataFacts.from_predictions(p)
    assert found.absent == expected.absent == p.absent == (4,)
    assert str(found.zero_statement) == str(expected.zero_statement) == p.zero_note
    assert found.sample_weight == expected.sample_weight.sum()
    assert found.to_dict() == expected.to_dict()


def test_the_posterior_needs_no_rows():
    probs, y, _ = rows(n=300)
    details = streamed(blocks_of((probs, y)), seed=0).details
    expected = calibration_posterior(probs, y)
    np.testing.assert_allclose(
        details.posterior.posterior, expected.posterior, rtol=1e-9
    )
    assert set(details.skipped) == {
        "miscalibrated_classes",
        "nested_models",
        "class_tests",
        "baselines",
    }
    content = details.to_dict()
    assert [
        content[name] for name in ("nested_models", "baselines", "zeros", "robust")
    ] == [None] * 4


def test_an_assessment_is_plain_values():
    probs, y, _ = rows(n=300, zeros=True)
    found = streamed(blocks_of((probs, y), clip=1e-6), seed=0)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["data"]["n_samples"] == 300
    assert len(content["reliability"]) == 6
    assert content["subsample"] is not None
    expected = mcllo.assess(probs, y, clip=1e-6, seed=0).to_dict()
    assert content.keys() - expected.keys() == {"subsample", "reliability"}
    assert content["data"] == expected["data"]


def test_charts_are_of_the_curves_that_were_summed():
    a = assess_blocks(blocks_of(rows(n=3000)[:2]), most_cells=0, subsample_rows=500)
    top = mcllo.reliability_curve(whole(n=3000)).to_vega()["data"]["values"]
    found = a.to_vega()["data"]["values"]
    assert [row["rows"] for row in found] == [row["rows"] for row in top]
    assert a.to_vega(by_class=True)["facet"]["sort"] == ["0", "1", "2", "3", "4"]


def test_a_report_needs_the_rows():
    found = assess_blocks(toy_blocks(), seed=0)
    assert isinstance(found, Assessment)
    with pytest.raises(
        InputError, match=r"must get an Assessment or .*; got BlockAssessment"
    ):
        mcllo.report(found)
