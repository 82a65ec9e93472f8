from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import draw
from scipy.stats import chi2, f
from toy import TOY_X, TOY_Y

from mcllo import Predictions, robust_test
from mcllo._fit.covariance import (
    group_scores,
    robust_covariance,
    sum_row_scores,
    sum_unit_scores,
    unit_scores,
    with_robust_covariance,
)
from mcllo._fit.fit import fit_predictions
from mcllo._inference.likelihood_tests import run_test
from mcllo._inference.robust import ChiSquareMixture, flip_pvalue
from mcllo._model.likelihood import identity_theta
from mcllo._utils.linalg import whitening
from mcllo.exceptions import InputError

GROUPS = np.arange(16) // 3  # 5 groups of 3 rows and one of 1
WEIGHT = np.array([1, 2, 3, 1, 1, 2, 4, 1, 2, 1, 1, 3, 1, 2, 1, 2])
THETA = np.array([0.2, -0.3, 0.8, 1.5])
BINARY_X = np.column_stack([TOY_X[:, 0], 1 - TOY_X[:, 0]])
BINARY_Y = (TOY_Y != 0).astype(int)


def robust_se(probs, y, **options):
    p = Predictions.from_arrays(probs, y, **options)
    return np.sqrt(np.diag(robust_covariance(p, fit_predictions(p))))


def dependent(rng, n_groups, size, same=False):
    """Return probs, labels, groups: one uniform decides all labels of a group (comonotone).

    Each row's label follows its probabilities; the labels of a group are as alike as they can be.
    """
    groups = np.repeat(np.arange(n_groups), size)
    probs = rng.dirichlet([1, 1, 1], n_groups if same else len(groups))
    probs = probs[groups] if same else probs
    u = rng.random(n_groups)[groups]
    return probs, (u[:, None] > np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1), groups


# --- fixed points


def test_groups_of_one_are_no_groups():
    own = {"groups": np.arange(16)}
    assert robust_se(TOY_X, TOY_Y, **own) == pytest.approx(robust_se(TOY_X, TOY_Y))
    a, b = robust_test(TOY_X, TOY_Y, seed=1), robust_test(TOY_X, TOY_Y, seed=1, **own)
    assert (a.statistic, a.pvalue) == pytest.approx((b.statistic, b.pvalue))
    assert (a.kind, b.kind, a.design_effect) == ("sandwich", "cluster", 1.0)
    assert b.design_effect == pytest.approx(1.0)


def test_robust_twice_is_robust_once():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    once = with_robust_covariance(p, fit_predictions(p))
    assert with_robust_covariance(p, once).cov_theta == pytest.approx(once.cov_theta)


# --- by hand


def test_two_groups_by_hand():
    # all rows (1/2, 1/2), so gamma is fixed at 1 and tau = log(5/3) from 5 of 8 labels.
    # H = 8 * 5/8 * 3/8 = 15/8. Groups of 4 with 4 and 1 labels 0: U = 4 - 4 * 5/8 = 3/2, and -3/2.
    # M = 2/1 * (9/4 + 9/4) = 9; variance 9 / (15/8)^2 = 64/25, standard error 8/5
    p = Predictions.from_arrays(
        [[0.5, 0.5]] * 8, [0, 0, 0, 0, 0, 1, 1, 1], groups=[0] * 4 + [1] * 4
    )
    fit = with_robust_covariance(p, fit_predictions(p))
    assert fit.se_tau == pytest.approx([8 / 5])
    assert np.isnan(fit.se_gamma).all()
    # at the identity U = (2, -1), H = 2: S = 1/2, V = 5, lambda = 5/2; S / lambda = 1/5
    test = robust_test(p, method="f")
    assert (test.statistic, test.df) == (pytest.approx(1 / 5), 1)
    assert test.pvalue == pytest.approx(f.sf(1 / 5, 1, 1))  # above chi-square's .48
    # scores by rows: 5 of +1/2, 3 of -1/2: 8/7 * (2 - 1/8) = 15/7; by groups 2 * (5 - 1/2) = 9
    assert test.design_effect == pytest.approx(9 / (15 / 7))


# --- independent implementation


def plain_sandwich(probs, y, groups, theta, penalty=0.0):
    """The sandwich in loops; the Hessian from central differences of the score."""
    score = np.zeros(len(theta))
    by_group = {}
    for u, g in zip(loop_scores(probs, y, theta), groups, strict=True):
        by_group[g] = by_group.get(g, 0.0) + u
        score += u
    bread = np.empty((len(theta), len(theta)))
    for j, step in enumerate(1e-6 * np.eye(len(theta))):
        up, down = (loop_scores(probs, y, theta + s).sum(axis=0) for s in (step, -step))
        bread[j] = (down - up) / 2e-6
    bread += penalty * np.eye(len(theta))
    n = len(by_group)
    meat = (
        sum(np.outer(u - score / n, u - score / n) for u in by_group.values())
        * n
        / (n - 1)
    )
    return np.linalg.inv(bread) @ meat @ np.linalg.inv(bread)


