"""Make the workbooks of docs/tutorials/forecaster.md: forecasts.xlsx and next-week.xlsx.

    python examples/forecasts.py DIRECTORY

Chances of a home win, a draw and an away win in whole percent, of 760 matches between made-up
clubs, with the results; and of ten more without. The forecaster is too sure and believes too little
in draws. Rows that were rounded sum to 98 to 102, as they do in real spreadsheets.
"""

import datetime
import sys
from pathlib import Path

import numpy as np
import openpyxl

CLUBS = (
    *(
        "Alder",
        "Birch",
        "Cedar",
        "Dogwood",
        "Elm",
        "Fir",
        "Ginkgo",
        "Hazel",
        "Ivy",
        "Juniper",
    ),
    *(
        "Kauri",
        "Larch",
        "Maple",
        "Nutmeg",
        "Oak",
        "Pine",
        "Quince",
        "Rowan",
        "Spruce",
        "Teak",
    ),
)
RESULTS = ("home", "draw", "away")
FIRST_DAY = datetime.date(2024, 8, 10)
N_PAST, N_NEXT = 760, 10


def matches(rng: np.random.Generator) -> list[tuple[datetime.date, str]]:
    """Return a day and two clubs for each match: ten on each Saturday."""
    found = []
    for week in range((N_PAST + N_NEXT) // N_NEXT):
        order = rng.permutation(len(CLUBS))
        for home, away in order.reshape(-1, 2):
            day = FIRST_DAY + datetime.timedelta(weeks=week)
            found.append((day, f"{CLUBS[home]} - {CLUBS[away]}"))
    return found


def chances(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the true chances of each match, and what the forecaster says in percent."""
    edge = rng.normal(0.25, 0.7, size=N_PAST + N_NEXT)
    odds = np.column_stack([np.exp(edge), np.exp(0.05 - edge**2 / 4), np.exp(-edge)])
    bold = odds**1.6 * [1.0, 0.7, 1.0]
    true, said = (table / table.sum(axis=1, keepdims=True) for table in (odds, bold))
    return true, np.maximum(np.round(100 * said), 1).astype(int)


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    """Write one sheet, wide enough to be read."""
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [header, *rows]:
        sheet.append(row)
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = 12, 20
    book.save(path)


def main(directory: str | Path) -> None:
    folder, rng = Path(directory), np.random.default_rng(2024)
    folder.mkdir(parents=True, exist_ok=True)
    true, percent = chances(rng)
    came = (true.cumsum(axis=1) < rng.random((len(true), 1))).sum(axis=1)
    rows = [
        [day, match, *map(int, said), RESULTS[k]]
        for (day, match), said, k in zip(matches(rng), percent, came, strict=True)
    ]
    header = ["day", "match", *RESULTS, "result"]
    write(folder / "forecasts.xlsx", header, rows[:N_PAST])
    write(folder / "next-week.xlsx", header[:-1], [row[:-1] for row in rows[N_PAST:]])


if __name__ == "__main__":
    main(sys.argv[1])
