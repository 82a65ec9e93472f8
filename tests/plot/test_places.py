"""Where figures stand: in axes and parts of figures that were given, and before their reader."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from figure_checks import (
    assert_readable,
    assessment,
    comparison,
    drawn_texts,
    predictions,
)
from matplotlib.figure import Figure

import mcllo
from mcllo import plot
from mcllo.exceptions import InputError
from mcllo.plot._style import PanelList, plot_style, without_display

SEVERAL = {
    "reliability_by_class": (lambda: assessment(3), 3),
    "comparison": (comparison, 5),
    "comparison_dots": (comparison, 3),
    "baselines": (lambda: assessment(3), 2),
    "subgroups": (lambda: divided(), 2),
    "parameters": (lambda: assessment(3).fit, 2),
    "monitor": (lambda: watched(), 4),
}
"""Figures of several panels: what is drawn, and how many panels it has."""
slow = pytest.mark.slow
each_of_several = pytest.mark.parametrize(
    "name",
    [
        name if name == "parameters" else pytest.param(name, marks=slow)
        for name in SEVERAL
    ],
)


def divided():
    rows = predictions(3, 200)
    return mcllo.subgroups(rows, by=["a", "b"] * 100, seed=0, n_resamples=19)


def watched():
    monitor = mcllo.Monitor.start(classes=range(3))
    for k in range(5):
        rows = predictions(3, 200, seed=k)
        monitor.add(rows.probs, rows.codes, batch=f"w{k}", time=f"2026-01-0{k + 1}")
    return monitor


@each_of_several
def test_several_panels_fill_an_array_of_axes(name):
    result, n_panels = SEVERAL[name][0](), SEVERAL[name][1]
    figure = Figure(figsize=(5 * n_panels, 5), layout="constrained")
    given = figure.subplots(1, n_panels + 1)
    made = getattr(plot, name)(result, ax=given, caption=True)
    assert made == given[:n_panels].tolist()
    assert isinstance(made, PanelList)
    assert figure.axes == given.tolist()
    assert not given[-1].axison  # one too many: left blank
    assert figure.get_size_inches().tolist() == [5.0 * n_panels, 5.0]
    with without_display():
        own = getattr(plot, name)(result)
    assert [ax.get_title(loc="left") for ax in made] == [
        ax.get_title(loc="left") for ax in own
    ]
    for one, other in zip(made, own, strict=True):
        np.testing.assert_array_equal(one.get_xlim(), other.get_xlim())
    assert_readable(figure)


@each_of_several
def test_several_panels_fill_a_part_of_a_figure(name):
    result, n_panels = SEVERAL[name][0](), SEVERAL[name][1]
    figure = Figure(figsize=(12, 9), layout="constrained")
    upper, lower = figure.subfigures(2, 1)
    made = getattr(plot, name)(result, ax=upper, caption=True)
    assert len(made) == n_panels
    root = made[0].get_figure(root=False)
    assert root is upper
    (key,) = upper.legends
    assert not lower.axes
    assert_readable(figure)
    with plot_style():
        box = key.get_window_extent()
    assert all(
        box.y1 < ax.get_window_extent().y0 for ax in made
    )  # it stands below all of them


def test_as_many_classes_as_there_are_axes():
    given = Figure(figsize=(8, 4), layout="constrained").subplots(1, 2)
    made = plot.reliability_by_class(assessment(5), ax=given)
    whole = plot.reliability_by_class(assessment(5), max_classes=2)
    assert [ax.get_title(loc="left") for ax in made] == [
        ax.get_title(loc="left") for ax in whole
    ]
    assert "2 of 5 classes" in " ".join(
        word for word, _ in drawn_texts(given[0].figure)[0]
    )


def test_a_column_of_axes_is_labelled_at_its_own_left_and_foot():
    given = Figure(layout="constrained").subplots(3, 2)[:, 1]
    made = plot.reliability_by_class(assessment(3), ax=given)
    assert [ax.get_ylabel() for ax in made] == ["Observed frequency"] * 3
    assert [ax.get_xlabel() for ax in made] == ["", "", "Predicted probability"]


def test_places_that_do_not_fit():
    ax = Figure().subplots()
    with pytest.raises(
        InputError, match=r"ax must hold 3 axes, .*; got 1\. plt\.subplots\(1, 3\)"
    ):
        plot.comparison_dots(comparison(), ax=ax)
    with pytest.raises(InputError, match=r"ax must hold 2 axes, .*; got str"):
        plot.baselines(assessment(3), ax=["left", "right"])
    with pytest.raises(InputError, match=r"ax must be an Axes, .*; got ndarray"):
        plot.nested_models(assessment(3), ax=np.array([ax, ax]))


@pytest.mark.parametrize(
    "name",
    [
        "nested_models",
        pytest.param("reliability", marks=slow),
        pytest.param("ternary", marks=slow),
    ],
)
def test_one_axes_in_a_part_of_a_figure(name):
    upper, _ = Figure(figsize=(6, 10), layout="constrained").subfigures(2, 1)
    ax = getattr(plot, name)(assessment(3), ax=upper)
    assert upper.axes == [ax]
    assert len(upper.legends) == 1


def test_the_key_of_a_given_axes_covers_no_box_and_no_bar():
    figure = Figure(figsize=(6, 5), layout="constrained")
    ax = plot.reliability(assessment(3), ax=figure.subplots())
    drawn_texts(figure)
    box = ax.get_legend().get_window_extent()
    for part in ax.collections:
        for path in part.get_paths():
            corners = part.get_transform().transform(path.vertices)
            (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
            across = min(x1, box.x1) - max(x0, box.x0)
            assert across < 1 or min(y1, box.y1) - max(y0, box.y0) < 1


def test_a_tight_picture_keeps_the_key_and_the_caption():
    # cut without them, the page would end at the words of the axis
    ax = plot.reliability(assessment(3), caption=True)
    drawn_texts(ax)
    box = ax.figure.get_tightbbox()
    (key,) = ax.figure.legends
    (caption,) = ax.figure.texts
    for part in (key, caption):
        own = part.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
        assert box.y0 <= own.y0 + 1e-9
        assert box.x0 <= own.x0 + 1e-9


SCREEN = """
import sys, types, warnings
warnings.simplefilter("error")
from matplotlib.backend_bases import FigureManagerBase, _Backend
from matplotlib.backends.backend_agg import FigureCanvasAgg

