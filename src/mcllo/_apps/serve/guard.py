"""How much a page takes: beyond it, one sentence says so and what to do instead.

===========  ====================================================================================
`n_bytes`    of a file that is dropped
`rows`       of its table
`columns`    of its table: each is a line of a form
`classes`    among them
`seconds`    of one piece of work, from its first second
`jobs`       tables that are kept at a time; the oldest idle one makes room
`at_once`    pieces of work that run at a time; others wait for their turn
===========  ====================================================================================

The command line has none of these limits: it reads files in blocks and waits as long as it takes.

Who may ask: everything is refused that does not come from the page that was opened here.

===================  ==============================================================================
loopback             the socket listens on 127.0.0.1 alone
``Host``             must be 127.0.0.1 or localhost with our port: a name that somebody pointed at
                     this machine (DNS rebinding) is refused
token                32 random bytes that begin every address. It is in no cookie: cookies of
                     127.0.0.1 go to every port of it, so that another program here would be sent
                     it; and a page elsewhere cannot post to an address that it does not know
the browser          is started with a code that is good for one request and leads to the token:
                     command lines can be read by every user of a machine
``Origin``           what changes something must come from our own page: ``Sec-Fetch-Site:
                     same-origin``, or our origin from browsers that do not send it
content policy       nothing from elsewhere, no script but the file of this package; reports stand
                     in a sandbox without an origin, with the policy that they carry themselves
also                 no sniffing of types, no referrer, nothing kept in a cache
===================  ==============================================================================
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from ...exceptions import FileFormatError, InputError

COMMAND_LINE_ADVICE = "Use fewer, or the command line, which has no such limit: mcllo help assess."


@dataclass(frozen=True)
class Limits:
    """What a page takes; see the module."""

    n_bytes: int = 200_000_000
    rows: int = 1_000_000
    columns: int = 1_000
    classes: int = 500
    seconds: float = 600.0
    jobs: int = 20
    at_once: int = 2

    def too_large(self) -> FileFormatError:
        """Return the refusal of a file."""
        most = f"{self.n_bytes / 1e6:,.3g} MB"
        return FileFormatError(
            f"a file must have at most {most} here; this one has more.", remedy=COMMAND_LINE_ADVICE
        )

    def check_table(self, name: str, n_rows: int, n_columns: int) -> None:
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

    def check_classes(self, n_classes: int) -> None:
        """Refuse too many classes."""
        if n_classes > self.classes:
            raise InputError(
                f"at most {self.classes:,} columns may be classes here; got {n_classes:,}.",
                remedy=COMMAND_LINE_ADVICE,
            )

    def too_long(self) -> str:
        """Say that work was ended for the time it took."""
        return (
            f"the work must be done within {self.seconds:g} seconds here; it was not. "
            f"{COMMAND_LINE_ADVICE}"
        )


LIMITS = Limits()


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox allow-scripts allow-popups; connect-src 'none'; object-src 'none'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
"""Of a report, whose own policy (in its head) forbids every request and all scripts but its own."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
SAFE_METHODS = ("GET", "HEAD")
OPEN_PATH = "/open/"


class Guard:
    """Stands before an application; see the module."""

    def __init__(self, app: App, port: int, token: str = "") -> None:
        self.app, self.port = app, port
        self.token = token or secrets.token_urlsafe(32)
        self.code = secrets.token_urlsafe(32)
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    @property
    def root(self) -> str:
        """What every address begins with."""
        return f"/{self.token}"

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{self.hosts[0]}{self.root}/"

    @property
    def one_time_address(self) -> str:
        """The address that leads to the page a single time."""
        return f"http://{self.hosts[0]}{OPEN_PATH}{self.code}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sends = _with_headers(send)
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        path: str = scope["path"]
        if headers.get("host") not in self.hosts:
            await _send_sentence(sends, 421, "This address is not that of mcllo serve.")
        elif path.startswith(OPEN_PATH):
            await self._open(path[len(OPEN_PATH) :], sends)
        elif not _same(path[1:].split("/")[0], self.token):
            words = "Open the address that mcllo serve printed: it ends in a token of its own."
            await _send_sentence(sends, 403, words)
        elif scope["method"] not in SAFE_METHODS and not self.from_here(headers):
            await _send_sentence(sends, 403, "This was not asked for by the page of mcllo serve.")
        else:
            await self.app({**scope, "root_path": self.root}, receive, sends)

    def from_here(self, headers: dict[str, str]) -> bool:
        """Whether a request that changes something comes from our own page.

        Pages that send no referrer post with ``Origin: null``, so that a browser's own word counts.
        """
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site == "same-origin"
        return headers.get("origin") in [f"http://{host}" for host in self.hosts]

    async def _open(self, code: str, send: Send) -> None:
        """Lead to the page, once."""
        if not self.code or not _same(code, self.code):
            words = "This address was for one request. Open the one that mcllo serve printed."
            await _send_sentence(send, 403, words)
            return
        self.code = ""
        await _send_sentence(send, 303, "", [(b"location", f"{self.root}/".encode("ascii"))])


def _same(given: str, known: str) -> bool:
    """Whether two secrets are equal, in a time that does not say how far they are."""
    return hmac.compare_digest(given.encode("utf-8"), known.encode("utf-8"))


def _with_headers(send: Send) -> Send:
    """Return a `send` that adds our headers where an answer has none of that name."""

    async def sends(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            known = {name.lower() for name, _ in given}
            ours = ((k.encode("ascii"), v.encode("ascii")) for k, v in HEADERS.items())
            message["headers"] = [*given, *(pair for pair in ours if pair[0] not in known)]
        await send(message)

    return sends


async def _send_sentence(
    send: Send, status: int, words: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Answer with one sentence."""
    kind = (b"content-type", b"text/plain; charset=utf-8")
    start = {"type": "http.response.start", "status": status, "headers": [kind, *(headers or [])]}
    await send(start)
    await send({"type": "http.response.body", "body": words.encode("utf-8")})
