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
from ._programs import STEP_FUNCTIONS, ExportError, Program, ProgramStep, refuse_trees

DIALECTS = ("duckdb", "sqlite", "postgres", "bigquery", "snowflake", "spark")
MATERIALIZING_DIALECTS = ("postgres", "sqlite")
MAX_TERMS = 40
"""Terms that are added or compared in one expression.

SQLite limits the depth and the arguments of one; a round number below.
"""


class QueryBuilder:
    """A chain of common table expressions, each with the columns that are still needed."""

    def __init__(self, keep: Sequence[str], stem: str, dialect: str) -> None:
        self.exp = import_optional("sqlglot", SQL_EXTRA).exp
        self.keep = list(keep)
        self.stem = stem
        self.gap_marker = f"{stem}_row"
        # as each database means GREATEST by itself, so that sqlglot writes nothing around it
        self.ignores_nulls = dialect == "duckdb"
        self.stages: list[Any] = []
        self.live: dict[str, list[str]] = {}
        self.names: list[str] = []

    # expressions

    def float_literal(self, value: float) -> Any:
        """Return a literal that keeps every bit and is a float everywhere."""
        text = repr(abs(float(value)))
        literal = self.exp.Literal.number(text if "e" in text else f"{text}e0")
        return self.exp.Neg(this=literal) if value < 0.0 else literal

    def quoted_column(self, name: str) -> Any:
        """Return a column."""
        return self.exp.column(name, quoted=True)

    def sum_of(self, terms: Sequence[Any]) -> Any:
        """Return a sum, in groups where it is long."""
        while len(terms) > MAX_TERMS:
            terms = [
                self.exp.paren(self.sum_of(group)) for group in split_into_groups(terms)
            ]
        made = terms[0]
        for term in terms[1:]:
            made = self.exp.Add(this=made, expression=term)
        return made

    def greatest_or_least(self, function: Any, terms: Sequence[Any]) -> Any:
        """Return GREATEST or LEAST, in groups where there are many."""
        while len(terms) > MAX_TERMS:
            terms = [
                self.greatest_or_least(function, group)
                for group in split_into_groups(terms)
            ]
        first, *others = terms
        if not others:
            return first
        return function(this=first, expressions=others, ignore_nulls=self.ignores_nulls)

    def greatest(self, *terms: Any) -> Any:
        """Return the largest of some expressions."""
        return self.greatest_or_least(self.exp.Greatest, terms)

    def least(self, *terms: Any) -> Any:
        """Return the smallest of some expressions."""
        return self.greatest_or_least(self.exp.Least, terms)

    def is_at_most(self, x: Any, upper: float) -> Any:
        """Return ``x <= limit``."""
        return self.exp.LTE(this=x, expression=self.float_literal(upper))

    def natural_log(self, x: Any) -> Any:
        """Return ``LN(x)``."""
        return self.exp.Ln(this=x)

    def absolute(self, x: Any) -> Any:
        """Return ``ABS(x)``."""
        return self.exp.Abs(this=x)

    def divide(self, x: Any, y: Any) -> Any:
        """Return ``x / y`` of floats."""
        return self.exp.Div(this=x, expression=y, typed=True, safe=False)

    def case_when(self, *cases: tuple[Any, Any], other: Any) -> Any:
        """Return CASE WHEN .. THEN .. ELSE .. END."""
        made = self.exp.Case()
        for condition, value in cases:
            made = made.when(condition, value, copy=False)
        return made.else_(other, copy=False)

    def exp_of_nonpositive(self, x: Any) -> Any:
        """Return ``EXP(x)`` of an x that is at most 0."""
        # PostgreSQL refuses what it rounds to 0
        is_tiny = x < self.float_literal(-700.0)
        exp_x = self.exp.Exp(this=x.copy())
        return self.case_when((is_tiny, self.float_literal(0.0)), other=exp_x)

    def times_weight(self, x: Any, weight: float) -> Any:
        """Return ``weight x``, 0 where rounding would make it so."""
        made = x * self.float_literal(weight)
        if abs(weight) >= 1.0:
            return made
        smallest = 2.3e-308  # of normal numbers; PostgreSQL refuses to round to 0
        least = smallest / max(abs(weight), smallest)
        is_tiny = self.absolute(x.copy()) < self.float_literal(least)
        return self.case_when((is_tiny, self.float_literal(0.0)), other=made)

    def null_if_gap(self, value: Any) -> Any:
        """Return a value, NULL in rows with a gap."""
        row_sum = self.quoted_column(self.gap_marker)
        has_gap = self.exp.Is(this=row_sum, expression=self.exp.null())
        return self.case_when((has_gap, self.exp.null()), other=value)

    # stages

    def add_stage(
        self, name: str, expressions: Sequence[Any], needed_later: Sequence[str]
    ) -> list[Any]:
        """Add a stage of new columns, keep those of `needed_later`; return the new ones."""
        for stage in list(self.live):
            if stage not in needed_later:
                del self.live[stage]
        kept_names = list(self.keep)
        for column_names in self.live.values():
            kept_names += column_names
        if self.stages:  # the first one makes it
            kept_names.append(self.gap_marker)
        selected = [self.quoted_column(kept_name) for kept_name in kept_names]
        new_names = []
        for j, expression in enumerate(expressions):
            new_names.append(f"{name}_{j}")
            aliased = self.exp.alias_(expression, new_names[j], quoted=True)
            selected.append(aliased)
        select = self.exp.select(*selected, copy=False)
        self.stages.append(select)
        self.names.append(name)
        self.live[name] = new_names
        return [self.quoted_column(new_name) for new_name in new_names]


