"""What all tests share: how Hypothesis draws its examples, and the option that approves texts."""

import os

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None)
settings.load_profile("fresh" if os.environ.get("FRESH") else "same")  # the same examples in CI


def pytest_addoption(parser):
    parser.addoption("--approve", action="store_true", help="write tests/texts as printed now")


@pytest.fixture
def approve(request):
    """Whether what is printed now becomes what must be printed."""
    return request.config.getoption("--approve")
