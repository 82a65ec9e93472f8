"""Options that several verbs of the command line share, and what they check before any work.

`Flags` are the library's arguments in the words of the command line:

===========================  ============================
``normalize=True``           ``--normalize``
``clip=1e-06``               ``--clip 1e-06``
``baseline='trcuk'``         ``--baseline trcuk``
``classes=['a', 'b c']``     ``--classes 'a,b c'``
``n_resamples must be ...``  ``--draws must be ...``
===========================  ============================
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from .._ground.files import check_writable
from ..exceptions import MclloWarning, Words, show_number

SAME = (
    "alpha baseline center classes clip cv delta gamma gate groups kind label logits method "
    "methods normalize penalty prefix reps seed statistic weight"
)
FLAGS = {
    **{name: f"--{name}" for name in SAME.split()},
    "delta_1": "--delta1",
    "n_classes": "--n-classes",
    "n_jobs": "--workers",
    "n_resamples": "--draws",
    "n_samples": "--n",
    "path": "--output",
    "sample_weight": "--weight",
    "weight_kind": "--weight-kind",
}
"""The option that stands for an argument of the library."""


class Flags(Words):
    """Options of the command line, as they are typed.

    Examples
    --------
    >>> Flags().option("classes", ["a", "b c"]), Flags().option("normalize", True)
    ("--classes 'a,b c'", '--normalize')
    """

    @property
    def kinds(self) -> tuple[str, ...]:
        """Whose words these are."""
        return ("shell", "python")

    def argument(self, name: str) -> str:
        """Return the option that stands for an argument."""
        return FLAGS.get(name, name)

    def option(self, name: str, value: Any = ...) -> str:
        """Return an option with its value."""
        if name not in FLAGS:
            return super().option(name, value)
        if value is ... or value is True or value is None:
            return FLAGS[name]
        if isinstance(value, list):
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(value)
            value = line.getvalue()
        return f"{FLAGS[name]} {shlex.quote(value) if isinstance(value, str) else value}"

    def cell(self, name: str, row: int, column: Any, value: Any) -> str:
        """Return a weight without its row: nothing here says which file it is of."""
        if name != "sample_weight":
            return super().cell(name, row, column, value)
        return f"the weight {show_number(value)}"


FLAG_WORDS = Flags()

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
AnyBaseline = Annotated[
    str | None,
    typer.Option(
        help="The class that the others are compared with. Default: the last one; auto takes the "
        "likeliest, and the p-value pays for it."
    ),
]
EveryBaseline = Annotated[
    str | None,
    typer.Option(
        help="The class that the others are compared with. Default: the last one; auto takes the "
        "likeliest, all averages over every class."
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(help="Column with row weights: a row of weight 3 counts as three rows."),
]
WeightKind = Annotated[
    str,
    typer.Option(help="What weights mean: frequency (a row counts so often) or survey."),
]
Groups = Annotated[
    str | None,
    typer.Option(
        help="Column with groups (animals, patients) whose rows may depend on each other."
    ),
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
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="OUT", help="Also write a report: .html, .md or .json."),
]
Open = Annotated[bool, typer.Option("--open", help="Open the report in a browser.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Alpha = Annotated[float, typer.Option(help="Level of the verdict and of --gate.")]
ModelOut = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="MODEL", help="JSON file to write; - is standard output."
    ),
]
FitMethod = Annotated[
    str,
    typer.Option(
        help="mcllo; auto, a mean of repairs weighed by cross-validation; temperature, vector, "
        "matrix, dirichlet, histogram, xu_davoine, isotonic, beta or identity."
    ),
]
Penalty = Annotated[
    str | None,
    typer.Option(
        help="Pull towards no change; 0 is maximum likelihood (the default), 1 is safe, auto "
        "chooses from the data, firth is Firth's."
    ),
]
Center = Annotated[
    str | None,
    typer.Option(help="Where the pull leads: identity (no change, the default) or temperature."),
]
GateLevel = Annotated[
    float | None,
    typer.Option(help="Recalibrate only if calibration is rejected at this level, say 0.05."),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Threads for files too large to be read at once. Default: all that pay."),
]
Full = Annotated[
    bool, typer.Option("--full", help="Show every detail: nested models, classes, baselines.")
]
Gate = Annotated[
    bool, typer.Option("--gate", help="Exit with code 1 when calibration is rejected.")
]
Statistic = Annotated[str, typer.Option(help="lr, score or wald.")]
Method = Annotated[
    str, typer.Option(help="How to get the p-value: auto, chi2, exact or sequential.")
]
Draws = Annotated[int, typer.Option(help="Simulated data sets of an exact p-value, at most.")]


READING: dict[str, tuple[Any, Any]] = {
    "classes": (Classes, None),
    "baseline": (Baseline, None),
    "weight": (Weight, None),
    "weight_kind": (WeightKind, "frequency"),
    "groups": (Groups, None),
    "prefix": (Prefix, ""),
    "normalize": (Normalize, False),
    "logits": (Logits, False),
    "clip": (Clip, None),
}
"""How a file is read: options with their defaults, in the order in which help shows them."""
PLAIN = ("classes", "baseline", "weight", "prefix", "normalize", "logits", "clip")


def reads(*names: str, **kinds: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb options of `READING`, which it gets as one dictionary, its parameter `reading`.

    `kinds` are options with a help of their own.
    """

    def given(verb: Callable[..., None]) -> Callable[..., None]:
        def run(**options: Any) -> None:
            reading = {name: options.pop(name) for name in names}
            if "classes" in reading:
                reading["classes"] = split_names(reading["classes"])
            verb(reading=reading, **options)

        signature, parameters = inspect.signature(verb, eval_str=True), []
        for parameter in signature.parameters.values():
            if parameter.name != "reading":
                parameters.append(parameter)
                continue
            for name in names:
                kind, default = READING[name]
                shared = parameter.replace(
                    name=name, annotation=kinds.get(name, kind), default=default
                )
                parameters.append(shared)
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__, run.__doc__ = verb.__name__, verb.__doc__
        return run

    return given


