"""Small results to draw, and what every figure must satisfy."""

import warnings
from functools import cache
from itertools import combinations
from typing import NamedTuple
from unittest.mock import patch

import data
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import mcllo
from mcllo.plot._files import find_figure
from mcllo.plot._style import plot_style

HOSTILE = (
    "x" * 200,
    "x" * 199 + "y",
    "$\\frac{1}{2}$ cash $5",
    "<script>alert('1')</script>",
    "a_b^c{d}",
    "\U0001f600\U0001f984",
    "שלום עולם",
    "\u202eright to left",
    "猫",
    "犬",
    "two\n\x00lines",
    '" id="x" : #ffffff &amp;',
)


class Box(NamedTuple):
    """Ends in pixels."""

    x0: float
    y0: float
    x1: float
    y1: float


def predictions(n_classes, n_samples, seed=0, classes=None):
    """Return overconfident predictions in which every class comes true at least once."""
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet(np.full(n_classes, 0.5), size=n_samples)
    codes = (
        (rng.random((n_samples, 1)) > honest.cumsum(axis=1))
        .sum(axis=1)
        .clip(0, n_classes - 1)
    )
    codes[:n_classes] = np.arange(n_classes)
    sharp = honest**1.7 + 1e-9
    names = tuple(range(n_classes)) if classes is None else classes
    labels = [names[k] for k in codes]
    return mcllo.Predictions.from_arrays(
        sharp / sharp.sum(axis=1, keepdims=True), labels, classes=names
    )


@cache
def assessment(n_classes, n_samples=600):
    """Return the assessment of `predictions`."""
    return mcllo.assess(predictions(n_classes, n_samples), seed=0, n_resamples=99)


@cache
def hostile():
    """Return the assessment of classes with names nobody should give."""
    rows = predictions(len(HOSTILE), 900, classes=HOSTILE)
    return mcllo.assess(rows, seed=0, n_resamples=99)


@cache
def separated():
    """Return an assessment whose estimates do not exist."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return data.separated().assess()


@cache
def comparison():
    """Return a comparison of a few methods on 3 classes."""
    rows = predictions(3, 800)
    train, holdout = rows.take(np.arange(400)), rows.take(np.arange(400, 800))
    methods = ("mcllo", "temperature", "histogram", "xu_davoine")
    return mcllo.compare(train, holdout, methods=methods, seed=0, n_resamples=99)


def drawn_texts(figure):
    """Draw a figure; return each text that was drawn with its box, and the figure's box."""
    found, original = [], Text.draw

    def draw(self, renderer, *args, **kwargs):
        if self.get_visible() and self.get_text().strip():
            found.append(
                (
                    self.get_text(),
                    Box(*self.get_window_extent(renderer).extents.tolist()),
                )
            )
        return original(self, renderer, *args, **kwargs)

    whole = find_figure(figure)
    with plot_style(), patch.object(Text, "draw", draw):
        FigureCanvasAgg(whole).draw()
    return found, Box(*whole.bbox.extents.tolist())


def assert_readable(figure):
    """Fail where texts overlap, leave the figure or are too small; return all words in a line."""
    texts, page = drawn_texts(figure)
    assert len(texts) > 3
    for (one, a), (other, b) in combinations(texts, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 1.0 or down < 1.0, f"{one!r} and {other!r} overlap"
    for word, box in texts:
        inside = (
            box.x0 > -1
            and box.y0 > -1
            and box.x1 < page.x1 + 1
            and box.y1 < page.y1 + 1
        )
        assert inside, f"{word!r} leaves the figure"
    with plot_style():
        sizes = [
            text.get_fontsize()
            for text in find_figure(figure).findobj(Text)
            if text.get_text()
        ]
    assert min(sizes) >= 8.0
    return " ".join(" ".join(word.split()) for word, _ in texts)


def line(ax, label):
    """Return the x and y of the line with this label, or None."""
    for artist in ax.lines:
        if artist.get_label() == label:
            return artist.get_xydata()
    return None


def lines(ax, *labels):
    """Return the points of all lines with these labels, sorted by x."""
    found = np.vstack(
        [part for part in (line(ax, label) for label in labels) if part is not None]
    )
    return found[np.argsort(found[:, 0])]


def words(figure):
    """Return all text of a figure."""
    return "\n".join(word for word, _ in drawn_texts(figure)[0])
