"""Options of the command line: what arguments are called, the options that verbs share, and checks.

Verbs print through `echo`, which shows what stands in names and never obeys it. `Flag` and
`FLAG_NAMES` say messages of the library in options (``--clip 0``). Names and formats of outputs are
checked before any work: nobody should wait for numbers that cannot be kept. `READING` are the
options by which every verb reads its file.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import shlex
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from ..._assessment import TOLERANCE as DEFAULT_TOLERANCE
from ..._inference.budget import N_RESAMPLES, N_RESAMPLES_REPEATED
from ..._utils.atomic_files import check_writable
from ..._utils.statements import Statement
from ..._utils.terminal import escape_control_characters
from ...exceptions import PYTHON, Argument, MclloWarning, Names, number_or_repr


def echo(text: str, err: bool = False) -> None:
    """Print `text` on standard output, or on standard error."""
    typer.echo(escape_control_characters(text), err=err)


SAME_NAMES = (
    "abstain alpha answer baseline batch by calibrator center classes clip columns costs cv delta "
    "dialect dtype encoding flexible gamma gate groups header input keep kind label logits method "
    "methods missing normalize penalty percent port positive power prefix reps rule scores seed "
    "sheet statistic table to tolerance weight"
)
FLAGS = {
    **{name: f"--{name}" for name in SAME_NAMES.split()},
    "cost_tolerance": "--cost-tolerance",
    "delta_1": "--delta1",
    "n_classes": "--n-classes",
    "n_jobs": "--workers",
    "n_resamples": "--draws",
    "bootstrap": "--bootstrap",
    "n_samples": "--n",
    "run_length": "--run-length",
    "path": "--output",
    "per_character": "--per-character",
    "sample_weight": "--weight",
    "weight_kind": "--weight-kind",
}
"""The option that stands for an argument of the library."""


class Flag(Argument):
    """An argument of the library as an option of the command line, as it is typed.

    Examples
    --------
    >>> Flag("classes").given(["a", "b c"]), Flag("normalize").given(True)
    ("--classes 'a,b c'", '--normalize')
    """

    def __str__(self) -> str:
        """Return the option as the subject of a sentence."""
        return FLAGS.get(self.name, self.name)

    def given(self, value: Any = ...) -> str:
        """Return the option with its value."""
        if self.name not in FLAGS:
            return super().given(value)
        flag = FLAGS[self.name]
        if value is ... or value is True or value is None:
            return flag
        if isinstance(value, list):
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(value)
            value = line.getvalue()
        typed = shlex.quote(value) if isinstance(value, str) else value
        return f"{flag} {typed}"

    def cell(self, row: int, column: Any, value: Any) -> str:
        """Return a weight without its row: nothing here says which file it is of."""
        if self.name != "sample_weight":
            return super().cell(row, column, value)
        return f"the weight {number_or_repr(value)}"


FLAG_NAMES = Names(
    {
        **PYTHON,
        "auto_calibrator": "--method auto",
        "baselines_to_try": "",
        "check_columns": "Check the names of the columns.",
        "chooses_baseline": "assess and fit",
        "lr_or_score": "--statistic lr or --statistic score",
        "mcllo_calibrator": "mcllo fit",
        "method_found": "{methods:{method!r}}",
        "or_a_generator": "",
        "other_clip": "Leave --clip out or give a bound such as --clip 1e-6.",
        "penalty_for_blocks": "--penalty auto",
        "refit": "{in_shell}",
        "restart": "mcllo monitor restart MONITOR NEW --model model.json",
        "use_a_penalty": "use mcllo fit --penalty 1",
    },
    Flag,
)
"""What messages call things on the command line."""


TABLES = (
    ".csv",
    ".tsv",
    ".xlsx",
    ".parquet",
    ".pq",
    ".feather",
    ".arrow",
    ".npy",
    ".npz",
)
REPORTS = (".html", ".htm", ".md", ".json")


def check_between_0_and_1(value: float, option: str) -> None:
    """Refuse a level or tolerance that does not lie between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise typer.BadParameter("it must lie between 0 and 1.", param_hint=option)


def check_model_output(output: str, file: str) -> None:
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


def check_report_output(out: str | None, show: bool) -> None:
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


def check_argument_order(model: str, file: str) -> None:
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


def check_map_fits_options(calibrator: Any, logits: bool, clip: float | None) -> None:
    """Refuse probabilities for a map of logits, and clipping for a method that has none."""
    if calibrator.input == "logits" and not logits:
        raise typer.BadParameter(
            f"this {calibrator.method} map was fitted to logits, so FILE must hold logits too. "
            "Say so with --logits.",
            param_hint="MODEL",
        )
    if clip is not None and "clip" not in calibrator.get_params():
        raise typer.BadParameter(
            f"{calibrator.method} takes zeros as they are. Leave it out.",
            param_hint="--clip",
        )


