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

from .._utils.optional import SQL_EXTRA, needed
from .._version import __version__
from ..exceptions import InputError
from ._programs import ExportError, Program, ProgramStep, refuse_trees

DIALECTS = ("duckdb", "sqlite", "postgres", "bigquery", "snowflake", "spark")
MATERIALIZING_DIALECTS = ("postgres", "sqlite")
MIN_EXPONENT = -700.0
"""Exponents below which ``EXP`` is 0."""
MIN_PRODUCT = 2.3e-308
"""Size below which a product is 0: PostgreSQL refuses to round to 0."""
MAX_POSTGRES_NAME_BYTES = 63
"""Bytes of a name that PostgreSQL looks at."""
MAX_TERMS = 40
"""Terms that are added or compared in one expression: SQLite limits its depth and arguments."""


class Query:
    """A chain of common table expressions, each with the columns that are still needed."""

    def __init__(self, keep: Sequence[str], stem: str, dialect: str) -> None:
        self.exp = needed("sqlglot", SQL_EXTRA).exp
        self.keep, self.stem = list(keep), stem
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
            groups = [terms[k : k + MAX_TERMS] for k in range(0, len(terms), MAX_TERMS)]
            terms = [self.exp.paren(self.total(group)) for group in groups]
        made = terms[0]
        for term in terms[1:]:
            made = self.exp.Add(this=made, expression=term)
        return made

    def extreme(self, kind: Any, terms: Sequence[Any]) -> Any:
        """Return GREATEST or LEAST, in groups where there are many."""
        while len(terms) > MAX_TERMS:
            groups = [terms[k : k + MAX_TERMS] for k in range(0, len(terms), MAX_TERMS)]
            terms = [self.extreme(kind, group) for group in groups]
        if len(terms) == 1:
            return terms[0]
        return kind(this=terms[0], expressions=list(terms[1:]), ignore_nulls=self.ignores_nulls)

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
        zero = self.number(0.0)
        return self.when((x < self.number(MIN_EXPONENT), zero), other=self.exp.Exp(this=x.copy()))

    def product(self, x: Any, weight: float) -> Any:
        """Return ``weight x``, 0 where rounding would make it so."""
        made = x * self.number(weight)
        if abs(weight) >= 1.0:
            return made
        least = MIN_PRODUCT / max(abs(weight), MIN_PRODUCT)
        tiny = self.exp.Abs(this=x.copy()) < self.number(least)
        return self.when((tiny, self.number(0.0)), other=made)

    def if_whole(self, x: Any) -> Any:
        """Return x, NULL in rows with a gap."""
        gap = self.exp.Is(this=self.column(self.whole), expression=self.exp.null())
        return self.when((gap, self.exp.null()), other=x)

    # stages

    def stage(self, name: str, columns: Sequence[Any], later: Sequence[str]) -> list[Any]:
        """Add an expression of new columns `name`; keep those of `later`; return the new ones."""
        made = [f"{name}_{j}" for j in range(len(columns))]
        self.live = {k: v for k, v in self.live.items() if k in later}
        kept = [*self.keep, *(column for group in self.live.values() for column in group)]
        kept += [self.whole] if self.stages else []  # the first stage makes it
        select = self.exp.select(
            *(self.column(column) for column in kept),
            *(
                self.exp.alias_(column, alias, quoted=True)
                for column, alias in zip(columns, made, strict=True)
            ),
            copy=False,
        )
        self.stages.append(select)
        self.names.append(name)
        self.live[name] = made
        return [self.column(column) for column in made]


