"""docs/tutorials: every cell is run, and what stands below it is what it prints."""

import re
import runpy
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import make_tutorials  # noqa: E402

sys.path.remove(str(DOCS))
PAGES = make_tutorials.pages()
EXTRAS = {
    "deep-learning": ("onnx", "onnxruntime"),
    "forecaster": ("openpyxl",),
}
"""What pages need beyond the package: these are of the extra `test`."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_tutorial_shows_what_its_cells_do(page, tmp_path):
    for package in EXTRAS.get(page.stem, ()):
        pytest.importorskip(package)
    text = page.read_text(encoding="utf-8")
    ran = make_tutorials.run_page(text, tmp_path)
    assert ran.text == text, f"run: python docs/make_tutorials.py {page.stem}"
    assert ran.loose == [], "numbers of the prose that nothing on the page shows"
    shown = make_tutorials.pictures(text)
    assert shown, "a tutorial has a picture"
    for name in shown:
        words = make_tutorials.words_of(page.parent / "figures" / name)
        assert words, name
        assert words == make_tutorials.words_of(tmp_path / name), name


def test_there_is_one_for_each_audience_and_the_index_names_them():
    names = {page.name for page in PAGES}
    assert len(names) == 5
    index = (make_tutorials.FOLDER / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == names
    drawn = {path.name for path in (make_tutorials.FOLDER / "figures").glob("*")}
    shown = [
        name for page in PAGES for name in make_tutorials.pictures(page.read_text())
    ]
    assert sorted(shown) == sorted(drawn), "each picture is on one page"


def test_the_site_takes_pages_with_cells_for_notebooks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if "{code-cell}" in text:
            header = text.split("---\n")[1]
            assert "format_name: myst" in header, page.stem
            assert "name: python3" in header, page.stem


PAGE = """\
Two and two are 4, of 1,000 it is 25 %.

```{code-cell} python
:tags: [hide-input]
print(2 + 2)
```

```text
5
```

<!-- numbers
print(100 * 250 // 1000)
-->

```console
$ mcllo --version
...
```
"""


def test_what_does_not_agree_is_seen(tmp_path):
    ran = make_tutorials.run_page(PAGE, tmp_path)
    assert ran.text == PAGE.replace("```text\n5\n", "```text\n4\n")
    assert ran.loose == [
        "1000"
    ]  # of the text nothing but the hidden 1000 stands for it
    again = make_tutorials.run_page(ran.text, tmp_path)
    assert again.text == ran.text
    silent = make_tutorials.run_page(PAGE.replace("print(2 + 2)", "2 + 2"), tmp_path)
    assert "```text" not in silent.text
    cut = PAGE.replace("...\n", "mcllo 0\n...\n")
    assert "mcllo 0\n" not in make_tutorials.run_page(cut, tmp_path).text


def test_a_mistake_names_its_line(tmp_path):
    with pytest.raises(ZeroDivisionError) as error:
        make_tutorials.run_page(PAGE.replace("2 + 2", "1 / 0"), tmp_path)
    assert error.traceback[-1].lineno + 1 == PAGE.splitlines().index("print(2 + 2)") + 1


def test_the_workbooks_are_those_of_the_script(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    script = runpy.run_path(str(DOCS.parent / "examples" / "forecasts.py"))
    script["main"](tmp_path)
    for name in ("forecasts.xlsx", "next-week.xlsx"):
        made, kept = (
            [
                [cell.value for cell in row]
                for row in openpyxl.load_workbook(path).active
            ]
            for path in (tmp_path / name, make_tutorials.FOLDER / name)
        )
        assert made == kept, "run: python examples/forecasts.py docs/tutorials"
