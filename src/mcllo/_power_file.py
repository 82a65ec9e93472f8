"""The finished cells of a power study on disk, so that a stopped study can go on.

One JSON file: the settings that the numbers depend on, and each finished cell with the numbers of
its repetitions (JSON keeps every digit of a float). It is written anew, atomically, after each
cell. A file of other settings is refused, never mixed. The grid is not a setting: cells do not
depend on each other, so a larger grid keeps what is there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._atomic import StrPath, check_writable, write_text
from .exceptions import FileFormatError, InputError

Floats = NDArray[np.float64]
Key = tuple[int, float | None]

FORMAT = "mcllo power study, 1"
ARRAYS = ("pvalues", "pvalues_chi2", "ece_before", "ece_after")


class FinishedCells:
    """Finished cells by ``(n, delta_1)``, kept at `path`; None keeps them in memory only."""

    def __init__(self, path: StrPath | None) -> None:
        self.path = path
        self.settings: dict[str, Any] = {}
        self._cells: dict[Key, Floats] = {}
        if path is not None:
            check_writable(path)
            if Path(path).exists():
                self._read(Path(path))

    @property
    def seed(self) -> int | None:
        """The seed of the cells on file."""
        return self.settings.get("seed")

    def __contains__(self, key: Key) -> bool:
        return key in self._cells

    def __getitem__(self, key: Key) -> Floats:
        return self._cells[key]

    def agree_on(self, settings: dict[str, Any]) -> None:
        """Refuse to go on with other settings than those on file."""
        for name, value in settings.items() if self.settings else ():
            if self.settings.get(name) != value:
                raise InputError(
                    f"resume={str(self.path)!r} holds a study with {name}="
                    f"{self.settings.get(name)!r}; this one has {name}={value!r}. Name another "
                    "file, or ask for the same."
                )
        self.settings = settings

    def add(self, key: Key, numbers: Floats) -> None:
        """Keep a finished cell: the numbers of `ARRAYS`, shape (4, repetitions)."""
        self._cells[key] = numbers
        if self.path is not None:
            write_text(self.path, json.dumps(self._content()) + "\n")

    def _content(self) -> dict[str, Any]:
        cells = [
            {"n": n, "delta_1": shift, **dict(zip(ARRAYS, numbers.tolist(), strict=True))}
            for (n, shift), numbers in self._cells.items()
        ]
        return {"format": FORMAT, "settings": self.settings, "cells": cells}

    def _read(self, path: Path) -> None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            assert content["format"] == FORMAT
            self.settings = dict(content["settings"])
            for cell in content["cells"]:
                numbers = np.array([cell[name] for name in ARRAYS], dtype=np.float64)
                assert numbers.shape == (len(ARRAYS), self.settings["reps"])
                self._cells[int(cell["n"]), float(cell["delta_1"])] = numbers
        except (OSError, ValueError, KeyError, TypeError, AssertionError):
            raise FileFormatError(
                f"{path} is not an unfinished power study of this package. Name another file."
            ) from None
