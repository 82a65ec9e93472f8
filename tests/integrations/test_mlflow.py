"""The evaluator of MLflow, with the real MLflow and a store of its own in a folder."""

from importlib.metadata import entry_points
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

import mcllo

X, CODES = load_iris(return_X_y=True, as_frame=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[CODES]
TRAIN, HELD = np.arange(0, 150, 2), np.arange(1, 150, 2)
MODEL = GaussianNB().fit(X.iloc[TRAIN, :2], WORDS[TRAIN])
ROWS = X.iloc[HELD, :2].assign(species=WORDS[HELD])
PROBS = MODEL.predict_proba(X.iloc[HELD, :2])
TABLE = pd.DataFrame(PROBS, columns=MODEL.classes_).assign(
    species=WORDS[HELD], predicted=MODEL.predict(X.iloc[HELD, :2])
)
needs_mlflow = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed"),
    pytest.mark.filterwarnings("ignore"),  # those of MLflow and what it imports
]


def test_the_entry_point_is_there():
    # without loading it: MLflow may not be installed
    (found,) = entry_points(group="mlflow.model_evaluator", name="mcllo")
    assert found.value == "mcllo._apps.integrations.mlflow:MclloEvaluator"


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    import mlflow

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("here", artifact_location=(tmp_path / "files").as_uri())
    mlflow.set_experiment("here")
    yield mlflow
    while mlflow.active_run():
        mlflow.end_run()


class TestRealMLflow:
    pytestmark = needs_mlflow

    def test_a_logged_model(self, mlflow):
        with mlflow.start_run() as run:
            model = mlflow.sklearn.log_model(
                MODEL, name="m", pip_requirements=["scikit-learn"]
            )
            result = mlflow.models.evaluate(
                model.model_uri,
                ROWS,
                targets="species",
                model_type="classifier",
                evaluators=["mcllo"],
                evaluator_config={"mcllo": {"seed": 0, "calibrator": "mcllo"}},
            )
        own = mcllo.assess(PROBS, WORDS[HELD], seed=0)
        logged = mlflow.get_run(run.info.run_id).data
        assert logged.metrics["mcllo/statistic"] == pytest.approx(own.test.statistic)
        assert logged.metrics["mcllo/pvalue"] == own.test.pvalue
        assert logged.metrics["mcllo/ece"] == pytest.approx(own.metrics["ece"])
        change = own.effect_size.mean_change
        assert logged.metrics["mcllo/mean_change"] == pytest.approx(change)
        assert logged.tags["mcllo.verdict"] == own.verdict.kind
        assert result.metrics == pytest.approx(logged.metrics)
        files = mlflow.MlflowClient().list_artifacts(run.info.run_id, "mcllo")
        assert {file.path for file in files} == set(result.artifacts)
        assert set(result.artifacts) == {
            "mcllo/assessment.json",
            "mcllo/calibrator.json",
            "mcllo/reliability.png",
            "mcllo/reliability_by_class.png",
            "mcllo/report.html",
        }
        content = result.artifacts["mcllo/assessment.json"].content
        assert content["verdict"]["kind"] == own.verdict.kind
        assert "<html" in result.artifacts["mcllo/report.html"].content
        path = mlflow.artifacts.download_artifacts(
            run_id=run.info.run_id, artifact_path="mcllo/calibrator.json"
        )
        fitted = mcllo.MCLLOCalibrator().fit(PROBS, WORDS[HELD])
        np.testing.assert_allclose(
            mcllo.load_calibrator(path).predict_proba(PROBS),
            fitted.predict_proba(PROBS),
        )

    def evaluate(self, mlflow, data, **options):
        with mlflow.start_run():
            return mlflow.models.evaluate(
                data=data,
                targets="species",
                predictions="predicted",
                model_type="classifier",
                **options,
            )

    def test_columns_of_a_table(self, mlflow):
        found = self.evaluate(
            mlflow,
            TABLE,
            evaluators="mcllo",
            evaluator_config={
                "probability_columns": list(MODEL.classes_),
                "calibrator": None,
                "baseline": "setosa",
                "seed": 0,
            },
        )
        own = mcllo.assess(PROBS, WORDS[HELD], baseline="setosa", seed=0)
        expected = pytest.approx(own.test.statistic)
        assert found.metrics["mcllo/statistic"] == expected
        assert "mcllo/calibrator.json" not in found.artifacts

    def test_a_table_without_probabilities_is_left_to_the_others(self, mlflow, caplog):
        found = self.evaluate(mlflow, TABLE[["species", "predicted"]])
        assert "accuracy_score" in found.metrics
        assert not any(name.startswith("mcllo") for name in found.metrics)
        assert "mcllo evaluates probabilities" in caplog.text

    def test_what_cannot_be_is_said(self, mlflow, caplog):
        config = {"probability_columns": ["setosa", "virginca"]}
        with pytest.raises(mcllo.exceptions.InputError, match="'virginca'"):
            self.evaluate(mlflow, TABLE, evaluators="mcllo", evaluator_config=config)
        names = list(MODEL.classes_)
        config = {"probability_columns": names, "calibrator": None, "bseline": 1}
        self.evaluate(mlflow, TABLE, evaluators="mcllo", evaluator_config=config)
        assert "mcllo has no options ['bseline']" in caplog.text

    def test_a_model_whose_output_is_a_table(self, mlflow):
        class Table(mlflow.pyfunc.PythonModel):
            def predict(self, context, model_input, params=None):
                return MODEL.predict_proba(model_input)

        with mlflow.start_run():
            model = mlflow.pyfunc.log_model(
                python_model=Table(), name="m", pip_requirements=["scikit-learn"]
            )
            found = mlflow.models.evaluate(
                model.model_uri,
                ROWS,
                targets="species",
                model_type="classifier",
                evaluators="mcllo",
                evaluator_config={"seed": 0, "calibrator": None},
            )
        own = mcllo.assess(PROBS, WORDS[HELD], seed=0)
        expected = pytest.approx(own.test.statistic)
        assert found.metrics["mcllo/statistic"] == expected
