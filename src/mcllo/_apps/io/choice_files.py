"""`read_choices`: files of JSON lines -> choice sets.

======================  ============================================================================
lm-evaluation-harness   ``samples_<task>_<date>.jsonl`` of ``--log_samples``: `target`, the place of
                        the right option, `filtered_resps`, ``[log likelihood, is greedy]`` of each,
                        and `arguments`, whose last text is the option. Recognised by these names;
                        the task stands in the name of the file
Inspect                 ``.eval`` logs of multiple choice, by Inspect's own reader (`inspect_logs`)
any other               one object a line; `scores` and `answer` name what holds the list of scores
                        (or an object of position and score) and the right option
======================  ============================================================================

A name may be a path into objects, as in ``doc.subject``. What cannot be read says file and line.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..._utils.atomic_files import StrPath
from ..._utils.formatting import format_count
from ..._utils.statements import Statement
from ..._validation.arguments import clean_by
from ..._validation.choice_sets import default_positions
from ..._validation.predictions import Predictions
from ...exceptions import DataLocation, FileFormatError, InputError
from .inspect_logs import read_samples
from .json_lines import parse_lines

INSPECT_ENDING = ".eval"
HARNESS_FIELDS = ("target", "filtered_resps", "doc_id")
"""What a line of lm-evaluation-harness has."""
_HARNESS_NAME = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+\.jsonl")


@dataclass(frozen=True)
class _Row:
    """One question: scores by position, what is right, its subgroup, and where it stands."""

    scores: Mapping[Hashable, float | None]
    lengths: Mapping[Hashable, int] | None
    answer: Any
    by: Any
    place: str


def is_choice_path(path: StrPath) -> bool:
    """Whether a path is a file of JSON lines, or a directory that holds some and no other table."""
    if Path(path).is_dir():
        names = [file for file in Path(path).iterdir() if file.is_file()]
        return any(name.suffix == ".jsonl" for name in names)
    return Path(path).suffix in (".jsonl", INSPECT_ENDING)


def read_choices(
    path: StrPath | Sequence[StrPath],
    *,
    scores: str | None = None,
    answer: str | None = None,
    by: str | None = None,
    kind: str | None = None,
    per_character: bool = False,
) -> Predictions:
    r"""Read choice sets from JSON lines, logs of lm-evaluation-harness and of Inspect among them.

    Parameters
    ----------
    path : path-like or sequence of path-like
        A file, files, or a directory of them (``*.jsonl``, in order of their names). Logs of
        Inspect, ``.eval``, are named one by one, and read by its package.
    scores, answer : str, optional
        What holds the scores of a line's options, a list or an object of position and score, and
        its right option: a place counted from 0, or a position. Not given for logged samples of
        lm-evaluation-harness.
    by : str, optional
        What holds the subgroup of a line, such as ``doc.subject``. Default: the task, where samples
        of several tasks are read.
    kind : {"log_likelihoods", "logits", "probs"}, optional
        What scores are; log likelihoods in logged samples.
    per_character : bool
        Divide the log likelihoods of logged samples by the options' number of characters.

    Returns
    -------
    Predictions
        Choice sets.

    Raises
    ------
    FileFormatError
        When a line cannot be read; the message has the file and the line.
    InputError
        When scores or an answer break a rule.

    See Also
    --------
    assess_choices : Judges them.
    Predictions.from_choices : The same of lists and arrays.
    read_predictions : Tables of probabilities of classes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "questions.jsonl"
    ...     _ = path.write_text('{"logprobs": [-0.2, -1.9], "key": 0}\n' * 3)
    ...     read_choices(path, scores="logprobs", answer="key", kind="log_likelihoods")
    Predictions(n_samples=3, positions=('A', 'B'), options=(2, 2))
    """
    files = _find_files(path)
    rows: list[_Row] = []
    tasks = []
    n_left_out = 0
    is_harness = scores is None and answer is None
    is_inspect = is_harness and all(file.suffix == INSPECT_ENDING for file in files)
    for file in files:
        if is_inspect:
            own, names_of_tasks = _read_inspect_file(file, by)
            tasks += names_of_tasks
        elif file.suffix == INSPECT_ENDING:
            raise InputError(
                "logs of Inspect must be read by themselves, without {scores} and {answer}.",
                argument="path",
                values={},
            )
        elif is_harness:
            own, n_other = _read_harness_file(file, by, per_character)
            n_left_out += n_other
            tasks += [_task_name(file)] * len(own)
        else:
            own = _read_generic_file(file, scores, answer, by)
        rows += own
    if not rows:
        raise FileFormatError(f"{files[0]} must hold at least one line; it is empty.")
    if is_inspect:
        kind = "probs"
    elif is_harness:
        kind = kind or "log_likelihoods"
    if per_character and (is_inspect or not is_harness):
        raise InputError(
            argument="per_character",
            rule="go with logged samples of lm-evaluation-harness",
            found="another file",
        )
    predictions = _predictions_of_rows(rows, kind or "")
    names: list[Any] = [row.by for row in rows]
    column = by
    if by is None and len(set(tasks)) > 1:
        names = tasks
        column = "task"
    if column is not None:
        predictions = replace(
            predictions, by=clean_by(names, predictions.n_samples, column)
        )
    notes = _notes(n_left_out)
    return replace(predictions, notes=notes)


def _notes(n_left_out: int) -> tuple[Statement, ...]:
    """Return what was left out."""
    if not n_left_out:
        return ()
    words = f"{format_count(n_left_out)} lines of other filters were left out."
    return (Statement("note.filters", words, numbers={"n_lines": n_left_out}),)


def _find_files(path: StrPath | Sequence[StrPath]) -> list[Path]:
    """Return the files, those of directories in order of their names."""
    is_single = isinstance(path, (str, Path)) or not isinstance(path, Sequence)
    paths: Sequence[Any] = [path] if is_single else path  # type: ignore[assignment]
    files: list[Path] = []
    for each in map(Path, paths):
        if each.is_dir():
            found = sorted(each.glob("*.jsonl"))
            if not found:
                raise FileFormatError(f"{each} must hold *.jsonl files; it has none.")
            files += found
        else:
            files.append(each)
    if not files:
        raise InputError(argument="path", rule="name at least one file", found="none")
    return files


def _read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line's place and its object."""
    try:
        with file.open(encoding="utf-8") as lines:
            for number, content in parse_lines(lines, str(file)):
                yield f"{file} line {number}", content
    except UnicodeDecodeError:
        raise FileFormatError(f"{file} must be UTF-8 text.") from None
    except OSError as error:
        raise FileFormatError(
            f"{file} cannot be opened: {error.strerror or error}."
        ) from None


