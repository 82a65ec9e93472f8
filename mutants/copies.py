"""Copies of the checkout, one for each worker, in which mutants are tried.

==============  =============================================================================
`Copy`          source and tests, the kernel compiled; `kills` breaks it, tests it and mends it
`work`          a worker: imports what tests need but mcllo once, and runs tests in forks of itself
`run`           gives the mutants to workers and prints what becomes of each
==============  =============================================================================
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
os.environ.update(ONE_THREAD)  # before NumPy: a fork has no threads

from mutants import ROOT, Mutant, mutants  # noqa: E402

COPIED = ("src", "tests", "pyproject.toml", "hatch_build.py")
PATIENCE = 900.0
"""Seconds after which tests count as hanging, which is noticed too."""
PYTEST = (
    *("-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-m", "not slow", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
ALL_PASS, SOME_FAIL, BROKEN = 0, 1, 2
"""Exit codes of pytest: the last where a module cannot be imported."""
NEEDED = (
    *(
        "numpy",
        "scipy.special",
        "scipy.optimize",
        "scipy.stats",
        "scipy.linalg",
        "mpmath",
    ),
    *(
        "sklearn.base",
        "sklearn.isotonic",
        "pyarrow.parquet",
        "pyarrow.csv",
        "pandas",
        "polars",
    ),
    *(
        "hypothesis.extra.numpy",
        "pytest",
        "typer",
        "rich.progress",
        "jinja2",
        "narwhals",
    ),
)
"""What tests import, but for mcllo."""


class Copy:
    """A checkout of its own, to break and to mend."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                left_out = shutil.ignore_patterns("__pycache__", "*.pyc")
                shutil.copytree(source, folder / name, ignore=left_out)
            else:
                shutil.copy(source, folder / name)
        if not self.is_compiled():
            self.compile()

    def is_compiled(self) -> bool:
        """Whether the checkout's library came along, and is that of its source."""
        words = "import sys; sys.path.insert(0, 'src');"
        words += "from mcllo._model.compiled import kernel_library as k; sys.exit(k() is None)"
        return (
            subprocess.run([sys.executable, "-c", words], cwd=self.root).returncode == 0
        )

    def compile(self) -> None:
        """Compile the kernel beside its source."""
        words = (
            "import pathlib, hatch_build as b; folder = pathlib.Path(b.FOLDER).resolve();"
            "print(b.compiled(folder / 'kernel.c', folder / b.library_name())[1])"
        )
        made = subprocess.run(
            [sys.executable, "-c", words], cwd=self.root, capture_output=True, text=True
        )
        if made.stdout.strip() or made.returncode:
            raise SystemExit(f"mutants: no kernel: {made.stdout}{made.stderr[-500:]}")

    def tests(self, names: Sequence[str]) -> tuple[int, str]:
        """Run some tests in a fork; return the exit code of pytest, and what it said."""
        said = self.root / "said"
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = self._in_fork(names, said)
            except BaseException:
                traceback.print_exc()
            finally:  # whatever happens, a fork never goes on as the worker
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                os._exit(code)
        end = time.monotonic() + PATIENCE
        while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
            time.sleep(0.05)
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return SOME_FAIL, f"FAILED no end within {PATIENCE:g} s"
        return os.waitstatus_to_exitcode(found[1]), said.read_text(errors="replace")

    def _in_fork(self, names: Sequence[str], said: Path) -> int:
        import pytest

        with said.open("w") as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        source = self.root / "src"
        os.chdir(self.root)
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(source))
        os.environ |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(
            ROOT / ".hypothesis"
        )  # tables of letters
        if not Path(import_module("mcllo").__file__ or "").is_relative_to(self.root):
            print("mcllo is not that of the copy")
            return 99
        return int(pytest.main([*PYTEST, *names]))

    def kills(self, mutant: Mutant) -> tuple[bool, str]:
        """Return whether the tests notice, and the first of them that does."""
        path = self.root / mutant.path
        right = path.read_text(encoding="utf-8")
        path.write_text(mutant.of(right), encoding="utf-8")
        library = next((self.root / "src" / "mcllo" / "_model").glob("libkernel.*"))
        right_library = library.read_bytes()
        try:
            if path.suffix == ".c":
                self.compile()
            code, said = self.tests(mutant.tests)
        finally:
            path.write_text(right, encoding="utf-8")
            if path.suffix == ".c":
                library.write_bytes(right_library)
        if code > BROKEN or (code < 0 and path.suffix != ".c"):
            raise SystemExit(f"mutants: pytest did not run: {said[-2000:]}")
        first = [
            line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))
        ]
        if code in (SOME_FAIL, BROKEN) and not first:
            raise SystemExit(
                f"mutants: a mutant is killed by a test with a name; got: {said}"
            )
        return code != ALL_PASS, first[0].split(" - ")[
            0
        ] if first else f"signal {-code}"


def work(folder: Path, tasks: Any, results: Any, checked: Sequence[str]) -> None:
    """Do tasks, numbers of mutants, until there are none left; first `checked` tests."""
    copy, chosen = Copy(folder), mutants()
    for name in NEEDED:
        import_module(name)
    if checked:
        code, said = copy.tests(checked)
        results.put((None, code == ALL_PASS, said[-2000:], 0.0))
    while (k := tasks.get()) is not None:
        start = time.monotonic()
        results.put((k, *copy.kills(chosen[k]), time.monotonic() - start))


def run(chosen: Sequence[int], workers: int, folder: Path, checked: bool = True) -> int:
    """Print what becomes of each mutant; return the exit code."""
    everyone, fork = mutants(), multiprocessing.get_context("spawn")
    tasks, results = fork.Queue(), fork.Queue()
    needed = (
        sorted({test for k in chosen for test in everyone[k].tests}) if checked else []
    )
    for k in (*chosen, *[None] * workers):
        tasks.put(k)
    started = [
        fork.Process(
            target=work,
            args=(folder / str(w), tasks, results, needed if w == 0 else []),
        )
        for w in range(workers)
    ]
    for process in started:
        process.start()
    counts = {"killed": 0, "equivalent": 0, "survived": 0, "not equivalent": 0}
    print(f"{len(chosen)} mutants", flush=True)
    for _ in range(len(chosen) + bool(needed)):
        k, killed, by, seconds = results.get()
        if k is None:
            if not killed:
                print(f"the tests must pass without a mutant:\n{by}")
                for process in started:
                    process.terminate()
                return 1
            print("without a mutant all tests pass", flush=True)
            continue
        mutant = everyone[k]
        if mutant.equivalent:
            kind, by = (
                ("not equivalent", by) if killed else ("equivalent", mutant.equivalent)
            )
        else:
            kind, by = ("killed", by) if killed else ("survived", "")
        counts[kind] += 1
        print(f"{kind:10} {seconds:5.1f} s  {mutant}  [{by}]", flush=True)
    for process in started:
        process.join()
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["survived"] or counts["not equivalent"] else 0
