"""`mcllo power`: how many labelled rows would show this much miscalibration?"""

from __future__ import annotations

from typing import Any

import typer

from ..._utils.statements import suppress_warnings
from . import options
from .echo import echo
from .options import reads


@reads("classes", "baseline", "prefix", "normalize", "percent", "missing", "sheet", "encoding")
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

    options.check_share(alpha, "--alpha")
    study: dict[str, Any] = {"alpha": alpha, "seed": seed, "n_jobs": workers}
    if wanted is not None and n:
        raise typer.BadParameter("it solves for --n; give one of the two.", param_hint="--power")
    study |= {} if wanted is None else {"power": wanted}
    study |= {name: value for name, value in (("n_samples", n), ("reps", reps)) if value}
    with suppress_warnings():  # raised zeros only make the design, nothing is concluded
        if file is None:
            needs_file = {"--delta": delta, "--gamma": gamma, "--label": label}
            needs_file |= {f"--{name}": reading[name] for name in ("classes", "baseline")}
            flag = next((flag for flag, value in needs_file.items() if value), None)
            if flag is not None:
                raise typer.BadParameter(
                    "it needs a FILE of predictions; without one the paper's design is simulated, "
                    "with --delta1.",
                    param_hint=flag,
                )
            shifts = {"delta_1": delta1} if delta1 else {}
            study |= {"n_classes": n_classes, "exact": exact, "resume": resume, **shifts}
            result = simulate.power(**study)
        else:
            baseline = reading.pop("baseline")
            probs, classes = read_probs(file, label=label, **reading)
            given = (("delta", delta), ("gamma", gamma))
            effect = {name: parsed_effect(x, f"--{name}") for name, x in given if x}
            if not effect:
                raise typer.BadParameter(
                    "say how wrong the predictions are: --gamma 0.8, --delta cat=1.5, or "
                    "--delta 1 for the size of the test.",
                    param_hint="--gamma",
                )
            study |= {"classes": classes, "baseline": baseline, **effect}
            result = simulate.power_for(probs, **study)
    echo(options.as_json_text(result.to_dict()) if as_json else str(result))


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
