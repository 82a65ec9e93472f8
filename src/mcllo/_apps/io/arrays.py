"""Tables of NumPy: ``.npy`` and ``.npz``, without pickles.

=====================  =============================================================================
a table, shape (n, c)  columns 0 .. c-1, which have no names until classes are named
a structured array     its fields
an ``.npz`` file       the table in it (``sheet`` says which of several), and every array of as
                       many entries as a column of its own name
labels                 a column, or another ``.npy`` file (`Arrays.attach_labels`)
=====================  =============================================================================

An ``.npy`` file is mapped, so that it is read in blocks; before each of them it must be as long as
it was, as one that is cut short would end the process. An ``.npz`` file is unpacked whole, and one
that would take more than 1 GB is refused.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..._utils.atomic_files import StrPath
from ..._utils.formatting import join_words
from ..._utils.statements import Statement
from ..._validation.frames import shorten
from ...exceptions import FileFormatError

MAX_UNPACKED_BYTES = 1 << 30
"""Bytes of a packed file, unpacked, at most: a round number."""
LARGE_PART_BYTES = 10_000_000
"""Bytes of a part of an archive from which its packing is looked at: a round number."""


def check_unpacked_size(
    file: StrPath | IO[bytes], name: str, remedy: str, max_ratio: float = math.inf
) -> None:
    """Refuse an archive that unpacks to more than is read into memory at once.

    Large parts may not unpack to more than `max_ratio` times what they take.
    """
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    for entry in entries:
        is_large = entry.file_size > LARGE_PART_BYTES
        if is_large and entry.file_size > max_ratio * entry.compress_size:
            raise FileFormatError(
                f"{name} unpacks to more than {max_ratio:g} times its size; no table does.",
                remedy=remedy,
            )
    size = sum(entry.file_size for entry in entries)
    if size > MAX_UNPACKED_BYTES:
        raise FileFormatError(
            f"{name} unpacks to {size / 1e9:.1f} GB; packed files are read at once, and may hold "
            f"{MAX_UNPACKED_BYTES / 1e9:.1f} GB at most.",
            remedy=remedy,
        )


class NumpyTable:
    """The columns of an ``.npy`` or ``.npz`` file.

    `nameless` are those of a plain table until classes name them, `note` says what they were taken
    for.
    """

    def __init__(self, file: Path | IO[bytes], name: str, sheet: str | None) -> None:
        self.name = name
        self.columns: dict[str, NDArray[Any]] = {}
        self.nameless: list[str] = []
        self.note: Statement | None = None
        self._mapped: dict[Path, int] = {}  # with their sizes
        if isinstance(file, Path):
            self._mapped[file] = file.stat().st_size
        found = _load_arrays(file, name)
        if isinstance(found, dict):
            table = self._choose_table(found, sheet)
            if table is not None:
                self._take_table(table)
            longest = max(map(len, found.values()), default=0)
            n_rows = longest if table is None else len(table)
            for key, array in found.items():
                if array.ndim == 1 and len(array) == n_rows:
                    self.columns[key] = array
        else:
            self._take_table(found)
        for key, column in self.columns.items():
            if column.dtype.kind not in "fiubUS":
                raise FileFormatError(
                    f"{name} must hold numbers and words; {key!r} holds {column.dtype}.",
                    remedy="Convert it, and save it again.",
                )

    def _take_table(self, table: NDArray[Any]) -> None:
        """Take the columns of a table: the fields of a structured array, else without names."""
        if table.dtype.names:
            self.columns = {field: table[field] for field in table.dtype.names}
            return
        if table.ndim != 2:
            raise FileFormatError(
                f"{self.name} must hold a table of rows and classes; its shape is {table.shape}.",
                remedy="Save the table of probabilities, and the labels in a file of their own.",
            )
        self.columns = {str(j): table[:, j] for j in range(table.shape[1])}
        self.nameless = list(self.columns)
        self.note = _assumed_names_statement(self.name, self.nameless)

    def _choose_table(
        self, found: dict[str, NDArray[Any]], sheet: str | None
    ) -> NDArray[Any] | None:
        tables = [key for key, array in found.items() if array.ndim == 2]
        if sheet is not None and sheet not in tables:
            raise FileFormatError(
                f"{self.name} has no table {sheet!r}; it has {shorten(tables)}."
            )
        if sheet is None and len(tables) > 1:
            raise FileFormatError(
                "{file} holds {n_tables} tables: {tables}.",
                remedy="Choose one with {sheet:{first!r}}.",
                values={
                    "file": self.name,
                    "n_tables": len(tables),
                    "tables": join_words(tables),
                    "first": tables[0],
                },
            )
        return found[sheet or tables[0]] if tables else None

    def name_columns(self, names: Sequence[str]) -> None:
        """Give columns without names those of the classes, in their order."""
        if len(names) != len(self.nameless):
            raise FileFormatError(
                "{file} has {n_columns} columns without names; got {n_names} classes: {names}.",
                remedy="Name each column with {classes}, in order.",
                values={
                    "file": self.name,
                    "n_columns": len(self.nameless),
                    "n_names": len(names),
                    "names": shorten(names),
                },
            )
        new_names = dict(zip(self.nameless, names, strict=True))
        # in their order; labels beside the table keep their name
        old = self.columns
        self.columns = {new_names.get(key, key): column for key, column in old.items()}
        self.nameless = []
        self.note = _assumed_names_statement(self.name, names)

    def attach_labels(self, path: StrPath) -> None:
        """Add the labels of another file as a column of its name."""
        labels = _load_arrays(Path(path), str(path))
        if isinstance(labels, dict) or labels.ndim != 1 or len(labels) != self.n_rows:
            shape = (
                "several arrays"
                if isinstance(labels, dict)
                else f"shape {labels.shape}"
            )
            raise FileFormatError(
                f"{path} must hold a label for each of the {self.n_rows:,} rows of {self.name}; "
                f"it has {shape}."
            )
        self.columns[str(path)] = labels
        self._mapped[Path(path)] = Path(path).stat().st_size

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of some columns."""
        import pyarrow as pa

        for start in range(0, self.n_rows, rows):
            # a mapped file that is cut short would end the process
            for path, size in self._mapped.items():
                if path.stat().st_size < size:
                    raise FileFormatError(
                        f"{path} must stay as it is while it is read; it has become shorter.",
                        remedy="Run this again when it is whole.",
                    )
            end = start + rows
            parts = [
                pa.array(_as_arrow_type(self.columns[name][start:end]))
                for name in columns
            ]
            yield pa.record_batch(parts, names=list(columns))


