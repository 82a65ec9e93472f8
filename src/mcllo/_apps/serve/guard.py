"""Who may ask: everything is refused that does not come from the page that was opened here.

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
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
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


class RequestGuard:
    """Stands before an application; see the module."""

    def __init__(self, app: App, port: int, token: str = "") -> None:
        self.app = app
        self.port = port
        self.token = token or secrets.token_urlsafe(32)
        self.one_time_code = secrets.token_urlsafe(32)
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    @property
    def root_path(self) -> str:
        """What every address begins with."""
        return f"/{self.token}"

    @property
    def page_address(self) -> str:
        """Where the page is."""
        return f"http://{self.hosts[0]}{self.root_path}/"

    @property
    def one_time_address(self) -> str:
        """The address that leads to the page a single time."""
        return f"http://{self.hosts[0]}{OPEN_PATH}{self.one_time_code}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)  # an answer's own policy stays
            await send(message)

        answer = self.redirect_or_refuse(scope)
        if answer is not None:
            await answer(scope, receive, send_with_headers)
        else:
            await self.app(
                {**scope, "root_path": self.root_path}, receive, send_with_headers
            )

    def redirect_or_refuse(self, scope: Scope) -> Response | None:
        """Return the answer to a request that the application is not to see; None if it is."""
        headers = Headers(scope=scope)
        path: str = scope["path"]
        # Not Starlette's TrustedHostMiddleware: it does not look at the port, and answers without
        # a word of what to do.
        if headers.get("host") not in self.hosts:
            return PlainTextResponse("This address is not that of mcllo serve.", 421)
        if path.startswith(OPEN_PATH):
            return self._redirect_with_code_once(path[len(OPEN_PATH) :])
        if not _equal_in_constant_time(path[1:].split("/")[0], self.token):
            return PlainTextResponse(
                "Open the address that mcllo serve printed: it ends in a token of its own.",
                403,
            )
        if scope["method"] not in SAFE_METHODS and not self.is_from_own_page(headers):
            return PlainTextResponse(
                "This was not asked for by the page of mcllo serve.", 403
            )
        return None

    def is_from_own_page(self, headers: Headers) -> bool:
        """Whether a request that changes something comes from our own page.

        Pages that send no referrer post with ``Origin: null``, so that a browser's own word counts.
        """
        # no script can set this header
        site = headers.get("sec-fetch-site")
        if site is not None:
            return bool(site == "same-origin")
        return headers.get("origin") in [f"http://{host}" for host in self.hosts]

    def _redirect_with_code_once(self, sent_code: str) -> Response:
        """Lead to the page, once."""
        if not self.one_time_code or not _equal_in_constant_time(
            sent_code, self.one_time_code
        ):
            return PlainTextResponse(
                "This address was for one request. Open the one that mcllo serve printed.",
                403,
            )
        # the code stood in a command line, which other users of the machine can read
        self.one_time_code = ""
        return RedirectResponse(f"{self.root_path}/", status_code=303)


def _equal_in_constant_time(sent: str, secret: str) -> bool:
    """Whether two secrets are equal, in a time that does not say how far they are."""
    return hmac.compare_digest(sent.encode("utf-8"), secret.encode("utf-8"))
