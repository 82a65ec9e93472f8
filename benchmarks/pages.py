"""The pages about speed and quality: facts from the results, put into the places of a template.

``benchmarks/performance.md`` and ``quality.md`` hold the sentences, with ``{places}``; what they
make stands between the markers of the pages in ``docs/explanation``. Nothing is timed or fitted
here: the same results give the same pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace as Some

from benchmarks import figures, harmless, quality, targets
from benchmarks.machine import ROOT, Record, median, ratio
from benchmarks.methods import (
    FITS,
    GATED,
    HARMLESS,
    METHODS,
    NOTHING,
    OURS,
    REAL,
    REFERENCE,
    few_words,
    full_title,
    timed_title,
)
from benchmarks.quality import GROUPS, Mean, View, counted
from benchmarks.speed import APPLY_ROWS, TARGETS, bound, shape, whole_study
from benchmarks.words import cell, digits, percent, rows_words, signed, size_words, time

DOCS = ROOT / "docs" / "explanation"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
PLACE = re.compile(r"\{([a-z]\w*)(?:\.(\w+))?\}")

ORDER = list(harmless.SETS)

Facts = dict[str, object]


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table; the first row names the columns.

    >>> print(table([{"a": "1", "b": "2"}]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def names(text: str) -> set[str]:
    """Return the facts that a text has places for."""
    return {found[1] for found in PLACE.finditer(text)}


def _check(template: str, facts: Mapping[str, object]) -> None:
    apart = names(template) ^ set(facts)
    if apart:
        raise KeyError(f"facts and places must be the same; only in one: {sorted(apart)}")


def fill(template: str, facts: Mapping[str, object]) -> str:
    """Return the text with facts in their places; every fact must have one, and every place a fact.

    >>> fill("{count} of {whole.real}", {"count": 1, "whole": 2})
    '1 of 2'
    >>> fill("{count}", {"count": 1, "other": 2})
    Traceback (most recent call last):
    KeyError: "facts and places must be the same; only in one: ['other']"
    """
    _check(template, facts)

    def fact(found: re.Match[str]) -> str:
        value = facts[found[1]]
        return str(getattr(value, found[2]) if found[2] else value)

    return PLACE.sub(fact, template)


def without_gaps(template: str, facts: Mapping[str, object]) -> str:
    r"""Return the filled text without what was not measured, where a fact is None.

    A line with such a fact is left out; where it is a heading or nothing else, so is its section.

    >>> text = "- {a}\n- No {b}.\n\n### Times\n\nAll:\n\n{times}\n"
    >>> without_gaps(text, {"a": 1, "b": None, "times": None})
    '- 1'
    """
    _check(template, facts)
    kept = []
    for part in re.split(r"(?m)^(?=### )", template):
        lines = part.splitlines()
        gaps = [line for line in lines if any(facts[name] is None for name in names(line))]
        gone = any(line.startswith("### ") or PLACE.fullmatch(line) for line in gaps)
        if not (gone and part.startswith("### ")):
            kept += [line for line in lines if line not in gaps]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return fill(text, {name: facts[name] for name in names(text)})


def between(page: str, text: str) -> str:
    r"""Return the page with `text` between its markers.

    >>> page = f"above {BEGIN} old {END} below"
    >>> between(page, "new") == f"above {BEGIN}\n\nnew\n\n{END} below"
    True
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page must hold {BEGIN} and {END}, in this order.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def measured(name: str, facts: Facts) -> str:
    """Return what a template says with these facts."""
    return without_gaps((ROOT / "benchmarks" / f"{name}.md").read_text(), facts)


def rebuilt(name: str, facts: Facts) -> str:
    """Return a page with the part between its markers made from facts."""
    return between((DOCS / f"{name}.md").read_text(), measured(name, facts))


def write_speed(results: Record) -> None:
    """Write page and figure of speed."""
    (DOCS / "performance.md").write_text(rebuilt("performance", speed_facts(results)))
    figures.write_speed(results)


def write_quality(from_cases: bool = True) -> None:
    """Write page and figure of quality; first the results, where there are single cases."""
    if from_cases and quality.CASES.exists():
        quality.collect(harmless.summary(quality.read_cases(harmless.CASES).values()))
    view = quality.latest()
    (DOCS / "quality.md").write_text(rebuilt("quality", quality_facts(view)))
    figures.write_quality(view)


