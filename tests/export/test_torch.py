"""PyTorch beyond the table: scripted, exported, trained further, on logits, in float32."""

import data
import models
import numpy as np
import pytest

from mcllo.export import torch_module
from mcllo.export._programs import build_program
from mcllo.export._targets import stress_test_rows

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
ONES = [
    "mcllo",
    "auto",
    "vector, absent class",
    "beta",
    "isotonic",
    "histogram, absent class",
]
ONES += ["xu_davoine"]  # together: every step


def rows_of(name):
    program = build_program(models.model(name))
    return torch.from_numpy(stress_test_rows(program, 60))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ONES)
def test_it_can_be_scripted(name):
    module, rows = torch_module(models.model(name)), rows_of(name)
    scripted = torch.jit.script(module)
    torch.testing.assert_close(scripted(rows), module(rows), rtol=0.0, atol=1e-15)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ONES)
def test_it_can_be_exported(name):
    module, rows = torch_module(models.model(name)), rows_of(name)
    batch = torch.export.Dim("batch", min=2, max=1000)
    made = torch.export.export(module, (rows[:7],), dynamic_shapes=({0: batch},))
    torch.testing.assert_close(made.module()(rows), module(rows), rtol=0.0, atol=1e-15)


def test_parameters_are_trainable():
    # from a map that does nothing to one that a temperature of 2 made: the loss falls
    X, y = data.drawn(400, models.CLASSES, 3, power=2.0)
    module = torch_module(models.model("temperature"))
    codes = torch.tensor([models.CLASSES.index(label) for label in y])
    names = [name for name, _ in module.named_parameters()]
    assert names
    assert all(name.startswith(("weight", "shift")) for name in names)
    with torch.no_grad():
        next(module.parameters()).fill_(1.0)
    step = torch.optim.LBFGS(module.parameters(), max_iter=40)
    rows = torch.from_numpy(X)

    def loss():
        step.zero_grad()
        value = torch.nn.functional.nll_loss(module(rows).log(), codes)
        value.backward()
        return value

    before = loss().item()
    step.step(loss)
    assert loss().item() < before - 0.01
    trained = next(module.parameters()).detach().numpy()
    np.testing.assert_allclose(trained, 0.5, atol=0.15)


@pytest.mark.parametrize("name", ["auto", "isotonic", "histogram"])
def test_every_parameter_gets_a_gradient(name):
    module, rows = torch_module(models.model(name)), rows_of(name)
    (module(rows) ** 2).sum().backward()
    grown = [
        p.grad is not None and bool(torch.isfinite(p.grad).all())
        for p in module.parameters()
    ]
    assert grown
    assert all(grown)


def test_float32_in_float32_out_and_any_leading_axes():
    calibrator = models.model("mcllo")
    module = torch_module(calibrator)
    X = data.drawn(12, models.CLASSES, 3)[0]
    single = module(torch.from_numpy(X.astype(np.float32)))
    assert single.dtype == torch.float32
    np.testing.assert_allclose(
        single.detach().numpy(), calibrator.predict_proba(X), atol=1e-6
    )
    boxed = module(torch.from_numpy(X.reshape(3, 4, 4)))
    np.testing.assert_allclose(
        boxed.detach().numpy().reshape(12, 4), calibrator.predict_proba(X), atol=1e-15
    )
    light = module.float()
    assert {p.dtype for p in light.parameters()} == {torch.float32}
    found = light(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(found, calibrator.predict_proba(X), atol=1e-5)


def test_logits_of_a_network():
    calibrator = models.model("auto")
    module = torch_module(calibrator, input="logits")
    z = np.random.default_rng(0).normal(0.0, 4.0, (50, 4))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    found = module(torch.from_numpy(z)).detach().numpy()
    np.testing.assert_allclose(found, calibrator.predict_proba(p), atol=1e-14)
