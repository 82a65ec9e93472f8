"""`BlockAssessment`: what is known of rows that are never all in memory, as small objects.

They have the attributes of `Assessment`, `Details` and `Predictions` that words and tables read, so
one report serves both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ._assess import data_facts
from ._block_sums import RowSums
from ._blocks import Blocks, zero_note
from ._calibration_test import CalibrationTest
from ._details import PARTS, Details
from ._fit import MCLLOFit, none_for_nan
from ._labels import Classes
from ._metric_null import MetricNull
from ._omnibus import OmnibusTest
from ._posterior import CalibrationPosterior, posterior_of_fit
from ._reliability import ReliabilityCurve
from ._table import Table
from ._words import assessment_text, wrapped

Floats = NDArray[np.float64]

TOO_LARGE = "the rows are not all in memory"


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """What is known of rows that are not in memory; names as in `Predictions`.

    Attributes
    ----------
    sample_weight : float or None
        Total weight; None when every row counts once.
    """

    n_samples: int
    classes: Classes
    baseline: Any
    class_weight: Floats
    sample_weight: float | None
    n_zeros: int
    n_clipped: int
    n_clipped_true: int
    clip: float | None
    n_renormalized: int
    max_row_error: float
    zero_note: str
    weight_kind: str = "frequency"
    groups: None = None

    @classmethod
    def of(cls, blocks: Blocks) -> BlockFacts:
        """Return the facts that the first pass found."""
        sums, layout = blocks.first, blocks.layout
        return cls(
            n_samples=sums.n_samples,
            classes=layout.classes,
            baseline=layout.baseline,
            class_weight=sums.class_weight,
            sample_weight=sums.scores.weight if sums.weighted else None,
            zero_note=zero_note(sums) if sums.changes.n_clipped else "",
            **vars(sums.changes),
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def absent(self) -> Classes:
        """Classes that never occur in the labels."""
        pairs = zip(self.classes, self.class_weight, strict=True)
        return tuple(label for label, weight in pairs if weight == 0.0)


@dataclass(frozen=True, eq=False)
class BlockDetails:
    """What needs no rows of `Details`, and what was left out.

    Attributes
    ----------
    posterior : CalibrationPosterior or None
        Posterior probability of calibration at even odds.
    skipped : dict of str to str
        What was left out, and why.
    """

    posterior: CalibrationPosterior | None
    skipped: dict[str, str]
    ladder: None = None
    class_tests: None = None
    baselines: None = None
    zeros: None = None
    robust: None = None

    @classmethod
    def of(cls, sums: RowSums, fit: MCLLOFit) -> BlockDetails:
        """Return the details that the sums tell."""
        left_out = ["ladder", "class_tests", "baselines"] + ["zeros"] * bool(sums.changes.n_clipped)
        known = sums.scores.weight > 1.0
        return cls(
            posterior=posterior_of_fit(fit, sums.scores.weight, 0.5) if known else None,
            skipped=dict.fromkeys(left_out, TOO_LARGE),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        parts = {name: getattr(self, name) for name in PARTS}
        plain = {name: None if part is None else part.to_dict() for name, part in parts.items()}
        return {**plain, "skipped": dict(self.skipped)}


@dataclass(frozen=True, eq=False, repr=False)
class BlockAssessment:
    """What `assess_blocks` found; print it for the report that `Assessment` prints.

    Attributes
    ----------
    test, fit, metrics, nulls, companions, in_the_large, details
        As in `Assessment`.
    subsample : CalibrationTest or None
        The exact test of a random subsample, where the chi-square p-value of `test` is in doubt;
        its `reason` says how many rows.
    reliability : list of ReliabilityCurve
        Of the most probable class, then class by class; 10 bins of equal width.
    predictions : BlockFacts
        What was assessed.
    """

    test: CalibrationTest
    fit: MCLLOFit
    metrics: dict[str, float]
    nulls: dict[str, MetricNull]
    companions: dict[str, OmnibusTest]
    in_the_large: Table
    details: Details | BlockDetails
    subsample: CalibrationTest | None
    reliability: list[ReliabilityCurve]
    predictions: BlockFacts

    def __str__(self) -> str:
        return self.text()

    def text(self, alpha: float = 0.05, *, full: bool = False) -> str:
        """Return the report, its verdict at level `alpha`; `full` adds every detail."""
        text, line = assessment_text(cast(Any, self), alpha, full=full), f"  {self.test}\n"
        if self.subsample is None:
            return text
        doubt = f"Chi-square is in doubt: {self.test.reason}. {self.subsample.reason}:"
        note = [f"  {part}\n" for part in wrapped([f"{doubt} {self.subsample}"])]
        return text.replace(line, line + "".join(note), 1)

    def __repr__(self) -> str:
        p = self.predictions
        return (
            f"<BlockAssessment of {p.n_samples} rows, {p.n_classes} classes: statistic "
            f"{self.test.statistic:.6g}, df {self.test.df}, pvalue {self.test.pvalue:.4g}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "test": none_for_nan(self.test.to_dict()),
            "subsample": None if self.subsample is None else none_for_nan(self.subsample.to_dict()),
            "fit": none_for_nan(self.fit.to_dict()),
            "metrics": none_for_nan(self.metrics),
            "nulls": {name: null.to_dict() for name, null in self.nulls.items()},
            "companions": {name: test.to_dict() for name, test in self.companions.items()},
            "in_the_large": none_for_nan(self.in_the_large.rows()),
            "reliability": [curve.to_dict() for curve in self.reliability],
            **none_for_nan(self.details.to_dict()),
            "data": data_facts(cast(Any, self.predictions)),
        }
