"""Run the mutants: ``python -m mutants [WORD ...]``; words choose those whose name holds one.

=============  ==============================================================================
killed         a named test fails, or the changed code cannot even be imported
survived       all of them pass: a test is missing (exit code 1)
equivalent     passes, as ``mutants.toml`` says, with the reason; exit code 1 where it is killed
=============  ==============================================================================

Each worker has a copy of the checkout, and the kernel compiled in it. It imports what tests need
but mcllo once, and every mutant's tests run in a fork of it. First the tests must pass there
without a mutant, for a test that fails anyway kills everything.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from mutants import mutants
from mutants.copies import run


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m mutants", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "words", nargs="*", help="only mutants whose file and name hold a word"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="the tests are known to pass without a mutant",
    )
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="K",
        help="only every K-th of them, for a short run",
    )
    given = parser.parse_args()
    everyone = [str(mutant) for mutant in mutants()]
    words = given.words or [""]
    chosen = [
        k for k, name in enumerate(everyone) if any(word in name for word in words)
    ]
    chosen = chosen[:: given.every]
    if not chosen:
        parser.error("no mutant has such a name")
    with tempfile.TemporaryDirectory(prefix="mcllo-mutants-") as folder:
        return run(chosen, given.workers, Path(folder), not given.unchecked)


if __name__ == "__main__":
    sys.exit(main())
