"""The pages about speed and quality: facts from the results, put into the places of a template.

``benchmarks/performance.md`` and ``quality.md`` hold the sentences, with ``{places}``; what they
make stands between the markers of the pages in ``docs/explanation``. Nothing is timed or fitted
here: the same results give the same pages. A fact "" keeps its line, None leaves it out.
"""

from __future__ import annotations

from math import inf

from studies.pages import between, count, digits, fill, grid, say, signed, time_word

from benchmarks import figures, quality, targets
from benchmarks import methods as m
from benchmarks.machine import HERE, ROOT, Record, median, quartiles, ratio
from benchmarks.methods import NOTHING, OURS, REFERENCE, full_title, timed_title
from benchmarks.quality import GROUPS, Mean, View, counted
from benchmarks.speed import APPLY_ROWS, TARGETS, bound, shape, whole_study

DOCS = ROOT / "docs" / "explanation"
BANDS = {"all": (2, 10**6), "2 to 5": (2, 5), "6 to 10": (6, 10), "more than 10": (11, 10**6)}

Facts = dict[str, object]


def measured(name: str, facts: Facts) -> str:
    """Return what a template says with these facts."""
    return fill((HERE / f"{name}.md").read_text(), facts, gaps=True, none="")


def rebuilt(name: str, facts: Facts) -> str:
    return between((DOCS / f"{name}.md").read_text(), measured(name, facts))


def write_speed(results: Record) -> None:
    (DOCS / "performance.md").write_text(rebuilt("performance", speed_facts(results)))
    figures.write_speed(results)


def write_quality() -> None:
    view = quality.latest()
    (DOCS / "quality.md").write_text(rebuilt("quality", quality_facts(view)))
    figures.save(figures.draw_quality(view), figures.FOLDER / "quality.svg")


# speed


def speed_facts(results: Record) -> Facts:
    here, given = results["machine"], results.get
    runs = sorted(results["runs"].values(), key=lambda r: r["date_end"])
    begun, ended = [run["load_at_begin"] for run in runs], runs[-1]["load_end"]
    busy = any(load and load[0] > 0.25 * here["cores"] for load in begun)
    versions, drawn, limits = here["versions"], figures.has_sweeps(results), given("limits")
    study, study_times = given("study"), []
    for n, took in study["cells"].items() if study else ():
        row = {name: median(seconds) for name, seconds in took.items()}
        study_times.append({"n": n, "ratio": row["bfgs"] / row["mcllo"], **row})
    return {
        "quick": "" if results["quick"] else None,
        "busy": "" if busy else None,
        **{key: here[key] for key in ("cpu", "cores", "system", "blas", "blas_threads")},
        "vectors": here["vector unit"],
        "memory": digits(here["memory_gb"]) if here["memory_gb"] else "unknown",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items() if number),
        "absent": ", ".join(name for name, number in versions.items() if not number) or None,
        "began": min(run["date"] for run in runs),
        "ended": runs[-1]["date_end"],
        "load_before": f"{begun[0][0]:.2f}" if begun[0] else "unknown",
        "load_after": f"{ended[0]:.2f}" if ended else "unknown",
        "least_ns": targets.NS_PER_ROW,
        **targets.speed_outcomes(results),
        "limit": results["limit"],
        **_fit_facts(results["fits"]),
        "figure": "" if drawn else None,
        "no_figure": None if drawn else "",
        "real": _real_table(given("real", {})),
        **_apply(given("apply")),
        "study": study and study | whole_study(study),
        "study_times": study_times or None,
        **_parquet(given("parquet")),
        "limits": limits and {"here": "", "bound": bound(limits), **limits},
    }


def cell(record: Record | None) -> str:
    """Return a record as it stands in the table of times: median and quartiles, or why not.

    >>> [cell({"status": "ok", "seconds": took}) for took in ([0.004, 0.005, 0.006], [12.3], [])]
    ['5.0 ms [4.5, 5.5]', '12 s (once)', '']
    >>> cell({"status": "missing"}), cell(None)
    ('not installed', '')
    """
    words = {"ok": "", "over": "over {limit:~2} s", "skipped": "not run (about {expected:~2} s)"}
    words |= {"missing": "not installed", "failed": "failed"}
    if not record or record["status"] != "ok" or not record["seconds"]:
        return say(words[record["status"]], record) if record else ""
    seconds, middle = record["seconds"], median(record["seconds"])
    low, high = (digits(end * (1e3 if middle < 1.0 else 1.0)) for end in quartiles(seconds))
    return time_word(middle) + (f" [{low}, {high}]" if len(seconds) > 1 else " (once)")


