import json

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import assess
from mcllo._baseline import baseline_sensitivity
from mcllo._class_tests import class_tests
from mcllo._ladder import ladder
from mcllo._nested_test import BRIEF


@pytest.fixture(scope="module")
def toy():
    return assess(TOY_X, TOY_Y, n_resamples=99, seed=1)


def test_parts_are_those_of_their_functions(toy):
    options = {"n_resamples": 99, "seed": 1}
    brief = {**options, "work": BRIEF}
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
    assert "Left out: ladder: it assumes independent rows" in a.text(full=True)


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


def test_zeros_get_a_line():
    probs = np.array(TOY_X)
    probs[0] = [1.0, 0.0, 0.0]
    with pytest.warns(UserWarning, match="probabilities were 0"):
        a = assess(probs, TOY_Y, n_resamples=99, seed=1)
    assert a.details.zeros is not None
    assert "Zeros: " in str(a)


def test_very_many_classes_are_not_fitted_one_by_one(monkeypatch):
    from mcllo import _details

    monkeypatch.setattr(_details, "MOST_CLASSES", 2)
    a = assess(TOY_X, TOY_Y, n_resamples=99, seed=1)
    assert a.details.ladder is a.details.class_tests is None
    assert "3 classes are too many" in a.details.skipped["ladder"]