RECALIBRATIONS = (
    "mcllo auto temperature vector matrix dirichlet histogram "
    "xu_davoine isotonic beta identity"
)
KINDS = (
    *(
        "reliability",
        "by_class",
        "smooth",
        "smooth_by_class",
        "isotonic",
        "isotonic_by_class",
        "bins",
        "bins_by_class",
    ),
    *("parameters", "map", "nested_models", "baselines"),
)
"""Kinds of figures that `mcllo plot` draws."""


def completer(*words: str) -> Callable[[str], list[str]]:
    """Return a function that offers the words that complete a value in a shell."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


FILE = typer.Argument(
    metavar="FILE",
    help="Table with a column of probabilities for each class: CSV, Parquet, Arrow, JSON lines, "
    ".xlsx, .npy or .npz; - is standard input.",
)
FILE_OR_NONE = typer.Argument(
    None,
    metavar="FILE",
    help="Table with predicted probabilities, no labels needed. "
    "Without it, the paper's design is simulated.",
)
TRAIN = typer.Argument(metavar="TRAIN", help="Table to learn from.")
HOLDOUT = typer.Argument(
    None,
    metavar="HOLDOUT",
    help="Table to judge on. Without one, TRAIN is cross-validated.",
)
MODEL = typer.Argument(
    metavar="MODEL", help="JSON file written by mcllo fit; - is standard input."
)
DIRECTORY = typer.Argument(
    "mcllo-demo", metavar="DIRECTORY", help="Where to put its files."
)

LABEL = typer.Option(
    ..., "--label", "-l", help="Column with the true class of each row."
)
NO_LABEL = typer.Option(None, "--label", "-l", help="Column to leave out: the labels.")
MODEL_OUT = typer.Option(
    ...,
    "--output",
    "-o",
    metavar="MODEL",
    help="JSON file to write; - is standard output.",
)
TABLE_OUT = typer.Option(
    "-",
    "--output",
    "-o",
    metavar="OUT",
    help="Table to write: .csv, .parquet, .feather, .xlsx or .npy; - is standard output.",
)
FIGURE_OUT = typer.Option(
    ...,
    "--output",
    "-o",
    metavar="FIG",
    help="Figure to write: svg, png, pdf or tiff.",
)
DEFAULT_DPI = 200.0
DPI = typer.Option(DEFAULT_DPI, help="Dots per inch of a png or tiff.")
HTML = typer.Option(
    None, "--html", metavar="OUT", help="Also write a report: .html, .md or .json."
)
OPEN = typer.Option(False, "--open", help="Open the report in a browser.")
JSON = typer.Option(False, "--json", help="Print JSON instead of text.")
FULL = typer.Option(
    False, "--full", help="Show every detail: nested models, classes, baselines."
)
GATE = typer.Option(
    False,
    "--gate",
    help="Exit with code 1 when the verdict is miscalibrated, with 3 when it is inconclusive. It "
    "is for one look; batch after batch is for mcllo monitor.",
)
STRICT = typer.Option(
    False,
    "--strict",
    help="As --gate, and exit with code 1 also when the verdict is negligible.",
)
TOLERANCE = typer.Option(
    DEFAULT_TOLERANCE,
    help="Average error of the probabilities that is too little to matter: 0.01 is one percentage "
    "point.",
)
COSTS_HELP = (
    "a row for each action, a column for each class, and one with the names of the actions; or "
    'JSON, as in {"miss": {"cancer": 50}, "default": 1}.'
)
COSTS = typer.Option(
    None,
    "--costs",
    metavar="COSTS",
    help=f"Also say what decisions cost. Table of costs: {COSTS_HELP}",
)
COST_TOLERANCE = typer.Option(
    None,
    help="With --costs: cost of a case that is too little to matter, in the place of --tolerance.",
)
GATE_LEVEL = typer.Option(
    None, help="Recalibrate only if calibration is rejected at this level, say 0.05."
)
FLEXIBLE = typer.Option(
    False,
    "--flexible",
    help="Of auto: also correct the mean by trees, from 1,000 rows on.",
)
ALPHA = typer.Option(0.05, help="Level of the verdict and of --gate.")
STATISTIC = typer.Option(
    "lr",
    autocompletion=completer("lr", "score", "wald"),
    help="lr, score or wald.",
)
METHOD = typer.Option(
    "auto", help="How to get the p-value: auto, chi2, exact or sequential."
)
DRAWS = typer.Option(
    N_RESAMPLES, help="Simulated data sets of an exact p-value, at most."
)
BOOTSTRAP = typer.Option(
    0,
    "--bootstrap",
    help="Draws of a corrected p-value of methods that have no theory of it, such as 199; slow.",
)
FEWER_DRAWS = typer.Option(
    N_RESAMPLES_REPEATED,
    "--draws",
    help="Simulated data sets of an exact p-value, at most.",
)
SEED = typer.Option(
    None, help="A whole number that makes simulated p-values repeatable."
)
WORKERS = typer.Option(
    None, help="Threads for files too large to be read at once. Default: all that pay."
)
FIT_METHOD = typer.Option(
    None,
    autocompletion=completer(*RECALIBRATIONS.split()),
    help="auto, a mean of recalibrations weighed by cross-validation, for the best probabilities; "
    "mcllo, for a map that can be read; temperature, vector, matrix, dirichlet, histogram, "
    "xu_davoine, isotonic, beta or identity. Default: auto; mcllo where --penalty, --center or "
    "--baseline is given, or the rows do not fit into memory.",
)
PENALTY = typer.Option(
    None,
    help="Pull towards no change; 0 is maximum likelihood (the default), 1 is safe, auto "
    "chooses from the data, firth is Firth's.",
)
CENTER = typer.Option(
    None, help="Where the pull leads: identity (no change, the default) or temperature."
)
METHODS = typer.Option(
    None, help="Which ones, as in mcllo,temperature. Default: all that suit the data."
)
FOLDS = typer.Option(
    None,
    help="Cross-validate TRAIN with so many folds, no holdout. Default without HOLDOUT: 5.",
)
KIND = typer.Option(
    "reliability",
    autocompletion=completer(*KINDS),
    help="reliability (smooth), isotonic or bins (each also as by_class, isotonic_by_class, "
    "bins_by_class), parameters, map, nested_models or baselines.",
)
POWER = typer.Option(
    None,
    "--power",
    help="Solve for it: how many rows reject with this probability, say 0.8?",
)
VERBS = typer.Argument(
    None, metavar="VERB", help="The verb to explain. Default: all of them."
)
SIZES = typer.Option(
    None, "--n", help="Number of labelled rows; give it more than once."
)
EFFECT = typer.Option(
    None,
    metavar="NUMBER|CLASS=NUMBER",
    help="How wrong the predictions are, for all classes or for one; 1 is right.",
)
DELTA_1 = typer.Option(None, "--delta1", help="Without FILE: the first class's delta.")
N_CLASSES = typer.Option(10, help="Without FILE: number of classes.")
REPS = typer.Option(None, help="Repetitions of each setting.")
EXACT = typer.Option(
    False, "--exact", help="Without FILE: exact p-values instead of chi-square's."
)
PROCESSES = typer.Option(1, help="Processes; -1 is one per processor.")
RESUME = typer.Option(
    None,
    metavar="CELLS",
    help="Without FILE: file that keeps finished settings, to go on from.",
)

BASELINE_HELP = (
    "The class that the others are compared with. Default: the last that occurs"
)
READING: dict[str, tuple[Any, Any, str]] = {
    "classes": (
        str | None,
        None,
        "The class columns, as in cat,dog,truck. Default: every column but the label; needed when "
        "there are others, such as ids.",
    ),
    "baseline": (str | None, None, f"{BASELINE_HELP}."),
    "weight": (
        str | None,
        None,
        "Column with row weights: a row of weight 3 counts as three rows.",
    ),
    "weight_kind": (
        str,
        "frequency",
        "What weights mean: frequency (a row counts so often), survey (1 over the chance of being "
        "drawn) or importance.",
    ),
    "groups": (
        str | None,
        None,
        "Column with groups (animals, patients) whose rows may depend on each other.",
    ),
    "by": (
        str | None,
        None,
        "Column with subgroups (stations, sexes): are all of them alike, and which is off?",
    ),
    "prefix": (
        str,
        "",
        "What stands before a class in its column's name: p_ for columns p_cat, p_dog and labels "
        "cat, dog; before and after it with a *, as in 'P(*)'.",
    ),
    "normalize": (
        bool,
        False,
        "Divide each row by its sum, for rounded files that miss 1 a little.",
    ),
    "logits": (
        bool,
        False,
        "Columns hold scores before the softmax, not probabilities.",
    ),
    "clip": (
        float | None,
        None,
        "Clip smaller probabilities to this one. Default: 1e-6, in rows that hold a 0.",
    ),
    "percent": (bool, False, "Class columns hold percentages, 0 to 100."),
    "missing": (
        str,
        "refuse",
        "Rows in which something is missing: refuse, or drop (counted).",
    ),
    "positive": (
        str | None,
        None,
        "For a yes/no outcome with one column of probabilities: the label they are of, as in rain.",
    ),
    "sheet": (
        str | None,
        None,
        "Sheet of a workbook; table of an .npz file. Default: the first that holds a table.",
    ),
    "header": (
        int | None,
        None,
        "Row of a sheet that names the columns, as Excel counts. Default: found out, and said.",
    ),
    "encoding": (
        str | None,
        None,
        "Of text, as in latin-1. Default: found out, and said.",
    ),
}
"""How a file is read: type, default and help of each option, in the order of the pages of help."""
CELLS = ("percent", "missing", "positive", "sheet", "header", "encoding")
"""How cells are written: for every verb that reads a file."""
PLAIN_OPTIONS = (
    "classes",
    "baseline",
    "weight",
    "prefix",
    "normalize",
    "logits",
    "clip",
    *CELLS,
)


def add_file_options(
    *names: str, **helps: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb options of `READING`, which it gets as one dictionary, its parameter `reading`.

    `helps` take the place of the table's.
    """

    def with_options(verb: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            reading = {name: given.pop(name) for name in names}
            if "classes" in reading:
                reading["classes"] = split_names(reading["classes"])
            if reading.get("missing", "drop") not in ("refuse", "drop"):
                raise typer.BadParameter(
                    "it must be refuse or drop.", param_hint="--missing"
                )
            verb(reading=reading, **given)

        # Typer makes the options out of the signature: in the place of `reading`, one for each name
        signature = inspect.signature(verb, eval_str=True)
        parameters = []
        for parameter in signature.parameters.values():
            if parameter.name != "reading":
                parameters.append(parameter)
                continue
            for name in names:
                kind, default, usual_help = READING[name]
                flag = [f"--{name}"] if kind is bool else []  # without a --no-name
                option = typer.Option(default, *flag, help=helps.get(name, usual_help))
                parameters.append(
                    parameter.replace(name=name, annotation=kind, default=option)
                )
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__ = verb.__name__
        run.__doc__ = verb.__doc__
        return run

    return with_options


def preload_matplotlib(out: str | None) -> None:
    """Begin to load matplotlib for a report, half a second: rows are computed meanwhile.

    Nothing of mcllo: modules that two threads load at a time must not import each other. For the
    same reason whoever goes on to matplotlib waits for the end first (`wait_for_preload`).
    """

    def load() -> None:
        with suppress(ImportError):  # whoever needs it says so
            import_module("matplotlib.figure")

    if out is not None and out.endswith((".html", ".htm")):
        thread = threading.Thread(target=load)
        thread.start()
        _loading_threads.append(thread)


_loading_threads: list[threading.Thread] = []
"""What `preload_matplotlib` began; also by an earlier verb of this process, if that was refused."""


def wait_for_preload() -> None:
    """Wait for `preload_matplotlib`: a package that is half loaded must not be imported."""
    while _loading_threads:
        _loading_threads.pop().join()


def write_report(
    result: Any,
    out: str | None,
    show: bool,
    source: Sequence[str],
    reading: Mapping[str, Any],
    **judged: Any,
) -> None:
    """Write a report of an assessment or a comparison, and open it when asked.

    What it advises repeats the options that the files were read with.
    """
    if out is None:
        return
    wait_for_preload()
    from ..report import report

    command = shlex.join(["mcllo", *sys.argv[1:]])
    files = [name for name in source if name != "-"]
    made = report(
        result,
        **judged,
        command=command,
        source=files or None,
        names=FLAG_NAMES,
        reading=non_default_options(reading),
    )
    made.write(out)
    echo(f"{out}: report written", err=True)
    if show:
        typer.launch(out)


def non_default_options(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options whose values are not the defaults."""
    given = {}
    for name, value in reading.items():
        usual = READING[name][1] if name in READING else None
        if value != usual:
            given[name] = value
    return given


def print_notes(notes: Iterable[Statement]) -> None:
    """Print what was assumed, one line each, on standard error."""
    for note in notes:
        echo(f"mcllo: note: {note.text}", err=True)


def print_gain(gain: Statement, always: bool) -> None:
    """Print what a map gains on rows left out; that it may do harm is always said."""
    if gain.level == "bad":
        echo(f"mcllo: warning: {gain.text}", err=True)
    elif always:
        echo(gain.text)


def parse_penalty(text: str | None) -> float | str | None:
    """Return the number that `text` is, or the word; what words mean is the library's to say."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def split_names(names: str | None) -> list[str] | None:
    """Return the names in ``a,b,"c,d"``."""
    if names is None:
        return None
    first_line = next(csv.reader([names], skipinitialspace=True), [])
    return [name.strip() for name in first_line]


def as_json_text(content: dict[str, Any] | list[dict[str, Any]]) -> str:
    """Return strict JSON."""
    return json.dumps(
        content, allow_nan=False, ensure_ascii=False, default=str, indent=1
    )


@contextmanager
def print_warnings_as_notes() -> Iterator[None]:
    """Print warnings as one-line notes on standard error."""
    # Python's own filters may be changed here: the process is the command's
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        said = warning.message
        text = said.text(FLAG_NAMES) if isinstance(said, MclloWarning) else str(said)
        echo(f"mcllo: note: {' '.join(text.split())}", err=True)
