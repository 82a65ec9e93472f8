"""What was read and what was changed; and how to get the same numbers again."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .._assess import Assessment
from .._comparison import Comparison
from .._details import Details
from .._predictions import Predictions
from .._text import ellipsis, format_count, format_number
from .._version import __version__
from .views import Fact, format_weight, name_cell, percent

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
Command = str | Sequence[str] | None


def data_facts(a: Assessment, comparison: Comparison | None) -> tuple[Fact, ...]:
    """Return what the reader must know of the rows."""
    p = a.predictions
    return (
        *_size_facts(p, comparison),
        *_class_facts(p),
        *_group_facts(p),
        _weight_fact(p),
        *_change_facts(p),
        *_fit_facts(a),
    )


def _size_facts(p: Predictions, comparison: Comparison | None) -> list[Fact]:
    rows = Fact("rows", "Rows", format_count(p.n_samples))
    if comparison is not None and comparison.cross_validated:
        rows = Fact("rows", "Rows", format_count(p.n_samples), "each judged by maps of other folds")
    elif comparison is not None:
        fitted = Fact("rows_fitted", "Rows fitted on", format_count(comparison.train.n_samples))
        return [fitted, Fact("rows", "Rows judged on", format_count(p.n_samples))]
    return [rows]


def _class_facts(p: Predictions) -> list[Fact]:
    counts = p.class_weight
    small, large = int(np.argmin(counts)), int(np.argmax(counts))
    facts = [
        Fact("classes", "Classes", str(p.n_classes)),
        Fact("baseline", "Baseline class", name_cell(p.baseline).text, is_label=True),
    ]
    for key, name, j in (
        ("rarest", "Rarest class", small),
        ("commonest", "Commonest class", large),
    ):
        share = percent(float(counts[j] / counts.sum()))
        note = f"{format_weight(float(counts[j]))} rows, {share}"
        facts.append(Fact(key, name, name_cell(p.classes[j]).text, note, is_label=True))
    absent = ", ".join(ellipsis(label) for label in p.absent[:6]) or "none"
    more = f"and {len(p.absent) - 6} more" if len(p.absent) > 6 else ""
    return [*facts, Fact("absent", "Classes without a row", absent, more, is_label=True)]


def _weight_fact(p: Predictions) -> Fact:
    if p.sample_weight is None:
        return Fact("weights", "Weights", "none")
    total = format_weight(float(p.sample_weight.sum()))
    note = "a row of weight 3 counts as three rows"
    if p.weight_kind == "survey":
        note = "survey weights: they correct for how rows were sampled, and are no counts"
    return Fact("weights", "Weights", f"total {total}", note)


def _group_facts(p: Predictions) -> list[Fact]:
    if p.groups is None:
        return []
    found = format_count(len(np.unique(p.groups)))
    return [Fact("groups", "Groups", found, "rows of one may depend on each other")]


def _change_facts(p: Predictions) -> list[Fact]:
    raised = f"{format_count(p.n_clipped)} raised to {p.clip:g}" if p.clip is not None else ""
    true = f", {format_count(p.n_clipped_true)} of them of the class that came true"
    off = f"off by up to {format_number(p.max_row_error, 2)}" if p.n_renormalized else ""
    kind = "logits" if p.logits is not None else "probabilities"
    return [
        Fact("input", "Read as", kind),
        Fact(
            "zeros",
            "Probabilities of exactly 0",
            format_count(p.n_zeros),
            raised + true if p.n_clipped else raised,
        ),
        Fact("renormalized", "Rows divided by their sum", format_count(p.n_renormalized), off),
    ]


def _fit_facts(a: Assessment) -> list[Fact]:
    fit = a.fit
    state = "converged" if fit.converged else "not determined"
    if fit.separated:
        state = "does not exist (the labels are separated)"
    return [
        Fact("fit", "Estimate", state, f"{fit.n_iter} Newton steps"),
        Fact("df", "Parameters", str(fit.df), "two for each class but the baseline"),
    ]


def reproduce_facts(
    a: Assessment, comparison: Comparison | None, command: Command, source: Sources
) -> tuple[Fact, ...]:
    """Return versions, command, seed and checksums."""
    used = f"Python {platform.python_version()}, NumPy {version('numpy')}, SciPy {version('scipy')}"
    seed = seed_of(a) if comparison is None else comparison.seed
    facts = [Fact("version", "Software", f"mcllo {__version__}", used)]
    facts.append(Fact("command", "Command", _command(a, comparison, command, seed)))
    none = "no random numbers were used"
    facts.append(Fact("seed", "Seed", "none" if seed is None else str(seed), none * (seed is None)))
    return (*facts, *(source_fact(path) for path in sources(source)))


def seed_of(a: Assessment) -> int | None:
    """Return what random numbers were made from; None when none were."""
    seeds = [a.test.seed, *(n.seed for n in a.nulls.values())]
    seeds += [test.seed for test in a.companions.values()]
    found = next((seed for seed in seeds if seed is not None), None)
    return a.details.seed if found is None and _details_drew(a.details) else found


def _details_drew(d: Details) -> bool:
    """Return whether a p-value of the details was simulated."""
    draws = [0 if part is None else part.n_resamples for part in (d.class_tests, d.baselines)]
    draws += [row.n_resamples + row.larger_n_resamples for row in d.ladder.rows] if d.ladder else []
    draws += [test.n_resamples for test in d.zeros.tests] if d.zeros else []
    return any(draws)


def _command(
    a: Assessment, comparison: Comparison | None, command: Command, seed: int | None
) -> str:
    if command is not None:
        return command if isinstance(command, str) else shlex.join(command)
    auto = a.test.kind == "max_score"
    baseline = repr("auto" if auto else name_cell(a.predictions.baseline).text)
    rest = f"baseline={baseline}{_row_options(a.predictions)}"
    rest += "" if seed is None else f", seed={seed}"
    if comparison is None:
        return f"mcllo.assess(probs, y, {rest})"
    data = "(probs, y), cv=..." if comparison.cross_validated else "train, holdout"
    return f"mcllo.compare({data}, {rest})"


def _row_options(p: Predictions) -> str:
    options = "" if p.groups is None else ", groups=groups"
    if p.sample_weight is not None:
        options += ", sample_weight=weight"
        options += ", weight_kind='survey'" if p.weight_kind == "survey" else ""
    return options


def sources(source: Sources) -> list[str]:
    """Return the names of the inputs."""
    if source is None:
        return []
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    return [os.fspath(path) for path in source]


def source_fact(path: str) -> Fact:
    """Return the name of an input with the checksum of its bytes, where it is a file."""
    name = Path(path).name or path
    if not Path(path).is_file():
        return Fact("source", "Input", name, "not a file: no checksum")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Fact("source", "Input", name, f"SHA-256 {digest}")
