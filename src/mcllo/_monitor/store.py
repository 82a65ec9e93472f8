"""The file of a monitor: SQLite, one transaction for a batch, and no row of anybody's data.

==========  ======================================================================================
`meta`      format, its version, the settings as JSON (classes, levels, the recalibration), and a
            checksum of these
`state`     one row: what the next batch needs, as named arrays of numbers with their checksum
`batches`   one row a batch: number of arrival, id, time, checksum of its rows, and the sums up to
            it, with a checksum of all these
==========  ======================================================================================

A write-ahead log with full synchronisation makes a batch either there or not, whenever the process
is killed. Whoever adds takes the write lock before reading the state: a second process waits up to
`LOCK_TIMEOUT_SECONDS` seconds and is then refused. After every batch the log is written back, so
that the one file is all there is to copy. Once a batch is in, nothing that fails afterwards fails
the call: a log that cannot be written back, on a full disk, is a warning.

A file is damaged by disks, by copies that broke off, by hand. It is checked when it is opened (by
SQLite: pages and indexes; here: the settings, the number of batches) and where it is read (the
checksum of what is read, then whether such numbers can be: `_monitor/stored_values`). What is
damaged is bad input; `read_what_is_left` gives what is still readable.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.atomic_files import StrPath, check_writable, replace_atomically
from .._utils.results import Floats, none_for_nonfinite
from .._utils.statements import warn
from ..exceptions import FileFormatError, MclloWarning
from .stored_values import check_settings, check_state, check_sums

FORMAT = "mcllo monitor"
FORMAT_VERSION = 2
LOCK_TIMEOUT_SECONDS = 30.0
"""Seconds to wait for another process."""

Numbers = dict[str, Floats]
Step = Callable[[sqlite3.Connection], None]

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


def pack_arrays(numbers: Mapping[str, Any], *names: object) -> bytes:
    """Return named arrays as bytes: a checksum, a line of JSON with shapes, little-endian doubles.

    The checksum is of the `names` that they belong to, too.

    Examples
    --------
    >>> unpack_arrays(pack_arrays({"a": [1.0, 2.0], "b": 3.0}, "monday"), "monday")
    {'a': array([1., 2.]), 'b': array(3.)}
    """
    arrays = {name: np.asarray(value, dtype="<f8") for name, value in numbers.items()}
    header = json.dumps({name: array.shape for name, array in arrays.items()}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    content = header + b"\n" + body
    return _checksum(content, *names) + b"\n" + content


def unpack_arrays(data: bytes, *names: object) -> Numbers:
    """Return what `pack_arrays` was given; a ValueError says that it is not that any more."""
    checksum, _, content = data.partition(b"\n")
    if checksum != _checksum(content, *names):
        raise ValueError("its checksum is of other numbers")
    return _parse_arrays(content)


def _parse_arrays(content: bytes) -> Numbers:
    """Return named arrays from a line of JSON with shapes, and doubles."""
    header, _, body = content.partition(b"\n")
    values, found, start = np.frombuffer(body, dtype="<f8"), dict[str, Floats](), 0
    for name, shape in json.loads(header).items():
        size = int(np.prod(shape, dtype=np.intp))
        found[name] = values[start : start + size].reshape(shape)
        start += size
    if start != len(values):
        raise ValueError("it has more numbers than it says")
    return found


def _checksum(content: bytes, *names: object) -> bytes:
    """Return the SHA-256 of names and content, as text."""
    digest = hashlib.sha256(repr(names).encode("utf-8", "backslashreplace"))
    digest.update(content)
    return digest.hexdigest().encode()


def _checksum_meta(meta: Mapping[str, str]) -> str:
    rest = sorted((name, value) for name, value in meta.items() if name != "checksum")
    return _checksum(b"", *rest).decode()


def _add_checksums(connection: sqlite3.Connection) -> None:
    """Bring a file of format 1, which has no checksums, to format 2."""
    select = "SELECT number, id, time, added, checksum, numbers FROM batches"
    for *names, data in connection.execute(select).fetchall():
        packed = pack_arrays(_parse_arrays(data), *names)
        update = "UPDATE batches SET numbers = ? WHERE number = ?"
        connection.execute(update, (packed, names[0]))
    for (data,) in connection.execute("SELECT numbers FROM state").fetchall():
        packed = pack_arrays(_parse_arrays(data))
        connection.execute("UPDATE state SET numbers = ?", (packed,))


STEPS: dict[int, Step] = {1: _add_checksums}
"""What leads from a version to the next."""


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
                self._execute(statement)
            for name, value in meta.items():
                self._write_meta_value(name, value)

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
            store._check_format_and_upgrade(migrations)
            store._check_whole()
            store._use_write_ahead_log()
        except BaseException:
            store.close()
            raise
        return store

    def _check_format_and_upgrade(self, migrations: Mapping[int, Step]) -> None:
        """Refuse what is no monitor of a known version, and bring an older one up to date."""
        try:
            meta = dict(self._connection.execute("SELECT name, value FROM meta"))
        except SQLITE_ERRORS as error:
            if _code_of(error) not in DAMAGE_CODES:
                raise _database_error(error, self.path) from None
            meta = {}
        if meta.get("format") != FORMAT:
            raise _no_monitor_error(self.path)
        version = meta.get("format_version")
        if not isinstance(version, str) or not _is_version(version):
            raise self._damaged("its format has no number")
        if int(version) >= 2 and meta.get("checksum") != _checksum_meta(meta):
            raise self._damaged("its settings do not have their checksum")
        self.upgrade(int(version), migrations)

    def _check_whole(self) -> None:
        """Refuse a file whose pages or indexes are damaged, or that has lost batches."""
        if self._execute("PRAGMA integrity_check(1)") != [("ok",)]:
            raise self._damaged("SQLite finds its pages or indexes wrong")
        select = "SELECT count(*), max(number) FROM batches"
        [(n_batches, last)] = self._execute(select)
        n_known = int(self.state().get("n_batches", np.array(0.0)))
        if not n_batches == (last or 0) == n_known:
            raise self._damaged(
                f"it holds {n_batches} batches where {n_known} were added"
            )

    def _use_write_ahead_log(self) -> None:
        """Let others read while one writes (WAL); the file remembers it."""
        if self._execute("PRAGMA journal_mode") != [("wal",)]:
            with suppress(
                sqlite3.OperationalError
            ):  # in use; whoever opens it next does it
                self._connection.execute("PRAGMA journal_mode = WAL")
        # SQLite's own checkpoint, after so many pages, would fail a COMMIT that is in
        self._execute("PRAGMA wal_autocheckpoint = 0")

    def upgrade(self, version: int, migrations: Mapping[int, Step]) -> None:
        """Take each step from `version` to the newest, all in one transaction."""
        newest = max(migrations, default=FORMAT_VERSION - 1) + 1
        if version > newest:
            raise FileFormatError(
                f"{self.path} must be of format {newest} or older; it is of format {version}.",
                remedy="Update mcllo.",
            )
        if version < newest:
            with self.writing():
                for old in range(version, newest):
                    try:
                        migrations[old](self._connection)
                    except (ValueError, TypeError, sqlite3.Error) as error:
                        raise self._error_when_reading("its batches", error) from None
                self._write_meta_value("format_version", str(newest))

    @property
    def settings(self) -> dict[str, Any]:
        """What the monitor was started with."""
        try:
            found: dict[str, Any] = json.loads(self._read_meta_value("settings"))
            if "repaired" in found:  # what files of before call it
                found["recalibrated"] = found.pop("repaired")
            check_settings(found)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._error_when_reading("its settings", error) from None
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
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            self._rollback()
            raise
        if self.path is not None:
            self._write_log_back()

    def _write_log_back(self) -> None:
        """Write the log into the file; what was committed stays in where that fails."""
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            warn(
                MclloWarning(
                    "the batch is in, but the log of a monitor cannot be written back to its file.",
                    detail=f"the batch is in, but {self.path}-wal cannot be written back to "
                    f"{self.path} ({error}): make room, and copy both files until then.",
                )
            )

    def _rollback(self) -> None:
        with suppress(
            *SQLITE_ERRORS
        ):  # SQLite has done it already where a disk is full
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def state(self) -> Numbers:
        """Return what the next batch needs; nothing before the first."""
        rows = self._execute("SELECT numbers FROM state")
        if not rows:
            return {}
        try:
            found = unpack_arrays(rows[0][0])
            check_state(found, self._n_classes())
        except (ValueError, TypeError, KeyError) as error:
            raise self._error_when_reading("its state", error) from None
        return found

    def find_by_batch_id(self, batch: str) -> Record | None:
        """Return the batch of this id."""
        return self._select_one_record("WHERE id = ?", batch)

    def find_by_checksum(self, checksum: str) -> Record | None:
        """Return the first batch with these rows; inside of `writing`."""
        self._execute(INDEX)
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
        n_classes = self._n_classes()
        rows = self._select_rows("ORDER BY number")
        return [self._record_from_row(row, n_classes) for row in rows]

    def append(self, record: Record, state: Mapping[str, Any]) -> None:
        """Add a batch and the state after it; inside of `writing`."""
        names = (record.number, record.id, record.time, record.added, record.checksum)
        self._execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)",
            (*names, pack_arrays(record.numbers, *names)),
        )
        self._execute(
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
        except SQLITE_ERRORS as error:
            raise _database_error(error, name) from None
        finally:
            target.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _select_one_record(self, where: str, *values: object) -> Record | None:
        rows = self._select_rows(where, values)
        return self._record_from_row(rows[0], self._n_classes()) if rows else None

    def _select_rows(self, where: str, values: Sequence[object] = ()) -> list[Any]:
        columns = "number, id, time, added, checksum, numbers"
        return self._execute(f"SELECT {columns} FROM batches {where}", values)

    def _record_from_row(self, row: Any, n_classes: int) -> Record:
        """Return a batch; one that is not as it was written is refused."""
        number, batch, time, added, checksum, data = row
        names = (number, batch, time, added, checksum)
        try:
            numbers = unpack_arrays(data, *names)
            check_sums(numbers, n_classes)
        except (ValueError, TypeError) as error:
            raise self._error_when_reading(f"batch {number}", error) from None
        return Record(*names, numbers)

    def _n_classes(self) -> int:
        """Return the number of classes; those of a file with batches are known."""
        classes = self.settings["classes"]
        if classes is None:
            raise self._damaged("it has batches and no classes")
        return len(classes)

    def _read_meta_value(self, name: str) -> str:
        rows = self._execute("SELECT value FROM meta WHERE name = ?", (name,))
        if not rows:
            raise self._damaged(f"its {name} is missing")
        return str(rows[0][0])

    def _write_meta_value(self, name: str, value: str) -> None:
        insert = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
        self._execute(insert, (name, value))
        meta = dict(self._execute("SELECT name, value FROM meta"))
        self._execute(insert, ("checksum", _checksum_meta(meta)))

    def _execute(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        """Run a statement and return its rows; what the database complains of is one sentence."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except SQLITE_ERRORS as error:
            raise _database_error(error, self.path) from None

    def _error_when_reading(self, what: str, error: Exception) -> FileFormatError:
        if isinstance(error, SQLITE_ERRORS):
            return _database_error(error, self.path)
        return self._damaged(f"{what} cannot be read: {error}")

    def _damaged(self, found: str) -> FileFormatError:
        return _damage_error(self.path, found)