def test_plain_loops_give_the_same_covariance():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    for penalty in (0.0, 2.0):
        fit = fit_predictions(p, penalty=penalty)
        expected = plain_sandwich(TOY_X, TOY_Y, GROUPS, fit.theta, penalty)
        assert robust_covariance(p, fit) == pytest.approx(expected, rel=1e-6), penalty


def test_plain_algebra_gives_the_same_test():
    test = robust_test(TOY_X, TOY_Y, groups=GROUPS, method="f")
    theta0 = np.array([0.0, 0.0, 1.0, 1.0])
    rows = loop_scores(TOY_X, TOY_Y, theta0)
    by_group = np.array([rows[g == GROUPS].sum(axis=0) for g in range(6)])
    p = Predictions.from_arrays(TOY_X, TOY_Y)
    h = fit_predictions(p).null_terms.hessian
    u, m = by_group.sum(axis=0), np.linalg.solve(h, by_group.T @ by_group)
    score, total = u @ np.linalg.solve(h, u), np.trace(m)
    assert score == pytest.approx(0.9895584940)  # methods.md 0.4: the score statistic
    nu = total**2 / np.trace(m @ m)
    assert test.statistic == pytest.approx(4 * score / total)
    assert test.pvalue == pytest.approx(
        max(f.sf(score / total, nu, 5 * nu), chi2.sf(score, 4))
    )


# --- reference values


def test_toy_sandwich_of_the_specification():
    # methods.md 0.4: sandwich SE without the small-sample factor, here 16 / 15
    expected = [0.77226102, 0.90163308, 0.34561587, 0.59413475]
    assert robust_se(TOY_X, TOY_Y) * np.sqrt(15 / 16) == pytest.approx(
        expected, abs=1e-7
    )


# statsmodels 0.15.0, y = 1 for class 0, X = [1, log odds], without its own small-sample factors:
# Logit(...).fit(cov_type="HC0"); cov_type="cluster", cov_kwds={"groups": GROUPS,
# "use_correction": False}; the same of the rows written out WEIGHT times; and survey weights as
# GLM(..., Binomial(), var_weights=WEIGHT).fit(cov_type="HC0").
STATSMODELS = [
    ({}, 16, [0.7040304014, 0.4437975117]),
    ({"groups": GROUPS}, 6, [0.4420788235, 0.2495177461]),
    ({"sample_weight": WEIGHT}, 28, [0.4551053850, 0.3911408869]),
    ({"sample_weight": WEIGHT, "groups": GROUPS}, 6, [0.4117813595, 0.3508728017]),
    (
        {"sample_weight": WEIGHT, "weight_kind": "survey"},
        16,
        [0.6739027757, 0.5407065687],
    ),
]


def test_two_classes_agree_with_statsmodels():
    for options, n_units, expected in STATSMODELS:
        factor = n_units / (n_units - 1)
        found = robust_se(BINARY_X, BINARY_Y, **options)
        assert found == pytest.approx(np.sqrt(factor) * np.array(expected), abs=1e-8), (
            options
        )


def test_three_classes_agree_with_statsmodels():
    # statsmodels 0.15.0, GenericLikelihoodModel of Eq. (5) with its numerical scores, fitted with
    # cov_type="cluster", use_correction=False; 6 groups
    expected = np.array([0.5887033518, 0.7978694788, 0.2010389314, 0.5325835747])
    found = robust_se(TOY_X, TOY_Y, groups=GROUPS)
    assert found == pytest.approx(np.sqrt(6 / 5) * expected, abs=1e-6)


# --- properties


