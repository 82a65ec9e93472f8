"""The paper's tables and figures, made again from what this package carries.

Vennos, Xing and Franck (2026), *Multiclass Calibration Assessment and Recalibration of Probability
Predictions via the Linear Log Odds Calibration Function*. Their network, forest, splits and
simulated rows are not public: `mcllo.datasets` has a network and a forest of ours, and every result
says so. What the paper prints stands beside what we find.

=======================  ======================================================================
`table1`, `table2`       CIFAR-10: estimates; five recalibrations
`table3`, `table4`       obesity: estimates; recalibrations
`figure1`                the two planes
`figure2` to `figure4`   the simulation: power, ECE, by how much ECE is lowered
`figure5`, `figure6`     reliability before and after each recalibration
`power`                  the rates behind Figure 2, which the paper has in its supplement
`boxplots`, `tradeoff`   the supplement's: Figure 3 for every n; accuracy against calibration
`ecology`                the third case study
`baseline`               size and power by baseline, the paper's closing limitation
`ITEMS`                  all of these by name
`reproduce`              one of them by name, as ``mcllo reproduce`` does; from other predictions
                         too: the authors', once these are public, or one's own
=======================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable

from .._utils.optional import PLOT_EXTRA, import_optional
from .._validation.frames import did_you_mean
from .._validation.predictions import Predictions
from ..exceptions import InputError

import_optional("matplotlib", PLOT_EXTRA)  # before the figures, which all import it

from ._figures import figure1, figure2, figure3, figure4, figure5, figure6, power
from ._result import Reproduction, printed
from ._supplement import baseline, boxplots, ecology, tradeoff
from ._tables import table1, table2, table3, table4

__all__ = [
    "ITEMS",
    "Reproduction",
    "baseline",
    "boxplots",
    "ecology",
    "figure1",
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "figure6",
    "power",
    "printed",
    "reproduce",
    "table1",
    "table2",
    "table3",
    "table4",
    "tradeoff",
]

ITEMS: dict[str, Callable[..., Reproduction]] = {
    made.__name__: made
    for made in (
        *(table1, table2, table3, table4),
        *(figure1, figure2, figure3, figure4, figure5, figure6, power),
        *(boxplots, tradeoff, ecology, baseline),
    )
}
"""What can be made again, by name."""

FROM_PREDICTIONS = {
    "images": ("table1", "table2", "figure5"),
    "obesity": ("table3", "table4", "figure6"),
}
"""What can be made from predictions that are given, by the study that they are of."""


def reproduce(
    name: str, *, data: tuple[Predictions, Predictions] | None = None
) -> Reproduction:
    """Make a table or figure of the paper again.

    Parameters
    ----------
    name : str
        A key of `ITEMS`, such as ``"table2"``.
    data : pair of Predictions, optional
        Rows to learn from and rows to judge on, instead of those that the package carries: for
        Tables 1 to 4 and Figures 5 and 6.

    Returns
    -------
    Reproduction
        Print it for the numbers; ``save`` writes it.

    Raises
    ------
    InputError
        When there is no table or figure of this name, or it is not made from predictions.

    See Also
    --------
    printed : What the paper prints.
    table2 : One of the tables.
    figure2 : One of the figures.
    mcllo.simulate.power : The study, with other settings.

    Notes
    -----
    The tables and figures are those of [1]_. Its networks and splits are not public: ours stand in
    their place, beside the paper's numbers.

    References
    ----------
    .. [1] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> print(reproduce("power"))
    Rejection rates (supplement) of Vennos, Xing and Franck (2026)
    ...
    n      delta_1 = 1  delta_1 = 1.1  delta_1 = 1.2  delta_1 = 1.3  delta_1 = 1.4
    ...
    """
    if name not in ITEMS:
        hint = did_you_mean(name, tuple(ITEMS), "known are")
        message = "{found} is not known; {hint}"
        raise InputError(message, argument="name", value=name, values={"hint": hint})
    if data is None:
        return ITEMS[name]()
    known = [item for items in FROM_PREDICTIONS.values() for item in items]
    if name not in known:
        message = "{found} is not made from predictions; {known} are"
        raise InputError(
            message, argument="name", value=name, values={"known": ", ".join(known)}
        )
    return ITEMS[name](data)