def _look_up(content: dict[str, Any], name: str, place: str) -> Any:
    """Return what a name, or a path of names, stands for in a line."""
    found: Any = content
    if name in content:
        return content[name]
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            has = ", ".join(map(str, list(content)[:8]))
            raise FileFormatError(f"{place} has no {name!r}; it has {has}.")
        found = found[part]
    return found


def _read_generic_file(
    file: Path, scores: str | None, answer: str | None, by: str | None
) -> list[_Row]:
    """Return the rows of any file of JSON lines."""
    if scores is None or answer is None:
        raise InputError(
            "{scores} and {answer} must both be given.", argument="scores", values={}
        )
    rows = []
    for place, content in _read_lines(file):
        found = _look_up(content, scores, place)
        if isinstance(found, list):
            found = dict(zip(default_positions(len(found)), found, strict=True))
        if not isinstance(found, dict) or not all(map(_is_score, found.values())):
            raise FileFormatError(
                f"{place}: {scores!r} must be a list of numbers, or an object of position and "
                "number."
            )
        name = None if by is None else _look_up(content, by, place)
        right = _look_up(content, answer, place)
        rows.append(_Row(found, None, right, name, place))
    return rows


def _is_score(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or is_number


def _read_inspect_file(file: Path, by: str | None) -> tuple[list[_Row], list[str]]:
    """Return the rows of a log of Inspect, and the task of each; `by` is of its metadata."""
    rows = []
    tasks = []
    for place, scores, right, metadata, task in read_samples(file):
        name = None if by is None else _look_up(metadata, by, place)
        by_position: dict[Hashable, float | None] = dict(scores.items())
        rows.append(_Row(by_position, None, right, name, place))
        tasks.append(task)
    return rows, tasks


def _read_harness_file(
    file: Path, by: str | None, per_character: bool
) -> tuple[list[_Row], int]:
    """Return the rows of logged samples, and the number of lines of other filters."""
    rows = []
    n_other = 0
    first_filter = None
    for place, content in _read_lines(file):
        missing = [name for name in HARNESS_FIELDS if name not in content]
        if missing:
            raise FileFormatError(
                f"{place} has no {missing[0]!r}, so it is no logged sample of "
                "lm-evaluation-harness.",
                remedy="Name what holds {scores} and {answer} of other files.",
                values={},
            )
        first_filter = first_filter or content.get("filter")
        if content.get("filter") != first_filter:
            n_other += 1
            continue
        values = _harness_scores(content["filtered_resps"], place)
        positions = default_positions(len(values))
        lengths = None
        if per_character:
            found = _harness_lengths(content, len(values), place)
            lengths = dict(zip(positions, found, strict=True))
        try:
            right = int(content["target"])
        except (TypeError, ValueError):
            raise FileFormatError(
                f"{place}: 'target' must be the place of the right option; it is "
                f"{content['target']!r}."
            ) from None
        name = None if by is None else _look_up(content, by, place)
        scores = dict(zip(positions, values, strict=True))
        rows.append(_Row(scores, lengths, right, name, place))
    return rows, n_other


def _harness_scores(responses: Any, place: str) -> list[float]:
    """Return the log likelihoods: the first of each pair, which the harness writes as text."""
    try:
        values = [float(response[0]) for response in responses]
        are_pairs = all(len(response) == 2 for response in responses)
    except (TypeError, ValueError, IndexError):
        are_pairs = False
    if not are_pairs:
        raise FileFormatError(
            f"{place}: 'filtered_resps' must hold [log likelihood, is greedy] for each option; "
            "samples of generated text have no probabilities of options."
        )
    return values


def _harness_lengths(content: dict[str, Any], n_options: int, place: str) -> list[int]:
    """Return the options' numbers of characters: of the last argument of each request."""
    requests = content.get("arguments")
    texts: list[str] = []
    if isinstance(requests, dict):
        last_arguments = [list(request.values())[-1] for request in requests.values()]
        texts = [str(text).strip() for text in last_arguments[:n_options]]
    if len(texts) != n_options:
        raise FileFormatError(
            f"{place}: 'arguments' must hold the text of each option, whose characters are counted."
        )
    return [len(text) for text in texts]


def _task_name(file: Path) -> str:
    """Return the task that a file of logged samples is named for.

    Examples
    --------
    >>> _task_name(Path("samples_mmlu_law_2026-11-01T10-22-33.123456.jsonl"))
    'mmlu_law'
    """
    found = _HARNESS_NAME.fullmatch(file.name)
    return found["task"] if found else file.stem.removeprefix("samples_")


def _predictions_of_rows(rows: list[_Row], kind: str) -> Predictions:
    """Return rows as choice sets; what breaks a rule is told with its file and line."""
    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    usual = default_positions(len(names))
    positions = list(usual) if set(names) <= set(usual) else sorted(names, key=str)
    scores = [[row.scores.get(name) for name in positions] for row in rows]
    lengths = None
    if rows[0].lengths is not None:
        lengths = [
            [(row.lengths or {}).get(name, 1) for name in positions] for row in rows
        ]
    answers = [_answer(row, positions) for row in rows]
    try:
        return Predictions.from_choices(
            scores, answers, kind=kind, positions=positions, lengths=lengths
        )
    except InputError as error:
        if error.row is None:
            raise
        place = rows[error.row].place
        raise error.but(place=DataLocation(place, {"row": place}, {})) from None


def _answer(row: _Row, positions: Sequence[Hashable]) -> Any:
    """Return the right option as a position; texts of numbers are places."""
    answer = row.answer
    if isinstance(answer, str) and answer not in positions and answer.isdecimal():
        answer = int(answer)
    is_place = isinstance(answer, int) and answer not in positions
    if is_place and 0 <= answer < len(row.scores):
        return list(row.scores)[answer]
    return answer