def split_into_groups(terms: Sequence[Any]) -> list[Sequence[Any]]:
    """Return expressions in groups of which none is too long."""
    return [terms[k : k + MAX_TERMS] for k in range(0, len(terms), MAX_TERMS)]


class SQLStepRules:
    """The rules of the steps: from columns to columns.

    `put_in_stage` puts what is needed more than once in a row, as its sum is, into a stage of its
    own, and returns columns. An expression stands in one place only, so that a second use is a
    copy.
    """

    def __init__(self, query: QueryBuilder, n_classes: int) -> None:
        self.query = query
        self.exp = query.exp
        self.n_classes = n_classes

    def divide_by_row_sum(
        self, x: list[Any], put_in_stage: Any, tolerance: float
    ) -> list[Any]:
        q = self.query
        total = put_in_stage(q.sum_of(x))
        if tolerance >= 0.0:
            row_error = q.absolute(total - q.float_literal(1.0))
            is_off = row_error > q.float_literal(tolerance)
            divisor = q.case_when((is_off, total.copy()), other=q.float_literal(1.0))
            total = self.exp.paren(divisor)
        return [q.divide(a, total.copy()) for a in x]

    def raise_to_floor(
        self, x: list[Any], put_in_stage: Any, floor: float, every: bool
    ) -> list[Any]:
        q = self.query
        zero = q.float_literal(0.0)
        lowest = q.least(*x)
        below_floor = lowest < q.float_literal(floor)
        is_raised = below_floor if every else q.is_at_most(lowest.copy(), 0.0)
        raised = [q.greatest(a.copy(), q.float_literal(floor)) for a in x]
        # the sum of a raised row; 0 says that a row is left alone
        raised_sum = q.case_when((is_raised, q.sum_of(raised)), other=zero)
        total = put_in_stage(raised_sum)
        has_total = total > zero.copy()
        made = []
        for a, raised_a in zip(x, raised, strict=True):
            ratio = q.divide(raised_a.copy(), total.copy())
            answer = q.case_when((has_total.copy(), ratio), other=a.copy())
            made.append(answer)
        return made

    def clamp(
        self, x: list[Any], put_in_stage: Any, low: float, high: float
    ) -> list[Any]:
        q = self.query
        raised = [q.greatest(a, q.float_literal(low)) for a in x]
        return [q.least(a, q.float_literal(high)) for a in raised]

    def log(self, x: list[Any], put_in_stage: Any) -> list[Any]:
        return [self.query.natural_log(a) for a in x]

    def log_of_one_minus(self, x: list[Any], put_in_stage: Any) -> list[Any]:
        return [self.query.natural_log(self.query.float_literal(1.0) - a) for a in x]

    def exponential(self, x: list[Any], put_in_stage: Any) -> list[Any]:
        return [self.query.exp_of_nonpositive(a) for a in x]

    def log_logistic(self, x: list[Any], put_in_stage: Any) -> list[Any]:
        q = self.query
        made = []
        for a in x:
            # min(a, 0) - log(1 + exp(-|a|)): the exponential never overflows
            small = q.exp_of_nonpositive(self.exp.Neg(this=q.absolute(a.copy())))
            log = q.natural_log(q.float_literal(1.0) + self.exp.paren(small))
            made.append(q.least(a, q.float_literal(0.0)) - log)
        return made

    def softmax(self, x: list[Any], put_in_stage: Any) -> list[Any]:
        q = self.query
        gaps = self.subtract_row_max(x, put_in_stage)
        e = put_in_stage([q.exp_of_nonpositive(a) for a in gaps])
        total = put_in_stage(q.sum_of(e))
        return [q.divide(a, total.copy()) for a in e]

    def log_softmax(self, x: list[Any], put_in_stage: Any) -> list[Any]:
        q = self.query
        gaps = put_in_stage(self.subtract_row_max(x, put_in_stage))
        e = [self.exp.paren(q.exp_of_nonpositive(a.copy())) for a in gaps]
        log = put_in_stage(q.natural_log(q.sum_of(e)))
        return [a.copy() - log.copy() for a in gaps]

    def subtract_entry(self, x: list[Any], put_in_stage: Any, entry: int) -> list[Any]:
        return [a - x[entry].copy() for a in x]

    def subtract_row_max(self, x: list[Any], put_in_stage: Any) -> list[Any]:
        top = put_in_stage(self.query.greatest(*x))
        return [a - top.copy() for a in x]

    def take_entries(
        self, x: list[Any], put_in_stage: Any, index: list[int]
    ) -> list[Any]:
        return [x[k].copy() for k in index]

    def scale_and_shift(
        self, x: list[Any], put_in_stage: Any, weight: Any, shift: Any
    ) -> list[Any]:
        q = self.query
        made = []
        for a, w, s in zip(x, weight, shift, strict=True):
            scaled = a
            if w != 1.0:  # with a shift, what is rounded to 0 is not the answer
                scaled = q.times_weight(a, w) if s == 0.0 else a * q.float_literal(w)
            made.append(scaled if s == 0.0 else scaled + q.float_literal(s))
        return made

    def multiply_by_matrix(
        self, x: list[Any], put_in_stage: Any, weight: Any, shift: Any
    ) -> list[Any]:
        q = self.query
        made = []
        for weights, s in zip(weight, shift, strict=True):
            terms = []
            for a, w in zip(x, weights, strict=True):
                if w != 0.0:
                    terms.append(a.copy() * q.float_literal(w))
            if s != 0.0 or not terms:
                terms.append(q.float_literal(s))
            made.append(q.sum_of(terms))
        return made

    def add_vectors(self, *given: Any) -> list[Any]:
        vectors = given[:-1]  # no stage is needed
        return [self.query.sum_of(list(terms)) for terms in zip(*vectors, strict=True)]

    def apply_step_functions(
        self, x: list[Any], put_in_stage: Any, edges: list[Any], table: list[Any]
    ) -> list[Any]:
        made = []
        for a, bin_edges, bin_values in zip(x, edges, table, strict=True):
            made.append(self._step_function(a, bin_edges, bin_values))
        return made

    def _step_function(self, a: Any, bin_edges: Any, bin_values: Any) -> Any:
        """Return the value of a's bin, closed on the right; a itself where that is NaN."""
        q = self.query
        answers = []
        for bin_value in bin_values:
            keeps_entry = np.isnan(bin_value)
            answers.append(a.copy() if keeps_entry else q.float_literal(bin_value))
        if len(bin_edges) == 0:
            return answers[-1]
        cases = []
        for k, edge in enumerate(bin_edges):
            is_in_bin = q.is_at_most(a.copy(), edge)
            cases.append((is_in_bin, answers[k]))
        return q.case_when(*cases, other=answers[-1])

    def interpolate_linearly(
        self, x: list[Any], put_in_stage: Any, at: list[Any], value: list[Any]
    ) -> list[Any]:
        made = []
        for a, knots, knot_values in zip(x, at, value, strict=True):
            made.append(self._interpolation(a, knots, knot_values))
        return made

    def _interpolation(self, a: Any, knots: Any, knot_values: Any) -> Any:
        """Return ``numpy.interp(a, knots, knot_values)`` as one CASE."""
        q = self.query
        first_value = q.float_literal(knot_values[0])
        cases = [(q.is_at_most(a.copy(), knots[0]), first_value)]
        # CASE takes the first line whose end is to the right
        for k in range(1, len(knots)):
            line = q.float_literal(knot_values[k - 1])
            rise = knot_values[k] - knot_values[k - 1]
            if rise != 0.0:
                width = knots[k] - knots[k - 1]
                past = self.exp.paren(a.copy() - q.float_literal(knots[k - 1]))
                part = q.divide(past, q.float_literal(width))
                line = line + part * q.float_literal(rise)
            is_before_end = a.copy() < q.float_literal(knots[k])
            cases.append((is_before_end, line))
        last_value = q.float_literal(knot_values[-1])
        return q.case_when(*cases, other=last_value)

    def share_among_present(
        self,
        x: list[Any],
        p: list[Any],
        put_in_stage: Any,
        present: list[int],
        even: bool,
        least: float,
    ) -> list[Any]:
        q = self.query
        all_present = len(present) == self.n_classes
        if all_present:
            total = put_in_stage(q.sum_of(x))
        else:
            p_of_present = [p[k] for k in present]
            total, mass = put_in_stage([q.sum_of(x), q.sum_of(p_of_present)])
        has_answer = total > q.float_literal(least)
        even_share = q.float_literal(1.0 / len(present))
        made = [a.copy() for a in p]
        for a, k in zip(x, present, strict=True):
            without_answer = p[k].copy()
            ratio = q.divide(a, total.copy())
            if all_present:
                answer = ratio
                if even:
                    without_answer = even_share.copy()
            else:
                answer = self._product_of_probabilities(ratio, mass)
                if even:
                    without_answer = mass * even_share.copy()
            case = (has_answer.copy(), answer)
            made[k] = q.case_when(case, other=without_answer)
        return made

    def _product_of_probabilities(self, x: Any, y: Any) -> Any:
        """Return ``x y``; 0 where rounding to 0 is near, which PostgreSQL refuses."""
        q = self.query
        # of two numbers that are not below 1e-150 the product is 1e-300 or more
        x_is_tiny = x.copy() < q.float_literal(1e-150)
        y_is_tiny = y.copy() < q.float_literal(1e-150)
        is_tiny = self.exp.or_(x_is_tiny, y_is_tiny)
        return q.case_when((is_tiny, q.float_literal(0.0)), other=x * y.copy())


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
    names = class_column_names(program, prefix, columns)
    check_column_names(names, keep, dialect, table)
    stem = "mcllo"
    while any(
        re.match(rf"{stem}_(\d|row)", name, re.IGNORECASE) for name in (table, *keep)
    ):
        stem += "_"
    query = QueryBuilder(keep, stem, dialect)
    exp = query.exp
    _add_step_stages(query, program, names)
    last = f"{stem}_{len(program.steps) - 1}"
    selected = [query.quoted_column(name) for name in keep]
    for j, name in enumerate(names):
        answer = query.null_if_gap(query.quoted_column(f"{last}_{j}"))
        selected.append(exp.alias_(answer, name, quoted=True))
    final = exp.select(*selected).from_(query.names[-1])
    # else they write a stage again for each use of its columns, which multiplies along the chain
    materialized = True if dialect in MATERIALIZING_DIALECTS else None
    source = _parse_table_name(exp, table, dialect)
    for name, stage in zip(query.names, query.stages, strict=True):
        select = stage.from_(source, copy=False)
        final = final.with_(name, as_=select, materialized=materialized, copy=False)
        source = exp.to_table(name)
    title = (
        f"-- mcllo {__version__}: {program.method}, {len(names)} classes, {dialect}\n"
    )
    return title + final.sql(dialect=dialect, pretty=True) + "\n"


