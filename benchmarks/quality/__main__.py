"""Quality of recalibrated probabilities, method beside method.

==========================================  ========================================================
``python -m benchmarks.quality sets``       make the prediction sets, once, a few minutes
``python -m benchmarks.quality run``        cases that have not been run; ``--help`` for options
``python -m benchmarks.quality harmless``   the same for the do-no-harm simulation
``python -m benchmarks.quality page``       results file, page and figure; nothing is fitted
==========================================  ========================================================
"""

import os
import sys

from benchmarks.crew import ONE_THREAD

os.environ.update(ONE_THREAD)

from benchmarks.quality.run import COMMANDS


def main(arguments: list[str]) -> None:
    """Run a command."""
    if not arguments or arguments[0] not in COMMANDS:
        raise SystemExit(__doc__)
    COMMANDS[arguments[0]](arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
