"""`mcllo reproduce`: the paper's tables and figures, its numbers beside ours."""

from __future__ import annotations

from pathlib import Path

import typer

from . import options
from .options import echo

ITEM = typer.Argument(
    ...,
    metavar="NAME",
    help="table1 to table4, figure1 to figure6, power (the table of rates), boxplots, tradeoff, "
    "ecology, baseline (of the supplement), or all.",
)
FOLDER = typer.Option(
    None,
    "--output",
    "-o",
    metavar="DIR",
    help="Where to write: figures, and tables as CSV (or LaTeX).",
)
PAPER_PREDICTIONS = typer.Option(
    None,
    "--predictions",
    metavar="DIR",
    help="Other predictions than the package's: images_train.csv, images_holdout.csv, "
    "obesity_train.csv, obesity_holdout.csv, a column for each class and one called label.",
)
FIGURE_FORMAT = typer.Option(
    "svg",
    "--format",
    help="Of the figures: svg, png, pdf or tiff; latex for PDF and tables in LaTeX.",
)


def reproduce(
    name: str = ITEM,
    output: str | None = FOLDER,
    kind: str = FIGURE_FORMAT,
    predictions: str | None = PAPER_PREDICTIONS,
    as_json: bool = options.JSON,
) -> None:
    """Make a table or figure of the paper again, its numbers beside ours.

    Figures are written to DIR (by default the current one), tables are printed, and written too
    where a DIR is given. For a paper in LaTeX: --format latex prints tables as LaTeX, and draws
    figures as PDF.
    """
    from ...plot._files import FORMATS
    from ...reproduce import ITEMS
    from ...reproduce import reproduce as made
    from ..io.paper_files import missing_paper_predictions, read_paper_predictions

    if kind not in (*FORMATS, "latex"):
        raise typer.BadParameter(
            f"it must be {', '.join(FORMATS)} or latex; got {kind}.",
            param_hint="--format",
        )
    is_latex = kind == "latex"
    figure_ending = "pdf" if is_latex else kind
    table_ending = "tex" if is_latex else "csv"
    folder = Path(output or ".")
    folder.mkdir(parents=True, exist_ok=True)
    is_all = name == "all"
    results = []
    given = {} if predictions is None else read_paper_predictions(predictions)
    for item in given or ITEMS if is_all else (name,):
        if predictions is not None and item not in given:
            raise missing_paper_predictions(item, predictions)
        result = made(item, data=given.get(item))
        results.append(result.to_dict())
        files = []
        if result.axes is not None:
            files.append(folder / f"{result.name}.{figure_ending}")
        if output is not None:
            files.append(folder / f"{result.name}.{table_ending}")
        for path in files:
            result.save(path)
        if not as_json:
            text = result.to_latex() if is_latex else str(result)
            lines = [text, *(f"written: {path}" for path in files)]
            echo("\n".join(lines) + ("\n" if is_all else ""))
    if as_json:
        echo(options.as_json_text(results if is_all else results[0]))
