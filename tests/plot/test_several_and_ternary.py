"""Several sets of predictions on one diagram, and three classes on a triangle."""

import numpy as np
import pytest
from figure_checks import assert_readable, assessment, comparison, line, predictions
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import mcllo
from mcllo import MCLLOMap, reliability_curve, smooth_curve
from mcllo.exceptions import InputError
from mcllo.metrics import expected_calibration_error
from mcllo.plot import caption, reliability, reliability_by_class, ternary
from mcllo.plot._reliability_curves import range_of_many_rows
from mcllo.plot._style import DASHES, MARKERS, SERIES
from mcllo.plot._ternary import (
    N_ARROW_STEPS,
    N_ARROW_STEPS_LONG,
    arrow_starts,
    triangle_coordinates,
)

CLASSES = ("calm", "rain", "snow")


def two():
    return {"first": assessment(3), "second <b>": assessment(3, 601)}


def test_lines_are_the_curves_of_each_set():
    sets = two()
    ax = reliability(sets, curve="bins", n_bins=8, min_rows=1, caption=True)
    words = assert_readable(ax)
    for k, (name, a) in enumerate(sets.items()):
        curve = reliability_curve(a.predictions, n_bins=8)
        used = curve.counts > 0
        expected = np.column_stack([curve.mean_predicted, curve.observed])[used]
        np.testing.assert_array_equal(line(ax, f"_line{k}"), expected)
        rows = a.predictions
        labels = np.array(rows.classes)[rows.codes]
        ece = expected_calibration_error(
            labels, rows.probs
        )  # an independent way to the number
        assert f"{name}: ECE {ece:.2g}" in words
    assert "nothing here tests a difference" in words
    shown = [artist for artist in ax.lines if artist.get_label().startswith("_line")][
        1:
    ]
    assert len({artist.get_color() for artist in shown}) == 2
    assert len({artist.get_linestyle() for artist in shown}) == 2  # not by colour alone
    foot = ax.figure.axes[1]
    assert [part.get_label() for part in foot.patches] == ["_rows0", "_rows1"]


def test_looks_of_seven_sets_differ():
    assert len(SERIES) == len(set(SERIES)) <= min(len(DASHES), len(MARKERS))
    assert len({str(dash) for dash in DASHES}) == len(DASHES)


def test_curves_without_bins():
    sets = two()
    ax = reliability(sets, curve="smooth")
    curve = smooth_curve(sets["first"].predictions)
    part = range_of_many_rows(sets["first"].predictions, curve)
    np.testing.assert_array_equal(
        line(ax, "_line0"), np.c_[curve.predicted, curve.observed][part]
    )
    assert [part.get_label() for part in ax.collections] == ["_band0", "_band1"]
    steps = line(reliability(sets, curve="isotonic"), "_line1")
    assert (np.diff(steps, axis=0) >= 0.0).all()
    assert len(steps) == len(
        np.unique(sets["second <b>"].predictions.probs.max(axis=1))
    )
    for kind in ("bins", "smooth", "isotonic"):
        assert caption("reliability", sets, curve=kind).startswith("One ")


def test_a_comparison_is_several_sets():
    c = comparison()
    ax = reliability(c, curve="bins", min_rows=1)
    words = assert_readable(ax)
    assert words.index("uncalibrated: ECE") < words.index("temperature: ECE")
    assert len([a for a in ax.lines if a.get_label()[:5] == "_line"]) == 1 + len(
        c.judged
    )
    rows = c.recalibrated["uncalibrated"]
    curve = reliability_curve(rows)
    used = curve.counts > 0
    np.testing.assert_array_equal(line(ax, "_line0")[:, 1], curve.observed[used])


def test_how_many_sets():
    a = assessment(3)
    ax = Figure().subplots()
    assert reliability({"one": a}, ax=ax) is ax
    for n in (0, 8):
        with pytest.raises(InputError, match=f"1 to 7 assessments by name; got {n}"):
            reliability({str(k): a for k in range(n)})
    with pytest.raises(InputError, match="curve must be"):
        reliability({"a": a}, curve="loess")


