"""The metric in `integrations/huggingface`, by the real evaluate, without a network."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from mcllo import calibration_test, metrics
from mcllo.exceptions import InputError

MODULE = (
    Path(__file__).resolve().parents[2]
    / "integrations"
    / "huggingface"
    / "mcllo_calibration.py"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("evaluate") is None, reason="evaluate is not installed"
    ),
    pytest.mark.filterwarnings("ignore"),  # those of its imports
]


@pytest.fixture
def metric(tmp_path, monkeypatch):
    for name in ("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    import evaluate

    return evaluate.load(str(MODULE), cache_dir=str(tmp_path))


def draw_rows():
    """Return 300 overconfident rows of three classes."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1.0, 1.0, 1.0], size=300)
    y = (probs.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    sharp = probs**2
    return sharp / sharp.sum(axis=1, keepdims=True), y


def test_the_numbers_are_those_of_the_package(metric):
    probs, y = draw_rows()
    found = metric.compute(predictions=probs, references=y)
    test = calibration_test(probs, y, statistic="score", method="chi2")
    assert found["score_statistic"] == pytest.approx(test.statistic, rel=1e-10)
    assert found["score_pvalue"] == pytest.approx(test.pvalue, rel=1e-8)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, probs))
    ece = metrics.expected_calibration_error(y, probs, n_bins=15)
    assert found["ece"] == pytest.approx(ece)
    assert found["ece_pvalue"] <= 0.05


def test_batches_and_options(metric):
    probs, y = draw_rows()
    for rows in np.array_split(np.arange(300), 4):
        metric.add_batch(predictions=probs[rows], references=y[rows])
    found = metric.compute(n_bins=7)
    ece = metrics.expected_calibration_error(y, probs, n_bins=7)
    assert found["ece"] == pytest.approx(ece)


def test_it_says_what_it_is_and_what_is_wrong(metric):
    assert "score test" in metric.description
    assert "Van Hoorde" in metric.citation
    with pytest.raises(InputError, match="must sum to 1"):
        metric.compute(predictions=[[0.7, 0.7]], references=[0])
