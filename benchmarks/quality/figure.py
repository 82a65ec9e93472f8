"""``docs/figures/quality.svg``: log loss, harm and time against the number of rows."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.quality.methods import full_title
from benchmarks.quality.view import View, counted
from benchmarks.words import rows_words
from mcllo._plot.layout import OwnFigure, footer, heading, side_legend
from mcllo._plot.style import DASHES, FAINT, MARKERS, SERIES, plain_axes, styled
from mcllo.plot import save

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "quality.svg"
DRAWN = ("auto", "sms", "auto-gate", "svs", "temperature", "mcllo-ridge", "mcllo")
"""As many as there are colours that everyone can tell apart."""
APART = 0.06
"""Share of a size by which the points of two methods stand apart, so that bars do not meet."""
LINEAR = 0.02
"""Differences up to this are drawn on a linear scale, larger ones on a log scale."""


@styled
def draw(view: View) -> list[Axes]:
    """Return the three panels."""
    axes = list(OwnFigure(12.0, 4.0).subplots(1, 3))
    names = [name for name in DRAWN if view.of(name)]
    loss, harm, time = axes
    for name in names:
        _loss(loss, view, name)
        _line(time, view, name, lambda n, name=name: view.median(name, n, "ratio"))
    handles = [_line(harm, view, name, lambda n, name=name: _percent(view.worse(name, n)))
               for name in names]  # fmt: skip
    for ax in axes:
        _rows_axis(ax, view)
    _loss_axis(loss)
    _harm_axis(harm)
    _time_axis(time)
    side_legend(time, handles, [full_title(name) for name in names])
    footer(loss, [_caption(view)])
    return axes


def _percent(value: float | None) -> float | None:
    return None if value is None else 100.0 * value


def _style(name: str) -> dict[str, object]:
    k = DRAWN.index(name)
    return {
        "color": SERIES[k],
        "ls": DASHES[k],
        "marker": MARKERS[k],
        "markersize": 5.5,
        "lw": 2.2 if k == 0 else 1.4,
        "label": f"_{name}",
    }


def _line(ax: Axes, view: View, name: str, number: Callable[[int], float | None]) -> Artist:
    points = [(n, number(n)) for n in view.sizes]
    known = [(n, value) for n, value in points if value is not None]
    return ax.plot([n for n, _ in known], [v for _, v in known], **_style(name))[0]


def _loss(ax: Axes, view: View, name: str) -> None:
    """Draw differences to SMS with their intervals; SMS itself is the line at 0."""
    if name == "sms":
        ax.axhline(0.0, color=SERIES[DRAWN.index("sms")], ls=DASHES[DRAWN.index("sms")], lw=1.4)
        return
    means = {n: view.mean(name, n, "d_sms") for n in view.sizes}
    known = {n: mean for n, mean in means.items() if mean is not None}
    shift = 1.0 + APART * (DRAWN.index(name) - 3)
    x = [n * shift for n in known]
    style = _style(name)
    ax.plot(x, [mean.value for mean in known.values()], **style)
    bars = [(at, m.low, m.high) for at, m in zip(x, known.values(), strict=True) if m.low]
    for at, low, high in bars:
        ax.vlines(at, low, high, color=style["color"], lw=1.6, alpha=0.55)


def _rows_axis(ax: Axes, view: View) -> None:
    plain_axes(ax)
    ax.set_xscale("log")
    ax.set_xlabel("Rows to learn from")
    ax.xaxis.set_major_locator(FixedLocator(view.sizes))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: rows_words(round(value))))


def _loss_axis(ax: Axes) -> None:
    ax.set_yscale("symlog", linthresh=LINEAR, linscale=1.2)
    ticks = [-0.1, -0.04, -0.02, -0.01, 0.0, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 1.0, 2.0]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+g}" if value else "0"))
    ax.set_ylabel("Log loss less that of SMS")
    heading(ax, "Log loss", "lower is better; bars: 95 % intervals over sets")


def _harm_axis(ax: Axes) -> None:
    ax.set_ylim(bottom=0.0)
    ax.axhline(3.0, color=FAINT, lw=1.0)
    ax.set_ylabel("Cases, %")
    heading(ax, "Worse than doing nothing", "held-out log loss above the input's; line: 3 %")


def _time_axis(ax: Axes) -> None:
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(FixedLocator([0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_ylabel("Fit time, SMS = 1")
    heading(ax, "Fit time", "median ratio within cases, one thread")


def _caption(view: View) -> str:
    return (
        f"{counted(list(view.sets.values()))}; larger numbers of rows have fewer sets. Every set "
        "counts once at each number of rows; sets of one data set are taken together in the "
        "intervals. Some sets served to choose the design of auto: the page shows them apart."
    )


def write(view: View, path: Path = FIGURE) -> None:
    """Draw the figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save(draw(view), path)