shown = []
module = types.ModuleType("a_screen")
class Manager(FigureManagerBase):
    @classmethod
    def pyplot_show(cls, *, block=None):
        import matplotlib.pyplot as plt
        shown.append(plt.get_fignums())
class Canvas(FigureCanvasAgg):
    manager_class = Manager
module.FigureCanvas, module.FigureManager = Canvas, Manager
sys.modules["a_screen"] = module
import matplotlib
matplotlib.use(BACKEND)
import matplotlib.pyplot as plt
import mcllo, mcllo.plot
a = mcllo.assess([[.7, .3], [.4, .6], [.2, .8], [.6, .4]], [0, 0, 1, 1], seed=0)
"""


def run(backend, code):
    """Run lines where pyplot is loaded and has this backend."""
    lines = SCREEN.replace("BACKEND", repr(backend)) + code
    return subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True
    ).stdout


@slow
def test_windows_show_figures_and_few_stay_open():
    found = run(
        "module://a_screen",
        "ax = mcllo.plot.reliability(a)\n"
        "assert plt.gcf() is ax.figure\n"
        "plt.show()\n"
        "print(shown)\n"
        "mcllo.plot.reliability(a, ax=plt.figure().subplots())\n"  # theirs, and no other
        "print(plt.get_fignums())\n"
        "mcllo.report(a).html(), a._repr_html_()\n"  # figures of pages are nobody's windows
        "print(len(plt.get_fignums()))\n"
        "for _ in range(30): mcllo.plot.calibration_map(a.fit)\n"
        "print(len(plt.get_fignums()), matplotlib.rcParams['figure.max_open_warning'])\n",
    )
    assert found.split("\n")[:4] == ["[[1]]", "[1, 2]", "2", "21 20"]


@slow
def test_without_a_screen_pyplot_hears_of_nothing():
    found = run(
        "agg",
        "for _ in range(30): mcllo.plot.calibration_map(a.fit)\nprint(plt.get_fignums())\n",
    )
    assert found.split() == ["[]"]


@slow
def test_other_threads_open_no_windows():
    found = run(
        "module://a_screen",
        "from threading import Thread\n"
        "t = Thread(target=mcllo.plot.reliability, args=(a,)); t.start(); t.join()\n"
        "print(plt.get_fignums())\n",
    )
    assert found.split() == ["[]"]


@slow
def test_windows_save_the_bytes_that_scripts_save(tmp_path):
    code = "mcllo.plot.save(mcllo.plot.reliability(a), r'{}')\n"
    paths = [tmp_path / name for name in ("window.svg", "script.svg")]
    for backend, path in zip(("module://a_screen", "agg"), paths, strict=True):
        run(backend, code.format(Path(path)))
    assert paths[0].read_bytes() == paths[1].read_bytes()
