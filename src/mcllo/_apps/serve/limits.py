"""How much a page takes: beyond it, one sentence says so and what to do instead.

The command line has none of these limits: it reads files in blocks and waits as long as it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...exceptions import FileFormatError, InputError

COMMAND_LINE_ADVICE = (
    "Use fewer, or the command line, which has no such limit: mcllo help assess."
)


@dataclass(frozen=True)
class ServerLimits:
    """What a page takes. The defaults are round numbers; docs/how-to/serve.md names them.

    Parameters
    ----------
    n_bytes : int
        Of a file that is dropped.
    rows, columns, classes : int
        Of its table; each column is a line of a form.
    seconds : float
        Of one piece of work, from its first second.
    jobs : int
        Tables that are kept at a time; the oldest idle one makes room.
    at_once : int
        Pieces of work that run at a time; others wait for their turn.
    """

    n_bytes: int = 200_000_000
    rows: int = 1_000_000
    columns: int = 1_000
    classes: int = 500
    seconds: float = 600.0
    jobs: int = 20
    at_once: int = 2

    def file_too_large_error(self) -> FileFormatError:
        """Return the refusal of a file."""
        most = f"{self.n_bytes / 1e6:,.3g} MB"
        return FileFormatError(
            f"a file must have at most {most} here; this one has more.",
            remedy=COMMAND_LINE_ADVICE,
        )

    def check_table_size(self, name: str, n_rows: int, n_columns: int) -> None:
        """Refuse a table of too many rows or columns; `n_rows` need not be counted to the end."""
        for most, found, what in (
            (self.columns, n_columns, "columns"),
            (self.rows, n_rows, "rows"),
        ):
            if found > most:
                raise FileFormatError(
                    f"{name} must have at most {most:,} {what} here; it has more.",
                    remedy=COMMAND_LINE_ADVICE,
                )

    def check_class_count(self, n_classes: int) -> None:
        """Refuse too many classes."""
        if n_classes > self.classes:
            raise InputError(
                f"at most {self.classes:,} columns may be classes here; got {n_classes:,}.",
                remedy=COMMAND_LINE_ADVICE,
            )

    def timeout_text(self) -> str:
        """Say that work was ended for the time it took."""
        return (
            f"the work must be done within {self.seconds:g} seconds here; it was not. "
            f"{COMMAND_LINE_ADVICE}"
        )


LIMITS = ServerLimits()
