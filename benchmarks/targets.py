"""The targets, and whether a run met them.

What is judged is MCLLO as it comes, with threads or processes where it starts them; what it does on
one thread (``mcllo-1``) stands beside it. Peers have one BLAS thread. The bound for a pass is one
thread's, and so is what is held against it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import study
from benchmarks.limits import bound
from benchmarks.results import Results, median, ratio
from benchmarks.words import digits, rows_words, size_words, time

NS_PER_ROW = 24.0
"""The least a pass can take at c = 10 on the machine the targets were written on (AVX-512)."""
NOT_MEASURED = "not measured"
APPLY_ROWS, PARQUET_ROWS = 10_000_000, 100_000_000


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run says about one target.

    Attributes
    ----------
    margin : float or None
        1 is just met, 2 is twice as good, 0.5 is half; None when it was not measured.
    measured : str
        In words.
    at_least : bool
        The margin is a lower bound: the peer was ended at its limit.
    """

    margin: float | None
    measured: str = NOT_MEASURED
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """The last column: met, or by how much not."""
        if self.margin is None:
            return NOT_MEASURED
        if self.margin >= 1.0:
            return "met"
        if self.at_least:
            return "not decided: the peer was ended at its limit"
        return f"**not met**, by a factor of {digits(1.0 / self.margin, 3)}"


@dataclass(frozen=True, eq=False)
class Target:
    """One line of the target table: work, demand, and how to read a run."""

    work: str
    demand: str
    judge: Callable[[Results], Outcome]


def faster(size: str, peer: str, times: float, ours: str = "mcllo") -> Callable[[Results], Outcome]:
    """Return the judge of: at least so many times as fast as a peer."""

    def judge(results: Results) -> Outcome:
        records = results.get("fits", {}).get(size, {})
        found, least = ratio(records, ours, peer)
        if found is None:
            return Outcome(None)
        words = f"{'at least ' if least else ''}{digits(found)} times"
        beside = {"with standard errors": "mcllo"} if ours != "mcllo" else {}
        for name, method in (beside | {"one thread": "mcllo-1"}).items():
            other, _ = ratio(records, method, peer)
            words += f" ({name} {digits(other)})" if other is not None else ""
        return Outcome(found / times, words, least)

    return judge


def within(size: str, method: str, seconds: float) -> Callable[[Results], Outcome]:
    """Return the judge of: at most so many seconds."""

    def judge(results: Results) -> Outcome:
        record = results.get("fits", {}).get(size, {}).get(method)
        if not record or not record["seconds"]:
            return Outcome(None)
        found, peak = median(record["seconds"]), record.get("peak_mb")
        memory = f", {digits(peak / 1000.0)} GB" if peak and peak > 1000.0 else ""
        return Outcome(seconds / found, time(found) + memory)

    return judge


def near_bound(size: str, times: float) -> Callable[[Results], Outcome]:
    """Return the judge of: each pass within so many times the bound."""

    def judge(results: Results) -> Outcome:
        record = results.get("fits", {}).get(size, {}).get("mcllo-1")
        if not record or not record["seconds"]:
            return Outcome(None)
        n = int(size.partition("x")[0])
        each = 1e9 * median(record["seconds"]) / n / record["steps"]
        words = f"{digits(each, 3)} ns a row and pass ({record['steps']} passes)"
        limits = results.get("limits")
        if limits:
            own = bound(limits, 9)
            words += f"; {digits(each / own)} times this machine's {digits(own)} ns"
        return Outcome(times * NS_PER_ROW / each, words)

    return judge


def apply_times(times: float) -> Callable[[Results], Outcome]:
    """Return the judge of applying a map."""

    def judge(results: Results) -> Outcome:
        part = results.get("apply")
        if not part:
            return Outcome(None)
        found, _ = ratio(part["records"], "apply-mcllo", "apply-softmax")
        one, _ = ratio(part["records"], "apply-mcllo-1", "apply-softmax")
        if found is None or one is None:
            return Outcome(None)
        words = f"{digits(found)} times (one thread {digits(one)})"
        if part["rows"] != APPLY_ROWS:
            words += f", on {rows_words(part['rows'])} rows"
        return Outcome(found / times, words)

    return judge


