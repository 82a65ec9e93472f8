"""``docs/explanation/quality.md``: what stands between its markers is written from the results."""

from pathlib import Path

from benchmarks.page import filled
from benchmarks.quality.cases import SEEDS
from benchmarks.quality.claims import CLAIMS, GATE_CLAIM
from benchmarks.quality.methods import NOTHING, few_words
from benchmarks.quality.parts import (
    beside_reference,
    failure_table,
    harmless_table,
    set_table,
    size_section,
    time_table,
)
from benchmarks.quality.view import GROUPS, View, counted
from benchmarks.words import table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "quality.md"


def rebuilt(page: str, view: View) -> str:
    """Return the page with the part between the markers made from the results."""
    return filled(page, measured(view))


def measured(view: View) -> str:
    """Return all that the results say, in Markdown."""
    parts = [
        warning(view),
        run_words(view),
        "### What was asked, and what was found",
        claim_table(view),
        "![Log loss, harm and time against the number of rows](../figures/quality.svg)",
        *sections(view),
    ]
    return "\n\n".join(part for part in parts if part)


def warning(view: View) -> str:
    """Say so where the run is not complete."""
    seeds = view.seeds()
    if seeds >= SEEDS:
        return ""
    return f"> **Not for quoting.** {seeds} of {SEEDS} seeds were run: a check that all works."


def run_words(view: View) -> str:
    """Return sets, seeds, machine, versions, and what is not there."""
    facts, sets = view.facts, list(view.sets.values())
    new = [s for s in sets if not s["used"]]
    used = [s for s in sets if s["used"]]
    machine = facts["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v)
    lines = [
        f"{counted(sets)}: {counted(new)} are new, {counted(used)} were used while designing "
        f"`AutoCalibrator`. {sum(row['cases'] for row in view.of(NOTHING)):,} cases, up to "
        f"{view.seeds()} seeds for each set and number of rows.",
        f"Machine: {machine['cpu']}, {machine['cores']} processors; one thread for each fit, "
        f"{facts['workers']} fits at a time. The last part of the run began {facts['date']}.",
        f"Versions: {versions}.",
        few_words(view.methods),
        *(f"Not there: {what} ({why})." for what, why in facts["missing"].items()),
    ]
    return "\n".join(f"- {line}" for line in lines if line)


def claim_table(view: View) -> str:
    """Return each demand for all sets and for both groups."""
    rows = []
    for claim in CLAIMS:
        for group, title in GROUPS.items():
            part = view.group(group)
            if part.rows:
                found = claim.judge(part)
                rows.append([claim.demand, title, found.measured, found.verdict])
    found = GATE_CLAIM.judge(view)
    rows.append([GATE_CLAIM.demand, "labels drawn", found.measured, found.verdict])
    return table(["asked of auto", "on", "measured", "met?"], rows)


def sections(view: View) -> list[str]:
    """Return the sections below the figure."""
    return [
        "### Auto beside SMS",
        "Mean log loss of auto less that of SMS with 95 % intervals, how often auto is ahead, and "
        "how often each is worse than doing nothing.",
        beside_reference(view),
        *(part for n in view.sizes for part in size_section(view, n)),
        "### Fit time by number of classes",
        "Time of auto as a multiple of that of SMS in the same case: median over sets of the "
        "median over seeds, and all sets together.",
        time_table(view),
        "### Nothing to repair",
        "Labels were drawn from the predictions themselves. *Changed*: share of data sets in which "
        "any probability moved; *cost*: mean rise of the expected log loss, exact, and its largest "
        "value in one data set.",
        harmless_table(view),
        "### Fits that failed",
        failure_table(view),
        "### Prediction sets",
        set_table(view),
    ]


def write(view: View, path: Path = PAGE) -> None:
    """Rewrite the part of the page between its markers."""
    path.write_text(rebuilt(path.read_text(), view))
