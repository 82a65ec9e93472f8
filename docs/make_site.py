"""Build the site into site/: ``make docs``, or ``python docs/make_site.py``.

=======  ==========================================================================================
stage    docs/ is copied to build/site-source, and nothing is ever written beside the pages; links
         that leave docs/ (the README, figures of studies) are led to their copies; the index of a
         folder gets a table of contents in the order of its links, then whatever it does not name
make     a page for every public name; what the landing page shows: the problem as a picture, what
         one command prints, the report that it writes
build    Sphinx, every warning an error
=======  ==========================================================================================

Pages are plain Markdown, the same on a Git host: what only the site needs is added here.
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
SOURCE, SITE = ROOT / "build" / "site-source", ROOT / "site"

PAGES = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "fuzz/README.md": "fuzzing.md",
    "studies/cifar10/README.md": "studies/cifar10-network.md",
}
"""Pages from elsewhere, and where they stand on the site."""
TITLES = {
    "README.md": "# The README: all of it on one page",
    "CHANGELOG.md": "# Changes",
}
SECTIONS = ("tutorials", "how-to", "reference", "explanation", "studies", "gallery")
"""The parts of the site in their order; *changes* comes after them."""
EXAMPLE = re.compile(
    r"(^```python\n>>> (?:(?!```).)*?)\n+^```", re.DOTALL | re.MULTILINE
)
"""An example under test; the empty line that ends it is the test's, and not shown."""
NAMING_TOP = ("reference", "explanation")
"""The parts whose index gives pages of the top, such as the README, their place."""
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
SKIPPED = ("*.pyc", "__pycache__", "make_*.py", "conftest.py", "export.json")
ROWS = "images.csv"
COMMAND = ["assess", ROWS, "--label", "class", "--seed", "0"]
"""What the landing page shows: one command on the network's images."""


def stage(folder: Path = SOURCE) -> Path:
    """Copy the pages to a new folder, as Sphinx is to read them."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns(*SKIPPED))
    (folder / "gallery").rename(folder / "scripts")  # gallery/ is what they draw
    for page in sorted(DOCS.rglob("*.md")):
        place = page.relative_to(DOCS)
        (folder / place).write_text(moved(page, place, folder), encoding="utf-8")
    for name, place in PAGES.items():
        text = moved(ROOT / name, Path(place), folder)
        text = re.sub(
            r"^# .*$", TITLES.get(name, r"\g<0>"), text, count=1, flags=re.MULTILINE
        )
        (folder / place).write_text(text, encoding="utf-8")
    for section in SECTIONS[:-1]:
        index = folder / section / "index.md"
        if not index.exists():
            index.parent.mkdir(exist_ok=True)
            index.write_text(f"# {section.capitalize()}\n", encoding="utf-8")
        append_contents(index, contents(index, folder))
    parts = [f"{section}/index" for section in SECTIONS]
    append_contents(folder / "index.md", [*parts, "changes"])
    return folder


def moved(page: Path, place: Path, folder: Path) -> str:
    """Return a page whose links lead to where things stand on the site."""

    def led(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        source = (page.parent / target).resolve()
        if ":" in target or not source.is_file():
            return found[0]
        if source.is_relative_to(DOCS):
            goal = source.relative_to(DOCS)
        else:
            name = source.relative_to(ROOT).as_posix()
            goal = Path(PAGES.get(name, f"files/{name}"))
            if name not in PAGES:
                (folder / goal).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, folder / goal)
        link = Path(os.path.relpath(goal, place.parent)).as_posix() + anchor
        return (
            f"path:{link}" if goal.suffix == ".ipynb" else link
        )  # to download, not a page

    text = LINK.sub(led, page.read_text(encoding="utf-8"))
    return EXAMPLE.sub(r"\1\n```", text)


def contents(index: Path, folder: Path) -> list[str]:
    """Return the pages of an index's folder, and pages of the top that it names, in its order."""
    named = [
        (index.parent / link).resolve()
        for link, _ in LINK.findall(index.read_text("utf-8"))
    ]
    homes = (
        {index.parent, folder} if index.parent.name in NAMING_TOP else {index.parent}
    )
    own = [page for page in named if page.parent in homes]
    rest = sorted(index.parent.glob("*.md"))
    pages = [
        page
        for page in dict.fromkeys([*own, *rest])
        if page.is_file() and page != index
    ]
    tops = {folder / "index.md", folder / "changes.md"}
    return [
        "/" + page.relative_to(folder).with_suffix("").as_posix()
        for page in pages
        if page.suffix == ".md" and page not in tops
    ]


def append_contents(index: Path, pages: list[str]) -> None:
    """Add a table of contents that the theme shows in its bars."""
    lines = ["", "```{toctree}", ":hidden:", "", *pages, "```", ""]
    with index.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines))


