"""The rules of docs/architecture.md that a machine can check."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest
from inputs import csv_text

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "mcllo"

ROOMS = [
    *("_version", "exceptions", "_ground", "_math", "_input", "_files", "_fit", "metrics"),
    *("_inference", "_diagnosis", "_assessment", "_blocks", "calibrators", "_monitor"),
    *("_workflows", "model_selection", "export", "simulate", "plot", "datasets", "reproduce"),
    *("_report", "_cli", "_serve", "__main__", "__init__"),
]
"""A file may import its own room and those before it, nothing that comes later."""

HEAVY = {
    "matplotlib": ["plot", "reproduce", "_report"],
    "jinja2": ["_report", "_serve"],
    "pyarrow": ["_files", "_blocks/files", "_blocks/apply", "_ground/text"],
    "dask": ["_blocks/dask"],
    "typer": ["_cli"],
    "rich": ["_cli", "_ground/files"],
    "sklearn": ["calibrators", "model_selection", "export", "_cli/demo"],
    "pandas": ["_ground/text"],
    "narwhals": ["_input/frames"],
    "sqlite3": ["_monitor/store", "export/_run"],
    "openpyxl": ["_files/sheets"],
    "starlette": ["_serve"],
    "uvicorn": ["_serve"],
    "python_multipart": ["_serve"],
}
"""Where a heavy package may be imported: rooms, or single files of a room."""

PARSING = {"removeprefix", "removesuffix", "partition", "rpartition", "endswith", "startswith"}
"""What takes sentences apart; statements have kinds, levels and numbers instead."""

MOST_CODE_LINES = 320
MOST_FILES = 20


@cache
def tree(path):
    return ast.parse(path.read_text())


def name_of(path):
    return str(path.relative_to(SRC).with_suffix(""))


def room_of(name):
    return name.split("/")[0]


def runtime_nodes(node):
    """Walk the tree without what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        yield child
        yield from runtime_nodes(child)


def imports(path):
    """Yield (module, names, is_ours) of every import; ours as a path below the package."""
    for node in runtime_nodes(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], (), False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0], (), False
        elif isinstance(node, ast.ImportFrom):
            folder = path.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            base = [*folder.relative_to(SRC).parts, *(node.module or "").split(".")]
            names = tuple(alias.name for alias in node.names)
            target = "/".join(part for part in base if part)
            if target:
                yield target, names, True
            else:
                yield from ((name, (), True) for name in names)


MODULES = sorted(SRC.rglob("*.py"))
each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


def test_every_room_has_a_place_in_the_order():
    assert {room_of(name_of(path)) for path in MODULES} == set(ROOMS)


@each_module
def test_rooms_import_one_way(path):
    room = ROOMS.index(room_of(name_of(path)))
    for target, _, ours in imports(path):
        if ours:
            assert ROOMS.index(room_of(target)) <= room, f"{target} comes later"


@each_module
def test_no_file_needs_its_neighbours_underscore_names(path):
    for target, names, ours in imports(path):
        files = {p.stem for p in (SRC / target).glob("*.py")} if ours else set()
        private = [n for n in names if n.startswith("_") and n not in files | {"__version__"}]
        assert not private, f"{private} of {target}"


@each_module
def test_heavy_packages_stay_where_they_belong(path):
    name = name_of(path)
    for target, _, ours in imports(path):
        if not ours and target in HEAVY:
            assert {name, room_of(name)} & set(HEAVY[target]), f"{name} must not import {target}"


@pytest.mark.parametrize(
    "path",
    [p for room in ("_report", "_assessment") for p in sorted((SRC / room).glob("*.py"))],
    ids=name_of,
)
def test_nobody_parses_prose(path):
    if name_of(path) == "_report/render":
        return  # escapes what Markdown and HTML would read
    assert "re" not in {target for target, _, ours in imports(path) if not ours}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in PARSING, f"line {node.lineno}: {node.func.attr}"
            separators = [a.value for a in node.args if isinstance(a, ast.Constant)]
            words = node.func.attr in ("split", "rsplit") and separators
            assert not words or separators[0] == "/", f"line {node.lineno}: a sentence is split"


