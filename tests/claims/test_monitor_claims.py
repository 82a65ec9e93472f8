"""The monitor's promises, by the code that made the page's table, with few short streams."""

import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from studies.claims import draw, monitored, rows_like
from studies.claims import monitor as study
from studies.claims._streams import Streams
from studies.pages import read

from mcllo._monitor.e_process import Detector
from mcllo._monitor.e_values import MapLearners, batch_e_values, update_map_learners
from mcllo._validation.predictions import Predictions

pytestmark = pytest.mark.slow

FEW = {1: 60, 2: 60, 5: 20, 20: 30, 50: 12}
"""Streams of the suite, by the rows of a batch."""


def most(rate, n):
    """Return the largest share of `n` that a rate gives, but for one time in a thousand."""
    return rate + 3.1 * math.sqrt(rate * (1.0 - rate) / n)


@pytest.mark.parametrize("design", [*study.CALM, study.SLOPES[0]], ids=lambda d: d.name)
def test_many_streams_at_once_are_the_package_stream_by_stream(design):
    rng, c = np.random.default_rng(3), design.c
    streams = Streams(2, c, baseline=c - 1)
    states = [(Detector.new(c), MapLearners.new(c, c - 1)) for _ in range(2)]
    for k in range(15):
        probs = rows_like(design.kind, 2 * design.n, c, rng)
        truth = replace(design, slope=0.7).truth(probs) if k > 7 else probs
        x, y = probs.reshape(2, -1, c), draw(truth, rng).reshape(2, -1)
        evidence, detection = streams.step(x, y)
        for s, (detector, past) in enumerate(states):
            rows = Predictions.from_arrays(x[s], y[s], classes=range(c))
            detector, past = (
                detector.after(batch_e_values(rows, past)),
                update_map_learners(rows, past),
            )
            states[s] = detector, past
            assert evidence[s] == pytest.approx(detector.log_evidence, abs=1e-5)
            assert detection[s] == pytest.approx(detector.log_detector, abs=1e-5)
            if (
                c > 2
            ):  # of two classes, slopes have no share but still evidence of their own
                own = streams.class_evidence()[s]
                np.testing.assert_allclose(own, detector.log_class_evidence, atol=1e-5)


@pytest.mark.parametrize("design", study.CALM, ids=lambda d: d.name)
def test_calibrated_streams_hardly_ever_alarm_over_a_thousand_looks(design):
    n = FEW[design.n] if design.c < 30 else 10
    (row,) = study.run(1, calm=(design,), slopes=(), changed=(), most=n)
    assert (row["looks"], row["reps"]) == (1000, n)
    assert row["ever"] <= most(study.ALPHA, n)
    # run lengths of the detector are about exponential: their mean has an error of mean / sqrt(n)
    assert row["mean_run"] >= study.SHORT_RUN * (1.0 - 3.1 / math.sqrt(n))
    assert row["detector"] <= most(1.0 - math.exp(-1.0), n)


def test_the_detector_is_sooner_than_repeated_tests_and_near_the_oracle():
    design = study.CHANGED[0]
    rows = study.run(24, calm=(), slopes=(), changed=(replace(design, looks=30),))
    assert rows[0]["detector"] <= rows[0]["bonferroni"]
    assert rows[0]["detector"] <= rows[0]["spending"]
    assert rows[0]["detector"] <= rows[0]["oracle"] + 1


def test_a_change_is_seen_as_soon_as_by_the_prototype():
    slopes = (replace(study.SLOPES[0], looks=22),)
    (row,) = study.run(10, calm=(), slopes=slopes, changed=())
    assert row["detector"] <= 1
    assert row["ever"] <= 3


def test_the_stored_table_says_what_the_pages_say():
    rows = {row["design"]: row for row in read(study_results("monitor.csv"))}
    for design in study.CALM:
        row = rows[design.name]
        assert row["ever"] <= study.ALPHA
        assert row["mean_run"] >= study.SHORT_RUN
        assert row["detector"] <= 1.0 - math.exp(-1.0)
    # medians of the prototypes: detector 1, 5, 18 batches, the plain e-process 3, 10, 32
    for design, detector, plain in zip(
        study.SLOPES, (1, 5, 18), (3, 10, 32), strict=True
    ):
        assert rows[design.name]["detector"] <= min(
            detector, rows[design.name]["prototype"]
        )
        assert rows[design.name]["ever"] <= min(plain, rows[design.name]["plain"])
    slopes = [rows[d.name] for d in study.CHANGED[:3]]
    for row in slopes:
        assert row["detector"] <= row["prototype"]
    of_two = [rows[d.name] for d in study.CHANGED if d.c == 2]
    assert len(of_two) == 6
    for row in of_two:
        assert row["ever"] <= row["probcal"]
    assert rows["c = 2, odds times 1.5, from the start"]["ever"] == 3
    days = read(study_results("monitored.csv"))
    alarms = [row["day"] for row in days if row["says"] == "alarm"]
    assert alarms[0] == "2020-11-02"


@pytest.mark.skipif(find_spec("nannyml") is None, reason="the data come with nannyml")
def test_the_public_data_give_what_is_stored():
    stored = read(study_results("monitored.csv"))
    for known, row in zip(stored, monitored.run(), strict=True):
        assert (known["day"], known["says"]) == (row["day"], row["says"])
        assert known["log_detector"] == pytest.approx(
            row["log_detector"], rel=1e-3, abs=1e-3
        )


def study_results(name):
    return Path(study.__file__).parent / "results" / name
