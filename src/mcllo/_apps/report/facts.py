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
from dataclasses import replace
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
    p, counts = a.predictions, a.predictions.class_weight
    facts = [Fact("rows", "Rows", format_count(p.n_samples))]
    if comparison is not None and comparison.cross_validated:
        facts[0] = replace(facts[0], note="each judged by maps of other folds")
    elif comparison is not None:
        fitted = Fact("rows_fitted", "Rows fitted on", format_count(comparison.train.n_samples))
        facts = [fitted, replace(facts[0], name="Rows judged on")]
    facts += [
        Fact("classes", "Classes", str(p.n_classes)),
        Fact("baseline", "Baseline class", name_cell(p.baseline).text, is_label=True),
    ]
    for key, name, j in (
        ("rarest", "Rarest class", int(np.argmin(counts))),
        ("commonest", "Commonest class", int(np.argmax(counts))),
    ):
        share = percent(float(counts[j] / counts.sum()))
        note = f"{format_weight(float(counts[j]))} rows, {share}"
        facts.append(Fact(key, name, name_cell(p.classes[j]).text, note, is_label=True))
    absent = ", ".join(ellipsis(label) for label in p.absent[:6]) or "none"
    more = f"and {len(p.absent) - 6} more" if len(p.absent) > 6 else ""
    facts.append(Fact("absent", "Classes without a row", absent, more, is_label=True))
    if p.groups is not None:
        found = format_count(len(np.unique(p.groups)))
        facts.append(Fact("groups", "Groups", found, "rows of one may depend on each other"))
    weights, note = "none", ""
    if p.sample_weight is not None:
        weights = f"total {format_weight(float(p.sample_weight.sum()))}"
        note = "a row of weight 3 counts as three rows"
        if p.weight_kind == "survey":
            note = "survey weights: they correct for how rows were sampled, and are no counts"
        elif p.weight_kind == "importance":
            note = "importance weights: how much each row matters, and no counts"
    raised = f"{format_count(p.n_clipped)} clipped to {p.clip:g}" if p.clip is not None else ""
    if p.n_clipped:
        raised += f", {format_count(p.n_clipped_true)} of them of the class that came true"
    off = f"off by up to {format_number(p.max_row_error, 2)}" if p.n_renormalized else ""
    state = "converged" if a.fit.converged else "not determined"
    if a.fit.separated:
        state = "does not exist (the labels are separated)"
    return (
        *facts,
        Fact("weights", "Weights", weights, note),
        Fact("input", "Read as", "logits" if p.logits is not None else "probabilities"),
        Fact("zeros", "Probabilities of exactly 0", format_count(p.n_zeros), raised),
        Fact("renormalized", "Rows divided by their sum", format_count(p.n_renormalized), off),
        Fact("fit", "Estimate", state, f"{a.fit.n_iter} Newton steps"),
        Fact("df", "Parameters", str(a.fit.df), "two for each class but the baseline"),
    )


def reproduce_facts(
    a: Assessment, comparison: Comparison | None, command: Command, source: Sources
) -> tuple[Fact, ...]:
    """Return versions, kernel, command (the Python call when none is given), seed and checksums."""
    used = f"kernel: {kernel_name()}, Python {platform.python_version()}"
    used += f", NumPy {version('numpy')}, SciPy {version('scipy')}"
    seed = used_seed(a) if comparison is None else comparison.seed
    if command is None:
        p, auto = a.predictions, a.test.kind == "max_score"
        call = "mcllo.assess(probs, y"
        if comparison is not None:
            data = "(probs, y), cv=..." if comparison.cross_validated else "train, holdout"
            call = f"mcllo.compare({data}"
        call += f", baseline={'auto' if auto else name_cell(p.baseline).text!r}"
        call += "" if p.groups is None else ", groups=groups"
        call += "" if p.sample_weight is None else ", sample_weight=weight"
        call += "" if p.counts_rows else f", weight_kind={p.weight_kind!r}"
        command = f"{call})" if seed is None else f"{call}, seed={seed})"
    elif not isinstance(command, str):
        command = shlex.join(command)
    drawn = ("none", "no random numbers were used") if seed is None else (str(seed), "")
    return (
        Fact("version", "Software", f"mcllo {__version__}", used),
        Fact("command", "Command", command),
        Fact("seed", "Seed", *drawn),
        *(source_fact(path) for path in sources(source)),
    )


def used_seed(a: Assessment) -> int | None:
    """Return what random numbers were made from; None when none were."""
    seeds = [a.test.seed, *(n.seed for n in a.null_distributions.values())]
    seeds += [test.seed for test in a.omnibus_tests.values()]
    found = next((seed for seed in seeds if seed is not None), None)
    if found is not None:
        return found
    d = a.details
    draws = [0 if part is None else part.n_resamples for part in (d.class_tests, d.baselines)]
    draws += (
        [row.n_resamples + row.larger_n_resamples for row in d.nested_models.rows]
        if d.nested_models
        else []
    )
    draws += [test.n_resamples for test in d.zeros.tests] if d.zeros else []
    draws.append(a.effect_size.n_resamples)
    return d.seed if any(draws) else None


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
