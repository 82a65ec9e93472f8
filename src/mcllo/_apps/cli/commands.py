"""The command line: every verb parses, makes one Python call and prints.

Exit codes: 0 done; 1 miscalibrated, 3 these rows cannot tell (both with ``--gate`` only); 2 bad
input, one line on standard error; `mcllo.__main__` has the rest. A verb loads what it runs when it
runs: help is there at once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import typer

from ..._utils.statements import suppress_warnings
from ..._version import __version__
from . import monitor_commands, options
from .echo import echo
from .export import export
from .options import (
    BASELINE_HELP,
    CELLS,
    FLAG_WORDS,
    PLAIN_OPTIONS,
    READING,
    notes,
    reads,
    split_names,
)
from .power import power
from .reproduce import reproduce
from .serve import serve

EXIT_FAILED = 1
EXIT_INCONCLUSIVE = 3
N_FOLDS = 5
Abort = typer.Abort
UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")

app = typer.Typer(
    name="mcllo",
    help="Are these class probabilities calibrated, which classes are wrong, how are they "
    "recalibrated?",
    epilog="Exit codes: 0 done; 1 miscalibrated and 3 these rows cannot tell (--gate, monitor); "
    "2 bad input; 70 a mistake in mcllo; 130 interrupted.\n\n"
    "Example: mcllo assess holdout.csv --label y",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@cache
def command() -> Any:
    """Return the parser of the command line."""
    return typer.main.get_command(app)


def _show_version(value: bool) -> None:
    if value:
        from ..._model.compiled import kernel_name

        echo(f"mcllo {__version__} (kernel: {kernel_name()})")
        raise typer.Exit


VERSION = typer.Option(
    False, "--version", callback=_show_version, is_eager=True, help="Show the version."
)


@app.callback()
def _main(version: bool = VERSION) -> None:
    pass


@app.command(
    epilog="Example: mcllo assess holdout.csv --label y --classes cat,dog,truck --baseline truck"
)
@reads(
    *READING, baseline=f"{BASELINE_HELP}; auto takes the likeliest, and the p-value pays for it."
)
def assess(
    file: str = options.FILE,
    label: str = options.LABEL,
    *,
    reading: Any,
    full: bool = options.FULL,
    as_json: bool = options.JSON,
    html: str | None = options.HTML,
    show: bool = options.OPEN,
    alpha: float = options.ALPHA,
    tolerance: float = options.TOLERANCE,
    gate: bool = options.GATE,
    strict: bool = options.STRICT,
    statistic: str = options.STATISTIC,
    method: str = options.METHOD,
    draws: int = options.DRAWS,
    seed: int | None = options.SEED,
    workers: int | None = options.WORKERS,
) -> None:
    """Test calibration, show which classes are wrong and how, and measure."""
    from ..._inference.calibration_test import split_baseline
    from ..streaming.assess_file import assess_file

    options.check_report(html, show)
    options.check_share(alpha, "--alpha")
    options.check_share(tolerance, "--tolerance")
    reading["label"] = label
    rule, named = split_baseline(reading["baseline"])
    options.load_report(html)
    with suppress_warnings():  # the report says the same in its notes
        result = assess_file(
            file,
            {**reading, "baseline": named},
            rule=rule,
            whole=html is not None,
            workers=workers,
            statistic=statistic,
            method=method,
            n_resamples=draws,
            seed=seed,
        )
    judged: dict[str, Any] = {"alpha": alpha, "tolerance": tolerance}
    text = "" if as_json else result.text(**judged, full=full, words=FLAG_WORDS)
    echo(options.as_json_text(result.to_dict(**judged)) if as_json else text)
    options.write_report(result, html, show, [file], reading, **judged)
    verdicts = result.verdicts(**judged)
    if (gate or strict) and any(verdict.fails(strict=strict) for verdict in verdicts):
        raise typer.Exit(EXIT_FAILED)
    if (gate or strict) and verdicts[0].kind == "inconclusive":
        raise typer.Exit(EXIT_INCONCLUSIVE)


@app.command(epilog="Example: mcllo fit train.csv --label y --method auto -o model.json")
@reads(
    *PLAIN_OPTIONS,
    baseline=f"{BASELINE_HELP}; auto takes the likeliest, all averages over every class.",
)
def fit(
    file: str = options.FILE,
    label: str = options.LABEL,
    output: str = options.MODEL_OUT,
    method: str = options.FIT_METHOD,
    *,
    reading: Any,
    penalty: str | None = options.PENALTY,
    center: str | None = options.CENTER,
    gate: float | None = options.GATE_LEVEL,
    flexible: bool = options.FLEXIBLE,
    as_json: bool = options.JSON,
    workers: int | None = options.WORKERS,
) -> None:
    """Learn a recalibration map and save it as JSON."""
    from ..._inference.calibration_test import split_baseline
    from ..._validation.labels import RESERVED_LABELS
    from ..streaming.fit_file import fit_method

    options.check_model(output, file)
    rule, named = split_baseline(reading["baseline"], allowed=RESERVED_LABELS)
    reading |= {"label": label, "baseline": named}
    given = {"penalty": options.parsed_penalty(penalty), "center": center, "gate": gate}
    given["flexible"] = flexible or None
    with notes():
        fitted = fit_method(file, reading, method, given, rule=rule, workers=workers)
    fitted.calibrator.save(output)
    options.say(fitted.notes)
    if output != "-":  # else the model itself is what is printed
        content = {"model": output, **fitted.to_dict()}
        echo(options.as_json_text(content) if as_json else f"{output}: {fitted}")
    if (judged := fitted.held_out) is not None:
        options.say_gain(judged.statement(FLAG_WORDS), aloud=not as_json and output != "-")


@app.command(epilog="Example: mcllo compare train.csv holdout.csv --label y --methods mcllo,beta")
@reads(*PLAIN_OPTIONS)
def compare(
    train: str = options.TRAIN,
    label: str = options.LABEL,
    holdout: str | None = options.HOLDOUT,
    methods: str | None = options.METHODS,
    cv: int | None = options.FOLDS,
    *,
    reading: Any,
    as_json: bool = options.JSON,
    html: str | None = options.HTML,
    show: bool = options.OPEN,
    seed: int | None = options.SEED,
) -> None:
    """Fit every recalibration method on one file, judge them on another, and recommend one.

    Without HOLDOUT each row of TRAIN is judged by maps of the other folds.
    """
    from ..._comparison.compare import compare as run_compare
    from ..io.read import read_predictions

    options.check_report(html, show)
    options.load_report(html)
    reading["label"] = label
    given = {**reading}
    with suppress_warnings():  # the table says the same in its footnotes
        learn = read_predictions(train, **given)
        judge = None
        if holdout is not None:
            given |= {"baseline": None}
            given |= {} if given["positive"] else {"classes": list(map(str, learn.classes))}
            judge = read_predictions(holdout, **given)
        elif cv is None:
            cv = min(N_FOLDS, learn.n_samples)
            echo(f"mcllo: note: no HOLDOUT: {train} is judged by {cv} folds.", err=True)
        result = run_compare(learn, judge, methods=split_names(methods), cv=cv, seed=seed)
    echo(options.as_json_text(result.to_dict()) if as_json else str(result))
    files = [train] if holdout is None else [train, holdout]
    options.write_report(result, html, show, files, reading)


@app.command(epilog="Example: mcllo apply model.json new.csv -o recalibrated.csv")
@reads(
    *("prefix", "normalize", "logits", "clip", *CELLS, "classes"),
    classes="With --positive: the one column of probabilities.",
)
def apply(
    model: str = options.MODEL,
    file: str = options.FILE,
    output: str = options.TABLE_OUT,
    *,
    reading: Any,
) -> None:
    """Recalibrate the class columns of a file; all other columns pass through untouched."""
    from ...calibrators import load_calibrator
    from ..io.write import check_table
    from ..streaming.apply import apply_file

    options.check_order(model, file)
    check_table(output)
    calibrator = load_calibrator(model)
    logits, clip = reading["logits"], reading.pop("clip")
    options.check_apply(calibrator, logits, clip)
    if reading.pop("normalize"):
        calibrator.set_params(normalize=True)
    if clip is not None:
        calibrator.set_params(clip=clip)
    done = apply_file(calibrator, file, output, **reading)
    options.say(done.notes)
    if output != "-":
        echo(f"{output}: {done.n_samples:,} rows recalibrated")


@app.command(epilog="Example: mcllo plot holdout.csv --label y -o reliability.svg")
@reads(*PLAIN_OPTIONS)
def plot(
    file: str = options.FILE,
    label: str = options.LABEL,
    output: str = options.FIGURE_OUT,
    kind: str = options.KIND,
    *,
    reading: Any,
    seed: int | None = options.SEED,
) -> None:
    """Draw one figure: reliability, parameters, recalibration map, nested models, baselines."""
    from ..io.read import read_predictions
    from .demo import check_figure, draw

    check_figure(kind, output)
    with suppress_warnings():  # what was changed is said by `mcllo assess`
        predictions = read_predictions(file, label=label, **reading)
        draw(predictions, kind, output, seed=seed)
    options.say(predictions.notes)
    echo(f"{output}: {kind} figure written")


app.command(
    epilog="Example: mcllo power holdout.csv --label y --gamma 0.8 --n 500 --n 2000",
)(power)


app.command(
    epilog="Example: mcllo export model.json --to sql --dialect postgres -o recalibration.sql"
)(export)


app.command(epilog="Example: mcllo reproduce table2")(reproduce)


app.add_typer(monitor_commands.app)


app.command(epilog="Example: mcllo serve")(serve)


@app.command(epilog="Example: mcllo demo")
def demo(directory: str = options.DIRECTORY, show: bool = options.OPEN) -> None:
    """Do the whole job on predictions of images: assess, compare, recalibrate, report."""
    from .demo import run_demo

    page = run_demo(directory, echo)
    if show:
        typer.launch(str(page))


@app.command("help", epilog="Example: mcllo help assess")
def show_help(verbs: list[str] | None = options.VERBS) -> None:
    """Explain a verb, as VERB --help does."""
    command()([*(verbs or ()), "--help"], prog_name="mcllo", standalone_mode=False)
