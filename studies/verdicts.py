"""The page of all claims, ``docs/studies/claims.md``: the rule, counts, every claim of every study.

A study that has no ``results/verdicts.csv`` yet is left out. The verdicts are those of the studies;
a sentence that several of them judge is one row, with the studies as its settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import rule
from .pages import ROOT, Row, Rows, fill, read

PAGE = Path("docs") / "studies" / "claims.md"
TEMPLATE = Path(__file__).with_suffix(".md")
MADE = "<!-- Made by `python -m studies claims` from studies/verdicts.md: edit that instead. -->\n"
TITLES = {
    "power": "simulation",
    "cifar10": "CIFAR-10",
    "obesity": "obesity",
    "ecology": "ecology",
}
SEVERAL = "several"
"""Where a sentence stands that more than one study judges."""


def all_rows(studies: Iterable[str], root: Path = ROOT) -> Rows:
    """Return the claims of every study that has verdicts, the name of the study with each."""
    found = []
    for study in studies:
        path = root / "studies" / study / "results" / "verdicts.csv"
        if path.exists():
            found += [{"study": study, **row} for row in read(path)]
    return found


def one_row_a_quotation(rows: Rows) -> Rows:
    """Return the claims, those that stand in several studies joined.

    >>> first = {"claim": "a", "where": "1", "study": "power", "verdict": "holds", "evidence": "x"}
    >>> second = {**first, "study": "ecology", "evidence": "y"}
    >>> [row] = one_row_a_quotation([first, second])
    >>> row["study"], row["evidence"], row["verdict"]
    ('several', '*simulation:* x *ecology:* y', 'holds')
    """
    joined = []
    for claim in dict.fromkeys(row["claim"] for row in rows):
        own = [row for row in rows if row["claim"] == claim]
        if len(own) == 1:
            joined += own
            continue
        parts = [f"*{TITLES[row['study']]}:* {row['evidence']}" for row in own]
        found = {
            "study": SEVERAL,
            "evidence": " ".join(parts),
            "verdict": rule.joint(row["verdict"] for row in own),
        }
        joined.append({**own[0], **found})
    return joined


def counts(rows: Rows) -> Rows:
    """Return how many claims of each study have each verdict, and of all of them.

    >>> rows = [{"study": "power", "verdict": "holds"}, {"study": "power", "verdict": "not scored"}]
    >>> counts(rows)[-1]["found"]["holds"], counts(rows)[-1]["claims"]
    (1, 2)
    """
    studies = [*TITLES, SEVERAL]
    found = [
        counted(study_name(study), of_study(rows, study))
        for study in studies
        if of_study(rows, study)
    ]
    return [*found, counted("all", rows)]


def counted(name: str, rows: Rows) -> Row:
    """Return how many of these claims have each verdict."""
    found = {v: sum(row["verdict"] == v for row in rows) for v in rule.VERDICTS}
    return {"study": name, "found": found, "claims": len(rows)}


def of_study(rows: Rows, study: str) -> Rows:
    """Return the claims of one study."""
    return [row for row in rows if row["study"] == study]


def study_name(study: str) -> str:
    """Return a study's name as a link to its page."""
    if study not in TITLES:
        return study
    return f"[{TITLES[study]}]({study}.md#what-holds)"


def page_text(rows: Rows) -> str:
    """Return the page."""
    rows = one_row_a_quotation(rows)
    facts = {
        "counts": counts(rows),
        "claims": [row | {"study": study_name(row["study"])} for row in rows],
        "most": rule.MOST,
        "few": rule.FEW,
        "least_runs": rule.LEAST_RUNS,
        "margin": rule.MARGIN,
        "share": rule.SHARE,
        "level_margin": rule.LEVEL_MARGIN,
    }
    return MADE + fill(TEMPLATE.read_text(encoding="utf-8"), facts)


def write_page(studies: Iterable[str], to: Path = ROOT) -> None:
    """Write the page into a checkout, from the verdicts there."""
    path = to / PAGE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_text(all_rows(studies, to)), encoding="utf-8")
