"""Attribution: who is named, who is not, whatever the baseline, and what is said of it."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from independent import draw, simplex

from mcllo import Predictions, calibration_test
from mcllo._diagnostics.attribution import (
    attribute_miscalibration,
    smallest_accepted_sets,
    split_named_and_alternatives,
)
from mcllo._diagnostics.left_out import LeaveOut, MiscalibratedClass, describe_class
from mcllo._diagnostics.nested_models import fit_nested_models
from mcllo._fit.fit import fit_predictions
from mcllo._utils.formatting import Table
from mcllo._utils.statements import select_statements, suppress_warnings

NAMES = ["cat", "dog", "fox", "owl", "yak", "bee"]


@cache
def rows(c=4, n=1500, shift=(), slope=(), seed=2, **options):
    """Predictions with some classes off: ((class, size), ...)."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(c, 0.6), n)
    probs = np.maximum(probs, 1e-9) / np.maximum(probs, 1e-9).sum(axis=1, keepdims=True)
    scores = np.log(probs)
    for k, size in slope:
        scores[:, k] *= size
    for k, size in shift:
        scores[:, k] += size
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    labels = NAMES[:c] if c <= len(NAMES) else list(range(c))
    return Predictions.from_arrays(
        probs, np.array(labels)[draw(truth, rng)], classes=labels, **options
    )


def miscalibrated_classes(p, alpha=0.05, climb=True, seed=0, **options):
    test = calibration_test(p, seed=1, n_resamples=499)
    with suppress_warnings():
        nested_models = fit_nested_models(p, seed=1, n_resamples=99) if climb else None
    return attribute_miscalibration(
        p, test=test, nested_models=nested_models, alpha=alpha, seed=seed, **options
    )


@pytest.mark.parametrize(
    "baseline", ["dog", "owl"]
)  # a calibrated class, and the miscalibrated one
@pytest.mark.parametrize("off", [{"shift": ((3, 0.8),)}, {"slope": ((3, 0.5),)}])
def test_the_miscalibrated_class_is_named_whatever_the_baseline(off, baseline):
    found = miscalibrated_classes(rows(**off, baseline=baseline), climb=False)
    assert (found.labels, found.kind, found.one_of) == (("owl",), "classes", ())
    assert list(found) == ["owl"]
    p = dict(zip(found.table["class"], found.table["pvalue"], strict=True))
    assert p.pop("owl") > 0.05
    assert max(p.values()) < 0.001
    assert found.table["most_off"][0] == "owl"


def test_two_miscalibrated_classes_are_named_the_larger_first():
    found = miscalibrated_classes(rows(c=6, shift=((1, 0.6), (4, -1.5)), seed=1))
    assert set(found.labels) == {"dog", "yak"}
    changes = [miscalibrated_class.change for miscalibrated_class in found.details]
    assert changes == sorted(changes, reverse=True)
    dog, yak = (next(c for c in found.details if c.label == k) for k in ("dog", "yak"))
    assert (dog.share_kind, yak.share_kind) == ("low", "high")
    # the odds of each are against the classes that are not named, so that both are recovered
    assert dog.delta_interval[0] < np.exp(0.6) < dog.delta_interval[1]
    assert yak.delta_interval[0] < np.exp(-1.5) < yak.delta_interval[1]


def test_calibrated_rows_accuse_nobody():
    found = miscalibrated_classes(rows(seed=1))
    assert (found.kind, found.labels, found.statements()) == ("none", (), [])
    assert not found


def test_of_two_classes_neither_is_to_blame():
    found = miscalibrated_classes(rows(c=2, shift=((0, 1.0),)))
    assert found.kind == "two"
    assert [said.kind for said in found.statements()] == ["attribution.none"]


def test_one_temperature_is_said_once():
    for slope, words in (
        (0.5, "overconfident, alike: divide the logits by 2."),
        (2.0, "underconfident"),
    ):
        found = miscalibrated_classes(rows(slope=tuple((k, slope) for k in range(4))))
        (said,) = found.statements()
        assert (found.kind, found.labels, said.kind) == (
            "temperature",
            (),
            "attribution.all",
        )
        assert words in said.text
        assert found.slope_low < slope < found.slope_high


@pytest.mark.slow
def test_shares_that_moved_everywhere_are_said_once():
    moved = tuple((k, s) for k, s in enumerate([0.8, -0.8, 0.5, -0.5, 1.2, -1.2]))
    found = miscalibrated_classes(rows(c=6, n=6000, shift=moved))
    assert found.kind == "shift"
    assert (
        select_statements(found.statements(), "attribution.all")[0].numbers["kind"]
        == "shift"
    )
    assert not found.labels
    alone = miscalibrated_classes(rows(c=6, n=6000, shift=moved), climb=False)
    assert [said.kind for said in alone.statements()] == ["attribution.spread"]


