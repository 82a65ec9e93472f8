"""What `mcllo assess` asks of choice sets in .jsonl files, and what it refuses of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from ..._utils.statements import suppress_warnings
from .options import FLAGS, non_default_options

FILES = typer.Argument(
    metavar="FILE",
    help="Table with a column of probabilities for each class: CSV, Parquet, Arrow, JSON lines, "
    ".xlsx, .npy or .npz; - is standard input. Or, without --label, choice sets: .jsonl files, or "
    "a directory of them, such as the samples that lm-evaluation-harness logs.",
)
LABEL_OF_TABLE = typer.Option(
    None,
    "--label",
    "-l",
    help="Column with the true class of each row; of tables it must be given.",
)
SCORES = typer.Option(
    None, help=".jsonl: what holds the scores of a line's options, as in doc.scores."
)
ANSWER = typer.Option(
    None, help=".jsonl: what holds the right option: its place from 0, or its position."
)
SCORE_KIND = typer.Option(
    None, help=".jsonl: what scores are: log_likelihoods, logits or probs."
)
PER_CHARACTER = typer.Option(
    False,
    "--per-character",
    help=".jsonl: divide logged log likelihoods by the options' number of characters.",
)


def refuse_options_of_classes(reading: Mapping[str, Any], costs: str | None) -> None:
    """Refuse costs of classes, and options of tables, all but ``--by``."""
    if costs is not None:
        raise typer.BadParameter(
            "costs are of classes, and these are choice sets.", param_hint="--costs"
        )
    for name in non_default_options(reading):
        if name != "by":
            raise typer.BadParameter(
                "it is for tables of classes, and these are choice sets.",
                param_hint=FLAGS.get(name, f"--{name}"),
            )


def refuse_options_of_choices(of_choices: Mapping[str, Any]) -> None:
    """Refuse options of choice sets for tables of classes."""
    for name, value in of_choices.items():
        if value is not None:
            raise typer.BadParameter(
                "it is for choice sets in .jsonl files, without --label.",
                param_hint=FLAGS[name],
            )


def assess_choice_files(
    files: list[str],
    of_choices: dict[str, Any],
    by: str | None,
    testing: dict[str, Any],
) -> Any:
    """Return the assessment of choice sets in files of JSON lines."""
    from ..._assessment.choice_assessment import assess_choices
    from ..io.choice_files import read_choices

    given = {name: value for name, value in of_choices.items() if value is not None}
    with suppress_warnings():  # the text says the same in its notes
        return assess_choices(read_choices(files, by=by, **given), **testing)
