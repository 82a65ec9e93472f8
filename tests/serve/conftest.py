"""What the tests of the served page share."""

import pytest
from visitor import visiting


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    with visiting(tmp_path_factory.mktemp("served")) as found:
        yield found