def test_a_temperature_that_explains_most_is_said_with_a_but():
    p = rows(c=6, n=6000, slope=tuple((k, 0.4 + 0.05 * k) for k in range(6)))
    nested_models = fit_nested_models(p, seed=1, n_resamples=99)
    assert nested_models.chosen != "temperature"
    nested_models = replace(nested_models, chosen="mcllo")
    rest = [
        replace(row, bic=0.0 if row.model == "temperature" else 1.0)
        for row in nested_models.rows
    ]
    test = calibration_test(p, seed=1)
    found = attribute_miscalibration(
        p, test=test, nested_models=replace(nested_models, rows=tuple(rest)), seed=0
    )
    assert (found.kind, found.beyond) == ("temperature", nested_models.chosen)
    assert found.statements()[0].text.endswith("That is not all.")


def test_few_rows_say_one_of_these():
    found = miscalibrated_classes(rows(n=120, shift=((3, 0.9),), seed=10))
    assert (found.kind, found.labels) == ("one_of", ())
    assert found.one_of == (("owl",), ("fox",))  # the likelier first
    (said,) = found.statements()
    assert (said.kind, said.level) == ("attribution.one_of", "doubt")
    assert "'owl', or 'fox'" in said.text


def test_two_that_rise_are_two_that_fall():
    # four classes, two up by as much: the same as the other two down. Nobody is named
    found = miscalibrated_classes(rows(n=3000, shift=((0, 0.7), (3, 0.7))))
    assert found.labels == ()
    assert {frozenset(own) for own in found.one_of} == {
        frozenset(["cat", "owl"]),
        frozenset(["dog", "fox"]),
    }


def test_rivals_one_class_larger_take_a_name_back():
    p = rows(n=500, shift=((0, 0.4), (3, 0.4)), seed=28)
    tests = LeaveOut(p, alpha=0.05, seed=0)
    singles = [tests([k]) for k in range(4)]
    (accepted,) = smallest_accepted_sets(tests, singles, 0.05)
    assert accepted.classes == {1}  # calibrated: two others are off
    named, others = split_named_and_alternatives(tests, [accepted], 0.05)
    assert named == frozenset()
    assert {0, 3} in others


def test_the_order_of_the_classes_does_not_matter():
    p = rows(c=6, shift=((1, 0.6), (4, -1.0)))
    order = [3, 5, 0, 4, 1, 2]
    moved = Predictions.from_arrays(
        p.probs[:, order],
        [p.classes[k] for k in p.codes],
        classes=[p.classes[k] for k in order],
    )
    first, second = miscalibrated_classes(p), miscalibrated_classes(moved)
    assert first.labels == second.labels
    own = dict(zip(second.table["class"], second.table["statistic"], strict=True))
    expected = dict(zip(first.table["class"], first.table["statistic"], strict=True))
    assert own == pytest.approx(expected)


def test_whole_weights_are_repeated_rows():
    p = rows(n=700, shift=((3, 0.8),))
    twice = replace(p, sample_weight=np.full(p.n_samples, 2.0))
    again = p.take(np.repeat(np.arange(p.n_samples), 2))
    a, b = (miscalibrated_classes(q, climb=False).to_dict() for q in (twice, again))
    assert a["labels"] == b["labels"] == ["owl"]
    assert a["left_out"] == b["left_out"]
    assert a["details"][0]["gamma"] == pytest.approx(b["details"][0]["gamma"])


def test_how_a_class_is_wrong_is_a_fit_of_two_classes():
    p = rows(shift=((3, 0.5),), slope=((3, 0.7),))
    own = p.probs[:, 3]
    two = Predictions.from_arrays(
        np.column_stack([own, 1 - own]), (p.codes != 3).astype(int), classes=[0, 1]
    )
    fit, found = fit_predictions(two), describe_class(p, [3], 3, 0.95)
    interval = fit.confidence_interval(0.95)
    assert (found.delta, found.gamma) == pytest.approx((fit.delta[0], fit.gamma[0]))
    assert found.gamma_interval == pytest.approx(interval.gamma[0])
    assert (found.predicted, found.observed) == (own.mean(), np.mean(p.codes == 3))
    moved = fit.recalibrate(two.probs)[:, 0]
    assert found.change == pytest.approx(np.abs(moved - own).mean())
    expected = fit.recalibrate([[found.given, 1 - found.given]])[0, 0]
    assert found.true == pytest.approx(expected)
    wider = describe_class(p, [3], 3, 0.99)
    assert (
        wider.true_low < found.true_low < found.true < found.true_high < wider.true_high
    )