def _connect(
    path: StrPath | None, patience: float = LOCK_TIMEOUT_SECONDS
) -> sqlite3.Connection:
    place = ":memory:" if path is None else str(path)
    try:
        connection = sqlite3.connect(place, timeout=patience, isolation_level=None)
    except SQLITE_ERRORS as error:
        raise _database_error(error, path) from None
    try:
        connection.execute("PRAGMA synchronous = FULL")
    except SQLITE_ERRORS as error:
        connection.close()
        raise _database_error(error, path) from None
    return connection


def _is_version(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < len(text) < 6 and text[0] != "0"


DAMAGE_CODES = (
    sqlite3.SQLITE_NOTADB,  # or another kind of file
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,  # a table or a column is not there
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    0,  # of Python: text that is no UTF-8
)
"""What SQLite says of a file whose content is wrong; else the disk or the rights are."""


SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; of a damaged schema its own sentence may be no UTF-8."""


def _code_of(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _no_monitor_error(path: StrPath | None) -> FileFormatError:
    return FileFormatError(
        f"{path} must be a monitor; it is something else, or damaged.",
        remedy="Name the file that mcllo monitor start made, or go on with its last copy.",
    )


def _damage_error(path: StrPath | None, found: str) -> FileFormatError:
    return FileFormatError(
        f"{path} is damaged: {found}.",
        remedy=f"Go on with its last copy; mcllo monitor show {path} --raw prints what is left.",
    )


def _database_error(error: Exception, path: StrPath | None) -> FileFormatError:
    """Return a database's complaint as one sentence."""
    code = _code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return FileFormatError(
            f"{path} is in use: another process has been adding to it all the time.",
            remedy="Wait until it ends, and run this again.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return _no_monitor_error(path)
    if code in DAMAGE_CODES:
        return _damage_error(path, f"SQLite says {str(error).rstrip('.')!r}")
    return FileFormatError(
        f"{path} cannot be read or written: {error}.",
        remedy="Check disk and rights; what was added before is as it was.",
    )


def read_what_is_left(path: StrPath) -> dict[str, Any]:
    """Return what is readable of a monitor's file, whatever its state, as plain values.

    Returns
    -------
    dict
        `meta`: its rows; `state` and `batches`: names and numbers, each with `intact`, whether it
        has its checksum; `damage`: what could not be read, in sentences.
    """
    if not Path(path).is_file():
        raise FileFormatError(f"{path} must be a monitor; there is no such file.")
    damage: list[str] = []
    connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT_SECONDS)
    connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
    try:
        meta = _rows_until_damage(connection, "SELECT name, value FROM meta", damage)
        state = _rows_until_damage(connection, "SELECT numbers FROM state", damage)
        batches = _rows_by_number(connection, damage)
    except SQLITE_ERRORS as error:
        raise _database_error(error, path) from None
    finally:
        connection.close()
    found_state = [
        _numbers_as_they_are(row[0], (), "the state", damage) for row in state
    ]
    found_batches = []
    for number in sorted(batches):
        *names, data = batches[number]
        keys = ("number", "id", "time", "added", "checksum")
        numbers = _numbers_as_they_are(data, names, f"batch {number}", damage)
        found_batches.append(dict(zip(keys, map(_plain, names), strict=True)) | numbers)
    return {
        "meta": {str(name): _plain(value) for name, value in meta},
        "state": found_state[0] if found_state else None,
        "batches": found_batches,
        "damage": damage,
    }


def _rows_until_damage(
    connection: sqlite3.Connection, select: str, damage: list[str]
) -> list[Any]:
    """Return the rows up to the first that cannot be read."""
    found: list[Any] = []
    try:
        found.extend(connection.execute(select))  # keeps what came before an error
    except SQLITE_ERRORS as error:
        if _code_of(error) not in DAMAGE_CODES:  # the disk, or the rights
            raise
        damage.append(f"{select.partition(' FROM ')[2]}: {error}")
    return found


def _rows_by_number(
    connection: sqlite3.Connection, damage: list[str]
) -> dict[int, Any]:
    """Return batches by number: from the first on, and from the last back to the damage."""
    columns = (
        "SELECT number, id, time, added, checksum, numbers FROM batches ORDER BY number"
    )
    found = {row[0]: row for row in _rows_until_damage(connection, columns, damage)}
    if damage:
        backwards = _rows_until_damage(connection, f"{columns} DESC", [])
        found |= {row[0]: row for row in backwards}
    return found


def _numbers_as_they_are(
    data: Any, names: Sequence[object], what: str, damage: list[str]
) -> dict[str, Any]:
    """Return numbers, and whether they have their checksum."""
    numbers: Numbers = {}
    intact = False
    try:
        content = data if data[:1] == b"{" else data.partition(b"\n")[2]
        numbers = _parse_arrays(content)
        intact = content is data or bool(unpack_arrays(data, *names))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        damage.append(f"{what}: {error}")
    plain = {
        name: none_for_nonfinite(array.tolist()) for name, array in numbers.items()
    }
    return {"intact": intact, "numbers": plain}


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else repr(value)