def test_frequencies_are_repeated_rows():
    again = np.repeat(np.arange(16), WEIGHT)
    longer = {"groups": GROUPS[again]}
    a = robust_test(TOY_X, TOY_Y, sample_weight=WEIGHT, seed=1, groups=GROUPS)
    b = robust_test(TOY_X[again], TOY_Y[again], seed=1, **longer)
    assert a.to_dict() == pytest.approx(b.to_dict())
    for options, own in (({}, {}), ({"groups": GROUPS}, longer)):
        se = robust_se(TOY_X, TOY_Y, sample_weight=WEIGHT, **options)
        assert se == pytest.approx(robust_se(TOY_X[again], TOY_Y[again], **own))


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 10_000), kind=st.sampled_from(["frequency", "survey"]))
def test_order_of_rows_and_names_of_groups_change_nothing(seed, kind):
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(16), rng.permutation(6)
    options = {"weight_kind": kind, "seed": 1}
    a = robust_test(TOY_X, TOY_Y, groups=GROUPS, sample_weight=WEIGHT, **options)
    renamed = [f"animal {names[g]}" for g in GROUPS[order]]
    options |= {"groups": renamed, "sample_weight": WEIGHT[order]}
    b = robust_test(TOY_X[order], TOY_Y[order], **options)
    assert a.to_dict() == pytest.approx(b.to_dict())
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    q = Predictions.from_arrays(TOY_X[order], TOY_Y[order], groups=renamed)
    assert sum_unit_scores(q, THETA).gram == pytest.approx(
        sum_unit_scores(p, THETA).gram
    )


@pytest.mark.parametrize(("method", "groups"), [("flip", None), ("f", GROUPS)])
def test_the_scale_of_survey_weights_does_not_matter(method, groups):
    options = {"groups": groups, "weight_kind": "survey"}
    tests = [
        robust_test(
            TOY_X, TOY_Y, sample_weight=s * WEIGHT, method=method, seed=1, **options
        )
        for s in (1.0, 10.0)
    ]
    assert tests[0].to_dict() == pytest.approx(tests[1].to_dict())
    se = [
        robust_se(TOY_X, TOY_Y, sample_weight=s * WEIGHT, **options)
        for s in (1.0, 10.0)
    ]
    assert se[0] == pytest.approx(se[1])


def test_the_baseline_of_the_fit_counts():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    moved = p.with_baseline(0)
    fit = fit_predictions(moved)
    assert robust_covariance(p, fit) == pytest.approx(robust_covariance(moved, fit))


def test_where_no_estimate_exists_there_is_no_robust_one():
    p = Predictions.from_arrays(TOY_X, TOY_X.argmax(axis=1))
    with pytest.warns(UserWarning, match="does not exist"):
        fit = fit_predictions(p)
    assert np.isnan(robust_covariance(p, fit)).all()
    assert 0 < robust_test(p, seed=1).pvalue <= 1


def test_it_sees_wrong_predictions():
    rng = np.random.default_rng(0)
    probs, _, groups = dependent(rng, 100, 5)
    y = np.array([rng.choice(3, p=row) for row in probs])
    wrong = probs**3 / (probs**3).sum(axis=1, keepdims=True)
    test = robust_test(wrong, y, groups=groups, seed=1)
    assert test.pvalue == 1 / 2000
    assert robust_test(wrong, y, groups=groups, method="f").pvalue < 1e-8


# --- simulations


@pytest.mark.slow
@pytest.mark.parametrize("same", [False, True], ids=["rows differ", "row repeated"])
def test_size_and_coverage_with_repeated_measurements(same):
    rng, n = np.random.default_rng(2026), 400
    robust, plain = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    covered = np.zeros((n, 2), dtype=bool)
    for i in range(n):
        probs, y, groups = dependent(rng, 60, 5, same)
        p = Predictions.from_arrays(probs, y, groups=groups)
        fit = fit_predictions(p)
        robust[i] = robust_test(p, n_resamples=499, seed=i).rejects(0.05)
        plain[i] = run_test(p, fit, method="chi2").rejects(0.05)
        low, high = with_robust_covariance(p, fit).confidence_interval().gamma.T
        covered[i] = (low <= 1) & (high >= 1)
    # standard error of a rate of .05 in 400 data sets: .011; three of them
    assert robust.mean() == pytest.approx(0.05, abs=0.033)
    assert plain.mean() > 0.15
    assert covered.mean(axis=0) == pytest.approx(0.95, abs=0.033)


@pytest.mark.slow
def test_size_under_a_sampling_that_depends_on_the_label():
    rng, n = np.random.default_rng(2027), 400
    robust = np.zeros(n, dtype=bool)
    for i in range(n):
        probs = rng.dirichlet([3, 0.5, 1], 1500)
        y = draw(probs, rng)
        chance = np.array([0.1, 1.0, 0.3])[y]
        kept = rng.random(1500) < chance
        weights = {"sample_weight": 1 / chance[kept], "weight_kind": "survey"}
        test = robust_test(probs[kept], y[kept], **weights, n_resamples=499, seed=i)
        robust[i] = test.rejects(0.05)
    assert robust.mean() == pytest.approx(0.05, abs=0.033)  # standard error .011
    # without weights the last of these samples is far from its probabilities
    p = Predictions.from_arrays(probs[kept], y[kept])
    assert run_test(p, fit_predictions(p), method="chi2").pvalue < 1e-6