# speed; a fact "" keeps its line, None leaves it out


def speed_facts(results: Record) -> Facts:
    """Return the facts of ``performance.md``."""
    here, runs = results["machine"], sorted(results["runs"].values(), key=lambda r: r["date_end"])
    begun, ended = [run["load_at_begin"] for run in runs], runs[-1]["load_end"]
    busy = any(load and load[0] > 0.25 * here["cores"] for load in begun)
    versions, drawn = here["versions"], figures.has_sweeps(results)
    limits = results.get("limits")
    limits = limits and limits | {"bound": bound(limits)}
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
        "least_ns": f"{targets.NS_PER_ROW:g}",
        **targets.speed_outcomes(results),
        "limit": digits(results["limit"]),
        **_fit_facts(results["fits"]),
        "figure": "" if drawn else None,
        "no_figure": None if drawn else "",
        "real": _real_table(results.get("real", {})),
        "apply": _apply(results.get("apply")),
        "study": _study(results.get("study")),
        **_parquet_facts(results.get("parquet")),
        "limits": limits and Some(here="", **{k: digits(v) for k, v in limits.items()}),
    }


def _fit_facts(fits: Record) -> Facts:
    """Return times, ratios, and how far programs of the same model end from the best likelihood."""
    found = sorted(fits, key=lambda size: shape(size)[::-1])
    wanted = [size for size in found if size in TARGETS]
    sizes = wanted if len(wanted) > 2 else found
    times, ratios, gaps = [], [], [(0.0, "", "")]
    for name in (name for name in FITS if any(name in fits[size] for size in sizes)):
        row = {"": timed_title(name)}
        times.append(row | {size_words(s): cell(fits[s].get(name)) for s in sizes})
        ratios.append(row | {size_words(s): _ratio(fits[s], "mcllo-1", name) for s in sizes})
    for size, records in fits.items():
        values = {name: r["nll"] for name, r in records.items() if "nll" in r}
        gaps += [(value - min(values.values()), name, size) for name, value in values.items()]
    gap, name, size = max(gaps)
    return {
        "times": table(times) if times else None,
        "ratios": table(ratios[1:]) if ratios[1:] else None,
        "gap": f"{gap:.2g}",
        "gap_at": f"{timed_title(name)}, {size_words(size)}" if name else None,
    }


def _ratio(records: Record, ours: str, name: str) -> str:
    found, least = ratio(records, ours, name)
    return "" if found is None else f"{'> ' if least else ''}{digits(found)}"


def _real_table(real: Record) -> str | None:
    """Return log loss beside fit times."""
    rows = []
    for name in REAL if real else ():
        row = {"": timed_title(name)}
        for key, part in real.items():
            record = part["methods"][name]
            said = cell(record) if record["status"] != "ok" else ""
            if "log_loss" in record:
                error = f" ± {record['se']:.4f}" if record["se"] else ""
                taken = f"; {time(median(record['seconds']))}" if name != NOTHING else ""
                said = f"{record['log_loss']:.4f}{error}{taken}"
            row[f"{key} ({part['learn']}, c = {part['classes']})"] = said
        rows.append(row)
    return table(rows) if rows else None


def _apply(part: Record | None) -> Some | None:
    """Return the times of applying a map."""
    if not part:
        return None
    scale, rows = APPLY_ROWS / part["rows"], []
    for name, record in part["records"].items():
        times = record | {"seconds": [scale * seconds for seconds in record["seconds"]]}
        row = {"": timed_title(name), "time": cell(times)}
        beside = _ratio(part["records"], "apply-mcllo", name)
        rows.append(row | {"times as long as MCLLO as it comes": beside})
    said = "" if scale == 1.0 else f" (measured on {rows_words(part['rows'])} rows and scaled)"
    return Some(times=table(rows), scaled=said)


