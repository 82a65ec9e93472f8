"""The file of a monitor: SQLite, one transaction for a batch, and no row of anybody's data.

==========  ======================================================================================
`meta`      format, its version, and the settings as JSON (classes, levels, the recalibration)
`state`     one row: what the next batch needs, as named arrays of numbers
`batches`   one row a batch: number of arrival, id, time, checksum, and the sums up to it
==========  ======================================================================================

A write-ahead log with full synchronisation makes a batch either there or not, whenever the process
is killed. Whoever adds takes the write lock before reading the state: a second process waits up to
`LOCK_TIMEOUT_SECONDS` seconds and is then refused. After every batch the log is written back, so
that the one file is all there is to copy.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.atomic_files import StrPath, check_writable, replace_atomically
from .._utils.results import Floats
from ..exceptions import FileFormatError

FORMAT = "mcllo monitor"
FORMAT_VERSION = 1
LOCK_TIMEOUT_SECONDS = 30.0
"""Seconds to wait for another process."""

Numbers = dict[str, Floats]
Step = Callable[[sqlite3.Connection], None]
STEPS: dict[int, Step] = {}
"""What leads from a version to the next; none has been needed yet."""

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE state (only INTEGER PRIMARY KEY CHECK (only = 1), numbers BLOB NOT NULL);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, time TEXT NOT NULL, added TEXT NOT NULL,
    checksum TEXT NOT NULL, numbers BLOB NOT NULL
);
"""
INDEX = "CREATE INDEX IF NOT EXISTS by_checksum ON batches (checksum)"
"""So that looking for rows does not take longer with every batch."""


@dataclass(frozen=True, eq=False)
class Record:
    """A batch as it was stored: its number of arrival, names, and sums over all batches up to it.

    Attributes
    ----------
    number : int
        1 for the first that arrived.
    id, time, added, checksum : str
        Its name, the time it is about, when it was added, and the checksum of its rows.
    numbers : dict
        Sums, by name.
    """

    number: int
    id: str
    time: str
    added: str
    checksum: str
    numbers: Numbers


def pack_arrays(numbers: Mapping[str, Any]) -> bytes:
    """Return named arrays as bytes: a line of JSON with their shapes, then little-endian doubles.

    Examples
    --------
    >>> unpack_arrays(pack_arrays({"a": [1.0, 2.0], "b": 3.0}))
    {'a': array([1., 2.]), 'b': array(3.)}
    """
    arrays = {name: np.asarray(value, dtype="<f8") for name, value in numbers.items()}
    header = json.dumps({name: array.shape for name, array in arrays.items()}).encode()
    return header + b"\n" + b"".join(array.tobytes() for array in arrays.values())


def unpack_arrays(data: bytes) -> Numbers:
    """Return what `pack_arrays` was given."""
    header, body = data.split(b"\n", 1)
    values, found, start = np.frombuffer(body, dtype="<f8"), dict[str, Floats](), 0
    for name, shape in json.loads(header).items():
        size = int(np.prod(shape, dtype=np.intp))
        found[name] = values[start : start + size].reshape(shape)
        start += size
    return found


