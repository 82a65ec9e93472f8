"""What all tests share: how Hypothesis draws its examples, and the option that approves texts."""

import os
import sys
from functools import cache
from importlib.util import find_spec

import pytest
from hypothesis import settings
from threadpoolctl import ThreadpoolController

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None)
settings.load_profile(
    "fresh" if os.environ.get("FRESH") else "same"
)  # the same examples in CI


def pytest_addoption(parser):
    parser.addoption(
        "--approve", action="store_true", help="write tests/texts as printed now"
    )


PAGES_THAT_NEED = {
    "dask.md": "dask",
    "huggingface.md": "evaluate",
    "mapie.md": "mapie",
    "mlflow.md": "mlflow",
    "training-loops.md": "torchmetrics",
}
"""Pages whose examples need a package that `make test` does not install."""


@pytest.hookimpl(tryfirst=True)  # before ``-m "not slow"`` looks at the markers
def pytest_collection_modifyitems(items):
    """Mark the pages that need more packages, and begin with what takes long.

    So no worker waits for another at the end.
    """
    for item in items:
        if package := PAGES_THAT_NEED.get(item.path.name):
            reason = f"{package} is not installed"
            item.add_marker(pytest.mark.slow)
            item.add_marker(
                pytest.mark.skipif(find_spec(package) is None, reason=reason)
            )
            if package != "dask":  # their own, and those of what they import
                item.add_marker(pytest.mark.filterwarnings("ignore"))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@cache
def libraries():
    """Return what holds the threads of other libraries; looking for them takes milliseconds."""
    return ThreadpoolController()


def has_its_share(item):
    """Whether a test has one thread of BLAS and OpenMP, and not one for each processor.

    Simulations have one, as the command line does: their thousands of small products gain nothing
    by threads. So has every test where each processor already has a worker of xdist, for threads
    of two workers wait for each other: 40 data sets took 39 s of processor time, not 4. A test
    about these threads is marked with it.
    """
    if item.get_closest_marker("slow") is not None:
        return True
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return (
        workers >= (os.cpu_count() or 1) and item.get_closest_marker("threads") is None
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Limit the threads of other libraries; `mcllo`'s own are as they come."""
    if not has_its_share(item):
        return (yield)
    with libraries().limit(limits=1):
        return (yield)


@pytest.fixture
def one_blas_thread():
    """The same for tests that train other packages' classifiers, which gain nothing by more."""
    with libraries().limit(limits=1, user_api="blas"):
        yield


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the pictures out of reports: for tests that read the words of a page alone."""
    from mcllo._apps.report import figures

    def picture(kind, result, alt, *options, key=""):
        words = figures.plot.caption(kind, result)
        return figures.Picture(key or kind, "<svg></svg>", "", words, alt)

    monkeypatch.setattr(figures, "picture", picture)


@pytest.fixture
def approve(request):
    """Whether what is printed now becomes what must be printed."""
    return request.config.getoption("--approve")


@pytest.fixture(autouse=True)
def _no_figure_is_left_in_pyplot():
    """Close what other packages' lines draw: each test begins with no figure, in any order."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


@pytest.fixture(scope="module", params=["C", "NumPy"])
def both_kernels(request):
    """Let every test of a module run with both kernels."""
    from mcllo._model import compiled

    with pytest.MonkeyPatch.context() as patch:
        if request.param == "NumPy":
            patch.setattr(compiled, "kernel_library", lambda: None)
        elif compiled.kernel_library() is None:
            pytest.skip("no compiled kernel: install where there is a C compiler")
        yield request.param