def test_no_import_cycle():
    graph = {name_of(path).removesuffix("/__init__"): set() for path in MODULES}
    for path in MODULES:
        edges = graph[name_of(path).removesuffix("/__init__")]
        for target, names, ours in imports(path):
            if ours:
                inside = {f"{target}/{name}" for name in names} & set(graph)
                edges.update(inside or {target})
    del graph["__init__"]
    done = set()

    def visit(name, trail):
        assert name not in trail, f"cycle: {' -> '.join([*trail, name])}"
        if name not in done:
            for edge in graph.get(name, ()):
                visit(edge, [*trail, name])
            done.add(name)

    for name in graph:
        visit(name, [])


def test_no_room_is_crowded():
    folders = {path.parent for path in MODULES}
    for folder in folders:
        assert len(list(folder.glob("*.py"))) <= MOST_FILES, folder.name


@each_module
def test_files_can_be_read_in_one_sitting(path):
    strings = {
        line
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    kinds = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    lines = {
        line for t in tokens if t.type not in kinds for line in range(t.start[0], t.end[0] + 1)
    }
    assert len(lines - strings) <= MOST_CODE_LINES


@each_module
def test_every_file_says_what_it_is(path):
    assert path.name == "_version.py" or ast.get_docstring(tree(path))


SAID = [
    path for path in MODULES if room_of(name_of(path)) == "_cli" or name_of(path) == "_files/read"
]


@pytest.mark.parametrize("path", SAID, ids=name_of)
def test_messages_are_rendered_and_never_rewritten(path):
    assert not {"re", "ast"} & {target for target, _, ours in imports(path) if not ours}
    calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    called = {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)}
    assert not called & {"partition", "sub", "literal_eval"}
    assert "removeprefix" not in called or name_of(path) == "_files/read"  # of columns' names


@each_module
def test_templates_hold_no_names(path):
    # whatever a user may have named is a part of a phrase, never of its template
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Phrase":
            assert not isinstance(node.args[0], ast.JoinedStr), f"line {node.lineno}"


@each_module
def test_only_one_place_warns_and_nobody_touches_the_filters(path):
    if name_of(path) in ("_ground/statements", "_cli/options"):
        return  # the one that warns; the command line, whose process is its own
    assert "warnings" not in {target for target, _, ours in imports(path) if not ours}


def test_cards_and_pages_name_files_that_exist():
    rooms = "|".join(room for room in ROOMS if (SRC / room).is_dir())
    for path in [*MODULES, *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for name in re.findall(rf"`((?:{rooms})/[a-z_/]+)", path.read_text()):
            found = SRC / name.rstrip("/")
            assert found.exists() or found.with_suffix(".py").exists(), f"{path.name}: {name}"


def loaded_after(code):
    """Return the modules that a new process has loaded at the end of some lines."""
    code = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


def test_import_is_light():
    loaded = loaded_after("import mcllo")
    assert "mcllo" in loaded
    assert not loaded & (set(HEAVY) | {"scipy", "polars", "numpy"})


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_are_there_at_once(flag):
    loaded = loaded_after(f"import mcllo.__main__ as program; program.run([{flag!r}])")
    assert "mcllo._cli.app" in loaded
    assert not loaded & (set(HEAVY) - {"typer", "rich"} | {"scipy", "polars"})
    assert ("numpy" in loaded) == (flag == "--version")  # which kernel runs


def test_a_csv_file_is_assessed_without_what_it_does_not_need(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(csv_text(n=300))
    arguments = ["assess", str(path), "--label", "y"]
    loaded = loaded_after(f"import mcllo.__main__ as program; assert program.run({arguments}) == 0")
    assert {"pyarrow", "scipy.special"} < loaded
    unneeded = {"scipy.optimize", "scipy.spatial", "scipy.stats", "polars"}
    assert not loaded & (set(HEAVY) - {"typer", "rich", "pyarrow"} | unneeded)


PUBLIC = {"__main__", "__version__", "__all__"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "public").glob("*.py")), ids=lambda p: p.stem
)
def test_public_tests_use_public_names_only(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mcllo"):
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            assert not [part for part in parts if part.startswith("_") and part not in PUBLIC]
