"""The pages about speed and quality: facts from the results, put into the places of a template.

``benchmarks/performance.md`` and ``quality.md`` hold the sentences, with ``{places}``; what they
make stands between the markers of the pages in ``docs/explanation``. Nothing is timed or fitted
here: the same results give the same pages. A fact "" keeps its line, None leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from studies.pages import between, count, digits, fill, grid, say, signed, time_word

from benchmarks import figures, quality, targets
from benchmarks import methods as m
from benchmarks.machine import HERE, ROOT, Record, is_busy, median, quartiles, ratio
from benchmarks.methods import NOTHING, OURS, REFERENCE, full_title, timed_title
from benchmarks.quality import GROUPS, Mean, View, counted
from benchmarks.speed import (
    APPLY_ROWS,
    LONGER,
    TARGETS,
    bound,
    kind,
    shape,
    size_words,
    whole_study,
)

DOCS = ROOT / "docs" / "explanation"
BANDS = {
    "all": (2, 10**6),
    "2 to 5": (2, 5),
    "6 to 10": (6, 10),
    "more than 10": (11, 10**6),
}
MANY = ((2, 15), (16, 50), (51, 100))
PARTS = ("two", "many", "large")
"""Parts of which the page shows all methods; rare classes are in the table of absent ones."""

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
    figures.save(figures.draw_quality(view.main), figures.FOLDER / "quality.svg")


# speed


def speed_facts(results: Record) -> Facts:
    here, given, exact = results["machine"], results.get, results.get("exact", {})
    begun = [run["load_at_begin"] for run in results["runs"].values()]
    busy = any(is_busy(loads, here["cores"]) for loads in begun)
    versions, drawn, limits = (
        here["versions"],
        figures.has_sweeps(results),
        given("limits"),
    )
    study, study_times = given("study"), []
    for n, took in study["cells"].items() if study else ():
        row = {name: median(seconds) for name, seconds in took.items()}
        study_times.append({"n": n, "ratio": row["bfgs"] / row["mcllo"], **row})
    return {
        "quick": "" if results["quick"] else None,
        "busy": "" if busy else None,
        **{
            key: here[key]
            for key in ("cpu", "cores", "system", "blas", "blas_threads", "kernel")
        },
        "vectors": here["vector unit"],
        "memory": digits(here["memory_gb"]) if here["memory_gb"] else "unknown",
        "versions": ", ".join(
            f"{name} {number}" for name, number in versions.items() if number
        ),
        "absent": ", ".join(name for name, number in versions.items() if not number)
        or None,
        "runs": _runs(results["runs"]),
        "least_ns": targets.NS_PER_ROW,
        "pass_bound": targets.NS_PER_ROW if given("passes") else None,
        **targets.speed_outcomes(results),
        "limit": results["limit"],
        "limit_large": LONGER * results["limit"],
        "draws": m.DRAWS if exact else None,
        **_fit_facts(given("fits", {})),
        "figure": "" if drawn else None,
        "no_figure": None if drawn else "",
        "passes": _passes(given("passes", {})),
        "exact": _by_size(exact, exact),
        **_apply(given("apply")),
        **_forms(given("forms")),
        "study": study and study | whole_study(study),
        "study_times": study_times or None,
        "shell": _shell(given("shell", {})),
        "files": _files(given("parquet", {})),
        "limits": limits and {"here": "", "bound": bound(limits), **limits},
    }


def cell(record: Record | None) -> str:
    """Return a record as it stands in the table of times: median and quartiles, or why not.

    >>> [cell({"status": "ok", "seconds": took}) for took in ([0.004, 0.005, 0.006], [12.3], [])]
    ['5.0 ms [4.5, 5.5]', '12 s (once)', '']
    >>> cell({"status": "missing"}), cell(None)
    ('not installed', '')
    """
    words = {
        "ok": "",
        "over": "over {limit:~2} s",
        "skipped": "not run (about {expected:~2} s)",
    }
    words |= {"missing": "not installed", "failed": "failed"}
    if not record or record["status"] != "ok" or not record["seconds"]:
        return say(words[record["status"]], record) if record else ""
    seconds, middle = record["seconds"], median(record["seconds"])
    low, high = (
        digits(end * (1e3 if middle < 1.0 else 1.0)) for end in quartiles(seconds)
    )
    return time_word(middle) + (f" [{low}, {high}]" if len(seconds) > 1 else " (once)")


def _ratio(records: Record, ours: str, name: str) -> str:
    found, least = ratio(records, ours, name)
    return "" if found is None else f"{'> ' if least else ''}{digits(found)}"


def _runs(runs: Record) -> list[Facts]:
    """Return when and under what load each start of the benchmark measured which parts or sizes."""
    found = []
    for begun in sorted({run["begun"] for run in runs.values()}):
        others = {
            name.partition(" ")[0]
            for name, run in runs.items()
            if run["begun"] != begun
        }
        own = [(name, run) for name, run in runs.items() if run["begun"] == begun]
        parts = ((name.partition(" ")[0], name) for name, _ in own)
        what = dict.fromkeys(name if part in others else part for part, name in parts)
        last = max((run for _, run in own), key=lambda run: run["date_end"])
        before, after = last["load_at_begin"], last["load_end"]
        row = {"what": ", ".join(what), "begun": begun, "ended": last["date_end"]}
        found.append(
            row | {"before": before and before[0], "after": after and after[0]}
        )
    return found


def in_order(sizes: Iterable[str]) -> list[str]:
    return sorted(sizes, key=lambda size: (*shape(size)[::-1], kind(size)))


def _beside(records: Record, name: str) -> str:
    return _ratio(records, "mcllo-1", name) if name != "mcllo-1" else ""


def _by_size(
    part: Record, sizes: Iterable[str], said: Callable[[Record, str], str] | None = None
) -> str | None:
    """Return a column for each size and a row for each method: times, or what else is said."""
    order, rows = in_order(sizes), []
    for name in (
        name for name in [*m.FITS, *m.EXACT] if any(name in part[s] for s in order)
    ):
        found = (
            (s, said(part[s], name) if said else cell(part[s].get(name))) for s in order
        )
        cells = {size_words(size): words for size, words in found}
        rows += [{"": timed_title(name)} | cells] if any(cells.values()) else []
    return grid(rows) if rows else None


def _fit_facts(fits: Record) -> Facts:
    """Return times, ratios, and how far programs of the same model end from the best likelihood."""
    wanted, gaps = [size for size in fits if size in TARGETS], [(0.0, "", "")]
    drawn = wanted if len(wanted) > 2 else [size for size in fits if not kind(size)]
    real = [size for size in fits if kind(size)]
    for size, records in fits.items():
        values = {name: r["nll"] for name, r in records.items() if "nll" in r}
        gaps += [
            (value - min(values.values()), name, size) for name, value in values.items()
        ]
    gap, name, size = max(gaps)
    return {
        "times": _by_size(fits, drawn),
        "ratios": _by_size(fits, drawn, _beside),
        "real_times": _by_size(fits, real),
        "real_ratios": _by_size(fits, real, _beside),
        "gap": gap,
        "gap_at": f"{timed_title(name)}, {size_words(size)}" if name else None,
        "beside_sms": _beside_sms(fits),
    }


def _beside_sms(fits: Record) -> list[Facts] | None:
    """Return our calibrators against SMS, and gates against the fits without them, by size."""
    asked = {"auto": (REFERENCE, "auto"), "matrix": (REFERENCE, "matrix")}
    asked |= {
        "auto_gate": ("auto", "auto-gate"),
        "mcllo_gate": ("mcllo-1", "mcllo-gate"),
    }
    rows = []
    for size in in_order(fits):
        row = {name: _ratio(fits[size], *pair) for name, pair in asked.items()}
        took = {name: cell(fits[size].get(name)) for name in ("auto", "matrix", "sms")}
        rows += (
            [{"size": size_words(size), "took": took, **row}]
            if any(row.values())
            else []
        )
    return rows or None


def _passes(part: Record) -> list[Facts] | None:
    """Return nanoseconds a row of one pass by both kernels, and the first in units of the bound."""
    rows = []
    for size in in_order(part):
        (n, c), found = shape(size), dict.fromkeys(("pass", "pass-numpy"))
        for name, record in part[size].items():
            found[name] = (
                1e9 * median(record["seconds"]) / n if record["seconds"] else None
            )
        own, numpy = found.values()
        times = own / targets.NS_PER_ROW if own and c == 10 else None
        rows.append(
            {"size": size_words(size), "own": own, "numpy": numpy, "times": times}
        )
    return rows or None


def _shell(part: Record) -> list[Facts] | None:
    """Return the commands with their times in both kernels."""
    lines = {"version": "mcllo --version", "assess": "mcllo assess holdout.csv"}
    lines["report"] = "mcllo assess holdout.csv --html report.html"
    rows = [
        {
            "line": line,
            "time": cell(found.get(name)),
            "numpy": cell(found.get(f"{name}-numpy")),
        }
        for found in part.values()
        for name, line in lines.items()
    ]
    return rows or None


def _files(part: Record) -> list[Facts] | None:
    rows = []
    for size in in_order(part):
        said = {name: cell(record) for name, record in part[size].items()}
        fit = {"peak_mb": None} | part[size]["fit"]
        numbers = {name: fit[name] for name in ("peak_mb", "file_mb", "steps")}
        rows.append(
            {
                "size": size_words(size),
                "numpy": said.get("fit-numpy"),
                **said,
                **numbers,
            }
        )
    return rows or None


def _apply(part: Record | None) -> Facts:
    if not part:
        return dict.fromkeys(("apply_times", "apply_scaled"))
    ((size, records),) = part.items()
    scale, rows = APPLY_ROWS / shape(size)[0], []
    for name, record in records.items():
        times = record | {"seconds": [scale * seconds for seconds in record["seconds"]]}
        beside = _ratio(records, "apply-mcllo", name)
        rows.append({"title": timed_title(name), "time": cell(times), "ratio": beside})
    said = "" if scale == 1.0 else f" (measured on {size_words(size)} and scaled)"
    return {"apply_times": rows, "apply_scaled": said}


def _forms(part: Record | None) -> Facts:
    if not part:
        return dict.fromkeys(("form_times", "form_size"))
    ((size, records),) = part.items()
    rows = [
        {
            "title": timed_title(name),
            "time": cell(record),
            "ratio": _ratio(records, "form-here", name),
        }
        for name, record in records.items()
    ]
    return {"form_times": rows, "form_size": size_words(size)}


# quality


def quality_facts(whole: View) -> Facts:
    """Return the facts of the page; sets of a part are in tables of their own alone."""
    view, facts = whole.main, whole.facts
    sets = [found for found in facts["sets"].values() if not quality.part_of(found)]
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
        "few": m.few_words(whole.methods),
        "absent": "\n".join(absent) or None,
        **targets.LIMITS,
        **targets.quality_outcomes(view),
        "beside": _auto_beside_sms(view),
        "by_size": "\n\n".join(_size_section(view, n) for n in view.sizes),
        "fit_times": _time_table(view),
        "by_classes": _beside_by_classes(view),
        "shifted": _shifted_table(view.facts.get("shifted", [])),
        "absent_classes": _absent_table(facts.get("absent", [])),
        **{name: _part_table(whole, name) for name in PARTS},
        **{f"{name}_sets": _part_sets(whole, name) for name in PARTS},
        "copies": _copies_table(facts.get("copies", [])),
        "again": max((row["cases"] for row in view.of(OURS)), default=0),
        "harmless": _harmless_table(view.facts.get("harmless", [])),
        "failures": _failure_table(whole),
        "every_set": _set_table(whole),
    }


def interval(mean: Mean | None) -> str:
    if mean is None or mean.low is None:
        return signed(mean.value) if mean else ""
    return say("{value:±} [{low:±}, {high:±}]", mean._asdict())


def _auto_beside_sms(view: View) -> list[Facts]:
    """Return auto against SMS at each size, in each group."""
    rows = []
    for group, title in GROUPS.items():
        part = view.group(group)
        for n in part.sizes:
            mean = part.mean(OURS, n, "d_sms")
            row = {
                "on": title,
                "n": n,
                "sets": mean.sets if mean else 0,
                "less": interval(mean),
            }
            row |= {name: part.worse(name, n) for name in (REFERENCE, OURS, m.GATED)}
            rows.append(row | {"wins": part.wins(OURS, n)})
    return rows


def _beside_by_classes(view: View) -> list[Facts]:
    """Return auto against SMS by number of classes and size."""
    rows = []
    for low, high in MANY:
        part = view.where(lambda facts, low=low, high=high: low <= facts["c"] <= high)
        for n in view.sizes:
            if (mean := part.mean(OURS, n, "d_sms")) is not None:
                row = {"classes": f"{low} to {high}", "n": n, "sets": mean.sets}
                row |= {"less": interval(mean), "wins": part.wins(OURS, n)}
                row |= {name: part.worse(name, n) for name in (REFERENCE, OURS)}
                rows.append(row | {"time": part.median(OURS, n, "ratio")})
    return rows


def _shifted_table(found: list[Record]) -> str:
    """Return methods on rows of other class frequencies than those learned from, best first."""
    rows = [
        {
            "": full_title(row["method"]),
            "log loss less that of doing nothing": signed(row["d_ll"]),
            "worse than doing nothing": say("{worse:%}", row),
            "at worst": signed(row["worst"]),
            "cases": count(row["cases"]),
        }
        for row in sorted(found, key=lambda row: row["d_ll"])
        if row["method"] != NOTHING
    ]
    return grid(rows) if rows else "Not run yet."


def _part(view: View, name: str) -> View:
    """Return the rows of a part; among two classes are the sets of two that all tables have."""
    found = view.where(lambda facts: quality.part_of(facts) == name)
    if name == "two" and found.rows:
        return view.where(
            lambda facts: facts["c"] == 2 and quality.part_of(facts) in ("", name)
        )
    return found


def _part_sets(view: View, name: str) -> str | None:
    """Return how many sets there are results of, from how many data sets."""
    found = {row["set"] for row in _part(view, name).rows}
    return counted(view.facts["sets"][key] for key in found) if found else None


def _part_table(whole: View, name: str) -> str | None:
    """Return the methods of a part at each size, best first, with auto's difference to each."""
    view, rows = _part(whole, name), []
    names = [method for method in quality.PARTS[name][2] if method != NOTHING]
    for n in view.sizes:
        found = [(view.mean(method, n, "d_ll"), method) for method in names]
        for mean, method in sorted(
            (mean.value, method) for mean, method in found if mean
        ):
            own = {
                "worse": view.worse(method, n),
                "wall": view.median(method, n, "wall"),
            }
            rows.append({
                "rows": count(n),
                "": full_title(method),
                "sets": len(view.of(method, n, "d_ll")),
                "cases": view.count(method, "cases", n),
                "log loss less nothing": signed(mean),
                "share removed": _share(view.removed(method, n)),
                "auto less it": interval(view.apart(OURS, method, n)) if method != OURS else "",
                "worse than nothing": say("{worse:%}", own),
                "fit time": say("{wall:t}", own),
            })  # fmt: skip
    return grid(rows) if rows else None


