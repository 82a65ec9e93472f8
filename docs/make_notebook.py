"""Run the example notebook and store what it shows: ``python docs/make_notebook.py``.

Needs nbclient and ipykernel (``pip install "mcllo[test-all]"``). What differs from run to run
(times, counters) is left out, so that a second run changes nothing but what the package changed.
"""

from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parents[1] / "examples" / "notebook.ipynb"


def executed(path: Path = PATH) -> Any:
    """Return the notebook after a run in a kernel of its own."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": path.parent}}
    ).execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "name": "python3"}}
    for cell in notebook.cells:
        cell.metadata = {}
        if (
            cell.cell_type == "code"
        ):  # the line of long work is taken away, and leaves a gap
            cell.outputs = [each for each in cell.outputs if not is_gap(each)]
    return notebook


def is_gap(output: dict[str, Any]) -> bool:
    """Whether an output shows nothing any more."""
    return output.get("data", {}).get("text/html") == ""


if __name__ == "__main__":
    import nbformat

    nbformat.write(executed(), PATH)
