"""A file that is dropped -> a file in the private folder, as it arrives and never whole in memory.

==========  =====================================================================================
bytes       of the first part that has a file name go straight to the disk; other parts are left
the name    as near to the given one as is safe (`_apps/serve/result_files`)
too large   no more is written; the rest is read and forgotten, so that the browser gets to read the
            page that says so
==========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any

from ...exceptions import FileFormatError
from .limits import Limits
from .result_files import safe_name

NO_FILE = "a file must be chosen; none was sent. Choose one, or drop it on the page."


class Upload:
    """Takes the parts of a form as they come; the first file among them is written to `folder`."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.name = ""
        self.size = 0
        self._header, self._value = b"", b""
        self._disposition = b""
        self._file: IO[bytes] | None = None

    @property
    def callbacks(self) -> dict[str, Any]:
        """What the parser of the form calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._field,
            "on_header_value": self._take,
            "on_header_end": self._end_header,
            "on_headers_finished": self._start,
            "on_part_data": self._write,
            "on_part_end": self._close,
        }

    def _begin(self) -> None:
        self._header = self._value = self._disposition = b""

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _take(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _start(self) -> None:
        from python_multipart.multipart import parse_options_header

        given = parse_options_header(self._disposition)[1].get(b"filename", b"")
        if given and not self.name:
            self.name = safe_name(given.decode("utf-8", "replace"))
            self._file = (self.folder / self.name).open("xb")

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is None:
            return
        self.size += end - start
        if self.size <= self.limits.n_bytes:
            self._file.write(data[start:end])

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


async def receive_file(
    chunks: AsyncIterator[bytes], content_type: str, folder: Path, limits: Limits
) -> str:
    """Write the file of a form to `folder` as it arrives; return its name."""
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import MultipartParser, parse_options_header

    kind, options = parse_options_header(content_type)
    upload = Upload(folder, limits)
    broken = kind != b"multipart/form-data" or b"boundary" not in options
    parser = None if broken else MultipartParser(options[b"boundary"], upload.callbacks)
    try:
        async for chunk in chunks:
            if parser is not None and upload.size <= limits.n_bytes:
                parser.write(chunk)
    except FormParserError:
        raise FileFormatError(NO_FILE) from None
    finally:
        upload._close()
    if upload.size > limits.n_bytes:
        raise limits.too_large()
    if not upload.name:
        raise FileFormatError(NO_FILE)
    return upload.name
