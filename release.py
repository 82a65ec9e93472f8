"""What goes beside the wheels of a release: ``make release`` builds them and runs this.

====================  =============================================================================
sdist                 built here; the wheels are those of ``make wheels``
``twine check``       of all of them: an index would show what they say of themselves
``sbom.cdx.json``     bill of materials (CycloneDX): what the wheel brings with the extra ``all``
``dependencies.txt``  the same to read: version, licence, size on disk, who needs it
``audit.json``        known vulnerabilities of these versions (pip-audit); left out, and said so,
                      where nobody could be asked
``provenance.json``   commit, time of the commit, Python, compilers, tools, commands, and the
                      SHA-256 of every file
``SHA256SUMS``        the same sums for ``sha256sum --check``
====================  =============================================================================

Exit code 1 where the checkout has changes that are not committed, a check fails, or a version with
a known vulnerability would be installed. What cannot be asked for lack of a network is no failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
DIST = ROOT / "dist"
TOOLS = ("hatchling", "ziglang", "twine", "cyclonedx-bom", "pip-audit", "pip")
COMMANDS = (
    "make wheels",
    "python -m hatchling build --target sdist",
    "python release.py",
)
SUMS = "SHA256SUMS"
LISTED = """
import json, os
from importlib import metadata
rows = []
for d in metadata.distributions():
    files = [f.locate() for f in d.files or ()]
    size = sum(os.path.getsize(f) for f in files if os.path.isfile(f))
    m = d.metadata
    kinds = [c.split(" :: ") for c in m.get_all("Classifier") or ()]
    named = "; ".join(kind[-1] for kind in kinds if kind[0] == "License")
    terms = m.get("License-Expression") or named or (m.get("License") or "").split("\\n")[0]
    rows.append([m["Name"], d.version, terms or "not said", size, d.requires or []])
print(json.dumps(sorted(rows, key=lambda row: row[0].lower())))
"""
"""Run in the new environment: name, version, licence, bytes and needs of all that is installed."""


def call(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout and return what it said."""
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, **options)


def python(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run this Python."""
    return call(sys.executable, *words, **options)


def first_line(*words: str) -> str:
    """Return the first line that a command says; empty where there is none."""
    try:
        return (call(*words).stdout.splitlines() or [""])[0].strip()
    except OSError:
        return ""


def committed() -> tuple[str, str]:
    """Return the commit and its time; refuse changes that are not in it."""
    if changes := call("git", "status", "--porcelain").stdout.strip():
        raise SystemExit(
            f"release: every change must be committed; these are not:\n{changes}"
        )
    commit, when = call("git", "log", "-1", "--format=%H %ct").stdout.split()
    return commit, when


def built(when: str) -> list[Path]:
    """Build the sdist beside the wheels, and return all of them, checked."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when}
    python("-m", "hatchling", "build", "--target", "sdist", env=environment, check=True)
    files = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])
    if not any(path.name.endswith("-none-any.whl") for path in files):
        raise SystemExit("release: there must be wheels in dist/. Run `make release`.")
    done = python("-m", "twine", "check", "--strict", *map(str, files))
    if done.returncode:
        raise SystemExit(f"release: twine check fails:\n{done.stdout}{done.stderr}")
    return files


def installed(wheel: Path, folder: Path) -> list[list[Any]]:
    """Install a wheel into a new environment; return what is there, and write what it is."""
    call(sys.executable, "-m", "venv", str(folder), check=True)
    inside = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    quiet = ("--quiet", "--disable-pip-version-check")
    done = call(inside, "-m", "pip", "install", *quiet, f"{wheel}[all]")
    if done.returncode:
        raise SystemExit(f"release: the wheel cannot be installed:\n{done.stderr}")
    found: list[list[Any]] = json.loads(call(inside, "-c", LISTED, check=True).stdout)
    options = ("--output-format", "JSON", "--output-reproducible")
    target = ("--output-file", str(DIST / "sbom.cdx.json"))
    python("-m", "cyclonedx_py", "environment", inside, *options, *target, check=True)
    return [row for row in found if row[0].lower() not in ("pip", "setuptools")]


