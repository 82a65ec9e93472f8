"""`Identity`: the calibrator that changes nothing, for tables and as a yardstick."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from .._ground.results import Floats
from .._input.probabilities import Simplex
from ._base import Calibrator


class Identity(Calibrator):
    """Return predictions as they are.

    Rows are validated like everywhere else and divided by their sum; zeros stay zeros.

    Parameters
    ----------
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows that do not sum to 1 and divide them by their sum.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order.

    Examples
    --------
    >>> Identity().fit([[0.7, 0.3], [0.2, 0.8]], ["cat", "dog"]).predict_proba([[0.9, 0.1]])
    array([[0.9, 0.1]])
    """

    method = "identity"
    _absent = "it keeps its predicted probability, as all classes do"
    needs_logs = False

    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
    ) -> None:
        self.classes = classes
        self.normalize = normalize

    def _apply(self, simplex: Simplex) -> Floats:
        return simplex.probs.copy()
