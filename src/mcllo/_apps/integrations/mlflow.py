"""An evaluator of MLflow: ``mlflow.models.evaluate(..., evaluators=["mcllo"])``.

MLflow finds it by the entry point ``mlflow.model_evaluator`` and, where no evaluators are named,
runs all there are: so it leaves rows without probabilities to the others, with a warning, and
imports the rest of this package only when it is used. Metrics are called ``mcllo/...``, the tag is
``mcllo.verdict``, and artifacts stand in the folder ``mcllo``.
"""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlflow
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator, artifacts

from ...exceptions import InputError

LOGGER = logging.getLogger(__name__)
FOLDER = "mcllo"
ASSESS_OPTIONS = ("alpha", "baseline", "clip", "groups", "seed")
"""Options that `mcllo.assess` takes under the same name."""
OWN_OPTIONS = ("calibrator", "label_list", "probability_columns", "sample_weights")
ARTIFACT_KINDS = {
    ".html": artifacts.TextEvaluationArtifact,
    ".json": artifacts.JsonEvaluationArtifact,
    ".png": artifacts.ImageEvaluationArtifact,
}


class MclloEvaluator(ModelEvaluator):  # type: ignore[misc]
    """Assess the calibration of a classifier and log what was found.

    Options: ``probability_columns`` of the data, where there is no model to ask; ``label_list``,
    the label of each column; ``sample_weights``; ``calibrator``, a key of `mcllo.CALIBRATORS` or
    None, by default "auto"; and `ASSESS_OPTIONS`.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, **kwargs: Any) -> bool:
        """Whether there may be probabilities of classes."""
        return model_type == "classifier"

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any],
        model: Any = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Log metrics, the verdict and artifacts to the run."""
        import mcllo

        config = evaluator_config or {}
        unknown = sorted({*config} - {*ASSESS_OPTIONS, *OWN_OPTIONS})
        if unknown:  # no error: one config may be meant for all evaluators
            LOGGER.warning("mcllo has no options %s and leaves them out.", unknown)
        probs, classes = find_probabilities(dataset, model, config)
        if probs is None:
            LOGGER.warning(
                "mcllo evaluates probabilities: the model has no predict_proba, its output is no "
                "table with a column for each class, and probability_columns is not given."
            )
            return EvaluationResult({}, {}, run_id)
        assessment = mcllo.assess(
            probs,
            dataset.labels_data,
            classes=config.get("label_list", classes),
            sample_weight=config.get("sample_weights"),
            **{name: config[name] for name in ASSESS_OPTIONS if name in config},
        )
        metrics = metrics_of(assessment)
        mlflow.log_metrics(metrics, run_id=run_id)
        client = mlflow.MlflowClient()
        client.set_tag(run_id, "mcllo.verdict", assessment.verdict.kind)
        home = client.get_run(run_id).info.artifact_uri
        logged = {}
        with TemporaryDirectory() as scratch:
            write_artifacts(Path(scratch), assessment, config.get("calibrator", "auto"))
            client.log_artifacts(run_id, scratch, FOLDER)
            for path in sorted(Path(scratch).iterdir()):
                kind = ARTIFACT_KINDS[path.suffix]
                name = f"{FOLDER}/{path.name}"
                logged[name] = kind(uri=f"{home}/{name}")
        return EvaluationResult(metrics, logged, run_id)


def find_probabilities(
    dataset: Any, model: Any, config: dict[str, Any]
) -> tuple[Any, Any]:
    """Return the probabilities by columns of the data or by the model, and the columns' labels."""
    rows = dataset.features_data
    columns = config.get("probability_columns")
    if columns is not None:
        for name in columns:
            if name not in rows:
                raise InputError(
                    f"probability_columns must name columns of the data; got {name!r}."
                )
        return rows[list(columns)].to_numpy(), list(columns)
    if model is None:
        return None, None
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError):  # a function, or a model of a server
        raw = None
    if hasattr(raw, "predict_proba"):
        return raw.predict_proba(rows), getattr(raw, "classes_", None)
    output = model.predict(rows)
    is_table = getattr(output, "ndim", 1) == 2 and output.shape[1] > 1
    return (output, None) if is_table else (None, None)


def metrics_of(assessment: Any) -> dict[str, float]:
    """Return the numbers to log; MLflow has no place for what is not finite."""
    size = assessment.effect_size
    numbers = {
        "statistic": assessment.test.statistic,
        "pvalue": assessment.test.pvalue,
        "rejected": assessment.test.rejects(assessment.details.alpha),
        "mean_change": size.mean_change,
        "mean_change_low": size.low,
        "mean_change_high": size.high,
        **assessment.metrics,
    }
    known = {name: float(value) for name, value in numbers.items() if value is not None}
    return {
        f"{FOLDER}/{k}": value for k, value in known.items() if math.isfinite(value)
    }


def write_artifacts(folder: Path, a: Any, calibrator: str | None) -> None:
    """Write the report, the numbers, the figures and the recalibration of an assessment."""
    import mcllo

    mcllo.report(a).write(folder / "report.html")
    numbers = json.dumps(a.to_dict(), allow_nan=False, default=str)
    (folder / "assessment.json").write_text(numbers, encoding="utf-8")
    mcllo.plot.save(mcllo.plot.reliability(a), folder / "reliability.png")
    by_class = mcllo.plot.reliability_by_class(a)
    mcllo.plot.save(by_class, folder / "reliability_by_class.png")
    if calibrator is not None:
        learned: Any = mcllo.CALIBRATORS[calibrator]()
        learned.fit(a.predictions).save(folder / "calibrator.json")
