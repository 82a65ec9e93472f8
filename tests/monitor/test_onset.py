"""A beginning is named only where the batches before it speak against one from the start."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import mcllo
from mcllo._monitor.e_process import Detector
from mcllo._monitor.e_values import (
    IDENTITY_TEMPERATURE_PLACE,
    log_prior_weights_of_maps,
)
from mcllo._monitor.status import alarm_and_onset_batches

CLASSES = ["cat", "dog", "eel"]


def batch(seed, slope, n=300):
    """Return predictions, and labels that follow ``x^slope``."""
    rng = np.random.default_rng([36, seed])
    probs = rng.dirichlet(np.full(3, 0.8), n)
    truth = probs**slope / (probs**slope).sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return probs, np.array(CLASSES)[y]


def watched(n_calm, n_wrong, slope=0.6, **options):
    monitor = mcllo.Monitor.start(classes=CLASSES, **options)
    for k in range(n_calm + n_wrong):
        monitor.add(*batch(k, 1.0 if k < n_calm else slope), batch=f"w{k:02}")
    return monitor


def said(status, kind):
    return next(str(s) for s in status.statements() if s.kind == kind)


def test_a_departure_from_the_first_batch_on_has_no_beginning():
    status = watched(0, 4).status()
    assert status.kind == "alarm"
    assert (status.onset_batch, status.onset_time, status.since) == ("", "", 1)
    assert status.n_rows_since == status.n_rows
    assert "as far back as can be seen" in said(status, "monitor")
    assert "no longer" not in str(status)
    assert "since about" not in str(status)
    assert said(status, "step").startswith("Fit on the 1,200 rows added: mcllo.")
    assert said(status, "size").startswith("So far, ")
    assert status.gain > 0.0


def test_after_a_calm_time_it_has_one():
    status = watched(6, 3).status()
    assert (status.kind, status.onset_batch, status.since) == ("alarm", "w06", 7)
    assert "no longer fit the labels, since about w06" in said(status, "monitor")
    assert said(status, "step").startswith("Refit on the 900 rows added from w06 on: ")


def test_text_json_report_and_figure_say_the_same(tmp_path):
    from mcllo._apps.report.monitor_report import monitor_page

    monitor = watched(0, 4)
    content = monitor.status().to_dict()
    headline = content["statements"][0]["text"]
    assert content["onset_batch"] == ""
    for page in (monitor_page(monitor), monitor_page(monitor, html=False)):
        assert headline in page
        assert "Classes in all batches" in page
    mcllo.plot.save(mcllo.plot.monitor(monitor), tmp_path / "m.svg")
    assert "since about here" not in (tmp_path / "m.svg").read_text()


def test_worth_watching_as_far_back_as_can_be_seen():
    monitor = mcllo.Monitor.start(classes=CLASSES, run_length=1e6)
    for k in range(20):
        status = monitor.add(*batch(k, 0.6, n=60), batch=str(k))
        if status.kind == "watch":
            break
    assert status.onset_time == ""
    assert said(status, "monitor").startswith(
        "Watch: labels seem to contradict the probabilities, as far back as can be seen."
    )


def test_the_leading_map_must_have_lost_enough_before_the_onset():
    def state(before):
        detector = Detector.new(3)
        for factor in (before, 9.0):
            row = np.full(len(log_prior_weights_of_maps(3)), -1.0)
            row[IDENTITY_TEMPERATURE_PLACE] = 0.0
            row[IDENTITY_TEMPERATURE_PLACE - 4] = factor
            detector = detector.after(
                SimpleNamespace(log_factors_by_map=lambda row=row: row)
            )
        return detector

    # of this map cusum - total is what it lost in the first batch; 1 / alpha is 20
    enough = (
        math.log(20.0) - log_prior_weights_of_maps(3)[IDENTITY_TEMPERATURE_PLACE - 4]
    )
    assert state(-enough - 0.01).began_after_first_batch(0.05)
    assert not state(-enough + 0.01).began_after_first_batch(0.05)
    assert not state(1.0).began_after_first_batch(0.05)


@pytest.mark.parametrize(
    ("kept", "model", "expected"),
    [
        ([9.0, 4.0], None, (9, 4)),
        ([9.0, 1.0], None, (9, 0)),
        ([9.0, 4.0], "{}", (9, 0)),
        ([9.0, 4.0, 1.0], "{}", (9, 4)),
        ([9.0, 0.0, 1.0], None, (9, 0)),
        ([0.0, 0.0], None, (0, 0)),
    ],
)
def test_alarms_of_files_of_before(kept, model, expected):
    assert alarm_and_onset_batches(np.array(kept), {"model": model}) == expected
