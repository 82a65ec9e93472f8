"""One target in a process of its own: bytes in, counts and failures out.

==================  ========================================================================
inputs              by atheris, which looks for bytes that reach new lines of mcllo; or at random
                    from the seed, half of them changed copies of inputs that were accepted
no end              `PATIENCE` seconds of work, then the attempt counts as failed; where it sleeps,
                    or no Python runs that could stop it, whoever started the process does
memory              an attempt that needs `MOST_MB` more than all before it failed; a process is
                    ended at `ADDRESSES` bytes beyond what the imports took
a failure           its bytes, what they made and the traceback, in the folder; one for each
                    line that raised it
==================  ========================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
import pkgutil
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module, util
from pathlib import Path
from typing import Any

PATIENCE = 20.0
MOST_MB, ADDRESSES = 1000, 16 << 30
LONGEST_INPUT = 1 << 13
KEPT = 200
"""Accepted inputs that are changed further."""
MOST_FAILURES = 20
NEVER = 10**6
"""Seconds after which libFuzzer would end an attempt by itself."""
LEFT_OUT = ("__main__", "libkernel", "_blocks.dask", "_blocks.dask_jobs")
"""Modules that atheris does not watch: no Python, or of other packages."""
TARGETS = {
    "csv": ("files", "csv"),
    "parquet": ("files", "parquet"),
    "command": ("files", "command"),
    "arrays": ("tables", "arrays_target"),
    "frames": ("tables", "frames_target"),
    "model": ("models", "model"),
    "names": ("names", "names"),
    "figures": ("names", "figures"),
}
"""Where each target is."""


class TooLongError(BaseException):
    """An attempt that does not end; no `except Exception` may catch it."""


def has_atheris() -> bool:
    """Whether atheris is installed."""
    return util.find_spec("atheris") is not None


def target(name: str) -> Callable[[bytes], bytes | None]:
    """Return the function that makes an attempt of bytes."""
    module, function = TARGETS[name]
    return getattr(import_module(f"fuzz.{module}"), function).hypothesis.fuzz_one_input


class Runner:
    """Attempts of one target, counted, stopped and kept where they fail."""

    def __init__(self, name: str, folder: Path) -> None:
        from fuzz.case import CASE

        self.name, self.folder, self.case = name, folder, CASE
        self.once = target(name)
        self.failures: dict[str, str] = {}
        self.n_failed = self.slowest = 0.0
        self._told, self._peak = 0.0, peak_mb()
        signal.signal(signal.SIGPROF, self._stop)

    def _stop(self, *_: object) -> None:
        raise TooLongError(f"no end after {PATIENCE:g} s of work")

    def attempt(self, content: bytes) -> bytes | None:
        """Make one; return the bytes that it used where it was accepted."""
        (self.folder / "current").write_bytes(content)
        accepted, start = self.case.accepted, time.monotonic()
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        used: bytes | None = None
        try:
            used = self.once(content)
        except (Exception, TooLongError, SystemExit) as error:
            self._fail(content, error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.slowest, before = max(self.slowest, time.monotonic() - start), self._peak
        self._peak = peak_mb()
        if self._peak > before + MOST_MB:
            self._fail(
                content, MemoryError(f"an attempt took {self._peak - before} MB more")
            )
        self.tell()
        return used if self.case.accepted > accepted else None

    def _fail(self, content: bytes, error: BaseException) -> None:
        self.n_failed += 1
        frames = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if "hypothesis" not in f[0]
        ]
        where = (
            f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}"
            if frames
            else ""
        )
        if where in self.failures or len(self.failures) >= MOST_FAILURES:
            return
        key = hashlib.sha256(content).hexdigest()[:10]
        self.failures[where] = f"{self.name}-{key}"
        keep(self.folder, self.failures[where], content, self.case.made, error)
        self.tell(force=True)

    def tell(self, force: bool = False) -> None:
        """Write the counts, twice a second."""
        now = time.monotonic()
        if not force and now - self._told < 0.5:
            return
        self._told = now
        case = self.case
        counts = {
            "attempts": case.attempts,
            "accepted": case.accepted,
            "compared": case.compared,
        }
        counts |= {"failed": int(self.n_failed), "failures": self.failures}
        counts |= {"slowest": self.slowest, "peak_mb": peak_mb()}
        new = self.folder / "counts.new"
        new.write_text(json.dumps(counts))
        os.replace(new, self.folder / "counts.json")


def keep(
    folder: Path,
    name: str,
    content: bytes,
    made: dict[str, Any],
    error: BaseException | str,
) -> None:
    """Write a failing input, what it made, and what was raised."""
    (folder / f"{name}.bytes").write_bytes(content)
    for part, text in made.items():
        raw = (
            text
            if isinstance(text, bytes)
            else text.encode("utf-8", "backslashreplace")
        )
        (folder / f"{name}.{part}").write_bytes(raw)
    said = (
        error if isinstance(error, str) else "".join(traceback.format_exception(error))
    )
    (folder / f"{name}.error.txt").write_text(
        said, encoding="utf-8", errors="backslashreplace"
    )


def peak_mb() -> int:
    """Return the most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def bound_memory() -> None:
    """Let this process have `ADDRESSES` more than it has."""
    pages = (
        int(Path("/proc/self/statm").read_text().split()[0])
        if sys.platform == "linux"
        else 0
    )
    if pages:
        most = pages * resource.getpagesize() + ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def run(
    name: str, folder: Path, seconds: float, seed: int, attempts: int, engine: str
) -> None:
    """Fuzz one target in this process."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("MPLBACKEND", "agg")
    folder.mkdir(parents=True, exist_ok=True)
    if engine == "atheris":
        _by_atheris(name, folder, seconds, seed)
        return
    runner = Runner(name, folder)
    bound_memory()
    _at_random(runner, seconds, random.Random(f"{seed} {name}"), attempts)
    runner.tell(force=True)


def _at_random(
    runner: Runner, seconds: float, rng: random.Random, attempts: int
) -> None:
    pool: list[bytes] = []
    end, made = time.monotonic() + seconds, 0
    while time.monotonic() < end and (attempts == 0 or made < attempts):
        made += 1
        if pool and rng.random() < 0.5:
            content = bytearray(rng.choice(pool))
            for _ in range(rng.randint(1, 4)):
                k = rng.randrange(len(content)) if content else 0
                content[k : k + rng.choice((0, 1, 1, 4))] = rng.randbytes(
                    rng.choice((1, 1, 4))
                )
            used = runner.attempt(bytes(content) + rng.randbytes(64))
        else:
            used = runner.attempt(rng.randbytes(1 << rng.randint(5, 13)))
        if used is not None:
            pool.append(used)
            if len(pool) > KEPT:
                pool[rng.randrange(KEPT)] = pool.pop()


def _by_atheris(name: str, folder: Path, seconds: float, seed: int) -> None:
    import atheris

    with atheris.instrument_imports(include=["mcllo"]):
        package = import_module("mcllo")
        for module in pkgutil.walk_packages(package.__path__, "mcllo."):
            if not module.name.endswith(LEFT_OUT):
                import_module(module.name)
    runner = Runner(name, folder)
    bound_memory()
    corpus, rng = folder / "start", random.Random(f"{seed} {name}")
    corpus.mkdir(exist_ok=True)
    for k in range(32):
        (corpus / str(k)).write_bytes(rng.randbytes(1 << rng.randint(8, 13)))

    def one(content: bytes) -> None:
        runner.attempt(content)

    atheris.Setup(
        [sys.argv[0], *libfuzzer_options(folder, seconds, seed), str(corpus)], one
    )
    atheris.Fuzz()


def libfuzzer_options(folder: Path, seconds: float, seed: int) -> list[str]:
    """Return the options of a run; time and memory of an attempt are bounded here, not there.

    ``-timeout=0`` would not be "never": atheris ends the process at the first attempt of a second.
    """
    return [
        *(
            f"-max_total_time={whole_seconds(seconds)}",
            f"-seed={seed + 1}",
            f"-timeout={NEVER}",
        ),
        *(
            "-rss_limit_mb=0",
            f"-max_len={LONGEST_INPUT}",
            "-len_control=0",
            "-verbosity=0",
        ),
        f"-artifact_prefix={folder}/",
    ]


def whole_seconds(seconds: float) -> int:
    """Return whole seconds, at least one: 0 would be for ever."""
    return max(1, int(-(-seconds // 1)))
