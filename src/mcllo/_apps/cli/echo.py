"""The one way in which verbs print: what stands in names is shown, and never obeyed."""

from __future__ import annotations

import typer

from ..._utils.terminal import visible


def echo(text: str, err: bool = False) -> None:
    """Print `text` on standard output, or on standard error."""
    typer.echo(visible(text), err=err)
