import numpy as np
import pytest
from independent import draw, power_formula, simplex
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._batch import BatchedRatio
from mcllo._full_map import FullDraws, mcllo_places
from mcllo._ladder_models import mcllo_bases
from mcllo._model import recalibrate
from mcllo._monte_carlo import StatisticDraws
from mcllo._projected_score import ProjectedScore
from mcllo._restriction import Family, restricted_fit

TOY = Predictions.from_arrays(TOY_X, TOY_Y)
BASES = mcllo_bases(2)


def test_the_expected_statistic_has_score_zero():
    family = Family(TOY)
    score = ProjectedScore(family, family.identity, BASES["shift"], BASES["mcllo"])
    assert score(score.mean[None])[0] == pytest.approx(0.0, abs=1e-12)


def test_two_rows_by_hand():
    # x = (.8, .2) and (.2, .8), both labelled 0: u = (1, log 4 (.2 - .8)) and
    # H = diag(.32, .32 log(4)^2). All: 1 / .32 + .36 / .32 = 4.25; tau's part is 1 / .32 = 3.125
    p = Predictions.from_arrays([[0.8, 0.2], [0.2, 0.8]], [0, 0], classes=[0, 1])
    family, bases = Family(p), mcllo_bases(1)
    whole = ProjectedScore(family, family.identity, bases["identity"], bases["mcllo"])
    slope = ProjectedScore(family, family.identity, bases["shift"], bases["mcllo"])
    assert whole(family.statistic[None])[0] == pytest.approx(4.25)
    assert slope(family.statistic[None])[0] == pytest.approx(1.125)


def test_against_the_identity_it_is_the_score_of_the_calibration_test():
    family, drawn = Family(TOY), StatisticDraws(TOY, 0)(0, 50)
    score = ProjectedScore(family, family.identity, BASES["identity"], BASES["mcllo"])
    np.testing.assert_allclose(score(drawn), BatchedRatio(TOY.log_odds).scores(drawn), rtol=1e-9)
    # methods specification 0.4, TOY, baseline 2
    assert score(family.statistic[None])[0] == pytest.approx(0.9895584940, abs=1e-9)


def test_at_the_estimate_it_is_the_textbook_score_test():
    # efficient score: u_j - H_jS H_SS^-1 u_S, whose information is H_jj - H_jS H_SS^-1 H_Sj
    family = Family(TOY)
    fit = restricted_fit(family, BASES["shift"])
    terms = family.partition()(fit.theta)
    drawn = StatisticDraws(TOY, 1)(0, 20)
    u, h = drawn - terms.gradient, terms.hessian
    project = np.linalg.solve(h[:2, :2], h[:2, 2:])
    left = u[:, 2:] - u[:, :2] @ project
    spread = h[2:, 2:] - h[2:, :2] @ project
    expected = np.einsum("bi,ij,bj->b", left, np.linalg.inv(spread), left)
    score = ProjectedScore(family, fit.theta, BASES["shift"], BASES["mcllo"])
    np.testing.assert_allclose(score(drawn), expected, rtol=1e-8)
    assert np.abs((family.statistic - terms.gradient)[:2]).max() < 1e-6


def test_the_mean_is_the_difference_of_parameters():
    # labels drawn at theta: E[S_large - S_small] = df exactly; 1 and 3 here, of 4000 draws
    family = Family(TOY)
    for small, df in (("common_slope", 1), ("temperature", 3)):
        fit = restricted_fit(family, BASES[small])
        draws = StatisticDraws(TOY, 2)
        draws.probs = recalibrate(fit.theta, TOY.log_odds, 2)
        scores = ProjectedScore(family, fit.theta, BASES[small], BASES["mcllo"])(draws(0, 4000))
        assert scores.mean() == pytest.approx(df, abs=4.0 * scores.std() / np.sqrt(4000))
        assert scores.min() > -1e-9


def test_the_full_map():
    full, places = Family(TOY, full=True), mcllo_places(2)
    inside = np.zeros((6, 4))
    inside[places] = np.eye(4)
    score = ProjectedScore(full, full.identity, inside, np.eye(6))
    scores = score(FullDraws(TOY, 3)(0, 4000))
    assert scores.mean() == pytest.approx(2.0, abs=4.0 * scores.std() / np.sqrt(4000))


def test_ties_count_as_reached():
    family = Family(TOY)
    score = ProjectedScore(family, family.identity, BASES["identity"], BASES["mcllo"])
    above = score.mean + 1.001 * (family.statistic - score.mean)
    below = score.mean + 0.999 * (family.statistic - score.mean)
    rows = np.array([family.statistic, above, below])
    assert score.reaches(rows, family.statistic).tolist() == [True, True, False]


def test_directions_without_information_are_left_out():
    # class 0 has the baseline's probability in every row: its log odds are 0, its slope is unseen
    middle = np.linspace(0.1, 0.5, 12)
    probs = np.column_stack([np.full(12, 0.2), middle, 0.6 - middle, np.full(12, 0.2)])
    p = Predictions.from_arrays(probs, np.resize([0, 1, 2, 3], 12))
    family, bases = Family(p), mcllo_bases(3)
    score = ProjectedScore(family, family.identity, bases["identity"], bases["mcllo"])
    scores = score(StatisticDraws(p, 0)(0, 4000))
    assert scores.mean() == pytest.approx(5.0, abs=4.0 * scores.std() / np.sqrt(4000))


def sizes(predictions, basis, truth, n_samples, seed, n_draws=99):
    """Return p-values of a true smaller model, by scores and 99 draws each."""
    rng = np.random.default_rng(seed)
    k, b = predictions.n_classes - 1, predictions.baseline_index
    everything, found = np.eye(2 * k), []
    for sample in range(n_samples):
        codes = draw(truth, rng)
        p = Predictions.from_arrays(predictions.probs, codes, classes=range(k + 1))
        family = Family(p)
        fit = restricted_fit(family, basis)
        score = ProjectedScore(family, fit.theta, basis, everything)
        draws = StatisticDraws(p, 10_000 + sample)
        draws.probs = recalibrate(fit.theta, p.log_odds, b)
        reached = score.reaches(draws(0, n_draws), family.statistic)
        found.append((1 + reached.sum()) / (n_draws + 1))
    return np.array(found)


@pytest.mark.slow
def test_size_with_few_rows():
    # class 0 at the identity, class 1 far from it, 60 rows; 300 samples, sd of a rate of .1: .017
    rng = np.random.default_rng(21)
    probs = simplex(rng, 60, 3, 1.5)
    truth = power_formula(probs, np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    p = Predictions.from_arrays(probs, np.resize([0, 1, 2], 60))
    found = sizes(p, np.eye(4)[:, [1, 3]], truth, 300, 5)
    assert abs(np.mean(found <= 0.1) - 0.1) < 3.5 * 0.017
    assert np.mean(found <= 0.05) < 0.05 + 3.5 * 0.0126


@pytest.mark.slow
def test_size_on_a_sharp_network():
    # 500 rows of a network, few expected errors for 18 parameters: chi-square rejects a true
    # temperature in about 11 % at 5 %; scores must not exceed 5 % (200 samples, sd .0154)
    p = load_cifar10_vgg16_keras().take(np.arange(500))
    basis = mcllo_bases(9)["temperature"]
    fit = restricted_fit(Family(p), basis)
    truth = recalibrate(fit.theta, p.log_odds, p.baseline_index)
    found = sizes(p, basis, truth, 200, 6)
    assert np.mean(found <= 0.05) < 0.05 + 3.0 * 0.0154
    assert np.mean(found <= 0.5) > 0.3  # and not because nothing is ever rejected