class Steps:
    """The rules of the steps: from columns to columns, through stages where a row is summed."""

    def __init__(self, query: Query, n_classes: int) -> None:
        self.query, self.exp, self.n_classes = query, query.exp, n_classes

    def unit(self, x: list[Any], row: Any, tolerance: float) -> list[Any]:
        q = self.query
        total = row(q.total(x))
        if tolerance >= 0.0:
            off = self.exp.Abs(this=total - q.number(1.0)) > q.number(tolerance)
            total = self.exp.paren(q.when((off, total.copy()), other=q.number(1.0)))
        return [q.ratio(a, total.copy()) for a in x]

    def floor(self, x: list[Any], row: Any, floor: float, every: bool) -> list[Any]:
        q, least = self.query, self.query.number(floor)
        lowest = q.extreme(self.exp.Least, x)
        touched = lowest < least if every else self.exp.LTE(this=lowest, expression=q.number(0.0))
        raised = [q.extreme(self.exp.Greatest, [a.copy(), least.copy()]) for a in x]
        total = row(q.when((touched, q.total(raised)), other=q.number(0.0)))
        some = total > q.number(0.0)
        return [
            q.when((some.copy(), q.ratio(up.copy(), total.copy())), other=a.copy())
            for a, up in zip(x, raised, strict=True)
        ]

    def clamp(self, x: list[Any], row: Any, low: float, high: float) -> list[Any]:
        q = self.query
        up = [q.extreme(self.exp.Greatest, [a, q.number(low)]) for a in x]
        return [q.extreme(self.exp.Least, [a, q.number(high)]) for a in up]

    def log(self, x: list[Any], row: Any) -> list[Any]:
        return [self.exp.Ln(this=a) for a in x]

    def log1m(self, x: list[Any], row: Any) -> list[Any]:
        return [self.exp.Ln(this=self.query.number(1.0) - a) for a in x]

    def exp_(self, x: list[Any], row: Any) -> list[Any]:
        return [self.query.power(a) for a in x]

    def log_logistic(self, x: list[Any], row: Any) -> list[Any]:
        q, made = self.query, []
        for a in x:
            small = q.power(self.exp.Neg(this=self.exp.Abs(this=a.copy())))
            log = self.exp.Ln(this=q.number(1.0) + self.exp.paren(small))
            made.append(q.extreme(self.exp.Least, [a, q.number(0.0)]) - log)
        return made

    def softmax(self, x: list[Any], row: Any) -> list[Any]:
        q = self.query
        e = row([q.power(a) for a in self.minus_top(x, row)])
        total = row(q.total(e))
        return [q.ratio(a, total.copy()) for a in e]

    def log_softmax(self, x: list[Any], row: Any) -> list[Any]:
        q = self.query
        gaps = row(self.minus_top(x, row))
        log = row(self.exp.Ln(this=q.total([self.exp.paren(q.power(a.copy())) for a in gaps])))
        return [a.copy() - log.copy() for a in gaps]

    def minus(self, x: list[Any], row: Any, entry: int) -> list[Any]:
        return [a - x[entry].copy() for a in x]

    def minus_top(self, x: list[Any], row: Any) -> list[Any]:
        top = row(self.query.extreme(self.exp.Greatest, x))
        return [a - top.copy() for a in x]

    def take(self, x: list[Any], row: Any, index: list[int]) -> list[Any]:
        return [x[k].copy() for k in index]

    def scale(self, x: list[Any], row: Any, weight: Any, shift: Any) -> list[Any]:
        q, made = self.query, []
        for a, w, s in zip(x, weight, shift, strict=True):
            one = a if w == 1.0 else q.product(a, w) if s == 0.0 else a * q.number(w)
            made.append(one if s == 0.0 else one + q.number(s))
        return made

    def matrix(self, x: list[Any], row: Any, weight: Any, shift: Any) -> list[Any]:
        q, made = self.query, []
        for weights, s in zip(weight, shift, strict=True):
            terms = [a.copy() * q.number(w) for a, w in zip(x, weights, strict=True) if w != 0.0]
            terms += [q.number(s)] if s != 0.0 or not terms else []
            made.append(q.total(terms))
        return made

    def add(self, *given: Any) -> list[Any]:
        vectors = given[:-1]  # no stage is needed
        return [self.query.total(list(terms)) for terms in zip(*vectors, strict=True)]

    def steps(self, x: list[Any], row: Any, edges: list[Any], table: list[Any]) -> list[Any]:
        q, made = self.query, []
        for a, edge, answer in zip(x, edges, table, strict=True):
            values = [a.copy() if np.isnan(value) else q.number(value) for value in answer]
            cases = [
                (self.exp.LTE(this=a.copy(), expression=q.number(e)), value)
                for e, value in zip(edge, values, strict=False)
            ]
            made.append(q.when(*cases, other=values[-1]) if cases else values[-1])
        return made

    def lines(self, x: list[Any], row: Any, at: list[Any], value: list[Any]) -> list[Any]:
        q, made = self.query, []
        for a, place, height in zip(x, at, value, strict=True):
            first = (
                self.exp.LTE(this=a.copy(), expression=q.number(place[0])),
                q.number(height[0]),
            )
            cases = [first]
            for k in range(1, len(place)):
                line = q.number(height[k - 1])
                if height[k] != height[k - 1]:
                    rise = self.exp.paren(a.copy() - q.number(place[k - 1]))
                    part = q.ratio(rise, q.number(place[k] - place[k - 1]))
                    line = line + part * q.number(height[k] - height[k - 1])
                cases.append((a.copy() < q.number(place[k]), line))
            made.append(q.when(*cases, other=q.number(height[-1])))
        return made

    def share(
        self, x: list[Any], p: list[Any], row: Any, present: list[int], even: bool, least: float
    ) -> list[Any]:
        q, made = self.query, [a.copy() for a in p]
        whole = len(present) == self.n_classes
        sums = [q.total(x)] if whole else [q.total(x), q.total([p[k] for k in present])]
        total, *shared = row(sums)
        some = total > q.number(least)
        for a, k in zip(x, present, strict=True):
            own = q.ratio(a, total.copy())
            instead = p[k].copy()
            if even:
                instead = q.number(1.0 / len(present))
            if not whole:
                tiny = self.exp.or_(own.copy() < q.number(1e-150), shared[0] < q.number(1e-150))
                own = q.when((tiny, q.number(0.0)), other=own * shared[0].copy())
                instead = shared[0] * q.number(1.0 / len(present)) if even else instead
            made[k] = q.when((some.copy(), own), other=instead)
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
    while any(re.match(rf"{stem}_(\d|row)", name, re.IGNORECASE) for name in (table, *keep)):
        stem += "_"
    query = Query(keep, stem, dialect)
    exp = query.exp
    _run(query, program, names)
    last = f"{stem}_{len(program.steps) - 1}"
    final = exp.select(
        *(query.column(name) for name in keep),
        *(
            exp.alias_(query.if_whole(query.column(f"{last}_{j}")), name, quoted=True)
            for j, name in enumerate(names)
        ),
    ).from_(query.names[-1])
    source = exp.to_table(table, dialect=dialect)
    for name, stage in zip(query.names, query.stages, strict=True):
        select = stage.from_(source, copy=False)
        again = dialect in MATERIALIZING_DIALECTS
        final = final.with_(name, as_=select, materialized=True if again else None, copy=False)
        source = exp.to_table(name)
    told = f"-- mcllo {__version__}: {program.method}, {len(names)} classes, {dialect}\n"
    return told + final.sql(dialect=dialect, pretty=True) + "\n"


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


