import json

import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import compare

C = compare(
    (TOY_X, TOY_Y), (TOY_X[::-1], TOY_Y[::-1]), methods=["temperature", "histogram"], seed=0
)


def test_the_training_rows_are_not_judged():
    assert [row.method for row in C.judged] == ["uncalibrated", "temperature", "histogram"]


def test_best_is_the_smallest_log_loss():
    losses = {row.method: row.log_loss for row in C.judged}
    assert C.best == min(losses, key=losses.get)


def test_unknown_row():
    with pytest.raises(KeyError, match="isotonic"):
        C["isotonic"]


def test_frame_and_strict_json():
    frame = C.to_frame()
    assert frame["method"].tolist()[:2] == ["uncalibrated_train", "uncalibrated"]
    content = json.loads(json.dumps(C.to_dict(), allow_nan=False))
    keys = {"method", "n", "pvalue", "pvalue_corrected", "ece", "accuracy", "label_change"}
    assert keys | {"log_loss", "brier", "classwise_ece", "fit_seconds"} <= set(content["rows"][0])
    assert content["rows"][0]["log_loss_difference"] is None
    assert content["skipped"] == {}


def test_the_table_marks_the_best_value_of_each_column():
    lines = str(C).splitlines()
    best = next(line for line in lines if line.startswith(C.best))
    assert f"{C[C.best].log_loss:.4f}*" in best
    train = next(line for line in lines if line.startswith("uncalibrated (train)"))
    assert "*" not in train


def test_the_table_explains_itself():
    text = str(C)
    assert "are these numbers calibrated?" in text
    assert "is it the same map in both samples?" in text
    assert "not proof of calibration" in text
    assert max(len(line) for line in text.splitlines()) < 150


def test_zero_probabilities_that_came_true_are_counted():
    # of the rows at .95 none is class 1 in training, so its bin says 0; then one comes true
    probs = np.vstack([np.tile([0.95, 0.05], (40, 1)), np.tile([0.45, 0.55], (10, 1))])
    y = np.repeat([0, 1], [40, 10])
    later = y.copy()
    later[0] = 1
    c = compare((probs, y), (probs, later), methods=["histogram"], seed=0)
    assert c["histogram"].n_zero_labels == 1
    assert "came true with probability 0 (raised to 1e-6 here): histogram 1" in str(c)
