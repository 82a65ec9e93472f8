"""The target "sql": one SELECT over a table with a column for each class, in six dialects.

====================  ==========================================================================
a step                a common table expression of the columns that it makes, and of those that
                      later steps need; named ``mcllo_3`` after its place
a gap                 a NULL in a row makes its whole answer NULL: ``mcllo_row``, the sum of what
                      was given, is carried along and asked at the end
names                 columns that a database takes for one, or cannot have, are refused
stable                the largest score is taken off before ``EXP``; below ``EXP(-700)`` it is 0,
                      because PostgreSQL refuses to round to 0
numbers               written with an exponent, so that no dialect takes them for decimals
MATERIALIZED          in PostgreSQL and SQLite, which else write the same expression again for
                      each use of its column
====================  ==========================================================================

The query is built once; sqlglot writes the dialects. DuckDB, SQLite and PostgreSQL are run in the
tests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._utils.optional import SQL_EXTRA, import_optional
from .._version import __version__
from ..exceptions import InputError
from ._programs import ExportError, Program, ProgramStep, refuse_trees

DIALECTS = ("duckdb", "sqlite", "postgres", "bigquery", "snowflake", "spark")
MATERIALIZING_DIALECTS = ("postgres", "sqlite")
MAX_TERMS = 40
"""Terms that are added or compared in one expression.

