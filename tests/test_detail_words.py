import numpy as np
import pytest
from toy import TOY_X, TOY_Y

from mcllo import assess
from mcllo._detail_words import (
    baseline_line,
    class_line,
    detail_lines,
    full_sections,
    wrapped_prose,
)


@pytest.fixture(scope="module")
def sharp():
    rng = np.random.default_rng(0)
    honest = rng.dirichlet([1, 1, 1], size=2000)
    y = np.array(["a", "b", "c"])[(honest.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)]
    raised = honest**2
    return assess(raised / raised.sum(axis=1, keepdims=True), y, classes=["a", "b", "c"], seed=1)


def test_a_rejection_is_explained(sharp):
    kind, classes, baseline = detail_lines(sharp, 0.05)
    assert kind.startswith("Kind: One temperature is enough: all log odds are too extreme")
    assert classes.startswith("Worst classes: ")
    assert baseline.startswith("Baseline: statistic ")


def test_without_a_rejection_there_is_nothing_to_explain():
    toy = assess(TOY_X, TOY_Y, n_resamples=99, seed=1)
    assert [line.split(":")[0] for line in detail_lines(toy, 0.05)] == ["Baseline"]


def test_classes_are_named_worst_first(sharp):
    tests = sharp.details.class_tests
    p = dict(zip(tests.table["class"], tests.table["adjusted"], strict=True))
    first = class_line(tests, 0.05).removeprefix("Worst classes: ").split()[0]
    assert first == min(("a", "b"), key=p.get)
    assert class_line(tests, 1e-300).startswith("Worst classes: no single one stands out")


def test_the_baseline_line_has_the_p_value_over_all(sharp):
    line = baseline_line(sharp.details.baselines)
    assert "over all of them; repaired probabilities move by" in line


def test_full_shows_every_part(sharp):
    text = "\n".join(full_sections(sharp))
    for word in ("common_slope", "p (Holm)", "label_changes", "posterior", "Shares, predicted"):
        assert word in text
    assert sharp.text(full=True).startswith(str(sharp))


def test_prose_is_wrapped_and_tables_are_not():
    prose, table = "word " * 40, "a  b" + "  c" * 60
    wrapped = wrapped_prose(f"{prose}\n{table}").splitlines()
    assert max(map(len, wrapped[:-1])) <= 96
    assert wrapped[-1] == table
