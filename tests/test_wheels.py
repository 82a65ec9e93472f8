"""The wheels of `make wheels`, which runs this: what is in them, and what two of them do.

The one for this machine and the one without C are each installed into a new environment, which has
the other packages of this one but not the checkout, and are used outside the checkout. The one
without C is also installed into an empty environment, with what pip brings for it and no extra.
"""

import json
import os
import re
import struct
import subprocess
import sys
import sysconfig
import venv
import zlib
from pathlib import Path
from zipfile import ZipFile

import pytest

if "MCLLO_WHEELS" not in os.environ:
    pytest.skip(
        "`make wheels` builds the wheels and runs this", allow_module_level=True
    )

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename
from without_extras import COMMAND, check_said

ROOT = Path(__file__).resolve().parents[1]
SOURCE = (ROOT / "src" / "mcllo" / "_model" / "kernel.c").read_bytes()
WHEELS = sorted(Path(os.environ["MCLLO_WHEELS"]).resolve().glob("*.whl"))
MACHINES = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": ("ELF", 0x3E),
    "manylinux_2_17_aarch64.manylinux2014_aarch64": ("ELF", 0xB7),
    "macosx_11_0_x86_64": ("Mach-O", 0x01000007),
    "macosx_11_0_arm64": ("Mach-O", 0x0100000C),
    "win_amd64": ("PE", 0x8664),
}
"""Format and machine of each platform's library, in the words and numbers of the formats."""
FIT = """
import json, mcllo
fit = mcllo.MCLLOCalibrator().fit(mcllo.datasets.load_cifar10_vgg().train).fit_
print(json.dumps([*fit.tau, *fit.gamma]))
"""


PACKAGES = """
from importlib.metadata import distributions
print(*(each.name for each in distributions()))
"""


def wheel(platform):
    """Return the one wheel for that platform."""
    [found] = [
        path for path in WHEELS if path.name.endswith(f"-py3-none-{platform}.whl")
    ]
    return found


def libraries(path):
    """Return the libraries in a wheel, as bytes."""
    with ZipFile(path) as archive:
        return [
            archive.read(name) for name in archive.namelist() if "/libkernel." in name
        ]


def kind(library):
    """Return format and machine, read from the header."""
    if library.startswith(b"\x7fELF"):
        return "ELF", *struct.unpack_from("<H", library, 18)
    if library.startswith(b"\xcf\xfa\xed\xfe"):
        return "Mach-O", *struct.unpack_from("<I", library, 4)
    [start] = struct.unpack_from("<I", library, 60)
    assert library[start : start + 4] == b"PE\0\0"
    return "PE", *struct.unpack_from("<H", library, start + 4)


def test_there_is_one_for_each_platform_and_one_without_c():
    platforms = {path.stem.split("-py3-none-")[1] for path in WHEELS}
    assert platforms == {"any", *MACHINES}
    assert len(WHEELS) == len(platforms)
    assert libraries(wheel("any")) == []


@pytest.mark.parametrize("path", WHEELS, ids=lambda path: path.stem)
def test_it_is_small(path):
    assert path.stat().st_size < 5_000_000


@pytest.mark.parametrize("platform", MACHINES)
def test_the_library_is_made_of_this_source_for_that_machine(platform):
    [library] = libraries(wheel(platform))
    assert kind(library) == MACHINES[platform]
    assert b"mcllo_source" in library  # stripped: only what is exported has a name
    assert b"mcllo_minimize" in library
    assert struct.pack("<I", zlib.crc32(SOURCE)) in library


@pytest.mark.parametrize("platform", [name for name in MACHINES if "linux" in name])
def test_glibc_2_17_will_do(platform):
    [library] = libraries(wheel(platform))
    needed = {
        tuple(map(int, found.split(b".")))
        for found in re.findall(rb"GLIBC_([\d.]+)", library)
    }
    assert needed
    assert max(needed) <= (2, 17)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the programs' folders of two environments: with C, and without."""
    here = set(sys_tags())
    [with_c] = [
        p
        for p in WHEELS
        if p != wheel("any") and here & parse_wheel_filename(p.name)[3]
    ]
    return {
        "C": install(with_c, tmp_path_factory),
        "NumPy": install(wheel("any"), tmp_path_factory),
    }


def install(path, folders):
    """Install a wheel into an environment that finds all else where this one has it."""
    folder = folders.mktemp("environment")
    venv.create(folder)
    shared = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", shared))
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib"))
    programs = Path(sysconfig.get_path("scripts", "venv", shared))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        programs / "python",
        "install",
        "--quiet",
    ]
    subprocess.run([*pip, "--no-deps", "--no-index", path], check=True)
    return programs


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return the programs' folder of an environment with the wheel and what pip brings for it."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder)
    programs = Path(sysconfig.get_path("scripts", "venv", {"base": str(folder)}))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        programs / "python",
        "install",
        "--quiet",
    ]
    subprocess.run([*pip, "--no-compile", wheel("any")], check=True)
    return programs


def test_without_extras_it_works_and_says_what_to_install(bare):
    needed = {"mcllo", "narwhals", "numpy", "scikit-learn", "scipy", "threadpoolctl"}
    listed = set(output(bare, "python", "-c", PACKAGES).split())
    assert (
        needed <= listed <= needed | {"joblib", "cloudpickle"}
    )  # scikit-learn's, and joblib's
    check_said(
        json.loads(output(bare, "python", str(ROOT / "tests" / "without_extras.py")))
    )
    done = subprocess.run([bare / "mcllo", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == COMMAND


def test_it_adds_little_to_scikit_learn(bare):
    folder = Path(
        output(bare, "python", "-c", "import mcllo; print(mcllo.__path__[0])").strip()
    )
    files = (path for path in folder.rglob("*") if path.suffix != ".pyc")
    assert sum(path.stat().st_size for path in files if path.is_file()) < 10e6


def output(programs, *command, kernel=""):
    """Run an installed program outside the checkout and return what it prints."""
    program, *words = command
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["MCLLO_KERNEL"] = kernel
    done = subprocess.run(
        [programs / program, *words],
        cwd=programs.parent,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["C", "NumPy"])
def test_the_installed_program_says_which_kernel_runs(installed, name):
    assert f"(kernel: {name}" in output(installed[name], "mcllo", "--version")
    assert "(kernel: NumPy)" in output(
        installed[name], "mcllo", "--version", kernel="numpy"
    )
    found = output(
        installed[name], "python", "-c", "import mcllo; print(mcllo.__file__)"
    )
    assert Path(found).is_relative_to(installed[name].parent)


def test_all_fit_the_same_map(installed):
    runs = [("C", "c"), ("C", "numpy"), ("NumPy", "")]
    first, *others = (
        json.loads(output(installed[name], "python", "-c", FIT, kernel=kernel))
        for name, kernel in runs
    )
    for other in others:
        assert other == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize(("name", "kernel"), [("C", "c"), ("NumPy", "")])
def test_the_tests_of_the_kernel_pass(installed, name, kernel):
    files = [
        str(ROOT / "tests" / "model" / f"test_{file}.py")
        for file in ("kernel", "compiled")
    ]
    words = ["-m", "pytest", "-n0", "-p", "no:cacheprovider", *files]
    output(installed[name], "python", *words, kernel=kernel)
