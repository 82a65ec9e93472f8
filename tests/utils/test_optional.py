"""`_utils/optional`: what is missing is named, and nothing else is taken for missing."""

import sys

import pytest

from mcllo._utils import atomic_files
from mcllo._utils.optional import (
    CLI_EXTRA,
    MissingPackageError,
    check_installed,
    import_optional,
)
from mcllo.exceptions import InputError


def test_what_is_there_is_returned():
    assert import_optional("json.decoder", CLI_EXTRA).__name__ == "json.decoder"
    check_installed(("json", "csv"), CLI_EXTRA)


@pytest.mark.parametrize(
    "ask", [import_optional, lambda name, install: check_installed((name,), install)]
)
def test_what_is_missing_is_an_input_error_and_an_import_error(ask):
    with pytest.raises(InputError) as caught:
        ask("no_such_package", CLI_EXTRA)
    assert isinstance(caught.value, MissingPackageError)
    assert isinstance(caught.value, ImportError)
    assert str(caught.value) == (
        "this needs the package no_such_package, which is not installed. "
        "Install it with: pip install 'mcllo[cli]'."
    )


def test_progress_on_a_terminal_is_not_shown_without_rich(monkeypatch, capsys):
    monkeypatch.setattr(
        atomic_files, "is_terminal", lambda stream: stream is sys.stderr
    )
    monkeypatch.setitem(sys.modules, "rich", None)
    with atomic_files.progress("reading") as advance:
        advance(1)
    assert capsys.readouterr().err == ""
