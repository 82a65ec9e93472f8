"""The rules of docs/architecture.md that a machine can check, each over all files at once.

A test collects every offence and names the files: one failure shows all that is to be mended.
"""

import ast
import io
import re
import string
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest
from inputs import csv_text

from mcllo._apps.cli.options import FLAGS
from mcllo.exceptions import PYTHON

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "mcllo"
MODULES = sorted(SRC.rglob("*.py"))

LIBRARY = [
    *(
        "_version",
        "exceptions",
        "_utils",
        "_model",
        "_validation",
        "_fit",
        "metrics",
        "_inference",
    ),
    *("_diagnostics", "calibrators", "_decisions", "_assessment", "_comparison"),
    "_monitor",
    *("model_selection", "export", "simulate", "plot", "datasets", "reproduce"),
]
"""Packages of the library: a file may import its own and those before it."""
APPLICATIONS = [
    f"_apps/{name}"
    for name in ("io", "streaming", "report", "cli", "serve", "integrations")
]
"""The storey above: it imports the library, and what comes before it here."""
ROOMS = [*LIBRARY, *APPLICATIONS, "_apps", "__main__", "__init__"]

HEAVY = {
    "matplotlib": ["plot", "reproduce", "_apps/report"],
    "jinja2": ["_apps/report", "_apps/serve"],
    "pyarrow": [
        *(
            "_apps/io",
            "_apps/streaming/file_blocks",
            "_apps/streaming/apply",
            "_utils/formatting",
        ),
    ],
    "dask": ["_apps/streaming/dask"],
    "typer": ["_apps/cli"],
    "rich": ["_apps/cli", "_utils/atomic_files"],
    "sklearn": [
        *("calibrators", "model_selection", "export", "_apps/cli/demo"),
        "metrics/_scorers",
        "_decisions/classifier",
    ],
    "pandas": ["_utils/formatting"],
    "narwhals": ["_validation/frames"],
    "sqlite3": ["_monitor/store", "export/_targets"],
    "openpyxl": ["_apps/io/sheets"],
    "starlette": ["_apps/serve"],
    "uvicorn": ["_apps/serve"],
    "mlflow": ["_apps/integrations/mlflow"],
    "python_multipart": ["_apps/serve"],
}
"""Where a heavy package may be imported: packages of ours, or single files of one."""

PARSING = {
    "removeprefix",
    "removesuffix",
    "partition",
    "rpartition",
    "endswith",
    "startswith",
}
"""What takes sentences apart; statements have kinds, levels and numbers instead."""

MAX_CODE_LINES = 550
MAX_FILES_IN_FOLDER = 20


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path):
    return path.relative_to(SRC).with_suffix("").as_posix()


def room_of(name):
    """Return the package that a module belongs to: its first folder, or the second of `_apps`."""
    return "/".join(
        name.split("/")[
            : 2 if name.startswith("_apps/") and name != "_apps/__init__" else 1
        ]
    )


def runtime_nodes(node):
    """Walk the tree without what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if (
            isinstance(child, ast.If)
            and getattr(child.test, "id", "") == "TYPE_CHECKING"
        ):
            continue
        yield child
        yield from runtime_nodes(child)


@cache
def imports(path):
    """Return (module, names, is_ours) of every import; ours as a path below the package."""
    found = []
    for node in runtime_nodes(tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name.split(".")[0], (), False) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append((node.module.split(".")[0], (), False))
        elif isinstance(node, ast.ImportFrom):
            folder = path.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            base = [*folder.relative_to(SRC).parts, *(node.module or "").split(".")]
            target = "/".join(part for part in base if part)
            names = tuple(alias.name for alias in node.names)
            if target:
                found.append((target, names, True))
            else:
                found += [(name, (), True) for name in names]
    return found


def our_imports(path):
    return [(target, names) for target, names, ours in imports(path) if ours]


def other_packages(path):
    return {target for target, _, ours in imports(path) if not ours}


def calls(path):
    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]


def test_rooms_import_one_way():
    assert {room_of(name_of(path)) for path in MODULES} == set(ROOMS)
    offences = [
        f"{name_of(path)} imports {target}, which comes later"
        for path in MODULES
        for target, _ in our_imports(path)
        if ROOMS.index(room_of(target)) > ROOMS.index(room_of(name_of(path)))
    ]
    assert not offences


def test_no_file_needs_its_neighbours_underscore_names():
    offences = []
    for path in MODULES:
        for target, names in our_imports(path):
            files = {p.stem for p in (SRC / target).glob("*.py")}
            private = [
                n
                for n in names
                if n.startswith("_") and n not in files | {"__version__"}
            ]
            offences += [
                f"{name_of(path)} imports {name} of {target}" for name in private
            ]
    assert not offences


def test_heavy_packages_stay_where_they_belong():
    offences = [
        f"{name_of(path)} imports {target}"
        for path in MODULES
        for target in other_packages(path) & set(HEAVY)
        if not {name_of(path), room_of(name_of(path))} & set(HEAVY[target])
    ]
    assert not offences


def test_nobody_parses_prose():
    offences = []
    for path in MODULES:
        name = name_of(path)
        if (
            room_of(name) not in ("_apps/report", "_assessment")
            or name == "_apps/report/html"
        ):
            continue  # render escapes what Markdown and HTML would read
        if "re" in other_packages(path):
            offences.append(f"{name} imports re")
        for call in calls(path):
            method = getattr(call.func, "attr", "")
            separators = [a.value for a in call.args if isinstance(a, ast.Constant)]
            splits = (
                method in ("split", "rsplit") and separators and separators[0] != "/"
            )
            if method in PARSING or splits:
                offences.append(f"{name}, line {call.lineno}: {method}")
    assert not offences


def test_messages_are_rendered_and_never_rewritten():
    offences = []
    for path in MODULES:
        name = name_of(path)
        if room_of(name) != "_apps/cli" and name != "_apps/io/read":
            continue
        rewriting = {"partition", "sub", "literal_eval"}
        if name != "_apps/io/read":  # which takes prefixes off the names of columns
            rewriting |= {"removeprefix"}
        called = {getattr(call.func, "attr", "") for call in calls(path)}
        offences += [f"{name}: {word}" for word in called & rewriting]
        offences += [
            f"{name} imports {word}" for word in {"re", "ast"} & other_packages(path)
        ]
    assert not offences


def template_fields(text):
    """Return the names that a template leaves to be filled, those inside format codes too."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:  # no template
        return set()
    found = set()
    for _, field, code, _ in parts:
        if field:
            found.add(re.split(r"[.\[]", field)[0])
        if code:
            found |= template_fields(code)
    return {name for name in found if name.isidentifier()}


