"""`mcllo value`: what acting on predictions costs, and what recalibration would save."""

from __future__ import annotations

from typing import Any

import typer

from . import options
from .options import (
    PLAIN_OPTIONS,
    add_file_options,
    echo,
    print_warnings_as_notes,
)

COSTS = typer.Option(
    ...,
    "--costs",
    metavar="COSTS",
    help=f"Table of costs: {options.COSTS_HELP}",
)
ABSTAIN = typer.Option(
    None, help="Cost of answering nothing: adds an action of this name."
)
CALIBRATOR = typer.Option(
    "auto", help="What to recalibrate by, as in --method of mcllo fit; or none."
)
TOLERANCE = typer.Option(
    None,
    help="Cost of a case that is too little to matter. Default: 1 % of the realised cost.",
)
SEED = typer.Option(0, help="A whole number that folds are drawn from.")


@add_file_options(
    *(name for name in PLAIN_OPTIONS if name != "baseline"), "weight_kind", "groups"
)
def value(
    file: str = options.FILE,
    label: str = options.LABEL,
    costs: str = COSTS,
    *,
    reading: Any,
    abstain: float | None = ABSTAIN,
    calibrator: str = CALIBRATOR,
    tolerance: float | None = TOLERANCE,
    seed: int = SEED,
    as_json: bool = options.JSON,
) -> None:
    """Say what acting on the predictions costs, and what recalibration would save."""
    from ..._decisions.costs import Costs
    from ..._decisions.decision_value import decision_value
    from ..io.cost_table import read_costs
    from ..io.read import read_predictions

    if tolerance is not None and not tolerance >= 0.0:
        raise typer.BadParameter(
            "it must be a cost that is not negative.", param_hint="--tolerance"
        )
    with print_warnings_as_notes():
        predictions = read_predictions(file, label=label, **reading)
        table = Costs.from_table(
            read_costs(costs, predictions.classes), predictions.classes, abstain=abstain
        )
        found = decision_value(
            predictions,
            costs=table,
            calibrator=None if calibrator == "none" else calibrator,
            seed=seed,
        )
    options.print_notes(predictions.notes)
    content = found.to_dict(tolerance)
    echo(options.as_json_text(content) if as_json else found.text(tolerance))
