"""What benchmarks of calibrators ask for: ``fit(p, y)``, ``predict_proba(p)``, labels from 0."""

import numpy as np
import pytest
from sklearn.base import clone

from mcllo.calibrators import CALIBRATORS


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.filterwarnings("ignore::mcllo.exceptions.MclloWarning")
def test_calibrators_fit_the_contract_of_calarena(name):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 1.0, 0.2], size=200)
    y = (p.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    y[y == 3] = 0  # a class without a label is no error
    calibrator = clone(CALIBRATORS[name](classes=list(range(4))))
    x = np.log(p) if calibrator.input == "logits" else p
    assert calibrator.fit(x, y) is calibrator
    found = calibrator.predict_proba(x)
    assert found.shape == (200, 4)
    assert np.isfinite(found).all()
    assert (found >= 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