def size_words(size: str) -> str:
    """Return a size as people write it: 100k x 10 for 100000x10."""
    n, c = shape(size)
    return f"{count(n)} x {c}"


def _ratio(records: Record, ours: str, name: str) -> str:
    found, least = ratio(records, ours, name)
    return "" if found is None else f"{'> ' if least else ''}{digits(found)}"


def _fit_facts(fits: Record) -> Facts:
    """Return times, ratios, and how far programs of the same model end from the best likelihood."""
    found = sorted(fits, key=lambda size: shape(size)[::-1])
    wanted = [size for size in found if size in TARGETS]
    sizes = wanted if len(wanted) > 2 else found
    times, ratios, gaps = [], [], [(0.0, "", "")]
    for name in (name for name in m.FITS if any(name in fits[size] for size in sizes)):
        row = {"": timed_title(name)}
        times.append(row | {size_words(s): cell(fits[s].get(name)) for s in sizes})
        ratios.append(row | {size_words(s): _ratio(fits[s], "mcllo-1", name) for s in sizes})
    for size, records in fits.items():
        values = {name: r["nll"] for name, r in records.items() if "nll" in r}
        gaps += [(value - min(values.values()), name, size) for name, value in values.items()]
    gap, name, size = max(gaps)
    return {
        "times": grid(times) if times else None,
        "ratios": grid(ratios[1:]) if ratios[1:] else None,
        "gap": gap,
        "gap_at": f"{timed_title(name)}, {size_words(size)}" if name else None,
    }


def _real_table(real: Record) -> str | None:
    rows = []
    for name in m.REAL if real else ():
        row = {"": timed_title(name)}
        for key, part in real.items():
            record = part["methods"][name]
            said = cell(record) if record["status"] != "ok" else ""
            if "log_loss" in record:
                error = f" ± {record['se']:.4f}" if record["se"] else ""
                taken = f"; {time_word(median(record['seconds']))}" if name != NOTHING else ""
                said = f"{record['log_loss']:.4f}{error}{taken}"
            row[f"{key} ({part['learn']}, c = {part['classes']})"] = said
        rows.append(row)
    return grid(rows) if rows else None


def _apply(part: Record | None) -> Facts:
    if not part:
        return dict.fromkeys(("apply_times", "apply_scaled"))
    scale, rows = APPLY_ROWS / part["rows"], []
    for name, record in part["records"].items():
        times = record | {"seconds": [scale * seconds for seconds in record["seconds"]]}
        beside = _ratio(part["records"], "apply-mcllo", name)
        rows.append({"title": timed_title(name), "time": cell(times), "ratio": beside})
    said = "" if scale == 1.0 else say(" (measured on {rows:k} rows and scaled)", part)
    return {"apply_times": rows, "apply_scaled": said}


def _parquet(part: Record | None) -> Facts:
    if not part:
        return dict.fromkeys(("parquet", "file_failed", "file"))
    said = {name: cell(part[name]) for name in ("fit", "pass")}
    ok = part["fit"]["status"] == part["pass"]["status"] == "ok"
    return {
        "parquet": say("{rows:k} x {classes}", part),
        "file_failed": None if ok else say("{fit}; one pass by hand: {pass}", said),
        "file": part | said | {"peak": part["fit"]["peak_mb"]} if ok else None,
    }


# quality


def quality_facts(view: View) -> Facts:
    facts, sets = view.facts, list(view.facts["sets"].values())
    seeds = max((row["cases"] for row in view.of(NOTHING)), default=0)
    here = facts["machine"]
    absent = [f"- Not there: {what} ({why})." for what, why in facts["missing"].items()]
    return {
        "few_seeds": f"{seeds} of {quality.SEEDS}" if seeds < quality.SEEDS else None,
        "sets": counted(sets),
        "new_sets": counted(s for s in sets if not s["used"]),
        "used_sets": counted(s for s in sets if s["used"]),
        "cases": view.count(NOTHING, "cases"),
        "seeds": seeds,
        **{key: here[key] for key in ("cpu", "cores")},
        **{key: facts[key] for key in ("workers", "date")},
        "versions": ", ".join(f"{k} {v}" for k, v in here["versions"].items() if v),
        "few": m.few_words(view.methods),
        "absent": "\n".join(absent) or None,
        **targets.LIMITS,
        **targets.quality_outcomes(view),
        "beside": _beside(view),
        "by_size": "\n\n".join(_size_section(view, n) for n in view.sizes),
        "fit_times": _time_table(view),
        "harmless": _harmless_table(view.facts.get("harmless", [])),
        "failures": _failure_table(view),
        "every_set": _set_table(view),
    }


def interval(mean: Mean | None) -> str:
    if mean is None or mean.low is None:
        return signed(mean.value) if mean else ""
    return say("{value:±} [{low:±}, {high:±}]", mean._asdict())