def _study(part: Record | None) -> Some | None:
    """Return the times of the power study."""
    if not part:
        return None
    (ours, loop), gain, rows = whole_study(part), part["gain"], []
    for n, cells in part["cells"].items():
        one, other = (median(cells[name]) for name in ("mcllo", "bfgs"))
        row = {"n": n, "`mcllo.simulate.power`": time(one), "loop around scipy BFGS": time(other)}
        rows.append(row | {"ratio": digits(other / one)})
    some = Some(times=table(rows), one=time(ours), many=time(ours / gain), loop=time(loop))
    some.gain, some.processes = digits(gain), part["processes"]
    return some


def _parquet_facts(part: Record | None) -> Facts:
    """Return time and memory of the fit from a file."""
    if not part:
        return dict.fromkeys(("parquet", "file_failed", "file"))
    fit, one, file = part["fit"], part["pass"], None
    failed = f"{cell(fit)}; one pass by hand: {cell(one)}"
    if fit["status"] == one["status"] == "ok":
        file = Some(mb=digits(part["file_mb"]), fit=cell(fit), passes=part["passes"], one=cell(one))
        file.peak, failed = digits(fit["peak_mb"], 3), None
    size = f"{rows_words(part['rows'])} x {part['classes']}"
    return {"parquet": size, "file_failed": failed, "file": file}


# quality


def quality_facts(view: View) -> Facts:
    """Return the facts of ``quality.md``."""
    facts, sets, seeds = view.facts, list(view.sets.values()), view.seeds
    here = facts["machine"]
    absent = [f"- Not there: {what} ({why})." for what, why in facts["missing"].items()]
    return {
        "few_seeds": f"{seeds} of {quality.SEEDS}" if seeds < quality.SEEDS else None,
        "sets": counted(sets),
        "new_sets": counted(s for s in sets if not s["used"]),
        "used_sets": counted(s for s in sets if s["used"]),
        "cases": f"{view.count(NOTHING, 'cases'):,}",
        "seeds": seeds,
        "cpu": here["cpu"],
        "cores": here["cores"],
        "workers": facts["workers"],
        "date": facts["date"],
        "versions": ", ".join(f"{k} {v}" for k, v in here["versions"].items() if v),
        "few": few_words(view.methods),
        "absent": "\n".join(absent) or None,
        "win_rate": f"{100 * targets.WIN_RATE:g}",
        "most_harm": f"{100 * targets.WORSE:g}",
        "most_changed": f"{100 * targets.CHANGED:g}",
        "most_cost": f"{targets.NEGLIGIBLE:g}",
        **targets.quality_outcomes(view),
        "beside": _beside(view),
        "by_size": "\n\n".join(_size_section(view, n) for n in view.sizes),
        "fit_times": _time_table(view),
        "harmless": _harmless_table(view.facts.get("harmless", [])),
        "failures": _failure_table(view),
        "every_set": _set_table(view),
    }


def interval(mean: Mean | None) -> str:
    """Return a mean with its interval.

    >>> interval(Mean(-0.03, -0.04, -0.02, 5)), interval(Mean(0.5, None, None, 1)), interval(None)
    ('-0.0300 [-0.0400, -0.0200]', '+0.50', '')
    """
    if mean is None or mean.low is None:
        return signed(mean and mean.value)
    return f"{signed(mean.value)} [{signed(mean.low)}, {signed(mean.high)}]"


def _beside(view: View) -> str:
    """Return auto against SMS at each size, in each group."""
    rows = []
    for group, title in GROUPS.items():
        part = view.group(group)
        for n in part.sizes:
            mean = part.mean(OURS, n, "d_sms")
            row = {"on": title, "rows": rows_words(n), "sets": str(mean.sets if mean else 0)}
            row |= {"auto less SMS": interval(mean), "auto ahead": percent(part.wins(OURS, n))}
            harm = {"SMS worse than nothing": REFERENCE, "auto": OURS, "auto, gate 0.05": GATED}
            rows.append(row | {k: percent(part.worse(name, n)) for k, name in harm.items()})
    return table(rows)


