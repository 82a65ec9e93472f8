"""`StreamingCalibration` in a loop of PyTorch, and gathered from processes as TorchMetrics does."""

from importlib.util import find_spec

import numpy as np
import pytest

import mcllo
from mcllo.metrics import StreamingCalibration

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("ignore"),  # those of its import
]


@pytest.fixture
def torch():
    import torch

    torch.manual_seed(0)
    return torch


def test_tensors_go_in_as_they_are(torch):
    network = torch.nn.Linear(5, 4)
    x, y = torch.randn(700, 5), torch.randint(0, 4, (700,))
    by_logits, by_probs = StreamingCalibration(4), StreamingCalibration(4)
    for rows in torch.arange(700).split(128):
        logits = network(x[rows])  # with its graph
        assert logits.requires_grad
        by_logits.update(y=y[rows], logits=logits)
        by_probs.update(logits.softmax(dim=1), y[rows])
    z = network(x).detach().double().numpy()
    batch = mcllo.calibration_test(
        y=y.numpy(), logits=z, statistic="score", method="chi2"
    )
    found = by_logits.compute()
    assert found.n_samples == 700
    assert found.test.statistic == pytest.approx(batch.statistic, rel=1e-9)
    # single precision: seven digits of the probabilities
    assert by_probs.compute().test.statistic == pytest.approx(batch.statistic, rel=1e-4)


def test_half_precision_and_the_exchange_protocol(torch):
    logits = torch.randn(300, 3)
    y = torch.randint(0, 3, (300,))
    whole = StreamingCalibration(3).update(y=y, logits=logits).compute()
    half = StreamingCalibration(3).update(y=y, logits=logits.bfloat16()).compute()
    assert half.log_loss == pytest.approx(whole.log_loss, rel=0.01)

    class Alone:  # a library that has DLPack and no __array__
        shape = logits.shape
        __dlpack__ = staticmethod(logits.__dlpack__)
        __dlpack_device__ = staticmethod(logits.__dlpack_device__)

    found = StreamingCalibration(3).update(y=y, logits=Alone()).compute()
    assert found.metrics == whole.metrics


def test_states_of_processes_as_stacked_tensors(torch):
    logits = torch.randn(400, 3)
    y = torch.randint(0, 3, (400,))
    states = []
    for rows in torch.arange(400).chunk(3):
        seen = StreamingCalibration(3).update(y=y[rows], logits=logits[rows])
        states.append(torch.tensor(seen.state))
    total = StreamingCalibration(3)
    for state in torch.stack(states):
        total.merge(state)
    expected = StreamingCalibration(3).update(y=y, logits=logits)
    np.testing.assert_allclose(total.state, expected.state, rtol=1e-10, atol=1e-10)