SQLite limits the depth and the arguments of one; a round number below.
"""


class Query:
    """A chain of common table expressions, each with the columns that are still needed."""

    def __init__(self, keep: Sequence[str], stem: str, dialect: str) -> None:
        self.exp = import_optional("sqlglot", SQL_EXTRA).exp
        self.keep = list(keep)
        self.stem = stem
        self.whole = f"{stem}_row"
        # as each database means GREATEST by itself, so that sqlglot writes nothing around it
        self.ignores_nulls = dialect == "duckdb"
        self.stages: list[Any] = []
        self.live: dict[str, list[str]] = {}
        self.names: list[str] = []

    # expressions

    def number(self, value: float) -> Any:
        """Return a literal that keeps every bit and is a float everywhere."""
        text = repr(abs(float(value)))
        literal = self.exp.Literal.number(text if "e" in text else f"{text}e0")
        return self.exp.Neg(this=literal) if value < 0.0 else literal

    def column(self, name: str) -> Any:
        """Return a column."""
        return self.exp.column(name, quoted=True)

    def total(self, terms: Sequence[Any]) -> Any:
        """Return a sum, in groups where it is long."""
        while len(terms) > MAX_TERMS:
            terms = [self.exp.paren(self.total(group)) for group in in_groups(terms)]
        made = terms[0]
        for term in terms[1:]:
            made = self.exp.Add(this=made, expression=term)
        return made

    def extreme(self, kind: Any, terms: Sequence[Any]) -> Any:
        """Return GREATEST or LEAST, in groups where there are many."""
        while len(terms) > MAX_TERMS:
            terms = [self.extreme(kind, group) for group in in_groups(terms)]
        first, *others = terms
        if not others:
            return first
        return kind(this=first, expressions=others, ignore_nulls=self.ignores_nulls)

    def larger(self, *terms: Any) -> Any:
        """Return the largest of some expressions."""
        return self.extreme(self.exp.Greatest, terms)

    def smaller(self, *terms: Any) -> Any:
        """Return the smallest of some expressions."""
        return self.extreme(self.exp.Least, terms)

    def at_most(self, x: Any, limit: float) -> Any:
        """Return ``x <= limit``."""
        return self.exp.LTE(this=x, expression=self.number(limit))

    def log(self, x: Any) -> Any:
        """Return ``LN(x)``."""
        return self.exp.Ln(this=x)

    def size(self, x: Any) -> Any:
        """Return ``ABS(x)``."""
        return self.exp.Abs(this=x)

    def ratio(self, x: Any, y: Any) -> Any:
        """Return ``x / y`` of floats."""
        return self.exp.Div(this=x, expression=y, typed=True, safe=False)

    def when(self, *cases: tuple[Any, Any], other: Any) -> Any:
        """Return CASE WHEN .. THEN .. ELSE .. END."""
        made = self.exp.Case()
        for condition, value in cases:
            made = made.when(condition, value, copy=False)
        return made.else_(other, copy=False)

    def power(self, x: Any) -> Any:
        """Return ``EXP(x)`` of an x that is at most 0."""
        is_tiny = x < self.number(-700.0)  # PostgreSQL refuses what it rounds to 0
        return self.when((is_tiny, self.number(0.0)), other=self.exp.Exp(this=x.copy()))

    def product(self, x: Any, weight: float) -> Any:
        """Return ``weight x``, 0 where rounding would make it so."""
        made = x * self.number(weight)
        if abs(weight) >= 1.0:
            return made
        smallest = 2.3e-308  # of normal numbers; PostgreSQL refuses to round to 0
        least = smallest / max(abs(weight), smallest)
        is_tiny = self.size(x.copy()) < self.number(least)
        return self.when((is_tiny, self.number(0.0)), other=made)

    def if_whole(self, x: Any) -> Any:
        """Return x, NULL in rows with a gap."""
        gap = self.exp.Is(this=self.column(self.whole), expression=self.exp.null())
        return self.when((gap, self.exp.null()), other=x)

    # stages

    def stage(
        self, name: str, columns: Sequence[Any], later: Sequence[str]
    ) -> list[Any]:
        """Add an expression of new columns `name`; keep those of `later`; return the new ones."""
        made = [f"{name}_{j}" for j in range(len(columns))]
        self.live = {stage: own for stage, own in self.live.items() if stage in later}
        kept = list(self.keep)
        for own in self.live.values():
            kept += own
        if self.stages:  # the first one makes it
            kept.append(self.whole)
        selected = [self.column(column) for column in kept]
        for column, alias in zip(columns, made, strict=True):
            selected.append(self.exp.alias_(column, alias, quoted=True))
        select = self.exp.select(*selected, copy=False)
        self.stages.append(select)
        self.names.append(name)
        self.live[name] = made
        return [self.column(column) for column in made]


def in_groups(terms: Sequence[Any]) -> list[Sequence[Any]]:
    """Return expressions in groups of which none is too long."""
    return [terms[k : k + MAX_TERMS] for k in range(0, len(terms), MAX_TERMS)]


class Steps:
    """The rules of the steps: from columns to columns.

    `row` puts what is needed more than once in a row, as its sum is, into a stage of its own, and
    returns columns. An expression stands in one place only, so that a second use is a copy.
    """

    def __init__(self, query: Query, n_classes: int) -> None:
        self.query = query
        self.exp = query.exp
        self.n_classes = n_classes

    def unit(self, x: list[Any], row: Any, tolerance: float) -> list[Any]:
        q = self.query
        total = row(q.total(x))
        if tolerance >= 0.0:
            is_off = q.size(total - q.number(1.0)) > q.number(tolerance)
            divisor = q.when((is_off, total.copy()), other=q.number(1.0))
            total = self.exp.paren(divisor)
        return [q.ratio(a, total.copy()) for a in x]

    def floor(self, x: list[Any], row: Any, floor: float, every: bool) -> list[Any]:
        q = self.query
        lowest = q.smaller(*x)
        is_low = lowest < q.number(floor) if every else q.at_most(lowest, 0.0)
        raised = [q.larger(a.copy(), q.number(floor)) for a in x]
        total = row(
            q.when((is_low, q.total(raised)), other=q.number(0.0))
        )  # 0: left alone
        has_total = total > q.number(0.0)
        made = []
        for a, up in zip(x, raised, strict=True):
            ratio = q.ratio(up.copy(), total.copy())
            made.append(q.when((has_total.copy(), ratio), other=a.copy()))
        return made

    def clamp(self, x: list[Any], row: Any, low: float, high: float) -> list[Any]:
        q = self.query
        raised = [q.larger(a, q.number(low)) for a in x]
        return [q.smaller(a, q.number(high)) for a in raised]

    def log(self, x: list[Any], row: Any) -> list[Any]:
        return [self.query.log(a) for a in x]

    def log1m(self, x: list[Any], row: Any) -> list[Any]:
        return [self.query.log(self.query.number(1.0) - a) for a in x]

    def exp_(self, x: list[Any], row: Any) -> list[Any]:
        return [self.query.power(a) for a in x]

    def log_logistic(self, x: list[Any], row: Any) -> list[Any]:
        q = self.query
        made = []
        for a in x:
            # min(a, 0) - log(1 + exp(-|a|)): the exponential never overflows
            small = q.power(self.exp.Neg(this=q.size(a.copy())))
            log = q.log(q.number(1.0) + self.exp.paren(small))
            made.append(q.smaller(a, q.number(0.0)) - log)
        return made

    def softmax(self, x: list[Any], row: Any) -> list[Any]:
        q = self.query
        gaps = self.minus_top(x, row)
        e = row([q.power(a) for a in gaps])
        total = row(q.total(e))
        return [q.ratio(a, total.copy()) for a in e]

    def log_softmax(self, x: list[Any], row: Any) -> list[Any]:
        q = self.query
        gaps = row(self.minus_top(x, row))
        e = [self.exp.paren(q.power(a.copy())) for a in gaps]
        log = row(q.log(q.total(e)))
        return [a.copy() - log.copy() for a in gaps]

    def minus(self, x: list[Any], row: Any, entry: int) -> list[Any]:
        return [a - x[entry].copy() for a in x]

    def minus_top(self, x: list[Any], row: Any) -> list[Any]:
        top = row(self.query.larger(*x))
        return [a - top.copy() for a in x]

    def take(self, x: list[Any], row: Any, index: list[int]) -> list[Any]:
        return [x[k].copy() for k in index]

    def scale(self, x: list[Any], row: Any, weight: Any, shift: Any) -> list[Any]:
        q = self.query
        made = []
        for a, w, s in zip(x, weight, shift, strict=True):
            scaled = a
            if w != 1.0:  # with a shift, what is rounded to 0 is not the answer
                scaled = q.product(a, w) if s == 0.0 else a * q.number(w)
            made.append(scaled if s == 0.0 else scaled + q.number(s))
        return made

    def matrix(self, x: list[Any], row: Any, weight: Any, shift: Any) -> list[Any]:
        q = self.query
        made = []
        for weights, s in zip(weight, shift, strict=True):
            terms = []
            for a, w in zip(x, weights, strict=True):
                if w != 0.0:
                    terms.append(a.copy() * q.number(w))
            if s != 0.0 or not terms:
                terms.append(q.number(s))
            made.append(q.total(terms))
        return made

    def add(self, *given: Any) -> list[Any]:
        vectors = given[:-1]  # no stage is needed
        return [self.query.total(list(terms)) for terms in zip(*vectors, strict=True)]

    def steps(
        self, x: list[Any], row: Any, edges: list[Any], table: list[Any]
    ) -> list[Any]:
        q = self.query
        made = []
        for a, edge, answer in zip(x, edges, table, strict=True):
            values = [
                a.copy() if np.isnan(value) else q.number(value) for value in answer
            ]
            cases = []
            for k, e in enumerate(edge):
                cases.append((q.at_most(a.copy(), e), values[k]))
            made.append(q.when(*cases, other=values[-1]) if cases else values[-1])
        return made

    def lines(
        self, x: list[Any], row: Any, at: list[Any], value: list[Any]
    ) -> list[Any]:
        q = self.query
        made = []
        for a, place, height in zip(x, at, value, strict=True):
            cases = [(q.at_most(a.copy(), place[0]), q.number(height[0]))]
            # CASE takes the first line whose end is to the right
            for k in range(1, len(place)):
                line = q.number(height[k - 1])
                rise = height[k] - height[k - 1]
                if rise != 0.0:
                    past = self.exp.paren(a.copy() - q.number(place[k - 1]))
                    part = q.ratio(past, q.number(place[k] - place[k - 1]))
                    line = line + part * q.number(rise)
                cases.append((a.copy() < q.number(place[k]), line))
            made.append(q.when(*cases, other=q.number(height[-1])))
        return made

    def share(
        self,
        x: list[Any],
        p: list[Any],
        row: Any,
        present: list[int],
        even: bool,
        least: float,
    ) -> list[Any]:
        q = self.query
        even_share = q.number(1.0 / len(present))
        made = [a.copy() for a in p]
        if len(present) == self.n_classes:
            total = row(q.total(x))
            has_answer = total > q.number(least)
            for k, a in enumerate(x):
                instead = even_share.copy() if even else p[k].copy()
                answer = q.ratio(a, total.copy())
                made[k] = q.when((has_answer.copy(), answer), other=instead)
            return made
        kept = [p[k] for k in present]
        total, shared = row([q.total(x), q.total(kept)])
        has_answer = total > q.number(least)
        for a, k in zip(x, present, strict=True):
            ratio = q.ratio(a, total.copy())
            # the product of two tiny numbers would be rounded to 0, which PostgreSQL refuses
            is_tiny = self.exp.or_(
                ratio.copy() < q.number(1e-150), shared < q.number(1e-150)
            )
            answer = q.when((is_tiny, q.number(0.0)), other=ratio * shared.copy())
            instead = shared * even_share.copy() if even else p[k].copy()
            made[k] = q.when((has_answer.copy(), answer), other=instead)
        return made


def write_sql(
    program: Program,
    *,
    dialect: str = "duckdb",
    table: str = "predictions",
    prefix: str = "",
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> str:
    """Return the query.

    Parameters
    ----------
    program : Program
        What it computes.
    dialect : {"duckdb", "sqlite", "postgres", "bigquery", "snowflake", "spark"}
        For which database.
    table : str
        The table, perhaps with its schema; it has a column for each class.
    prefix : str
        What stands before a class in its column's name.
    columns : sequence of str, optional
        Names of the columns in the order of the classes; by default prefix and class.
    keep : sequence of str
        Other columns to pass through, such as a key. Rows come in no order that SQL promises.
    """
    if any(step.op == "runs" for step in program.steps):
        raise ExportError(
            "the pignistic and plausible probabilities of xu_davoine add up all runs of classes in "
            "the order of each row's scores, at 64 places: thousands of terms for every class, and "
            "no plain SELECT sorts inside a row. Fit it with output='plug_in' for SQL, or export "
            "it to onnx, js, torch or python."
        )
    refuse_trees(program)
    names = column_names(program, prefix, columns)
    check_names(names, keep, dialect, table)
    stem = "mcllo"
    while any(
        re.match(rf"{stem}_(\d|row)", name, re.IGNORECASE) for name in (table, *keep)
    ):
        stem += "_"
    query = Query(keep, stem, dialect)
    exp = query.exp
    _run(query, program, names)
    last = f"{stem}_{len(program.steps) - 1}"
    selected = [query.column(name) for name in keep]
    for j, name in enumerate(names):
        answer = query.if_whole(query.column(f"{last}_{j}"))
        selected.append(exp.alias_(answer, name, quoted=True))
    final = exp.select(*selected).from_(query.names[-1])
    # else they write a stage again for each use of its columns, which multiplies along the chain
    materialized = True if dialect in MATERIALIZING_DIALECTS else None
    source = exp.to_table(table, dialect=dialect)
    for name, stage in zip(query.names, query.stages, strict=True):
        select = stage.from_(source, copy=False)
        final = final.with_(name, as_=select, materialized=materialized, copy=False)
        source = exp.to_table(name)
    title = (
        f"-- mcllo {__version__}: {program.method}, {len(names)} classes, {dialect}\n"
    )
    return title + final.sql(dialect=dialect, pretty=True) + "\n"


def column_names(
    program: Program, prefix: str = "", columns: Sequence[str] | None = None
) -> list[str]:
    """Return the name of each class's column."""
    if columns is None:
        return [f"{prefix}{label}" for label in program.classes]
    if isinstance(columns, str) or len(columns) != len(program.classes) or prefix:
        rule = f"name a column for each of the {len(program.classes)} classes, without prefix"
        raise InputError(argument="columns", rule=rule, value=columns)
    return [str(name) for name in columns]


