"""`mcllo.Monitor` and `mcllo monitor`, from outside."""

import json
import math

import numpy as np
import pytest

import mcllo
from mcllo.__main__ import run_command_line
from mcllo.exceptions import FileFormatError, InputError

CLASSES = ["cat", "dog", "eel"]


def batch(seed, n=300, slope=1.0, c=3, concentration=0.8):
    """Return predictions, and labels that follow ``x^slope``."""
    rng = np.random.default_rng(seed)
    probs = np.maximum(rng.dirichlet(np.full(c, concentration), n), 1e-6)
    probs /= probs.sum(axis=1, keepdims=True)
    truth = probs**slope / (probs**slope).sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return probs, np.array(CLASSES)[y] if c == 3 else y


def csv(path, probs, y):
    lines = [",".join([*CLASSES, "y"])]
    lines += [
        ",".join([*map(repr, row), label])
        for row, label in zip(probs.tolist(), y, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def watched(n_calm, n_wrong, slope=0.6, file=None, **options):
    """Return a monitor of calibrated batches, then of batches that are wrong."""
    monitor = mcllo.Monitor.start(file, classes=CLASSES, **options)
    for k in range(n_calm + n_wrong):
        wrong = k >= n_calm
        monitor.add(*batch(k, slope=slope if wrong else 1.0), batch=f"w{k:02}")
    return monitor


@pytest.mark.parametrize("rule", ["change", "ever"])
def test_a_change_raises_an_alarm_that_says_when_how_much_and_what_to_do(rule):
    status = watched(6, 4, rule=rule).status()
    assert status.kind == "alarm"
    assert status.onset_batch == "w06"
    assert status.alarm_batch in ("w06", "w07")
    assert status.n_rows_since == 1200
    truth = np.vstack([batch(k, slope=0.6)[0] for k in range(6, 10)])
    moved = truth**0.6 / (truth**0.6).sum(axis=1, keepdims=True)
    size = 0.5 * np.abs(moved - truth).sum(axis=1).mean()
    assert 0.0 < status.change.low < size
    assert 0.0 < status.temperature_change.low < size < status.temperature_change.high
    # the truth is x^0.6: a temperature of 1 / 0.6
    assert 1.0 < status.temperature.low < 1.0 / 0.6 < status.temperature.high
    assert status.gain > 0.0
    assert status.leading == "temperature"
    said = {s.kind: s for s in status.statements()}
    assert said["monitor"].level == "bad"
    assert said["step"].numbers["method"] == "temperature"
    assert status.pvalue == pytest.approx(math.exp(-status.log_evidence), rel=1e-6)


def test_calibrated_batches_raise_none_and_few_rows_cannot_tell():
    monitor = watched(12, 0)
    assert monitor.status().kind == "not_detected"
    first = mcllo.Monitor.start().add(*batch(0, n=5), batch="a")
    assert first.kind == "inconclusive"
    assert first.temperature_change.high >= 0.1


def test_an_alarm_stays_though_later_batches_are_calm():
    monitor = watched(3, 4)
    for k in range(20, 40):
        monitor.add(*batch(k), batch=str(k))
    status = monitor.status()
    assert (status.kind, status.onset_batch) == ("alarm", "w03")


def test_one_class_too_rare_is_named():
    monitor = mcllo.Monitor.start(classes=range(4))
    for k in range(20):
        rng = np.random.default_rng(k)
        probs = rng.dirichlet(np.ones(4), 400)
        truth = probs * [1.0, 1.0, 0.4, 1.0]
        truth /= truth.sum(axis=1, keepdims=True)
        y = (rng.random((400, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        status = monitor.add(probs, y, batch=str(k))
    assert 2 in status.named
    share = status.classes[2]
    assert (
        share.difference.low
        <= share.observed - share.predicted
        <= share.difference.high
        < 0.0
    )
    assert status.leading != "temperature"


def test_the_same_batch_again_adds_nothing_and_other_rows_by_its_name_are_refused():
    monitor = watched(2, 0)
    before = monitor.status()
    again = monitor.add(*batch(1), batch="w01")
    assert again.already
    assert not before.already
    assert again.log_evidence == before.log_evidence
    with pytest.raises(InputError, match="was added before, with other rows") as caught:
        monitor.add(*batch(7), batch="w01")
    assert caught.value.argument == "batch"
    assert monitor.status().n_batches == 2


def test_late_labels_count_as_they_arrive_and_keep_their_time():
    monitor = watched(2, 0)
    monitor.add(*batch(9), batch="late", time="w00b")
    table = monitor.history()
    assert table["batch"] == ["w00", "w01", "late"]
    assert table["time"] == ["w00", "w01", "w00b"]


def test_what_a_monitor_refuses():
    monitor = watched(1, 0)
    probs, y = batch(3)
    with pytest.raises(InputError, match="sample_weight") as caught:
        monitor.add(probs, y, batch="x", sample_weight=np.ones(len(y)))
    assert caught.value.argument == "sample_weight"
    with pytest.raises(InputError, match="needs a new monitor"):
        monitor.add(probs, np.where(y == "cat", "fox", y), batch="x")
    other = mcllo.Predictions.from_arrays(*batch(3, c=4))
    with pytest.raises(InputError, match="classes"):
        monitor.add(other, batch="x")
    with pytest.raises(InputError, match="after its first batch"):
        mcllo.Monitor.start().status()
    with pytest.raises(InputError, match="two groups"):
        monitor.add(probs, y, batch="x", groups=np.zeros(len(y)))
    assert monitor.status().n_batches == 1


def test_levels_that_are_none():
    for name, value in (("rule", "often"), ("run_length", 1), ("alpha", 1.0)):
        with pytest.raises(InputError) as caught:
            mcllo.Monitor.start(**{name: value})
        assert caught.value.argument == name


def test_the_recalibrated_predictions_of_a_model_are_watched(tmp_path):
    train = batch(50, n=4000, slope=0.6)
    model = mcllo.calibrators.TemperatureScaling().fit(*train)
    model.save(tmp_path / "model.json")
    raw = mcllo.Monitor.start(classes=CLASSES)
    kept = [
        mcllo.Monitor.start(model=given) for given in (model, tmp_path / "model.json")
    ]
    for k in range(8):
        rows = batch(k, slope=0.6)
        raw.add(*rows, batch=str(k))
        statuses = [monitor.add(*rows, batch=str(k)) for monitor in kept]
    assert raw.status().kind == "alarm"
    assert {status.kind for status in statuses} == {"not_detected"}
    assert {status.recalibrated for status in statuses} == {"temperature"}
    by_hand = mcllo.Monitor.start(classes=CLASSES)
    for k in range(8):
        probs, y = batch(k, slope=0.6)
        by_hand.add(model.predict_proba(probs), y, batch=str(k))
    # sizes are those of the recalibrated predictions; evidence also allows for the estimation error
    assert by_hand.status().temperature == statuses[0].temperature
    assert by_hand.status().classes[0].predicted == pytest.approx(
        statuses[0].classes[0].predicted
    )
    assert statuses[0].log_evidence == pytest.approx(statuses[1].log_evidence)
    with pytest.raises(InputError, match="those of the model"):
        mcllo.Monitor.start(model=model, classes=["a", "b", "c"])


def test_rows_that_repeat_each_other_alarm_as_rows_and_not_as_groups():
    alone, grouped = mcllo.Monitor.start(), mcllo.Monitor.start()
    for k in range(25):
        probs, y = batch(k, n=40)
        rows, labels = np.repeat(probs, 12, axis=0), np.repeat(y, 12)
        alone.add(rows, labels, batch=str(k))
        status = grouped.add(
            rows, labels, batch=str(k), groups=np.repeat(np.arange(40), 12)
        )
    assert alone.status().kind == "alarm"
    assert status.kind != "alarm"
    single = mcllo.Monitor.start()
    for k in range(25):
        known = single.add(*batch(k, n=40), batch=str(k))
    # copies are one row: all but what is learned from counts of rows
    assert status.temperature == known.temperature


def test_a_zero_stands_for_what_the_user_says():
    probs = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    y = ["eel", "cat"]
    plain = mcllo.Monitor.start(classes=CLASSES).add(probs, y, batch="a")
    floor = mcllo.Monitor.start(classes=CLASSES, clip=0.01).add(probs, y, batch="a")
    assert plain.n_zero_labels == 1
    assert floor.n_zero_labels == 0
    assert floor.log_detector > plain.log_detector
    assert "zeros" in {s.kind for s in plain.statements()}


def test_it_says_the_same_in_json_and_in_history(tmp_path):
    monitor = watched(3, 2)
    content = json.loads(json.dumps(monitor.status().to_dict(), allow_nan=False))
    assert content["kind"] == "alarm"
    assert [row["label"] for row in content["classes"]] == CLASSES
    assert {said["kind"] for said in content["statements"]} >= {
        "monitor",
        "evidence",
        "size",
    }
    table = monitor.history()
    assert table["rows"] == [300] * 5
    probs, y = batch(0)
    own = probs[np.arange(300), [CLASSES.index(label) for label in y]]
    assert table["log_loss"][0] == pytest.approx(-np.log(own).mean())
    assert table["log_detector"][-1] == content["log_detector"]
    mcllo.plot.save(mcllo.plot.monitor(monitor, caption=True), tmp_path / "m.svg")
    assert "since about here" in (tmp_path / "m.svg").read_text()


def test_batches_of_one_row_and_of_many():
    monitor = mcllo.Monitor.start(classes=CLASSES)
    probs, y = batch(0, n=40)
    for k in range(40):
        status = monitor.add(probs[[k]], y[[k]], batch=str(k))
    assert math.isfinite(status.log_evidence)
    assert monitor.add(*batch(1, n=25_000), batch="many").n_rows == 25_040


def test_the_command_line(tmp_path, capsys):
    file = str(tmp_path / "weekly.db")
    assert (
        run_command_line(["monitor", "start", file, "--classes", ",".join(CLASSES)])
        == 0
    )
    codes = []
    for k in range(6):
        path = csv(tmp_path / f"{k}.csv", *batch(k, n=300, slope=1.0 if k < 4 else 0.5))
        prom = str(tmp_path / "weekly.prom")
        add = [
            "monitor",
            "add",
            file,
            path,
            "--label",
            "y",
            "--batch",
            f"w{k}",
            "--textfile",
            prom,
        ]
        codes.append(run_command_line(add))
    assert codes[:4] == [3, 0, 0, 0]
    assert codes[5] == 1
    assert run_command_line(add) == 1
    out = capsys.readouterr()
    assert "Alarm" in out.out
    assert "nothing was added" in out.err
    assert (
        'mcllo_monitor_alarm{monitor="weekly"} 1\n'
        in (tmp_path / "weekly.prom").read_text()
    )
    assert run_command_line(["monitor", "show", file, "--json", "--batches"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert [row["batch"] for row in content["batches"]] == [f"w{k}" for k in range(6)]
    assert content["n_rows"] == 1800
    assert (
        run_command_line(["monitor", "show", file, "--html", str(tmp_path / "m.md")])
        == 1
    )
    assert "w4" in (tmp_path / "m.md").read_text()


@pytest.mark.slow
def test_the_command_line_draws(tmp_path):
    file = str(tmp_path / "weekly.db")
    watched(2, 3, file=file)
    assert (
        run_command_line(["monitor", "show", file, "--html", str(tmp_path / "m.html")])
        == 1
    )
    assert "w02" in (tmp_path / "m.html").read_text()
    assert (
        run_command_line(["monitor", "show", file, "--figure", str(tmp_path / "m.png")])
        == 1
    )
    assert (tmp_path / "m.png").stat().st_size > 10_000


def test_the_command_line_cannot_tell_and_refuses(tmp_path, capsys):
    file = str(tmp_path / "m.db")
    assert (
        run_command_line(
            ["monitor", "start", file, "--rule", "ever", "--alpha", "0.01"]
        )
        == 0
    )
    path = csv(tmp_path / "0.csv", *batch(0, n=6))
    assert (
        run_command_line(["monitor", "add", file, path, "--label", "y", "--batch", "1"])
        == 3
    )
    assert run_command_line(["monitor", "start", file]) == 2
    other = csv(tmp_path / "1.csv", *batch(1, n=6))
    assert (
        run_command_line(
            ["monitor", "add", file, other, "--label", "y", "--batch", "1"]
        )
        == 2
    )
    assert "--batch 1 was added before" in capsys.readouterr().err
    assert run_command_line(["monitor", "show", path]) == 2
    assert (
        run_command_line(["monitor", "show", file, "--html", str(tmp_path / "m.pdf")])
        == 2
    )
    with pytest.raises(FileFormatError):
        mcllo.Monitor.open(path)


def test_a_stale_file_is_not_counted_twice_and_rows_that_may_recur_are():
    monitor = watched(2, 0)
    with pytest.raises(InputError, match="'w02' were added before, as 'w01'") as caught:
        monitor.add(*batch(1), batch="w02")
    assert caught.value.argument == "batch"
    assert monitor.status().n_batches == 2
    # one row, or the same prediction for everybody with a label that nearly all have, comes again
    same = np.tile([0.98, 0.01, 0.01], (40, 1))
    for k in range(3):
        monitor.add([[0.2, 0.3, 0.5]], ["eel"], batch=f"one row {k}")
        status = monitor.add(same, ["cat"] * 39 + ["dog"], batch=f"all alike {k}")
    assert status.n_batches == 8


def test_the_recalibration_that_it_names_in_python_can_be_fitted():
    status = watched(6, 4).status()
    (step,) = (s for s in status.statements() if s.kind == "step")
    call = str(step).split(" on: ")[1].split(". Learned")[0]
    probs, y = batch(7, slope=0.6)
    assert call.endswith(".fit(probs, y)")
    assert hasattr(
        eval(call, {"mcllo": mcllo, "probs": probs, "y": y}), "predict_proba"
    )


def test_the_gain_is_that_of_a_group_where_there_are_groups():
    alone, grouped = (mcllo.Monitor.start(classes=CLASSES) for _ in range(2))
    for k in range(6):
        probs, y = batch(k, slope=0.5)
        single = alone.add(probs, y, batch=str(k))
        rows, labels = np.repeat(probs, 4, axis=0), np.repeat(y, 4)
        status = grouped.add(
            rows, labels, batch=str(k), groups=np.repeat(np.arange(300), 4)
        )
    assert (single.leading, status.leading) == ("temperature", "temperature")
    assert status.gain == pytest.approx(single.gain)


def test_one_row_is_one_row():
    status = mcllo.Monitor.start(classes=CLASSES).add(
        [[0.2, 0.3, 0.5]], ["eel"], batch="a"
    )
    assert str(status.statements()[0]).startswith(
        "Cannot tell yet: 1 row in 1 batch is too few."
    )


def test_shares_are_drawn_by_time_and_evidence_by_arrival():
    def drawn(times):
        monitor = mcllo.Monitor.start(classes=CLASSES)
        for k, time in enumerate(times):
            monitor.add(*batch(k), batch=f"{k + 8}", time=time)
        rows = monitor.history()
        evidence, _, shares, _ = mcllo.plot.monitor(monitor)
        line = shares.lines[1]  # the first is that of 0
        name = line.get_label()
        off = [
            100 * (np.mean(y == name) - p[:, CLASSES.index(name)].mean())
            for p, y in map(batch, range(4))
        ]
        np.testing.assert_allclose(
            evidence.lines[0].get_ydata() * math.log(10.0), rows["log_detector"]
        )
        return np.asarray(line.get_ydata()).tolist(), off

    found, off = drawn(["w1", "w3", "w4", "w2"])
    assert found == pytest.approx([off[k] for k in (0, 3, 1, 2)])
    found, off = drawn([None] * 4)  # "8", "9", "10", "11": names need not sort
    assert found == pytest.approx(off)


def test_an_alarm_of_no_certain_size_is_no_all_clear():
    monitor = mcllo.Monitor.start(classes=CLASSES)
    for k in range(60):
        slope = 1.0 if k < 20 else 0.75
        status = monitor.add(*batch(k, n=60, slope=slope), batch=f"w{k:02}")
        if status.kind == "alarm" and status.change.low == 0.0:
            break
    # found by looking: an alarm whose size is not bounded away from 0
    assert status.kind == "alarm"
    assert status.change.low == 0.0
    said = {s.kind: s.text for s in status.statements()}
    assert "is not certain yet (0.0 percentage points or more)" in said["size"]
    assert "no probability stands" not in str(status)
    assert max(map(len, str(status).splitlines())) <= 96
    calm = watched(2, 0).status()
    assert "no probability stands on the wrong classes for certain" in " ".join(
        str(calm).split()
    )


def test_the_temperature_is_one():
    # the truth is x^2: these predictions are not sure enough, a temperature of 1/2
    content = watched(0, 4, slope=2.0).status().to_dict()
    heat = content["temperature"]
    assert heat["low"] < 0.5 < heat["high"] < 1.0
    assert heat["low"] <= heat["value"] <= heat["high"]


def test_after_an_alarm_a_new_monitor_goes_on(tmp_path, capsys):
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with watched(6, 3, file=old, rule="ever", alpha=0.01) as monitor:
        assert monitor.status().kind == "alarm"
    assert run_command_line(["monitor", "show", str(old)]) == 1
    assert "mcllo monitor restart MONITOR NEW --model" in " ".join(
        capsys.readouterr().out.split()
    )
    assert run_command_line(["monitor", "restart", str(old), str(new)]) == 0
    assert (
        f"{new}: monitor started, with the settings of {old}" in capsys.readouterr().out
    )
    with mcllo.Monitor.open(new) as fresh, mcllo.Monitor.open(old) as kept:
        assert fresh.settings == kept.settings
        assert fresh.records() == []
        assert kept.status().kind == "alarm"  # it stays as it was
        assert fresh.add(*batch(50), batch="w50").kind != "alarm"
        probs, y = batch(51, n=600, slope=0.6)
        recalibration = mcllo.calibrators.TemperatureScaling().fit(probs, y)
        watching = kept.restart(model=recalibration)
        assert watching.settings["recalibrated"] == "temperature"
        assert watching.restart().settings["recalibrated"] == "temperature"
    assert run_command_line(["monitor", "restart", str(old), str(new)]) == 2
