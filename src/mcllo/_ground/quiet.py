"""Leave out warnings where what they speak of serves something else, and says so itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..exceptions import ConvergenceWarning, SeparationWarning

OF_ESTIMATES = (SeparationWarning, ConvergenceWarning)
"""What a fit says of its estimates."""


@contextmanager
def quiet(*categories: type[Warning]) -> Iterator[None]:
    """Ignore warnings of these categories, or all, inside a ``with`` block.

    Examples
    --------
    >>> import warnings
    >>> with quiet(*OF_ESTIMATES):
    ...     warnings.warn("no finite parameters are best", OF_ESTIMATES[0])
    """
    with warnings.catch_warnings():
        for category in categories or (Warning,):
            warnings.simplefilter("ignore", category)
        yield
