"""Every calibrator says in a line what it learned."""

import data
import numpy as np
import pytest

import mcllo
from mcllo.calibrators import CALIBRATORS, Identity, TemperatureScaling

PROBS, Y = data.drawn(200, range(3), 4, power=2.0)


@pytest.mark.parametrize("name", [*CALIBRATORS, "identity"])
def test_every_calibrator_has_a_summary_of_one_line(name):
    kind = Identity if name == "identity" else CALIBRATORS[name]
    fitted = kind().fit(PROBS, np.array(Y))
    said = fitted.summary()
    assert "\n" not in said
    if name != "auto":  # which says what is in its mean
        assert "map of 3 classes" in said
        assert "from 200 rows" in said


def test_a_saved_calibrator_says_the_same(tmp_path):
    fitted = TemperatureScaling().fit(PROBS, np.array(Y))
    fitted.save(tmp_path / "model.json")
    again = mcllo.load_calibrator(tmp_path / "model.json")
    assert again.summary() == fitted.summary()
    # Predictions were squared and divided by their sums: T = 2 undoes it, up to chance.
    assert fitted.temperature_ == pytest.approx(2.0, rel=0.2)
    words = f"temperature {fitted.temperature_:.3g}, as predictions were overconfident"
    assert fitted.summary().endswith(words)


def test_the_summary_of_mcllo_is_its_description():
    fitted = mcllo.MCLLOCalibrator().fit(PROBS, np.array(Y))
    assert fitted.summary() == fitted.describe()
