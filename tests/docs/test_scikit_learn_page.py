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
"""Whether some of scikit-learn's lines do something else than the page says."""
THEIRS = [theirs for _, theirs, _ in ROWS if not theirs.startswith("(")]
OURS = [ours for _, _, ours in ROWS if not ours.startswith("(")]


@pytest.fixture(scope="module")
def names():
    """Return what the page's first lines define."""
    found = {}
    lines = doctest.DocTestParser().get_examples(PAGE.split("| to do |")[0])
    exec("".join(example.source for example in lines), found)
    return found


def check(cell, names):
    """Run a cell; fail where it does not raise, warn or predict as the cell says."""
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
            assert raised.group(1) in {
                cls.__name__ for cls in type(error.value).__mro__
            }, cell
            return
        result = eval(line, names)
    ours = [one for one in caught if issubclass(one.category, UserWarning)]
    assert bool(ours) == ("warns" in said), cell
    if hasattr(result, "predict_proba"):
        rows = names["probs"] if line.startswith("mcllo.MCLLO") else names["X"]
        np.testing.assert_allclose(
            result.predict_proba(rows).sum(axis=1), 1.0, err_msg=cell
        )


def test_our_lines_do_what_the_table_says(names):
    assert len(OURS) >= 20  # the table was read whole
    for cell in OURS:
        check(cell, names)


@pytest.mark.slow
def test_their_lines_do_what_the_table_says(names):
    for cell in THEIRS:
        newer = '"temperature"' in cell or '"prefit"' in cell
        if not (OLD and newer and cell.startswith("`CalibratedClassifierCV(")):
            check(cell, names)
