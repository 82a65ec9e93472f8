"""Speed and quality beside other packages; ``--help`` after a command shows its options.

================================  ==================================================================
``python -m benchmarks speed``    time targets, peers, files and real data, write page and figure
                                  (``make bench``); ``--quick`` prints instead of writing
``python -m benchmarks quality``  make prediction sets and run the cases that have not been run
``python -m benchmarks harmless`` the same for the do-no-harm simulation
``python -m benchmarks shifted``  the same for rows whose labels have other frequencies
``python -m benchmarks copies``    the same for rows to learn from that are copies of each other
``python -m benchmarks versus``    our methods in two files of cases, of two revisions, case by case
``python -m benchmarks against``  without the C kernel beside an earlier revision, in turn
``python -m benchmarks page``     pages and figures from the results; nothing is timed or fitted
================================  ==================================================================
"""

from __future__ import annotations

import os
import sys
import warnings

from benchmarks.machine import LATEST, ONE_THREAD, QUICK, read

os.environ.update(ONE_THREAD)


def main(words: list[str]) -> None:
    from benchmarks import against, pages, quality, speed, versus

    warnings.simplefilter("ignore")
    command, *rest = words or [""]
    if command == "speed":
        results = speed.main(rest)
        if results["quick"]:
            found = pages.measured("performance", pages.speed_facts(results))
            print(f"\n{found}\n\n{QUICK}: not on the page")
        else:
            pages.write_speed(results)
    elif command == "against":
        against.main(rest)
    elif command == "versus":
        versus.main(rest)
    elif command in quality.KINDS:
        quality.main(rest, command)
    elif command == "page":
        pages.write_speed(read(LATEST))
        if "--from-results" not in rest and quality.CASES.exists():
            quality.collect()
        pages.write_quality()
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
