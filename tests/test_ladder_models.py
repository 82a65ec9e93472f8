import numpy as np
import pytest
from independent import draw, simplex
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._fit import fit_predictions
from mcllo._ladder_models import INSIDE, MODELS, NEXT, Models, mcllo_bases


def models_of(probs, y, **options):
    p = Predictions.from_arrays(probs, y, **options)
    return Models(p, fit_predictions(p))


def test_the_lattice_is_closed_under_intersection():
    # what two hypotheses have in common must be a hypothesis of the family: closed testing needs it
    below = {name: {name, *INSIDE[name]} for name in MODELS}
    for a in MODELS:
        for b in MODELS:
            common = below[a] & below[b]
            largest = max(common, key=lambda name: len(below[name]))
            assert below[largest] == common


@pytest.mark.parametrize("model", MODELS[:-1])
def test_inside_says_what_the_directions_say(model):
    bases = mcllo_bases(3)
    for other in MODELS[:-1]:
        both = np.hstack([bases[model], bases[other]])
        contained = bases[other].size == 0 or np.linalg.matrix_rank(both) == bases[model].shape[1]
        assert contained == (other == model or other in INSIDE[model])
    if model in NEXT:
        assert model in INSIDE[NEXT[model]]


@pytest.mark.parametrize(
    ("model", "nll", "df"),
    [
        ("identity", 12.6033816017, 0),
        ("temperature", 12.302730003, 1),
        ("shift", 12.460926236, 2),
        ("scale", 12.298153121, 2),
        ("common_slope", 12.138374571, 3),
        ("mcllo", 12.030275892, 4),
        ("full", 11.897891348, 6),
    ],
)
def test_toy_likelihoods(model, nll, df):
    # methods specification 8f, TOY
    fit = models_of(TOY_X, TOY_Y).fits[model]
    assert -fit.log_likelihood == pytest.approx(nll, abs=2e-9)
    assert fit.df == df


@pytest.mark.parametrize("model", ["temperature", "shift", "common_slope", "full"])
def test_models_without_a_baseline(model):
    # methods specification 8f: shift, common slope and temperature are invariant; so is full
    reached = {
        round(models_of(TOY_X, TOY_Y, baseline=b).fits[model].log_likelihood, 8) for b in range(3)
    }
    assert len(reached) == 1


def test_for_two_classes_models_coincide():
    probs = TOY_X[:, :2] / TOY_X[:, :2].sum(axis=1, keepdims=True)
    fits = models_of(probs, TOY_Y % 2).fits
    assert fits["scale"].log_likelihood == pytest.approx(fits["temperature"].log_likelihood)
    for model in ("common_slope", "full"):
        assert fits[model].df == fits["mcllo"].df == 2
        assert fits[model].log_likelihood == pytest.approx(fits["mcllo"].log_likelihood)


def test_the_full_map_is_left_out_with_a_reason():
    assert "6 parameters for 6 rows" in models_of(TOY_X[:6], [0, 1, 2, 1, 2, 0]).skipped
    rng = np.random.default_rng(0)
    probs = simplex(rng, 1200, 31)
    models = models_of(probs, draw(probs, rng), classes=list(range(31)))
    assert "more than 30 classes" in models.skipped
    assert "full" not in models.fits
    p = Predictions.from_arrays(TOY_X, TOY_Y)  # 16 rows x 6^2 = 576 products at 200 a cell
    assert "too much data" in Models(p, fit_predictions(p), work=2.0).skipped
    assert Models(p, fit_predictions(p), work=3.0).skipped == ""