def check_names(
    columns: list[str], keep: Sequence[str], dialect: str, table: str
) -> None:
    """Refuse a database that is not known, and names that it cannot have or takes for the same."""
    if dialect not in DIALECTS:
        known = ", ".join(map(repr, DIALECTS))
        raise InputError(argument="dialect", rule=f"be one of {known}", value=dialect)
    if not table.strip(' ."`'):
        raise InputError(argument="table", rule="name a table", value=table)
    seen: dict[str, str] = {}
    for place, name in enumerate((*columns, *keep)):
        if not name or "\0" in name:
            raise ExportError(
                f"a column must have a name, without the character 0; got {name!r}. Name the "
                "columns with columns=."
            )
        key = _fold_case(name, dialect)
        if key in seen and place >= len(columns):
            rule = "name columns that are no classes, each once"
            raise InputError(argument="keep", rule=rule, value=list(keep))
        if key in seen:
            raise ExportError(
                f"{dialect} takes the columns {seen[key]!r} and {name!r} for one; name the columns "
                "with columns=."
            )
        seen[key] = name


def _fold_case(name: str, dialect: str) -> str:
    """Return what a database compares of a quoted name."""
    if dialect == "postgres":
        return name.encode()[:63].decode(errors="ignore")  # bytes that it looks at
    if dialect == "snowflake":
        return name
    if dialect in ("bigquery", "spark"):
        return name.lower()
    # DuckDB and SQLite fold the letters of ASCII alone
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _run(query: Query, program: Program, columns: list[str]) -> None:
    """Add the stages of all steps."""
    rules = Steps(query, len(program.classes))
    made: list[list[Any]] = []
    last_use = _last_uses(program)
    for k, step in enumerate(program.steps):
        name = f"{query.stem}_{k}"
        needed_later = [f"{query.stem}_{j}" for j in range(k) if last_use[j] > k]
        if step.op == "input":
            made.append(_input(query, name, columns, needed_later))
            continue
        own = [f"{query.stem}_{j}" for j in step.of]
        answers = _apply(query, rules, name, step, made, [*needed_later, *own])
        made.append(query.stage(name, answers, needed_later))


