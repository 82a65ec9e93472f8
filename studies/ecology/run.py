"""Portal rodents: regression under a shift of the community. ``python studies/ecology/run.py``.

Reads the predictions in `mcllo.datasets`; writes tables, figures and the tables of
``docs/studies/ecology.md``, the same bytes on every run. Takes about 15 seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mcllo.plot
from mcllo.datasets import load_portal_rodents

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import ecology_figures as draw  # noqa: E402
import ecology_tables as tables  # noqa: E402
from _common import DOCS, fill, write_table  # noqa: E402
from ecology_page import blocks  # noqa: E402


def main(folder: Path = HERE, page: Path = DOCS / "ecology.md") -> None:
    """Write tables, figures and the page."""
    results, figures = folder / "results", folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    plain = load_portal_rodents(groups=None)
    c = tables.compared(plain.train, plain.holdout)
    made = {
        "comparison": tables.comparison(c),
        "tests": tables.tests(c),
        "years": tables.years(plain),
        "shares": tables.shares(plain),
        "periods": tables.periods(plain),
        "halves": tables.halves(plain),
    }
    for name, rows in made.items():
        write_table(results / f"{name}.csv", rows)
    mcllo.plot.save(mcllo.plot.comparison(c, n_bins=10), figures / "reliability.svg")
    mcllo.plot.save(draw.shares_figure(made["shares"]), figures / "shares.svg")
    mcllo.plot.save(draw.years_figure(made["years"]), figures / "years.svg")
    mcllo.plot.save(draw.halves_figure(made["halves"]), figures / "halves.svg")
    fill(page, blocks(results))


if __name__ == "__main__":
    main()