BLAMED = MiscalibratedClass(
    "owl",
    1.5,
    0.6,
    (1.2, 1.8),
    (0.5, 0.7),
    0.12,
    0.181,
    0.164,
    0.199,
    0.05,
    0.9,
    0.79,
    0.74,
    0.83,
)
NOT_STEEP = {"gamma_interval": (0.9, 1.1)}
NOT_SHIFTED = {"predicted": 0.17}


def test_what_is_said_of_a_miscalibrated_class():
    for changes, words in (
        (
            NOT_STEEP,
            "'owl' is predicted too rarely: its probability is 12.0 % on average",
        ),
        (NOT_STEEP | {"predicted": 0.25}, "'owl' is predicted too often"),
        (
            NOT_SHIFTED,
            "are overconfident: given 90 %, it comes true in about 79.0 % (74.0 to 83.0).",
        ),
        (NOT_SHIFTED | {"gamma_interval": (1.2, 1.4)}, "are underconfident"),
        (NOT_SHIFTED | {"gamma_interval": (-1.2, -0.4)}, "are upside down"),
        (
            NOT_SHIFTED | {"gamma_interval": (np.nan, np.nan)},
            "do not show in which way",
        ),
    ):
        said = replace(BLAMED, **changes).statement(0.95)
        assert (said.kind, said.level, said.numbers["label"]) == (
            "attribution",
            "bad",
            "owl",
        )
        assert words in said.text


def test_many_alternatives_are_counted_not_listed():
    found = miscalibrated_classes(rows(shift=((3, 0.8),)))
    nobody = replace(found, labels=(), details=())
    hundred = replace(nobody, table=Table({"class": range(100)}))
    for result, words in (
        (
            replace(hundred, one_of=tuple((k,) for k in range(7))),
            "One class of 7 is off",
        ),
        (
            replace(hundred, one_of=tuple((k, k + 1) for k in range(7))),
            "One class or more of 8",
        ),
        (replace(found, one_of=(("cat",), ("dog",))), "One of these is also off"),
        (
            replace(
                found, labels=(), details=(), one_of=(("cat",), ("dog",), ("fox",))
            ),
            "Some class is off",
        ),
    ):
        assert words in result.statements()[-1].text


def test_plain_values():
    found = miscalibrated_classes(rows(shift=((3, 0.8),)))
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["labels"] == ["owl"]
    assert content["slope_low"] < content["slope"] < content["slope_high"]
    assert [row["class"] for row in content["left_out"]] == NAMES[:4]
    assert content["details"][0]["label"] == "owl"
    assert found.to_frame()["class"].tolist() == NAMES[:4]
    assert str(found).splitlines()[-1].split()[0] == "owl"


def test_edges():
    for probs, y in (
        (np.eye(4)[[0, 1, 2, 3] * 10] * 0.9 + 0.025, [1, 2, 3, 0] * 10),  # separated
        (np.full((40, 4), 0.25), [0] * 40),  # constant, classes absent
        (simplex(np.random.default_rng(0), 200, 4), [0, 1] * 100),  # two classes absent
        (np.array([[1e-9, 1e-9, 1.0 - 2e-9]]), [0]),  # one row
        (np.eye(3)[[0, 1, 2] * 30], [1, 2, 0] * 30),  # zeros
    ):
        with suppress_warnings():
            p = Predictions.from_arrays(probs, y, classes=list(range(len(probs[0]))))
            found = miscalibrated_classes(p)
        json.dumps(found.to_dict(), allow_nan=False)
        assert all(said.text.endswith(".") for said in found.statements()), y


@pytest.mark.slow
def test_a_hundred_classes():
    found = miscalibrated_classes(rows(c=100, n=6000, shift=((7, 2.5),)), climb=False)
    assert found.labels == (7,)


def test_a_temperature_does_not_hide_a_single_class():
    # few rows: the nested models cannot exclude one temperature, but a single class explains far
    # more
    p = rows(n=300, slope=((3, 0.45),), seed=3)
    test = calibration_test(p, seed=1)
    nested_models = fit_nested_models(p, seed=1, n_resamples=99)
    found = attribute_miscalibration(
        p, test=test, nested_models=replace(nested_models, simple="temperature"), seed=0
    )
    assert found.kind in ("classes", "one_of")
    assert "owl" in {*found.labels, *(k for own in found.one_of for k in own)}


def test_the_answer_comes_from_the_seed_alone():
    p = rows(n=150, shift=((3, 1.2),))
    assert (
        miscalibrated_classes(p, seed=3).to_dict()
        == miscalibrated_classes(p, seed=3).to_dict()
    )


def test_a_stricter_level_names_fewer():
    p = rows(n=400, shift=((3, 0.6),))
    assert miscalibrated_classes(p, alpha=0.05).labels == ("owl",)
    strict = miscalibrated_classes(p, alpha=1e-4)
    assert strict.kind in ("none", "one_of")
    assert strict.level == 1 - 1e-4
