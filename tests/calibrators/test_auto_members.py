import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, softmax

from mcllo import Predictions
from mcllo._fit.fit import fit_mean_over_baselines
from mcllo._model import compiled
from mcllo.calibrators._auto.members import (
    DIAGONAL_RIDGE,
    LEFT_OUT_TRACE_TOL,
    Members,
    MembersFit,
    label_log_likelihoods,
    member_names,
)
from mcllo.calibrators._auto.temperature_with_lapse import (
    ScoredRows,
    SoftLoss,
    SoftTemperature,
    decrement_to_forget_start,
    fit_soft_temperature,
)


def sample(n=200, c=3, seed=0):
    """Scores whose labels leak from each class to the next."""
    rng = np.random.default_rng(seed)
    scores = 2.0 * rng.normal(size=(c, n))
    eta = 0.7 * scores + 0.3 * np.roll(scores, 1, axis=0)
    return scores, (eta + rng.gumbel(size=(c, n))).argmax(axis=0)


def test_identity_theta_is_the_temperature():
    scores = sample()[0]
    members = Members(SoftTemperature(0.5, 0.1), {"full_tight": np.eye(3, 4)})
    answers = members.probabilities(scores)
    expected = 0.9 * softmax(0.5 * scores, axis=0) + 0.1 / 3.0
    np.testing.assert_allclose(answers["temperature"], expected, atol=1e-14)
    np.testing.assert_allclose(answers["full_tight"], expected, atol=1e-14)


def test_hand_sized_example():
    # Slip 0, u = 1, p = (0.8, 0.2). Vector map with weights 2: 0.64 : 0.04 = 16/17, 1/17.
    theta = np.array([[2.0, 0.0], [2.0, 0.0]])
    members = Members(SoftTemperature(1.0, 0.0), {"vector": theta})
    logs = label_log_likelihoods(members.answers(np.log([[0.8], [0.2]])), np.array([1]))
    np.testing.assert_allclose(np.exp(logs), [[0.2, 0.2, 1.0 / 17.0]], atol=1e-15)
    assert members.names == ("identity", "temperature", "vector")


def test_mcllo_against_the_fits_of_single_baselines():
    scores, codes = sample()
    fit = MembersFit(scores, codes, tol=1e-12)
    logs = fit.whole.soft.both(scores)[1]
    soft = Predictions.from_arrays(np.exp(logs).T, codes, classes=range(3))
    expected = fit_mean_over_baselines(soft, penalty=DIAGONAL_RIDGE * 3).recalibrate(
        np.exp(logs).T
    )
    answer = fit.whole.probabilities(scores)["mcllo"].T
    np.testing.assert_allclose(answer, expected, atol=1e-6)


BY_CLASSES = {
    2: ("identity", "temperature", "spline", "venn_abers"),
    12: ("identity", "temperature", "mcllo", "similar", "full_tight", "full_loose"),
    20: ("identity", "temperature", "similar", "full_tight", "full_loose"),
    100: ("identity", "temperature", "similar", "full"),
    101: ("identity", "temperature", "vector"),
}


def test_members_by_number_of_classes():
    for c, expected in BY_CLASSES.items():
        assert member_names(c) == expected, c
        if c < 100:
            assert (
                MembersFit(*sample(200 if c == 2 else 30, c)).whole.names == expected
            ), c


@pytest.mark.parametrize("c", [4, 21, 101], ids=["mcllo", "full", "vector"])
def test_a_part_is_a_fit_of_its_own(c):
    scores, codes = sample(300, c)
    weight = np.random.default_rng(1).integers(0, 3, size=300).astype(float)
    part = MembersFit(scores, codes, tol=1e-13).parts(
        [np.ones(300), weight], tol=1e-13
    )[1]
    kept = weight > 0.0
    alone = MembersFit(scores[:, kept], codes[kept], weight[kept], tol=1e-13).whole
    expected = alone.probabilities(scores)
    for name, answer in part.probabilities(scores).items():
        np.testing.assert_allclose(answer, expected[name], atol=2e-5, err_msg=name)
    np.testing.assert_allclose(part.soft.slip, alone.soft.slip, atol=5e-6)