def _assumed_names_statement(name: str, names: Sequence[str]) -> Statement:
    """Say what columns without names were taken for."""
    text = f"Columns of {name} have no names: they were taken for {shorten(names)}, in order."
    return Statement("note.columns", text, numbers={"names": list(names)})


def _as_arrow_type(column: NDArray[Any]) -> NDArray[Any]:
    """Return entries that Arrow knows."""
    kind = column.dtype.kind
    n_bytes = column.dtype.itemsize
    if kind == "S":
        return np.char.decode(column, "utf-8", "replace")
    if kind == "f" and n_bytes not in (4, 8):
        return column.astype(np.float32 if n_bytes < 4 else np.float64)
    return np.ascontiguousarray(column)


def _load_arrays(
    file: Path | IO[bytes], name: str
) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """Return an array, or those of an archive by name."""
    mapped: Any = "r" if isinstance(file, Path) else None
    try:
        found: Any = np.load(file, mmap_mode=mapped, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        check_unpacked_size(
            file, name, "Save the arrays one by one as .npy, which is read in blocks."
        )
        with found:
            return {key: np.atleast_1d(found[key]) for key in found.files}
    except FileFormatError:
        raise
    except (
        Exception
    ) as error:  # NumPy parses headers, zip unpacks: they raise what they like
        why = "it is damaged"
        remedy = "Write or download it again."
        if any(word in str(error) for word in ("pickle", "Python objects")):
            why = "it holds Python objects, which are never loaded"
            remedy = "Save plain numbers and words."
        raise FileFormatError(f"{name} cannot be read: {why}.", remedy=remedy) from None
