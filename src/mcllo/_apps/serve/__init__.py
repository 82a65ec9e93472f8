"""`mcllo serve`: a page on this machine where one drops a table, and takes the recalibrated one
away.

A face of the command line and nothing more: each piece of work is one of its verbs, in a process of
its own, and each file the one that the verb writes. Imports all rooms, Starlette, uvicorn and
python-multipart (the extra ``serve``); computes nothing.

==================  ==============================================================================
`guard`             who may ask; `limits` how much
`app`               which address does what; `pages` what it shows
`upload`            where tables are kept, and that they are gone afterwards; how a file comes in
`column_detection`  what a table seems to hold; `choices` what the form says of it
`jobs`              the tables at work; `worker` the process that works
==================  ==============================================================================
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...exceptions import InputError
from .limits import LIMITS, ServerLimits

HOST = "127.0.0.1"


def serve(
    port: int,
    echo: Callable[[str], Any],
    open_in_browser: Callable[[str], Any] | None = None,
    *,
    limits: ServerLimits = LIMITS,
    parent_folder: Path | None = None,
) -> None:
    """Serve the page until Ctrl-C; `echo` prints, `open_in_browser` opens an address in a browser.

    Port 0 is any that is free. `parent_folder` is where the private folder is made.
    """
    import uvicorn

    from ..cli.interruption import interruption
    from .app import build_app
    from .upload import private_temporary_folder

    with (
        open_listening_socket(port) as sock,
        private_temporary_folder(parent_folder) as folder,
    ):
        guard = build_app(folder, sock.getsockname()[1], limits)
        echo(
            f"mcllo serve: {guard.page_address}\n"
            "Nothing leaves this machine, and nothing is kept: press Ctrl-C to end it."
        )
        if open_in_browser is not None:
            open_in_browser(guard.one_time_address)
        config = uvicorn.Config(
            guard,
            loop="asyncio",
            http="h11",
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,  # seconds that open connections get at the end
        )
        # What a signal breaks off is no error, and its traceback nothing to read.
        logger = logging.getLogger("uvicorn.error")
        logger.addFilter(lambda record: interruption.exit_code is None)
        server = uvicorn.Server(config)
        try:
            server.run(sockets=[sock])
        except KeyboardInterrupt:  # the way in which it ends
            interruption.settle()
            echo("mcllo serve: ended; the tables are removed.")


def open_listening_socket(port: int) -> socket.socket:
    """Return a socket of this machine alone that listens; refuse a port that is taken."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # there it would share a port that is taken
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
        sock.listen()
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or "it is no port"
        raise InputError(
            "{found} cannot be listened on: {reason}.",
            argument="port",
            value=port,
            values={"reason": reason.lower()},
            remedy="Choose another from 1024 to 65535, or leave it out: any free one is taken.",
        ) from None
    return sock
