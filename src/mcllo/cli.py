"""The command line: every verb parses, makes one Python call and prints.

Exit codes: 0 done; 1 calibration rejected (``--gate``); 2 bad input, one line on standard error.
"""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from ._assess import assess as run_assess
from ._atomic import check_writable
from ._calibration_test import N_RESAMPLES
from ._flags import in_flags
from ._io import read_predictions
from ._version import __version__

Abort = typer.Abort
UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")

app = typer.Typer(
    name="mcllo",
    help="Are these class probabilities calibrated, which classes are wrong, what is the repair?",
    epilog="Example: mcllo assess holdout.csv --label y",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV or Parquet file with a column of probabilities for each class; "
        "- is standard input.",
    ),
]
Label = Annotated[
    str, typer.Option("--label", "-l", help="Column with the true class of each row.")
]
Classes = Annotated[
    str | None,
    typer.Option(
        help="The class columns, as in cat,dog,truck. Default: every column but the label; "
        "needed when there are others, such as ids."
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(help="The class that the others are compared with. Default: the last one."),
]
Weight = Annotated[
    str | None,
    typer.Option(help="Column with row weights: a row of weight 3 counts as three rows."),
]
Prefix = Annotated[
    str,
    typer.Option(
        help="What stands before a class in its column's name: p_ for columns p_cat, p_dog and "
        "labels cat, dog."
    ),
]
Normalize = Annotated[
    bool,
    typer.Option(
        "--normalize", help="Divide each row by its sum, for rounded files that miss 1 a little."
    ),
]
Logits = Annotated[
    bool,
    typer.Option("--logits", help="Columns hold scores before the softmax, not probabilities."),
]
Clip = Annotated[
    float | None,
    typer.Option(help="Floor for small probabilities. Default: 1e-6, in rows that hold a 0."),
]
Seed = Annotated[
    int | None, typer.Option(help="A whole number that makes simulated p-values repeatable.")
]


@cache
def command() -> Any:
    """Return the parser of the command line."""
    return typer.main.get_command(app)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"mcllo {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command(
    epilog="Example: mcllo assess holdout.csv --label y --classes cat,dog,truck --baseline truck"
)
def assess(
    file: File,
    label: Label,
    classes: Classes = None,
    baseline: Baseline = None,
    weight: Weight = None,
    prefix: Prefix = "",
    normalize: Normalize = False,
    logits: Logits = False,
    clip: Clip = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    alpha: Annotated[float, typer.Option(help="Level of the verdict and of --gate.")] = 0.05,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit with code 1 when calibration is rejected.")
    ] = False,
    statistic: Annotated[str, typer.Option(help="lr, score or wald.")] = "lr",
    method: Annotated[
        str, typer.Option(help="How to get the p-value: auto, chi2, exact or sequential.")
    ] = "auto",
    draws: Annotated[
        int, typer.Option(help="Simulated data sets of an exact p-value, at most.")
    ] = N_RESAMPLES,
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
                prefix=prefix,
                logits=logits,
                normalize=normalize,
                clip=clip,
            ),
            statistic=statistic,  # type: ignore[arg-type]
            method=method,  # type: ignore[arg-type]
            n_resamples=draws,
            seed=seed,
        )
    typer.echo(_json(result.to_dict()) if as_json else in_flags(result.text(alpha)))
    if gate and (math.isnan(result.test.pvalue) or result.test.rejects(alpha)):
        raise typer.Exit(1)


@app.command(epilog="Example: mcllo fit train.csv --label y --baseline truck -o model.json")
def fit(
    file: File,
    label: Label,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="JSON file to write; - is standard output."
        ),
    ],
    classes: Classes = None,
    baseline: Baseline = None,
    weight: Weight = None,
    prefix: Prefix = "",
    normalize: Normalize = False,
    logits: Logits = False,
    clip: Clip = None,
    penalty: Annotated[
        float, typer.Option(help="Pull towards no change; 0 is maximum likelihood, 1 is safe.")
    ] = 0.0,
) -> None:
    """Learn a recalibration map and save it as JSON."""
    from .calibrators import MCLLOCalibrator

    _check_model(output, file)
    with _notes():
        predictions = read_predictions(
            file,
            label=label,
            classes=_split(classes),
            baseline=baseline,
            weight=weight,
            prefix=prefix,
            logits=logits,
            normalize=normalize,
            clip=clip,
        )
        calibrator = MCLLOCalibrator(
            baseline=predictions.baseline, penalty=penalty, normalize=normalize, clip=clip
        ).fit(predictions)
    calibrator.save(output)
    if output != "-":
        typer.echo(
            f"{output}: map of {predictions.n_classes} classes (baseline: {predictions.baseline}) "
            f"from {predictions.n_samples:,} rows"
        )


@app.command(epilog="Example: mcllo apply model.json new.csv -o repaired.csv")
def apply(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="JSON file written by mcllo fit; - is standard input."
        ),
    ],
    file: File,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="CSV or Parquet file, by its ending; - is standard output.",
        ),
    ] = "-",
    prefix: Prefix = "",
    normalize: Normalize = False,
    logits: Logits = False,
    clip: Clip = None,
) -> None:
    """Recalibrate the class columns of a file; all other columns pass through untouched."""
    from ._streaming import apply_file
    from .calibrators import load_calibrator

    _check_order(model, file)
    calibrator = load_calibrator(model)
    if normalize:
        calibrator.set_params(normalize=True)
    if clip is not None:
        calibrator.set_params(clip=clip)
    done = apply_file(calibrator, file, output, prefix=prefix, logits=logits)
    if output != "-":
        typer.echo(f"{output}: {done.n_samples:,} rows recalibrated")


def _check_alpha(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise typer.BadParameter("it must lie between 0 and 1.", param_hint="--alpha")


def _check_model(output: str, file: str) -> None:
    """Refuse to write the model over the data, or where it cannot be written."""
    if output == "-":
        return
    if file != "-" and Path(output).resolve() == Path(file).resolve():
        raise typer.BadParameter(
            f"{output} is the file with the data. Choose another name, such as model.json.",
            param_hint="--output",
        )
    check_writable(output)


def _check_order(model: str, file: str) -> None:
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


def _split(names: str | None) -> list[str] | None:
    """Return the names in ``a,b,"c,d"``."""
    if names is None:
        return None
    return [name.strip() for name in next(csv.reader([names], skipinitialspace=True), [])]


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, ensure_ascii=False, default=str, indent=1)


@contextmanager
def _notes() -> Iterator[None]:
    """Print warnings as one-line notes on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        typer.echo(f"mcllo: note: {' '.join(in_flags(str(warning.message)).split())}", err=True)
