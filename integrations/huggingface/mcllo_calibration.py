"""Calibration of class probabilities, a metric of HuggingFace evaluate.

``evaluate.load("integrations/huggingface/mcllo_calibration.py")`` reads it from this folder; a
Space of one's own holds the same file under the Space's name.
"""

import datasets
import evaluate
import numpy as np

from mcllo.metrics import StreamingCalibration

DESCRIPTION = """
Are predicted class probabilities calibrated? A score test of delta = gamma = 1 in the multicategory
linear log odds model, and the expected calibration error with what calibrated predictions of the
same values would show.
"""
INPUTS = """
Args:
    predictions: for each row, a probability for each class; rows sum to 1.
    references: for each row, the class that came true, 0 to n_classes - 1.
    n_bins: bins of equal width of the ECE.
Returns:
    score_statistic, score_pvalue: the test; a small p-value says that they are not calibrated.
    in_the_large_pvalue: are the classes as frequent as predicted?
    log_loss, brier_score, accuracy.
    ece, ece_expected, ece_pvalue: the error, what calibrated predictions show, and how seldom more.
Examples:
    >>> metric = evaluate.load("integrations/huggingface/mcllo_calibration.py")
    >>> found = metric.compute(predictions=[[0.7, 0.3], [0.4, 0.6]], references=[0, 1])
    >>> found["accuracy"]
    1.0
"""
CITATION = """
@article{vennos2026multiclass,
  title = {Multiclass Calibration Assessment and Recalibration of Probability Predictions via the
           Linear Log Odds Calibration Function},
  author = {Vennos, Amy and Xing, Xin and Franck, Christopher T.},
  journal = {arXiv:2602.18573},
  year = {2026}
}
@article{vanhoorde2014assessing,
  title = {Assessing calibration of multinomial risk prediction models},
  author = {Van Hoorde, Kirsten and others},
  journal = {Statistics in Medicine},
  volume = {33},
  year = {2014},
  doi = {10.1002/sim.6114}
}
"""


@evaluate.utils.file_utils.add_start_docstrings(DESCRIPTION, INPUTS)
class MclloCalibration(evaluate.Metric):
    """The metric; evaluate gathers batches and calls `_compute` once."""

    def _info(self):
        features = {
            "predictions": datasets.Sequence(datasets.Value("float64")),
            "references": datasets.Value("int64"),
        }
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=INPUTS,
            features=datasets.Features(features),
            reference_urls=["https://doi.org/10.1002/sim.6114"],
        )

    def _compute(self, predictions, references, n_bins=15):
        probs = np.asarray(predictions, dtype=np.float64)
        seen = StreamingCalibration(probs.shape[1], n_bins=n_bins)
        return seen.update(probs, references).compute().metrics
