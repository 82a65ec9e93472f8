"""Notebooks, run in a kernel: the example shows what is stored, figures show themselves once."""

import re
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="needs the Python package nbclient")
pytest.importorskip("ipykernel", reason="needs the Python package ipykernel")
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "notebook.ipynb"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # those of the client and its sockets
]


def words(output):
    """Return what an output says: text, or the words of its HTML but those inside a picture."""
    if output.output_type == "stream":
        return output.text
    if "text/html" not in output.data:
        return output.data["text/plain"]
    page = re.sub(
        r"<(style|svg)\b.*?</\1>", " ", output.data["text/html"], flags=re.DOTALL
    )
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def shows(cell):
    """Return the kinds of what a cell shows, the richest of each output."""
    rich = ("image/png", "text/html", "text/plain")
    found = [output.get("data", {"text": ""}) for output in cell.outputs]
    found = [
        data for data in found if data.get("text/html") != ""
    ]  # long work was shown
    return [next((kind for kind in rich if kind in data), "text") for data in found]


def run(*sources):
    """Run cells in a new kernel and return them."""
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300).execute()
    return notebook.cells


def test_the_example_shows_what_is_stored(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from make_notebook import executed

    stored, now = nbformat.read(EXAMPLE, as_version=4), executed(EXAMPLE)
    pairs = list(zip(stored.cells, now.cells, strict=True))
    for before, after in pairs:
        assert before.source == after.source
        if before.cell_type == "code":
            assert shows(before) == shows(after), before.source
            assert [*map(words, before.outputs)] == [*map(words, after.outputs)], (
                before.source
            )
    kinds = [
        kind for cell in now.cells if cell.cell_type == "code" for kind in shows(cell)
    ]
    assert kinds.count("text/html") >= 4  # cards and a frame
    assert kinds.count("image/png") >= 3
    assert "Miscalibrated." in words(now.cells[1].outputs[0])


START = (
    "import mcllo\na = mcllo.assess([[.7, .3], [.4, .6], [.2, "
    ".8], [.6, .4]], [0, 0, 1, 1], seed=0)"
)


CELLS = {
    START: [],
    "mcllo.plot.reliability(a)": ["image/png"],
    "panels = mcllo.plot.reliability_by_class(a)\npanels[0].set_ylabel('mine');": [
        "image/png"
    ],
    "panels": ["image/png"],
    "import matplotlib.pyplot as plt\nmcllo.plot.parameters(a.fit)\nplt.show()": [
        "image/png"
    ],
    "plt.rcParams['figure.max_open_warning'] = 2\n"
    "for _ in range(4):\n    mcllo.plot.calibration_map(a.fit)": ["image/png"] * 4,
    "plt.get_fignums()": ["text/plain"],
    "_, place = plt.subplots()\nmcllo.plot.reliability(a, ax=place);": ["image/png"],
    "len(a._repr_html_() + mcllo.report(a).html())": ["text/plain"],
    "a": ["text/html"],
    "print(repr(a))": ["text"],
}
"""Cells, and what each must show: every figure once, those of cards and pages not at all."""


def test_figures_show_themselves_once_and_none_stays_open():
    cells = run(*CELLS)
    for cell, expected in zip(cells, CELLS.values(), strict=True):
        assert shows(cell) == expected, cell.source
    assert cells[6].outputs[0].data["text/plain"] == "[]"
    assert cells[-1].outputs[0].text.count("\n") == 1


LONG = """
import mcllo, mcllo._utils.notebook as lines
import numpy as np
lines.PROGRESS_DELAY_SECONDS = 0.0  # else a fast machine would be done before a word is said
rng = np.random.default_rng(0)
probs = rng.dirichlet(np.ones(5), size=500)
rows = mcllo.Predictions.from_arrays(probs, [rng.choice(5, p=row) for row in probs])
"""


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("mcllo.assess(rows, seed=0)", "assessing"),
        (
            "mcllo.compare(rows, cv=2, methods=['mcllo', 'dirichlet'], seed=0)",
            "comparing",
        ),
        (
            "mcllo.simulate.power(n_samples=200, n_classes=3, reps=20, seed=0, n_jobs=1)",
            "simulating",
        ),
    ],
)
def test_long_work_says_so_under_its_cell(call, word):
    from nbclient import NotebookClient

    seen = []

    class Listening(NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"].endswith("display_data"):
                seen.append(msg["content"]["data"]["text/plain"])
            return super().process_message(msg, cell, cell_index)

    cell = nbformat.v4.new_code_cell(f"{LONG}_ = {call}")
    Listening(nbformat.v4.new_notebook(cells=[cell]), timeout=300).execute()
    assert re.fullmatch(rf"{word}[\w, ]*, \d+ s", seen[0])
    assert seen[-1] == ""
    assert [output.data["text/html"] for output in cell.outputs] == [
        ""
    ]  # nothing stays
