"""The parts of figures: panels, words, forests, colours, names."""

import inspect
import unicodedata
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from figure_checks import HOSTILE, assessment, comparison, drawn_texts, hostile, line, words
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mcllo import plot
from mcllo._diagnosis.ladder_models import INSIDE
from mcllo.exceptions import InputError
from mcllo.plot import _style as style
from mcllo.plot._files import figure_of
from mcllo.plot._layout import (
    OwnFigure,
    footer,
    grid,
    heading,
    label_outer,
    panel_room,
    panels,
    side_legend,
    wrapped,
)
from mcllo.plot._scales import Estimates, draw_forest, forest_key, log_ticks, plain_ticks, tick_word
from mcllo.plot._style import beside, look, marks
from mcllo.plot._words import (
    BOX,
    CAPTIONS,
    MODEL_NAMES,
    format_change,
    model_name,
    shown,
    shown_all,
    signed,
    width_of,
)


@pytest.mark.parametrize("n", range(1, 30))
def test_grid_holds_all_panels_and_no_empty_row(n):
    for columns in (None, 1, 2, 5):
        rows, wide = grid(n, columns)
        assert (rows - 1) * wide < n <= rows * wide
        assert wide <= (4 if columns is None else columns)


def test_panels():
    assert [grid(n) for n in (1, 4, 5, 10, 12)] == [(1, 1), (1, 4), (2, 3), (3, 4), (3, 4)]
    axes = panels(5, None)
    assert len(axes) == len(axes[0].get_figure().axes) == 5
    label_outer(axes, "across", "up")
    assert [ax.get_xlabel() for ax in axes] == ["", "", "across", "across", "across"]
    assert [ax.get_ylabel() for ax in axes] == ["up", "", "", "up", ""]
    assert 100.0 < panel_room(axes) < 72 * 2.5


def test_a_figure_of_ours_grows_by_its_footer():
    with look():
        figure = OwnFigure(4.0, 3.0)
        ax = figure.subplots()
        heading(ax, "Title", "below")
        footer(ax, ["A sentence.", "", "Another one."], [Line2D([], [], label="key")])
    assert figure.get_size_inches()[0] == 4.0
    assert figure.get_size_inches()[1] > 3.3
    found, _ = drawn_texts(figure)
    assert "A sentence. Another one." in [word for word, _ in found]
    lowest = min(box.y0 for word, box in found if word not in ("key", "A sentence. Another one."))
    assert max(box.y1 for word, box in found if word == "key") < lowest


def test_a_given_figure_keeps_its_size():
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.subplots()
    footer(ax, ["Words."], [Line2D([], [], label="key")])
    side_legend(ax, [Line2D([], [])], ["$name"])
    assert figure.get_size_inches().tolist() == [4.0, 3.0]
    found, _ = drawn_texts(figure)
    (box,) = (box for word, box in found if word == "Words.")
    assert box.y0 > -1
    assert box.y1 < ax.get_window_extent().y0
    assert not ax.get_legend().get_texts()[0].get_parse_math()


def test_wrapped():
    # 2 in are 144 pt; 144 / (0.53 * 8.5) = 31 letters
    assert [len(part) for part in wrapped("x " * 40, 2.0).split("\n")] == [31, 31, 15]
    assert wrapped("", 2.0) == ""


NAN = float("nan")


def estimates(values, halves, reference=1.0, cap=10.0):
    value, half = np.array(values, dtype=float), np.array(halves, dtype=float)
    return Estimates(value, value - half, value + half, reference, cap)


def forest(drawn, log=False):
    ax = Figure().subplots()
    draw_forest(ax, drawn, log=log)
    return ax


def test_limits_hold_everything_ordinary():
    low, high = estimates([0.5, 1.5], [0.2, 0.3]).limits
    assert (low < 0.3, high > 1.8) == (True, True)
    assert estimates([0.5, 0.5], [0.1, 0.1]).limits[1] > 1.0  # the reference


