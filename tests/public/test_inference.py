"""What holds for every function that tests predictions or judges them."""

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from independent import designs, sample
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import Predictions
from mcllo.exceptions import InputError

EXACT = {"method": "exact", "n_resamples": 99, "seed": 4}
CALLS = {
    "calibration_test": EXACT,
    "calibration_test, score": EXACT | {"statistic": "score"},
    "calibration_test, auto": {"baseline": "auto", "n_resamples": 99, "seed": 4},
    "robust_test": {"n_resamples": 99, "seed": 4},
    "omnibus_test": {"n_resamples": 99, "seed": 4},
    "bootstrap_fits": {"n_resamples": 20, "seed": 4},
    "calibration_posterior": {},
    "boldness_recalibrate": {},
}
every = pytest.mark.parametrize("name", CALLS)
drawing = pytest.mark.parametrize("name", [name for name in CALLS if "seed" in CALLS[name]])


def run(name, *data, **options):
    return getattr(mcllo, name.split(",")[0])(*data, **CALLS[name] | options)


def numbers(content, path=""):
    """Return all values of a dictionary by their path, but for the number of rows."""
    if not isinstance(content, (dict, list)):
        return {} if path.endswith("n_samples") else {path: content}
    items = content.items() if isinstance(content, dict) else enumerate(content)
    return {k: v for key, value in items for k, v in numbers(value, f"{path}.{key}").items()}


@every
def test_whole_weights_are_repeated_rows(name):
    probs, y = sample(80, 3, 6)
    weight = np.resize([1, 2, 0, 3], 80)
    again = np.repeat(np.arange(80), weight)
    weighted = numbers(run(name, probs, y, sample_weight=weight).to_dict())
    repeated = numbers(run(name, probs[again], y[again]).to_dict())
    assert weighted == pytest.approx(repeated, abs=1e-6)


@every
def test_dictionaries_are_strict_json_and_a_predictions_stands_for_its_arrays(name):
    probs = TOY_X.copy()
    found = run(name, probs, TOY_Y)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    assert run(name, Predictions.from_arrays(TOY_X, TOY_Y)).to_dict() == found.to_dict()
    np.testing.assert_array_equal(probs, TOY_X)  # the input is not changed


@drawing
def test_the_seed_decides(name):
    first = run(name, TOY_X, TOY_Y)
    drawn = run(name, TOY_X, TOY_Y, seed=np.random.default_rng(3))
    assert first.seed == 4
    assert drawn.seed != 4
    assert first.to_dict() != drawn.to_dict()
    assert run(name, TOY_X, TOY_Y, seed=drawn.seed).to_dict() == drawn.to_dict()


@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("bootstrap_fits", "omnibus_test")])
@settings(deadline=None, max_examples=10)
@given(designs(min_rows=25, max_rows=60, max_classes=2, max_sharpness=2.0))
def test_two_classes_can_be_swapped(name, design):
    probs, codes = design
    keys = {"statistic", "df", "pvalue", "posterior", "boldness"}
    options = {} if "auto" in name else {"baseline": 0}
    try:
        found = run(name, probs, codes)
        others = run(name, probs, codes, **options), run(name, probs[:, ::-1], 1 - codes)
    except InputError:  # separated
        assume(False)
    for key in keys & set(found.to_dict()):
        expected = pytest.approx(getattr(found, key), rel=1e-5, abs=1e-6)
        assert getattr(others[0], key) == expected, key
        if key != "pvalue" or "seed" not in CALLS[name]:
            assert getattr(others[1], key) == expected, key


@drawing
@pytest.mark.parametrize(("n_resamples", "rule"), [(0, "at least 1; got 0"), (1.5, "a whole num")])
def test_draws_are_a_positive_whole_number(name, n_resamples, rule):
    with pytest.raises(InputError, match=f"n_resamples must be {rule}"):
        run(name, TOY_X, TOY_Y, n_resamples=n_resamples)


@drawing
@pytest.mark.parametrize("seed", [-1, "x"])
def test_a_seed_is_a_whole_number(name, seed):
    with pytest.raises(InputError, match="seed must be a whole number >= 0"):
        run(name, TOY_X, TOY_Y, seed=seed)
