"""Colours, and settings that do not leak."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from mcllo._plot import style


def luminance(colour):
    """WCAG 2.1 relative luminance."""
    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(colour, other="#ffffff"):
    bright, dark = sorted([luminance(colour), luminance(other)], reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_text_has_the_contrast_that_wcag_asks_for():
    for text in (style.INK, style.MUTED):
        for paper in (style.PAPER, style.BAND):
            assert contrast(text, paper) >= 4.5


def test_marks_stand_out_from_paper_and_band():
    for mark in (style.BLUE, style.VERMILION):
        assert contrast(mark) >= 3.0
        assert contrast(mark, style.BAND) >= 2.5


def test_series_differ_in_more_than_colour():
    assert len(set(style.SERIES)) == len(set(style.MARKERS)) == len(style.SERIES)
    assert len({str(dash) for dash in style.DASHES}) == len(style.SERIES)


def test_settings_come_back():
    with matplotlib.rc_context({"font.size": 31.0, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        with style.look(**{"svg.hashsalt": "own"}):
            assert matplotlib.rcParams["font.size"] == style.TEXT
            assert matplotlib.rcParams["svg.fonttype"] == "none"
            assert matplotlib.rcParams["svg.hashsalt"] == "own"
        assert dict(matplotlib.rcParams) == before


def test_settings_come_back_after_an_error():
    @style.styled
    def fails():
        raise KeyError("x")

    before = dict(matplotlib.rcParams)
    with pytest.raises(KeyError):
        fails()
    assert dict(matplotlib.rcParams) == before


def test_unit_axes():
    ax = Figure().subplots()
    style.unit_axes(ax, bottom=-0.2)
    assert ax.get_xlim() == pytest.approx((-0.01, 1.01))
    assert ax.get_ylim() == pytest.approx((-0.21, 1.02))
    assert ax.yaxis.get_major_formatter()(0.25, 0) == "0.25"
