"""Run the command line: ``mcllo`` or ``python -m mcllo``."""

from __future__ import annotations

import sys

from .exceptions import InputError, MclloError


def main() -> None:
    """Run a verb; bad input ends in exit code 2 with one line on standard error."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Return the exit code of a command line."""
    from .cli import Abort, UsageError, app, in_flags, line_of

    try:
        code = app(args=arguments, prog_name="mcllo", standalone_mode=False)
    except UsageError as error:
        hint = f" See '{error.ctx.command_path} --help'." if error.ctx else ""
        return _fail(f"{error.format_message()}{hint}")
    except Abort:
        return _fail("interrupted", 130)
    except MclloError as error:
        where = ""
        if isinstance(error, InputError) and error.row is not None:
            files = [word for word in arguments[1:] if not word.startswith("-")]
            where = next((text for word in files if (text := line_of(word, error.row))), "")
        return _fail(in_flags(str(error)) + where)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        return _fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int = 2) -> int:
    print(f"mcllo: {' '.join(message.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
