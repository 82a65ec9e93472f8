"""`mcllo serve`: a page in the browser, for those who would rather not type.

The page stands on top of the command line, so that this verb cannot import it: it finds `_serve` by
name when it runs.
"""

from __future__ import annotations

from importlib import import_module

import typer

from ..._utils.optional import SERVE_EXTRA, check_installed
from .echo import echo

NEEDED_MODULES = ("starlette", "uvicorn", "python_multipart")
PORT = typer.Option(0, help="Port of 127.0.0.1 to listen on. Default: any that is free.")
NO_BROWSER = typer.Option(False, "--no-browser", help="Only print the address.")


def serve(port: int = PORT, no_browser: bool = NO_BROWSER) -> None:
    """Open a page on this machine: drop a table, read the report, take the recalibrated table away.

    Nothing leaves the machine, and nothing is kept after Ctrl-C.
    """
    check_installed(NEEDED_MODULES, SERVE_EXTRA, "mcllo serve")
    show = None if no_browser else typer.launch
    import_module("mcllo._apps.serve").serve(port, echo, show)
