"""The parts of figures: panels, words, forests, colours, names."""

import unicodedata
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from figure_checks import HOSTILE, assessment, comparison, hostile, line
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from mcllo import plot
from mcllo.exceptions import InputError
from mcllo.plot import _style as style
from mcllo.plot._files import find_figure
from mcllo.plot._layout import (
    grid_shape,
)
from mcllo.plot._style import (
    Estimates,
    draw_forest,
    forest_legend,
    format_tick,
    log_ticks,
    set_round_ticks,
)
from mcllo.plot._words import (
    BOX,
    CAPTIONS,
    fit_label,
    fit_labels,
    format_probability_change,
    format_signed,
    text_width,
)


def test_grid_holds_all_panels_and_no_empty_row():
    for n in range(1, 30):
        for columns in (None, 1, 2, 5):
            rows, wide = grid_shape(n, columns)
            assert (rows - 1) * wide < n <= rows * wide, (n, columns)
            assert wide <= (4 if columns is None else columns), (n, columns)


NAN = float("nan")


def estimates(values, halves, reference=1.0, cap=10.0):
    value, half = np.array(values, dtype=float), np.array(halves, dtype=float)
    return Estimates(value, value - half, value + half, reference, cap)


def forest(drawn, log=False):
    ax = Figure().subplots()
    draw_forest(ax, drawn, log=log)
    return ax


def test_one_wild_interval_is_cut():
    wild = estimates([0.9, 1.0, 1.1, 1.0], [0.1, 0.1, 0.1, 50.0])
    low, high = wild.axis_limits
    assert 0.0 < low < high < 2.0
    left, right = wild.is_cut
    assert left.tolist() == right.tolist() == [False, False, False, True]
    ax = forest(wild)
    np.testing.assert_allclose(line(ax, "_cut<"), [[low, 3.0]])
    np.testing.assert_allclose(line(ax, "_cut>"), [[high, 3.0]])


def test_marks_say_what_the_interval_says():
    # [.7, .9] excludes 1, [.9, 1.3] does not, the third has none, the fourth lies far outside
    drawn = estimates([0.8, 1.1, 0.9, 99.0], [0.1, 0.2, NAN, NAN])
    assert drawn.excludes_reference.tolist() == [True, False, False, False]
    ax = forest(drawn)
    assert line(ax, "_excludes").tolist() == [[0.8, 0.0]]
    assert line(ax, "_includes").tolist() == [[1.1, 1.0]]
    assert line(ax, "_unknown").tolist() == [[0.9, 2.0]]
    assert line(ax, "_cut>")[:, 1].tolist() == [3.0]
    (intervals,) = (part for part in ax.collections if part.get_label() == "_intervals")
    np.testing.assert_allclose(intervals.get_segments()[0], [[0.7, 0.0], [0.9, 0.0]])
    assert ax.get_ylim() == (3.6, -0.6)
    said = [
        "interval includes 1",
        "interval excludes 1",
        "no interval",
        "beyond the axis",
    ]
    assert [handle.get_label() for handle in forest_legend([drawn])] == said


@settings(deadline=None, max_examples=20)
@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e9))
def test_log_ticks_are_few_and_inside(low, ratio):
    high = low * ratio
    ticks = log_ticks(low, high)
    assert len(ticks) <= 8
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)
    if low <= 1.0 <= high and ratio < 1e4:
        assert 1.0 in ticks or ratio < 1.1


@pytest.mark.parametrize(
    ("ends", "also"), [((0.4, 1.1), 1.0), ((0.5, 11.0), 1.0), ((-3, 4), None)]
)
def test_plain_ticks(ends, also):
    ax = Figure().subplots()
    ax.set_xlim(*ends)
    set_round_ticks(ax, log=False, also=also)
    ticks = ax.xaxis.get_major_locator()()
    assert 2 <= len(ticks) <= 8
    if also is not None:
        assert also in [round(tick, 9) for tick in ticks]


def test_numbers_in_words():
    ticks = {
        0.0: "0",
        0.30000000000000004: "0.3",
        -1.5: "−1.5",
        1000.0: "1000",
        3e-6: "3e-06",
    }
    assert {value: format_tick(value) for value in ticks} == ticks
    assert (format_signed(-0.04), format_signed(12.0)) == ("−0.0", "+12.0")
    assert format_probability_change(0.01234) == "0.012"
    assert (
        format_probability_change(0.0)
        == format_probability_change(2.6e-15)
        == "< 0.0001"
    )


