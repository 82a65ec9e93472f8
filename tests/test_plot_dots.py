"""The numbers of a comparison as dots."""

from dataclasses import replace

import numpy as np
from figure_checks import assert_readable, comparison, line

from mcllo._plot.comparison import title_of
from mcllo._plot.dots import SMALLEST_P, comparison_dots, last_drawn


def marks(ax, *labels):
    """Return row -> x of the marks with these labels."""
    found = [line(ax, label) for label in labels]
    return {int(y): x for part in found if part is not None for x, y in part}


def test_dots_are_the_numbers_of_the_rows():
    c = comparison()
    rows = sorted(c.judged, key=lambda row: row.log_loss)
    test, error, loss = comparison_dots(c, caption=True)
    assert [text.get_text() for text in test.get_yticklabels()] == [
        title_of(row.method) for row in rows
    ]
    ps = {k: row.pvalue for k, row in enumerate(rows) if row.pvalue >= SMALLEST_P}
    assert marks(test, "_kept", "_rejected") == ps
    assert marks(test, "_rejected") == {k: p for k, p in ps.items() if p <= 0.05}
    fixed = {k: row.pvalue_corrected for k, row in enumerate(rows)}
    assert marks(test, "_corrected") == {
        k: p for k, p in fixed.items() if p is not None and p >= SMALLEST_P
    }
    assert marks(error, "_errors") == {k: row.ece for k, row in enumerate(rows)}
    drawn = marks(loss, "_includes", "_excludes")
    assert drawn[0] == 0.0
    for k, x in drawn.items():
        assert x == rows[k].log_loss_difference
    assert_readable([test])


def test_axes_are_labelled():
    axes = comparison_dots(comparison())
    assert [ax.get_xlabel() for ax in axes] == [
        "p-value (log scale)",
        "ECE (probability)",
        "Log loss above the best (nats)",
    ]
    assert axes[2].texts[0].get_text() == "best"


def test_tiny_p_values_and_huge_numbers_are_arrows():
    c = comparison()
    rows = [replace(row, pvalue=1e-40) if row.method == "mcllo" else row for row in c.rows]
    rows = [replace(row, ece=0.9 if row.method == "histogram" else 0.02) for row in rows]
    changed = replace(c, rows=tuple(rows))
    axes = comparison_dots(changed)
    place = [row.method for row in sorted(changed.judged, key=lambda row: row.log_loss)]
    assert place.index("mcllo") in marks(axes[0], "_beyond")
    assert list(marks(axes[1], "_beyond")) == [place.index("histogram")]
    text = assert_readable(axes)
    assert "1.0e-40" in text
    assert "0.90" in text


def test_without_corrected_p_values_there_is_no_key_for_them():
    c = comparison()
    plain = replace(c, rows=tuple(replace(row, pvalue_corrected=None) for row in c.rows))
    for result, entries in ((c, 3), (plain, 2)):
        (legend,) = comparison_dots(result)[0].figure.legends
        assert len(legend.get_texts()) == entries


def test_last_drawn():
    assert last_drawn(np.zeros(3)) == 1e-6
    assert last_drawn(np.array([0.1, 0.2])) == 0.2