def _size_section(view: View, n: int) -> str:
    """Return all methods at one size, best first; what is not less SMS is less doing nothing."""

    def less(name: str, column: str) -> str:
        mean = view.mean(name, n, column)
        return signed(mean and mean.value)

    names = [name for name in view.methods if name != NOTHING and view.mean(name, n, "d_ll")]
    rows = []
    for name in sorted(names, key=lambda name: view.mean(name, n, "d_ll")):
        peer, wall = name != REFERENCE, view.median(name, n, "wall")
        failed = view.count(name, "failed", n)
        rows.append({
            "": full_title(name) + ("*" if METHODS[name].seeds else ""),
            "log loss less nothing": less(name, "d_ll"),
            "less SMS": interval(view.mean(name, n, "d_sms")) if peer else "",
            "beats SMS": percent(view.wins(name, n)) if peer else "",
            "worse than nothing": percent(view.worse(name, n)),
            "Brier": less(name, "d_brier"),
            "ECE": less(name, "d_ece"),
            "classwise ECE": less(name, "d_cw"),
            "fit time": "" if wall is None else time(wall),
            "cases": f"{view.count(name, 'cases', n):,}",
            "failed": f"{failed:,}" if failed else "",
        })  # fmt: skip
    return f"### All methods, {rows_words(n)} rows to learn from\n\n{table(rows)}"


def _time_table(view: View) -> str:
    """Return the ratio of fit times by size and number of classes."""
    bands = {"all": (2, 10**6), "2 to 5": (2, 5), "6 to 10": (6, 10), "more than 10": (11, 10**6)}
    rows = []
    for n in view.sizes:
        row = {"rows": rows_words(n)}
        for band, (low, high) in bands.items():
            part = view.where(lambda facts, low=low, high=high: low <= facts["c"] <= high)
            ratio, total = part.median(OURS, n, "ratio"), part.total_ratio(OURS, n)
            said = "" if ratio is None else f"{digits(ratio)} ({digits(total or 0.0)})"
            row[f"classes: {band}"] = said
        rows.append(row)
    return table(rows)


def _harmless_table(found: list[Record]) -> str:
    """Return the do-no-harm simulation: share changed, mean cost and largest cost."""
    cells = {(row["set"], row["n"], row["method"]): row for row in found}
    present, rows = {row["method"] for row in found}, []
    for key, n in sorted({(k, n) for k, n, _ in cells}, key=lambda at: (ORDER.index(at[0]), at[1])):
        said, count = {}, 0
        for name in (name for name in HARMLESS if name in present):
            part, said[full_title(name)] = cells.get((key, n, name)), ""
            if part and (times := part["repetitions"]):
                cost = f"{part['kl']:.1g} ({part['kl_max']:.1g})"
                said[full_title(name)] = f"{percent(part['changed'] / times)}; {cost}"
                count = max(count, times)
        row = {"": f"{key}: {harmless.SETS[key]}", "rows": rows_words(n), "data sets": str(count)}
        rows.append(row | said)
    return table(rows) if rows else "Not run yet."


def _failure_table(view: View) -> str:
    """Return which methods failed, how often, and why most often."""
    rows = []
    for name in view.methods:
        failed, zeros = view.count(name, "failed"), view.count(name, "zeros")
        if failed or zeros:
            worst = max(view.of(name), key=lambda row: row["failed"])
            why = " ".join(worst["reason"].replace("`", "'").replace("|", "/").split())
            row = {"": full_title(name), "failed": f"{failed:,} of {view.count(name, 'cases'):,}"}
            row |= {"most often because": f"`{why}`" if failed else ""}
            rows.append(row | {"cases with probability 0 for the truth": f"{zeros:,}"})
    return table(rows) if rows else "None."


def _set_table(view: View) -> str:
    """Return the sets with log loss as predicted, and auto's difference to SMS at each size."""
    rows = []
    for name, facts in view.sets.items():
        apart = {row["n"]: row["d_sms"] for row in view.of(OURS) if row["set"] == name}
        base = {row["n"]: row["ll"] for row in view.of(NOTHING) if row["set"] == name}
        if base:
            row = {"set": name, "from": facts["origin"], "predicted by": facts["model"]}
            row |= {"rows x classes": f"{facts['n']:,} x {facts['c']}"}
            row |= {"": "used" if facts["used"] else "new", "log loss": digits(base[min(base)])}
            rows.append(row | {rows_words(n): signed(apart.get(n)) for n in view.sizes})
    return table(rows) if rows else "None."
