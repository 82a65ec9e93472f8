"""The null hypothesis of a fitted map: Laplace against a sum over a grid; the monitor with it."""

import json
import math
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import mcllo
from mcllo import Predictions
from mcllo._monitor.fitted_map import FittedNull
from mcllo._monitor.store import pack_arrays, unpack_arrays

sys.path.insert(
    0, str(Path(__file__).resolve().parents[2])
)  # studies are not installed
from studies.claims import draw, scaled
from studies.claims._streams import FittedStreams


def rows(seed, n, c=3, slope=1.0):
    rng = np.random.default_rng([5, seed])
    probs = rng.dirichlet(np.ones(c), n)
    return Predictions.from_arrays(
        probs, draw(scaled(probs, slope), rng), classes=range(c)
    )


def log_likelihood(predictions):
    return float(
        np.log(
            predictions.probs[np.arange(len(predictions.codes)), predictions.codes]
        ).sum()
    )


def fitted(n, seed=0, slope=0.7, c=3):
    train = rows(seed, n, c, slope)
    return mcllo.MCLLOCalibrator(classes=range(c)).fit(train.probs, train.codes)


def watched(model, slopes, n=100, c=3, **options):
    monitor = mcllo.Monitor.start(model=model, **options)
    for k, slope in enumerate(slopes):
        batch = rows(100 + k, n, c, slope)
        monitor.add(batch.probs, batch.codes, batch=f"w{k:02}")
    return monitor


def test_before_the_first_batch_the_map_is_expected_to_be_right():
    first = rows(0, 200)
    null = FittedNull.new(300, first, 2)
    np.testing.assert_allclose(
        null.predictions_at_mean(first).probs, first.probs, atol=1e-12
    )
    assert null.dispersion == 1.0


def test_the_precision_is_that_of_the_rows_learned_from():
    # two classes, all predictions 1/2: the information of a row is (1/4) [[1, 0], [0, 0]]
    first = Predictions.from_arrays(
        np.full((50, 2), 0.5), np.arange(50) % 2, classes=[0, 1]
    )
    null = FittedNull.new(400, first, 1)
    # 400 * 50 / (50 + 50) * 1/4 = 50, and a quarter of the learned maps' 4 and 16
    np.testing.assert_allclose(null.precision, [[51.0, 0.0], [0.0, 4.0]], atol=1e-12)


def test_laplace_is_near_the_integral():
    batch = rows(1, 40, c=2, slope=0.6)
    null = FittedNull.new(100, rows(2, 100, c=2), 1)
    after, gain = null.after(batch)
    odds = np.log(batch.probs[:, 0] / batch.probs[:, 1])
    tau, gamma = np.meshgrid(np.linspace(-2.5, 2.5, 201), np.linspace(-1.5, 3.5, 201))
    theta = np.stack([tau.ravel(), gamma.ravel()], axis=1)
    eta = theta[:, [0]] + theta[:, [1]] * odds
    sign = np.where(batch.codes == 0, 1.0, -1.0)
    log_l = -np.logaddexp(0.0, -sign * eta).sum(axis=1)
    prior = multivariate_normal(null.mean, np.linalg.inv(null.precision))
    integral = np.logaddexp.reduce(log_l + prior.logpdf(theta)) + math.log(0.025**2)
    assert gain == pytest.approx(integral - log_likelihood(batch), abs=0.02)
    assert after.n_batches == 1


def test_rows_one_by_one_or_all_at_once_give_the_same_evidence():
    batch = rows(3, 60, slope=0.7)
    start = FittedNull.new(300, batch, 0)
    at_once = start.after(batch)[1] + log_likelihood(batch)
    null, one_by_one = start, 0.0
    for k in range(60):
        row = batch.take([k])
        one_by_one += log_likelihood(null.predictions_at_mean(row))
        null, gain = null.after(row)
        one_by_one += gain
    assert one_by_one == pytest.approx(at_once, abs=0.05)


