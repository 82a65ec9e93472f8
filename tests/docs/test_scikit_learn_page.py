"""docs/how-to/scikit-learn.md: both columns of its table are run, line by line."""

import doctest
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn import config_context

pytestmark = pytest.mark.usefixtures("one_blas_thread")

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/scikit-learn.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.split("| to do |")[1].split("\n\n")[0].splitlines()[2:]
]
OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)
CELLS = [
    pytest.param(cell, id=f"{row[0]}, {who}")
    for row in ROWS
    for who, cell in zip(("scikit-learn", "here"), row[1:], strict=True)
    if not cell.startswith("(")
]


@pytest.fixture(scope="module")
def names():
    """Return what the page's first lines define."""
    found = {}
    lines = doctest.DocTestParser().get_examples(PAGE.split("| to do |")[0])
    exec("".join(example.source for example in lines), found)
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_a_line_does_what_the_table_says(cell, names):
    theirs = cell.startswith("`CalibratedClassifierCV(")
    if OLD and theirs and ('"temperature"' in cell or '"prefit"' in cell):
        pytest.skip("other in scikit-learn before 1.8")
    line = re.match(r"`([^`]+)`", cell).group(1)
    said = cell[len(line) + 2 :]
    raised = re.search(r"raises `(\w+)`", said)
    with (
        config_context(enable_metadata_routing="routed" in said),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        if raised:
            with pytest.raises(ValueError) as error:
                eval(line, names)
            assert raised.group(1) in {cls.__name__ for cls in type(error.value).__mro__}
            return
        result = eval(line, names)
    ours = [one for one in caught if issubclass(one.category, UserWarning)]
    assert bool(ours) == ("warns" in said)
    if hasattr(result, "predict_proba"):
        rows = names["probs"] if line.startswith("mcllo.MCLLO") else names["X"]
        np.testing.assert_allclose(result.predict_proba(rows).sum(axis=1), 1.0)


def test_the_table_is_long_and_read_whole():
    assert len(ROWS) >= 20
    assert all(len(row) == 3 for row in ROWS)


def test_the_page_is_dated_and_fair():
    assert re.search(r"Run on \d+ \w+ 20\d\d with scikit-learn [\d.]+ and mcllo [\d.]+", PAGE)
    assert "## When scikit-learn is the better choice" in PAGE
    assert any(ours.startswith("(") for _, _, ours in ROWS), "what is missing here is said"
