import math
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from mcllo._model import compiled
from mcllo._model.batched import BatchedProblems
from mcllo._model.compiled import kernel_name
from mcllo._model.kernel import LogPartition, log_in_place, softmax_in_place
from mcllo._model.likelihood import (
    NegativeLogLikelihood,
    identity_theta,
    sufficient_statistic,
)
from mcllo._model.many_classes import LogPartitionOperator
from mcllo._model.newton import minimize
from mcllo._utils.linalg import solve_damped
from mcllo.exceptions import InputError

needs_library = pytest.mark.skipif(
    compiled.kernel_library() is None,
    reason="no compiled kernel: install where there is a C compiler",
)
SHAPES = [
    (1, 1),
    (1, 63),
    (2, 64),
    (2, 65),
    (9, 1000),
    (70, 150),
]  # C has blocks of 64 rows


@pytest.fixture(scope="module", params=[0, 1, 2])
def level(request):
    """Let C use vectors of this width, where the processor has them."""
    if compiled.kernel_library() is None:
        pytest.skip("no compiled kernel: install where there is a C compiler")
    if request.param > compiled._widest_vector_level(compiled.kernel_library()):
        pytest.skip("this processor has no vectors of that width")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_widest_vector_level", lambda found: request.param)
        yield request.param


def by_numpy(odds, weight=None):
    """Return the partition that NumPy computes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "kernel_library", lambda: None)
        return LogPartition(odds, weight)


def assert_agree(found, expected, case):
    """Compare to 1e-12, Hessians and gradients on the scale of the Hessian's diagonal."""
    scale = np.sqrt(np.diagonal(expected.hessian))
    unit = np.outer(scale, scale)
    assert found.value == pytest.approx(expected.value, rel=1e-12), case
    np.testing.assert_allclose(
        found.gradient, expected.gradient, rtol=1e-12, atol=1e-300, err_msg=case
    )
    np.testing.assert_allclose(
        found.hessian / unit,
        expected.hessian / unit,
        rtol=0.0,
        atol=1e-12,
        err_msg=case,
    )


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("weighted", [False, True])
def test_c_and_numpy_agree(weighted):
    for k, n in SHAPES:
        rng = np.random.default_rng(10 * k + n)
        odds = rng.normal(scale=3.0, size=(k, n))
        theta = identity_theta(k) + rng.normal(size=2 * k) / 3
        weight = rng.uniform(0.1, 5.0, size=n) if weighted else None
        in_c, in_numpy = LogPartition(odds, weight), by_numpy(odds, weight)
        assert_agree(in_c(theta), in_numpy(theta), f"{k} classes, {n} rows")


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 30.0, 590.0, 650.0, 1e5]))
def test_far_rows_agree_one_by_one(level, seed, far):
    # one row at a time: a sum would hide what rows far out contribute
    # Both round eta, which is some four times `far`: a relative error of exp(eta), not of the
    # kernel.
    rtol = 1e-12 + 4.0 * far * np.finfo(float).eps
    rng = np.random.default_rng(seed)
    odds, theta = (
        far * rng.normal(size=(3, 5)),
        identity_theta(3) + rng.normal(size=6) / 3,
    )
    for i in range(5):
        row = np.ascontiguousarray(odds[:, [i]])
        ours, theirs = LogPartition(row)(theta), by_numpy(row)(theta)
        assert ours.value == pytest.approx(theirs.value, rel=1e-12, abs=1e-15)
        np.testing.assert_allclose(
            ours.gradient, theirs.gradient, rtol=rtol, atol=1e-300 * far
        )


@pytest.mark.usefixtures("level")
def test_exp_and_log_are_good_to_the_last_digits():
    # one class, one row: value log(1 + exp eta), gradient exp(eta) / (1 + exp(eta)), beside the C
    # library's functions: NumPy's are off by more than a last digit in some versions
    eta = np.concatenate(
        [np.linspace(-707.9, 599.9, 1001), np.linspace(-3.0, 3.0, 1001)]
    )
    for x in eta:
        terms = LogPartition(np.array([[x]]))(identity_theta(1))
        value = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
        assert terms.value == pytest.approx(value, rel=4e-16, abs=3e-16)
        assert terms.gradient[0] == pytest.approx(
            math.exp(x) / (1.0 + math.exp(x)), rel=1e-15
        )


