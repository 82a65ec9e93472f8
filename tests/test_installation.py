"""`hatch_build.py`: a compiler is used where there is one, and never missed."""

import ctypes
import shlex
import shutil
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mcllo" / "_model" / "kernel.c"


@pytest.fixture
def build(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delenv("MCLLO_KERNEL", raising=False)
    monkeypatch.delenv("MCLLO_TARGET", raising=False)
    import hatch_build

    return hatch_build


@pytest.fixture
def said():
    return []


@pytest.fixture
def hook(build, said, tmp_path):
    """Return the hook of a checkout in `tmp_path`."""
    folder = tmp_path / build.FOLDER
    folder.mkdir(parents=True)
    (folder / "kernel.c").write_bytes(SOURCE.read_bytes())
    app = SimpleNamespace(display_info=said.append, display_warning=said.append)
    return build.KernelHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel", app)


def needs_compiler(build):
    if build.find_compiler() is None:
        pytest.skip("there is no C compiler")


@pytest.mark.slow
def test_a_wheel_has_the_library_and_the_platform(build, hook, said):
    needs_compiler(build)
    data = {"force_include": {}}
    hook.initialize("standard", data)
    assert said == ["mcllo: compiled the C kernel."]
    [(made, target)] = data["force_include"].items()
    assert target == f"mcllo/_model/{build.library_name()}"
    made_of = ctypes.c_uint32.in_dll(ctypes.CDLL(made), "mcllo_source").value
    assert made_of == zlib.crc32(SOURCE.read_bytes())
    assert data["pure_python"] is False
    assert data["tag"].split("-")[:2] == ["py3", "none"]
    assert "many" not in data["tag"]
    hook.finalize("standard", data, "")
    assert not Path(made).exists()


@pytest.mark.slow
def test_an_editable_installation_has_it_beside_the_source(build, hook, tmp_path):
    needs_compiler(build)
    data = {"force_include": {}}
    hook.initialize("editable", data)
    assert data == {"force_include": {}}
    beside = {path.name for path in (tmp_path / build.FOLDER).iterdir()}
    assert beside == {"kernel.c", build.library_name()}


@pytest.mark.parametrize("version", ["standard", "editable"])
@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        (
            {"CC": f"{shlex.quote(sys.executable)} -c exit(3)"},
            "could not compile the kernel (exit code 3)",
        ),
        ({"CC": "/no/such/compiler"}, "could not be compiled and loaded ("),
        ({"CC": ""}, "there is no C compiler"),
        ({"MCLLO_KERNEL": "numpy"}, "MCLLO_KERNEL=numpy asks for no C"),
    ],
)
def test_without_a_compiler_it_says_so_and_goes_on(
    hook, said, monkeypatch, environment, reason, version
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    data = {"force_include": {}}
    hook.initialize(version, data)
    assert data == {"force_include": {}}
    [text] = said
    assert reason in text
    assert "the kernel will be NumPy's" in text


def test_a_wheel_for_another_platform_has_the_library_or_is_not_built(
    hook, monkeypatch
):
    monkeypatch.setenv("MCLLO_TARGET", "no-such-platform")
    with pytest.raises(RuntimeError, match="could not compile the kernel"):
        hook.initialize("standard", {"force_include": {}})


def test_a_compiler_is_found_by_its_usual_names(build, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(
        build.sysconfig, "get_config_var", lambda name: "gone-cc -pthread"
    )
    monkeypatch.setattr(build.shutil, "which", lambda name: name == "gcc")
    assert build.find_compiler() == ["gcc"]
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    assert build.find_compiler() is None


def test_a_compiler_whose_path_has_a_space_is_not_cut_in_two(
    build, tmp_path, monkeypatch
):
    compiler = tmp_path / "a b" / Path(sys.executable).name
    compiler.parent.mkdir()
    shutil.copy(sys.executable, compiler)  # any program will do: it is found, not run
    monkeypatch.setenv("CC", str(compiler))
    assert build.find_compiler() == [str(compiler)]
    monkeypatch.setenv("CC", "ccache gcc")
    assert build.find_compiler() == ["ccache", "gcc"]
