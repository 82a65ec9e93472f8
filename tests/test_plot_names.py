"""Class names as figures show them."""

import unicodedata
import warnings

import pytest
from figure_checks import HOSTILE
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mcllo._plot.names import BOX, shown, shown_all, signed, width_of


def test_plain_names_stay():
    assert shown_all(["cat", "Hund", 7, "été"]) == ["cat", "Hund", "7", "été"]


def test_long_names_are_cut_and_told_apart():
    names = shown_all(HOSTILE)
    assert len(set(names)) == len(HOSTILE)
    assert names[0].endswith("… #1")
    assert names[1].endswith("… #2")
    assert max(map(len, names)) <= 24


@pytest.mark.parametrize(
    ("label", "seen"),
    [
        ("two\nlines\x00", "two lines"),
        ("\u202eright", "right"),
        ("猫", BOX),
        ("$5_^", "$5_^"),
        ("", "(empty)"),
        (" \u200b ", "(empty)"),
        (None, "None"),
        ("\ud800", BOX),
    ],
)
def test_one_name(label, seen):
    assert shown(label) == seen


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


def test_signed():
    assert signed(-0.04) == "−0.0"
    assert signed(12.0) == "+12.0"
