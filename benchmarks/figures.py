"""``docs/figures``: time against rows and classes; log loss, harm and time against rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator
from studies.figures import (
    FAINT,
    Canvas,
    heading,
    line_look,
    look,
    save,
    side_legend,
    ticks,
)
from studies.pages import count, time_word

from benchmarks.machine import ROOT, Record, median, quartiles
from benchmarks.methods import REFERENCE, full_title, timed_title
from benchmarks.quality import View, counted
from benchmarks.speed import kind, shape

FOLDER = ROOT / "docs" / "figures"
TIMED = ["mcllo-1", "mcllo-1-numpy", "sklearn-temperature", "netcal-temperature"]
TIMED += ["ts", "r-analytic", "r-numeric"]
JUDGED = ["auto", "sms", "auto-gate", "svs", "temperature", "mcllo-ridge", "mcllo"]
"""As many as there are colours that everyone can tell apart."""
APART = 0.06
"""Share of a size by which the points of two methods stand apart, so that bars do not meet."""
LINEAR = 0.02
"""Differences up to this are drawn on a linear scale, larger ones on a log scale."""


def _style(name: str, drawn: Sequence[str]) -> dict[str, Any]:
    k = drawn.index(name)
    return line_look(k) | {"lw": 2.2 if k == 0 else 1.4, "label": f"_{name}"}


# speed


def sweeps(sizes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return sizes that differ in rows only and in classes only, of synthetic rows."""
    shapes = sorted(shape(size) for size in sizes if not kind(size))
    n, c = (Counter(part).most_common(1)[0][0] for part in zip(*shapes, strict=True))
    return [f"{m}x{c}" for m, k in shapes if k == c], [
        f"{n}x{k}" for m, k in shapes if m == n
    ]


def has_sweeps(results: Record) -> bool:
    """Whether rows and classes each take two values at least: one point shows no growth."""
    fits = results.get("fits", {})
    return any(not kind(size) for size in fits) and all(
        len(sweep) > 1 for sweep in sweeps(fits)
    )


@look()
def draw_speed(results: Record) -> list[Axes]:
    """Return the two panels: medians, and a bar from the first to the third quartile at each."""
    fits = results["fits"]
    names = [
        name for name in TIMED if any(name in records for records in fits.values())
    ]
    figure = Canvas(9.6, 4.2)
    axes, handles = figure.panels(1, 2, sharey=True), list[Artist]()
    by_rows, by_classes = sweeps(fits)
    below = (
        f"c = {shape(by_rows[0])[1]} classes",
        f"n = {count(shape(by_classes[0])[0])} rows",
    )
    panels = zip(axes, (by_rows, by_classes), ("Rows", "Classes"), strict=True)
    for k, (ax, sizes, label) in enumerate(panels):
        for name in names:
            timed = [size for size in sizes if fits[size].get(name, {}).get("seconds")]
            x, seconds = (
                [shape(s)[k] for s in timed],
                [fits[s][name]["seconds"] for s in timed],
            )
            low, high = (
                zip(*map(quartiles, seconds), strict=True) if seconds else ((), ())
            )
            style = _style(name, TIMED)
            ax.vlines(x, low, high, color=style["color"], lw=3.0, alpha=0.35)
            handles.append(
                ax.plot(x, [median(values) for values in seconds], **style)[0]
            )
        ax.set(xscale="log", yscale="log", xlabel=label)
        ticks(
            ax.xaxis,
            _apart([shape(s)[k] for s in sizes]),
            lambda value: count(int(value)),
        )
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
        heading(ax, f"Time against {label.lower()}", below[k])
    axes[0].set_ylabel("Time of a fit")
    side_legend(axes[1], handles[: len(names)], [timed_title(name) for name in names])
    quick = " Quick run: not for quoting." if results["quick"] else ""
    figure.footer(
        "Points: medians of interleaved rounds, one thread each; bars: quartiles. MCLLO includes "
        "validation, test and standard errors; temperature and TS are fits alone. Missing points "
        f"were not timed or took longer than the limit. {results['machine']['cpu']}.{quick}"
    )
    return axes


