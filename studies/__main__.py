"""Rewrite what the studies found: ``python -m studies power|cifar10|obesity|ecology|claims|all``.

Each study is a folder with an `analysis`, whose `analyse` returns tables and figures and whose
`facts` says in words what the page, ``page.md``, asks for. Written are ``results/*.csv``,
``figures/*.svg`` and ``docs/studies/<study>.md``, the same bytes on every run, in about a minute.
``claims`` is the page of all claims and their verdicts. What needs the outside or hours stands in
``given``, and no run deletes it; all other files come back when they are deleted.
``python -m studies simulate --jobs 2`` is the long run that the power study reads.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from . import verdicts
from .figures import save
from .pages import ROOT, Tables, fill, read, write

STUDIES = ("power", "cifar10", "obesity", "ecology")
DIGITS = 6
"""Digits of the numbers in a table, where a study's own ``DIGITS`` says nothing else."""
KEPT = ("given", "results")
"""Folders of tables: those that `analyse` does not make, and those that it makes."""
MADE = (
    "<!-- Made by `python -m studies {0}` from studies/{0}/page.md: "
    "edit that file instead. -->\n"
)


def run(name: str, to: Path = ROOT) -> None:
    """Write tables, figures and page of a study into a checkout."""
    study, folder = import_module(f"studies.{name}.analysis"), to / "studies" / name
    for file, command in getattr(study, "GIVEN", {}).items():
        if not (ROOT / "studies" / name / "given" / file).exists():
            raise SystemExit(
                f"given/{file} of the study {name} must be there. Take it from git again, or "
                f"make it: python -m {command}"
            )
    made, drawn = study.analyse()
    digits = getattr(study, "DIGITS", {})
    for stem, rows in made.items():
        write(folder / "results" / f"{stem}.csv", rows, digits.get(stem, DIGITS))
    for stem, axes in drawn.items():
        save(axes, folder / "figures" / f"{stem}.svg")
    page = to / "docs" / "studies" / f"{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(page_of(name, to), encoding="utf-8")


def page_of(name: str, to: Path = ROOT) -> str:
    """Return a study's page, from its tables in a checkout or else from the committed ones."""
    study, tables = import_module(f"studies.{name}.analysis"), Tables()
    for root in (ROOT, to):
        for kept in KEPT:
            found = sorted((root / "studies" / name / kept).glob("*.csv"))
            tables |= {path.stem: read(path) for path in found}
    template = (ROOT / "studies" / name / "page.md").read_text(encoding="utf-8")
    return MADE.format(name) + fill(template, study.facts(tables))


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m studies", description=__doc__.split("\n")[0]
    )
    parser.add_argument("study", choices=[*STUDIES, "claims", "all", "simulate"])
    parser.add_argument("--jobs", type=int, default=1, help="processes of the long run")
    arguments = parser.parse_args()
    if arguments.study == "simulate":
        import_module("studies.power.analysis").simulate(arguments.jobs)
        return
    named = STUDIES if arguments.study == "all" else {arguments.study} & set(STUDIES)
    for name in named:
        run(name)
    if arguments.study in ("claims", "all"):
        verdicts.write_page(STUDIES)


if __name__ == "__main__":
    main()