def check_names(columns: list[str], keep: Sequence[str], dialect: str, table: str) -> None:
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
        return name.encode()[:MAX_POSTGRES_NAME_BYTES].decode(errors="ignore")
    if dialect == "snowflake":
        return name
    if dialect in ("bigquery", "spark"):
        return name.lower()
    return "".join(a.lower() if a.isascii() else a for a in name)


def _run(query: Query, program: Program, columns: list[str]) -> None:
    """Add the stages of all steps."""
    rules = Steps(query, len(program.classes))
    made: list[list[Any]] = []
    last_use = _last_uses(program)
    for k, step in enumerate(program.steps):
        needed_later = [f"{query.stem}_{j}" for j in range(k) if last_use[j] > k]
        mine = [f"{query.stem}_{j}" for j in step.of]
        if step.op == "input":
            double = query.exp.DataType.build("double")
            new = [query.exp.Cast(this=query.column(name), to=double.copy()) for name in columns]
        else:
            new = _apply(query, rules, k, step, made, [*needed_later, *mine])
        made.append(query.stage(f"{query.stem}_{k}", new, needed_later))
        if step.op == "input":
            total = query.total([a.copy() for a in new])
            whole = query.exp.alias_(total, query.whole, quoted=True)
            query.stages[0].select(whole, append=True, copy=False)


def _apply(
    query: Query, rules: Steps, k: int, step: ProgramStep, made: list[list[Any]], live: list[str]
) -> list[Any]:
    """Return the expressions of a step, after whatever stages it needs."""
    parts: list[str] = []

    def row(value: Any) -> Any:
        """Put an expression, or several, into a stage of its own; return columns."""
        several = isinstance(value, list)
        parts.append(f"{query.stem}_{k}_{'abcdef'[len(parts)]}")
        found = query.stage(parts[-1], value if several else [value], [*live, *parts])
        return found if several else found[0]

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
