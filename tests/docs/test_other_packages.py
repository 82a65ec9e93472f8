"""docs/how-to/other-packages.md: what it says happens, happens with whatever is installed."""

from pathlib import Path

import pytest
from benchmarks import tasks

pytestmark = pytest.mark.usefixtures("one_blas_thread")

PAGE = (
    Path(__file__).resolve().parents[2] / "docs/how-to/other-packages.md"
).read_text()


def said():
    """Yield (task, package, what happens) of every cell with a line."""
    for number, part in enumerate(PAGE.split("\n## ")[1:]):
        for row in part.splitlines()[4:]:
            package, line, happens = (
                cell.strip() for cell in row.strip("|").split(" | ")
            )
            yield number, package, line.strip("`"), happens


CELLS = list(said())


def test_the_page_has_fourteen_tasks_and_five_packages():
    assert len(CELLS) == 14 * 5
    lines = [line or "" for task in tasks.TASKS for line in task.lines]
    assert [line for _, _, line, _ in CELLS] == lines
    assert [package for _, package, _, _ in CELLS[:5]] == list(tasks.PACKAGES)


@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize(
    "package",
    [
        name if name == "mcllo" else pytest.param(name, marks=pytest.mark.slow)
        for name in tasks.PACKAGES
    ],
)
def test_what_happens(package):
    if not tasks.installed(package):
        pytest.skip(f"{package} is not installed (extra 'peers')")
    names = tasks.names_of(package)
    for number, whose, line, happens in CELLS:
        if whose == package and line:
            found = tasks.outcome(line, names)
            # by the error's name or that it works: words and last digits are other versions'
            assert happens.split(":")[0].split(";")[0] == found.split(":")[0], (
                number,
                found,
            )
