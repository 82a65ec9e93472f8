"""Rows for the tests of blocks: mildly miscalibrated, five classes, some with zeros."""

import itertools
from functools import partial

import numpy as np
import pytest

from mcllo import Predictions
from mcllo._apps.streaming.blocks import StreamedBlocks
from mcllo._apps.streaming.sums import Block, BlockLayout, ValidationOptions
from mcllo.exceptions import InputError


def rows(n=3000, c=5, seed=0, weighted=False, zeros=False):
    """Return probabilities, labels and weights (None without)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, c))
    probs = np.exp(z)
    probs /= probs.sum(axis=1, keepdims=True)
    y = (1.1 * z + 0.2 * np.arange(c) + rng.gumbel(size=(n, c))).argmax(axis=1)
    if zeros:
        probs = np.round(probs, 2)
        probs /= probs.sum(axis=1, keepdims=True)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return probs, y, weight


def whole(n=3000, c=5, seed=0, weighted=False, zeros=False, names=None, **options):
    """Return those rows as `Predictions`, labels perhaps by `names`."""
    probs, y, weight = rows(n, c, seed, weighted, zeros)
    y = y if names is None else np.array(names)[y]
    options = {"clip": 1e-6 if zeros else None, **options}
    return Predictions.from_arrays(probs, y, sample_weight=weight, **options)


def cut(parts, at):
    """Cut arrays (None stays None) at row numbers: a list of batches."""
    ends = [0, *sorted(at), len(parts[0])]
    return [
        tuple(part if part is None else part[a:b] for part in parts)
        for a, b in itertools.pairwise(ends)
    ]


class Batches:
    """A source of blocks: ``(probs, y)`` or ``(probs, y, weight)``, validated one by one."""

    cost = "much"

    def __init__(self, batches, **reading):
        self.batches = batches
        first = next(batch for batch in batches if len(batch[0]))
        self.layout = BlockLayout.from_first_rows(
            ValidationOptions(**reading), first[0], first[1]
        )

    def n_bytes(self):
        return 0.0

    def units(self):
        start = 0
        for batch in self.batches:
            if len(batch[0]):
                yield partial(self.read, start, batch)
            start += len(batch[0])

    def read(self, start, batch):
        try:
            yield Block(start, self.layout.read(*batch))
        except InputError as error:
            raise error.moved(start) from None


def blocks_of(parts, at=(), *, n_jobs=None, spill=None, **reading):
    """Return arrays, cut at row numbers, as blocks."""
    if "classes" in reading:
        reading["classes"] = tuple(reading["classes"])
    return StreamedBlocks(
        Batches(cut(parts, at), **reading), n_jobs=n_jobs, spill=spill
    )


def same_rows(blocks, p):
    """Check that the rows of `blocks` are those of `p`, and what was changed is counted alike."""
    found = blocks.take()
    np.testing.assert_allclose(found.probs, p.probs, rtol=1e-15)
    np.testing.assert_array_equal(found.codes, p.codes)
    assert (found.classes, found.baseline) == (p.classes, p.baseline)
    assert (found.sample_weight is None) == (p.sample_weight is None)
    if p.sample_weight is not None:
        np.testing.assert_array_equal(found.sample_weight, p.sample_weight)
    names = ("n_zeros", "n_clipped", "n_clipped_true", "n_renormalized", "clip")
    assert [getattr(found, name) for name in names] == [
        getattr(p, name) for name in names
    ]


def same_fit(found, expected, tol=1e-10):
    """Estimates in standard errors, the covariance and the statistic, to 1e-10."""
    se = np.sqrt(np.diagonal(expected.cov_theta))
    away = np.abs(found.theta - expected.theta) / np.where(np.isnan(se), 1.0, se)
    assert away.max() <= tol
    np.testing.assert_allclose(
        found.cov_theta, expected.cov_theta, rtol=tol, atol=tol * 1e-3
    )
    assert found.statistic == pytest.approx(expected.statistic, rel=tol, abs=1e-9)
    names = (
        "classes",
        "baseline",
        "n_samples",
        "df",
        "converged",
        "separated",
        "penalty",
    )
    for name in (*names, "separated_classes", "n_iter"):
        assert getattr(found, name) == getattr(expected, name), name
