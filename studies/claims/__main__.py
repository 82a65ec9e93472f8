"""Measure what the package claims: ``python -m studies.claims TOPIC|pages [--reps N]``.

Writes ``results/TOPIC.csv`` beside this file and the topic's table into its page of ``docs``; the
topic ``pages`` only writes the tables again from the stored rows.
"""

from __future__ import annotations

import argparse
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from studies.pages import ROOT, between, read, write

FOLDER = Path(__file__).parent
TOPICS = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def page_of(topic: str) -> tuple[Path, str]:
    """Return the page of a topic and what it must hold, from the stored rows."""
    module: Any = import_module(f"studies.claims.{topic}")
    path = ROOT / "docs" / module.PAGE
    table = module.table(read(FOLDER / "results" / f"{topic}.csv"))
    mark = getattr(module, "MARK", "measured")
    return path, between(path.read_text(encoding="utf-8"), table, mark)


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m studies.claims")
    parser.add_argument("topic", choices=[*TOPICS, "pages"])
    parser.add_argument(
        "--reps", type=int, default=400, help="repetitions of each design"
    )
    asked = parser.parse_args()
    if asked.topic != "pages":
        warnings.simplefilter("ignore")
        rows = import_module(f"studies.claims.{asked.topic}").run(asked.reps)
        write(FOLDER / "results" / f"{asked.topic}.csv", rows, digits=4)
    for topic in TOPICS if asked.topic == "pages" else (asked.topic,):
        path, text = page_of(topic)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
