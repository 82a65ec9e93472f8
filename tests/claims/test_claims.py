"""What the package claims of itself: pages show the stored rows of every simulation."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # studies are not installed
runner = import_module("studies.claims.__main__")


@pytest.mark.parametrize("topic", runner.TOPICS)
def test_the_page_shows_what_was_measured(topic):
    path, text = runner.page_of(topic)
    assert path.read_text(encoding="utf-8") == text
