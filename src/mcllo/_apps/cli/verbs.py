"""The verbs of the command line: each parses, makes one Python call and prints.

Exit codes: 0 done; 1 miscalibrated, 3 these rows cannot tell (both with ``--gate`` only); 2 bad
input, one line on standard error; `mcllo.__main__` has the rest. A verb loads what it runs when it
runs: help is there at once. The served page stands on top of the command line, so `serve` finds it
by name when it runs.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import typer

from ..._utils.optional import SERVE_EXTRA, check_installed
from ..._utils.statements import suppress_warnings
from ..._version import __version__
from . import (
    choice_options,
    monitor_commands,
    options,
    reproduce_command,
    table_command,
    value_command,
)
from .options import (
    BASELINE_HELP,
    CELLS,
    FLAG_NAMES,
    PLAIN_OPTIONS,
    READING,
    add_file_options,
    echo,
    print_warnings_as_notes,
    split_names,
)

TARGET = typer.Option(..., "--to", help="onnx, sql, js, torch or python.")
OUT = typer.Option(
    None, "--output", "-o", metavar="OUT", help="File to write; - is standard output."
)
CHECK = typer.Option(
    False,
    "--check",
    help="Run the form on a thousand hard rows beside predict_proba and print the largest "
    "difference; exit with code 1 when it is more than rounding.",
)
INPUT = typer.Option(
    None,
    help="What rows will hold: probs or logits. Default: what the model was fitted to.",
)
DTYPE = typer.Option(
    None, help="onnx: float64 (the default) or float32, of input and output."
)
DIALECT = typer.Option(
    None,
    help="sql: duckdb (the default), sqlite, postgres, bigquery, snowflake or spark.",
)
TABLE = typer.Option(
    None, help="sql: the table with a column for each class. Default: predictions."
)
PREFIX = typer.Option(
    None, help="sql: what stands before a class in its column's name."
)
COLUMNS = typer.Option(
    None, help="sql: names of the columns in the order of the classes, as in p1,p2,p3."
)
KEEP = typer.Option(
    None, help="sql: columns to pass through, such as a key, as in id,day."
)


def export(
    model: str = options.MODEL,
    to: str = TARGET,
    output: str | None = OUT,
    check: bool = CHECK,
    input: str | None = INPUT,
    dtype: str | None = DTYPE,
    dialect: str | None = DIALECT,
    table: str | None = TABLE,
    prefix: str | None = PREFIX,
    columns: str | None = COLUMNS,
    keep: str | None = KEEP,
) -> None:
    """Write a model as ONNX, SQL, JavaScript, PyTorch or plain Python."""
    from ... import export as targets
    from ..._utils.atomic_files import check_writable
    from ...calibrators import load_calibrator

    if output is None and not check:
        raise typer.BadParameter(
            "name a file, or - for standard output; --check needs none.",
            param_hint="--output",
        )
    if output not in (None, "-"):
        check_writable(str(output))
    asked = {
        "input": input,
        "dtype": dtype,
        "dialect": dialect,
        "table": table,
        "prefix": prefix,
        "columns": options.split_names(columns),
        "keep": options.split_names(keep),
    }
    given: dict[str, Any] = {
        name: value for name, value in asked.items() if value is not None
    }
    calibrator = load_calibrator(model)
    if output is not None:
        targets.export(calibrator, to, output, **given)
        if output != "-":
            echo(
                f"{output}: {calibrator.method} for {len(calibrator.classes_)} classes"
            )
    if check:
        found = targets.check(calibrator, to, **given)
        echo(str(found), err=output == "-")
        if not found.holds:
            raise typer.Exit(EXIT_FAILED)


@add_file_options(
    "classes",
    "baseline",
    "prefix",
    "normalize",
    "percent",
    "missing",
    "sheet",
    "header",
    "encoding",
)
def power(
    file: str | None = options.FILE_OR_NONE,
    n: list[int] | None = options.SIZES,
    delta: list[str] | None = options.EFFECT,
    gamma: list[str] | None = options.EFFECT,
    delta1: list[float] | None = options.DELTA_1,
    n_classes: int = options.N_CLASSES,
    label: str | None = options.NO_LABEL,
    *,
    reading: Any,
    wanted: float | None = options.POWER,
    reps: int | None = options.REPS,
    alpha: float = options.ALPHA,
    exact: bool = options.EXACT,
    workers: int = options.PROCESSES,
    resume: str | None = options.RESUME,
    seed: int | None = options.SEED,
    as_json: bool = options.JSON,
) -> None:
    """Estimate how often calibration would be rejected, by number of labelled rows."""
    from ... import simulate
    from ..io.read import read_probs

    options.check_between_0_and_1(alpha, "--alpha")
    if wanted is not None and n:
        raise typer.BadParameter(
            "it solves for --n; give one of the two.", param_hint="--power"
        )
    study: dict[str, Any] = {"alpha": alpha, "seed": seed, "n_jobs": workers}
    if wanted is not None:
        study["power"] = wanted
    if n:
        study["n_samples"] = n
    if reps:
        study["reps"] = reps
    with (
        suppress_warnings()
    ):  # clipped zeros only make the design, nothing is concluded
        if file is None:
            needs_file = {
                "--delta": delta,
                "--gamma": gamma,
                "--label": label,
                "--classes": reading["classes"],
                "--baseline": reading["baseline"],
            }
            for flag, value in needs_file.items():
                if value:
                    raise typer.BadParameter(
                        "it needs a FILE of predictions; without one the paper's design is "
                        "simulated, with --delta1.",
                        param_hint=flag,
                    )
            if delta1:
                study["delta_1"] = delta1
            result = simulate.power(
                n_classes=n_classes, exact=exact, resume=resume, **study
            )
        else:
            baseline = reading.pop("baseline")
            probs, classes = read_probs(file, label=label, **reading)
            if delta:
                study["delta"] = parse_effect(delta, "--delta")
            if gamma:
                study["gamma"] = parse_effect(gamma, "--gamma")
            if not delta and not gamma:
                raise typer.BadParameter(
                    "say how wrong the predictions are: --gamma 0.8, --delta cat=1.5, or "
                    "--delta 1 for the size of the test.",
                    param_hint="--gamma",
                )
            result = simulate.power_for(
                probs, classes=classes, baseline=baseline, **study
            )
    echo(options.as_json_text(result.to_dict()) if as_json else str(result))


def parse_effect(values: list[str], flag: str) -> float | dict[str, float]:
    """Return one number for all classes, or numbers by class.

    Examples
    --------
    >>> parse_effect(["0.8"], "--gamma"), parse_effect(["cat=1.5", "dog=2"], "--delta")
    (0.8, {'cat': 1.5, 'dog': 2.0})
    """
    by_class: dict[str, float] = {}
    for value in values:
        name, _, number = value.rpartition("=")
        try:
            by_class[name] = float(number)
        except ValueError:
            raise typer.BadParameter(
                f"it must be a number such as 0.8, or a class and a number such as cat=1.5; "
                f"got {value}.",
                param_hint=flag,
            ) from None
    if "" in by_class and len(values) > 1:
        raise typer.BadParameter(
            "give one number for all classes, or CLASS=NUMBER for some.",
            param_hint=flag,
        )
    return by_class.get("", by_class)


NEEDED_MODULES = ("starlette", "uvicorn", "python_multipart")
PORT = typer.Option(
    0, help="Port of 127.0.0.1 to listen on. Default: any that is free."
)
NO_BROWSER = typer.Option(False, "--no-browser", help="Only print the address.")


def serve(port: int = PORT, no_browser: bool = NO_BROWSER) -> None:
    """Open a page on this machine: drop a table, read the report, take the recalibrated table away.

    Nothing leaves the machine, and nothing is kept after Ctrl-C.
    """
    check_installed(NEEDED_MODULES, SERVE_EXTRA, "mcllo serve")
    show = None if no_browser else typer.launch
    import_module("mcllo._apps.serve").serve(port, echo, show)


EXIT_FAILED = 1
EXIT_INCONCLUSIVE = 3
N_FOLDS = 5
Abort = typer.Abort
# Click's class, which newer Typers carry themselves: it has no public name that all of them share.
UsageError: Any = typer.BadParameter.__base__

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
def build_parser() -> Any:
    """Return the parser of the command line."""
    parser = typer.main.get_command(app)
    _leave_out_types_of_flags(parser)
    return parser


def _leave_out_types_of_flags(command: Any) -> None:
    """Let help show ``--gate`` and not ``--gate <bool>``: a flag takes no value."""
    asks_for_help = command.get_help_option(
        typer.Context(command)
    )  # made once, and kept
    for parameter in (*command.params, asks_for_help):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for verb in getattr(command, "commands", {}).values():
        _leave_out_types_of_flags(verb)


def _print_version(value: bool) -> None:
    if value:
        from ..._model.compiled import kernel_name

        echo(f"mcllo {__version__} (kernel: {kernel_name()})")
        raise typer.Exit


VERSION = typer.Option(
    False, "--version", callback=_print_version, is_eager=True, help="Show the version."
)


@app.callback()
def _main(version: bool = VERSION) -> None:
    pass


@app.command(
    epilog="Example: mcllo assess holdout.csv --label y --classes cat,dog,truck --baseline truck"
)
@add_file_options(
    *READING,
    baseline=f"{BASELINE_HELP}; auto takes the likeliest, and the p-value pays for it.",
)
def assess(
    files: list[str] = choice_options.FILES,
    label: str | None = choice_options.LABEL_OF_TABLE,
    *,
    reading: Any,
    scores: str | None = choice_options.SCORES,
    answer: str | None = choice_options.ANSWER,
    kind: str | None = choice_options.SCORE_KIND,
    per_character: bool = choice_options.PER_CHARACTER,
    full: bool = options.FULL,
    as_json: bool = options.JSON,
    html: str | None = options.HTML,
    show: bool = options.OPEN,
    alpha: float = options.ALPHA,
    tolerance: float = options.TOLERANCE,
    costs: str | None = options.COSTS,
    cost_tolerance: float | None = options.COST_TOLERANCE,
    gate: bool = options.GATE,
    strict: bool = options.STRICT,
    statistic: str = options.STATISTIC,
    method: str = options.METHOD,
    draws: int = options.DRAWS,
    seed: int | None = options.SEED,
    workers: int | None = options.WORKERS,
) -> None:
    """Test calibration, show which classes are wrong and how, and measure."""
    from ..._inference.calibration_test import split_baseline_rule
    from ..io.choice_files import is_choice_path
    from ..streaming.assess_file import assess_file

    options.check_report_output(html, show)
    options.check_between_0_and_1(alpha, "--alpha")
    options.check_between_0_and_1(tolerance, "--tolerance")
    if cost_tolerance is not None and costs is None:
        raise typer.BadParameter("it needs --costs.", param_hint="--cost-tolerance")
    testing: dict[str, Any] = {"statistic": statistic, "method": method, "seed": seed}
    testing |= {"n_resamples": draws, "alpha": alpha}
    judged: dict[str, Any] = {"alpha": alpha, "tolerance": tolerance}
    of_choices: dict[str, Any] = {"scores": scores, "answer": answer, "kind": kind}
    of_choices["per_character"] = per_character or None
    if label is None and all(map(is_choice_path, files)):
        choice_options.refuse_options_of_classes(reading, costs)
        options.preload_matplotlib(html)
        result = choice_options.assess_choice_files(
            files, of_choices, reading["by"], testing
        )
        _print_result(result, as_json=as_json, full=full, **judged)
        options.write_report(result, html, show, files, reading, **judged)
        _close_gate([result.decide(**judged)], gate=gate, strict=strict)
        return
    if label is None:
        raise UsageError("Missing option '--label' / '-l'.")
    choice_options.refuse_options_of_choices(of_choices)
    if len(files) > 1:
        raise typer.BadParameter(
            "of tables give one, or a directory of them.", param_hint="FILE"
        )
    [file] = files
    reading["label"] = label
    rule, named = split_baseline_rule(reading["baseline"])
    options.preload_matplotlib(html)
    with suppress_warnings():  # the report says the same in its notes
        result = assess_file(
            file,
            {**reading, "baseline": named},
            rule=rule,
            whole=html is not None,
            workers=workers,
            full=full,
            costs=costs,
            cost_tolerance=cost_tolerance,
            **testing,
        )
    _print_result(result, as_json=as_json, full=full, names=FLAG_NAMES, **judged)
    options.write_report(result, html, show, [file], reading, **judged)
    _close_gate(result.verdicts(**judged), gate=gate, strict=strict)


def _print_result(
    result: Any,
    *,
    as_json: bool,
    alpha: float,
    tolerance: float,
    **layout: Any,
) -> None:
    """Print an assessment, as text or as JSON."""
    if as_json:
        echo(options.as_json_text(result.to_dict(alpha=alpha, tolerance=tolerance)))
    else:
        echo(result.text(alpha=alpha, tolerance=tolerance, **layout))


def _close_gate(verdicts: list[Any], *, gate: bool, strict: bool) -> None:
    """Exit as the first verdict, that of all rows, and the others ask, where a gate is wanted."""
    if (gate or strict) and any(verdict.fails(strict=strict) for verdict in verdicts):
        raise typer.Exit(EXIT_FAILED)
    if (gate or strict) and verdicts[0].kind == "inconclusive":
        raise typer.Exit(EXIT_INCONCLUSIVE)


@app.command(epilog="Example: mcllo fit train.csv --label y -o model.json")
@add_file_options(
    *PLAIN_OPTIONS,
    baseline=f"{BASELINE_HELP}; auto takes the likeliest, all averages over every class.",
)
def fit(
    file: str = options.FILE,
    label: str = options.LABEL,
    output: str = options.MODEL_OUT,
    method: str | None = options.FIT_METHOD,
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
    from ..._inference.calibration_test import split_baseline_rule
    from ..._validation.labels import RESERVED_LABELS
    from ..streaming.fit_file import fit_method

    options.check_model_output(output, file)
    rule, named = split_baseline_rule(reading["baseline"], allowed=RESERVED_LABELS)
    reading |= {"label": label, "baseline": named}
    given = {
        "penalty": options.parse_penalty(penalty),
        "center": center,
        "gate": gate,
        "flexible": flexible or None,
    }
    with print_warnings_as_notes():
        fitted = fit_method(file, reading, method, given, rule=rule, workers=workers)
    fitted.calibrator.save(output)
    options.print_notes(fitted.notes)
    if output != "-":  # else the model itself is what is printed
        content = {"model": output, **fitted.to_dict()}
        echo(options.as_json_text(content) if as_json else f"{output}: {fitted}")
    if fitted.held_out is not None:
        gain = fitted.held_out.statement().with_names(FLAG_NAMES)
        options.print_gain(gain, always=not as_json and output != "-")


@app.command(
    epilog="Example: mcllo compare train.csv holdout.csv --label y --methods mcllo,beta"
)
@add_file_options(*PLAIN_OPTIONS)
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
    method: str = options.METHOD,
    draws: int = options.FEWER_DRAWS,
    bootstrap: int = options.BOOTSTRAP,
    seed: int | None = options.SEED,
) -> None:
    """Fit every recalibration method on one file, judge them on another, and recommend one.

    Without HOLDOUT each row of TRAIN is judged by maps of the other folds.
    """
    from ..._comparison.compare import compare as run_compare
    from ..io.read import read_predictions

    options.check_report_output(html, show)
    options.preload_matplotlib(html)
    reading["label"] = label
    with suppress_warnings():  # the table says the same in its footnotes
        learn = read_predictions(train, **reading)
        judge = None
        if holdout is not None:
            same = {**reading, "baseline": None}
            if not reading["positive"]:
                same["classes"] = [str(name) for name in learn.classes]
            judge = read_predictions(holdout, **same)
        elif cv is None:
            cv = min(N_FOLDS, learn.n_samples)
            echo(f"mcllo: note: no HOLDOUT: {train} is judged by {cv} folds.", err=True)
        drawing: dict[str, Any] = {"method": method, "n_resamples": draws}
        drawing |= {"bootstrap": bootstrap, "seed": seed}
        result = run_compare(
            learn, judge, methods=split_names(methods), cv=cv, **drawing
        )
    echo(options.as_json_text(result.to_dict()) if as_json else str(result))
    files = [train] if holdout is None else [train, holdout]
    options.write_report(result, html, show, files, reading)


@app.command(epilog="Example: mcllo apply model.json new.csv -o recalibrated.csv")
@add_file_options(
    *("prefix", "normalize", "logits", "clip", *CELLS, "classes"),
    classes="With --positive: the one column of probabilities.",
    missing="Rows in which a probability is missing: refuse, or drop (they stay in their places "
    "with empty class columns, and are counted).",
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
    from ...calibrators._base import refuse_choice_calibrator
    from ..io.write import check_table_name
    from ..streaming.apply import apply_file

    options.check_argument_order(model, file)
    check_table_name(output)
    calibrator = load_calibrator(model)
    refuse_choice_calibrator(calibrator)
    clip = reading.pop("clip")
    options.check_map_fits_options(calibrator, reading["logits"], clip)
    if reading.pop("normalize"):
        calibrator.set_params(normalize=True)
    if clip is not None:
        calibrator.set_params(clip=clip)
    done = apply_file(calibrator, file, output, **reading)
    options.print_notes(done.notes)
    if output != "-":
        echo(f"{output}: {done.n_samples:,} rows recalibrated")


@app.command(epilog="Example: mcllo plot holdout.csv --label y -o reliability.svg")
@add_file_options(*PLAIN_OPTIONS)
def plot(
    file: str = options.FILE,
    label: str = options.LABEL,
    output: str = options.FIGURE_OUT,
    kind: str = options.KIND,
    *,
    reading: Any,
    dpi: float = options.DPI,
    seed: int | None = options.SEED,
) -> None:
    """Draw one figure: reliability, parameters, recalibration map, nested models, baselines."""
    from ..io.read import read_predictions
    from .figure_file import check_figure_request, draw_figure_file

    check_figure_request(kind, output)
    if not 10.0 <= dpi <= 2400.0:  # of a page of print, and a picture that fits memory
        raise typer.BadParameter("it must lie in 10 to 2400.", param_hint="--dpi")
    with suppress_warnings():  # what was changed is said by `mcllo assess`
        predictions = read_predictions(file, label=label, **reading)
        draw_figure_file(predictions, kind, output, seed=seed, dpi=dpi)
    options.print_notes(predictions.notes)
    echo(f"{output}: {kind} figure written")


app.command(epilog="Example: mcllo table holdout.csv --label y --latex > table.tex")(
    table_command.table
)


app.command(
    epilog="Example: mcllo power holdout.csv --label y --gamma 0.8 --n 500 --n 2000",
)(power)


app.command(
    epilog="Example: mcllo export model.json --to sql --dialect postgres -o recalibration.sql"
)(export)


app.command(
    epilog="Example: mcllo value holdout.csv --label y --costs costs.csv --abstain 0.6",
)(value_command.value)


app.command(epilog="Example: mcllo reproduce table2")(reproduce_command.reproduce)


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
    build_parser()([*(verbs or ()), "--help"], prog_name="mcllo", standalone_mode=False)
