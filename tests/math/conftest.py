import pytest

from mcllo._math import compiled


@pytest.fixture(scope="module", params=["C", "NumPy"])
def both_kernels(request):
    """Let every test of a module run with both kernels."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "NumPy":
            patch.setattr(compiled, "library", lambda: None)
        elif compiled.library() is None:
            pytest.skip("no compiled kernel: install where there is a C compiler")
        yield request.param