def _input(query: Query, name: str, columns: list[str], later: list[str]) -> list[Any]:
    """Add the stage of the rows as they are given, as floats, with their sum."""
    exp = query.exp
    double = exp.DataType.build("double")
    given = [
        exp.Cast(this=query.column(column), to=double.copy()) for column in columns
    ]
    made = query.stage(name, given, later)
    # the sum is NULL where any number is; CASE would make an answer of the others
    total = query.total([a.copy() for a in given])
    whole = exp.alias_(total, query.whole, quoted=True)
    query.stages[-1].select(whole, append=True, copy=False)
    return made


def _apply(
    query: Query,
    rules: Steps,
    name: str,
    step: ProgramStep,
    made: list[list[Any]],
    live: list[str],
) -> list[Any]:
    """Return the expressions of a step, after whatever stages it needs."""
    parts: list[str] = []

    def row(value: Any) -> Any:
        """Put an expression, or several, into a stage of its own; return columns."""
        letter = "abcdef"[len(parts)]
        parts.append(f"{name}_{letter}")
        several = value if isinstance(value, list) else [value]
        columns = query.stage(parts[-1], several, [*live, *parts])
        return columns if isinstance(value, list) else columns[0]

    # sqlglot's expressions know their parent, so that each can stand in one place
    of = [[a.copy() for a in made[j]] for j in step.of]
    rule = getattr(rules, "exp_" if step.op == "exp" else step.op)
    return list(rule(*of, row, **step.numbers))


def _last_uses(program: Program) -> list[int]:
    """Return for each step the last one that takes its vector."""
    last = list(range(len(program.steps)))
    for k, step in enumerate(program.steps):
        for of in step.of:
            last[of] = k
    return last
