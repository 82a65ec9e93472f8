"""Pictures of the gallery: in the page as SVG, in the colours of its light or dark theme.

`mcllo.plot` hands a figure to pyplot only where there is a screen, so sphinx-gallery, which asks
pyplot, would find none. The figures are found among the names of a script instead. A PNG of each
is the small picture on the gallery's first page.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import mcllo.plot

ORDER = (
    *(
        "reliability",
        "by_class",
        "bins",
        "isotonic",
        "several_models",
        "before_after",
    ),
    *(
        "recalibrations",
        "parameters",
        "calibration_map",
        "ternary",
        "nested_models",
        "baselines",
    ),
    *("decision_costs", "abstention", "decision_curves"),
    *("subgroups", "monitor", "power", "error_boxes", "own_page"),
)
"""The scripts in the order of the gallery."""


class Order:
    """Sort scripts as `ORDER` does."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        """Return the place of a script."""
        return ORDER.index(Path(name).stem)


def scraper(block: Any, script: dict[str, Any], settings: dict[str, Any]) -> str:
    """Return the figures that a block of a script has drawn, as elements of the page."""
    parts = []
    for value in list(script["example_globals"].values()):
        figure = figure_in(value)
        if figure is None or getattr(figure, "in_gallery", False):
            continue
        figure.in_gallery = True  # type: ignore[attr-defined]
        path = Path(next(script["image_path_iterator"]))
        mcllo.plot.save(figure, path.with_suffix(".png"), dpi=144)
        title = Path(script["src_file"]).stem
        words = title.replace("_", " ")
        svg = mcllo.plot.to_svg(
            figure, alt=f"Figure: {words}", salt=path.stem, themed=True
        )
        lines = ['<figure class="drawn">', *svg.splitlines(), "</figure>"]
        parts += [".. raw:: html", "", *(f"   {line}" for line in lines), ""]
    return "\n".join(["", *parts]) + "\n" if parts else ""


def figure_in(value: Any) -> Figure | None:
    """Return the figure that a name of a script stands for, if it does."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, Figure):
        return first
    return first.get_figure(root=True) if isinstance(first, Axes) else None
