"""The command line: every verb parses, makes one Python call and prints.

Exit codes: 0 done; 1 calibration rejected (``--gate``); 2 bad input, one line on standard error.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ._assess import assess as run_assess
from ._calibration_test import N_RESAMPLES
from ._io import Source, read_predictions
from ._version import __version__

Abort = typer.Abort
UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")

app = typer.Typer(
    name="mcllo",
    help="Are these class probabilities calibrated, which classes are wrong, what is the repair?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

File = Annotated[str, typer.Argument(help="CSV or Parquet file; - is standard input.")]
Label = Annotated[str, typer.Option("--label", "-l", help="Column with the labels that came true.")]
Classes = Annotated[
    str | None,
    typer.Option(help="Class columns, separated by commas; default: every column but the label."),
]
Baseline = Annotated[
    str | None, typer.Option(help="Reference class of the log odds; default: the last one.")
]
Weight = Annotated[str | None, typer.Option(help="Column with row weights.")]
Normalize = Annotated[
    bool, typer.Option("--normalize", help="Divide rows by their sum (rounded files).")
]
Logits = Annotated[bool, typer.Option("--logits", help="Columns hold logits, not probabilities.")]
Clip = Annotated[
    float | None, typer.Option(help="Floor for small probabilities; default 1e-6 in rows with a 0.")
]
Seed = Annotated[int | None, typer.Option(help="Makes simulated p-values repeatable.")]


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"mcllo {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: mcllo assess holdout.csv --label y --baseline truck --gate")
def assess(
    file: File,
    label: Label,
    classes: Classes = None,
    baseline: Baseline = None,
    weight: Weight = None,
    normalize: Normalize = False,
    logits: Logits = False,
    clip: Clip = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    alpha: Annotated[float, typer.Option(help="Level of the verdict and of --gate.")] = 0.05,
    gate: Annotated[bool, typer.Option("--gate", help="Exit 1 when rejected.")] = False,
    statistic: Annotated[str, typer.Option(help="lr, score or wald.")] = "lr",
    method: Annotated[
        str, typer.Option(help="p-value: auto, chi2, exact (all draws) or sequential.")
    ] = "auto",
    draws: Annotated[int, typer.Option(help="Most simulated data sets.")] = N_RESAMPLES,
    seed: Seed = None,
) -> None:
    """Test calibration, show which classes are wrong and how, and measure."""
    _check_alpha(alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says the same in its notes
        result = run_assess(
            read_predictions(
                file,
                label=label,
                classes=_split(classes),
                baseline=baseline,
                weight=weight,
                logits=logits,
                normalize=normalize,
                clip=clip,
            ),
            statistic=statistic,  # type: ignore[arg-type]
            method=method,  # type: ignore[arg-type]
            n_resamples=draws,
            seed=seed,
        )
    typer.echo(_json(result.to_dict()) if as_json else result.text(alpha))
    if gate and result.test.rejects(alpha):
        raise typer.Exit(1)


@app.command(epilog="Example: mcllo fit train.csv --label y --baseline truck -o model.json")
def fit(
    file: File,
    label: Label,
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON file to write.")],
    classes: Classes = None,
    baseline: Baseline = None,
    weight: Weight = None,
    normalize: Normalize = False,
    clip: Clip = None,
    penalty: Annotated[
        float, typer.Option(help="Ridge towards the identity; 0 is maximum likelihood.")
    ] = 0.0,
) -> None:
    """Learn a recalibration map and save it as JSON."""
    from .calibrators import MCLLOCalibrator

    with _notes():
        predictions = read_predictions(
            file,
            label=label,
            classes=_split(classes),
            baseline=baseline,
            weight=weight,
            normalize=normalize,
            clip=clip,
        )
        calibrator = MCLLOCalibrator(
            baseline=predictions.baseline, penalty=penalty, normalize=normalize, clip=clip
        ).fit(predictions)
    calibrator.save(output)
    typer.echo(f"{output}: {calibrator.fit_!r}")


@app.command(epilog="Example: mcllo apply model.json new.csv -o repaired.csv")
def apply(
    model: Annotated[Path, typer.Argument(help="JSON file written by `mcllo fit`.")],
    file: File,
    output: Annotated[
        str, typer.Option("--output", "-o", help="CSV or Parquet file; - is standard output.")
    ] = "-",
) -> None:
    """Recalibrate the class columns of a file; all other columns pass through untouched."""
    from ._streaming import apply_file
    from .calibrators import load_calibrator

    done = apply_file(load_calibrator(model), file, output)
    if output != "-":
        typer.echo(f"{output}: {done.n_samples:,} rows recalibrated")


def line_of(path: str, row: int) -> str:
    """Return where a data row stands in a CSV file, for a message; empty for other files."""
    try:
        source = Source(path) if path != "-" else None
    except ValueError:
        return ""
    return f" (line {row + 2} of {path})" if source is not None and source.kind == "csv" else ""


def _check_alpha(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise typer.BadParameter("must lie between 0 and 1", param_hint="--alpha")


def _split(names: str | None) -> list[str] | None:
    """Return the names in ``a,b,"c,d"``."""
    return None if names is None else [name.strip() for name in next(csv.reader([names]))]


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, ensure_ascii=False, default=str, indent=1)


@contextmanager
def _notes() -> Iterator[None]:
    """Print warnings as one-line notes on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        typer.echo(f"note: {in_flags(str(warning.message))}", err=True)


FLAGS = {
    "normalize=True": "--normalize",
    "MCLLOCalibrator(penalty=1.0)": "--penalty 1",
    "method='chi2'": "--method chi2",
    "statistic='lr' or 'score'": "--statistic lr or score",
    "logits=": "--logits",
    "classes=": "--classes",
    "clip=": "--clip ",
    "baseline=": "--baseline ",
    "n_resamples": "--draws",
}


def in_flags(message: str) -> str:
    """Return a library message with its remedy in the words of the command line."""
    for python, flag in FLAGS.items():
        message = message.replace(python, flag)
    return message.replace("--clip .", "--clip.")