def test_the_probabilities_of_all_labels_of_a_row_sum_to_one():
    null = FittedNull.new(300, rows(4, 100), 2)
    for k in range(20):
        probs = rows(4, 100).probs[[k]]
        total = 0.0
        for label in range(3):
            row = Predictions.from_arrays(probs, [label], classes=range(3))
            total += probs[0, label] * math.exp(null.after(row)[1])
        assert total == pytest.approx(1.0, abs=2e-3)


def test_scores_that_vary_too_much_are_seen_and_the_expected_ones_are_not():
    def dispersion(noise):
        rng = np.random.default_rng(1)
        null = None
        for _ in range(40):
            probs = rng.dirichlet(np.full(4, 0.1), 200)
            probs = np.maximum(probs, 1e-6) / np.maximum(probs, 1e-6).sum(
                axis=1, keepdims=True
            )
            y = draw((1 - noise) * probs + noise / 4, rng)
            batch = Predictions.from_arrays(probs, y, classes=range(4))
            null = FittedNull.new(2000, batch, 0) if null is None else null
            null, _ = null.after(batch)
        return null.dispersion

    assert dispersion(0.0) < 1.3
    assert dispersion(0.05) > 1.5


def test_a_second_implementation_gives_the_same_numbers():
    model = fitted(300, c=4)
    monitor = mcllo.Monitor.start(model=model)
    streams = None
    for k in range(12):
        batch = rows(200 + k, 80, 4, 0.7 if k < 8 else 0.4)
        status = monitor.add(batch.probs, batch.codes, batch=str(k))
        x = model.predict_proba(batch.probs)
        if streams is None:
            streams = FittedStreams(1, 4, 300, baseline=int(x.mean(axis=0).argmax()))
        evidence, detector = streams.step(x[None], batch.codes[None])
        assert status.log_evidence == pytest.approx(evidence[0], abs=1e-4)
        assert status.log_detector == pytest.approx(detector[0], abs=1e-4)


def test_a_map_of_300_rows_raises_no_alarm_while_nothing_changes():
    # taken for exact, this map raises an alarm: its own estimation error
    model = fitted(300)
    exact = mcllo.Monitor.start(classes=range(3))
    for k in range(100):
        batch = rows(100 + k, 100, 3, 0.7)
        exact.add(model.predict_proba(batch.probs), batch.codes, batch=str(k))
    assert exact.status().kind == "alarm"
    status = watched(model, [0.7] * 100).status()
    assert status.kind == "not_detected"
    assert status.allows_estimation_error
    assert status.n_rows_learned == 300
    text = " ".join(str(status).split())
    assert (
        "The map was learned from 300 rows; its estimation error is allowed for" in text
    )
    assert "While nothing changes the alarm comes after about 1,000 batches" in text


def test_a_change_is_seen_and_dated():
    status = watched(fitted(1000), [0.7] * 30 + [0.3] * 8).status()
    assert status.kind == "alarm"
    assert status.onset_batch in ("w29", "w30", "w31")
    assert "no longer fit the labels, since about" in str(status)


def test_a_map_that_never_fitted_says_so():
    status = watched(fitted(3000), [0.2] * 20).status()
    assert (status.kind, status.onset_batch) == ("alarm", "")
    said = {s.kind: str(s) for s in status.statements()}
    assert (
        "do not fit the labels, as far back as can be seen. Raised" in said["monitor"]
    )
    assert "something had changed before the first batch" in said["learned"]
    assert said["step"].startswith(
        "Refit on all rows: those that the map was learned from, and the"
    )


def test_few_rows_are_said_to_be_few():
    assert "fewer than 30 for each shift and slope" in str(
        watched(fitted(40), [0.7]).status()
    )
    assert "fewer than" not in str(watched(fitted(120), [0.7]).status())