def test_parts_forget_the_rows_left_out():
    # Fits to parts begin at the fit to all rows. What is left of that in the log likelihood of the
    # rows left out is below TRACE, by far, though the fit to all rows is several nats better.
    scores, codes = sample(400, 4)
    weight = (np.arange(400) % 5 > 0).astype(float)
    out = weight == 0.0
    fit = MembersFit(scores, codes)
    found = label_log_likelihoods(
        fit.parts([weight])[0].answers(scores[:, out]), codes[out]
    ).sum(axis=0)
    alone = MembersFit(scores[:, ~out], codes[~out]).whole
    expected = label_log_likelihoods(alone.answers(scores[:, out]), codes[out]).sum(
        axis=0
    )
    assert np.abs(found - expected).max() < 0.5 * LEFT_OUT_TRACE_TOL
    seen = label_log_likelihoods(fit.whole.answers(scores[:, out]), codes[out]).sum(
        axis=0
    )
    assert (seen - expected)[4:].min() > 1.0


def test_first_fits_change_little():
    # 32,800 scores are many: 2050 rows are fitted first, and fits end at a decrement of 2e-4.
    scores, codes = sample(4100, 8)
    exact, rough = (MembersFit(scores, codes, tol=tol).whole for tol in (1e-10, None))
    answers = rough.probabilities(scores)
    for name, expected in exact.probabilities(scores).items():
        assert np.abs(answers[name] - expected).max() < 1e-3, name
    assert np.abs(answers["full_loose"] - expected).max() > 0.0
    assert rough.soft.slip == pytest.approx(exact.soft.slip, rel=1e-3)


def test_without_c_many_rows_say_the_same(monkeypatch):
    scores, codes = sample(1667, 12)
    weight = np.ones(scores.shape[1])
    weight[::5] = 0.0
    answers = []
    for kernel in (compiled.kernel_library, lambda: None):
        monkeypatch.setattr(compiled, "kernel_library", kernel)
        fit = MembersFit(scores, codes)
        answers.append(
            [each.probabilities(scores) for each in (fit.whole, *fit.parts([weight]))]
        )
    for in_c, in_numpy in zip(*answers, strict=True):
        for name, expected in in_c.items():
            np.testing.assert_allclose(
                in_numpy[name], expected, atol=2e-3, err_msg=name
            )


def test_a_start_far_away_takes_a_smaller_decrement_to_forget():
    # sqrt(D d) with D = 4 and 0.1 of d left after the last step: sqrt(4 * 0.1 * 0.025) = 0.1
    assert decrement_to_forget_start(4.0, 0.1) == pytest.approx(0.025)
    assert decrement_to_forget_start(4.0, np.inf) == np.inf


def sample_soft_temperature(n, c, u, slip, seed=0):
    """Scores whose labels follow softmax(u z), but for a share `slip` drawn uniformly."""
    rng = np.random.default_rng(seed)
    scores = 4.0 * rng.normal(size=(c, n))
    codes = (u * scores + rng.gumbel(size=(c, n))).argmax(axis=0)
    return scores, np.where(rng.random(n) < slip, rng.integers(0, c, n), codes)


def plain(x, scores, codes, weight):
    """The objective in the words of the equation card."""
    v, e = x[0], expit(x[1])
    g = (1.0 - e) * softmax(np.exp(v) * scores, axis=0) + e / len(scores)
    loss = -weight @ np.log(g[codes, np.arange(len(codes))])
    return (
        loss
        - 0.5 * (np.log(e) + np.log(1.0 - e))
        + 0.5 * (4.0 if v > 0 else 0.05) * v * v
    )


def fitted(scores, codes, weight=None, start=None):
    return fit_soft_temperature(ScoredRows(scores, codes, weight), start)


def loss_of(scores, codes, weight=None):
    return SoftLoss(ScoredRows(scores - scores.max(axis=0), codes, weight))


def test_no_slip_and_no_change_is_the_softmax():
    scores = sample_soft_temperature(20, 3, 1.0, 0.0)[0]
    logs = SoftTemperature(1.0, 0.0).both(scores)[1]
    np.testing.assert_allclose(logs, log_softmax(scores, axis=0), atol=1e-13)


