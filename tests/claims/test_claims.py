"""What the package claims of itself: pages show the stored rows of every simulation."""

import pytest
from studies.claims import __main__ as runner

pytestmark = pytest.mark.slow


def test_the_pages_show_what_was_measured():
    for topic in runner.TOPICS:
        path, text = runner.page_of(topic)
        assert path.read_text(encoding="utf-8") == text, topic
