"""Run the tutorials and write what they show: ``python docs/make_tutorials.py [NAME ...]``.

A page is Markdown that a Git host shows as it is and that the site runs as a notebook. In the order
of the page, in one namespace and an empty folder, this is run:

================================  ================================================================
```` ```{code-cell} python ````   Python; what it prints stands in the ``text`` block below it
```` ```console ````              lines that begin with ``$ mcllo``; what they print stands below
``<!-- numbers`` ... ``-->``      Python that prints numbers for the prose, which nobody sees
``![...](figures/NAME.svg)``      the picture that some cell before it saved as ``NAME.svg``
``[...](NAME.xlsx)``              a file beside the page, which is copied into the folder first
================================  ================================================================

A line ``...`` in a block stands for any lines, and such a block is compared, not written. Every
number of the prose must stand in the page's code, in what it prints, or in what a ``numbers``
comment prints: `Ran.loose` are those that do not. Exempt are years in brackets and references.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "tutorials"
FENCE = r"^```(?P<info>[^\n`]+)\n(?P<body>.*?)^```\n"
BELOW = r"(?:\n```text\n(?P<shown>.*?)^```\n)?"
HIDDEN = r"^<!-- numbers\n(?P<hidden>.*?)^-->\n"
PIECE = re.compile(f"(?:{FENCE}{BELOW}|{HIDDEN})", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
NOT_PROSE = re.compile(
    r"\A---\n.*?^---\n|^```.*?^```\n|<!--.*?-->|^## References\n.*|`[^`\n]*`|\]\([^)\n]*\)"
    r"|\((?:19|20)\d\d\)",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Ran:
    """What came of a page: its text with the outputs that were printed, and all its numbers."""

    text: str = ""
    numbers: set[str] = field(default_factory=set)

    @property
    def loose(self) -> list[str]:
        """Numbers of the prose that nothing on the page shows."""
        return sorted(numbers_in(NOT_PROSE.sub(" ", self.text)) - self.numbers)


def pages() -> list[Path]:
    """Return the tutorials, without their index."""
    return sorted(path for path in FOLDER.glob("*.md") if path.stem != "index")


def run_page(text: str, folder: Path) -> Ran:
    """Run a page in `folder`, which keeps the files that it writes."""
    for name in re.findall(r"\]\(([\w-]+\.xlsx)\)", text):
        shutil.copy(FOLDER / name, folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    ran, end = Ran(), 0
    with chdir(folder):
        for piece in PIECE.finditer(text):
            ran.text += text[end : piece.start()] + _run_piece(piece, names, ran)
            end = piece.end()
    ran.text += text[end:]
    return ran


def _run_piece(piece: re.Match[str], names: dict[str, Any], ran: Ran) -> str:
    """Return a block with what it prints now; blocks of other kinds as they are."""
    whole, info, shown = piece[0], piece["info"], piece["shown"]
    if piece["hidden"] is not None:
        ran.numbers |= numbers_in(_printed(piece["hidden"], names, piece))
        return whole
    if info.startswith("{code-cell}"):
        code = re.sub(
            r"(?m)\A(?::.*\n)+", lambda tags: "\n" * tags[0].count("\n"), piece["body"]
        )
        said = _as_shown(_printed(code, names, piece), shown)
        ran.numbers |= numbers_in(code + said)
        block = f"```{info}\n{piece['body']}```\n"
        return f"{block}\n```text\n{said}```\n" if said else block
    if info == "console":
        body = "".join(
            f"$ {line}\n{_answer(line, old)}" for line, old in sessions(piece["body"])
        )
        ran.numbers |= numbers_in(body)
        return whole.replace(piece["body"], body)
    return whole


def _printed(code: str, names: dict[str, Any], piece: re.Match[str]) -> str:
    """Return what Python prints; a mistake is reported at its line of the page."""
    line = piece.string.count("\n", 0, piece.start()) + 1
    with redirect_stdout(io.StringIO()) as out:
        exec(compile("\n" * line + code, "page", "exec"), names)
    return out.getvalue()


def sessions(body: str) -> list[tuple[str, str]]:
    """Return each command of a console block with what is shown below it."""
    found = re.findall(r"^\$ ([^\n]*)\n((?:(?!\$ ).*\n)*)", body, flags=re.MULTILINE)
    return [(command, shown) for command, shown in found]


def _answer(line: str, shown: str) -> str:
    """Return what a command prints on both of its streams; of another program, what stands."""
    from mcllo.__main__ import run_command_line

    program, *arguments = shlex.split(line)
    if program != "mcllo":
        return shown
    both = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(both), redirect_stderr(both):
        run_command_line(arguments)
    return _as_shown(both.buffer.getvalue().decode("utf-8"), shown)


def _as_shown(said: str, shown: str | None) -> str:
    """Return what was printed, or `shown` where it leaves out lines and agrees in the others."""
    said = "".join(f"{line.rstrip()}\n" for line in said.splitlines())
    if shown and "...\n" in shown:
        pattern = "(?:.*\n)*".join(map(re.escape, shown.split("...\n")))
        if re.fullmatch(pattern, said):
            return shown
    return said


def numbers_in(text: str) -> set[str]:
    """Return the numbers in a text as they are written, without commas between thousands."""
    return {
        number.replace(",", "") for number in NUMBER.findall(text.replace("−", "-"))
    }


def pictures(text: str) -> list[str]:
    """Return the names of the pictures that a page shows."""
    return re.findall(r"\]\(figures/([\w-]+\.svg)\)", text)


def words_of(picture: Path) -> list[str]:
    """Return the words and numbers that stand in a picture, in their order."""
    found = re.findall(
        r"<text[^>]*>(.*?)</text>", picture.read_text(encoding="utf-8"), re.DOTALL
    )
    return [re.sub(r"<[^>]*>", "", words).strip() for words in found]


def main(names: list[str]) -> None:
    """Write pages and pictures, and say which numbers of the prose nothing shows."""
    warnings.simplefilter("error")  # what readers would see must be on the page
    for page in pages():
        if names and page.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            ran = run_page(page.read_text(encoding="utf-8"), Path(folder))
            page.write_text(ran.text, encoding="utf-8")
            for picture in pictures(ran.text):
                shutil.copy(Path(folder) / picture, FOLDER / "figures" / picture)
        print(page.name, *ran.loose)


if __name__ == "__main__":
    main(sys.argv[1:])
