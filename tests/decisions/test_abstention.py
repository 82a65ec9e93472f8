"""Answer where it is safe: the curve by hand, and a threshold that keeps its promise."""

import numpy as np
import pytest
from inputs import refusal
from scipy import stats

import mcllo
from mcllo import abstention_curve, abstention_threshold, simulate
from mcllo._decisions.abstention import (
    binomial_tail,
    binomial_upper_bound,
    threshold_grid,
)

CLASSES = [0, 1, 2]


def overconfident(n=2000, seed=1, gamma=0.5):
    return simulate.draw(
        n, n_classes=3, gamma=gamma, distribution="dirichlet", seed=seed
    )


def test_curve_by_hand():
    # scores .1 .2 .3 .4; right, right, wrong, right: shares .25 .5 .75 1, errors 0 0 1/3 1/4
    probs = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    curve = abstention_curve(probs, [0, 1, 1, 1], calibrator=None)
    by_share = {row["answered"]: row for row in curve.table}
    assert list(by_share) == [0.25, 0.5, 0.75, 1.0]
    errors = [row["error"] for row in by_share.values()]
    assert errors == pytest.approx([0, 0, 1 / 3, 1 / 4])
    thresholds = [row["threshold"] for row in by_share.values()]
    assert thresholds == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert [row["cost"] for row in by_share.values()] == pytest.approx(errors)


def test_costs_and_abstaining():
    # saying 1 where 0 is true costs 4: e = (.1, 3.6), (.8, .8), (.3, 2.8), (.6, 1.6); answers
    # 0, 0, 0, 0 with scores .1 .8 .3 .6, of which the rows of label 1 cost 1
    probs = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    costs = {"false_alarm": {1: 4}, "default": 1}
    curve = abstention_curve(
        probs, [0, 1, 1, 1], costs=costs, abstain=0.5, calibrator=None
    )
    rows = [
        row for row in curve.table if row["answered"] == pytest.approx(0.5)
    ]  # scores .1 and .3
    assert rows[0]["cost"] == pytest.approx(0.5)
    assert rows[0]["total_cost"] == pytest.approx(0.5 * 0.5 + 0.5 * 0.5)
    last = curve.table.rows()[-1]
    assert last["total_cost"] == last["cost"] == pytest.approx(0.75)


def test_curve_after_recalibration_and_with_ties():
    curve = abstention_curve(overconfident(), calibrator="temperature", seed=2)
    table = curve.table
    assert table["recalibrated"] == [False] * 20 + [True] * 20
    assert table["answered"][:20] == pytest.approx(np.arange(1, 21) / 20)
    # a sharper threshold for the same share: overconfident scores are too low
    assert table["threshold"][9] < table["threshold"][29]
    tied = abstention_curve([[0.7, 0.3]] * 30, [0] * 20 + [1] * 10, calibrator=None)
    assert set(tied.table["answered"]) == {1.0}
    assert set(tied.table["error"]) == {1 / 3}
    assert "point by point" in str(curve)


def test_binomial_bounds_are_scipys():
    for n_wrong, n in [(0, 59), (3, 200), (17, 400), (400, 400)]:
        expected = stats.binom.cdf(n_wrong, n, 0.05)
        assert binomial_tail(n_wrong, n, 0.05) == pytest.approx(expected)
        bound = stats.binomtest(n_wrong, n).proportion_ci(0.9).high  # one-sided .95
        assert binomial_upper_bound(n_wrong, n, 0.95) == pytest.approx(bound)


def test_threshold_by_hand():
    _, rows = draw_sharp(3000, 1.0, np.random.default_rng(1))
    found = abstention_threshold(rows, max_error=0.2)
    top = rows.probs.max(axis=1)
    wrong = rows.probs.argmax(axis=1) != rows.codes
    last = None
    for threshold in threshold_grid():
        chosen = 1.0 - top <= threshold
        if chosen.sum() < 37:  # P(Binomial(37, .2) <= 3) = .04499, the first below .05
            continue
        if stats.binom.cdf(wrong[chosen].sum(), chosen.sum(), 0.2) > 0.05:
            break
        last = (threshold, chosen.sum(), wrong[chosen].sum())
    assert (found.threshold, found.n_answered, found.n_wrong) == last
    assert found.error_high <= 0.2
    assert (found.answers(rows.probs) == (1.0 - top <= found.threshold)).all()
    assert found.answered == found.n_answered / 3000
    assert found.is_found
    assert found.to_dict()["n_wrong"] == found.n_wrong