def test_one_wild_interval_is_cut():
    wild = estimates([0.9, 1.0, 1.1, 1.0], [0.1, 0.1, 0.1, 50.0])
    low, high = wild.limits
    assert 0.0 < low < high < 2.0
    left, right = wild.beyond
    assert left.tolist() == right.tolist() == [False, False, False, True]
    ax = forest(wild)
    np.testing.assert_allclose(line(ax, "_cut<"), [[low, 3.0]])
    np.testing.assert_allclose(line(ax, "_cut>"), [[high, 3.0]])


def test_marks_say_what_the_interval_says():
    # [.7, .9] excludes 1, [.9, 1.3] does not, the third has none, the fourth lies far outside
    drawn = estimates([0.8, 1.1, 0.9, 99.0], [0.1, 0.2, NAN, NAN])
    assert drawn.excludes.tolist() == [True, False, False, False]
    ax = forest(drawn)
    assert line(ax, "_excludes").tolist() == [[0.8, 0.0]]
    assert line(ax, "_includes").tolist() == [[1.1, 1.0]]
    assert line(ax, "_unknown").tolist() == [[0.9, 2.0]]
    assert line(ax, "_cut>")[:, 1].tolist() == [3.0]
    (intervals,) = (part for part in ax.collections if part.get_label() == "_intervals")
    np.testing.assert_allclose(intervals.get_segments()[0], [[0.7, 0.0], [0.9, 0.0]])
    assert ax.get_ylim() == (3.6, -0.6)
    said = ["interval includes 1", "interval excludes 1", "no interval", "beyond the axis"]
    assert [handle.get_label() for handle in forest_key([drawn])] == said


def test_a_log_axis_takes_logs():
    tau = np.log([0.5, 2.0])
    ax = forest(Estimates(tau, tau - 0.1, tau + 0.1, 0.0, 7.0), log=True)
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(line(ax, "_excludes")[:, 0], [0.5, 2.0])


@settings(deadline=None, max_examples=50)
@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e9))
def test_log_ticks_are_few_and_inside(low, ratio):
    high = low * ratio
    ticks = log_ticks(low, high)
    assert len(ticks) <= 8
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)
    if low <= 1.0 <= high and ratio < 1e4:
        assert 1.0 in ticks or ratio < 1.1


@pytest.mark.parametrize(("ends", "also"), [((0.4, 1.1), 1.0), ((0.5, 11.0), 1.0), ((-3, 4), None)])
def test_plain_ticks(ends, also):
    ax = Figure().subplots()
    ax.set_xlim(*ends)
    plain_ticks(ax, log=False, also=also)
    ticks = ax.xaxis.get_major_locator()()
    assert 2 <= len(ticks) <= 8
    if also is not None:
        assert also in [round(tick, 9) for tick in ticks]


def test_numbers_in_words():
    ticks = {0.0: "0", 0.30000000000000004: "0.3", -1.5: "−1.5", 1000.0: "1000", 3e-6: "3e-06"}
    assert {value: tick_word(value) for value in ticks} == ticks
    assert (signed(-0.04), signed(12.0)) == ("−0.0", "+12.0")
    assert format_change(0.01234) == "0.012"
    assert format_change(0.0) == format_change(2.6e-15) == "< 0.0001"


def luminance(colour):
    """WCAG 2.1 relative luminance."""
    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
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


def test_series_differ_in_more_than_colour():
    assert len(set(style.SERIES)) == len(set(style.MARKERS)) == len(style.SERIES)
    assert len({str(dash) for dash in style.DASHES}) == len(style.SERIES)


