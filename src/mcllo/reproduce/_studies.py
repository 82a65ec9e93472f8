"""The three studies behind the paper's tables and figures, each computed once.

================  ============================================================================
`images`          a VGG of ours on CIFAR-10, 8,000 images to learn from (X_t), 2,000 to judge
                  on (X_h): Tables 1 and 2, Figures 1 and 5
`obesity`         a forest of ours, 396 people and 132: Tables 3 and 4, Figure 6
`simulation`      30 settings of 1,000 data sets each: Figures 2 to 4, the table of rates. Every
                  p-value and ECE is in ``data/power.npz``; ``python -m studies simulate`` makes it
================  ============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._comparison.comparison import Comparison
from .._fit.fit import MCLLOFit
from ..datasets import Dataset, load_cifar10_vgg, load_obesity_forest
from ..simulate._study import PowerCell, PowerStudy
from ._rows import compare_methods, fit_maximum_likelihood

MAX_RESAMPLES = 1999
"""Labels are drawn anew up to so many times for an exact p-value."""
IMAGE_METHODS = ("mcllo", "temperature", "vector", "histogram", "xu_davoine")
OBESITY_METHODS = ("mcllo", "histogram", "xu_davoine", "temperature")
ROWS_FROM = "Dirichlet(3, 0.3, ..., 0.3)"
ALPHA = 0.05
SEED = 18573
N_CLASSES = 10
ECE_UNIT = 1e-5
CELL_COLUMNS = ("n", "delta_1", "p", "p_chi2", "ece_before", "ece_after")


@dataclass(frozen=True, eq=False)
class CaseStudy:
    """A data set and its methods; fits and comparison are computed when they are asked for."""

    data: Dataset
    methods: tuple[str, ...]

    @cached_property
    def fit(self) -> MCLLOFit:
        """The fit on the rows to learn from."""
        return fit_maximum_likelihood(self.data.train)

    @cached_property
    def holdout_fit(self) -> MCLLOFit:
        """The fit on the rows to judge on, which Table 1 has too."""
        return fit_maximum_likelihood(self.data.holdout)

    @cached_property
    def comparison(self) -> Comparison:
        """Every method, learned on the first rows and judged on the others."""
        data = self.data
        return compare_methods(data.train, data.holdout, self.methods, n_resamples=MAX_RESAMPLES)


@cache
def images() -> CaseStudy:
    """Return the study of CIFAR-10."""
    return CaseStudy(load_cifar10_vgg(), IMAGE_METHODS)


@cache
def obesity() -> CaseStudy:
    """Return the study of the forest."""
    return CaseStudy(load_obesity_forest(), OBESITY_METHODS)


@cache
def simulation() -> PowerStudy:
    """Return the paper's 30 settings."""
    with np.load(BytesIO((files(__package__) / "data" / "power.npz").read_bytes())) as file:
        return unpack_part(dict(file), "grid")


def unpack_part(
    arrays: dict[str, NDArray[Any]], part: str, test: str = "chi2", rows_from: str = ROWS_FROM
) -> PowerStudy:
    """Return a part of the long run from its arrays, which are named ``part/what``.

    Each has a row for each setting; ECE is in units of 1e-5, and NaN where it was left out.
    """
    own = {
        what: arrays[name] for name in arrays for what in CELL_COLUMNS if name == f"{part}/{what}"
    }
    nothing = np.full(own["p_chi2"].shape, np.nan)
    cells = tuple(
        PowerCell(
            int(n),
            None if np.isnan(own["delta_1"][i]) else float(own["delta_1"][i]),
            ALPHA,
            own.get("p", own["p_chi2"])[i].astype(np.float64),
            own["p_chi2"][i].astype(np.float64),
            own.get("ece_before", nothing)[i] * ECE_UNIT,
            own.get("ece_after", nothing)[i] * ECE_UNIT,
        )
        for i, n in enumerate(own["n"])
    )
    return PowerStudy(cells, test, ALPHA, SEED, rows_from, N_CLASSES)
