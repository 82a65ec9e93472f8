"""What pytest leaves alone here: settings and scripts that belong to the site (`make docs`)."""

from pathlib import Path

import pytest

collect_ignore = ["conf.py", "_site", "gallery"]


@pytest.fixture(autouse=True)
def _store_of_runs(request, tmp_path_factory, monkeypatch):
    """Let MLflow's page write its runs elsewhere; the others run where `make test` does."""
    place = Path(__file__).resolve().parents[1]
    if request.path.name == "mlflow.md":
        place = tmp_path_factory.mktemp("runs")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{place}/runs.db")
    monkeypatch.chdir(place)
