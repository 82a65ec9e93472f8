"""``docs/figures/performance.svg``: time against rows and against classes, on log scales."""

from collections import Counter
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.crew import TITLES
from benchmarks.fits import shape
from benchmarks.results import Results, median, quartiles
from benchmarks.words import rows_words, time
from mcllo._plot.layout import OwnFigure, footer, heading, side_legend
from mcllo._plot.style import DASHES, MARKERS, SERIES, plain_axes, styled
from mcllo.plot import save

FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "performance.svg"
DRAWN = (
    *("mcllo-1", "sklearn-temperature", "netcal-temperature", "probmetrics-svs"),
    *("scipy-lbfgs", "r-analytic", "r-numeric"),
)
"""As many as there are colours that everyone can tell apart."""


def sweeps(sizes: list[str]) -> tuple[list[str], list[str]]:
    """Return sizes that differ in rows only and sizes that differ in classes only.

    Examples
    --------
    >>> sweeps(["132x7", "8000x10", "10000x100", "100000x10", "10000x10"])
    (['8000x10', '10000x10', '100000x10'], ['10000x10', '10000x100'])
    """
    shapes = sorted(map(shape, sizes))
    n, c = (Counter(part).most_common(1)[0][0] for part in zip(*shapes, strict=True))
    return [f"{m}x{c}" for m, k in shapes if k == c], [f"{n}x{k}" for m, k in shapes if m == n]


@styled
def draw(results: Results) -> list[Axes]:
    """Return the two panels."""
    fits = results["fits"]
    by_rows, by_classes = sweeps(list(fits))
    left, right = OwnFigure(9.6, 4.2).subplots(1, 2, sharey=True)
    names = [name for name in DRAWN if any(name in records for records in fits.values())]
    handles = [_line(left, fits, by_rows, 0, name) for name in names]
    for name in names:
        _line(right, fits, by_classes, 1, name)
    _axes(left, by_rows, 0, "Rows", f"c = {shape(by_rows[0])[1]} classes")
    _axes(right, by_classes, 1, "Classes", f"n = {rows_words(shape(by_classes[0])[0])} rows")
    left.set_ylabel("Time of a fit")
    side_legend(right, handles, [TITLES[name] for name in names])
    footer(left, [_caption(results)])
    return [left, right]


def _line(ax: Axes, fits: Results, sizes: list[str], axis: int, name: str) -> object:
    """Draw medians, and a bar from the first to the third quartile at each."""
    timed = [size for size in sizes if fits[size].get(name, {}).get("seconds")]
    x = [shape(size)[axis] for size in timed]
    seconds = [fits[size][name]["seconds"] for size in timed]
    k = DRAWN.index(name)
    low, high = zip(*map(quartiles, seconds), strict=True) if seconds else ((), ())
    ax.vlines(x, low, high, color=SERIES[k], lw=3.0, alpha=0.35)
    return ax.plot(
        x,
        [median(values) for values in seconds],
        color=SERIES[k],
        ls=DASHES[k],
        marker=MARKERS[k],
        markersize=5.5,
        lw=2.2 if k == 0 else 1.4,
        label=f"_{name}",
    )[0]


def _axes(ax: Axes, sizes: list[str], axis: int, label: str, below: str) -> None:
    plain_axes(ax)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(label)
    ax.xaxis.set_major_locator(FixedLocator(_apart([shape(size)[axis] for size in sizes])))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: rows_words(int(value))))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    heading(ax, f"Time against {label.lower()}", below)


def _apart(values: list[int]) -> list[int]:
    """Return those that are at least 1.5 times the one before, so that labels do not meet."""
    kept: list[int] = []
    for value in values:
        if not kept or value >= 1.5 * kept[-1]:
            kept.append(value)
    return kept


def _tick(seconds: float) -> str:
    """Return a power of ten as a time."""
    return f"{1e6 * seconds:.0f} µs" if seconds < 1e-3 else time(seconds).replace(".0 ", " ")


def _caption(results: Results) -> str:
    machine, quick = results["machine"], " Quick run: not for quoting." if results["quick"] else ""
    return (
        "Points: medians of interleaved rounds, one thread each; bars: quartiles. MCLLO includes "
        "validation, test and standard errors; temperature and SVS are fits alone. Missing points "
        f"were not timed or took longer than the limit. {machine['cpu']}.{quick}"
    )


def has_sweeps(results: Results) -> bool:
    """Whether rows and classes each take two values at least: one point shows no growth."""
    sizes = list(results.get("fits", {}))
    return bool(sizes) and all(len(sweep) > 1 for sweep in sweeps(sizes))


def write(results: Results, path: Path = FIGURE) -> None:
    """Draw the figure, or remove an old one, where there are no sizes to compare."""
    if not has_sweeps(results):
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(draw(results), path)