def test_no_score_gives_p_1():
    null = ChiSquareMixture(np.eye(2), np.zeros(2), np.eye(2), 10)
    assert (null.statistic, null.f_pvalues()[0]) == (0.0, 1.0)
    scores = np.array([[1.0], [-1.0]])
    assert flip_pvalue(scores, np.eye(1), n_resamples=99, seed=0).pvalue == 1.0


def test_two_directions_by_hand():
    # H = I, U = (3, 1), V = diag(4, 1): S = 10, sum of lambda 5, nu = 25 / 17
    null = ChiSquareMixture(np.eye(2), np.array([3.0, 1.0]), np.diag([4.0, 1.0]), 11)
    assert null.score == pytest.approx(10)
    assert null.statistic == pytest.approx(10 / 2.5)
    assert null.f_pvalues()[0] == pytest.approx(f.sf(10 / 5, 25 / 17, 10 * 25 / 17))


def test_independent_rows_give_chi_square():
    # V = H: all eigenvalues 1, and with many units F is chi-square over its degrees of freedom
    h = np.array([[3.0, 1.0], [1.0, 2.0]])
    u = np.array([2.0, -1.0])
    null = ChiSquareMixture(whitening(h), u, h, 1e9)
    assert null.eigenvalues == pytest.approx([1, 1])
    assert null.statistic == pytest.approx(u @ np.linalg.solve(h, u))
    assert null.f_pvalues()[0] == pytest.approx(chi2.sf(null.statistic, 2))


def test_five_units_against_every_sign():
    scores = np.array([[1.0, 0.5], [2.0, -0.3], [0.7, 0.9], [-0.4, 0.2], [1.5, 1.1]])
    root = whitening(np.array([[2.0, 0.4], [0.4, 1.0]]))
    white = scores @ root
    drawn = [((np.array(s) @ white) ** 2).sum() for s in product([-1, 1], repeat=5)]
    exact = np.mean(np.array(drawn) >= drawn[-1] * (1 - 1e-9))
    found = flip_pvalue(scores, root, n_resamples=20_000, seed=0)
    # 5 standard errors of 20,000 draws; all signs equal, or one opposite, is the least
    assert found.pvalue == pytest.approx(
        exact, abs=5 * np.sqrt(exact * (1 - exact) / 20_000)
    )
    assert exact >= 2 / 32


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), factor=st.floats(1e-3, 1e3))
def test_order_and_units_of_measurement_change_nothing(seed, factor):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(12, 3))
    a = flip_pvalue(scores, np.eye(3), n_resamples=200, seed=1)
    b = flip_pvalue(
        factor * scores[rng.permutation(12)], np.eye(3), n_resamples=200, seed=1
    )
    assert a.pvalue == b.pvalue


@pytest.mark.slow
def test_flips_are_exact_for_symmetric_scores_however_unequal():
    rng = np.random.default_rng(0)
    sizes = 2.0 ** np.arange(8)[:, None]  # the last group outweighs all others together
    pvalues = [
        flip_pvalue(
            sizes * rng.normal(size=(8, 2)), np.eye(2), n_resamples=99, seed=s
        ).pvalue
        for s in range(2000)
    ]
    # exact: P(p <= .2) <= .2; standard error .009
    assert np.mean(np.array(pvalues) <= 0.2) == pytest.approx(0.2, abs=0.03)


def loop_scores(probs, y, theta):
    """Scores row by row, the baseline last, in plain Python loops."""
    scores = []
    for row, label in zip(probs, y, strict=True):
        k = len(row) - 1
        odds = [np.log(row[j] / row[k]) for j in range(k)]
        eta = [theta[j] + theta[k + j] * odds[j] for j in range(k)]
        total = 1.0 + sum(np.exp(e) for e in eta)
        residual = [(label == j) - np.exp(eta[j]) / total for j in range(k)]
        scores.append(residual + [r * o for r, o in zip(residual, odds, strict=True)])
    return np.array(scores)


def test_scores_sum_to_the_score_of_the_specification():
    # methods.md 0.4: minus the gradient at theta0, TOY
    total = sum_unit_scores(
        Predictions.from_arrays(TOY_X, TOY_Y), identity_theta(2)
    ).total
    assert total == pytest.approx([0.8, -0.8, 0.77466884, 0.89888965], abs=1e-8)


