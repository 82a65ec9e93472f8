"""Reliability diagrams of an assessment: of the most probable class, and class by class."""

from __future__ import annotations

from matplotlib.axes import Axes

from .._assess import Assessment
from .._binning import Binning, NBins
from .._calibration_errors import ClasswiseECE
from .._reliability import reliability_curve
from .._text import format_number
from .captions import caption as caption_of
from .curves import draw_counts, draw_curve, key
from .layout import OwnFigure, footer, heading, label_outer, panel_room, panels
from .names import shown_all, signed
from .style import styled

MAX_CLASSES = 12


@styled
def reliability(
    assessment: Assessment,
    *,
    ax: Axes | None = None,
    n_bins: NBins = 10,
    binning: Binning = "width",
    caption: bool = False,
) -> Axes:
    """Draw the reliability diagram of the most probable class.

    Parameters
    ----------
    assessment : Assessment
        What `mcllo.assess` returned.
    ax : Axes, optional
        Where to draw, counts as a strip at the foot; a new figure when not given.
    n_bins, binning
        As in `mcllo.reliability_curve`.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    Axes
        Of the diagram; ``.figure`` is the whole, `mcllo.plot.save` writes it.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> reliability(a).get_ylabel()
    'Observed frequency'
    """
    curve = reliability_curve(assessment.predictions, n_bins=n_bins, binning=binning)
    if ax is None:
        figure = OwnFigure(5.0, 5.9)
        ax, counts = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
        draw_curve(ax, curve, strip=False)
        draw_counts(counts, curve)
        ax.tick_params(labelbottom=False)
        foot = counts
    else:
        draw_curve(ax, curve, strip=True)
        foot = ax
    ax.set_ylabel("Observed frequency")
    foot.set_xlabel("Predicted probability of the most probable class")
    heading(ax, "Reliability of the most probable class", _ece_line(assessment))
    footer(ax, [caption_of("reliability", assessment)] if caption else [], key(curve))
    return ax


@styled
def reliability_by_class(
    assessment: Assessment,
    *,
    max_classes: int = MAX_CLASSES,
    n_bins: NBins = 10,
    binning: Binning = "width",
    columns: int | None = None,
    caption: bool = False,
) -> list[Axes]:
    """Draw a reliability diagram for each class, the worst first, the rest folded into a line.

    Parameters
    ----------
    assessment : Assessment
        What `mcllo.assess` returned.
    max_classes : int
        Most panels; classes with the largest calibration error are shown.
    n_bins, binning
        As in `mcllo.reliability_curve`.
    columns : int, optional
        Panels beside each other.
    caption : bool
        Write under the figure how to read it.

    Returns
    -------
    list of Axes
        One for each class shown.

    Examples
    --------
    >>> import mcllo
    >>> a = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    >>> [ax.get_title(loc="left") for ax in reliability_by_class(a)]
    ['0', '1']
    """
    predictions = assessment.predictions
    errors, z = class_errors(assessment), assessment.in_the_large["z"]
    order = sorted(range(len(errors)), key=lambda j: -round(errors[j], 12))
    chosen = order[: max(1, max_classes)]
    axes = panels(len(chosen), columns)
    names = shown_all(predictions.classes, room=panel_room(axes), bold=True)
    for ax, j in zip(axes, chosen, strict=True):
        label = predictions.classes[j]
        curve = reliability_curve(predictions, label=label, n_bins=n_bins, binning=binning)
        draw_curve(ax, curve, strip=True)
        heading(ax, names[j], f"ECE {format_number(errors[j])}, z {signed(z[j])}")
    label_outer(axes, "Predicted probability", "Observed frequency")
    folded = _folded(len(order), [errors[j] for j in order[len(chosen) :]])
    how = caption_of("reliability_by_class", assessment) if caption else ""
    footer(axes[0], [folded, how], key(curve))
    return axes


def class_errors(assessment: Assessment) -> list[float]:
    """Return each class's calibration error; their mean is ``metrics["classwise_ece"]``."""
    predictions = assessment.predictions
    errors = ClasswiseECE(predictions).per_class(predictions.codes[None])[0]
    return [float(value) for value in errors]


def _folded(total: int, rest: list[float]) -> str:
    if not rest:
        return ""
    return (
        f"The {total - len(rest)} of {total} classes with the largest calibration error; "
        f"that of the others is at most {format_number(rest[0])}."
    )


def _ece_line(assessment: Assessment) -> str:
    line = f"ECE {format_number(assessment.metrics['ece'])}"
    null = assessment.nulls.get("ece")
    if null is None:
        return line
    low, high = format_number(null.low), format_number(null.high)
    return f"{line}; calibrated predictions like these show {low} to {high}"