def _share(value: float | None) -> str:
    return "" if value is None else f"{100.0 * value:.1f} %"


def _absent_table(found: list[Record]) -> str | None:
    rows = [
        {
            "rows": count(row["n"]),
            "auto beside": full_title(row["method"]) or "nothing done",
            "sets": row["sets"],
            "cases": count(row["cases"]),
            "classes lacking": digits(row["lacking"]),
            "log loss of auto": digits(row["ours"], 3),
            "of the other": digits(row["other"], 3),
            "auto less it": interval(
                Mean(row["apart"], row["low"], row["high"], row["sets"])
            ),
            "at worst": signed(row["worst"]),
            "behind in cases": say("{behind:%}", row),
        }
        for row in found
    ]
    return grid(rows) if rows else None


def _copies_table(found: list[Record]) -> str | None:
    """Return each method that learned from copies beside the same from the rows themselves."""
    by_name, rows = {row["method"]: row for row in found}, []
    for name in (
        name for name in m.COPIES if name + m.COPIED in by_name and name in by_name
    ):
        row: Facts = {"": full_title(name), "cases": count(by_name[name]["cases"])}
        for end, how in (("", "200 rows"), (m.COPIED, "800 copies")):
            one = by_name[name + end]
            row |= {f"less nothing, {how}": signed(one["d_ll"])}
            row |= {f"worse than nothing, {how}": say("{worse:%}", one)}
            row |= {f"at worst, {how}": signed(one["worst"])}
        rows.append(row)
    return grid(rows) if rows else None


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
            "removed": _share(view.removed(name, n)),
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
            part = view.where(
                lambda facts, low=low, high=high: low <= facts["c"] <= high
            )
            found = {
                "median": part.median(OURS, n, "ratio"),
                "all": part.total_ratio(OURS, n),
            }
            said = (
                "" if found["median"] is None else say("{median:~2} ({all:~2})", found)
            )
            row[f"classes: {band}"] = said
        rows.append(row)
    return grid(rows)