def check_alpha(alpha: float) -> None:
    """Refuse a level that is none."""
    if not 0.0 < alpha < 1.0:
        raise typer.BadParameter("it must lie between 0 and 1.", param_hint="--alpha")


def check_model(output: str, file: str) -> None:
    """Refuse to write the model over the data, or where it cannot be written."""
    if output == "-":
        return
    if file != "-" and Path(output).resolve() == Path(file).resolve():
        raise typer.BadParameter(
            f"{output} is the file with the data. Choose another name, such as model.json.",
            param_hint="--output",
        )
    check_writable(output)


def write_report(
    result: Any, out: str | None, show: bool, alpha: float, source: Sequence[str]
) -> None:
    """Write a report of an assessment or a comparison, and open it when asked."""
    if out is None:
        if show:
            raise typer.BadParameter("it needs --html OUT.", param_hint="--open")
        return
    from .._report import report

    command = shlex.join(["mcllo", *sys.argv[1:]])
    files = [name for name in source if name != "-"]
    report(result, alpha=alpha, command=command, source=files or None).write(out)
    typer.echo(f"{out}: report written", err=True)
    if show:
        typer.launch(out)


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
    """Refuse probabilities for a map of logits, and a floor for a method that has none."""
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


def parsed_penalty(text: str | None) -> float | str | None:
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
    return [name.strip() for name in next(csv.reader([names], skipinitialspace=True), [])]


def as_json_text(content: dict[str, Any]) -> str:
    """Return strict JSON."""
    return json.dumps(content, allow_nan=False, ensure_ascii=False, default=str, indent=1)


@contextmanager
def notes() -> Iterator[None]:
    """Print warnings as one-line notes on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        said = warning.message
        text = said.text(FLAG_WORDS) if isinstance(said, MclloWarning) else str(said)
        typer.echo(f"mcllo: note: {' '.join(text.split())}", err=True)
