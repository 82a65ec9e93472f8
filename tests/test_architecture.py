"""The rules of docs/architecture.md that a machine can check."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "mcllo"

LAYERS = {
    0: "_version exceptions _text _table _frames _label_values _labels _probabilities _model "
    "_threads _chunks _kernel _operator _pcg _many _newton _rows _predictions _scored "
    "_binning _atomic _progress _csv_text",
    1: "_map _separation _fit _monte_carlo _bound _batch _split_ratio _calibration_test "
    "_scores _binned_metrics _calibration_errors _debiased_error _smooth_error "
    "_kernel_error _decomposition _poisson_binomial _metric_null _omnibus _reliability "
    "metrics _file_kind _file_words _source _io _output _max_score _all_baselines "
    "_best_baseline _baseline_result _baseline _restriction _full_map _ladder_models "
    "_ladder_rows _ladder_words _nested_test _multiplicity _ladder _class_tests "
    "_chosen_test _posterior _boldness _refits _repaired _penalty _firth _profile _zeros "
    "_robust _cells _covariance _estimate _existence _lattice _reclip _score_null _scores_by_row "
    "_nested_bound _nested_ratio _projected_score _block_files _block_fit _block_rows "
    "_block_sources _block_sums _block_bins _blocks _spill _dask _dask_work _peel",
    2: "calibrators",
    3: "_block_assessment _block_assess _assess_rows _files _detail_words _details _words "
    "_assess _paired _recommend_words _recommend _fit_method _comparison _compare _streaming "
    "model_selection _small_fits _design _simulate_arguments _power_study _power_file _power "
    "simulate",
    4: "plot _plot _report _demo _drawing datasets",
    5: "_flags _cli_options _cli_power cli __main__ __init__",
}
LEVEL = {name: level for level, names in LAYERS.items() for name in names.split()}

HEAVY = {
    "matplotlib": {"plot", "_plot", "_report"},
    "jinja2": {"_report"},
    "pyarrow": {
        "_io",
        "_output",
        "_streaming",
        "_table",
        "_block_files",
        "_source",
        "_csv_text",
        "_file_words",
    },
    "dask": {"_dask"},
    "typer": {"cli", "_cli_options", "_cli_power"},
    "rich": {"_progress", "cli"},
    "sklearn": {"calibrators", "model_selection", "_demo"},
    "pandas": {"_table"},
    "narwhals": {"_frames"},
}


def modules() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def name_of(path: Path) -> str:
    """Return the module's name below the package; files of a subpackage share its name."""
    relative = path.relative_to(SRC)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def runtime_nodes(node: ast.AST):
    """Walk the tree without what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        yield child
        yield from runtime_nodes(child)


def imports(path: Path) -> list[tuple[str, bool]]:
    """Return (module, is_ours) of every import, those inside functions too."""
    found = []
    for node in runtime_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name.split(".")[0], False) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append((node.module.split(".")[0], False))
        elif isinstance(node, ast.ImportFrom):
            inside = len(path.relative_to(SRC).parts) > 1
            if node.level == 1 and inside:
                continue
            base = (node.module or "").split(".")[0]
            found += [(base, True)] if base else [(alias.name, True) for alias in node.names]
    return found


def test_every_module_has_a_layer():
    missing = {name_of(path) for path in modules()} - set(LEVEL)
    assert not missing, f"add to LAYERS: {sorted(missing)}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path):
    name = name_of(path)
    for imported, ours in imports(path):
        if ours and imported != name:
            assert LEVEL[imported] <= LEVEL[name], f"{name} imports {imported}, which lies above it"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SRC)))
def test_heavy_packages_stay_where_they_belong(path):
    name = name_of(path)
    for imported, ours in imports(path):
        if not ours and imported in HEAVY:
            assert name in HEAVY[imported], f"{name} must not import {imported}"


def test_imports_inside_a_layer_have_no_cycle():
    graph = {}
    for path in modules():
        name = name_of(path)
        edges = {imported for imported, ours in imports(path) if ours and imported != name}
        graph.setdefault(name, set()).update(edges)
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


def test_import_is_light():
    code = "import sys, mcllo; print(' '.join(m for m in sys.modules if '.' not in m))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "mcllo" in loaded
    assert not loaded & (set(HEAVY) | {"scipy", "polars", "numpy"})


def test_every_module_has_a_test_file():
    missing = []
    for path in modules():
        relative = path.relative_to(SRC).with_suffix("")
        if path.stem in ("__init__", "_version"):
            continue
        words = "_".join(part.strip("_") for part in relative.parts)
        if not (ROOT / "tests" / f"test_{words}.py").exists():
            missing.append(f"test_{words}.py")
    assert not missing


def test_no_pickle_and_no_torch():
    for path in modules():
        names = {name for name, _ in imports(path)}
        assert not names & {"pickle", "joblib", "torch", "cloudpickle", "dill"}, path


def test_files_and_functions_stay_short():
    for path in modules():
        text = path.read_text()
        assert len(text.splitlines()) <= 420, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                doc = ast.get_docstring(node)
                lines = node.end_lineno - node.lineno + 1
                lines -= len(doc.splitlines()) + 1 if doc else 0
                assert lines <= 55, f"{path}:{node.lineno} {node.name}: {lines} lines"