def test_testing_ends_with_the_first_threshold_that_fails():
    # the 100 surest rows have 20 errors, 1,000 others none: 20 of 1,100 would pass at 10 %
    probs = [[0.95, 0.05]] * 100 + [[0.7, 0.3]] * 1000
    labels = [1] * 20 + [0] * 1080
    assert binomial_tail(20, 1100, 0.1) < 1e-20
    assert not abstention_threshold(probs, labels, max_error=0.1).is_found


def test_no_threshold_is_said():
    few = abstention_threshold([[0.9, 0.1]] * 50, [0] * 50)
    assert not few.is_found
    assert "it takes 59 without any error" in str(few)
    assert not few.answers([[0.99, 0.01]]).any()
    assert few.to_dict()["threshold"] is None


def test_recalibration_has_rows_of_its_own():
    rows = overconfident(4000)
    found = abstention_threshold(rows, max_error=0.2, calibrator="temperature", seed=4)
    assert found.n_samples == 2000
    assert found.calibrator.temperature_ > 1.5
    recalibrated = found.calibrator.predict_proba(rows.probs)
    kept = recalibrated.max(axis=1) >= 1.0 - found.threshold
    assert (found.answers(rows.probs) == kept).all()


def test_weights_count_rows():
    rows = overconfident(500, gamma=1.0)
    doubled = abstention_threshold(
        rows.probs, rows.codes, max_error=0.2, sample_weight=np.full(500, 3)
    )
    written = abstention_threshold(
        np.repeat(rows.probs, 3, axis=0), np.repeat(rows.codes, 3), max_error=0.2
    )
    assert doubled.to_dict() == written.to_dict()


def test_what_the_bounds_do_not_allow_is_refused():
    rows = mcllo.Predictions.from_arrays(
        [[0.9, 0.1]] * 4, [0, 0, 1, 1], groups=[0, 0, 1, 1]
    )
    assert "independent" in str(refusal(abstention_threshold, rows))
    said = refusal(abstention_threshold, rows.probs, rows.codes, max_error=0.0)
    assert "max_error must lie between 0 and 1" in str(said)
    said = refusal(abstention_curve, rows.probs, rows.codes)
    assert "4 rows are too few" in str(said)
    assert "calibrator=None" in str(said)


def draw_sharp(n, power, rng):
    """Return the truth of sharp rows, predictions that are a power of it, and labels."""
    truth = np.clip(rng.dirichlet([0.25] * 4, size=n), 1e-9, None)
    truth /= truth.sum(axis=1, keepdims=True)
    probs = np.clip(truth**power, 1e-6, None)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return truth, mcllo.Predictions.from_arrays(probs, labels, classes=range(4))


@pytest.mark.slow
@pytest.mark.parametrize("calibrator", [None, "temperature"])
@pytest.mark.parametrize(("power", "max_error"), [(2.5, 0.1), (1.0, 0.1), (0.6, 0.1)])
def test_the_promise_is_kept(power, max_error, calibrator):
    """In 95 % of 500 data sets no more than `max_error` of new answers are wrong."""
    rng = np.random.default_rng(0)
    truth, fresh = draw_sharp(50_000, power, rng)
    right = truth[np.arange(len(truth)), truth.argmax(axis=1)]
    kept = found_any = 0
    for seed in range(500):
        _, drawn = draw_sharp(1500, power, rng)
        found = abstention_threshold(
            drawn, max_error=max_error, calibrator=calibrator, seed=seed
        )
        found_any += found.is_found
        chosen = found.answers(fresh.probs)
        error = 1.0 - right[chosen].mean() if found.is_found else 0.0
        kept += error <= max_error
    assert found_any >= 400
    assert kept / 500 >= 0.95