def test_hand_sized_example_soft_temperature():
    # u = 2 turns odds 1 : 1/2 into 1 : 1/4, that is 0.8 and 0.2; a slip of 0.1 adds 0.05 to 0.9
    # times these: 0.77 and 0.23.
    logs = SoftTemperature(2.0, 0.1).both(np.log([[2.0], [1.0]]))[1]
    np.testing.assert_allclose(np.exp(logs), [[0.77], [0.23]], atol=1e-15)


def test_against_a_general_optimiser():
    scores, codes = sample_soft_temperature(400, 4, 0.6, 0.05)
    weight = np.random.default_rng(1).exponential(size=400)
    found = fitted(scores, codes, weight)
    best = minimize(plain, [-0.5, -3.0], args=(scores, codes, weight), tol=1e-12)
    assert np.log(found.inverse_temperature) == pytest.approx(best.x[0], abs=1e-4)
    assert found.slip == pytest.approx(expit(best.x[1]), abs=1e-4)


@pytest.mark.parametrize("x", [(0.3, -2.0), (-0.4, -4.0), (-1.5, 0.5)])
def test_value_and_gradient_against_the_card(x):
    scores, codes = sample_soft_temperature(50, 3, 0.6, 0.2)
    weight = np.linspace(0.5, 2.0, 50)
    terms = loss_of(scores, codes, weight)(np.array(x))
    assert terms.value == pytest.approx(plain(x, scores, codes, weight), rel=1e-12)
    for j, h in enumerate(1e-6 * np.eye(2)):
        up, down = (plain(np.array(x) + s * h, scores, codes, weight) for s in (1, -1))
        assert terms.gradient[j] == pytest.approx(
            (up - down) / 2e-6, rel=1e-6, abs=1e-6
        )


def test_curvature_against_differences_where_it_is_positive():
    scores, codes = sample_soft_temperature(400, 4, 0.6, 0.1)
    loss, found = loss_of(scores, codes), fitted(scores, codes)
    x = np.array([np.log(found.inverse_temperature), logit(found.slip)])
    slopes = [loss(x + h).gradient - loss(x - h).gradient for h in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(loss(x).hessian, np.array(slopes) / 2e-5, rtol=1e-5)


def test_finds_what_the_labels_were_drawn_with():
    # 20,000 rows: standard errors are about 0.01 for u and 0.002 for the slip.
    found = fitted(*sample_soft_temperature(20_000, 4, 0.7, 0.05))
    assert found.inverse_temperature == pytest.approx(0.7, abs=0.04)
    assert found.slip == pytest.approx(0.05, abs=0.01)


def test_rows_without_an_error_do_not_sharpen_without_limit():
    scores = np.log([[0.98] * 200, [0.01] * 200, [0.01] * 200])
    found = fitted(scores, np.zeros(200, dtype=int))
    assert 1.0 < found.inverse_temperature < 5.0
    assert 0.0 < found.slip < 0.01


def test_labels_worse_than_chance_give_a_flat_answer():
    scores = np.log([[0.98] * 200, [0.01] * 200, [0.01] * 200])
    found = fitted(scores, np.full(200, 2))
    assert np.abs(np.exp(found.both(scores)[1]) - 1.0 / 3.0).max() < 0.02


@given(st.integers(0, 1000), st.integers(1, 30), st.floats(-50.0, 50.0))
@example(
    136, 5, 0.0
)  # few rows, little curvature: the decrement must be small for log g to be
@example(276, 2, 0.0)
@settings(deadline=None, max_examples=30)
def test_shifts_permutations_and_starts_do_not_matter(seed, n, shift):
    scores, codes = sample_soft_temperature(n, 3, 0.8, 0.1, seed)
    found = fitted(scores, codes)
    order = np.array([2, 0, 1])
    other = fitted(scores[order] + shift, np.argsort(order)[codes])
    logs = found.both(scores)[1]
    np.testing.assert_allclose(
        other.both(scores[order] + shift)[1], logs[order], atol=1e-5
    )
    again = fitted(scores, codes, start=found)
    np.testing.assert_allclose(again.both(scores)[1], logs, atol=1e-5)