def make_names(folder: Path) -> None:
    """Write a page for every public name, and let the page of names lead to them."""
    sys.path.insert(0, str(DOCS))
    import make_reference

    homes: dict[object, str] = {}
    folder_of_pages = folder / "reference" / "api"
    folder_of_pages.mkdir(parents=True)
    text = make_reference.page()
    for section in make_reference.sections():
        for name in section.names:
            thing, full = getattr(section.module, name), section.prefix + name
            if thing not in homes:
                homes[thing] = page_name(full, homes.values())
                page = folder_of_pages / f"{homes[thing]}.rst"
                page.write_text(described(full, thing), encoding="utf-8")
            link = f"- [`{full}`](reference/api/{homes[thing]}.rst)"
            text = re.sub(
                rf"^- `{re.escape(full)}(\(.*\))?`$", link, text, flags=re.MULTILINE
            )
    text = text.replace(
        "; `help(mcllo.assess)` says more.", "; each name leads to its page."
    )
    (folder / "reference.md").write_text(text, encoding="utf-8")
    append_contents(
        folder / "reference.md", [f"reference/api/{page}" for page in homes.values()]
    )


def page_name(full: str, taken: Iterable[str]) -> str:
    """Return a name for a page that no file system mixes up: ``subgroups`` beside ``Subgroups``."""
    is_taken = full.lower() in (name.lower() for name in taken)
    return f"{full}-class" if is_taken else full


def described(full: str, thing: object) -> str:
    """Return the page of one name."""
    kind = "autofunction" if inspect.isroutine(thing) else "autoclass"
    lines = [full, "=" * len(full), "", f".. {kind}:: {full}"]
    if inspect.isclass(thing) and (own := members(thing)):
        lines.append(f"   :members: {', '.join(own)}")
    return "\n".join(lines) + "\n"


def members(thing: type) -> list[str]:
    """Return methods and properties that this package wrote, those of its base classes too."""
    found = []
    for name in dir(thing):
        home = next((c for c in thing.__mro__ if name in vars(c)), object)
        if name.startswith("_") or not home.__module__.startswith("mcllo"):
            continue
        member = inspect.getattr_static(thing, name)
        is_own = inspect.isfunction(member) or isinstance(
            member, classmethod | staticmethod
        )
        is_read = isinstance(member, property) or hasattr(member, "attrname")
        if (is_own or is_read) and inspect.getdoc(getattr(member, "func", member)):
            found.append(name)
    return found


def make_landing(folder: Path) -> None:
    """Make what the landing page shows, on the images that the package carries."""
    import mcllo
    from mcllo._apps.cli.demo import write_predictions_csv

    made = folder / "_made"
    made.mkdir()
    rows = mcllo.datasets.load_cifar10_vgg().train
    rows = rows.with_probs(rows.probs)
    assessment = mcllo.assess(rows, seed=0)
    words = (
        "The network's reliability diagram: its frequencies lie below its predictions"
    )
    svg = mcllo.plot.to_svg(
        mcllo.plot.reliability(assessment), alt=words, salt="hero", themed=True
    )
    (made / "problem.html").write_text(svg, encoding="utf-8")
    write_predictions_csv(made / ROWS, rows)
    extra = folder / "extra"
    extra.mkdir()
    out = ["--html", "report.html"]
    call = [sys.executable, "-m", "mcllo", *COMMAND, *out]
    done = subprocess.run(call, cwd=made, check=True, capture_output=True, text=True)
    shutil.move(made / "report.html", extra / "report.html")
    first = done.stdout.split("\n\n")[
        :3
    ]  # verdict, miscalibrated classes; the rest is in the report
    typed = escape(" ".join(["mcllo", *COMMAND, *out]))
    line = f'<span class="prompt">$ </span><span class="typed">{typed}</span>'
    printed = escape("\n\n".join(first))
    text = f'<pre class="answer" tabindex="0">{line}\n{printed}\n</pre>\n'
    (made / "answer.html").write_text(text, encoding="utf-8")


def build(folder: Path = SOURCE, target: Path = SITE) -> int:
    """Run Sphinx; a warning is an error."""
    from sphinx.cmd.build import main as sphinx

    trees, made = folder.parent / "site-doctrees", folder.parent / "site"
    for old in (target, trees, made):
        shutil.rmtree(old, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "2"]
    code = sphinx([*options, "--doctree-dir", str(trees), str(folder), str(made)])
    if made.is_dir():
        shutil.move(
            made, target
        )  # executed notebooks, which MyST-NB puts beside it, stay behind
    return int(code)


def main() -> int:
    """Stage, make and build."""
    folder = stage()
    make_names(folder)
    make_landing(folder)
    code = build(folder)
    print(
        "site: built"
        if code == 0
        else "site: there were warnings, which are errors here"
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
