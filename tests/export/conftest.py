import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def _close_the_server():
    import forms

    yield
    forms.OPEN.close()