@pytest.mark.usefixtures("level")
def test_softmax_in_c_is_that_of_scipy():
    for k, n in [(1, 3), (2, 64), (3, 65), (10, 1001)]:
        rng = np.random.default_rng(k + n)
        wide = rng.normal(scale=300.0, size=(k, n + 5))
        wide[0, :2] = -np.inf if k > 1 else 0.0
        eta = wide[:, 2 : n + 2]  # rows that do not follow each other in memory
        expected, logs = special.softmax(eta, axis=0), special.logsumexp(eta, axis=0)
        beside = wide[:, [0, 1, n + 2, n + 3]].copy()
        found, case = compiled.softmax_in_place(eta), f"{k} classes, {n} rows"
        np.testing.assert_allclose(eta, expected, rtol=1e-13, atol=1e-300, err_msg=case)
        np.testing.assert_allclose(found, logs, rtol=1e-15, atol=1e-13, err_msg=case)
        np.testing.assert_array_equal(
            wide[:, [0, 1, n + 2, n + 3]], beside, err_msg=case
        )


def test_both_kernels_take_the_same_for_nothing(level, monkeypatch):
    # exp(-708) is 3e-308; below it NumPy's exp goes on with fewer and fewer digits, to exp(-745)
    eta = np.array([[0.0] * 5, [-707.9, -708.0, -708.1, -720.0, -750.0]])
    in_c, in_numpy = eta.copy(), eta.copy()
    softmax_in_place(in_c)
    monkeypatch.setattr(compiled, "softmax_in_place", lambda eta: None)
    softmax_in_place(in_numpy)
    np.testing.assert_array_equal(in_c[1] > 0.0, [True, True, False, False, False])
    np.testing.assert_allclose(in_numpy, in_c, rtol=1e-13, atol=0.0)


@pytest.mark.usefixtures("level")
def test_log_odds_in_c_are_those_of_numpy():
    for baseline in (0, 2, 3):
        rng = np.random.default_rng(baseline)
        rows = rng.dirichlet([0.02, 0.3, 1.0, 5.0], size=131)
        rows = np.clip(rows, 2.3e-308, None)
        rows[:3, :2] = [
            [1.0, 2.2250738585072014e-308],
            [0.5, 0.7071067811865476],
            [1e-300, 1.0],
        ]
        found = np.empty((3, 131))
        assert compiled.fill_log_odds(rows, baseline, found)
        logs = np.log(rows.T)
        expected = np.delete(logs - logs[baseline], baseline, axis=0)
        # logs of up to 708
        np.testing.assert_allclose(
            found, expected, rtol=1e-15, atol=3e-13, err_msg=str(baseline)
        )


@pytest.mark.usefixtures("level")
def test_logarithms_in_c_of_zeros_subnormal_and_strange_numbers():
    own = np.array([0.0, 2e-308, 5e-324, -0.1, np.nan, 1e-310, -0.0, 1.0, 0.3])
    found = np.empty((1, len(own)))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert compiled.fill_log_odds(
            np.column_stack([own, np.ones(len(own))]), 1, found
        )
        np.testing.assert_allclose(found[0], np.log(own), rtol=1e-15)
        for n in range(1, len(own) + 1):
            part = own[:n].copy()
            assert compiled.log_in_place(part)
            np.testing.assert_allclose(part, np.log(own[:n]), rtol=1e-15)


@pytest.mark.usefixtures("level")
def test_where_rows_lie_in_memory_changes_no_bit():
    rng = np.random.default_rng(0)
    odds, theta = rng.normal(size=(3, 640)), rng.normal(size=6)
    wide = np.empty((3, 700))
    wide[:, 13:653] = odds
    ours, theirs = LogPartition(odds)(theta), LogPartition(wide[:, 13:653])(theta)
    np.testing.assert_array_equal(ours.hessian, theirs.hessian)
    np.testing.assert_array_equal(ours.gradient, theirs.gradient)
    assert ours.value == theirs.value
    np.testing.assert_array_equal(ours.hessian, ours.hessian.T)


