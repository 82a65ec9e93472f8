"""Class by class: the share of each class, and tests of single classes after Holm.

The p-values of shares come with every assessment; those of shift and slope are a detail, which a
comparison does not ask for. Dependent rows have neither, nor a z.
"""

from __future__ import annotations

import math

from .._assess import Assessment
from .._chosen_test import needs_robust
from .._class_tests import ClassTests
from .._detail_words import MOST_NAMED
from .kinds import WAYS, how_computed
from .tables import number_cell, or_none, p_cell
from .views import (
    Cell,
    Column,
    Names,
    TableView,
    format_weight,
    left_out,
    name_cell,
    percent,
    show_p,
)

MORE = "more than chance"


def shares_table(a: Assessment, alpha: float = 0.05) -> TableView:
    """Return rows of each class, its shares, and the tests that there are."""
    counts, table, tests = a.predictions.class_weight, a.in_the_large, a.details.class_tests
    tested = not needs_robust(a.predictions)
    heads = [
        Column("Class", "name"),
        Column("Rows" if a.predictions.sample_weight is None else "Weight"),
        Column("Predicted share"),
        Column("Observed share"),
    ]
    if tested:
        heads += [Column("z"), Column("Share: p", help="After Holm, over the classes")]
    if tests is not None:
        heads += [Column("Shift, slope: statistic"), Column("Shift, slope: p", help="After Holm")]
    rows = []
    for j, label in enumerate(table["class"]):
        row = [name_cell(label), Cell(format_weight(counts[j]), float(counts[j]))]
        row += [Cell(percent(table[k][j]), table[k][j]) for k in ("predicted", "observed")]
        row += _share_cells(a, j, alpha) if tested else []
        rows.append((*row, *([] if tests is None else _test_cells(tests, j, alpha))))
    return TableView("shares", _caption(tested, tests is not None), tuple(heads), tuple(rows))


def _caption(tested: bool, with_tests: bool) -> str:
    words = "How often each class was predicted on average, and how often it came true"
    if not tested:
        return f"{words}; the rows depend or are weighted, so that no single class is tested."
    adjusted = "P-values are adjusted for the number of classes (Holm); marked: more than chance."
    rest = "" if with_tests else " No baseline is needed here."
    return f"{words}; z is the difference in standard errors. {adjusted}{rest}"


def _share_cells(a: Assessment, j: int, alpha: float) -> list[Cell]:
    z, p = a.in_the_large["z"][j], a.in_the_large["adjusted"][j]
    word = "-" if math.isnan(z) else f"{z:+.1f}".replace("-0.0", "+0.0")
    return [Cell(word, or_none(z)), _marked(p_cell(p), p <= alpha)]


def _test_cells(tests: ClassTests, j: int, alpha: float) -> list[Cell]:
    p, how = tests.table["adjusted"][j], tests.table["method"][j]
    if math.isnan(p):
        return [Cell("baseline"), Cell("-")]
    statistic = number_cell(tests.table["statistic"][j])
    return [statistic, _marked(p_cell(p, how), p <= alpha, WAYS.get(how, ""))]


def _marked(cell: Cell, off: bool, title: str = "") -> Cell:
    if not off:
        return Cell(cell.text, cell.sort, title)
    return Cell(cell.text, cell.sort, title, "off", MORE)


def class_names(a: Assessment, alpha: float) -> tuple[Names, ...]:
    """Return which classes stand out after Holm: by shift and slope, and by their share."""
    tests = a.details.class_tests
    if tests is None:
        return ()
    found = [
        standing_out(tests, "adjusted", alpha, "Shift or slope off"),
        standing_out(tests, "large_adjusted", alpha, "True more or less often than predicted"),
    ]
    if not any(part.names for part in found):
        return (Names("No single class stands out, allowing for their number"),)
    if not a.test.rejects(alpha):
        found.insert(0, Names("The main test did not reject, so read these with doubt"))
    return tuple(part for part in found if part.names or part is found[0])


def worst_classes(a: Assessment, alpha: float) -> Names | None:
    """Return the classes whose shift or slope is off, for the first screen."""
    tests = a.details.class_tests
    if tests is None or not a.test.rejects(alpha):
        return None
    found = standing_out(
        tests, "adjusted", alpha, "Classes that stand out, allowing for their number", 3
    )
    return found if found.names else Names("No single class stands out, allowing for their number")


def standing_out(
    tests: ClassTests, column: str, alpha: float, lead: str, most: int = MOST_NAMED
) -> Names:
    """Return the classes rejected at level `alpha`, the smallest p-value first."""
    methods = tests.table["method"] if column == "adjusted" else [""] * len(tests.table)
    rows = zip(tests.table["class"], tests.table[column], methods, strict=True)
    off = sorted((row for row in rows if row[1] <= alpha), key=lambda row: float(row[1]))
    shown = tuple((name_cell(name), f"p {show_p(p, how)}") for name, p, how in off[:most])
    more = len(off) - len(shown)
    return Names(lead, shown, f"and {more} more" if more else "")


def classes_note(a: Assessment, alpha: float) -> str:
    """Return what the tests of single classes are, or why there are none."""
    tests = a.details.class_tests
    if tests is None:
        return left_out("Tests of single classes are", a.details.skipped["class_tests"])
    return (
        "Shift or slope: likelihood ratio of the whole fit to one that leaves the class as "
        f"predicted against {name_cell(tests.baseline).text!r}; p-values: "
        f"{how_computed(tests.method, tests.reason)}. Share: does the class come true as often as "
        "predicted? Holm's method allows for the number of classes: for each kind of test, any "
        f"false mark at all has probability {100 * alpha:g} % at most."
    )