def test_a_model_that_changes_nothing_is_watched_as_raw_predictions():
    train = rows(0, 300)
    model = mcllo.calibrators.Identity(classes=range(3)).fit(train.probs, train.codes)
    status = watched(model, [0.8] * 5).status()
    raw = watched(None, [0.8] * 5, classes=range(3)).status()
    assert (status.n_rows_learned, status.allows_estimation_error) == (0, False)
    assert status.log_evidence == pytest.approx(raw.log_evidence, abs=1e-9)
    assert "learned" not in {s.kind for s in status.statements()}


def test_a_model_without_the_number_of_its_rows_says_so(tmp_path):
    train = rows(0, 300)
    model = mcllo.calibrators.TemperatureScaling(classes=range(3)).fit(
        train.probs, train.codes
    )
    model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    del content["training"], content["checksum"]
    (tmp_path / "old.json").write_text(json.dumps(content))
    status = watched(tmp_path / "old.json", [0.7] * 2).status()
    assert (status.n_rows_learned, status.allows_estimation_error) == (None, False)
    (said,) = (str(s) for s in status.statements() if s.kind == "learned")
    assert "the model file does not say from how many rows it was learned" in said
    assert "On calibrated predictions the alarm comes after 1,000 batches" in str(
        status
    )


def test_a_monitor_of_before_goes_on_as_it_was(tmp_path):
    path = tmp_path / "old.db"
    watched(fitted(60), [0.2] * 6, path=path).close()
    _forget_what_is_new(path)
    with mcllo.Monitor.open(path) as monitor:
        batch = rows(300, 100, slope=0.2)
        status = monitor.add(batch.probs, batch.codes, batch="next")
    assert (status.n_rows_learned, status.allows_estimation_error) == (60, False)
    assert (status.kind, status.onset_batch) == ("alarm", "")
    text = " ".join(str(status).split())
    assert (
        "as far back as can be seen: the map was learned from 60 rows. Raised by"
        in text
    )
    assert "started by an earlier version; start a new one" in text
    assert "no longer" not in text


def _forget_what_is_new(path):
    """Make of a monitor's file what the version before wrote: format 1, without checksums."""
    connection = sqlite3.connect(path)
    (text,) = connection.execute(
        "SELECT value FROM meta WHERE name = 'settings'"
    ).fetchone()
    settings = json.loads(text)
    del settings["n_rows_learned"]
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'settings'", (json.dumps(settings),)
    )
    connection.execute("UPDATE meta SET value = '1' WHERE name = 'format_version'")
    connection.execute("DELETE FROM meta WHERE name = 'checksum'")
    for number, data in connection.execute(
        "SELECT number, numbers FROM batches"
    ).fetchall():
        _, _, content = data.partition(b"\n")
        connection.execute(
            "UPDATE batches SET numbers = ? WHERE number = ?", (content, number)
        )
    state = unpack_arrays(connection.execute("SELECT numbers FROM state").fetchone()[0])
    new = ("total", "null_mean", "null_precision", "null_scores")
    state = {name: value for name, value in state.items() if name not in new}
    state["alarm"] = np.array([3.0, 2.0])
    _, _, content = pack_arrays(state).partition(b"\n")
    connection.execute("UPDATE state SET numbers = ?", (content,))
    connection.commit()
    connection.close()


def test_groups_and_batches_of_one_row():
    model = fitted(300)
    monitor = mcllo.Monitor.start(model=model)
    batch = rows(7, 30)
    for k in range(30):
        status = monitor.add(batch.probs[[k]], batch.codes[[k]], batch=str(k))
    assert math.isfinite(status.log_evidence)
    twice = mcllo.Monitor.start(model=model)
    once = mcllo.Monitor.start(model=model)
    many = rows(8, 200)
    pairs = np.repeat(np.arange(200), 2)
    status = twice.add(many.probs[pairs], many.codes[pairs], batch="a", groups=pairs)
    alone = once.add(many.probs, many.codes, batch="a")
    assert status.temperature == alone.temperature
    # of groups what the null hypothesis pays is left out, so that factors are never larger
    assert status.log_evidence <= alone.log_evidence + 1e-9
