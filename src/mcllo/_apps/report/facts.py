"""The last screen: the rows, and how to get the same numbers again.

===============  =================================================================================
data facts       what was read and what was changed
reproduce facts  version and kernel, command, seed, checksums
===============  =================================================================================
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ..._assessment.assessment import Assessment
from ..._comparison.comparison import Comparison
from ..._model.compiled import kernel_name
from ..._utils.formatting import ellipsis, format_count, format_number
from ..._version import __version__
from .views import Fact, format_weight, name_cell, percent

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
Command = str | Sequence[str] | None


def today() -> str:
    """Return the day a report is made, such as 3 May 2026."""
    now = datetime.now().astimezone()
    return f"{now.day} {now:%B %Y}"


def data_facts(a: Assessment, comparison: Comparison | None) -> tuple[Fact, ...]:
    """Return what the reader must know of the rows: how many, of what, and what was changed."""
    p = a.predictions
    clipped = ""
    if p.clip is not None:
        clipped = f"{format_count(p.n_clipped)} clipped to {p.clip:g}"
    if p.n_clipped:
        clipped += (
            f", {format_count(p.n_clipped_true)} of them of the class that came true"
        )
    off = (
        f"off by up to {format_number(p.max_row_error, 2)}" if p.n_renormalized else ""
    )
    state = "converged" if a.fit.converged else "not determined"
    if a.fit.separated:
        state = "does not exist (the labels are separated)"
    return (
        *_row_facts(a, comparison),
        *_class_facts(a),
        *_group_facts(a),
        _weights_fact(a),
        Fact("input", "Read as", "logits" if p.logits is not None else "probabilities"),
        Fact("zeros", "Probabilities of exactly 0", format_count(p.n_zeros), clipped),
        Fact(
            "renormalized",
            "Rows divided by their sum",
            format_count(p.n_renormalized),
            off,
        ),
        Fact("fit", "Estimate", state, f"{a.fit.n_iter} Newton steps"),
        Fact("df", "Parameters", str(a.fit.df), "two for each class but the baseline"),
    )


def _row_facts(a: Assessment, comparison: Comparison | None) -> list[Fact]:
    """Return how many rows were judged, and how many fitted on."""
    n_rows = format_count(a.predictions.n_samples)
    if comparison is None:
        return [Fact("rows", "Rows", n_rows)]
    if comparison.cross_validated:
        return [Fact("rows", "Rows", n_rows, "each judged by maps of other folds")]
    n_fitted = format_count(comparison.train.n_samples)
    return [
        Fact("rows_fitted", "Rows fitted on", n_fitted),
        Fact("rows", "Rows judged on", n_rows),
    ]


def _class_facts(a: Assessment) -> list[Fact]:
    """Return the classes: how many, the rarest and the commonest, and those without a row."""
    p = a.predictions
    counts = p.class_weight
    facts = [
        Fact("classes", "Classes", str(p.n_classes)),
        Fact("baseline", "Baseline class", name_cell(p.baseline).text, is_label=True),
    ]
    rarest = int(np.argmin(counts))
    commonest = int(np.argmax(counts))
    for key, name, j in (
        ("rarest", "Rarest class", rarest),
        ("commonest", "Commonest class", commonest),
    ):
        share = percent(float(counts[j] / counts.sum()))
        note = f"{format_weight(float(counts[j]))} rows, {share}"
        facts.append(Fact(key, name, name_cell(p.classes[j]).text, note, is_label=True))
    absent = ", ".join(ellipsis(label) for label in p.absent[:6]) or "none"
    more = f"and {len(p.absent) - 6} more" if len(p.absent) > 6 else ""
    facts.append(Fact("absent", "Classes without a row", absent, more, is_label=True))
    return facts


def _group_facts(a: Assessment) -> list[Fact]:
    """Return how many groups there are, if any."""
    groups = a.predictions.groups
    if groups is None:
        return []
    n_groups = format_count(len(np.unique(groups)))
    return [Fact("groups", "Groups", n_groups, "rows of one may depend on each other")]


def _weights_fact(a: Assessment) -> Fact:
    """Return what rows count."""
    p = a.predictions
    if p.sample_weight is None:
        return Fact("weights", "Weights", "none")
    total = f"total {format_weight(float(p.sample_weight.sum()))}"
    note = "a row of weight 3 counts as three rows"
    if p.weight_kind == "survey":
        note = (
            "survey weights: they correct for how rows were sampled, and are no counts"
        )
    elif p.weight_kind == "importance":
        note = "importance weights: how much each row matters, and no counts"
    return Fact("weights", "Weights", total, note)


def reproduce_facts(
    a: Assessment, comparison: Comparison | None, command: Command, source: Sources
) -> tuple[Fact, ...]:
    """Return versions, kernel, command (the Python call when none is given), seed and checksums."""
    used = (
        f"kernel: {kernel_name()}, Python {platform.python_version()}, NumPy {version('numpy')}, "
        f"SciPy {version('scipy')}"
    )
    seed = used_seed(a) if comparison is None else comparison.seed
    if command is None:
        command = _python_call(a, comparison, seed)
    elif not isinstance(command, str):
        command = shlex.join(command)
    drawn = ("none", "no random numbers were used") if seed is None else (str(seed), "")
    return (
        Fact("version", "Software", f"mcllo {__version__}", used),
        Fact("command", "Command", command),
        Fact("seed", "Seed", *drawn),
        *(input_checksum_fact(path) for path in input_names(source)),
    )


def _python_call(a: Assessment, comparison: Comparison | None, seed: int | None) -> str:
    """Return the call of Python that gives the same numbers."""
    p = a.predictions
    if comparison is None:
        call = "mcllo.assess(probs, y"
    elif comparison.cross_validated:
        call = "mcllo.compare((probs, y), cv=..."
    else:
        call = "mcllo.compare(train, holdout"
    baseline = "auto" if a.test.kind == "max_score" else name_cell(p.baseline).text
    call += f", baseline={baseline!r}"
    if p.groups is not None:
        call += ", groups=groups"
    if p.sample_weight is not None:
        call += ", sample_weight=weight"
    if not p.counts_rows:
        call += f", weight_kind={p.weight_kind!r}"
    if seed is not None:
        call += f", seed={seed}"
    return f"{call})"


def used_seed(a: Assessment) -> int | None:
    """Return what random numbers were made from; None when none were."""
    d = a.details
    seeds = [a.test.seed]
    seeds += [null.seed for null in a.null_distributions.values()]
    seeds += [test.seed for test in a.omnibus_tests.values()]
    for seed in seeds:
        if seed is not None:
            return seed
    n_draws = [a.effect_size.n_resamples]
    if d.class_tests is not None:
        n_draws.append(d.class_tests.n_resamples)
    if d.baselines is not None:
        n_draws.append(d.baselines.n_resamples)
    if d.nested_models is not None:
        n_draws += [
            row.n_resamples + row.larger_n_resamples for row in d.nested_models.rows
        ]
    if d.zeros is not None:
        n_draws += [test.n_resamples for test in d.zeros.tests]
    return d.seed if any(n_draws) else None


def input_names(source: Sources) -> list[str]:
    """Return the names of the inputs."""
    if source is None:
        return []
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    return [os.fspath(path) for path in source]


def input_checksum_fact(path: str) -> Fact:
    """Return the name of an input with the checksum of its bytes, where it is a file."""
    name = Path(path).name or path
    if not Path(path).is_file():
        return Fact("source", "Input", name, "not a file: no checksum")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Fact("source", "Input", name, f"SHA-256 {digest}")
