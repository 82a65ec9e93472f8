import json

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import assess, baseline_sensitivity, class_tests, ladder
from mcllo._inference.budget import BRIEF_NESTED_WORK
from mcllo.exceptions import SeparationWarning


@pytest.fixture(scope="module")
def toy():
    return assess(TOY_X, TOY_Y, n_resamples=99, seed=1)


def test_parts_are_those_of_their_functions(toy):
    options = {"n_resamples": 99, "seed": 1}
    brief = {**options, "work": BRIEF_NESTED_WORK}
    assert toy.details.ladder.to_dict() == ladder(TOY_X, TOY_Y, **brief).to_dict()
    assert toy.details.class_tests.to_dict() == class_tests(TOY_X, TOY_Y, **brief).to_dict()
    baselines = baseline_sensitivity(TOY_X, TOY_Y, **options)
    assert toy.details.baselines.to_dict() == baselines.to_dict()


def test_the_ladder_shares_the_test_of_the_verdict(toy):
    assert toy.details.ladder.row("identity").larger_pvalue == toy.test.pvalue


def test_nothing_is_computed_before_it_is_asked_for():
    details = assess(TOY_X, TOY_Y, n_resamples=99, seed=1).details
    assert not {"ladder", "class_tests", "baselines"} & set(details.__dict__)


def test_everything_is_in_to_dict(toy):
    content = toy.to_dict()
    json.dumps(content, allow_nan=False)
    assert next(row["model"] for row in content["ladder"]["rows"]) == "identity"
    assert {"class_tests", "baselines", "posterior", "zeros", "robust", "skipped"} <= set(content)
    assert content["zeros"] is None
    # methods.md 6, TOY
    assert content["posterior"]["posterior"] == pytest.approx(0.99311890, abs=1e-8)


def test_dependent_rows_leave_out_what_needs_independence():
    a = assess(TOY_X, TOY_Y, groups=np.arange(16) // 2, seed=1)
    d = a.details
    assert d.ladder is d.class_tests is d.baselines is d.posterior is None
    assert d.robust.pvalue == a.test.pvalue
    assert a.companions == {}
    assert a.nulls == {}
    assert set(d.skipped) == {"ladder", "class_tests", "baselines", "zeros", "posterior"}


def test_two_classes_have_no_baseline_question():
    a = assess(TOY_X[:, :2] / TOY_X[:, :2].sum(axis=1, keepdims=True), TOY_Y % 2, seed=1)
    assert a.details.baselines is None
    assert "Baseline" not in str(a)


def test_many_baselines_are_left_out_with_a_word():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(60), size=300)
    a = assess(probs, rng.integers(60, size=300), method="chi2", seed=1)
    assert a.details.baselines is None
    assert "baselines=" in a.details.skipped["baselines"]


def test_very_many_classes_are_not_fitted_one_by_one():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(201), size=400)
    with pytest.warns(SeparationWarning):
        details = assess(probs, rng.integers(201, size=400), method="chi2", seed=1).details
    assert details.ladder is details.class_tests is None
    assert "201 classes are too many" in details.skipped["ladder"]
