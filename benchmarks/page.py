"""``docs/explanation/performance.md``: what stands between its markers is written from the JSON.

Nothing is timed here: ``python -m benchmarks page`` gives the same page from the same results.
"""

from pathlib import Path

from benchmarks.crew import SAME_MODEL, TITLES
from benchmarks.fits import TARGETS as TARGET_SIZES
from benchmarks.fits import shape
from benchmarks.results import Results, ratio
from benchmarks.sections import PARTS
from benchmarks.targets import TARGETS
from benchmarks.words import cell, digits, size_words, table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def rebuilt(page: str, results: Results) -> str:
    """Return the page with the part between the markers made from `results`."""
    return filled(page, measured(results))


def filled(page: str, text: str) -> str:
    """Return the page with `text` between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the page must hold {BEGIN} and {END}, in this order.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def measured(results: Results) -> str:
    """Return all that a run says, in Markdown."""
    parts = [
        _warning(results),
        run_words(results),
        "### Targets",
        target_table(results),
        *_fits(results),
        *(text for part in PARTS for text in part(results)),
    ]
    return "\n\n".join(part for part in parts if part)


def _warning(results: Results) -> str:
    """Return what makes these numbers worth little, if anything does."""
    words = []
    if results.get("quick"):
        words.append(
            "This is a quick run: small sizes, one round. It shows that the benchmark works."
        )
    if busy(results):
        words.append("The machine was busy with other work: times and ratios are rough.")
    return f"> **Not for quoting.** {' '.join(words)}" if words else ""


def busy(results: Results) -> bool:
    """Whether another program took more than a quarter of the processors when a run began."""
    loads = [part["load_at_begin"] for part in results["runs"].values() if part["load_at_begin"]]
    return any(load[0] > 0.25 * results["machine"]["cores"] for load in loads)


def run_words(results: Results) -> str:
    """Return the machine, the versions and the load."""
    machine = results["machine"]
    versions = ", ".join(
        f"{name} {number}" for name, number in machine["versions"].items() if number
    )
    absent = [name for name, number in machine["versions"].items() if not number]
    memory = machine["memory_gb"]
    lines = [
        f"Machine: {machine['cpu']} ({machine['vector unit']}), {machine['cores']} processors, "
        f"{'unknown' if memory is None else digits(memory)} GB, {machine['system']}.",
        f"Versions: {versions}.",
        f"Not installed: {', '.join(absent)}." if absent else "",
        f"BLAS: {machine['blas']}, {machine['blas_threads']} thread, OpenMP the same.",
        f"Run: {when(results)}.",
    ]
    return "\n".join(f"- {line}" for line in lines if line)


def when(results: Results) -> str:
    """Return dates, and the load average over a minute when the run began and ended."""
    runs = sorted(results["runs"].values(), key=lambda part: part["date_end"])
    before, after = runs[0]["load_at_begin"], runs[-1]["load_end"]
    first, last = (f"{load[0]:.2f}" if load else "unknown" for load in (before, after))
    dates = sorted(part["date"] for part in runs)
    return (
        f"{dates[0]} to {runs[-1]['date_end']}; load average {first} at the start, {last} at the "
        "end (the benchmark itself makes it 1 or more)"
    )


def target_table(results: Results) -> str:
    """Return the targets with what was measured, and whether they were met."""
    rows = []
    for target in TARGETS:
        outcome = target.judge(results)
        verdict = "quick run" if results["quick"] and outcome.margin else outcome.verdict
        rows.append([target.work, target.demand, outcome.measured, verdict])
    return table(["work", "target", "measured", "met?"], rows)


def table_sizes(results: Results) -> list[str]:
    """Return the sizes of the table of fits: those of the targets, or all of a quick run."""
    found = sorted(results.get("fits", {}), key=lambda size: shape(size)[::-1])
    wanted = [size for size in found if size in TARGET_SIZES]
    return wanted if len(wanted) > 2 else found


def _fits(results: Results) -> list[str]:
    sizes = table_sizes(results)
    if not sizes:
        return []
    fits = results["fits"]
    names = [name for name in TITLES if any(name in fits[size] for size in sizes)]
    head = ["", *map(size_words, sizes)]
    times = [[TITLES[name], *(cell(fits[size].get(name)) for size in sizes)] for name in names]
    peers = [name for name in names if name != "mcllo-1"]
    ratios = [[TITLES[name], *(_ratio(fits[size], name) for size in sizes)] for name in peers]
    return [
        "### Whole fits",
        "Median and quartiles of interleaved rounds. MCLLO: validation, estimates, likelihood "
        "ratio test, standard errors. Other methods: their `fit`, which gives neither test nor "
        f"standard errors. No call may take longer than {digits(results['limit'])} s.",
        table(head, times),
        "How many times as long as MCLLO on one thread (above 1: MCLLO is faster):",
        table(head, ratios),
        agreement(results),
        _figure(results),
    ]


def _figure(results: Results) -> str:
    from benchmarks.figure import has_sweeps

    if not has_sweeps(results):
        return "No figure: too few sizes were timed to show how time grows."
    return "![Time against rows and against classes](../figures/performance.svg)"


def _ratio(records: Results, name: str) -> str:
    found, least = ratio(records, "mcllo-1", name)
    return "" if found is None else f"{'> ' if least else ''}{digits(found)}"


def agreement(results: Results) -> str:
    """Return how far the programs that fit the same model end from the best likelihood of all."""
    gaps = []
    for size, records in results["fits"].items():
        found = {name: r["nll"] for name, r in records.items() if name in SAME_MODEL and "nll" in r}
        gaps += [(value - min(found.values()), name, size) for name, value in found.items()]
    if not gaps:
        return ""
    gap, name, size = max(gaps)
    return (
        "The programs that fit MCLLO should end at the same likelihood. Over all sizes the log "
        f"likelihood of none is more than {gap:.2g} below the best ({TITLES[name]}, "
        f"{size_words(size)})."
    )


def write(results: Results, path: Path = PAGE) -> None:
    """Rewrite the part of the page between its markers."""
    path.write_text(rebuilt(path.read_text(), results))
