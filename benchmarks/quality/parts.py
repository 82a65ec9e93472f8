"""The tables of the page, each made of a `View`."""

from typing import Any

from benchmarks.quality.harmless import SETS as HARMLESS_SETS
from benchmarks.quality.methods import (
    GATED,
    HARMLESS,
    METHODS,
    NOTHING,
    OURS,
    REFERENCE,
    full_title,
)
from benchmarks.quality.view import GROUPS, View
from benchmarks.quality.words import interval, percent, signed
from benchmarks.words import digits, rows_words, table, time


def beside_reference(view: View) -> str:
    """Return auto against SMS at each size, in each group."""
    rows = []
    for group, title in GROUPS.items():
        part = view.group(group)
        for n in part.sizes:
            mean = part.mean(OURS, n, "d_sms")
            rows.append(
                [
                    title,
                    rows_words(n),
                    str(0 if mean is None else mean.sets),
                    interval(mean),
                    percent(part.wins(OURS, n)),
                    percent(part.worse(REFERENCE, n)),
                    percent(part.worse(OURS, n)),
                    percent(part.worse(GATED, n)),
                ]
            )
    head = ["on", "rows", "sets", "auto less SMS", "auto ahead"]
    harm = ["SMS worse than nothing", "auto", "auto, gate 0.05"]
    return table([*head, *harm], rows)


def size_section(view: View, n: int) -> list[str]:
    """Return the table of all methods at one size, best first."""
    names = [name for name in view.methods if name != NOTHING]
    order = {name: view.mean(name, n, "d_ll") for name in names}
    known = [name for name in names if order[name] is not None]
    known.sort(key=lambda name: order[name].value)  # type: ignore[union-attr]
    head = ["", "log loss less nothing", "less SMS", "beats SMS", "worse than nothing"]
    head += ["Brier", "ECE", "classwise ECE", "fit time", "cases", "failed"]
    rows = [method_row(view, name, n) for name in known]
    return [f"### All methods, {rows_words(n)} rows to learn from", table(head, rows)]


def method_row(view: View, name: str, n: int) -> list[str]:
    """Return one method's line; differences are to doing nothing unless they say SMS."""
    failed, cases = view.failures(name, n)
    loss, sms = view.mean(name, n, "d_ll"), view.mean(name, n, "d_sms")
    others = [view.mean(name, n, column) for column in ("d_brier", "d_ece", "d_cw")]
    wall = view.median(name, n, "wall")
    reference = name == REFERENCE
    return [
        full_title(name) + ("*" if METHODS[name].seeds else ""),
        signed(loss.value) if loss else "",
        "" if reference else interval(sms),
        "" if reference else percent(view.wins(name, n)),
        percent(view.worse(name, n)),
        *(signed(mean.value) if mean else "" for mean in others),
        "" if wall is None else time(wall),
        f"{cases:,}",
        f"{failed:,}" if failed else "",
    ]


def time_table(view: View) -> str:
    """Return the ratio of fit times by size and number of classes."""
    bands = {"all": (2, 10**6), "2 to 5": (2, 5), "6 to 10": (6, 10), "more than 10": (11, 10**6)}
    rows = []
    for n in view.sizes:
        line = [rows_words(n)]
        for low, high in bands.values():
            names = {key for key, s in view.sets.items() if low <= s["c"] <= high}
            part = View([row for row in view.rows if row["set"] in names], view.facts)
            ratio, total = part.median(OURS, n, "ratio"), part.total_ratio(OURS, n)
            line.append("" if ratio is None else f"{digits(ratio)} ({digits(total or 0.0)})")
        rows.append(line)
    return table(["rows", *(f"classes: {band}" for band in bands)], rows)


def harmless_table(view: View) -> str:
    """Return the do-no-harm simulation."""
    found: list[dict[str, Any]] = view.facts.get("harmless", [])
    if not found:
        return "Not run yet."
    by_cell = {(row["set"], row["n"], row["method"]): row for row in found}
    names = [name for name in HARMLESS if any(row["method"] == name for row in found)]
    rows = []
    for key, title in HARMLESS_SETS.items():
        for n in sorted({row["n"] for row in found if row["set"] == key}):
            cells = [by_cell.get((key, n, name)) for name in names]
            count = max((cell["repetitions"] for cell in cells if cell), default=0)
            rows.append([f"{key}: {title}", rows_words(n), str(count), *map(_harm, cells)])
    return table(["", "rows", "data sets", *map(full_title, names)], rows)


def _harm(cell: dict[str, Any] | None) -> str:
    """Return share changed, mean cost and largest cost."""
    if not cell or not cell["repetitions"]:
        return ""
    cost = f"{cell['kl']:.1g} ({cell['kl_max']:.1g})"
    return f"{percent(cell['changed'] / cell['repetitions'])}; {cost}"


def failure_table(view: View) -> str:
    """Return which methods failed, how often, and why most often."""
    rows = []
    for name in view.methods:
        failed, cases = view.failures(name)
        if failed:
            reasons = [row for row in view.of(name) if row["failed"]]
            common = max(reasons, key=lambda row: row["failed"])["reason"]
            zeros = sum(row["zeros"] for row in view.of(name))
            why = " ".join(common.replace("`", "'").replace("|", "/").split())
            rows.append([full_title(name), f"{failed:,} of {cases:,}", f"`{why}`", f"{zeros:,}"])
        elif any(row["zeros"] for row in view.of(name)):
            zeros = sum(row["zeros"] for row in view.of(name))
            rows.append([full_title(name), f"0 of {cases:,}", "", f"{zeros:,}"])
    if not rows:
        return "None."
    return table(
        ["", "failed", "most often because", "cases with probability 0 for the truth"], rows
    )


def set_table(view: View) -> str:
    """Return the sets with auto's difference to SMS at each size."""
    rows = []
    for name, facts in view.sets.items():
        apart = {row["n"]: row["d_sms"] for row in view.of(OURS) if row["set"] == name}
        base = {row["n"]: row["ll"] for row in view.of(NOTHING) if row["set"] == name}
        if base:
            first = min(base)
            rows.append(
                [
                    name,
                    facts["origin"],
                    facts["model"],
                    f"{facts['n']:,} x {facts['c']}",
                    "used" if facts["used"] else "new",
                    digits(base[first]),
                    *(signed(apart.get(n)) for n in view.sizes),
                ]
            )
    head = ["set", "from", "predicted by", "rows x classes", "", "log loss"]
    return "Log loss as predicted, and auto less SMS.\n\n" + table(
        [*head, *map(rows_words, view.sizes)], rows
    )
