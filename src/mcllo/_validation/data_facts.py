"""`DataFacts`: what is known of rows that are in memory or not.

Everything that an assessment says of its data is in here, so that rows which are read in blocks
need not be kept for it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._utils.results import Codes, Floats
from .._utils.statements import Statement
from ..exceptions import Phrase
from .clipping import clipping_sentence
from .labels import Classes
from .predictions import Predictions


@dataclass(frozen=True, eq=False)
class DataFacts:
    """What is known of the rows, in memory or not; names as in `Predictions`.

    Attributes
    ----------
    sample_weight : ndarray, float or None
        The weights, or the sum of those that are not in memory; None when every row counts once.
    """

    n_samples: int
    classes: Classes
    baseline: Any
    class_weight: Floats
    sample_weight: Floats | float | None
    weight_kind: str = "frequency"
    groups: Codes | None = None
    n_zeros: int = 0
    n_clipped: int = 0
    n_clipped_true: int = 0
    clip: float | None = None
    n_renormalized: int = 0
    max_row_error: float = 0.0
    notes: tuple[Statement, ...] = ()

    @classmethod
    def from_predictions(cls, predictions: Predictions) -> DataFacts:
        """Return the facts of rows in memory."""
        return cls(**{field.name: getattr(predictions, field.name) for field in fields(cls)})

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def absent(self) -> Classes:
        """Classes that never occur in the labels."""
        pairs = zip(self.classes, self.class_weight, strict=True)
        return tuple(label for label, weight in pairs if weight == 0.0)

    @property
    def zero_phrase(self) -> Phrase:
        """What clipping did, in a sentence; empty when it did nothing."""
        return clipping_sentence(self, self.n_samples * self.n_classes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        weighted = self.sample_weight is not None
        return {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "classes": list(self.classes),
            "baseline": self.baseline,
            "class_counts": self.class_weight.tolist(),
            "absent_classes": list(self.absent),
            "weighted": weighted,
            "weight_kind": self.weight_kind if weighted else None,
            "n_groups": None if self.groups is None else len(np.unique(self.groups)),
            "n_zeros": self.n_zeros,
            "n_clipped": self.n_clipped,
            "n_clipped_true": self.n_clipped_true,
            "clip": self.clip,
            "n_renormalized": self.n_renormalized,
            "max_row_error": self.max_row_error,
            "notes": [{"kind": note.kind, "text": note.text} for note in self.notes],
        }
