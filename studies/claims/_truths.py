"""Predictions and truths inside and outside the family of shifts and slopes, for several topics.

A truth is what labels are drawn from, given the predictions. Inside the family it is a map of
shifts and slopes; outside, no such map: label noise, a wave, a step, classes that leak into each
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import draw, rows_like, scaled

Table = np.ndarray


def network(
    n: int, c: int, rng: np.random.Generator, margin: float = 6.0, sd: float = 2.5
) -> Table:
    """Return rows with one large logit of random size, as networks make them."""
    logits = rng.normal(0.0, 1.0, (n, c))
    logits[np.arange(n), rng.integers(c, size=n)] += rng.normal(margin, sd, n)
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    return probs / probs.sum(axis=1, keepdims=True)


def uniform(n: int, rng: np.random.Generator) -> Table:
    """Return two classes whose probabilities are uniform."""
    event = rng.uniform(1e-6, 1.0 - 1e-6, n)
    return np.column_stack([1.0 - event, event])


def noisy(x: Table, share: float) -> Table:
    """Return that this share of the labels is any class."""
    return (1.0 - share) * x + share / x.shape[1]


def waved(x: Table, size: float) -> Table:
    """Return that the first class waves around its probability, the others in proportion."""
    truth = x.copy()
    first = np.clip(x[:, 0] + size * np.sin(2.0 * np.pi * x[:, 0]), 1e-6, 1.0 - 1e-6)
    truth[:, 1:] *= ((1.0 - first) / np.maximum(1.0 - x[:, 0], 1e-12))[:, None]
    truth[:, 0] = first
    return truth / truth.sum(axis=1, keepdims=True)


def stepped(x: Table) -> Table:
    """Return that 25 to 75 % are really 35 or 65 %."""
    event = x[:, 1]
    inside = (event > 0.25) & (event < 0.75)
    truth = np.where(inside, np.where(event < 0.5, 0.35, 0.65), event)
    return np.column_stack([1.0 - truth, truth])


def swapped(x: Table, share: float) -> Table:
    """Return that the first two classes are taken for each other."""
    truth = x.copy()
    truth[:, 0] = (1.0 - share) * x[:, 0] + share * x[:, 1]
    truth[:, 1] = (1.0 - share) * x[:, 1] + share * x[:, 0]
    return truth


def leaking(x: Table, share: float) -> Table:
    """Return that a share of the first class is really the second."""
    truth = x.copy()
    truth[:, 0] = (1.0 - share) * x[:, 0]
    truth[:, 1] = x[:, 1] + share * x[:, 0]
    return truth


def capped(x: Table, most: float) -> Table:
    """Return that no class is ever more probable than this."""
    rows, top = np.arange(len(x)), x.argmax(axis=1)
    new = np.minimum(x[rows, top], most)
    truth = x * ((1.0 - new) / np.maximum(1.0 - x[rows, top], 1e-12))[:, None]
    truth[rows, top] = new
    return truth / truth.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Design:
    """Rows, what their labels follow, and whether that is a map of shifts and slopes.

    `weight` is the share of the repetitions that a costly design gets.
    """

    name: str
    n: int
    rows: Callable[[int, np.random.Generator], Table]
    truth: Callable[[Table], Table]
    inside: bool
    weight: float = 1.0

    def data(self, rng: np.random.Generator) -> tuple[Table, Table, np.ndarray]:
        """Return predictions, truth and labels of one data set."""
        x = self.rows(self.n, rng)
        truth = self.truth(x)
        return x, truth, draw(truth, rng)


def flat(c: int, alpha: float = 1.0) -> Callable[[int, np.random.Generator], Table]:
    """Return rows that are Dirichlet."""
    return lambda n, rng: rows_like(f"dirichlet:{alpha:g}", n, c, rng)


def net(
    c: int, margin: float = 6.0, sd: float = 2.5
) -> Callable[[int, np.random.Generator], Table]:
    """Return rows of a network."""
    return lambda n, rng: network(n, c, rng, margin, sd)


def same(x: Table) -> Table:
    """Return the predictions: they are calibrated."""
    return x


def first_shifted(x: Table) -> Table:
    """Return that the first class is more likely than predicted."""
    return scaled(x, 1.0, [0.7, *[0.0] * (x.shape[1] - 1)])


INSIDE = (
    Design("calibrated, flat, 3 classes", 60, flat(3), same, True),
    Design("calibrated, flat, 3 classes", 300, flat(3), same, True),
    Design("calibrated, flat, 4 classes", 3_000, flat(4), same, True),
    Design("calibrated, flat, 3 classes", 20_000, flat(3), same, True, 0.3),
    Design("calibrated, network, 10 classes", 500, net(10), same, True),
    Design("calibrated, network, 10 classes", 2_000, net(10), same, True),
    Design(
        "calibrated, rare events",
        1_000,
        lambda n, rng: rows_like("rare", n, 2, rng),
        same,
        True,
    ),
    Design("slope .5, flat, 3 classes", 300, flat(3), lambda x: scaled(x, 0.5), True),
    Design(
        "slope .7, flat, 4 classes", 8_000, flat(4), lambda x: scaled(x, 0.7), True, 0.5
    ),
    Design(
        "slope .7, network, 10 classes", 2_000, net(10), lambda x: scaled(x, 0.7), True
    ),
    Design(
        "slope 1.3, flat, 3 classes", 1_000, flat(3), lambda x: scaled(x, 1.3), True
    ),
    Design(
        "slope .97, flat, 4 classes",
        40_000,
        flat(4),
        lambda x: scaled(x, 0.97),
        True,
        0.2,
    ),
    Design("one class shifted, flat, 4 classes", 1_000, flat(4), first_shifted, True),
)
OUTSIDE = (
    Design(
        "10 % label noise, network, 10 classes",
        2_000,
        net(10, 5.0),
        lambda x: noisy(x, 0.1),
        False,
    ),
    Design(
        "5 % label noise, network, 10 classes",
        300,
        net(10),
        lambda x: noisy(x, 0.05),
        False,
    ),
    Design(
        "2 % label noise, network, 3 classes",
        20_000,
        net(3, 7.0, 3.0),
        lambda x: noisy(x, 0.02),
        False,
        0.3,
    ),
    Design("wave, flat, 3 classes", 1_500, flat(3), lambda x: waved(x, 0.12), False),
    Design(
        "small wave, flat, 3 classes",
        20_000,
        flat(3),
        lambda x: waved(x, 0.03),
        False,
        0.3,
    ),
    Design("step, 2 classes", 2_000, lambda n, rng: uniform(n, rng), stepped, False),
    Design(
        "step, 2 classes", 40_000, lambda n, rng: uniform(n, rng), stepped, False, 0.2
    ),
    Design(
        "two slopes mixed, flat, 3 classes",
        1_000,
        flat(3),
        lambda x: 0.5 * scaled(x, 0.4) + 0.5 * scaled(x, 2.0),
        False,
    ),
    Design(
        "two classes swapped, network, 10 classes",
        2_000,
        net(10),
        lambda x: swapped(x, 0.3),
        False,
    ),
    Design(
        "two classes swapped, flat, 4 classes",
        800,
        flat(4),
        lambda x: swapped(x, 0.3),
        False,
    ),
    Design(
        "leak, flat, 4 classes", 800, flat(4, 0.6), lambda x: leaking(x, 0.4), False
    ),
    Design(
        "never above 80 %, network, 5 classes",
        3_000,
        net(5, 4.0, 2.0),
        lambda x: capped(x, 0.8),
        False,
    ),
    Design(
        "never above 95 %, network, 10 classes",
        1_000,
        net(10),
        lambda x: capped(x, 0.95),
        False,
    ),
)
DESIGNS = (*INSIDE, *OUTSIDE)


def dirichlet(*alphas: float) -> Callable[[int, np.random.Generator], Table]:
    """Return rows that are Dirichlet, with a parameter for each class."""

    def rows(n: int, rng: np.random.Generator) -> Table:
        x = np.maximum(rng.dirichlet(alphas, size=n), 1e-12)
        return x / x.sum(axis=1, keepdims=True)

    return rows


def hardly_ever(n: int, rng: np.random.Generator) -> Table:
    """Return four classes of which the last almost never comes true, so that it is absent."""
    return np.column_stack(
        [0.9998 * rng.dirichlet(np.ones(3), size=n), np.full(n, 0.0002)]
    )


def shifted(slope: float = 1.0, **shifts: float) -> Callable[[Table], Table]:
    """Return that log odds have this slope and these classes (`c4=0.8`) these shifts."""

    def truth(x: Table) -> Table:
        tau = np.zeros(x.shape[1])
        for name, shift in shifts.items():
            tau[int(name[1:])] = shift
        return scaled(x, slope, tau)

    return truth


def one_slope(x: Table) -> Table:
    """Return that the third class alone has another exponent, whatever the baseline."""
    powers = np.ones(x.shape[1])
    powers[2] = 0.5
    truth = x**powers
    return truth / truth.sum(axis=1, keepdims=True)


MORE = (
    Design("calibrated, Beta(.5, .5), 2 classes", 60, dirichlet(0.5, 0.5), same, True),
    Design("calibrated, very rare events", 400, dirichlet(9.0, 0.3), same, True),
    Design(
        "calibrated, one class rules, 3 classes",
        1_000,
        dirichlet(50, 0.5, 0.1),
        same,
        True,
    ),
    Design("calibrated, flat, 3 classes", 15, flat(3), same, True),
    Design("calibrated, one class absent, 4 classes", 300, hardly_ever, same, True),
    Design("calibrated, sparse, 50 classes", 700, flat(50, 0.1), same, True, 0.3),
    Design("calibrated, network, 100 classes", 1_500, net(100), same, True, 0.1),
    Design(
        "the last class shifted, 4 classes",
        800,
        dirichlet(1.0, 0.5, 2.0, 0.3),
        shifted(c3=0.8),
        True,
    ),
    Design(
        "two classes shifted, network, 10 classes",
        3_000,
        net(10),
        shifted(c2=0.8, c7=-0.8),
        True,
        0.5,
    ),
    Design(
        "slope .8 and one class shifted, network, 10 classes",
        3_000,
        net(10),
        shifted(0.8, c4=0.8),
        True,
        0.5,
    ),
    Design(
        "one class shifted, network, 30 classes",
        4_000,
        net(30),
        shifted(c7=1.2),
        True,
        0.2,
    ),
    Design(
        "one class's own exponent, network, 4 classes", 1_500, net(4), one_slope, False
    ),
    Design(
        "3 % label noise, network, 10 classes",
        3_000,
        net(10),
        lambda x: noisy(x, 0.03),
        False,
        0.5,
    ),
    Design(
        "5 % label noise, network, 50 classes",
        3_000,
        net(50),
        lambda x: noisy(x, 0.05),
        False,
        0.2,
    ),
    Design(
        "leak, network, 10 classes",
        3_000,
        net(10),
        lambda x: leaking(x, 0.3),
        False,
        0.5,
    ),
    Design(
        "wave, network, 10 classes",
        1_000,
        net(10),
        lambda x: waved(x, 0.15),
        False,
        0.5,
    ),
)
"""More of them, for the sentences: few rows, many classes, classes that are off by themselves."""
