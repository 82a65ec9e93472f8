"""The paper's simulation study, from the committed repetitions: ``python studies/power/run.py``.

Reads ``results/repetitions.npz``; writes the tables, the figures and the tables of
``docs/studies/power.md``, the same bytes on every run. Takes a few seconds; `simulate.py` is the
long run that made the repetitions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mcllo.plot

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import power_tables as tables  # noqa: E402
from _common import DOCS, fill, write_table  # noqa: E402
from power_figures import difference_figure, sharp_figure  # noqa: E402
from power_page import blocks  # noqa: E402


def main(folder: Path = HERE, page: Path = DOCS / "power.md") -> None:
    """Write tables, figures and the page."""
    results, figures = folder / "results", folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    studies = tables.read_studies(HERE / "results" / "repetitions.npz")
    made = tables.tables(studies)
    for name, rows in made.items():
        write_table(results / f"{name}.csv", rows)
    for name, axes in {
        "rejection": mcllo.plot.power(studies["grid"]),
        "ece_boxplot": mcllo.plot.ece_boxplot(studies["grid"], n=5000),
        "ece_difference": difference_figure(made["cells"]),
        "sharp": sharp_figure(made["sharp"]),
    }.items():
        mcllo.plot.save(axes, figures / f"{name}.svg")
    fill(page, blocks(results))


if __name__ == "__main__":
    main()
