"""`mcllo table`: calibration intercepts and slopes, as clinical papers print them."""

from __future__ import annotations

from typing import Any

import typer

from ..._utils.statements import suppress_warnings
from . import options
from .options import PLAIN_OPTIONS, add_file_options, completer, echo

VERSUS = typer.Option(
    "baseline",
    autocompletion=completer("baseline", "rest"),
    help="What each class is compared with: baseline (a reference class) or rest (all others).",
)
INTERVAL = typer.Option(
    "wald", autocompletion=completer("wald", "profile"), help="wald or profile."
)
LEVEL = typer.Option(
    0.95, help="Probability with which each interval covers its parameter."
)
LATEX = typer.Option(
    False, "--latex", help="Print LaTeX, with the rules of the package booktabs."
)


@add_file_options(*PLAIN_OPTIONS, "weight_kind", "groups")
def table(
    file: str = options.FILE,
    label: str = options.LABEL,
    *,
    reading: Any,
    versus: str = VERSUS,
    interval: str = INTERVAL,
    level: float = LEVEL,
    latex: bool = LATEX,
    as_json: bool = options.JSON,
    seed: int | None = options.SEED,
) -> None:
    """Estimate calibration intercepts and slopes with intervals, as clinical papers print them."""
    from ..._diagnostics.calibration_table import calibration_table
    from ..io.read import read_predictions

    options.check_between_0_and_1(level, "--level")
    with suppress_warnings():  # what was changed is said by `mcllo assess`
        predictions = read_predictions(file, label=label, **reading)
        asked: dict[str, Any] = {"versus": versus, "interval": interval}
        found = calibration_table(predictions, level=level, seed=seed, **asked)
    options.print_notes(predictions.notes)
    if as_json:
        echo(options.as_json_text(found.to_dict()))
    elif latex:
        echo(f"{found.to_latex().rstrip()}\n% {found.methods}")
    else:
        echo(f"{found}\n\n{found.methods}")
