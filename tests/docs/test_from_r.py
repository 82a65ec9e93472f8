"""`docs/how-to/r.md`: its code is `examples/from_r.R`, and R prints what the page shows."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from shared_data import DATA

import mcllo

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "from_r.R"
PAGE = (ROOT / "docs" / "how-to" / "r.md").read_text()
HOCKEY = DATA / "brcal" / "hockey.csv"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)\n```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def is_installed():
    """Return whether R can load reticulate."""
    if shutil.which("Rscript") is None:
        return False
    asked = [
        "Rscript",
        "-e",
        "quit(status = !requireNamespace('reticulate', quietly = TRUE))",
    ]
    return subprocess.run(asked, capture_output=True).returncode == 0


@cache
def printed():
    """Return what R prints, line ends stripped; skip where R, reticulate or pandas are missing."""
    if not is_installed():
        pytest.skip(
            "needs R with reticulate: apt-get install r-base-core r-cran-reticulate"
        )
    if importlib.util.find_spec("pandas") is None:
        pytest.skip("needs pandas, which reticulate makes of a data frame")
    package = str(Path(mcllo.__file__).parents[1])
    data = [str(HOCKEY)] if HOCKEY.exists() else []
    done = subprocess.run(
        ["Rscript", str(SCRIPT), *data],
        cwd=ROOT / "examples",
        env=os.environ | {"PYTHONPATH": package, "RETICULATE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def test_the_page_shows_the_whole_script():
    parts = re.findall(
        r"^# -- [a-z ]+\n(.*?)\n*(?=^# -- |\Z)",
        SCRIPT.read_text(),
        flags=re.DOTALL | re.MULTILINE,
    )
    assert blocks("r") == [part.rstrip("\n") for part in parts]
    assert len(parts) == 9


@pytest.mark.slow
def test_r_prints_what_the_page_shows():
    *shown, hockey = blocks("text")
    assert len(shown) == 6
    at = 0
    for block in shown:
        assert block in printed()[at:], block
        at = printed().index(block, at) + len(block)
    if not HOCKEY.exists():
        pytest.skip("needs brcal/hockey.csv in ../shared/data for two classes")
    assert hockey in printed()[at:]


@pytest.mark.slow
def test_the_table_of_two_classes_has_the_numbers_that_r_prints():
    if not HOCKEY.exists():
        pytest.skip("needs brcal/hockey.csv in ../shared/data")
    printed_rows = re.findall(
        r"^(mcllo|glm|optim) +(\S+) +(\S+) +(\S+) +(\S+)$", printed(), re.M
    )
    assert len(printed_rows) == 3
    table = PAGE[PAGE.index("| hockey, x |") :]
    for name, *numbers in printed_rows:
        row = next(line for line in table.splitlines() if f"`{name}`" in line)
        assert [f"{float(number):.6f}" for number in numbers] == re.findall(
            r"\d\.\d{6}", row
        )[:4]