def study_times(times: float) -> Callable[[Results], Outcome]:
    """Return the judge of the power study."""

    def judge(results: Results) -> Outcome:
        part = results.get("study")
        if not part:
            return Outcome(None)
        ours, loop = study.whole(part)
        found = loop / ours * part["gain"]
        words = (
            f"{digits(found)} times in {part['processes']} processes, {digits(loop / ours)} in one"
        )
        return Outcome(found / times, f"{words}; scaled from a part")

    return judge


def _parquet(results: Results) -> Results | None:
    part = results.get("parquet")
    if not part or not part["fit"]["seconds"] or not part["pass"]["seconds"]:
        return None
    return part if part["passes"] else None


def _parquet_rows(part: Results) -> str:
    return "" if part["rows"] == PARQUET_ROWS else f", on {rows_words(part['rows'])} rows"


def parquet_memory(megabytes: float) -> Callable[[Results], Outcome]:
    """Return the judge of a fit's memory."""

    def judge(results: Results) -> Outcome:
        part = _parquet(results)
        if part is None:
            return Outcome(None)
        peak = part["fit"]["peak_mb"]
        return Outcome(megabytes / peak, f"{digits(peak, 3)} MB{_parquet_rows(part)}")

    return judge


def parquet_times(times: float) -> Callable[[Results], Outcome]:
    """Return the judge of a fit's time in units of passes."""

    def judge(results: Results) -> Outcome:
        part = _parquet(results)
        if part is None:
            return Outcome(None)
        fit, one = median(part["fit"]["seconds"]), median(part["pass"]["seconds"])
        found = fit / (part["passes"] * one)
        words = f"{digits(found)} times: {time(fit)}, {part['passes']} passes of {time(one)}"
        return Outcome(times / found, words + _parquet_rows(part))

    return judge


def _fit_targets() -> list[Target]:
    temperature, sklearn = "sklearn-temperature", "times as fast as scikit-learn's temperature"
    found = [
        Target(size_words("132x7"), "at most 2 ms", within("132x7", "mcllo", 2e-3)),
        Target(size_words("8000x10"), f"at least 4 {sklearn}", faster("8000x10", temperature, 4)),
        Target(
            size_words("8000x10"),
            "at least 50 times as fast as R with the gradient",
            faster("8000x10", "r-analytic", 50),
        ),
        Target(
            size_words("8000x10"),
            "at least 500 times as fast as R as in the paper",
            faster("8000x10", "r-numeric", 500),
        ),
    ]
    for size in ("100000x10", "1000000x10"):
        words = size_words(size)
        found.append(Target(words, f"at least 4 {sklearn}", faster(size, temperature, 4)))
        demand = "at most 5 times the bound of 24 ns a row and pass"
        found.append(Target(words, demand, near_bound(size, 5)))
    return found


TARGETS = (
    *_fit_targets(),
    Target(
        size_words("10000x100"),
        "at least 1.5 times as fast as scikit-learn's temperature",
        faster("10000x100", "sklearn-temperature", 1.5),
    ),
    Target(
        size_words("50000x1000"),
        "at most 4 s without standard errors",
        within("50000x1000", "mcllo-estimate", 4.0),
    ),
    Target(size_words("50000x1000"), "at most 8 s", within("50000x1000", "mcllo", 8.0)),
    Target(
        size_words("50000x1000"),
        "at least 2 times as fast as scikit-learn's temperature",
        faster("50000x1000", "sklearn-temperature", 2, "mcllo-estimate"),
    ),
    Target("apply, 10M x 10", "at least 3 times as fast as plain NumPy", apply_times(3)),
    Target(
        "study, 30,000 repetitions",
        "at least 10 times as fast as a serial scipy BFGS loop",
        study_times(10),
    ),
    Target("Parquet, 100M x 10", "below 1 GB of memory", parquet_memory(1000.0)),
    Target("Parquet, 100M x 10", "at most 1.5 times (passes x one pass)", parquet_times(1.5)),
)