def _beside(view: View) -> list[Facts]:
    """Return auto against SMS at each size, in each group."""
    rows = []
    for group, title in GROUPS.items():
        part = view.group(group)
        for n in part.sizes:
            mean = part.mean(OURS, n, "d_sms")
            row = {"on": title, "n": n, "sets": mean.sets if mean else 0, "less": interval(mean)}
            row |= {name: part.worse(name, n) for name in (REFERENCE, OURS, m.GATED)}
            rows.append(row | {"wins": part.wins(OURS, n)})
    return rows


def _size_section(view: View, n: int) -> str:
    """Return all methods at one size, best first; what is not less SMS is less doing nothing."""
    rows = []
    for name in (name for name in view.methods if name != NOTHING):
        columns = ("d_ll", "d_brier", "d_ece", "d_cw")
        means = {column: view.mean(name, n, column) for column in columns}
        peer = name != REFERENCE
        rows.append({
            "order": means["d_ll"],
            "title": full_title(name) + ("*" if m.METHODS[name].seeds < inf else ""),
            **{column: mean and mean.value for column, mean in means.items()},
            "d_sms": interval(view.mean(name, n, "d_sms")) if peer else None,
            "wins": view.wins(name, n) if peer else None,
            "worse": view.worse(name, n),
            "wall": view.median(name, n, "wall"),
            "cases": view.count(name, "cases", n),
            "failed": view.count(name, "failed", n) or None,
        })  # fmt: skip
    rows = sorted((row for row in rows if row["order"]), key=lambda row: row["order"])
    return measured("size", {"n": n, "methods": rows})


def _time_table(view: View) -> str:
    rows = []
    for n in view.sizes:
        row = {"rows": count(n)}
        for band, (low, high) in BANDS.items():
            part = view.where(lambda facts, low=low, high=high: low <= facts["c"] <= high)
            found = {"median": part.median(OURS, n, "ratio"), "all": part.total_ratio(OURS, n)}
            said = "" if found["median"] is None else say("{median:~2} ({all:~2})", found)
            row[f"classes: {band}"] = said
        rows.append(row)
    return grid(rows)


def _harmless_table(found: list[Record]) -> str:
    """Return the do-no-harm simulation: share changed, mean cost and largest cost."""
    names = [name for name in m.HARMLESS if any(row["method"] == name for row in found)]
    order, rows = list(quality.HARMLESS_SETS), []
    by_set = sorted({(order.index(row["set"]), row["n"]) for row in found})
    for key, n in ((order[k], n) for k, n in by_set):
        parts = {row["method"]: row for row in found if (row["set"], row["n"]) == (key, n)}
        times = max(part["repetitions"] for part in parts.values())
        row = {"": f"{key}: {quality.HARMLESS_SETS[key]}", "rows": count(n), "data sets": times}
        for name in names:
            part = parts.get(name, {"repetitions": 0})
            done = part["repetitions"]
            share = {"share": part["changed"] / done, **part} if done else {}
            said = say("{share:%}; {kl:.1g} ({kl_max:.1g})", share) if done else ""
            row[full_title(name)] = said
        rows.append(row)
    return grid(rows) if rows else "Not run yet."


def _failure_table(view: View) -> str:
    rows = []
    for name in view.methods:
        failed, zeros = view.count(name, "failed"), view.count(name, "zeros")
        if failed or zeros:
            worst = max(view.of(name), key=lambda row: row["failed"])
            why = " ".join((worst["reason"] or "").replace("`", "'").replace("|", "/").split())
            row = {"": full_title(name), "failed": f"{failed:,} of {view.count(name, 'cases'):,}"}
            row |= {"most often because": f"`{why}`" if failed else ""}
            rows.append(row | {"cases with probability 0 for the truth": f"{zeros:,}"})
    return grid(rows) if rows else "None."


def _set_table(view: View) -> str:
    """Return the sets with log loss as predicted, and auto's difference to SMS at each size."""
    rows = []
    for name, facts in view.facts["sets"].items():
        apart, base = (
            {row["n"]: row[column] for row in view.of(method, column=column) if row["set"] == name}
            for method, column in ((OURS, "d_sms"), (NOTHING, "ll"))
        )
        if base:
            row = {"set": name, "from": facts["origin"], "predicted by": facts["model"]}
            row |= {"rows x classes": f"{facts['n']:,} x {facts['c']}"}
            row |= {"": "used" if facts["used"] else "new", "log loss": digits(base[min(base)])}
            rows.append(row | {count(n): signed(apart[n]) if n in apart else ""
                               for n in view.sizes})  # fmt: skip
    return grid(rows) if rows else "None."
