"""The paper's image study on a VGG of ours: ``python studies/cifar10/run.py``.

Reads the logits in `mcllo.datasets` and ``training_log.csv``; writes tables, figures, the tables of
``docs/studies/cifar10.md`` and the table of epochs in the README, the same bytes on every run.
Takes about a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mcllo.plot
from mcllo.datasets import Dataset, load_cifar10_vgg

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import cifar10_figures as draw  # noqa: E402
import cifar10_splits as repeated  # noqa: E402
import cifar10_tables as tables  # noqa: E402
from _common import DOCS, fill, read_table, write_table  # noqa: E402
from cifar10_page import blocks, training  # noqa: E402


def main(
    folder: Path = HERE, page: Path = DOCS / "cifar10.md", readme: Path = HERE / "README.md"
) -> None:
    """Write tables, figures, the page and the README's table."""
    results, figures = folder / "results", folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    analyse(load_cifar10_vgg(), results, figures)
    fill(page, blocks(results))
    fill(readme, {"training": training(HERE / "training_log.csv")})


def analyse(data: Dataset, results: Path, figures: Path) -> None:
    """Write the tables and the figures."""
    everything = repeated.all_images(data)
    c = tables.compared(data.train, data.holdout)
    fits = {"X_t": tables.fitted(data.train), "X_h": tables.fitted(data.holdout)}
    scaled = {"X_h": c.recalibrated["temperature"], "all": tables.cross_scaled(everything)}
    splits = repeated.splits(everything)
    write_table(results / "splits.csv", splits)
    again = read_table(results / "splits.csv")
    made = {
        "table2": tables.table2(c),
        "parameters": tables.parameters(fits),
        "classes": tables.classes(scaled),
        "ladders": tables.ladders({"X_t": data.train, **scaled}),
        "planes": tables.planes(everything, fits["X_t"]),
        "bins": tables.bins(c),
        "baselines": tables.baselines(data.train),
        "logits_needed": tables.logits_needed(data.train, data.holdout),
        "identity": tables.identity(data.train),
        "splits_summary": repeated.summary(again),
        "claims": repeated.claims(again),
    }
    for name, rows in made.items():
        write_table(results / f"{name}.csv", rows)
    shares = [row for row in made["classes"] if row["part"] == "all"]
    for name, axes in {
        "reliability": mcllo.plot.comparison(c, n_bins=10),
        "parameters": mcllo.plot.parameters(fits["X_t"]),
        "planes": draw.planes_figure(made["planes"]),
        "shares": draw.shares_figure(shares),
        "splits": draw.splits_figure(again, tables.PAPER),
    }.items():
        mcllo.plot.save(axes, figures / f"{name}.svg")


if __name__ == "__main__":
    main()