def _parse_table_name(exp: Any, table: str, dialect: str) -> Any:
    """Return a table, perhaps with its schema; what is no such name is refused, not quoted."""
    try:
        found = exp.to_table(table, dialect=dialect)
    except Exception:  # sqlglot has several errors, without a base of their own
        found = None
    if not isinstance(found, exp.Table) or found.comments or not found.name:
        raise InputError(
            argument="table",
            rule="name a table, perhaps with its schema",
            value=table,
            remedy='Quote a name that is no word as the database does, say "my table".',
        )
    return found


def class_column_names(
    program: Program, prefix: str = "", columns: Sequence[str] | None = None
) -> list[str]:
    """Return the name of each class's column."""
    if columns is None:
        return [f"{prefix}{label}" for label in program.classes]
    if isinstance(columns, str) or len(columns) != len(program.classes) or prefix:
        rule = f"name a column for each of the {len(program.classes)} classes, without prefix"
        raise InputError(argument="columns", rule=rule, value=columns)
    return [str(name) for name in columns]


def check_column_names(
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
        key = _name_as_compared(name, dialect)
        if key in seen and place >= len(columns):
            rule = "name columns that are no classes, each once"
            raise InputError(argument="keep", rule=rule, value=list(keep))
        if key in seen:
            raise ExportError(
                f"{dialect} takes the columns {seen[key]!r} and {name!r} for one; name the columns "
                "with columns=."
            )
        seen[key] = name


def _name_as_compared(name: str, dialect: str) -> str:
    """Return what a database compares of a quoted name."""
    if dialect == "postgres":
        return name.encode()[:63].decode(errors="ignore")  # bytes that it looks at
    if dialect == "snowflake":
        return name
    if dialect in ("bigquery", "spark"):
        return name.lower()
    # DuckDB and SQLite fold the letters of ASCII alone
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _add_step_stages(query: QueryBuilder, program: Program, columns: list[str]) -> None:
    """Add the stages of all steps."""
    rules = SQLStepRules(query, len(program.classes))
    step_columns: list[list[Any]] = []
    last_use = _last_use_by_step(program)
    for k, step in enumerate(program.steps):
        name = f"{query.stem}_{k}"
        needed_later = [f"{query.stem}_{j}" for j in range(k) if last_use[j] > k]
        if step.op == "input":
            step_columns.append(_add_input_stage(query, name, columns, needed_later))
            continue
        input_stages = [f"{query.stem}_{j}" for j in step.inputs]
        answers = _step_expressions(
            query, rules, name, step, step_columns, [*needed_later, *input_stages]
        )
        step_columns.append(query.add_stage(name, answers, needed_later))


def _add_input_stage(
    query: QueryBuilder, name: str, columns: list[str], needed_later: list[str]
) -> list[Any]:
    """Add the stage of the rows as they are given, as floats, with their sum."""
    exp = query.exp
    double = exp.DataType.build("double")
    given = [
        exp.Cast(this=query.quoted_column(column), to=double.copy())
        for column in columns
    ]
    made = query.add_stage(name, given, needed_later)
    # the sum is NULL where any number is; CASE would make an answer of the others
    total = query.sum_of([a.copy() for a in given])
    whole = exp.alias_(total, query.gap_marker, quoted=True)
    query.stages[-1].select(whole, append=True, copy=False)
    return made


def _step_expressions(
    query: QueryBuilder,
    rules: SQLStepRules,
    name: str,
    step: ProgramStep,
    step_columns: list[list[Any]],
    needed_later: list[str],
) -> list[Any]:
    """Return the expressions of a step, after whatever stages it needs."""
    substages: list[str] = []

    def put_in_stage(value: Any) -> Any:
        """Put an expression, or several, into a stage of its own; return columns."""
        letter = "abcdef"[len(substages)]
        substages.append(f"{name}_{letter}")
        several = value if isinstance(value, list) else [value]
        columns = query.add_stage(substages[-1], several, [*needed_later, *substages])
        return columns if isinstance(value, list) else columns[0]

    # sqlglot's expressions know their parent, so that each can stand in one place
    inputs = [[a.copy() for a in step_columns[j]] for j in step.inputs]
    rule = getattr(rules, STEP_FUNCTIONS[step.op])
    return list(rule(*inputs, put_in_stage, **step.parameters))


def _last_use_by_step(program: Program) -> list[int]:
    """Return for each step the last one that takes its vector."""
    last = list(range(len(program.steps)))
    for k, step in enumerate(program.steps):
        for of in step.inputs:
            last[of] = k
    return last
