"""What verbs check before any work: options, and that what they make can be written.

Names and formats of outputs come first: nobody should wait for numbers that cannot be kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from ..._utils.atomic_files import check_writable

TABLES = (".csv", ".tsv", ".xlsx", ".parquet", ".pq", ".feather", ".arrow", ".npy", ".npz")
REPORTS = (".html", ".htm", ".md", ".json")


def check_share(value: float, option: str) -> None:
    """Refuse a level or tolerance that is none."""
    if not 0.0 < value < 1.0:
        raise typer.BadParameter("it must lie between 0 and 1.", param_hint=option)


def check_model(output: str, file: str) -> None:
    """Refuse to write the model over the data, as a table, or where it cannot be written."""
    if output == "-":
        return
    if file != "-" and os.path.realpath(output) == os.path.realpath(file):
        raise typer.BadParameter(
            f"{output} is the file with the data. Choose another name, such as model.json.",
            param_hint="--output",
        )
    if Path(output).suffix.lower() in TABLES:
        raise typer.BadParameter(
            f"a model is JSON; {output} is the name of a table. Choose a name such as model.json.",
            param_hint="--output",
        )
    check_writable(output)


def check_report(out: str | None, show: bool) -> None:
    """Refuse, before any work, a report that cannot be written."""
    if out is None:
        if show:
            raise typer.BadParameter("it needs --html OUT.", param_hint="--open")
        return
    if Path(out).suffix.lower() not in REPORTS:
        raise typer.BadParameter(
            f"it must end in .html, .md or .json; got {out}.", param_hint="--html"
        )
    check_writable(out)


def check_order(model: str, file: str) -> None:
    """Refuse two standard inputs, and MODEL and FILE the wrong way round."""
    if model == file == "-":
        raise typer.BadParameter(
            "only one of MODEL and FILE can be standard input.", param_hint="FILE"
        )
    if file.lower().endswith(".json") and not model.lower().endswith(".json"):
        raise typer.BadParameter(
            f"it must be JSON written by mcllo fit; got {model}. The order is: "
            "mcllo apply MODEL FILE.",
            param_hint="MODEL",
        )


def check_apply(calibrator: Any, logits: bool, clip: float | None) -> None:
    """Refuse probabilities for a map of logits, and clipping for a method that has none."""
    if calibrator.input == "logits" and not logits:
        raise typer.BadParameter(
            f"this {calibrator.method} map was fitted to logits, so FILE must hold logits too. "
            "Say so with --logits.",
            param_hint="MODEL",
        )
    if clip is not None and "clip" not in calibrator.get_params():
        raise typer.BadParameter(
            f"{calibrator.method} takes zeros as they are. Leave it out.", param_hint="--clip"
        )