def test_two_rows_by_hand():
    # (.5, .5) with label 0: residual .5, log odds 0; (.8, .2) with label 1: -.8, log 4
    p = Predictions.from_arrays([[0.5, 0.5], [0.8, 0.2]], [0, 1])
    sums = sum_unit_scores(p, identity_theta(1))
    odds = np.log(4)
    assert sums.gram == pytest.approx(
        np.array([[0.25 + 0.64, 0.64 * odds], [0.64 * odds, 0.64 * odds**2]])
    )
    assert sums.n_units == 2
    # two units: the centred covariance is (a - b)(a - b)' with factor 2 / 1 * 1 / 2
    away = np.array([0.5 + 0.8, 0.8 * odds])
    assert sums.covariance == pytest.approx(np.outer(away, away))


def test_plain_loops_agree_for_any_baseline():
    for baseline in range(3):
        p = Predictions.from_arrays(TOY_X, TOY_Y, baseline=baseline, groups=GROUPS)
        order = [j for j in range(3) if j != baseline] + [baseline]
        rows = loop_scores(
            TOY_X[:, order], [order.index(label) for label in TOY_Y], THETA
        )
        by_group = np.array([rows[g == GROUPS].sum(axis=0) for g in range(6)])
        assert group_scores(p, THETA) == pytest.approx(by_group), baseline
        assert sum_unit_scores(p, THETA).gram == pytest.approx(by_group.T @ by_group), (
            baseline
        )
        assert sum_row_scores(p, THETA).gram == pytest.approx(rows.T @ rows), baseline
        assert unit_scores(p, THETA) == pytest.approx(by_group), baseline


@pytest.mark.parametrize(("kind", "power"), [("frequency", 1), ("survey", 2)])
def test_what_weights_mean_for_the_gram_matrix(kind, power):
    rows = loop_scores(TOY_X, TOY_Y, THETA)
    p = Predictions.from_arrays(TOY_X, TOY_Y, sample_weight=WEIGHT, weight_kind=kind)
    sums = sum_unit_scores(p, THETA)
    assert sums.total == pytest.approx(WEIGHT @ rows)
    assert sums.gram == pytest.approx((rows.T * WEIGHT**power) @ rows)
    assert sums.n_units == (28 if kind == "frequency" else 16)
    units = unit_scores(p, THETA)
    assert units.T @ units == pytest.approx(sums.gram)
    assert len(units) == sums.n_units


def test_in_groups_both_kinds_of_weight_give_the_same_sums():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS, sample_weight=WEIGHT)
    survey = replace(p, weight_kind="survey")
    assert sum_unit_scores(p, THETA).gram == pytest.approx(
        sum_unit_scores(survey, THETA).gram
    )


def test_rows_of_weight_0_are_no_rows_and_their_groups_no_groups():
    weight = np.where(GROUPS == 5, 0.0, WEIGHT)
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS, sample_weight=weight)
    assert sum_unit_scores(p, THETA).n_units == 5
    survey = Predictions.from_arrays(
        TOY_X, TOY_Y, sample_weight=weight, weight_kind="survey"
    )
    assert (
        sum_unit_scores(survey, THETA).n_units == len(unit_scores(survey, THETA)) == 15
    )


def test_chunks_change_nothing():
    rng, n = np.random.default_rng(0), 40_000  # more than one chunk
    x, y, groups = (
        rng.dirichlet([1, 1, 1], n),
        rng.integers(0, 3, n),
        rng.integers(0, 7, n),
    )
    p = Predictions.from_arrays(x, y, classes=range(3), groups=groups)
    first, rest = p.take(np.arange(10_000)), p.take(np.arange(10_000, n))
    whole = group_scores(p, THETA)
    assert group_scores(first, THETA) + group_scores(rest, THETA) == pytest.approx(
        whole
    )
    gram = sum_row_scores(first, THETA).gram + sum_row_scores(rest, THETA).gram
    assert sum_row_scores(p, THETA).gram == pytest.approx(gram)


def test_groups_left_over_by_take_may_have_gaps():
    p = Predictions.from_arrays(TOY_X, TOY_Y, groups=GROUPS)
    part = p.take(np.flatnonzero((GROUPS == 1) | (GROUPS == 4)))
    assert group_scores(part, THETA) == pytest.approx(group_scores(p, THETA)[[1, 4]])


def test_one_unit_is_refused():
    for options, message in [
        ({"groups": np.zeros(16)}, "at least two groups"),
        ({"sample_weight": np.eye(16)[3]}, "at least two rows; got 1"),
        (
            {"sample_weight": np.eye(16)[3] / 2, "weight_kind": "survey"},
            "at least two rows",
        ),
        (
            {"groups": GROUPS, "sample_weight": GROUPS == 1},
            "at least two groups among the rows",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            robust_test(TOY_X, TOY_Y, **options)