@needs_library
def test_nan_stays_nan():
    odds = np.zeros((2, 9))
    assert np.isnan(LogPartition(odds)(np.array([np.nan, 0.0, 1.0, 1.0])).value)
    assert np.isnan(LogPartition(odds)(np.array([np.inf, 0.0, 1.0, 1.0])).value)


@needs_library
def test_rows_that_c_does_not_take_are_left_to_numpy():
    odds = np.zeros((3, 8))
    assert compiled.accepts_log_odds(odds)
    assert not compiled.accepts_log_odds(odds.astype(np.float32))
    assert not compiled.accepts_log_odds(np.zeros((8, 3)).T)
    assert not compiled.accepts_log_odds(
        np.zeros((compiled.MAX_COMPARED_CLASSES + 1, 2))
    )
    for kind in (np.ones((8, 3)).T, np.ones(3, dtype=np.float32)):
        assert not compiled.log_in_place(kind)
        np.testing.assert_array_equal(log_in_place(2.0 * kind), np.log(2.0 * kind))


@pytest.mark.usefixtures("level")
def test_minima_agree_for_every_width_of_vectors():
    rng = np.random.default_rng(7)
    odds, codes = rng.normal(size=(5, 77)), rng.integers(0, 6, size=(4, 77))
    s = np.array([sufficient_statistic(odds, own) for own in codes])
    found = BatchedProblems(s, identity_theta(5), tol=1e-16).minimize_all(odds)
    for own, theta in zip(s, found.theta, strict=True):
        likelihood = NegativeLogLikelihood(by_numpy(odds), own)
        plain = minimize(likelihood, identity_theta(5), tol=1e-16)
        np.testing.assert_allclose(theta, plain.x, rtol=1e-10, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.booleans())
def test_directions_in_c_are_those_of_numpy(level, seed, size, flat):
    rng = np.random.default_rng(seed)
    root, unit = rng.normal(size=(size, size + 3)), 10.0 ** rng.uniform(-4.0, 4.0, size)
    hessian, gradient = (
        root @ root.T * np.outer(unit, unit),
        rng.normal(size=size) * unit,
    )
    if flat:  # nothing to learn of the first one
        hessian[0], hessian[:, 0] = 0.0, 0.0
    found = compiled.newton_direction(hessian.T, gradient)
    np.testing.assert_allclose(
        found * unit, -solve_damped(hessian, gradient) * unit, rtol=1e-7
    )
    whole = compiled.newton_direction(
        2 * np.eye(size, dtype=int), np.full(size, 6)
    )  # of any numbers
    np.testing.assert_allclose(whole, -3.0, rtol=1e-14)


@pytest.mark.usefixtures("level")
def test_drawn_labels_and_their_sums_are_those_of_numpy():
    for n, c, size in [(1, 2, 1), (63, 3, 5), (64, 10, 3), (130, 70, 4)]:
        rng, case = np.random.default_rng(n), f"{n} rows, {c} classes"
        probs = rng.dirichlet(np.ones(c), n)
        below = np.cumsum(probs, axis=1)[:, :-1].T
        u, values = rng.random((size, n)), rng.normal(size=(c, n))
        u[0, 0] = below[0, 0]  # on an edge: not above it
        labels = compiled.labels_from_uniforms(probs.T, u)
        assert labels.dtype == np.intp
        np.testing.assert_array_equal(
            labels, (u[:, None] > below).sum(axis=1), err_msg=case
        )
        counts, sums = compiled.count_and_sum_by_label(labels, values)
        chosen = labels[:, None] == np.arange(c)[:, None]
        np.testing.assert_array_equal(counts, chosen.sum(axis=2), err_msg=case)
        expected = np.where(chosen, values, 0.0).sum(axis=2)
        np.testing.assert_allclose(sums, expected, atol=1e-12, err_msg=case)
        other = np.asfortranarray(labels.astype(np.int32)), np.asfortranarray(values)
        np.testing.assert_array_equal(
            compiled.count_and_sum_by_label(*other), [counts, sums], err_msg=case
        )