def _apart(values: Sequence[int]) -> list[int]:
    """Return those that are at least 1.5 times the one before, so that labels do not meet.

    >>> _apart([8, 10, 12, 20])
    [8, 12, 20]
    """
    kept: list[int] = []
    for value in values:
        if not kept or value >= 1.5 * kept[-1]:
            kept.append(value)
    return kept


def _power_of_ten(seconds: float, _: int) -> str:
    return (
        f"{1e6 * seconds:.0f} µs"
        if seconds < 1e-3
        else time_word(seconds).replace(".0 ", " ")
    )


def write_speed(results: Record, path: Path = FOLDER / "performance.svg") -> None:
    """Draw the figure, or remove an old one, where there are no sizes to compare."""
    if has_sweeps(results):
        save(draw_speed(results), path)
    else:
        path.unlink(missing_ok=True)


# quality


@look()
def draw_quality(view: View) -> list[Axes]:
    figure = Canvas(12.0, 4.0)
    loss, harm, wall = axes = figure.panels(1, 3)
    names = [name for name in JUDGED if view.of(name)]
    handles = []
    for name in names:
        style, k = _style(name, JUDGED), JUDGED.index(name)
        means = {n: mean for n in view.sizes if (mean := view.mean(name, n, "d_sms"))}
        if name == REFERENCE:
            loss.axhline(0.0, **{key: style[key] for key in ("color", "ls", "lw")})
        else:
            x = [n * (1.0 + APART * (k - 3)) for n in means]
            loss.plot(x, [mean.value for mean in means.values()], **style)
            for at, mean in zip(x, means.values(), strict=True):
                if mean.low:
                    loss.vlines(
                        at,
                        mean.low,
                        mean.high,
                        color=style["color"],
                        lw=1.6,
                        alpha=0.55,
                    )
        took = partial(view.median, name, column="ratio")
        for ax, number, unit in (
            (wall, took, 1.0),
            (harm, partial(view.worse, name), 0.01),
        ):
            known = {
                n: value / unit for n in view.sizes if (value := number(n)) is not None
            }
            (line,) = ax.plot(list(known), list(known.values()), **style)
        handles.append(line)
    for ax in axes:
        ax.set(xscale="log", xlabel="Rows to learn from")
        ticks(ax.xaxis, view.sizes, lambda value: count(round(value)))
    loss.set_yscale("symlog", linthresh=LINEAR, linscale=1.2)
    levels = [-0.1, -0.04, -0.02, -0.01, 0.0, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 1.0, 2.0]
    ticks(loss.yaxis, levels, lambda value: f"{value:+g}" if value else "0")
    loss.set_ylabel("Log loss less that of SMS")
    heading(loss, "Log loss", "lower is better; bars: 95 % intervals over sets")
    harm.set_ylim(bottom=0.0)
    harm.axhline(3.0, color=FAINT, lw=1.0)
    harm.set_ylabel("Cases, %")
    heading(
        harm,
        "Worse than doing nothing",
        "held-out log loss above the input's; line: 3 %",
    )
    wall.set_yscale("log")
    ticks(
        wall.yaxis,
        [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        lambda value: f"{value:g}",
    )
    wall.set_ylabel("Fit time, SMS = 1")
    heading(wall, "Fit time", "median ratio within cases, one thread")
    side_legend(wall, handles, [full_title(name) for name in names])
    drawn = {row["set"] for row in view.rows}
    sets = counted(view.facts["sets"][name] for name in drawn)
    figure.footer(
        f"{sets}; larger numbers of rows have fewer sets. Every "
        "set counts once at each number of rows; sets of one data set are taken together in the "
        "intervals. Some sets served to choose the design of auto: the page shows them apart."
    )
    return axes