def _harmless_table(found: list[Record]) -> str:
    """Return the do-no-harm simulation: share changed, mean cost and largest cost."""
    names = [name for name in m.HARMLESS if any(row["method"] == name for row in found)]
    order, rows = list(quality.HARMLESS_SETS), []
    by_set = sorted({(order.index(row["set"]), row["n"]) for row in found})
    for key, n in ((order[k], n) for k, n in by_set):
        parts = {
            row["method"]: row for row in found if (row["set"], row["n"]) == (key, n)
        }
        times = max(part["repetitions"] for part in parts.values())
        row = {
            "": f"{key}: {quality.HARMLESS_SETS[key]}",
            "rows": count(n),
            "data sets": times,
        }
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
            why = " ".join(
                (worst["reason"] or "").replace("`", "'").replace("|", "/").split()
            )
            row = {
                "": full_title(name),
                "failed": f"{failed:,} of {view.count(name, 'cases'):,}",
            }
            row |= {"most often because": f"`{why}`" if failed else ""}
            rows.append(row | {"cases with probability 0 for the truth": f"{zeros:,}"})
    return grid(rows) if rows else "None."


def _set_table(view: View) -> str:
    """Return the sets with log loss as predicted, and auto's difference to SMS at each size."""
    rows = []
    for name, facts in view.facts["sets"].items():
        apart, base = (
            {
                row["n"]: row[column]
                for row in view.of(method, column=column)
                if row["set"] == name
            }
            for method, column in ((OURS, "d_sms"), (NOTHING, "ll"))
        )
        if base:
            row = {"set": name, "from": facts["origin"], "predicted by": facts["model"]}
            row |= {"rows x classes": f"{facts['n']:,} x {facts['c']}"}
            row |= {
                "": "used" if facts["used"] else "new",
                "log loss": digits(base[min(base)]),
            }
            rows.append(row | {count(n): signed(apart[n]) if n in apart else ""
                               for n in view.sizes})  # fmt: skip
    return grid(rows) if rows else "None."
