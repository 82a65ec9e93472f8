"""`_report.facts`: what was read, what was changed, how to repeat it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from report_data import PETS, calm, compared, grouped, overconfident, predictions, separated

import mcllo
from mcllo._report.facts import data_facts, reproduce_facts, seed_of, source_fact, sources
from mcllo._version import __version__


def by_key(facts):
    return {fact.key: fact for fact in facts}


def test_checksum_of_known_bytes(tmp_path):
    # SHA-256 of "abc": FIPS 180-2, appendix B.1
    path = tmp_path / "rows.csv"
    path.write_bytes(b"abc")
    fact = source_fact(str(path))
    assert fact.value == "rows.csv"
    assert fact.note == ("SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


def test_what_is_no_file_has_no_checksum(tmp_path):
    assert source_fact("-").note == "not a file: no checksum"
    assert source_fact(str(tmp_path)).note == "not a file: no checksum"


def test_sources_are_one_or_several(tmp_path):
    assert sources(None) == []
    assert sources("a.csv") == ["a.csv"]
    assert sources([tmp_path, "b.csv"]) == [str(tmp_path), "b.csv"]


def test_data_of_an_assessment():
    facts = by_key(data_facts(overconfident(), None))
    assert facts["rows"].value == "600"
    assert facts["classes"].value == "3"
    assert facts["baseline"].value == "truck"
    assert facts["weights"].value == "none"
    assert facts["zeros"].value == "0"
    assert facts["absent"].value == "none"
    assert facts["fit"].value == "converged"
    assert facts["df"].value == "4"


def test_rarest_and_commonest_class_by_hand():
    p = mcllo.Predictions.from_arrays([[0.5, 0.3, 0.2]] * 5, list("aabba"), classes=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = by_key(data_facts(mcllo.assess(p, seed=0, n_resamples=19), None))
    assert (facts["commonest"].value, facts["commonest"].note) == ("a", "3 rows, 60.0 %")
    assert (facts["rarest"].value, facts["rarest"].note) == ("c", "0 rows, 0.0 %")
    assert facts["absent"].value == "c"


def test_changes_are_counted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = mcllo.assess(
            [[0.0, 0.5, 0.49], [0.3, 0.3, 0.39], [0.2, 0.4, 0.39]] * 4,
            ["a", "b", "c"] * 4,
            classes=list("abc"),
            normalize=True,
            sample_weight=[0.5, 1.0, 2.0] * 4,
            seed=0,
        )
    facts = by_key(data_facts(a, None))
    assert facts["zeros"].value == "4"
    assert "4 raised to 1e-06, 4 of them of the class that came true" in facts["zeros"].note
    assert facts["renormalized"].value == "12"
    assert facts["weights"].value == "total 14"


def test_separation_is_said():
    assert "does not exist" in by_key(data_facts(separated(), None))["fit"].value


def test_data_of_a_comparison():
    c = compared()
    facts = by_key(data_facts(calm(), c))
    assert facts["rows_fitted"].value == "600"
    crossed = by_key(data_facts(calm(), replace(c, cross_validated=True)))
    assert "other folds" in crossed["rows"].note


def test_reproduce(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x")
    facts = reproduce_facts(overconfident(), None, ["mcllo", "assess", "my rows.csv"], path)
    found = by_key(facts)
    assert found["version"].value == f"mcllo {__version__}"
    assert found["command"].value == "mcllo assess 'my rows.csv'"
    assert found["seed"].value == "0"
    assert "SHA-256" in found["source"].note


def test_without_a_command_the_call_is_shown():
    call = by_key(reproduce_facts(overconfident(), None, None, None))["command"].value
    assert call == "mcllo.assess(probs, y, baseline='truck', seed=0)"
    call = by_key(reproduce_facts(calm(), compared(), None, None))["command"].value
    assert call == "mcllo.compare(train, holdout, baseline='truck', seed=0)"


def test_groups_and_survey_weights_are_said():
    facts = by_key(data_facts(grouped(), None))
    assert (facts["groups"].value, facts["weights"].value) == ("120", "none")
    p = predictions(60, PETS)
    survey = replace(p, sample_weight=np.full(60, 1.5), weight_kind="survey")
    note = by_key(data_facts(replace(calm(), predictions=survey), None))["weights"].note
    assert "no counts" in note


def test_the_call_shows_groups_weights_and_a_chosen_baseline():
    call = by_key(reproduce_facts(grouped(), None, None, None))["command"].value
    assert call == "mcllo.assess(probs, y, baseline='truck', groups=groups, seed=0)"
    a, p = calm(), calm().predictions
    survey = replace(p, sample_weight=np.full(p.n_samples, 1.5), weight_kind="survey")
    auto = replace(a, predictions=survey, test=replace(a.test, kind="max_score"))
    call = by_key(reproduce_facts(auto, None, None, None))["command"].value
    assert "baseline='auto', sample_weight=weight, weight_kind='survey', seed=0" in call


def test_details_that_were_simulated_have_a_seed():
    assert seed_of(replace(calm(), nulls={}, companions={})) == 0  # the p over all baselines


def test_no_seed_where_nothing_was_drawn():
    a = mcllo.assess(predictions(600, ("a", "b")), seed=0, n_resamples=19)
    a = replace(a, nulls={}, companions={})
    assert seed_of(a) is None
    seed = by_key(reproduce_facts(a, None, "run", None))["seed"]
    assert (seed.value, seed.note) == ("none", "no random numbers were used")


@pytest.mark.parametrize("seed", [0, 5])
def test_the_seed_is_that_of_the_draws(seed):
    assert seed_of(mcllo.assess(predictions(50, PETS), seed=seed, n_resamples=19)) == seed
