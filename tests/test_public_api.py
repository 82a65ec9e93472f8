"""The conventions of the public names, read from their signatures."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
from inputs import case

import mcllo
from mcllo import MCLLOCalibrator

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = [name for name in mcllo.__all__ if not name.startswith("__")]
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(mcllo, name))]
CLASSES = [name for name in PUBLIC if inspect.isclass(getattr(mcllo, name))]
METRICS = [
    name
    for name in mcllo.metrics.__all__
    if inspect.isfunction(getattr(mcllo.metrics, name))
]


def test_all_is_sorted_and_complete():
    for name in mcllo.__all__:
        assert getattr(mcllo, name) is not None
    assert set(dir(mcllo)) == set(mcllo.__all__)
    with pytest.raises(AttributeError, match="no attribute 'asess'"):
        mcllo.asess  # noqa: B018


POSITIONAL = {
    "read_predictions": ["path"],
    "load_calibrator": ["path"],
    "compare": ["train", "holdout"],
    "report": ["result"],
    "label_change": ["before", "after"],
    "decide": ["probs", "costs"],
    "decision_value": ["probs", "y", "costs"],
    "assess_choices": ["scores", "y"],
    "read_choices": ["path"],
    "choices_from_top_logprobs": ["listed", "y"],
}


def test_unknown_keywords_are_refused_by_the_name_that_was_called():
    for name in FUNCTIONS:
        if name in ("compare", "report"):
            continue
        unknown = rf"{name}\(\) got an unexpected keyword argument 'weigths'"
        with case(name), pytest.raises(TypeError, match=unknown):
            getattr(mcllo, name)([[0.5, 0.5]], [0], weigths=[1])


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("class_tests", "weight_kind"),
        ("nested_models", "groups"),
        ("omnibus_test", "weight_kind"),
    ],
)
def test_options_that_a_function_cannot_honour_are_refused(name, option):
    with pytest.raises(TypeError, match=rf"{name}\(\) .* keyword argument '{option}'"):
        getattr(mcllo, name)([[0.5, 0.5]], [0], **{option: None})


def positional(function):
    """Return the names of the parameters that may be given without their name."""
    parameters = inspect.signature(function).parameters
    return [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]


def test_what_fits_takes_probs_then_y():
    for name in FUNCTIONS:
        assert positional(getattr(mcllo, name)) == POSITIONAL.get(
            name, ["probs", "y"]
        ), name
    for name in ("assess", "calibration_test"):
        assert (
            inspect.signature(getattr(mcllo, name)).parameters["seed"].default is None
        )


def test_what_scores_takes_y_true_then_y_prob_and_weights():
    for name in METRICS:
        metric = getattr(mcllo.metrics, name)
        assert positional(metric) == POSITIONAL.get(name, ["y_true", "y_prob"]), name
        assert "sample_weight" in inspect.signature(metric).parameters, name


@pytest.mark.parametrize(
    "name", ["Assessment", "CalibrationTest", "MCLLOFit", "MCLLOMap"]
)
def test_results_are_frozen_and_not_iterable(name):
    cls = getattr(mcllo, name)
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen
    assert not cls.__dataclass_params__.eq
    assert not hasattr(cls, "__iter__")
    assert callable(cls.to_dict)


def test_every_public_name_is_in_the_reference_and_does_not_overclaim():
    reference = (ROOT / "docs" / "reference.md").read_text()
    for name in PUBLIC:
        thing = getattr(mcllo, name)
        assert "is_calibrated" not in dir(thing), name
        assert inspect.getdoc(thing), name
        assert re.search(rf"\b{name}\b", reference), (
            f"docs/reference.md does not mention {name}"
        )


def test_every_parameter_is_documented():
    calibrators = [
        name for name in CLASSES if issubclass(getattr(mcllo, name), MCLLOCalibrator)
    ]
    assert calibrators
    for name in [*FUNCTIONS, *calibrators]:
        thing = getattr(mcllo, name)
        doc = inspect.getdoc(thing)
        for parameter in inspect.signature(thing).parameters:
            assert re.search(rf"\b{parameter}\b", doc), (
                f"{name} does not document {parameter}"
            )


def test_simulations_take_their_options_by_name():
    for name, positional in (
        ("draw", ["n_samples"]),
        ("power", []),
        ("power_for", ["probs"]),
    ):
        parameters = inspect.signature(getattr(mcllo.simulate, name)).parameters
        by_place = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
        assert by_place == positional, name
        assert parameters["seed"].default is None, name