def reviewed(rows: Sequence[Sequence[Any]]) -> str:
    """Return what is installed as a table to read.

    Examples
    --------
    >>> print(reviewed([["a", "1.0", "MIT", 2_500_000, ["b>=2"]], ["b", "2.1", "BSD", 400, []]]))
    package  version  MB   licence  needed by
    a        1.0      2.5  MIT      -
    b        2.1      0.0  BSD      a
    total             2.5
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    users: dict[str, list[str]] = {}
    for name, _, _, _, needs in rows:
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                users.setdefault(canonicalize_name(need.name), []).append(name)
    lines = [["package", "version", "MB", "licence", "needed by"]]
    for name, version, terms, size, _ in rows:
        who = ", ".join(users.get(canonicalize_name(name), [])) or "-"
        lines.append([name, version, f"{size / 1e6:.1f}", terms[:40], who])
    total = sum(row[3] for row in rows)
    lines.append(["total", "", f"{total / 1e6:.1f}", "", ""])
    widths = [max(len(line[k]) for line in lines) for k in range(5)]
    shown = [
        "  ".join(word.ljust(w) for word, w in zip(line, widths, strict=True))
        for line in lines
    ]
    return "\n".join(line.rstrip() for line in shown)


def audited(rows: Sequence[Sequence[Any]], folder: Path) -> list[str]:
    """Return known vulnerabilities of these versions; say so where nobody could be asked."""
    wanted = folder / "requirements.txt"
    wanted.write_text(
        "".join(f"{row[0]}=={row[1]}\n" for row in rows if row[0] != "mcllo")
    )
    target = DIST / "audit.json"
    words = (
        "--requirement",
        str(wanted),
        "--no-deps",
        "--disable-pip",
        "--format",
        "json",
    )
    try:
        done = python(
            "-m", "pip_audit", *words, "--progress-spinner", "off", timeout=300
        )
        found = json.loads(done.stdout)
    except (ValueError, subprocess.TimeoutExpired):
        target.unlink(missing_ok=True)
        print("release: pip-audit could not ask anybody; no audit.json")
        return []
    target.write_text(json.dumps(found, indent=1) + "\n")
    return [
        f"{part['name']} {part['version']}: {one['id']}"
        for part in found["dependencies"]
        for one in part.get("vulns", [])
    ]


def provenance(commit: str, when: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return where the files come from."""
    versions = {}
    for name in TOOLS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "package": "mcllo",
        "version": metadata.version("mcllo"),
        "commit": commit,
        "commit_time": int(when),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiler": first_line(os.environ.get("CC", "cc"), "--version"),
        "tools": versions,
        "commands": list(COMMANDS),
        "sha256": dict(files),
    }


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(folder: Path) -> None:
    """Write the sums of all files of a folder."""
    paths = sorted(
        path for path in folder.iterdir() if path.is_file() and path.name != SUMS
    )
    (folder / SUMS).write_text(
        "".join(f"{sha256(path)}  {path.name}\n" for path in paths)
    )


def main() -> int:
    """Make a release of the commit that is checked out."""
    commit, when = committed()
    files = built(when)
    plain = next(path for path in files if path.name.endswith("-none-any.whl"))
    with tempfile.TemporaryDirectory(prefix="mcllo-release-") as folder:
        rows = installed(plain, Path(folder) / "venv")
        weak = audited(rows, Path(folder))
    (DIST / "dependencies.txt").write_text(reviewed(rows) + "\n")
    made = provenance(commit, when, {path.name: sha256(path) for path in files})
    (DIST / "provenance.json").write_text(json.dumps(made, indent=1) + "\n")
    write_sums(DIST)
    print((DIST / "dependencies.txt").read_text())
    print((DIST / SUMS).read_text())
    for one in weak:
        print(f"release: known vulnerability: {one}")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main())