@pytest.fixture
def fresh():
    """Let `kernel_library` look again, in the test and after it."""
    compiled.kernel_library.cache_clear()
    yield
    compiled.kernel_library.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_the_environment_turns_c_off_or_insists_on_it(monkeypatch, tmp_path):
    monkeypatch.setenv("MCLLO_KERNEL", "NumPy")
    assert kernel_name() == "NumPy"
    compiled.kernel_library.cache_clear()
    monkeypatch.setenv("MCLLO_KERNEL", "c")
    monkeypatch.setattr(compiled, "LIBRARY", tmp_path / "libkernel.so")
    with pytest.raises(InputError, match=r"MCLLO_KERNEL=c needs libkernel\.so"):
        kernel_name()
    monkeypatch.setenv("MCLLO_KERNEL", "fortran")
    with pytest.raises(InputError, match="must be 'c' or 'numpy'; got 'fortran'"):
        kernel_name()


@pytest.mark.usefixtures("fresh")
def test_without_a_library_numpy_runs(monkeypatch, tmp_path):
    monkeypatch.delenv("MCLLO_KERNEL", raising=False)
    monkeypatch.setattr(compiled, "LIBRARY", tmp_path / "libkernel.so")
    assert kernel_name() == "NumPy"
    (tmp_path / "libkernel.so").write_text("no library at all")
    compiled.kernel_library.cache_clear()
    assert kernel_name() == "NumPy"


@needs_library
@pytest.mark.usefixtures("fresh")
def test_a_library_of_another_source_is_not_used(monkeypatch, tmp_path):
    monkeypatch.delenv("MCLLO_KERNEL", raising=False)
    assert kernel_name().startswith("C (")
    compiled.kernel_library.cache_clear()
    shutil.copy(compiled.SOURCE, tmp_path)
    monkeypatch.setattr(compiled, "SOURCE", tmp_path / "kernel.c")
    assert kernel_name().startswith("C (")
    with (tmp_path / "kernel.c").open("a") as file:
        file.write("/* changed */\n")
    compiled.kernel_library.cache_clear()
    assert kernel_name() == "NumPy"


@needs_library
def test_where_curvature_falls_steps_are_longer_than_newtons():
    # the decrement of separated labels falls by e a Newton step: 23 of them to 1e-9; C took 10
    odds = np.linspace(-2.0, 2.0, 40)[None]
    s = sufficient_statistic(odds, (odds[0] < 0.0).astype(int))
    found = BatchedProblems(s[None], identity_theta(1), max_iter=12).minimize_all(odds)
    assert found.converged.all()
    assert 0.0 <= found.value[0] < 1e-8
    plain = minimize(
        NegativeLogLikelihood(LogPartition(odds), s), identity_theta(1), tol=1e-9
    )
    assert plain.n_iter > 20


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("weighted", [False, True])
def test_many_classes_in_c_and_numpy_agree(weighted):
    for k, n in [(2, 5), (9, 65), (150, 333), (300, 64)]:
        rng = np.random.default_rng(k)
        odds = rng.normal(scale=3.0, size=(k, n))
        weight = rng.uniform(0.0, 3.0, size=n) if weighted else None
        theta = np.concatenate([rng.normal(size=k), rng.normal(1.0, 0.3, size=k)])
        v, in_c = rng.normal(size=2 * k), LogPartitionOperator(odds, weight)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "kernel_library", lambda: None)
            plain = LogPartitionOperator(odds, weight)
        found, expected = (
            in_c.value_and_gradient(theta),
            plain.value_and_gradient(theta),
        )
        case = f"{k} classes, {n} rows"
        assert found.value == pytest.approx(expected.value, rel=1e-12), case
        pairs = [
            (found.gradient, expected.gradient),
            (in_c.hessian_times(v), plain.hessian_times(v)),
        ]
        names = ("tau", "cross", "gamma")
        pairs += [
            (getattr(in_c.blocks, name), getattr(plain.blocks, name)) for name in names
        ]
        for own, other in pairs:
            atol = 1e-12 * np.abs(other).max()
            np.testing.assert_allclose(own, other, rtol=0.0, atol=atol, err_msg=case)
