"""What the choices that the paper does not give decide: `studies.choices`."""

import doctest
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import mcllo
from mcllo.datasets import load_obesity_forest

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1])
)  # studies are not installed
choices, rule = import_module("studies.choices"), import_module("studies.rule")
tables = import_module("studies.tables")


@pytest.fixture(scope="module")
def data():
    return load_obesity_forest()


@pytest.fixture(scope="module")
def runs(data):
    return choices.judged([(data.train, data.holdout)] * 2, more={"mcllo": {"": {}}})


def test_examples():
    found = doctest.testmod(choices, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert (found.attempted > 0, found.failed) == (True, 0)


def test_the_defaults_are_the_rows_of_a_comparison(data, runs):
    c = tables.compare_methods(
        data.train, data.holdout, ("mcllo", "histogram", "xu_davoine")
    )
    readings = {"histogram": "10 bins of equal width", "xu_davoine": "smoothed targets"}
    readings |= {"mcllo": "", "uncalibrated": ""}
    for row in tables.compared_rows(c, "set p_chi2 ece label_change")[1:]:
        found = runs[row["set"], readings[row["set"]]]
        expected = [row["p_chi2"], row["ece"], row["label_change"] or 0.0]
        assert [found[what][1] for what in choices.WHATS] == pytest.approx(
            expected, rel=1e-9
        )


@tables.suppress_warnings()
def test_every_reading_by_hand(data, runs):
    for reading, (n_bins, binning) in {
        "20 bins of equal width": ("sqrt", "width"),  # ceil(sqrt(396)) = 20
        "10 bins of equal mass": (10, "mass"),
        "20 bins of equal mass": (20, "mass"),
    }.items():
        binned = mcllo.CALIBRATORS["histogram"](n_bins=n_bins, binning=binning).fit(
            data.train
        )
        after = data.holdout.with_probs(binned.predict_proba(data.holdout))
        changed = after.probs.argmax(axis=1) != data.holdout.probs.argmax(axis=1)
        assert runs["histogram", reading]["label_change"][0] == changed.mean()
    free = mcllo.CALIBRATORS["xu_davoine"](smooth=False).fit(data.train)
    after = data.holdout.with_probs(free.predict_proba(data.holdout))
    found = runs["xu_davoine", "targets not smoothed"]
    assert found["p"][0] == mcllo.calibration_test(after, method="chi2").pvalue
    assert len(runs) == 1 + 1 + 4 + 2


def test_rows_words_and_evidence(runs):
    rows = choices.choice_rows(runs)
    assert [row["splits"] for row in rows] == [2] * len(rows)
    assert rows[0]["method"] == "uncalibrated"
    for row in rows:
        found = runs[row["method"], row["reading"]]
        assert row["not_rejected"] == np.sum(found["p"] > 0.05)
        assert row["lowers_ece"] == np.sum(found["ece"] < runs[choices.RAW]["ece"])
        assert row["median_ece"] == found["ece"][0]
    words = choices.choice_words(rows)
    assert (words[0]["reading"], words[0]["lowered"], words[0]["kept"]) == (
        "–",
        "–",
        "0 of 2",
    )
    evidence = choices.readings("histogram", choices.lowers_ece(runs))
    assert len(evidence.parts) == 4
    assert rule.verdict(evidence) == "cannot be told"  # two splits are under ten
