import json
from dataclasses import replace

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


def test_the_recommendation_is_about_the_judged_rows():
    r = C.recommendation
    assert r.method == C.best
    assert r.log_loss == pytest.approx(C[C.best].log_loss)
    others = {d.method: d.difference for d in r.differences}
    for row in C.judged:
        if row.method != C.best:
            assert others[row.method] == pytest.approx(row.log_loss_difference)
    assert C.recommendation is r
    assert C.to_dict()["recommendation"] == r.to_dict()
    fewer = replace(C, rows=tuple(row for row in C.rows if row.method != "histogram"))
    assert "histogram" not in {d.method for d in fewer.recommendation.differences}


def test_the_recommendation_is_printed():
    assert " ".join(str(C.recommendation).split()) in " ".join(str(C).split())


def test_a_bound_says_that_it_is_one():
    rows = [replace(C.rows[0], pvalue=p, pvalue_method="bound") for p in (1e-300, 1e-20, 0.0)]
    cells = [replace(C, rows=(row,))._cells(row)[2] for row in rows]
    assert cells == ["<= 1.0e-300", "<= 1.0e-20", "< 1e-300"]


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