def luminance(colour):
    """WCAG 2.1 relative luminance."""
    channels = np.array(to_rgb(colour))
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(colour, other):
    bright, dark = sorted([luminance(colour), luminance(other)], reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(
    ("colours", "on_paper", "on_band"),
    # 4.5 is what WCAG asks of text, 3 of marks
    [((style.INK, style.MUTED), 4.5, 4.5), ((style.BLUE, style.VERMILION), 3.0, 2.5)],
)
def test_text_and_marks_have_contrast(colours, on_paper, on_band):
    for colour in colours:
        assert contrast(colour, style.PAPER) >= on_paper
        assert contrast(colour, style.BAND) >= on_band


def test_settings_come_back():
    with matplotlib.rc_context({"font.size": 31.0, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        with style.plot_style(**{"svg.hashsalt": "own"}):
            found = {
                name: matplotlib.rcParams[name]
                for name in ("font.size", "svg.fonttype")
            }
            assert found == {"font.size": style.TEXT_PT, "svg.fonttype": "none"}
            assert matplotlib.rcParams["svg.hashsalt"] == "own"
        assert dict(matplotlib.rcParams) == before
        with pytest.raises(KeyError):
            style.use_style({}.__getitem__)("an error inside")
        assert dict(matplotlib.rcParams) == before


def test_every_figure_has_a_caption_that_stands_under_it_when_asked_for():
    assert set(CAPTIONS) == set(plot.__all__) - {
        "ReliabilityDisplay",
        "caption",
        "save",
        "to_svg",
    }
    a, c = assessment(3), comparison()
    results = {
        "reliability": a,
        "reliability_by_class": a,
        "nested_models": a,
        "baselines": a,
    }
    results |= {"parameters": a.fit, "calibration_map": a.fit}
    results |= {"comparison": c, "comparison_dots": c}
    for kind, result in results.items():
        figure = find_figure(getattr(plot, kind)(result, caption=True))
        text = plot.caption(kind, result)
        assert text in " ".join(
            " ".join(part.get_text().split()) for part in figure.texts
        ), kind
        # it does not overclaim
        assert "is calibrated" not in text, kind
        assert "well" not in text.split(), kind
    without = find_figure(plot.reliability(a))
    assert plot.caption("reliability", a) not in " ".join(
        part.get_text() for part in without.texts
    )


def test_captions_say_what_is_special():
    a = assessment(3)
    assert "baseline, 2:" in plot.caption("calibration_map", a.fit)
    assert len(plot.caption("calibration_map", hostile().fit)) < 600
    for kind in ("nested_models", "baselines"):
        assert plot.caption(kind, a) == plot.caption(kind, getattr(a.details, kind))

    def of_rows(**changes):
        changed = replace(a, predictions=replace(a.predictions, **changes))
        return plot.caption("reliability", changed, curve="bins")

    weighted = of_rows(sample_weight=np.full(a.predictions.n_samples, 0.5))
    assert "boxes" not in weighted
    assert "Lines: 95 % intervals." in weighted
    grouped = of_rows(groups=np.arange(a.predictions.n_samples) // 2)
    assert "They assume independent rows" in grouped
    assert "assume" not in of_rows()
    with pytest.raises(
        InputError, match=r"kind must be one of reliability, .*; got 'pie'"
    ):
        plot.caption("pie", a)


def test_long_names_are_cut_and_told_apart():
    assert fit_labels(["cat", "Hund", 7, "été"]) == ["cat", "Hund", "7", "été"]
    names = fit_labels(HOSTILE)
    assert len(set(names)) == len(HOSTILE)
    assert [name[-4:] for name in names[:2]] == ["… #1", "… #2"]
    assert max(map(len, names)) <= 24


def test_one_name():
    seen = {
        "two\nlines\x00": "two lines",
        "\u202eright": "right",
        "猫": BOX,
        "$5_^": "$5_^",
        "": "(empty)",
        " \u200b ": "(empty)",
        None: "None",
        "\ud800": BOX,
    }
    assert {label: fit_label(label) for label in seen} == seen


def test_room_is_measured():
    # W is about three times as wide as i
    wide, narrow = (
        fit_label("W" * 24, room=100.0, bold=True),
        fit_label("i" * 24, room=100.0, bold=True),
    )
    assert text_width(wide, bold=True) <= 100.0
    assert len(wide) < 12
    assert narrow == "i" * 24
    assert fit_label("WWWW", room=5.0) == "…"


@settings(deadline=None, max_examples=20)
@given(st.text(max_size=60))
def test_any_text_can_be_drawn(text):
    name = fit_label(text)
    assert 0 < len(name) <= 24
    assert not any(
        unicodedata.category(letter) in ("Cc", "Cf", "Cs") for letter in name
    )
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.5, name, parse_math=False, family="DejaVu Sans")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a glyph that the font lacks
        FigureCanvasAgg(figure).draw()
