"""Parts of the page below the table of fits: real data, applying, the study, Parquet, limits."""

from benchmarks import study
from benchmarks.crew import TITLES
from benchmarks.limits import bound
from benchmarks.methods import REAL
from benchmarks.results import Results, median, ratio
from benchmarks.targets import APPLY_ROWS
from benchmarks.words import cell, digits, rows_words, table, time


def real_part(results: Results) -> list[str]:
    """Return log loss beside fit times."""
    sets = {name: part for name, part in results.get("real", {}).items() if "methods" in part}
    if not sets:
        return []
    head = [
        "",
        *(f"{name} ({part['learn']}, c = {part['classes']})" for name, part in sets.items()),
    ]
    rows = [
        [TITLES[name], *(real_cell(name, part["methods"].get(name)) for part in sets.values())]
        for name in REAL
    ]
    return [
        "### Held-out log loss on real predictions",
        "Log loss of rows that the method did not learn from, ± the standard error of its "
        "difference to MCLLO's, and the median time of a fit. In brackets: rows to learn from, "
        "classes.",
        table(head, rows),
    ]


def real_cell(name: str, record: Results | None) -> str:
    """Return log loss, standard error and time.

    Examples
    --------
    >>> real_cell("x", {"status": "ok", "log_loss": 0.25, "se": 0.0012, "seconds": [0.004]})
    '0.2500 ± 0.0012; 4.0 ms'
    """
    if record is None or "log_loss" not in record:
        return cell(record) if record and record["status"] != "ok" else ""
    error = f" ± {record['se']:.4f}" if record.get("se") else ""
    taken = f"; {time(median(record['seconds']))}" if name != "untouched" else ""
    return f"{record['log_loss']:.4f}{error}{taken}"


def apply_part(results: Results) -> list[str]:
    """Return the times of applying a map."""
    part = results.get("apply")
    if not part:
        return []
    scale = APPLY_ROWS / part["rows"]
    said = "" if scale == 1.0 else f" (measured on {rows_words(part['rows'])} rows and scaled)"
    rows = [
        [TITLES[name], cell(_scaled(record, scale)), _apply_ratio(part["records"], name)]
        for name, record in part["records"].items()
    ]
    head = ["", "time", "times as long as MCLLO as it comes"]
    return [f"### Applying a map to 10M x 10{said}", table(head, rows)]


def _scaled(record: Results, scale: float) -> Results:
    return record | {"seconds": [scale * seconds for seconds in record["seconds"]]}


def _apply_ratio(records: Results, name: str) -> str:
    found, _ = ratio(records, "apply-mcllo", name)
    return "" if found is None else digits(found)


def study_part(results: Results) -> list[str]:
    """Return the times of the power study."""
    part = results.get("study")
    if not part:
        return []
    ours, loop = study.whole(part)
    rows = [
        [n, *(time(median(seconds[name])) for name in ("mcllo", "bfgs")), _study_ratio(seconds)]
        for n, seconds in part["cells"].items()
    ]
    gain, count = part["gain"], part["processes"]
    many = f"{time(ours / gain)} in {count} processes ({digits(gain)} times as fast by the clock)"
    return [
        "### The paper's power study",
        "Processor time of one repetition: draw, fit, test, apply, ECE before and after.",
        table(["n", "`mcllo.simulate.power`", "loop around scipy BFGS", "ratio"], rows),
        f"All 30,000 repetitions, scaled from this part: {time(ours)} in one process, {many}; "
        f"the loop {time(loop)}.",
    ]


def _study_ratio(seconds: Results) -> str:
    return digits(median(seconds["bfgs"]) / median(seconds["mcllo"]))


def parquet_part(results: Results) -> list[str]:
    """Return time and memory of the fit from a file."""
    part = results.get("parquet")
    if not part:
        return []
    title = f"### A fit from Parquet, {rows_words(part['rows'])} x {part['classes']}"
    fit, one = part["fit"], part["pass"]
    if fit["status"] != "ok" or one["status"] != "ok":
        return [title, f"`mcllo fit`: {cell(fit)}; one pass by hand: {cell(one)}."]
    words = (
        f"`mcllo fit rows.parquet` on a file of {digits(part['file_mb'])} MB: {cell(fit)} from the "
        f"start of Python to the written model, {part['passes']} passes, at most "
        f"{digits(fit['peak_mb'], 3)} MB. One pass by hand (pyarrow row groups, log odds, value, "
        f"gradient and Hessian; one thread): {cell(one)}."
    )
    return [title, words]


def limits_part(results: Results) -> list[str]:
    """Return the machine's limits."""
    found = results.get("limits")
    if not found:
        return []
    rows = [
        [
            "exp, float64 / float32, in cache",
            f"{digits(found['exp64'])} / {digits(found['exp32'])} ns",
        ],
        ["log, float64, in cache", f"{digits(found['log64'])} ns"],
        [
            "matrix product, float64 / float32",
            f"{digits(found['gemm64'])} / {digits(found['gemm32'])} GF/s",
        ],
        ["gram product of the kernel, c = 10", f"{digits(found['gram'])} ns a row"],
        ["reading memory", f"{digits(found['read'])} GB/s"],
        ["so one float64 pass at c = 10 takes at least", f"{digits(bound(found, 9))} ns a row"],
    ]
    return ["### What this machine can do at most, one thread", table(["", "best seen"], rows)]


PARTS = (real_part, apply_part, study_part, parquet_part, limits_part)
