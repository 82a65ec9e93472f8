"""The nested models against VGAM's (R), whose solver and restrictions are another's."""

import json
from pathlib import Path

import numpy as np
import pytest
from shared_data import load_hpc_cv, load_soccer_538
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit import fit_predictions
from mcllo._ladder_models import Models

VGAM = json.loads((Path(__file__).parent / "reference" / "vgam_ladder.json").read_text())["sets"]
LOADERS = {
    "toy": lambda: Predictions.from_arrays(TOY_X, TOY_Y),
    "hpc_cv": load_hpc_cv,
    "soccer_538": load_soccer_538,
}
MODELS = ("temperature", "shift", "scale", "common_slope", "mcllo", "full")


@pytest.fixture(scope="module", params=LOADERS)
def fitted(request):
    predictions = LOADERS[request.param]()
    return VGAM[request.param], Models(predictions, fit_predictions(predictions)).fits


@pytest.mark.parametrize("model", MODELS)
def test_likelihoods_are_those_of_vgam(fitted, model):
    reference, fits = fitted
    expected = reference[model]["log_likelihood"]
    assert fits[model].log_likelihood == pytest.approx(expected, rel=1e-11, abs=1e-9)


@pytest.mark.parametrize("model", MODELS[:-1])
def test_estimates_are_those_of_vgam(fitted, model):
    reference, fits = fitted
    expected = np.array(reference[model]["coefficients"])
    theta = fits[model].theta
    k = len(theta) // 2
    ours = {
        "temperature": theta[-1:],
        "shift": theta[:k],
        "scale": theta[k:],
        "common_slope": np.append(theta[:k], theta[-1]),
        "mcllo": theta,
    }[model]
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-7)  # VGAM stops at 1e-7 here
