"""The conventions of the public names, read from their signatures."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import mcllo

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = [name for name in mcllo.__all__ if not name.startswith("__")]
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(mcllo, name))]
CLASSES = [name for name in PUBLIC if inspect.isclass(getattr(mcllo, name))]
METRICS = [
    name for name in mcllo.metrics.__all__ if inspect.isfunction(getattr(mcllo.metrics, name))
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
}


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("compare", "report")])
def test_unknown_keywords_are_refused_by_the_name_that_was_called(name):
    unknown = rf"{name}\(\) got an unexpected keyword argument 'weigths'"
    with pytest.raises(TypeError, match=unknown):
        getattr(mcllo, name)([[0.5, 0.5]], [0], weigths=[1])


@pytest.mark.parametrize(
    ("name", "option"),
    [("class_tests", "weight_kind"), ("ladder", "groups"), ("omnibus_test", "weight_kind")],
)
def test_options_that_a_function_cannot_honour_are_refused(name, option):
    assert option not in inspect.signature(getattr(mcllo, name)).parameters
    with pytest.raises(TypeError, match=rf"{name}\(\) .* keyword argument '{option}'"):
        getattr(mcllo, name)([[0.5, 0.5]], [0], **{option: None})


@pytest.mark.parametrize("name", [*FUNCTIONS, *METRICS])
def test_what_fits_takes_probs_then_y_and_what_scores_y_true_then_y_prob(name):
    scores = name in METRICS
    parameters = inspect.signature(getattr(mcllo.metrics if scores else mcllo, name)).parameters
    positional = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    usual = ["y_true", "y_prob"] if scores else ["probs", "y"]
    assert positional == POSITIONAL.get(name, usual)
    assert "sample_weight" in parameters or not scores
    if name in ("assess", "calibration_test"):
        assert parameters["seed"].default is None


@pytest.mark.parametrize("name", ["Assessment", "CalibrationTest", "MCLLOFit", "MCLLOMap"])
def test_results_are_frozen_and_not_iterable(name):
    cls = getattr(mcllo, name)
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen
    assert not cls.__dataclass_params__.eq
    assert not hasattr(cls, "__iter__")
    assert callable(cls.to_dict)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_reference_and_does_not_overclaim(name):
    assert "is_calibrated" not in dir(getattr(mcllo, name))
    assert inspect.getdoc(getattr(mcllo, name))
    reference = (ROOT / "docs" / "reference.md").read_text()
    assert re.search(rf"\b{name}\b", reference), f"docs/reference.md does not mention {name}"


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_every_parameter_is_documented(name):
    thing = getattr(mcllo, name)
    if inspect.isclass(thing) and not issubclass(thing, mcllo.MCLLOCalibrator):
        return
    doc = inspect.getdoc(thing)
    for parameter in inspect.signature(thing).parameters:
        assert re.search(rf"\b{parameter}\b", doc), f"{name} does not document {parameter}"