def test_settings_come_back():
    with matplotlib.rc_context({"font.size": 31.0, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        with style.look(**{"svg.hashsalt": "own"}):
            found = {name: matplotlib.rcParams[name] for name in ("font.size", "svg.fonttype")}
            assert found == {"font.size": style.TEXT, "svg.fonttype": "none"}
            assert matplotlib.rcParams["svg.hashsalt"] == "own"
        assert dict(matplotlib.rcParams) == before
        with pytest.raises(KeyError):
            style.styled({}.__getitem__)("an error inside")
        assert dict(matplotlib.rcParams) == before


def test_unit_axes():
    ax = Figure().subplots()
    style.unit_axes(ax, bottom=-0.2)
    assert ax.get_xlim() == pytest.approx((-0.01, 1.01))
    assert ax.get_ylim() == pytest.approx((-0.21, 1.02))
    assert ax.yaxis.get_major_formatter()(0.25, 0) == "0.25"


def test_marks_stand_in_their_rows():
    ax = Figure().subplots()
    marks(ax, np.array([5.0, 6.0, 7.0]), np.array([True, False, True]), "o", "black", "_kept")
    np.testing.assert_array_equal(line(ax, "_kept"), [[5.0, 0.0], [7.0, 2.0]])
    marks(ax, np.array([5.0]), np.array([False]), "o", "black", "_none")
    assert len(ax.lines) == 1


def test_words_begin_beside_the_axes_or_end_where_told():
    ax = Figure().subplots()
    ax.set_ylim(1.5, -0.5)
    beside(ax, ["one", "two"])
    beside(ax, ["1", "2"], right=90.0)
    places = [(text.get_ha(), text.xyann[0]) for text in ax.texts]
    assert places == [("left", 8)] * 2 + [("right", 90.0)] * 2
    assert "two" in words(ax)


def results():
    a, c = assessment(3), comparison()
    found = {"ladder": a.details.ladder, "baselines": a.details.baselines}
    found |= {"parameters": a.fit, "calibration_map": a.fit, "comparison": c, "comparison_dots": c}
    return found | {"reliability": a, "reliability_by_class": a}


def test_every_figure_has_a_caption():
    helpers = {"caption", "save", "to_svg"}
    assert set(CAPTIONS) == set(plot.__all__) - helpers
    for kind in CAPTIONS:
        assert "caption" in inspect.signature(getattr(plot, kind)).parameters


@pytest.mark.parametrize("kind", results())
def test_the_caption_stands_under_the_figure_when_asked_for(kind):
    result = results()[kind]
    text = plot.caption(kind, result)
    for wanted in (True, False):
        figure = figure_of(getattr(plot, kind)(result, caption=wanted))
        found = " ".join(" ".join(part.get_text().split()) for part in figure.texts)
        assert (text in found) == wanted
    # it does not overclaim
    assert "is calibrated" not in text
    assert "well" not in text.split()
    assert text.endswith(".")


def test_captions_say_what_is_special():
    a = assessment(3)
    assert "baseline, 2:" in plot.caption("calibration_map", a.fit)
    assert len(plot.caption("calibration_map", hostile().fit)) < 600
    for kind in ("ladder", "baselines"):
        assert plot.caption(kind, a) == plot.caption(kind, getattr(a.details, kind))

    def of_rows(**changes):
        return plot.caption(
            "reliability", replace(a, predictions=replace(a.predictions, **changes))
        )

    weighted = of_rows(sample_weight=np.full(a.predictions.n_samples, 0.5))
    assert "boxes" not in weighted
    assert "Lines: 95 % intervals." in weighted
    grouped = of_rows(groups=np.arange(a.predictions.n_samples) // 2)
    assert "They assume independent rows" in grouped
    assert "assume" not in of_rows()
    with pytest.raises(InputError, match=r"kind must be one of reliability, .*; got 'pie'"):
        plot.caption("pie", a)


def test_long_names_are_cut_and_told_apart():
    assert shown_all(["cat", "Hund", 7, "été"]) == ["cat", "Hund", "7", "été"]
    names = shown_all(HOSTILE)
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
    assert {label: shown(label) for label in seen} == seen


def test_room_is_measured():
    # W is about three times as wide as i
    wide, narrow = shown("W" * 24, room=100.0, bold=True), shown("i" * 24, room=100.0, bold=True)
    assert width_of(wide, bold=True) <= 100.0
    assert len(wide) < 12
    assert narrow == "i" * 24
    assert shown("WWWW", room=5.0) == "…"


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60))
def test_any_text_can_be_drawn(text):
    name = shown(text)
    assert 0 < len(name) <= 24
    assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Cs") for letter in name)
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.5, name, parse_math=False, family="DejaVu Sans")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a glyph that the font lacks
        FigureCanvasAgg(figure).draw()


def test_every_model_has_a_name_of_its_own():
    assert list(MODEL_NAMES) == list(INSIDE)
    assert len(set(MODEL_NAMES.values())) == len(INSIDE)
    assert model_name("new_one") == "new one"
