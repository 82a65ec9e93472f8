r"""`TemperatureScaling`: one number that makes all predictions bolder or more cautious.

====================  ======================================================================
map                   ``softmax(u z)``, u = 1 / T
likelihood equation   ``h(u) = sum_i w_i (E_{softmax(u z_i)}[z] - z_{i, y_i}) = 0``
derivatives of h      sums of the second and third central moments of z under ``softmax(u z_i)``
=====================================================================================================

h rises in u, so the root is unique: Halley's steps on ``v = log u`` inside a bracket that shrinks,
bisection where a step would leave it. The map does not change when a number is added to all
scores of a row; so log probabilities and logits give the same answer, and scores less their
largest, which are never positive, need no overflow guard at any u.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from .._model import CHUNK_ELEMENTS
from ..exceptions import ConvergenceWarning, SeparationWarning
from ._contract import predict_labels, read_rows, read_training, save_calibrator
from ._linear_map import LinearMap, transposed_scores

Floats = NDArray[np.float64]

LOG_BOUND = 16.0
CLOSE = 1e-4
"""Step in log u after which no other is needed: the error left is of the order ``CLOSE ** 3``."""
MAX_ITER = 100
