"""``python -m benchmarks targets`` and ``page``: measure, keep all times, write page and figure."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import apply, facts, figure, fits, limits, outofcore, page, real, results, study

OTHERS = ("limits", "apply", "study", "parquet", "real")
QUICK_LIMIT = 20.0


def options(arguments: list[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks targets")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument(
        "--only", default="", help=f"some parts, as in 8000x10,apply: sizes or {', '.join(OTHERS)}"
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a call may take")
    parser.add_argument("--rounds", type=int, default=fits.ROUNDS, help="interleaved rounds")
    parser.add_argument(
        "--parquet-rows", type=int, default=outofcore.ROWS, help="rows of the Parquet file"
    )
    found = parser.parse_args(arguments)
    if found.quick:
        found.limit, found.rounds = min(found.limit, QUICK_LIMIT), 1
    found.parts = [part.strip() for part in found.only.split(",") if part.strip()]
    wrong = [part for part in found.parts if part not in OTHERS and not is_size(part)]
    if wrong:
        parser.error(f"--only takes sizes such as 8000x10 and {', '.join(OTHERS)}; got {wrong[0]}")
    return found


def is_size(word: str) -> bool:
    """Whether a word is a size, as in 8000x10."""
    n, _, c = word.partition("x")
    return n.isdigit() and c.isdigit() and int(n) > 0 and int(c) > 1


class Run:
    """One run: results so far, written to the file after each part."""

    def __init__(self, path: Path, chosen: argparse.Namespace) -> None:
        machine = results.rounded(facts.machine())
        kept = results.read(path) if chosen.parts else {}
        if kept.get("machine") != machine:
            kept = {}
        self.path, self.begin = path, facts.load()
        self.found: results.Results = kept or {"machine": machine, "runs": {}, "fits": {}}
        self.found |= {"quick": chosen.quick, "limit": chosen.limit}

    def part(self, name: str, measure: Callable[[], Any]) -> None:
        """Measure one part and keep it, with date and load."""
        print(f"{facts.now()}  {name}", flush=True)
        start = {"date": facts.now(), "load_at_begin": self.begin, "load_start": facts.load()}
        got = measure()
        if name != "fits":
            self.found[name] = got
        self.found["runs"][name] = start | {"date_end": facts.now(), "load_end": facts.load()}
        results.write(self.path, self.found)

    def keep_size(self, size: str, records: results.Results) -> None:
        """Keep the fits of one size at once: a long run may be interrupted."""
        self.found["fits"][size] = records
        results.write(self.path, self.found)


def measures(chosen: argparse.Namespace, keep: fits.Keep) -> dict[str, Callable[[], Any]]:
    """Return what to measure, by part."""
    quick, sizes = chosen.quick, [part for part in chosen.parts if is_size(part)]
    rounds, limit = chosen.rounds, chosen.limit
    if not chosen.parts:
        sizes = list(fits.QUICK if quick else (*fits.TARGETS, *fits.SWEEP))
    some = {
        "limits": limits.measure,
        "fits": lambda: fits.measure(sizes, rounds=rounds, limit=limit, say=_say, keep=keep),
        "apply": lambda: apply.measure(
            apply.QUICK if quick else apply.rows_that_fit(), 1 if quick else 5
        ),
        "study": lambda: study.measure(1, 4000, (400, 1000)) if quick else study.measure(),
        "parquet": lambda: outofcore.measure(
            outofcore.QUICK if quick else chosen.parquet_rows, 1 if quick else 3
        ),
        "real": lambda: real.measure(
            real.QUICK if quick else real.SETS, 1 if quick else 5, say=_say
        ),
    }
    wanted = {"limits", "apply", "study", "parquet", "real", "fits"}
    if chosen.parts:
        wanted = {*chosen.parts, *(["fits"] if sizes else [])}
    return {name: measure for name, measure in some.items() if name in wanted}


def _say(words: str) -> None:
    print(f"{facts.now()}    {words}", flush=True)


def targets(arguments: list[str]) -> None:
    """Measure; write results, page and figure (``--quick`` prints the page instead)."""
    chosen = options(arguments)
    run = Run(results.QUICK if chosen.quick else results.LATEST, chosen)
    for name, measure in measures(chosen, run.keep_size).items():
        run.part(name, measure)
    if chosen.quick:
        print(f"\n{page.measured(results.rounded(run.found))}\n\n{run.path}: not on the page")
    else:
        rebuild([])


def rebuild(arguments: list[str]) -> None:
    """Write page and figure from the last results; ``--quick`` takes those of a quick run."""
    path = results.QUICK if "--quick" in arguments else results.LATEST
    found = results.read(path)
    if not found:
        raise SystemExit(f"no results in {path}; run: python -m benchmarks targets")
    page.write(found)
    figure.write(found)
    print(f"{page.PAGE}\n{figure.FIGURE}")
