"""`release.py` as far as it needs no index: sums, provenance, refusals."""

import doctest
import hashlib
import subprocess
from pathlib import Path

import pytest
import release

ROOT = Path(__file__).resolve().parents[1]


def test_examples_in_docstrings():
    found = doctest.testmod(release)
    assert (found.attempted > 0, found.failed) == (True, 0)


def test_sums_are_those_that_sha256sum_checks(tmp_path):
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.json").write_bytes(b"{}")
    release.write_sums(tmp_path)
    release.write_sums(tmp_path)  # the sums themselves are not summed
    expected = [
        f"{hashlib.sha256(c).hexdigest()}  {n}"
        for n, c in (("a.json", b"{}"), ("b.whl", b"wheel"))
    ]
    assert (tmp_path / "SHA256SUMS").read_text().splitlines() == expected


def test_provenance_names_commit_tools_and_files_and_no_place():
    found = release.provenance("c" * 40, "1700000000", {"a.whl": "00"})
    assert (found["commit"], found["commit_time"]) == ("c" * 40, 1_700_000_000)
    assert found["sha256"] == {"a.whl": "00"}
    assert set(found["tools"]) == set(release.TOOLS)
    assert str(ROOT) not in str(found)
    assert str(Path.home()) not in str(found)


def test_changes_that_are_not_committed_are_refused(tmp_path, monkeypatch):
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "a").write_text("1")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="must be committed"):
        release.committed()
    subprocess.run([*git, "add", "a"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-qm", "a"], cwd=tmp_path, check=True)
    commit, when = release.committed()
    assert len(commit) == 40
    assert when.isdigit()


def test_nobody_to_ask_is_no_failure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(release, "DIST", tmp_path)
    silent = subprocess.CompletedProcess([], 1, stdout="", stderr="no network")
    monkeypatch.setattr(release, "python", lambda *words, **options: silent)
    assert release.audited([["a", "1.0", "", 0, []]], tmp_path) == []
    assert "could not ask" in capsys.readouterr().out
    assert not (tmp_path / "audit.json").exists()


def test_known_vulnerabilities_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "DIST", tmp_path)
    text = (
        '{"dependencies": [{"name": "a", "version": "1.0", "vulns": [{"id": "X-1"}]}]}'
    )
    told = subprocess.CompletedProcess([], 1, stdout=text, stderr="")
    monkeypatch.setattr(release, "python", lambda *words, **options: told)
    assert release.audited([["a", "1.0", "", 0, []]], tmp_path) == ["a 1.0: X-1"]
    assert (tmp_path / "audit.json").exists()
