"""What `make docs` builds from: pages that lead to each other, before any Sphinx runs."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mcllo import __main__ as program

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONTENTS = re.compile(r"```\{toctree\}\n:hidden:\n\n(.*?)```", re.DOTALL)


def script(path):
    """Return a script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site():
    return script(DOCS / "make_site.py")


@pytest.fixture(scope="module")
def staged(site, tmp_path_factory):
    return site.stage(tmp_path_factory.mktemp("site") / "source")


def test_an_index_leads_to_every_page_of_its_folder(site):
    for folder in ("how-to", "explanation", "studies", "reference"):
        index = DOCS / folder / "index.md"
        linked = {link for link, _ in site.LINK.findall(index.read_text())}
        assert {page.name for page in index.parent.glob("*.md")} - {
            "index.md"
        } <= linked, folder


def test_links_of_staged_pages_lead_to_files(site, staged):
    pages = sorted(staged.rglob("*.md"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    for page in pages:
        for link, _ in site.LINK.findall(page.read_text()):
            if ":" not in link:
                goal = (page.parent / link).resolve()
                assert goal.is_file(), f"{page.name}: {link}"
                assert goal.is_relative_to(staged), f"{page.name}: {link}"


def test_every_page_stands_in_one_table_of_contents(staged):
    entries = Counter()
    for page in staged.rglob("*.md"):
        for block in CONTENTS.findall(page.read_text()):
            entries.update(line.lstrip("/") for line in block.split())
    pages = {
        page.relative_to(staged).with_suffix("").as_posix()
        for page in staged.rglob("*.md")
    }
    assert set(entries) >= pages - {"index"}
    assert set(entries.values()) == {1}


def test_examples_lose_the_empty_line_that_ends_them_and_nothing_else(staged):
    source = (DOCS / "explanation" / "zeros.md").read_text()
    shown = (staged / "explanation" / "zeros.md").read_text()
    assert "\n[262, 304, 321]\n\n```\n" in source
    assert "\n[262, 304, 321]\n```\n" in shown
    lines = [line for line in source.splitlines() if line]
    assert [line for line in shown.splitlines() if line] == lines


def test_pages_that_differ_by_case_only_get_files_that_do_not(site):
    assert (
        site.page_name("mcllo.Subgroups", ["mcllo.subgroups"])
        == "mcllo.Subgroups-class"
    )
    assert site.page_name("mcllo.Subgroups", ["mcllo.assess"]) == "mcllo.Subgroups"


def test_members_are_those_that_this_package_wrote(site):
    import mcllo

    found = site.members(mcllo.MCLLOCalibrator)
    assert {"fit", "predict_proba", "save"} <= set(found)
    assert not {"set_params", "get_metadata_routing", "set_fit_request"} & set(found)


def test_the_gallery_has_an_order_for_every_script():
    order = script(DOCS / "_site" / "figures.py").ORDER
    assert sorted(order) == sorted(
        path.stem for path in (DOCS / "gallery").glob("*.py")
    )
    assert len(order) >= 12


def test_exit_codes_are_those_of_the_program():
    listed = re.findall(
        r"^\| (\d+) \|", (DOCS / "reference" / "exit-codes.md").read_text(), re.M
    )
    said = re.findall(r"^(\d+) |\((\d+): terminated\)", program.__doc__, re.M)
    assert {*map(int, listed)} == {
        int(number) for pair in said for number in pair if number
    }


ALONE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
ABSENT = {
    "hypothesis",
    "polars",
    "mpmath",
    "dask",
    "duckdb",
    "sqlglot",
    "starlette",
    "lightgbm",
}
"""Packages of the extra `test` that the extra `docs` has not."""


@pytest.mark.slow
def test_make_docs_runs_with_what_it_installs():
    recipe = (ROOT / "Makefile").read_text().split("\ndocs:")[1].split("\n\n")[0]
    calls = [
        line
        for line in recipe.replace("\\\n", " ").splitlines()
        if " -m pytest " in line
    ]
    assert len(calls) == 2
    for call in calls:
        words = shlex.split(call.split(" -m pytest ")[1], comments=True)
        alone = ALONE.format(absent=ABSENT)
        asked = [
            sys.executable,
            "-c",
            alone,
            *words,
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
        ]
        quiet = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            asked, cwd=ROOT, capture_output=True, text=True, env=quiet
        )
        assert done.returncode in (0, 5), (
            done.stdout + done.stderr
        )  # 5: skipped without a site


def test_options_keep_their_dashes_and_commands_are_commands(staged):
    assert 'smartquotes_action = "qe"' in (DOCS / "conf.py").read_text()
    page = (staged / "reference" / "command-line.md").read_text()
    typed = re.findall(r"^\$ (\w+)", page, re.MULTILINE)
    assert set(typed) == {"mcllo"}


def test_long_sentences_are_wrapped_and_tables_slide():
    is_sentences = script(DOCS / "_site" / "printed.py").is_sentences
    assert is_sentences("A sentence " * 20)
    assert is_sentences("  When it says   75 %   99 %")
    assert not is_sentences("class   " + "0.25   " * 20)


def test_search_puts_names_before_studies():
    """The page declares a `var Scorer` where there is none; a `const` would end its script."""
    text = (DOCS / "_site" / "scorer.js").read_text(encoding="utf-8")
    assert re.search(r"^var Scorer = \{", text, re.MULTILINE)
    places = re.findall(r"\[/(\^.+?)/, (-?\d+)\]", text)

    def bonus(page):
        found = (
            int(n) for place, n in places if re.search(place.replace("\\/", "/"), page)
        )
        return next(found, 0)

    pages = (
        "reference/api/mcllo.assess",
        "how-to/r",
        "explanation/auto",
        "studies/power",
    )
    bonuses = [bonus(page) for page in pages]
    assert bonuses == sorted(set(bonuses), reverse=True)
