"""A `ChoiceCalibrator` as Python, JavaScript or SQL: rows that offer options, of varying number.

The programs of `_programs` have a column for each class; here a row is a list of scores, and in SQL
a table has a row for each option, as long as questions are.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from .._validation.probabilities import DEFAULT_CLIP
from .._version import __version__
from ..exceptions import InputError
from ._targets import write_content

if TYPE_CHECKING:
    from ..calibrators._choice_calibrator import ChoiceCalibrator

PYTHON = '''"""Recalibration of choice sets, written by mcllo {version}. It needs Python alone.

recalibrate(scores): the {what} of what one row offers, in order; None
where a position is not offered. Returns probabilities of the same length, 0 where it is not.
"""

import math

POSITIONS = {positions}
SHIFTS = {tau}
SLOPE = {gamma}


def recalibrate(scores):
    if len(scores) > len(SHIFTS) and any(SHIFTS):
        raise ValueError("more options than positions")
    offered = [j for j, score in enumerate(scores) if score is not None]
    logs = log_scores([scores[j] for j in offered])
    shifts = [SHIFTS[j] if j < len(SHIFTS) else 0.0 for j in offered]
    eta = [shift + SLOPE * log for shift, log in zip(shifts, logs)]
    top = max(eta)
    terms = [math.exp(value - top) for value in eta]
    total = math.fsum(terms)
    answer = [0.0] * len(scores)
    for j, term in zip(offered, terms):
        answer[j] = term / total
    return answer


def log_scores(scores):
{log_scores}
'''
PYTHON_LOG_SCORES = {
    "logits": "    top = max(scores)\n    return [score - top for score in scores]",
    "probs": """    total = math.fsum(scores)
    if abs(total - 1.0) > 1e-9:
        scores = [score / total for score in scores]
    if min(scores) == 0.0:
        scores = [max(score, {clip}) for score in scores]
    return [math.log(score) for score in scores]""",
}
JAVASCRIPT = """// Recalibration of choice sets, written by mcllo {version}.
// recalibrate(scores): the {what} of what one row offers, in order; null
// where a position is not offered. Returns probabilities of the same length, 0 where it is not.

export const POSITIONS = {positions};
const SHIFTS = {tau};
const SLOPE = {gamma};

export function recalibrate(scores) {{
  if (scores.length > SHIFTS.length && SHIFTS.some((shift) => shift !== 0)) {{
    throw new RangeError("more options than positions");
  }}
  const offered = scores.map((_, j) => j).filter((j) => scores[j] !== null);
  const logs = logScores(offered.map((j) => scores[j]));
  const eta = offered.map((j, k) => (SHIFTS[j] ?? 0) + SLOPE * logs[k]);
  const top = Math.max(...eta);
  const terms = eta.map((value) => Math.exp(value - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  const answer = new Array(scores.length).fill(0);
  offered.forEach((j, k) => {{ answer[j] = terms[k] / total; }});
  return answer;
}}

function logScores(scores) {{
{log_scores}
}}
"""
JAVASCRIPT_LOG_SCORES = {
    "logits": "  const top = Math.max(...scores);\n  return scores.map((score) => score - top);",
    "probs": """  const total = scores.reduce((sum, score) => sum + score, 0);
  if (Math.abs(total - 1) > 1e-9) scores = scores.map((score) => score / total);
  if (Math.min(...scores) === 0) scores = scores.map((score) => Math.max(score, {clip}));
  return scores.map(Math.log);""",
}
SQL = """-- Recalibration of choice sets, written by mcllo {version}; an option is a row of {table}.
WITH logs AS (
  SELECT *, {log_score} AS mcllo_log FROM {source}
), eta AS (
  SELECT *, {gamma} * mcllo_log + CASE {position}
{shifts}
  END AS mcllo_eta FROM logs
), terms AS (
  SELECT *, EXP(mcllo_eta - MAX(mcllo_eta) OVER (PARTITION BY {question})) AS mcllo_term FROM eta
)
SELECT {question}, {position}, {score},
  mcllo_term / SUM(mcllo_term) OVER (PARTITION BY {question}) AS calibrated
FROM terms
"""
SQL_PROBS = """(
  SELECT *, {score} / SUM({score}) OVER (PARTITION BY {question}) AS mcllo_p,
    MIN({score}) OVER (PARTITION BY {question}) AS mcllo_least FROM {table}
) AS shares"""
SQL_OPTIONS = {
    "table": "options",
    "question": "question",
    "position": "position",
    "score": "score",
}


def export_choice_calibrator(
    calibrator: ChoiceCalibrator,
    to: str,
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> str:
    """Return the source of a fitted calibrator, and write it where a path is given."""
    writers = {"python": _python, "js": _javascript, "sql": _sql}
    if to not in writers:
        known = ", ".join(map(repr, writers))
        rule = f"be one of {known} for choice sets"
        raise InputError(argument="to", rule=rule, value=to)
    known_options = SQL_OPTIONS if to == "sql" else {}
    unknown = sorted(set(options) - set(known_options))
    if unknown:
        raise InputError(
            f"{{argument}} is no option of {to} for choice sets.", argument=unknown[0]
        )
    numbers = {
        "version": __version__,
        "what": "probabilities" if calibrator.input == "probs" else "log scores",
        "positions": json.dumps(calibrator.classes_.tolist()),
        "tau": [float(value) for value in calibrator.tau_],
        "gamma": repr(float(calibrator.gamma_)),
    }
    source = writers[to](calibrator, numbers, {**known_options, **options})
    if path is not None:
        write_content(path, source)
    return source


def _python(
    calibrator: ChoiceCalibrator, numbers: dict[str, Any], options: dict[str, str]
) -> str:
    log_scores = PYTHON_LOG_SCORES[calibrator.input].format(clip=DEFAULT_CLIP)
    return PYTHON.format(**numbers, log_scores=log_scores)


def _javascript(
    calibrator: ChoiceCalibrator, numbers: dict[str, Any], options: dict[str, str]
) -> str:
    log_scores = JAVASCRIPT_LOG_SCORES[calibrator.input].format(clip=DEFAULT_CLIP)
    return JAVASCRIPT.format(**numbers, log_scores=log_scores)


def _sql(
    calibrator: ChoiceCalibrator, numbers: dict[str, Any], options: dict[str, str]
) -> str:
    names = {name: f'"{value}"' for name, value in options.items()}
    for name, value in options.items():
        if not value.isidentifier():
            raise InputError(argument=name, rule="be a plain name", value=value)
    positions = calibrator.classes_.tolist()
    shifts = []
    for position, tau in zip(positions, numbers["tau"], strict=True):
        literal = str(position)
        if isinstance(position, str):
            quoted = position.replace("'", "''")
            literal = f"'{quoted}'"
        shifts.append(f"    WHEN {literal} THEN {tau!r}")
    source = names["table"]
    log_score = names["score"]
    if calibrator.input == "probs":
        source = SQL_PROBS.format(**names)
        # Zeros are raised as everywhere: in rows that hold one, what is smaller becomes the bound.
        log_score = (
            f"LN(CASE WHEN mcllo_least <= 0 AND mcllo_p < {DEFAULT_CLIP!r} "
            f"THEN {DEFAULT_CLIP!r} ELSE mcllo_p END)"
        )
    content = {**numbers, **names, "shifts": "\n".join(shifts)}
    return SQL.format(**content, source=source, log_score=log_score)
