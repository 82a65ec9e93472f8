"""Options without identity, as many as a row offers -> arrays with a mask of what is offered.

A row of a choice set is a question with its answers, a race with its horses, a query with its
candidates: an option has a position (A, B, C, ...) and a score, and one option turns out right.
Scores become one padded table with a column for each position, and a mask `offered`:

==================  ================================================================================
ragged lists        one list of scores a row; its places are the positions. A column of lists too
padded table        a row each; NaN, and of log scores -inf, where a position is not offered
long table          a row for each option: its question, position, score, and whether it is right
==================  ================================================================================

`kind` says what scores are, since nothing is guessed from their size:

===================  ===============================================================================
"log_likelihoods"    log likelihoods of the options; divided by `lengths` where these are given
"logits"             scores before a softmax
"probs"              probabilities, >= 0
===================  ===============================================================================

All are normalised over what a row offers, ``p_ij = s_ij / sum_k s_ik``; of probabilities it is
counted in how many rows that changed something. In the model a choice set is a row whose log odds
are log probabilities, against an option that no row offers: so `probabilities_and_log_sums`, the
log partition and all that is made of them serve both (`_model/kernel`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Codes, Floats
from ..exceptions import InputError
from .frames import column_cells, column_names, column_or_table
from .labels import Classes, is_missing
from .probabilities import DEFAULT_CLIP, MIN_REPORTED_ROW_ERROR

ScoreKind = Literal["log_likelihoods", "logits", "probs"]
LARGEST_SCORE = 1e100
"""Size of a log score up to which its square does not overflow; that of logits."""


@dataclass(frozen=True, eq=False)
class ChoiceRows:
    """Choice sets as arrays of shape (n_samples, n_positions), and what was changed.

    `log_probs` are 0 where nothing is offered, so that products with a probability of 0 are 0.
    """

    probs: Floats
    log_probs: Floats
    offered: NDArray[np.bool_]
    codes: Codes
    positions: Classes
    raised: NDArray[np.bool_] | None
    n_zeros: int
    n_renormalized: int
    max_row_error: float

    @property
    def most_offered(self) -> Hashable:
        """The position that most rows offer, the first of equals: the reference of the shifts."""
        return self.positions[int(self.offered.sum(axis=0).argmax())]

    def changes(self, codes: Codes) -> dict[str, Any]:
        """Return what was changed, by the names of `Predictions`; `codes` are the answers."""
        n_clipped = 0
        n_clipped_true = 0
        if self.raised is not None:
            n_clipped = int(self.raised.sum())
            n_clipped_true = int(self.raised[np.arange(len(codes)), codes].sum())
        return {
            "raised": self.raised,
            "clip": None if self.raised is None else DEFAULT_CLIP,
            "n_zeros": self.n_zeros,
            "n_clipped": n_clipped,
            "n_clipped_true": n_clipped_true,
            "n_renormalized": self.n_renormalized,
            "max_row_error": self.max_row_error,
        }


def clean_choice_sets(
    scores: Any,
    y: Any,
    *,
    kind: str,
    positions: Sequence[Hashable] | None = None,
    lengths: Any = None,
    long_columns: dict[str, str] | None = None,
    labelled: bool = True,
    n_positions: int = 0,
) -> ChoiceRows:
    """Validate choice sets; arguments are those of `Predictions.from_choices`.

    Rows that are not `labelled` have no answers, and keep every position, `n_positions` at least.
    """
    if kind not in get_args(ScoreKind):
        rule = "be 'log_likelihoods', 'logits' or 'probs': what the scores are"
        raise InputError(argument="kind", rule=rule, value=kind)
    if long_columns is not None:
        scores, y, positions = _rows_of_long_table(scores, y, positions, long_columns)
    table = _padded(scores, "scores")
    if lengths is not None:
        table = table / _checked_lengths(lengths, kind, table)
    # Names that are numbers would be confused with places, which count from 0.
    by_place = positions is None or all(isinstance(name, str) for name in positions)
    if positions is None:
        positions = default_positions(max(n_positions, table.shape[1]))
    positions = tuple(positions)
    table = _widen(table, len(positions))
    if len(positions) != table.shape[1] or len(set(positions)) != len(positions):
        raise InputError(
            argument="positions",
            rule=f"name each of the {table.shape[1]} positions once",
            found=f"{len(positions)} names, {len(set(positions))} of them different",
        )
    offered = _offered(table, kind)
    _check_rows(table, offered, kind, positions)
    is_used = np.ones(len(positions), dtype=bool)
    codes = np.zeros(len(table), dtype=np.intp)
    if labelled:
        is_used = np.asarray(offered.any(axis=0))
        codes = _answer_codes(y, offered, positions, by_place=by_place)
    # A position that no row offers is no position: its column is left out.
    codes = (np.cumsum(is_used) - 1)[codes]
    table = table[:, is_used]
    offered = offered[:, is_used]
    names = tuple(name for name, used in zip(positions, is_used, strict=True) if used)
    if kind == "probs":
        return _from_probs(table, offered, codes, names)
    return _from_log_scores(table, offered, codes, names)


def default_positions(n_positions: int) -> Classes:
    """Return A, B, C, ...; of more than 26 positions 1, 2, 3, ...

    Examples
    --------
    >>> default_positions(3), default_positions(27)[-2:]
    (('A', 'B', 'C'), (26, 27))
    """
    if n_positions <= len(ascii_uppercase):
        return tuple(ascii_uppercase[:n_positions])
    return tuple(range(1, n_positions + 1))


def _from_log_scores(
    table: Floats, offered: NDArray[np.bool_], codes: Codes, positions: Classes
) -> ChoiceRows:
    """Return the softmax of what is offered."""
    masked = np.where(offered, table, -np.inf)
    masked -= masked.max(axis=1, keepdims=True)
    probs = np.exp(masked)
    log_sums = np.log(probs.sum(axis=1, keepdims=True))
    log_probs = np.where(offered, masked - log_sums, 0.0)
    probs = np.where(offered, np.exp(log_probs), 0.0)
    return ChoiceRows(probs, log_probs, offered, codes, positions, None, 0, 0, 0.0)


def _from_probs(
    table: Floats, offered: NDArray[np.bool_], codes: Codes, positions: Classes
) -> ChoiceRows:
    """Return probabilities divided by their sum; in rows with a 0, small ones are raised first."""
    probs = np.where(offered, table, 0.0)
    sums = probs.sum(axis=1, keepdims=True)
    error = np.abs(sums[:, 0] - 1.0)
    noteworthy = error > MIN_REPORTED_ROW_ERROR  # the other rows keep their digits
    probs /= np.where(noteworthy[:, None], sums, 1.0)
    is_zero = offered & (probs == 0.0)
    n_zeros = int(is_zero.sum())
    raised = None
    if n_zeros:
        has_zero = is_zero.any(axis=1, keepdims=True)
        raised = offered & has_zero & (probs < DEFAULT_CLIP)
        probs = np.where(raised, DEFAULT_CLIP, probs)
        probs /= np.where(has_zero, probs.sum(axis=1, keepdims=True), 1.0)
    log_probs = np.log(np.where(offered, probs, 1.0))
    return ChoiceRows(
        probs=probs,
        log_probs=log_probs,
        offered=offered,
        codes=codes,
        positions=positions,
        raised=raised,
        n_zeros=n_zeros,
        n_renormalized=int(noteworthy.sum()),
        max_row_error=float(error.max()),
    )


def _padded(rows: Any, name: str) -> Floats:
    """Return ragged lists or a table as one array, NaN where a row has no number."""
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        table = np.array(rows, dtype=np.float64)
    elif column_names(rows) is not None:
        columns = [
            _score_list(column, 0, name) for column in column_cells(rows).values()
        ]
        table = np.array(columns, dtype=np.float64).T
    else:
        lists = [_score_list(row, place, name) for place, row in enumerate(rows)]
        width = max((len(row) for row in lists), default=0)
        table = np.full((len(lists), width), np.nan)
        for place, row in enumerate(lists):
            table[place, : len(row)] = row
    if table.ndim != 2:
        raise InputError(
            argument=name,
            rule="be a table, or a list of scores for each row",
            found=f"an array of shape {table.shape}",
        )
    if not len(table):
        raise InputError(argument=name, rule="have at least one row", found="none")
    return table


def _widen(table: Floats, n_positions: int) -> Floats:
    """Return the table with columns for positions that no row is long enough to offer."""
    n_more = max(0, n_positions - table.shape[1])
    return np.pad(table, ((0, 0), (0, n_more)), constant_values=np.nan)


def _score_list(row: Any, place: int, name: str) -> list[float]:
    """Return the scores of one row as floats, None as NaN."""
    try:
        return [float("nan") if score is None else float(score) for score in row]
    except (TypeError, ValueError):
        raise InputError(
            "{argument} must hold a list of numbers for each row; {row} holds {value}.",
            argument=name,
            value=row,
            row=place,
        ) from None


def _offered(table: Floats, kind: str) -> NDArray[np.bool_]:
    """Return which positions each row offers."""
    offered = ~np.isnan(table)
    if kind != "probs":
        offered &= table != -np.inf
    return offered


def _check_rows(
    table: Floats, offered: NDArray[np.bool_], kind: str, positions: Classes
) -> None:
    """Refuse rows that offer fewer than two options, and scores that are none."""
    n_options = offered.sum(axis=1)
    if n_options.min() < 2:
        row = int(np.argmax(n_options < 2))
        found = "one" if n_options[row] else "no option with a finite score"
        raise InputError(
            "each row must offer at least two options; {row} has {found}.",
            argument="scores",
            row=row,
            remedy="Drop that row.",
            values={"found": found},
        )
    values = np.where(offered, table, 0.0)
    bad = ~(np.abs(values) <= LARGEST_SCORE)
    rule = f"be finite, at most {LARGEST_SCORE:g} in size"
    if kind == "probs":
        bad = ~((values >= 0.0) & (values <= 1.0 + 1e-3))
        rule = "lie in [0, 1] where kind='probs'"
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        remedy = ""
        if kind == "probs":
            remedy = "Log likelihoods are kind='log_likelihoods'."
        raise InputError(
            "{argument} must {rule}; {row} has {score:.6g} at position {position}.",
            argument="scores",
            rule=rule,
            row=row,
            remedy=remedy,
            values={
                "rule": rule,
                "score": float(table[row, column]),
                "position": positions[column],
            },
        )
    if kind == "probs" and (values.sum(axis=1) <= 0.0).any():
        row = int(np.argmax(values.sum(axis=1) <= 0.0))
        raise InputError(
            "a row of {argument} must hold a probability above 0; {row} has none.",
            argument="scores",
            row=row,
            remedy="Drop that row.",
            values={},
        )


def _checked_lengths(lengths: Any, kind: str, table: Floats) -> Floats:
    """Return the length of each option; 1 where there is none."""
    if kind != "log_likelihoods":
        raise InputError(
            argument="lengths",
            rule="go with kind='log_likelihoods', which they divide",
            found=f"kind={kind!r}",
        )
    padded = _padded(lengths, "lengths")
    if padded.shape != table.shape:
        raise InputError(
            argument="lengths",
            rule=f"have the shape of scores, {table.shape}",
            found=str(padded.shape),
        )
    bad = ~(padded > 0.0) & _offered(table, kind)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise InputError(
            argument="lengths",
            rule="be positive for every option that is offered",
            value=float(padded[row, column]),
            row=row,
            column=column,
        )
    return np.where(padded > 0.0, padded, 1.0)


def _answer_codes(
    y: Any, offered: NDArray[np.bool_], positions: Classes, *, by_place: bool
) -> Codes:
    """Return the column of the right option of each row."""
    if y is None:
        raise InputError(
            argument="y", rule="say which option is right in each row", found="None"
        )
    answers = column_or_table(y, "y").tolist()
    if len(answers) != len(offered):
        raise InputError(
            argument="y",
            rule=f"have one answer per row ({len(offered)})",
            found=str(len(answers)),
        )
    column_of: dict[Any, int] = {}
    if by_place:
        column_of |= {column: column for column in range(len(positions))}
    if not by_place or isinstance(positions[0], str):
        column_of |= {name: column for column, name in enumerate(positions)}
    codes = np.empty(len(answers), dtype=np.intp)
    for row, answer in enumerate(answers):
        column = column_of.get(answer, -1)
        if column < 0 or not offered[row, column]:
            of_row = [positions[k] for k in np.flatnonzero(offered[row])]
            missing = "no answer" if is_missing(answer) else repr(answer)
            raise InputError(
                "{argument} must be an option that its row offers; {row} has {answer}, and "
                "offers {options}.",
                argument="y",
                row=row,
                remedy="Correct or drop that row.",
                values={
                    "answer": missing,
                    "options": ", ".join(map(str, of_row[:8])),
                },
            )
        codes[row] = column
    return codes


def _rows_of_long_table(
    frame: Any,
    y: Any,
    positions: Sequence[Hashable] | None,
    columns: dict[str, str],
) -> tuple[Floats, list[Hashable], Sequence[Hashable]]:
    """Return padded scores, answers and positions of a table with a row for each option."""
    missing = [name for name in ("option", "score", "right") if name not in columns]
    if missing or y is not None:
        raise InputError(
            "a table with a row for each option needs {argument}=, option=, score= and right=, "
            "the names of its columns, and no y.",
            argument="question",
            values={},
        )
    table = column_cells(frame)
    absent = [name for name in columns.values() if name not in table]
    if absent:
        raise InputError(
            argument="question",
            rule=f"and its companions name columns of the table, {sorted(table)}",
            found=repr(absent[0]),
        )
    cells = {name: table[column] for name, column in columns.items()}
    if positions is None:
        found = set(cells["option"])
        are_numbers = all(isinstance(name, (int, float)) for name in found)
        sort_key: Any = float if are_numbers else str
        positions = sorted(found, key=sort_key)
    column_of = {name: column for column, name in enumerate(positions)}
    row_of: dict[Any, int] = {}
    for question in cells["question"]:
        row_of.setdefault(question, len(row_of))
    scores = np.full((len(row_of), len(column_of)), np.nan)
    answers: list[Hashable] = [None] * len(row_of)
    for line, (question, option, score, right) in enumerate(
        zip(*(cells[n] for n in ("question", "option", "score", "right")), strict=True)
    ):
        row = row_of[question]
        column = column_of.get(option)
        is_repeated = column is not None and not np.isnan(scores[row, column])
        is_second_answer = bool(right) and answers[row] is not None
        if column is None or is_repeated or is_second_answer:
            raise InputError(
                "each question must have each option once and one right answer; line {line} of "
                "the table breaks that (question {question}, option {option}).",
                argument="question",
                values={"line": line, "question": question, "option": option},
            )
        scores[row, column] = np.nan if score is None else score
        if right:
            answers[row] = option
    return scores, answers, positions
