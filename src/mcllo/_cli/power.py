"""`mcllo power`: how many labelled rows would show this much miscalibration?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .._ground.statements import quiet
from .options import Alpha, AsJson, Seed, as_json_text, check_alpha, reads

Sizes = Annotated[
    list[int] | None, typer.Option("--n", help="Number of labelled rows; give it more than once.")
]
Effect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NUMBER|CLASS=NUMBER",
        help="How wrong the predictions are, for all classes or for one; 1 is right.",
    ),
]
FileOption = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="CSV or Parquet file with predicted probabilities, no labels needed. "
        "Without it, the paper's design is simulated.",
    ),
]


@reads("classes", "baseline", "prefix", "normalize")
def power(
    *,
    file: FileOption = None,
    n: Sizes = None,
    delta: Effect = None,
    gamma: Effect = None,
    delta1: Annotated[
        list[float] | None,
        typer.Option("--delta1", help="Without FILE: the first class's delta."),
    ] = None,
    n_classes: Annotated[int, typer.Option(help="Without FILE: number of classes.")] = 10,
    label: Annotated[
        str | None, typer.Option("--label", "-l", help="Column to leave out: the labels.")
    ] = None,
    reading: Any,
    reps: Annotated[int | None, typer.Option(help="Repetitions of each setting.")] = None,
    alpha: Alpha = 0.05,
    exact: Annotated[
        bool, typer.Option("--exact", help="Without FILE: exact p-values instead of chi-square's.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes; -1 is one per processor.")] = 1,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="CELLS", help="Without FILE: file that keeps finished settings, to go on from."
        ),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Estimate how often calibration would be rejected, by number of labelled rows."""
    from .. import simulate
    from .._files.read import read_probs

    check_alpha(alpha)
    options: dict[str, Any] = {"alpha": alpha, "seed": seed, "n_jobs": workers}
    options |= {name: value for name, value in (("n_samples", n), ("reps", reps)) if value}
    with quiet():  # raised zeros only make the design, nothing is concluded
        if file is None:
            _refuse_given(delta, gamma, label, reading["classes"], reading["baseline"])
            shifts: dict[str, Any] = {"delta_1": delta1} if delta1 else {}
            result = simulate.power(
                n_classes=n_classes, exact=exact, resume=resume, **shifts, **options
            )
        else:
            baseline = reading.pop("baseline")
            probs, classes = read_probs(file, label=label, **reading)
            effect = parsed_effects(delta, gamma)
            result = simulate.power_for(
                probs, classes=classes, baseline=baseline, **effect, **options
            )
    typer.echo(as_json_text(result.to_dict()) if as_json else str(result))


def parsed_effects(delta: list[str] | None, gamma: list[str] | None) -> dict[str, Any]:
    """Return what was said about delta and gamma; refuse to guess it."""
    effect = {
        name: parsed_effect(values, f"--{name}")
        for name, values in (("delta", delta), ("gamma", gamma))
        if values
    }
    if not effect:
        raise typer.BadParameter(
            "say how wrong the predictions are: --gamma 0.8, --delta cat=1.5, or --delta 1 for "
            "the size of the test.",
            param_hint="--gamma",
        )
    return effect


def parsed_effect(values: list[str], flag: str) -> float | dict[str, float]:
    """Return one number for all classes, or numbers by class.

    Examples
    --------
    >>> parsed_effect(["0.8"], "--gamma"), parsed_effect(["cat=1.5", "dog=2"], "--delta")
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
            "give one number for all classes, or CLASS=NUMBER for some.", param_hint=flag
        )
    return by_class.get("", by_class)


def _refuse_given(*given: Any) -> None:
    flags = ("--delta", "--gamma", "--label", "--classes", "--baseline")
    for flag, value in zip(flags, given, strict=True):
        if value:
            raise typer.BadParameter(
                "it needs a FILE of predictions; without one the paper's design is simulated, "
                "with --delta1.",
                param_hint=flag,
            )
