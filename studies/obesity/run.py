"""The paper's obesity study on a forest of ours: ``python studies/obesity/run.py``.

Reads the votes in `mcllo.datasets` and ``results/seeds.csv``; writes the other tables, the figures
and the tables of ``docs/studies/obesity.md``, the same bytes on every run. Takes about 20 seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mcllo.plot
from mcllo.datasets import load_obesity_forest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import obesity_tables as tables  # noqa: E402
from _common import DOCS, fill, read_table, write_table  # noqa: E402
from obesity_figures import seeds_figure  # noqa: E402
from obesity_page import blocks  # noqa: E402


def main(folder: Path = HERE, page: Path = DOCS / "obesity.md") -> None:
    """Write tables, figures and the page."""
    results, figures = folder / "results", folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    seeds = read_table(HERE / "results" / "seeds.csv")
    made: dict[str, list[dict[str, Any]]] = {"table4": [], "parameters": []}
    for clip in (tables.TESTING, tables.HALF_VOTE):
        data = load_obesity_forest(clip=clip)
        c = tables.compared(data.train, data.holdout)
        made["table4"] += tables.table4(clip, c)
        made["parameters"] += tables.parameters(data.train, clip)
        if clip == tables.TESTING:
            fit = tables.fitted(data.train)
            mcllo.plot.save(mcllo.plot.comparison(c, n_bins=10), figures / "reliability.svg")
            mcllo.plot.save(mcllo.plot.parameters(fit), figures / "parameters.svg")
            made["baselines"] = tables.baselines(data.train)
    made["zero_rules"] = tables.zero_rules()
    made["seeds_summary"] = tables.seeds_summary(seeds)
    made["claims"] = tables.claims(seeds)
    for name, rows in made.items():
        write_table(results / f"{name}.csv", rows)
    mcllo.plot.save(seeds_figure(seeds, tables.PAPER), figures / "seeds.svg")
    fill(page, blocks(results))


if __name__ == "__main__":
    main()
