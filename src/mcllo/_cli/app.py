"""The command line: every verb parses, makes one Python call and prints.

Exit codes: 0 done; 1 calibration rejected (``--gate``); 2 bad input, one line on standard error.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated, Any

import typer

from .._files.read import read_predictions
from .._ground.statements import quiet
from .._inference.budget import N_RESAMPLES
from .._inference.calibration_test import split_baseline
from .._input.labels import RESERVED
from .._version import __version__
from .._workflows.assess import assess_file
from .._workflows.fit_file import fit_method
from .options import (
    FLAG_WORDS,
    PLAIN,
    READING,
    Alpha,
    AnyBaseline,
    AsJson,
    Center,
    Draws,
    EveryBaseline,
    File,
    FitMethod,
    Full,
    Gate,
    GateLevel,
    Html,
    Label,
    Method,
    ModelOut,
    Open,
    Penalty,
    Seed,
    Statistic,
    Workers,
    as_json_text,
    check_alpha,
    check_apply,
    check_model,
    check_order,
    notes,
    parsed_penalty,
    reads,
    split_names,
    write_report,
)
from .power import power

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
@reads(*READING, baseline=AnyBaseline)
def assess(
    file: File,
    label: Label,
    reading: Any,
    full: Full = False,
    as_json: AsJson = False,
    html: Html = None,
    show: Open = False,
    alpha: Alpha = 0.05,
    gate: Gate = False,
    statistic: Statistic = "lr",
    method: Method = "auto",
    draws: Draws = N_RESAMPLES,
    seed: Seed = None,
    workers: Workers = None,
) -> None:
    """Test calibration, show which classes are wrong and how, and measure."""
    check_alpha(alpha)
    rule, named = split_baseline(reading["baseline"])
    with quiet():  # the report says the same in its notes
        result = assess_file(
            file,
            {**reading, "label": label, "baseline": named},
            rule=rule,
            whole=html is not None,
            workers=workers,
            statistic=statistic,
            method=method,
            n_resamples=draws,
            seed=seed,
        )
    text = "" if as_json else result.text(alpha, full=full, words=FLAG_WORDS)
    typer.echo(as_json_text(result.to_dict()) if as_json else text)
    write_report(result, html, show, alpha, [file])
    if gate and (math.isnan(result.test.pvalue) or result.test.rejects(alpha)):
        raise typer.Exit(1)


@app.command(epilog="Example: mcllo fit train.csv --label y --method auto -o model.json")
@reads(*PLAIN, baseline=EveryBaseline)
def fit(
    file: File,
    label: Label,
    output: ModelOut,
    *,
    method: FitMethod = "mcllo",
    reading: Any,
    penalty: Penalty = None,
    center: Center = None,
    gate: GateLevel = None,
    as_json: AsJson = False,
    workers: Workers = None,
) -> None:
    """Learn a recalibration map and save it as JSON."""
    check_model(output, file)
    rule, named = split_baseline(reading["baseline"], allowed=RESERVED)
    reading |= {"label": label, "baseline": named}
    given = {"penalty": parsed_penalty(penalty), "center": center, "gate": gate}
    with notes():
        fitted = fit_method(file, reading, method, given, rule=rule, workers=workers)
    fitted.calibrator.save(output)
    if output != "-":  # else the model itself is what is printed
        content = {"model": output, **fitted.to_dict()}
        typer.echo(as_json_text(content) if as_json else f"{output}: {fitted}")


@app.command(epilog="Example: mcllo compare train.csv holdout.csv --label y --methods mcllo,beta")
@reads(*PLAIN)
def compare(
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="CSV or Parquet file to learn from.")
    ],
    label: Label,
    *,
    holdout: Annotated[
        str | None,
        typer.Argument(metavar="HOLDOUT", help="File to judge on; or give --cv instead."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Which ones, as in mcllo,temperature. Default: all that suit the data."),
    ] = None,
    cv: Annotated[
        int | None, typer.Option(help="Cross-validate TRAIN with so many folds, no holdout.")
    ] = None,
    reading: Any,
    as_json: AsJson = False,
    html: Html = None,
    show: Open = False,
    seed: Seed = None,
) -> None:
    """Fit every recalibration method on one file, judge them on another, and recommend one."""
    from .._workflows.compare import compare as run_compare

    with quiet():  # the table says the same in its footnotes
        learn = read_predictions(train, label=label, **reading)
        judge = None
        if holdout is not None:
            reading |= {"classes": list(map(str, learn.classes)), "baseline": None}
            judge = read_predictions(holdout, label=label, **reading)
        result = run_compare(learn, judge, methods=split_names(methods), cv=cv, seed=seed)
    typer.echo(as_json_text(result.to_dict()) if as_json else str(result))
    write_report(result, html, show, 0.05, [train] if holdout is None else [train, holdout])


@app.command(epilog="Example: mcllo apply model.json new.csv -o repaired.csv")
@reads("prefix", "normalize", "logits", "clip")
def apply(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="JSON file written by mcllo fit; - is standard input."
        ),
    ],
    file: File,
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="CSV or Parquet file, by its ending; - is standard output.",
        ),
    ] = "-",
    reading: Any,
) -> None:
    """Recalibrate the class columns of a file; all other columns pass through untouched."""
    from .._blocks.apply import apply_file
    from ..calibrators import load_calibrator

    check_order(model, file)
    calibrator = load_calibrator(model)
    prefix, logits, clip = reading["prefix"], reading["logits"], reading["clip"]
    check_apply(calibrator, logits, clip)
    if reading["normalize"]:
        calibrator.set_params(normalize=True)
    if clip is not None:
        calibrator.set_params(clip=clip)
    done = apply_file(calibrator, file, output, prefix=prefix, logits=logits)
    if output != "-":
        typer.echo(f"{output}: {done.n_samples:,} rows recalibrated")


@app.command(epilog="Example: mcllo plot holdout.csv --label y -o reliability.svg")
@reads(*PLAIN)
def plot(
    file: File,
    label: Label,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FIG", help="Figure to write: svg, png or pdf."),
    ],
    *,
    kind: Annotated[
        str,
        typer.Option(help="reliability, by_class, parameters, map, ladder or baselines."),
    ] = "reliability",
    reading: Any,
    seed: Seed = None,
) -> None:
    """Draw one figure: reliability, parameters, the map of the repair, nested models, baselines."""
    from .demo import draw

    with quiet():  # what was changed is said by `mcllo assess`
        draw(read_predictions(file, label=label, **reading), kind, output, seed=seed)
    typer.echo(f"{output}: {kind} figure written")


app.command(
    epilog="Example: mcllo power holdout.csv --label y --gamma 0.8 --n 500 --n 2000",
)(power)


@app.command(epilog="Example: mcllo demo")
def demo(
    directory: Annotated[
        str, typer.Argument(metavar="DIRECTORY", help="Where to put its files.")
    ] = "mcllo-demo",
    show: Open = False,
) -> None:
    """Do the whole job on predictions of images: assess, compare, repair, report."""
    from .demo import run_demo

    made = run_demo(directory, typer.echo)
    if show:
        typer.launch(str(made.directory / "report.html"))
