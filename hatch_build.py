"""Compiles the kernel where there is a C compiler; without one the package does without it.

A wheel with the library is tagged ``py3-none-<platform>``, one without it stays ``py3-none-any``.
An editable installation has the library beside its source. In the environment:

====================  =============================================================================
``CC``                the compiler
``MCLLO_KERNEL``      ``numpy`` asks for no library
``MCLLO_TARGET``      one of `TARGETS`: made for that platform by pip's ``ziglang``, or not at all
====================  =============================================================================
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FOLDER = Path("src", "mcllo", "_model")
TARGETS = {
    "x86_64-linux-gnu.2.17": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "aarch64-linux-gnu.2.17": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "x86_64-macos.11.0": "macosx_11_0_x86_64",
    "aarch64-macos.11.0": "macosx_11_0_arm64",
    "x86_64-windows-gnu": "win_amd64",
}
"""Platforms of wheels by zig's names of them, the oldest system that will do included."""
ENDINGS = {"win32": "dll", "windows": "dll", "darwin": "dylib", "macos": "dylib"}
FLAGS = [
    *("-O3", "-std=gnu11", "-shared", "-fvisibility=hidden"),
    *("-fno-math-errno", "-fno-trapping-math"),
]
PATIENCE = 900
"""Seconds that a compiler may take."""


class KernelHook(BuildHookInterface):
    """Adds the library to a wheel, or puts it beside the source of an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together."""
        if self.target_name != "wheel":
            return
        self._made = Path(tempfile.mkdtemp(prefix="mcllo-"))
        folder, name = Path(self.root) / FOLDER, library_name()
        library, why_not = compiled(folder / "kernel.c", self._made / name)
        if library is not None and version == "editable":
            library, why_not = placed(library, folder / name)
        if library is None and wanted_target():
            raise RuntimeError(f"mcllo: {why_not}.")
        if library is None:
            self.app.display_warning(f"mcllo: {why_not}; the kernel will be NumPy's.")
            return
        self.app.display_info("mcllo: compiled the C kernel.")
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"
            build_data["force_include"][str(library)] = f"mcllo/_model/{name}"

    def finalize(
        self, version: str, build_data: dict[str, Any], artifact_path: str
    ) -> None:
        """Remove what was made on the way."""
        if self.target_name == "wheel":
            shutil.rmtree(self._made, ignore_errors=True)


def compiled(source: Path, library: Path) -> tuple[Path | None, str]:
    """Return the library made of `source`, or None and why there is none; never raise."""
    if os.environ.get("MCLLO_KERNEL", "").lower() == "numpy":
        return None, "MCLLO_KERNEL=numpy asks for no C"
    compiler = find_compiler()
    if compiler is None:
        return None, "there is no C compiler"
    checksum = zlib.crc32(source.read_bytes())
    flags = FLAGS if library.suffix == ".dll" else [*FLAGS, "-fPIC"]
    command = [
        *compiler,
        *flags,
        f"-DSOURCE={checksum}u",
        "-o",
        library.name,
        str(source),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=library.parent,  # its path would stand in a library of macOS
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
        if done.returncode:
            said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[
                0
            ]
            return None, f"{compiler[0]} could not compile the kernel ({said})"
        if wanted_target():
            return library, ""
        found = ctypes.CDLL(str(library))
        if ctypes.c_uint32.in_dll(found, "mcllo_source").value != checksum:
            return None, "the compiled kernel does not know its source"
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return None, f"the kernel could not be compiled and loaded ({error})"
    return library, ""


def placed(library: Path, target: Path) -> tuple[Path | None, str]:
    """Put the library at `target`, in one step: another process may have the old one loaded."""
    try:
        new = f"{target}.{os.getpid()}"  # two environments may be made at a time
        os.replace(shutil.copy(library, new), target)
        return target, ""
    except OSError as error:
        return None, f"the kernel could not be put beside its source ({error})"


def wanted_target() -> str:
    """Return the platform to compile for, in zig's words; '' is this machine."""
    return os.environ.get("MCLLO_TARGET", "")


def library_name() -> str:
    """Return what the library is called where it will be used."""
    system = wanted_target() or sys.platform
    ending = next((ending for word, ending in ENDINGS.items() if word in system), "so")
    return f"libkernel.{ending}"


def find_compiler() -> list[str] | None:
    """Return the command of the C compiler: ``CC``, Python's own, or a usual name; None of them."""
    if wanted_target():
        return [
            sys.executable,
            *("-m", "ziglang", "cc", "-s", "-target", wanted_target()),
        ]
    if "CC" in os.environ:
        given = os.environ["CC"]
        if shutil.which(given):  # a path with spaces in it, which shell words would cut
            return [given]
        return shlex.split(given) or None
    own = shlex.split(sysconfig.get_config_var("CC") or "")[:1]
    for name in (*own, "cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    return None


def platform_tag() -> str:
    """Return the platform of the wheel: the wanted one, or this machine and none else."""
    if wanted_target():
        return TARGETS[wanted_target()]
    tags = (tag.platform for tag in sys_tags())
    return next(
        tag for tag in tags if "manylinux" not in tag and "musllinux" not in tag
    )
