"""The public names of `mcllo.plot`."""

import importlib.util
import inspect
from pathlib import Path

import matplotlib
import pytest
from figure_checks import assessment, comparison
from matplotlib.axes import Axes
from shared_data import load_cifar10_vgg16_keras

import mcllo
from mcllo import plot

ROOT = Path(__file__).resolve().parents[1]
FIGURES = sorted(set(plot.__all__) - {"caption", "save", "to_svg"})


@pytest.mark.parametrize("name", plot.__all__)
def test_docstrings_name_every_parameter(name):
    function = getattr(plot, name)
    parameters = inspect.signature(function).parameters
    for parameter in parameters:
        assert parameter in inspect.getdoc(function)
    positional = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert len(positional) == (1 if name in FIGURES or name == "to_svg" else 2)


def test_where_there_is_one_axes_it_may_be_given():
    for name in FIGURES:
        several = name in ("reliability_by_class", "comparison", "comparison_dots", "baselines")
        assert ("ax" in inspect.signature(getattr(plot, name)).parameters) != several


def test_figures_leave_settings_and_pyplot_alone():
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    assert isinstance(plot.reliability(assessment(3)), Axes)
    plot.comparison(comparison())
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []


def test_what_is_drawn_is_not_changed():
    a = assessment(3)
    before = a.to_dict()
    plot.reliability(a)
    plot.parameters(a.fit)
    assert a.to_dict() == before


def test_the_figures_of_the_readme_are_the_same_bytes_twice(tmp_path):
    path = ROOT / "docs" / "make_figures.py"
    spec = importlib.util.spec_from_file_location("make_figures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("one", "two"):
        module.main(tmp_path / name)
    for name in ("reliability.svg", "parameters.svg"):
        content = (tmp_path / "one" / name).read_bytes()
        assert content == (tmp_path / "two" / name).read_bytes()
        assert b"<svg" in (ROOT / "docs" / "figures" / name).read_bytes()


@pytest.mark.filterwarnings("ignore::mcllo.exceptions.ZeroProbabilityWarning")
def test_svg_of_real_predictions_is_small():
    rows = load_cifar10_vgg16_keras()
    a = mcllo.assess(rows, seed=0, n_resamples=99)
    assert len(plot.to_svg(plot.reliability(a))) < 60_000
    assert len(plot.to_svg(plot.reliability_by_class(a))) < 300_000