class Store:
    """An open file, or memory where `path` is None."""

    def __init__(self, path: StrPath | None, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def create(cls, path: StrPath | None, settings: Mapping[str, Any]) -> Store:
        """Make a new file; one that exists is refused."""
        if path is not None:
            check_writable(path)
            if Path(path).exists():
                raise FileFormatError(
                    f"{path} must be a new file; it exists.",
                    remedy="Add batches to it with mcllo monitor add, or choose another name.",
                )
        meta = {"format": FORMAT, "format_version": str(FORMAT_VERSION)}
        meta["settings"] = json.dumps(settings, ensure_ascii=False)
        if path is None:
            store = cls(None, _connect(None))
            store._create_tables(meta)
            return store
        with replace_atomically(path) as temporary:
            connection = _connect(temporary)
            try:
                connection.execute(
                    "PRAGMA journal_mode = OFF"
                )  # nothing beside it to be left over
                cls(path, connection)._create_tables(meta)
            finally:
                connection.close()
        return cls.open(path)

    def _create_tables(self, meta: Mapping[str, str]) -> None:
        """Write the tables of an empty monitor."""
        with self.writing():
            for statement in SCHEMA.split(";"):
                self._connection.execute(statement)
            self._connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())

    @classmethod
    def open(
        cls,
        path: StrPath,
        migrations: Mapping[int, Step] = STEPS,
        patience: float = LOCK_TIMEOUT_SECONDS,
    ) -> Store:
        """Open a file; an older format is brought up to date, a newer one refused."""
        if not Path(path).is_file():
            raise FileFormatError(
                f"{path} must be a monitor; there is no such file.",
                remedy="Start one with mcllo monitor start.",
            )
        store = cls(path, _connect(path, patience))
        try:
            meta = dict(store._connection.execute("SELECT name, value FROM meta"))
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise _database_error(error, path) from None
            meta = {}
        if meta.get("format") != FORMAT:
            store.close()
            raise FileFormatError(
                f"{path} must be a monitor; it is something else.",
                remedy="Name the file that mcllo monitor start made.",
            )
        store.upgrade(int(meta["format_version"]), migrations)
        store._use_write_ahead_log()
        return store

    def _use_write_ahead_log(self) -> None:
        """Let others read while one writes (WAL); the file remembers it."""
        mode = self._connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            with suppress(
                sqlite3.OperationalError
            ):  # in use; whoever opens it next does it
                self._connection.execute("PRAGMA journal_mode = WAL")

    def upgrade(self, version: int, migrations: Mapping[int, Step]) -> None:
        """Take each step from `version` to the newest, all in one transaction."""
        newest = max(migrations, default=FORMAT_VERSION - 1) + 1
        if version > newest:
            self.close()
            raise FileFormatError(
                f"{self.path} must be of format {newest} or older; it is of format {version}.",
                remedy="Update mcllo.",
            )
        if version < newest:
            with self.writing():
                for old in range(version, newest):
                    migrations[old](self._connection)
                self._write_meta_value("format_version", str(newest))

    @property
    def settings(self) -> dict[str, Any]:
        """What the monitor was started with."""
        found: dict[str, Any] = json.loads(self._read_meta_value("settings"))
        if "repaired" in found:  # what files of format 1 call it
            found["recalibrated"] = found.pop("repaired")
        return found

    @property
    def format_version(self) -> int:
        """Version of the file's format."""
        return int(self._read_meta_value("format_version"))

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Write settings; inside of `writing`."""
        self._write_meta_value("settings", json.dumps(settings, ensure_ascii=False))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock; all is written at the end, or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise _database_error(error, self.path) from None
        try:
            yield
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._rollback()
            raise _database_error(error, self.path) from None
        except BaseException:
            self._rollback()
            raise
        if self.path is not None:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def state(self) -> Numbers:
        """Return what the next batch needs; nothing before the first."""
        row = self._connection.execute("SELECT numbers FROM state").fetchone()
        return {} if row is None else unpack_arrays(row[0])

    def find_by_batch_id(self, batch: str) -> Record | None:
        """Return the batch of this id."""
        return self._select_one_record("WHERE id = ?", batch)

    def find_by_checksum(self, checksum: str) -> Record | None:
        """Return the first batch with these rows; inside of `writing`."""
        self._connection.execute(INDEX)
        return self._select_one_record(
            "WHERE checksum = ? ORDER BY number LIMIT 1", checksum
        )

    def record_by_number(self, number: int) -> Record | None:
        """Return the batch of this number, counted from 1."""
        return self._select_one_record("WHERE number = ?", number)

    def last_record(self) -> Record | None:
        """Return the batch that was added last."""
        return self._select_one_record("ORDER BY number DESC LIMIT 1")

    def records(self) -> list[Record]:
        """Return all batches as they arrived."""
        return [_record_from_row(row) for row in self._select_rows("ORDER BY number")]

    def append(self, record: Record, state: Mapping[str, Any]) -> None:
        """Add a batch and the state after it; inside of `writing`."""
        names = (record.number, record.id, record.time, record.added, record.checksum)
        self._connection.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)",
            (*names, pack_arrays(record.numbers)),
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO state VALUES (1, ?)", (pack_arrays(state),)
        )

    def backup(self, path: StrPath) -> None:
        """Write a whole copy, also while another process adds."""
        if Path(path).exists():
            check_writable(path)
            self._copy_database_to(
                path, path
            )  # SQLite's own journal keeps the old one until the end
            return
        with replace_atomically(path) as temporary:
            self._copy_database_to(temporary, path)

    def _copy_database_to(self, target_path: StrPath, name: StrPath) -> None:
        target = sqlite3.connect(target_path)
        try:
            self._connection.backup(target)
        except sqlite3.DatabaseError as error:
            raise _database_error(error, name) from None
        finally:
            target.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _select_one_record(self, where: str, *values: object) -> Record | None:
        rows = self._select_rows(where, values)
        return _record_from_row(rows[0]) if rows else None

    def _select_rows(self, where: str, values: Sequence[object] = ()) -> list[Any]:
        columns = "number, id, time, added, checksum, numbers"
        return self._connection.execute(
            f"SELECT {columns} FROM batches {where}", values
        ).fetchall()

    def _read_meta_value(self, name: str) -> str:
        row = self._connection.execute(
            "SELECT value FROM meta WHERE name = ?", (name,)
        ).fetchone()
        return str(row[0])

    def _write_meta_value(self, name: str, value: str) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value)
        )


def _connect(
    path: StrPath | None, patience: float = LOCK_TIMEOUT_SECONDS
) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            ":memory:" if path is None else str(path),
            timeout=patience,
            isolation_level=None,
        )
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.DatabaseError as error:
        raise _database_error(error, path) from None
    return connection


def _record_from_row(row: Any) -> Record:
    number, batch, time, added, checksum, numbers = row
    return Record(number, batch, time, added, checksum, unpack_arrays(numbers))


def _database_error(error: sqlite3.Error, path: StrPath | None) -> FileFormatError:
    """Return a database's complaint as one sentence."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return FileFormatError(
            f"{path} is in use: another process has been adding to it all the time.",
            remedy="Wait until it ends, and run this again.",
        )
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return FileFormatError(
            f"{path} must be a monitor; it is something else.",
            remedy="Name the file that mcllo monitor start made.",
        )
    return FileFormatError(
        f"{path} cannot be written: {error}.", remedy="Check disk and rights."
    )
