"""docs/how-to/netcal.md, probmetrics.md, probcal.md: both columns are run, line by line."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_blas_thread")]

FOLDER = Path(__file__).resolve().parents[2] / "docs/how-to"
PACKAGES = ("netcal", "probmetrics", "probcal")


def rows_of(page):
    """Return the cells of the table, a list for each row."""
    table = page.split("| to do |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def outcome(cell, names):
    """Run a cell; return what its line gives, or None where it raises what the cell says."""
    line, said = re.match(r"`([^`]+)`(.*)", cell).groups()
    if raised := re.search(r"raises `(\w+)`", said):
        with pytest.raises(Exception) as error:
            eval(line, names)
        assert raised[1] in {cls.__name__ for cls in type(error.value).__mro__}, line
        return None
    return eval(line, names)


@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize("package", PACKAGES)
def test_every_line_does_what_the_table_says(package, tmp_path, monkeypatch):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed (extra 'peers')")
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    page, names = (FOLDER / f"{package}.md").read_text(), {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], names)
    rows = rows_of(page)
    assert len(rows) >= 15  # or the table was not read whole
    assert all(len(row) == 3 for row in rows)
    for todo, *cells in rows:
        both = [
            None if cell.startswith("(") else outcome(cell, names) for cell in cells
        ]
        if within := re.search(r"agrees within (\S+)", cells[1]):
            gap = np.abs(np.asarray(both[0], float) - np.asarray(both[1], float)).max()
            assert gap <= float(within[1]), (todo, gap)