def test_places_by_hand():
    # corners at (0, 0), (1, 0) and (1/2, sqrt(3)/2); the centre at their mean
    corners = triangle_coordinates(np.eye(3))
    np.testing.assert_allclose(corners, [[0, 0], [1, 0], [0.5, 0.75**0.5]])
    np.testing.assert_allclose(
        triangle_coordinates(np.full((1, 3), 1 / 3)), [corners.mean(axis=0)]
    )
    assert len(arrow_starts()) == (N_ARROW_STEPS - 1) * (N_ARROW_STEPS - 2) / 2
    np.testing.assert_allclose(arrow_starts().sum(axis=1), 1.0)
    assert arrow_starts().min() > 0.0


def arrows(ax):
    """Return where arrows start and by how much they move, in data units."""
    (found,) = (part for part in ax.collections if isinstance(part, Quiver))
    return np.array(found.XY), np.column_stack([found.U, found.V])


def test_marks_and_arrows_of_an_assessment():
    a = assessment(3)
    ax = ternary(a, caption=True)
    words = assert_readable(ax)
    assert "came true" in words
    where = triangle_coordinates(a.predictions.probs)
    for k in range(3):
        np.testing.assert_allclose(
            line(ax, f"_rows{k}"), where[a.predictions.codes == k]
        )
    start, move = arrows(ax)
    steps = N_ARROW_STEPS if len(start) > 20 else N_ARROW_STEPS_LONG
    probs = arrow_starts(steps)
    near = (
        np.hypot(
            *(
                triangle_coordinates(a.fit.recalibrate(probs))
                - triangle_coordinates(probs)
            ).T
        )
        >= 0.004
    )
    np.testing.assert_allclose(start, triangle_coordinates(probs)[near])
    np.testing.assert_allclose(
        start + move, triangle_coordinates(a.fit.recalibrate(probs))[near], atol=1e-12
    )


def test_arrows_by_hand():
    # gamma 1/2 for both: 0.8 : 0.1 : 0.1 become sqrt(8) : 1 : 1
    half = MCLLOMap(np.zeros(2), np.full(2, 0.5), CLASSES, "snow")
    start, move = arrows(ternary(half))
    k = np.flatnonzero(
        (np.abs(start - triangle_coordinates(np.array([[0.8, 0.1, 0.1]]))) < 1e-9).all(
            axis=1
        )
    )
    if not len(k):  # the coarse grid: 5/7, 1/7, 1/7 become sqrt(5) : 1 : 1
        before, after = np.array([[5, 1, 1]]) / 7, np.array([[5**0.5, 1, 1]])
        k = np.flatnonzero(
            (np.abs(start - triangle_coordinates(before)) < 1e-9).all(axis=1)
        )
    else:
        after = np.array([[8**0.5, 1, 1]])
    np.testing.assert_allclose(
        start[k] + move[k], triangle_coordinates(after / after.sum())
    )


def test_the_identity_moves_nothing():
    ax = ternary(MCLLOMap(np.zeros(2), np.ones(2), CLASSES, "snow"))
    assert not [part for part in ax.collections if isinstance(part, Quiver)]
    np.testing.assert_allclose(line(ax, "_still"), triangle_coordinates(arrow_starts()))


def test_arrows_of_a_calibrator_and_of_nothing():
    rows = predictions(3, 400, classes=CLASSES)
    a = mcllo.assess(rows, seed=0, n_resamples=19)
    labels = [CLASSES[k] for k in rows.codes]
    made = mcllo.calibrators.TemperatureScaling().fit(rows.probs, labels)
    start, move = arrows(ternary(a, recalibration=made))
    probs = arrow_starts(N_ARROW_STEPS if len(start) > 20 else N_ARROW_STEPS_LONG)
    moved = triangle_coordinates(made.predict_proba(probs)) - triangle_coordinates(
        probs
    )
    np.testing.assert_allclose(move, moved[np.hypot(*moved.T) >= 0.004], atol=1e-12)
    assert not ternary(a, arrows=False).collections
    few = ternary(a, max_points=50)
    assert sum(len(line(few, f"_rows{k}")) for k in range(3)) == 50
    assert "50 of 400 rows are shown." in assert_readable(few)


def test_only_three_classes():
    with pytest.raises(InputError, match="must have three classes; got 10"):
        ternary(assessment(10))
    other = MCLLOMap(np.zeros(2), np.ones(2), CLASSES, "snow")
    with pytest.raises(InputError, match="recalibration must have the classes"):
        ternary(assessment(3), recalibration=other)
    assert len(reliability_by_class(assessment(10))) == 10
