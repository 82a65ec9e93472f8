"""Words of figures: names of classes, how to read a figure, models and changes in words.

==========  =======================================================================================
shown       a class name as plain text on one short line: no mathematics between dollar signs, no
            control or direction characters, a box for a glyph that the font lacks; names that look
            alike after that get the number of their column (`fit_labels`)
caption     how to read each figure, for pages that show it and under it
model_name  the models of the nested models, as figures and tables name them
==========  =======================================================================================
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path

from .._comparison.comparison import Comparison
from .._inference.calibration_test import needs_robust_covariance
from .._utils.formatting import ellipsis, format_count, format_number, format_pvalue
from .._validation.predictions import Predictions
from ..exceptions import InputError
from ..metrics._reliability import ReliabilityCurve
from ._style import TITLE_PT

FONT = "DejaVu Sans"
"""Comes with matplotlib, so figures are the same everywhere."""
BOX = "□"
MAX_LABEL_CHARS = 24  # of a name
MAX_LABEL_POINTS = 170.0  # of its width


def fit_label(
    label: object,
    width: int = MAX_LABEL_CHARS,
    room: float = MAX_LABEL_POINTS,
    bold: bool = False,
) -> str:
    """Return a label as one short line of characters that the font has.

    Parameters
    ----------
    label : object
        What ``str`` makes text of.
    width : int
        Most characters.
    room : float
        Most points that the text may take, bold or not, in the size of a title.

    Examples
    --------
    >>> fit_label("cat"), fit_label(" a  b "), fit_label("x" * 30, 8), fit_label("")
    ('cat', 'a b', 'xxxxxxx…', '(empty)')
    """
    words = " ".join(str(label).split())
    drawn = "".join(_drawable_letter(letter) for letter in words).strip()
    for letters in range(width, 1, -1):
        text = ellipsis(drawn, letters)
        if text_width(text, bold) <= room:
            return text or "(empty)"
    return "…"


def fit_labels(
    labels: Sequence[Hashable],
    width: int = MAX_LABEL_CHARS,
    room: float = MAX_LABEL_POINTS,
    bold: bool = False,
) -> list[str]:
    """Return the labels of all columns as `fit_label` does, those that look alike with their
    number.

    Examples
    --------
    >>> fit_labels(["cat", "dog"]), fit_labels(["cats and dogs 1", "cats and dogs 2"], 12)
    (['cat', 'dog'], ['cats and… #1', 'cats and… #2'])
    """
    names = [fit_label(label, width, room, bold) for label in labels]
    alike = Counter(names)
    for j, label in enumerate(labels):
        if alike[names[j]] > 1:
            number = f" #{j + 1}"
            left = room - text_width(number, bold)
            names[j] = fit_label(label, width - len(number), left, bold) + number
    return names


def text_width(text: str, bold: bool = False) -> float:
    """Return the width in points of a line of text in the size of a title."""
    font = FontProperties(
        family=[FONT], size=TITLE_PT, weight="bold" if bold else "normal"
    )
    return float(
        text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    )


def format_signed(value: float) -> str:
    """Return a number with one decimal and its sign, a minus as printers set it.

    Examples
    --------
    >>> format_signed(1.26), format_signed(-3.0), format_signed(float("nan"))
    ('+1.3', '−3.0', '-')
    """
    return "-" if value != value else f"{value:+.1f}".replace("-", "−")


def _drawable_letter(letter: str) -> str:
    """Return the letter, a box where the font lacks it, nothing for what has no look of its own."""
    kind = unicodedata.category(letter)
    if kind in ("Cc", "Cf"):
        return ""
    if ord(letter) in _font_glyphs():
        return letter
    return "" if kind in ("Mn", "Me") else BOX


@cache
def _font_glyphs() -> frozenset[int]:
    path = findfont(FontProperties(family=[FONT]))
    return frozenset(get_font(path).get_charmap())


def caption(kind: str, result: Any, *, curve: str = "smooth") -> str:
    """Return how to read a figure.

    Parameters
    ----------
    kind : str
        Name of the function that draws it, such as ``"reliability"``.
    result : Assessment, Predictions, Comparison, MCLLOFit, NestedModels, PowerStudy and the like
        What is drawn: what the function takes as its first argument.
    curve : {"smooth", "isotonic", "bins"}
        Which curve a reliability diagram has.

    Returns
    -------
    str
        One paragraph of plain text, as the option `caption` of the figures writes it.

    See Also
    --------
    reliability : One of the figures that take ``caption=True``.
    to_svg : Takes a text for people who hear the page.
    save : Writes a figure.

    Examples
    --------
    >>> from mcllo import MCLLOMap
    >>> import numpy as np
    >>> half = MCLLOMap(np.zeros(1), np.full(1, 0.5), ("rain", "sun"), "sun")
    >>> caption("calibration_map", half)[:50]
    'What the recalibration does to a probability, clas'
    """
    if kind not in CAPTIONS:
        raise InputError(f"kind must be one of {', '.join(CAPTIONS)}; got {kind!r}.")
    of = result
    words: dict[str, str] = {}
    if hasattr(result, "details"):  # of an assessment, or that detail itself
        if kind == "nested_models":
            of = result.nested_models()
        elif kind == "baselines":
            of = result.details.baselines
    if kind == "reliability" and isinstance(result, Mapping | Comparison):
        return SEVERAL[curve]
    if kind in ("reliability", "reliability_by_class"):
        rows = getattr(result, "predictions", result)
        if curve in CURVES:
            words = SUBJECTS[kind] | {"independent": ""}
            if not isinstance(rows, Predictions):  # a curve alone: no points, no bars
                return CURVES[curve].format(**words | {"distance": ""})
            if rows.offered is not None:
                words["what"] = "the most probable option"
            words["independent"] = _explain_dependent_rows(rows)
            return (CURVES[curve] + ROWS[kind]).format(**words)
        words["boxes"] = _explain_boxes(rows)
        if getattr(rows, "offered", None) is not None:
            return CAPTIONS[kind].replace("class", "option").format(**words)
    elif kind == "calibration_map":
        words["base"] = fit_label(result.baseline)
    elif kind == "comparison":
        rows = result.holdout
        drawn = COMPARED[curve].format(
            boxes=_explain_boxes(rows), independent=_explain_dependent_rows(rows)
        )
        words = {"drawn": drawn, "n": format_count(rows.n_samples)}
    elif kind == "baselines":
        words["p"] = format_pvalue(of.pvalue)
    elif kind == "decision_value":
        of = getattr(result, "decision_value", result)
    elif kind == "subgroups":
        of = getattr(result, "subgroups", result)
        words = {"by": fit_label(of.by), "p": str(of.test.p_words)}
    return CAPTIONS[kind].format(of=of, **words)


BOXES = (
    "Grey boxes: where 95 % of the points fall if the predictions are calibrated; diamonds lie "
    "outside. Points inside the boxes are no proof of calibration: few rows show little."
)
INTERVALS = "Lines: 95 % intervals."


def _explain_boxes(predictions: Predictions | ReliabilityCurve) -> str:
    if isinstance(predictions, ReliabilityCurve):
        return BOXES if np.isfinite(predictions.band_low).any() else INTERVALS
    words = BOXES if predictions.has_whole_weights else INTERVALS
    return words + _explain_dependent_rows(predictions)


def _explain_dependent_rows(predictions: Predictions) -> str:
    if needs_robust_covariance(predictions):
        return (
            " They assume independent rows that each count once, which these are not."
        )
    return ""


CAPTIONS = {
    "reliability": "Rows are grouped by the probability of their most probable class; each point "
    "shows how often that class came true. On the dashed line both agree; below it the predictions "
    "are overconfident, above it underconfident. {boxes} The bars count the rows.",
    "reliability_by_class": "For each class, rows are grouped by its predicted probability; each "
    "point shows how often the class came true. Below the dashed line it is predicted too often, "
    "above it too rarely. {boxes} Bars at the foot: rows, relative to the fullest group. ECE: mean "
    "distance from the line; z: how far the observed number of rows of the class is from the "
    "predicted one, in standard deviations.",
    "ternary": "Each corner is a class that is certain; on the side opposite to it the class has "
    "probability 0, and thin lines show 0.25, 0.5 and 0.75. Marks are rows at their predictions; "
    "their look says which class came true. Arrows start at predictions and end where the "
    "recalibration "
    "moves them; a dot stays.",
    "parameters": "The recalibration multiplies the log odds of each class against the baseline "
    "by gamma, "
    "and then the odds by delta: 1 changes nothing. Lines are 95 % intervals; diamonds mark those "
    "that exclude 1. Delta: where a prediction gives even odds, the class is in truth delta times "
    "as likely as the baseline. Gamma below 1: the predictions are overconfident; above 1: "
    "underconfident.",
    "calibration_map": "What the recalibration does to a probability, class by class against the "
    "baseline, {base}: the share p(class) / (p(class) + p({base})) as predicted and as "
    "recalibrated. "
    "Other classes do not change it. On the dashed line nothing changes; a curve flatter than the "
    "line pulls extreme predictions in, a steeper one pushes them out.",
    "comparison": "The same {n} rows before and after each method, best log loss first after the "
    "uncalibrated ones. {drawn} p: "
    "likelihood ratio test of calibration; a large p is no proof of it, and the largest is not the "
    "best.",
    "comparison_dots": "Methods by log loss, the best on top. Left: p-value of the calibration "
    "test; in the grey area calibration is rejected. Hollow: corrected for the noise of the fitted "
    "map. Middle: expected calibration error. Right: how much worse the log loss is than the best, "
    "with paired intervals that hold for all methods at once (95 %).",
    "nested_models": "Each row is a model of what is wrong. A mark shows how much better it fits "
    "these "
    "labels than the predictions as they are; the grey bar is what it would gain by chance alone, "
    "about 1 for each parameter. Models further down contain those above them, but shifts contain "
    "no slope and slopes no shift. Enough? tests the model against shifts and slopes for every "
    "class (these against the full matrix); diamonds are rejected by closed testing at level "
    "{of.alpha:g}, which needs a small p-value of the model and of every model inside it (hollow: "
    "only its own is small). The smallest model not rejected is ringed: what these labels do not "
    "contradict, not what is proven.",
    "baselines": "The same rows with each class as the baseline. Left: the likelihood ratio "
    "statistic, by chi-square rejected or not; picking the baseline with the smallest p-value is "
    "not a valid test, the p-value over all of them is (p {p}). Right: how far a recalibrated "
    "probability moves from where the reference puts it, on average and at most.",
    "subgroups": "One row for each subgroup ({by}), the worst on top. Left: the one exponent that "
    "fits its probabilities best; below 1 they are overconfident, above 1 underconfident, and the "
    "solid "
    "line is that of all rows. Right: how far its probabilities are off on average. Lines are "
    "intervals that hold for all subgroups at once (95 %). One map for all: p {p}.",
    "decision_value": "Mean realised cost of a case, with intervals: acting on the probabilities "
    "as they are, on recalibrated ones ({of.calibrator}, each row by a map fitted to other rows), "
    "always taking the action that is best by the frequencies of the classes, and knowing the "
    "truth. The cross is what the probabilities promise: left of the circle, decisions cost more "
    "than that.",
    "abstention": "Rows are answered from the surest one on; the line shows the error of the rows "
    "that are answered, bands its intervals at each point ({of.n_samples} rows). Recalibration "
    "moves the line only where it changes the order of the rows or the answers. A threshold picked "
    "here after looking promises too much.",
    "decision_curve": "Net benefit of acting where the risk reaches the threshold: true positives "
    "a patient, less false positives, which count t / (1 - t) each. Bands are intervals at each "
    "threshold. Above both grey lines the risks are of use; choose the range of thresholds before "
    "looking.",
    "power": "How often the likelihood ratio test rejects calibration in simulated data sets "
    "({of.design}; {of.n_classes} classes). Bands are the 95 % intervals of the simulation. Where "
    "the predictions are calibrated, the line should meet the dashed one.",
    "ece_boxplot": "Expected calibration error in simulated data sets ({of.design}; "
    "{of.n_classes} classes): of the predictions as drawn, and after an MCLLO map fitted to the "
    "same rows. Boxes hold half of the data sets, whiskers 95 %. It is above 0 for calibrated "
    "predictions too.",
    "ece_difference": "Mean ECE of simulated data sets ({of.design}; {of.n_classes} classes) less "
    "that after an MCLLO map fitted to the same rows. Bands are the 95 % intervals of the "
    "simulation. A gain where nothing is wrong is the fit's own: the map follows the noise of the "
    "rows it is judged on.",
    "monitor": "Evidence after each of {of.n_batches} batches: the detector of a change against "
    "{of.run_length:g}, the evidence since the start against 1 over {of.alpha:g}; both may be "
    "looked at after every batch. The interval of the size holds at every batch at once. Dashed: "
    "where the departure seems to have begun.",
}
"""How to read each figure; `caption` fills the gaps."""

SUBJECTS = {
    "reliability": {
        "what": "the most probable class",
        "below": "the predictions are overconfident",
        "above": "underconfident",
        "distance": " Hollow points: the same in bins of ten rows or more.",
    },
    "reliability_by_class": {
        "what": "each class",
        "below": "it is predicted too often",
        "above": "too rarely",
        "distance": " ICI: mean distance between curve and line; in brackets what 95 % of "
        "calibrated rows show at most.",
    },
}
CURVES = {
    "smooth": "The curve shows how often {what} came true, by its predicted probability, from the "
    "tenth smallest prediction to the tenth largest; the shaded band holds the curves that "
    "these labels hardly tell from it (95 % at each point). On the dashed line both agree; below "
    "it {below}, above it {above}.{distance}",
    "isotonic": "The curve shows how often {what} came true, by its predicted probability: the "
    "best one that never falls. Below the dashed line {below}, above it {above}. Grey: where "
    "95 % of such curves run if the predictions are calibrated; thick where this one does not. "
    "Inside the band is no proof of calibration.{independent} Miscalibration (MCB) is what the "
    "curve would gain in Brier score.",
}
COMPARED = {
    "smooth": "Curves show how often the most probable class came true, with 95 % bands.",
    "isotonic": "Curves show how often the most probable class came true, the best that never "
    "fall; grey: where 95 % of such curves run if the predictions are calibrated.{independent}",
    "bins": "Points show how often the most probable class came true. {boxes}",
}
"""What a panel of a comparison shows."""
SEVERAL = {
    "bins": "One line for each set of predictions: rows are grouped by the probability of their "
    "most probable class, and points show how often that class came true; larger points hold more "
    "rows. On the dashed line both agree; below it predictions are overconfident, above it "
    "underconfident. Chance moves points too, most of all small ones: nothing here tests a "
    "difference.",
    "smooth": "One curve for each set of predictions: how often the most probable class came true, "
    "by its predicted probability. On the dashed line both agree; below it predictions are "
    "overconfident, above it underconfident. Chance bends curves too: nothing here tests a "
    "difference.",
    "isotonic": "One curve for each set of predictions: how often the most probable class came "
    "true, by its predicted probability, the best curve that never falls. On the dashed line both "
    "agree; below it predictions are overconfident, above it underconfident. Such curves leave "
    "the line "
    "by chance alone, and nothing here tests a difference.",
}
"""How to read several sets on one diagram."""
ROWS = {
    "reliability": " Bars below: rows whose class came true, upwards, and did not, "
    "downwards; heights are square roots of their numbers.",
    "reliability_by_class": " Bars at the foot: rows, as square roots of their numbers.",
}
"""How to read curves without bins: what is drawn, and the bars."""

SMALLEST_CHANGE = 1e-4
"""Smaller changes of a probability are of no interest to anybody."""

MODEL_NAMES = {
    "identity": "as predicted",
    "temperature": "one slope (temperature)",
    "shift": "shifts",
    "scale": "slopes",
    "common_slope": "shifts and one slope",
    "mcllo": "shifts and slopes (MCLLO)",
    "full": "full matrix",
}


def nested_model_label(model: str) -> str:
    """Return a model's name as words."""
    return MODEL_NAMES.get(model, model.replace("_", " "))


def format_probability_change(change: float) -> str:
    """Return a change of a probability; tiny ones only say so."""
    return (
        format_number(change) if change >= SMALLEST_CHANGE else f"< {SMALLEST_CHANGE:g}"
    )