def test_fields_of_messages_are_values_names_or_phrases():
    # any other name would be taken for an argument and printed as ``name=``
    known = {
        "argument",
        "value",
        "found",
        "row",
        "gap",
        "in_python",
        "in_shell",
        "resume",
    }
    known |= {*PYTHON, *FLAGS}
    others = ("export", "plot")  # whose templates are programs and figures
    offences = []
    for path in MODULES:
        name = name_of(path)
        if room_of(name) in others or name in (
            "_utils/atomic_files",
            "_apps/serve/app",
        ):
            continue
        nodes = list(ast.walk(tree(path)))
        documents = {
            id(node.body[0].value)
            for node in nodes
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and isinstance(node.body[0], ast.Expr)
        }
        own = {keyword.arg for call in calls(path) for keyword in call.keywords}
        for node in nodes:
            if isinstance(node, ast.Dict):
                own |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
        if "exceptions" not in {target for target, _ in our_imports(path)}:
            continue
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                unknown = template_fields(node.value) - known - own
                if unknown and id(node) not in documents:
                    offences.append(f"{name}, line {node.lineno}: {sorted(unknown)}")
    assert not offences


def test_only_one_place_warns_and_nobody_touches_the_filters():
    # the place that warns; and the command line, whose process is its own
    allowed = {"_utils/statements", "_apps/cli/options"}
    warning = {name_of(path) for path in MODULES if "warnings" in other_packages(path)}
    assert warning <= allowed


def test_no_import_cycle():
    graph = {name_of(path).removesuffix("/__init__"): set() for path in MODULES}
    for path in MODULES:
        edges = graph[name_of(path).removesuffix("/__init__")]
        for target, names in our_imports(path):
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


def code_lines(path):
    """Count the lines with code: no comments, no docstrings, no blank lines."""
    docstrings = {
        line
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    blank = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
    )
    tokens = tokenize.generate_tokens(
        io.StringIO(path.read_text(encoding="utf-8")).readline
    )
    lines = {
        line
        for t in tokens
        if t.type not in blank
        for line in range(t.start[0], t.end[0] + 1)
    }
    return len(lines - docstrings)


def test_files_and_folders_can_be_read_in_one_sitting_and_say_what_they_are():
    assert not [name_of(path) for path in MODULES if code_lines(path) > MAX_CODE_LINES]
    folders = {path.parent for path in MODULES}
    assert not [f for f in folders if len(list(f.glob("*.py"))) > MAX_FILES_IN_FOLDER]
    undocumented = {
        name_of(path) for path in MODULES if not ast.get_docstring(tree(path))
    }
    assert undocumented <= {"_version"}


def test_cards_and_pages_name_files_that_exist():
    rooms = "|".join(room for room in ROOMS if (SRC / room).is_dir())
    offences = []
    for path in [*MODULES, *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for name in re.findall(
            rf"`((?:{rooms})/[a-z_/]+)", path.read_text(encoding="utf-8")
        ):
            named = SRC / name.rstrip("/")
            if not (named.exists() or named.with_suffix(".py").exists()):
                offences.append(f"{path.name}: {name}")
    assert not offences


def test_public_tests_use_public_names_only():
    allowed = {"__main__", "__version__", "__all__"}
    offences = []
    for path in sorted((ROOT / "tests" / "public").glob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "mcllo"
            ):
                parts = [*node.module.split("."), *(alias.name for alias in node.names)]
                private = {p for p in parts if p.startswith("_")} - allowed
                offences += [f"{path.name}: {name}" for name in private]
    assert not offences


def loaded_after(code):
    """Return the modules that a new process has loaded at the end of some lines."""
    code = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(run.stderr.split())


def test_import_is_light():
    loaded = loaded_after("import mcllo")
    assert "mcllo" in loaded
    assert not loaded & (set(HEAVY) | {"scipy", "polars", "numpy"})


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_are_there_at_once(flag):
    loaded = loaded_after(
        f"import mcllo.__main__ as program; program.run_command_line([{flag!r}])"
    )
    assert "mcllo._apps.cli.verbs" in loaded
    assert not loaded & (set(HEAVY) - {"typer", "rich"} | {"scipy", "polars"})
    assert ("numpy" in loaded) == (flag == "--version")  # which kernel runs


@pytest.mark.newest
def test_a_csv_file_is_assessed_without_what_it_does_not_need(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(csv_text(n=300))
    arguments = ["assess", str(path), "--label", "y"]
    loaded = loaded_after(
        f"import mcllo.__main__ as program; assert program.run_command_line({arguments}) == 0"
    )
    assert {"pyarrow", "scipy.special"} < loaded
    unneeded = {"scipy.optimize", "scipy.spatial", "scipy.stats", "polars"}
    assert not loaded & (set(HEAVY) - {"typer", "rich", "pyarrow"} | unneeded)
