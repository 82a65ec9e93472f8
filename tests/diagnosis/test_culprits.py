"""Whose fault: who is named, who is not, whatever the baseline, and what is said of it."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from independent import draw, simplex

from mcllo import Predictions, calibration_test
from mcllo._diagnosis.culprit import Culprit, how_wrong
from mcllo._diagnosis.culprits import Culprits, culprits_of, smallest_sets, told_apart
from mcllo._diagnosis.ladder import ladder_of
from mcllo._diagnosis.left_out import LeaveOut
from mcllo._fit.fit import fit_predictions
from mcllo._ground.statements import pick, quiet
from mcllo._ground.text import Table

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


def culprits(p, alpha=0.05, climb=True, seed=0, **options):
    test = calibration_test(p, seed=1, n_resamples=499)
    with quiet():
        ladder = ladder_of(p, seed=1, n_resamples=99) if climb else None
    return culprits_of(p, test=test, ladder=ladder, alpha=alpha, seed=seed, **options)


@pytest.mark.parametrize("baseline", ["cat", "dog", "owl"])
@pytest.mark.parametrize("off", [{"shift": ((3, 0.8),)}, {"slope": ((3, 0.5),)}])
def test_the_culprit_is_named_whatever_the_baseline(off, baseline):
    found = culprits(rows(**off, baseline=baseline), climb=False)
    assert (found.labels, found.kind, found.one_of) == (("owl",), "classes", ())
    assert list(found) == ["owl"]
    assert "owl" in found
    assert "cat" not in found
    assert (len(found), bool(found)) == (1, True)
    p = dict(zip(found.table["class"], found.table["pvalue"], strict=True))
    assert p.pop("owl") > 0.05
    assert max(p.values()) < 0.001
    assert found.table["most_off"][0] == "owl"


def test_two_culprits_are_named_the_larger_first():
    found = culprits(rows(c=6, shift=((1, 0.6), (4, -1.5)), seed=1))
    assert set(found.labels) == {"dog", "yak"}
    changes = [culprit.change for culprit in found.details]
    assert changes == sorted(changes, reverse=True)
    dog, yak = (next(c for c in found.details if c.label == k) for k in ("dog", "yak"))
    assert (dog.share_kind, yak.share_kind) == ("low", "high")
    # the odds of each are against the classes that are not named, so that both are recovered
    assert dog.delta_interval[0] < np.exp(0.6) < dog.delta_interval[1]
    assert yak.delta_interval[0] < np.exp(-1.5) < yak.delta_interval[1]


def test_calibrated_rows_accuse_nobody():
    found = culprits(rows(seed=1))
    assert (found.kind, found.labels, found.statements()) == ("none", (), [])
    assert not found
    assert "Nobody" in str(found)


def test_of_two_classes_neither_is_to_blame():
    found = culprits(rows(c=2, shift=((0, 1.0),)))
    assert found.kind == "two"
    assert [said.kind for said in found.statements()] == ["culprit.none"]


@pytest.mark.parametrize(
    ("slope", "word"), [(0.5, "too extreme, alike: divide the logits by 2."), (2.0, "too timid")]
)
def test_one_temperature_is_said_once(slope, word):
    found = culprits(rows(slope=tuple((k, slope) for k in range(4))))
    (said,) = found.statements()
    assert (found.kind, found.labels, said.kind) == ("temperature", (), "culprit.all")
    assert word in said.text
    assert found.slope_low < slope < found.slope_high
    assert said.numbers["slope"] == found.slope


def test_a_temperature_does_not_hide_a_single_class():
    # few rows: the ladder cannot exclude one temperature, but a single class explains far more
    p = rows(n=300, slope=((3, 0.45),), seed=3)
    test = calibration_test(p, seed=1)
    ladder = ladder_of(p, seed=1, n_resamples=99)
    found = culprits_of(p, test=test, ladder=replace(ladder, simple="temperature"), seed=0)
    assert found.kind in ("classes", "one_of")
    assert "owl" in {*found.labels, *(k for own in found.one_of for k in own)}


def test_shares_that_moved_everywhere_are_said_once():
    moved = tuple((k, s) for k, s in enumerate([0.8, -0.8, 0.5, -0.5, 1.2, -1.2]))
    found = culprits(rows(c=6, n=6000, shift=moved))
    assert found.kind == "shift"
    assert pick(found.statements(), "culprit.all")[0].numbers["kind"] == "shift"
    assert not found.labels
    alone = culprits(rows(c=6, n=6000, shift=moved), climb=False)
    assert [said.kind for said in alone.statements()] == ["culprit.spread"]


def test_a_temperature_that_explains_most_is_said_with_a_but():
    p = rows(c=6, n=6000, slope=tuple((k, 0.4 + 0.05 * k) for k in range(6)))
    ladder = ladder_of(p, seed=1, n_resamples=99)
    assert ladder.chosen != "temperature"
    ladder = replace(ladder, chosen="mcllo")
    rest = [replace(row, bic=0.0 if row.model == "temperature" else 1.0) for row in ladder.rows]
    test = calibration_test(p, seed=1)
    found = culprits_of(p, test=test, ladder=replace(ladder, rows=tuple(rest)), seed=0)
    assert (found.kind, found.beyond) == ("temperature", ladder.chosen)
    assert found.statements()[0].text.endswith("No single class is to blame. That is not all.")
    full = replace(found, beyond="full").statements()[0].text
    assert full.endswith("That is not all: how classes are confused matters, too.")


def test_few_rows_say_one_of_these():
    found = culprits(rows(n=120, shift=((3, 0.9),), seed=10))
    assert (found.kind, found.labels) == ("one_of", ())
    assert found.one_of == (("owl",), ("fox",))  # the likelier first
    (said,) = found.statements()
    assert (said.kind, said.level) == ("culprit.one_of", "doubt")
    assert said.text == ("One of these is off, and these rows cannot tell which: 'owl', or 'fox'.")


def test_two_that_rise_are_two_that_fall():
    # four classes, two up by as much: the same as the other two down. Nobody is named
    found = culprits(rows(n=3000, shift=((0, 0.7), (3, 0.7))))
    assert found.labels == ()
    assert {frozenset(own) for own in found.one_of} == {
        frozenset(["cat", "owl"]),
        frozenset(["dog", "fox"]),
    }
    assert "'cat' with 'owl', or 'dog' with 'fox'" in found.statements()[0].text


def test_rivals_one_class_larger_take_a_name_back():
    p = rows(n=500, shift=((0, 0.4), (3, 0.4)), seed=28)
    tests = LeaveOut(p, alpha=0.05, seed=0)
    singles = [tests([k]) for k in range(4)]
    (accepted,) = smallest_sets(tests, singles, 0.05)
    assert accepted.classes == {1}  # innocent: two others are off
    named, others = told_apart(tests, [accepted], 0.05)
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
    first, second = culprits(p), culprits(moved)
    assert first.labels == second.labels
    own = dict(zip(second.table["class"], second.table["statistic"], strict=True))
    expected = dict(zip(first.table["class"], first.table["statistic"], strict=True))
    assert own == pytest.approx(expected)


def test_whole_weights_are_repeated_rows():
    p = rows(n=700, shift=((3, 0.8),))
    twice = replace(p, sample_weight=np.full(p.n_samples, 2.0))
    again = p.take(np.repeat(np.arange(p.n_samples), 2))
    a, b = (culprits(q, climb=False).to_dict() for q in (twice, again))
    assert a["labels"] == b["labels"] == ["owl"]
    assert a["left_out"] == b["left_out"]
    assert a["details"][0]["gamma"] == pytest.approx(b["details"][0]["gamma"])


def test_how_a_class_is_wrong_is_a_fit_of_two_classes():
    p = rows(shift=((3, 0.5),), slope=((3, 0.7),))
    own = p.probs[:, 3]
    two = Predictions.from_arrays(
        np.column_stack([own, 1 - own]), (p.codes != 3).astype(int), classes=[0, 1]
    )
    fit, found = fit_predictions(two), how_wrong(p, [3], 3, 0.95)
    interval = fit.confidence_interval(0.95)
    assert (found.delta, found.gamma) == pytest.approx((fit.delta[0], fit.gamma[0]))
    assert found.gamma_interval == pytest.approx(interval.gamma[0])
    assert (found.predicted, found.observed) == (own.mean(), np.mean(p.codes == 3))
    moved = fit.recalibrate(two.probs)[:, 0]
    assert found.change == pytest.approx(np.abs(moved - own).mean())
    expected = fit.recalibrate([[found.given, 1 - found.given]])[0, 0]
    assert found.true == pytest.approx(expected)
    wider = how_wrong(p, [3], 3, 0.99)
    assert wider.true_low < found.true_low < found.true < found.true_high < wider.true_high


BLAMED = Culprit(
    "owl", 1.5, 0.6, (1.2, 1.8), (0.5, 0.7), 0.12, 0.181, 0.164, 0.199, 0.05, 0.9, 0.79, 0.74, 0.83
)
WAYS = {
    "'owl' is predicted too rarely: its probability is 12.0 % on average, and it comes true in "
    "18.1 % of the rows (16.4 to 19.9). Its probabilities are too extreme: given 90 %, it comes "
    "true in about 79.0 % (74.0 to 83.0).": {},
    "'owl' is predicted too often: its probability is 25.0 % on average, and it comes true in "
    "18.1 % of the rows (16.4 to 19.9).": {"predicted": 0.25, "gamma_interval": (0.9, 1.1)},
    "The probabilities of 'owl' are too timid: given 90 %, it comes true in about 79.0 % (74.0 to "
    "83.0).": {"predicted": 0.17, "gamma_interval": (1.2, 1.4)},
    "The probabilities of 'owl' are upside down: given 90 %, it comes true in about 79.0 % (74.0 "
    "to 83.0).": {"predicted": 0.17, "gamma_interval": (-1.2, -0.4)},
    "'owl' is off, though these rows do not show in which way: its probability is 17.0 % on "
    "average, and it comes true in 18.1 % of the rows (16.4 to 19.9).": {
        "predicted": 0.17,
        "gamma_interval": (np.nan, np.nan),
    },
}


@pytest.mark.parametrize("words", WAYS)
def test_what_is_said_of_a_culprit(words):
    said = replace(BLAMED, **WAYS[words]).statement(0.95)
    assert (said.kind, said.level, said.text) == ("culprit", "bad", words)
    assert said.numbers["label"] == "owl"


def test_many_alternatives_are_counted_not_listed():
    found = culprits(rows(shift=((3, 0.8),)))
    hundred = replace(found, table=Table({"class": range(100)}), labels=(), details=())
    many = replace(hundred, one_of=tuple((k,) for k in range(7)))
    assert many.statements()[0].text == ("One class of 7 is off, and these rows cannot tell which.")
    more = replace(hundred, one_of=tuple((k, k + 1) for k in range(7)))
    assert more.statements()[0].text.startswith("One class or more of 8 is off")
    beside = replace(found, one_of=(("cat",), ("dog",)))
    assert beside.statements()[-1].text == (
        "One of these is also off, and these rows cannot tell which: 'cat', or 'dog'."
    )
    anyone = replace(found, labels=(), details=(), one_of=(("cat",), ("dog",), ("fox",)))
    assert anyone.statements()[0].text == ("Some class is off, and these rows cannot tell which.")


def test_plain_values():
    found = culprits(rows(shift=((3, 0.8),)))
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["labels"] == ["owl"]
    assert content["slope_low"] < content["slope"] < content["slope_high"]
    assert [row["class"] for row in content["left_out"]] == NAMES[:4]
    assert content["details"][0]["label"] == "owl"
    assert found.to_frame()["class"].tolist() == NAMES[:4]
    assert repr(found) == "<Culprits: classes, ['owl']>"
    assert str(found).splitlines()[-1].split()[0] == "owl"


def test_the_answer_comes_from_the_seed_alone():
    p = rows(n=150, shift=((3, 1.2),))
    assert culprits(p, seed=3).to_dict() == culprits(p, seed=3).to_dict()


def test_a_stricter_level_names_fewer():
    p = rows(n=400, shift=((3, 0.6),))
    assert culprits(p, alpha=0.05).labels == ("owl",)
    strict = culprits(p, alpha=1e-4)
    assert strict.kind in ("none", "one_of")
    assert strict.level == 1 - 1e-4


@pytest.mark.parametrize(
    ("probs", "y"),
    [
        (np.eye(4)[[0, 1, 2, 3] * 10] * 0.9 + 0.025, [1, 2, 3, 0] * 10),  # separated
        (np.full((40, 4), 0.25), [0] * 40),  # constant, classes absent
        (simplex(np.random.default_rng(0), 200, 4), [0, 1] * 100),  # two classes absent
        (np.array([[1e-9, 1e-9, 1.0 - 2e-9]]), [0]),  # one row
        (np.eye(3)[[0, 1, 2] * 30], [1, 2, 0] * 30),  # zeros
    ],
)
def test_edges(probs, y):
    with quiet():
        p = Predictions.from_arrays(probs, y, classes=list(range(len(probs[0]))))
        found = culprits(p)
    assert isinstance(found, Culprits)
    json.dumps(found.to_dict(), allow_nan=False)
    assert all(said.text.endswith(".") for said in found.statements())


def test_a_hundred_classes():
    found = culprits(rows(c=100, n=6000, shift=((7, 2.5),)), climb=False)
    assert found.labels == (7,)
