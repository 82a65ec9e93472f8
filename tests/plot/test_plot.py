"""The public names of `mcllo.plot`."""

import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from figure_checks import HOSTILE, assessment, drawn_texts, hostile
from matplotlib.axes import Axes

import mcllo
from mcllo import plot
from mcllo.exceptions import FileFormatError, InputError
from mcllo.plot._files import find_figure
from mcllo.plot._style import BLUE, INK, PAPER
from mcllo.plot._words import fit_labels

ROOT = Path(__file__).resolve().parents[2]
slow = pytest.mark.slow
FIGURES = sorted(
    set(plot.__all__) - {"ReliabilityDisplay", "caption", "save", "to_svg"}
)


def test_docstrings_name_every_parameter():
    for name in sorted({*plot.__all__} - {"ReliabilityDisplay"}):
        function = getattr(plot, name)
        parameters = inspect.signature(function).parameters
        for parameter in parameters:
            assert parameter in inspect.getdoc(function), name
        positional = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
        takes_rows = name in ("reliability", "reliability_by_class")
        takes_one = (name in FIGURES and not takes_rows) or name == "to_svg"
        assert len(positional) == (1 if takes_one else 2), name
        assert ("ax" in parameters) == (name in FIGURES), (
            name
        )  # every figure may be put somewhere


def test_figures_leave_settings_pyplot_and_results_alone():
    import matplotlib.pyplot as plt

    a = assessment(3)
    settings, result = dict(matplotlib.rcParams), a.to_dict()
    assert isinstance(plot.reliability(a), Axes)
    assert dict(matplotlib.rcParams) == settings
    assert plt.get_fignums() == []
    assert a.to_dict() == result


@slow
def test_the_figures_of_the_readme_are_the_same_bytes_twice(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import make_figures

    for name in ("one", "two"):
        make_figures.main(tmp_path / name)
    for name in ("reliability.svg", "parameters.svg"):
        content = (tmp_path / "one" / name).read_bytes()
        assert content == (tmp_path / "two" / name).read_bytes()
        assert b"<svg" in (ROOT / "docs" / "figures" / name).read_bytes()


SVG = "{http://www.w3.org/2000/svg}"


@cache
def element(**options):
    return plot.to_svg(plot.reliability(assessment(3)), **options)


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_label_of_any_characters_is_xml():
    found = ElementTree.fromstring(element(alt='a\x00\x08\ud800 <b> & "c"\n'))
    assert (
        found.get("aria-label") == 'a <b> & "c" '
    )  # XML reads the end of a line as a space


@pytest.mark.parametrize(
    "ending", ["svg", pytest.param("png", marks=slow), pytest.param("pdf", marks=slow)]
)
def test_the_same_bytes_twice(tmp_path, ending):
    paths = [tmp_path / f"{name}.{ending}" for name in "ab"]
    plot.save(plot.reliability(assessment(3)), paths[0], dpi=50)
    with matplotlib.rc_context(
        {"font.size": 20, "svg.hashsalt": "other", "axes.grid": True}
    ):
        plot.save(plot.reliability(assessment(3)).figure, paths[1], dpi=50)
    content = paths[0].read_bytes()
    assert content == paths[1].read_bytes()
    assert len(content) > 1000
    if ending == "svg":  # text is text, and there is no date
        assert "Observed frequency" in texts(content)
        assert b"<dc:date>" not in content
        assert b"sans-serif" in content


def test_a_saved_figure_can_be_drawn_and_saved_again(tmp_path):
    ax, axes = plot.reliability(assessment(3)), plot.parameters(assessment(3).fit)
    for name in ("a.svg", "b.svg"):
        plot.save(axes, tmp_path / name)
        drawn_texts(axes)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    before = ax.get_position().x0
    ax.set_ylabel("a\nlabel\nof\nfour lines")
    plot.save(ax, tmp_path / "a.png", dpi=50)
    assert ax.get_position().x0 > before + 0.05
    assert ax.get_in_layout()


def test_an_element_for_a_page():
    svg = element(salt="two", alt='a "b" <c>')
    assert svg.startswith('<svg role="img" aria-label="a &quot;b&quot; &lt;c&gt;" ')
    for unwanted in ("<?xml", "<!DOCTYPE", "<style", "<metadata", "var(--"):
        assert unwanted not in svg
    assert ElementTree.fromstring(svg).get("aria-label") == 'a "b" <c>'
    assert 'aria-hidden="true"' in element()


def test_ids_are_used_and_belong_to_one_figure():
    ids = []
    for svg in (element(), element(salt="two", alt='a "b" <c>')):
        here = re.findall(r' id="([^"]+)"', svg)
        assert len(here) == len(set(here))
        assert all(f"#{name}" in svg for name in here)
        ids += here
    assert len(ids) == len(set(ids)) > 2


def test_themed_colours_fall_back_to_ours():
    plain, themed = element(), element(themed=True)
    for name, colour in (("ink", INK), ("paper", PAPER), ("blue", BLUE)):
        assert f": var(--mcllo-{name}, {colour})" in themed
    assert re.sub(r"var\(--mcllo-[a-z]+, (#[0-9a-f]+)\)", r"\1", themed) == plain


def test_hostile_names_are_text():
    svg = plot.to_svg(plot.parameters(hostile().fit, max_classes=99), themed=True)
    found = texts(svg)
    for name in fit_labels(HOSTILE)[:-1]:
        assert name in found
    assert any(
        fit_labels(HOSTILE)[-1] in (word or "") for word in found
    )  # the baseline
    assert "<script" not in svg


@slow
def test_nothing_needs_pyplot(tmp_path):
    code = (
        "import sys, mcllo, mcllo.plot\n"
        "a = mcllo.assess([[.7, .3], [.4, .6], [.2, .8], [.6, .4]], [0, 0, 1, 1], seed=0)\n"
        f"mcllo.plot.save(mcllo.plot.reliability(a), r'{tmp_path / 'a.png'}')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    bare = {"PATH": "", "HOME": str(tmp_path)}  # no display
    subprocess.run([sys.executable, "-c", code], check=True, env=bare)
    assert (tmp_path / "a.png").exists()


def test_errors(tmp_path):
    ax = plot.reliability(assessment(2))
    with pytest.raises(
        InputError, match=r"path must end in .svg, .png, .pdf or .tiff; got 'a.jpg'"
    ):
        plot.save(ax, tmp_path / "a.jpg")
    with pytest.raises(FileFormatError, match="there is no directory"):
        plot.save(ax, tmp_path / "no" / "a.svg")
    ax.remove()
    with pytest.raises(InputError, match="part of a figure"):
        find_figure(ax)


def test_a_tiff_of_so_many_dots(tmp_path):
    image = pytest.importorskip("PIL.Image")
    a = mcllo.assess(
        [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0
    )
    figure = plot.parameters(a.fit)
    plot.save(figure, tmp_path / "a.tiff", dpi=300)
    with image.open(tmp_path / "a.tiff") as found:
        assert found.info["dpi"] == (300, 300)
        width, height = find_figure(figure).get_size_inches()
        assert found.size == (int(300 * width), int(300 * height))
