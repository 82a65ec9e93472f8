"""Measure every calibrator in every form, and write the table of docs/how-to/export.md.

``python docs/make_export.py`` runs all forms and writes ``docs/how-to/export.json``; with
``--page`` it only writes the page from that file. A test measures every cell again and compares
the page.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "how-to"
RESULTS, PAGE = FOLDER / "export.json", FOLDER / "export.md"
SMALLEST = 1e-17
"""Below which a difference is shown as 0."""
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"


def measure() -> dict[str, dict[str, object]]:
    """Return the difference of each cell, or the sentence that says why there is none."""
    sys.path[:0] = [
        str(Path(__file__).parents[1] / "tests" / part) for part in ("", "export")
    ]
    import forms
    import models

    found: dict[str, dict[str, object]] = {}
    with forms.OPEN:
        for name in models.MAKERS:
            cells = {form: forms.measured(name, form) for form in forms.FORMS}
            found[name] = {
                form: cell if isinstance(cell, str) else float(f"{cell.difference:.0e}")
                for form, cell in cells.items()
            }
            print(name, *found[name].values())
    return found


def table(found: dict[str, dict[str, object]]) -> str:
    """Return the table; reasons become numbered notes."""
    forms = list(next(iter(found.values())))
    notes: list[str] = []
    lines = [f"| | {' | '.join(forms)} |", f"|---|{'---:|' * len(forms)}"]
    for name, cells in found.items():
        shown = []
        for value in cells.values():
            if isinstance(value, str):
                notes += [] if value in notes else [value]
                shown.append(f"[{notes.index(value) + 1}]")
            else:
                shown.append("0" if value < SMALLEST else f"{value:.0e}")
        lines.append(f"| {name} | {' | '.join(shown)} |")
    lines += ["", *(f"[{k}] {note}" for k, note in enumerate(notes, start=1))]
    return "\n".join(lines) + "\n"


def page(text: str, found: dict[str, dict[str, object]]) -> str:
    """Return the page with the table of these results."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(found)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--page" not in sys.argv:
        RESULTS.write_text(json.dumps(measure(), indent=1) + "\n")
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULTS.read_text())))
