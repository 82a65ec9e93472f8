"""Many streams of batches at once: the monitor of `docs/explanation/monitoring.md` a second time.

Written from the page's formulas with arrays (streams, rows, classes), and nothing of
`mcllo._monitor`: a test holds both to the same numbers, so that what thousands of looks show here
holds there. Rows are without zeros and groups.
"""

from __future__ import annotations

import math

import numpy as np

SHIFTS, SLOPES = (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0), (0.7, 1.4)
PER_CENT = {
    -12: 2,
    -8: 5,
    -6: 10,
    -4: 20,
    -2: 20,
    -1: 25,
    1: 7,
    2: 5,
    4: 3,
    8: 2,
    12: 1,
}
"""Share of the exponent 2^(k / 8) among the temperatures."""
OF_TWO = (1, 4, 10, 22, 22, 10, 6, 8, 12, 4, 1)
"""The same where there are two classes."""
MEMORIES, KAPPA, PRECISIONS = (100.0, 2000.0), 3.0, (4.0, 16.0)
MEMORY_SHARES = np.array([0.35, 0.65])


def log_sum(values: np.ndarray) -> np.ndarray:
    """Return ``log sum exp`` over the last axis."""
    top = values.max(axis=-1, keepdims=True)
    if not np.isfinite(top).all():
        top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return (top + np.log(np.exp(values - top).sum(axis=-1, keepdims=True)))[..., 0]


def of_labels(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the values (streams, rows, classes) of each row's label."""
    return np.take_along_axis(values, y[..., None], axis=2)[..., 0]


class Streams:
    """The state of `n` monitors of `c` classes; `step` adds a batch to each of them."""

    def __init__(self, n: int, c: int, baseline: int = 0) -> None:
        self.n, self.c, self.baseline, self.looks = n, c, baseline, 0
        self.exponents = 2.0 ** (np.array(sorted(PER_CENT)) / 8.0)
        self.shares = self._shares()
        self.started = np.full((n, len(self.shares)), -np.inf)
        self.detected = self.started.copy()
        self.counts = [np.zeros((n, c)) for _ in MEMORIES]
        self.predicted = [np.zeros((n, c)) for _ in MEMORIES]
        k = c - 1
        self.others = [j for j in range(c) if j != baseline]
        self.identity = np.repeat([0.0, 1.0], k)
        self.prior = np.diag(np.repeat(PRECISIONS, k))
        self.mean = [np.tile(self.identity, (n, 1)) for _ in MEMORIES]
        self.precision = [np.tile(self.prior, (n, 1, 1)) for _ in MEMORIES]

    def _shares(self) -> np.ndarray:
        c = self.c
        if c == 2:
            own = np.array([1.0, 4.0, 4.0, 4.0, 4.0, 1.0, 0.0, 0.0]) / 18.0
            two = (0.25 * np.array(OF_TWO) / 100.0, np.tile(0.68 * own / 2.0, 2))
            return np.concatenate(
                [*two, 0.02 * MEMORY_SHARES, 0.04 * MEMORY_SHARES, [0.01]]
            )
        classes = max(0.18, 0.55 * (2.0 / c) ** 2)
        own = np.ones(len(SHIFTS) + len(SLOPES))
        few = c <= 30
        parts = [
            (0.78 - classes)
            * np.array([PER_CENT[k] / 100.0 for k in sorted(PER_CENT)]),
            np.tile(classes * own / (c * own.sum()), c),
            (0.07 if few else 0.2) * MEMORY_SHARES,
            0.13 * MEMORY_SHARES if few else [],
            [0.02],
        ]
        return np.concatenate(parts)

    def step(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add a batch to every stream; return log evidence and log detector of each."""
        factors = self.factors(x, y)
        self.looks += 1
        k = self.looks
        self.started = np.logaddexp(self.started, -math.log(k * (k + 1.0))) + factors
        self.detected = np.logaddexp(self.detected, 0.0) + factors
        self._learn(x, y)
        with np.errstate(divide="ignore"):
            shares = np.log(self.shares)
        evidence = np.logaddexp(log_sum(shares + self.started), -math.log(k + 1.0))
        return evidence, log_sum(shares + self.detected)

    def class_evidence(self) -> np.ndarray:
        """Return the log evidence of each class alone, (streams, classes)."""
        first, maps = len(self.exponents), len(SHIFTS) + len(SLOPES)
        own = self.started[:, first : first + maps * self.c].reshape(
            self.n, self.c, maps
        )
        return np.logaddexp(log_sum(own) - math.log(maps), -math.log(self.looks + 1.0))

    def factors(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the log factors (streams, maps) of a batch."""
        logs = np.log(x)
        own = of_labels(logs, y)
        heated = (u * logs for u in self.exponents)
        columns = [(of_labels(g, y) - log_sum(g) - own).sum(axis=1) for g in heated]
        columns += list(self._classes(x, logs, y))
        learned = [
            logs + np.log((counts + KAPPA) / (predicted + KAPPA))[:, None, :]
            for counts, predicted in zip(self.counts, self.predicted, strict=True)
        ]
        if self.c <= 30:
            learned += [self._mcllo(self._odds(logs), mean) for mean in self.mean]
        columns += [(of_labels(g, y) - log_sum(g) - own).sum(axis=1) for g in learned]
        return np.stack([*columns, np.zeros(self.n)], axis=1)

    def _classes(self, x: np.ndarray, logs: np.ndarray, y: np.ndarray) -> np.ndarray:
        hit = y[..., None] == np.arange(self.c)
        top = x.argmax(axis=2)[..., None]
        rest, others = 1.0 - x, x.copy()
        np.put_along_axis(others, top, 0.0, axis=2)
        np.put_along_axis(rest, top, others.sum(axis=2, keepdims=True), axis=2)
        log_rest = np.log(rest)
        found = []
        for slope, shift in [(1.0, s) for s in SHIFTS] + [(u, 0.0) for u in SLOPES]:
            inside, outside = slope * logs + shift, slope * log_rest
            total = np.logaddexp(inside, outside)
            found.append(
                np.where(hit, inside - total - logs, outside - total - log_rest).sum(1)
            )
        return np.stack(found, axis=2).reshape(self.n, -1).T

    def _odds(self, logs: np.ndarray) -> np.ndarray:
        return logs[:, :, self.others] - logs[:, :, [self.baseline]]

    def _mcllo(self, odds: np.ndarray, theta: np.ndarray) -> np.ndarray:
        k = self.c - 1
        eta = np.zeros((*odds.shape[:2], self.c))
        eta[:, :, self.others] = theta[:, None, :k] + theta[:, None, k:] * odds
        return eta - log_sum(eta)[..., None]

    def _learn(self, x: np.ndarray, y: np.ndarray) -> None:
        hit = (y[..., None] == np.arange(self.c)).astype(np.float64)
        odds = self._odds(np.log(x))
        for place, memory in enumerate(MEMORIES):
            kept = math.exp(-x.shape[1] / (memory * self.c))
            self.counts[place] = kept * self.counts[place] + hit.sum(axis=1)
            self.predicted[place] = kept * self.predicted[place] + x.sum(axis=1)
            if self.c <= 30:
                self._filter(place, kept, odds, y, hit[:, :, self.others])

    def _filter(
        self, place: int, kept: float, odds: np.ndarray, y: np.ndarray, hit: np.ndarray
    ) -> None:
        """Newton's method for all streams at once, with steps that are halved where they fail."""
        precision = kept * self.precision[place] + (1.0 - kept) * self.prior
        pulled = kept * np.einsum("bij,bj->bi", self.precision[place], self.mean[place])
        pulled += (1.0 - kept) * self.prior @ self.identity
        mean = np.linalg.solve(precision, pulled[..., None])[..., 0]

        def value(theta: np.ndarray) -> np.ndarray:
            away = theta - mean
            loss = -of_labels(self._mcllo(odds, theta), y).sum(axis=1)
            return loss + 0.5 * np.einsum("bi,bij,bj->b", away, precision, away)

        theta, best = mean, value(mean)
        for _ in range(30):
            gradient, hessian = self._derivatives(odds, hit, theta)
            gradient += np.einsum("bij,bj->bi", precision, theta - mean)
            if np.abs(gradient).max() < 1e-5:
                break
            step = np.linalg.solve(hessian + precision, gradient[..., None])[..., 0]
            length = np.ones(self.n)
            for _ in range(20):
                tried = theta - length[:, None] * step
                new = value(tried)
                worse = new > best + 1e-9
                if not worse.any():
                    break
                length[worse] /= 2.0
            theta, best = tried, new
        else:
            _, hessian = self._derivatives(odds, hit, theta)
        self.mean[place] = theta
        self.precision[place] = precision + hessian

    def _derivatives(
        self, odds: np.ndarray, hit: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        p = np.exp(self._mcllo(odds, theta))[:, :, self.others]
        off, k = p - hit, self.c - 1
        gradient = np.concatenate([off.sum(axis=1), (off * odds).sum(axis=1)], axis=1)
        moved = np.concatenate([p, p * odds], axis=2)
        hessian = -(moved.transpose(0, 2, 1) @ moved)
        at = np.arange(k)
        for a, b, weights in (
            (0, 0, 1.0),
            (0, 1, odds),
            (1, 0, odds),
            (1, 1, odds * odds),
        ):
            hessian[:, a * k + at, b * k + at] += (p * weights).sum(axis=1)
        return gradient, hessian


class FittedStreams(Streams):
    """Monitors of a map learned from `n_learned` rows: its estimation error is allowed for.

    The null hypothesis is an MCLLO map of the predictions, the same in all batches, with a normal
    prior whose precision is the information of `n_learned` rows.
    """

    def __init__(self, n: int, c: int, n_learned: int, baseline: int = 0) -> None:
        super().__init__(n, c, baseline)
        self.n_learned = n_learned
        self.null_mean = np.tile(self.identity, (n, 1))
        self.null_precision: np.ndarray | None = None
        self.score_ratios = np.zeros(n)

    def step(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add a batch to every stream; return log evidence and log detector of each."""
        odds = self._odds(np.log(x))
        hit = (y[..., None] == np.array(self.others)).astype(np.float64)
        if self.null_precision is None:
            information = self._derivatives(odds, hit, self.null_mean)[1] / (
                x.shape[1] + 50.0
            )
            self.null_precision = self.n_learned * information + 0.25 * self.prior
        self.dispersion = np.maximum(
            1.0, (10.0 + self.score_ratios) / (10.0 + self.looks)
        )
        self.score_ratios = self.score_ratios + self._score_ratio(odds, hit)
        expected = np.exp(self._mcllo(odds, self.null_mean))
        self.null_gain = self._null_gain(odds, y, hit)
        return super().step(expected, y)

    def factors(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the log factors against the null hypothesis; x are the expected probabilities."""
        return (super().factors(x, y) - self.null_gain[:, None]) / self.dispersion[
            :, None
        ]

    def _score_ratio(self, odds: np.ndarray, hit: np.ndarray) -> np.ndarray:
        score, hessian = self._derivatives(odds, hit, self.null_mean)
        covariance = np.linalg.inv(self.null_precision)
        leverage = covariance @ hessian
        expectation = np.trace(leverage, axis1=1, axis2=2)
        expectation += np.trace(leverage @ leverage, axis1=1, axis2=2)
        return np.einsum("bi,bij,bj->b", score, covariance, score) / expectation

    def _null_gain(
        self, odds: np.ndarray, y: np.ndarray, hit: np.ndarray
    ) -> np.ndarray:
        """Return log q less the log likelihood at the mean, and learn from the batch."""
        mean, precision = self.null_mean, self.null_precision
        before = of_labels(self._mcllo(odds, mean), y).sum(axis=1)
        mode = mean
        for _ in range(30):
            gradient, hessian = self._derivatives(odds, hit, mode)
            gradient += np.einsum("bij,bj->bi", precision, mode - mean)
            if np.abs(gradient).max() < 1e-6:
                break
            mode = (
                mode - np.linalg.solve(hessian + precision, gradient[..., None])[..., 0]
            )
        away = mode - mean
        posterior = precision + self._derivatives(odds, hit, mode)[1]
        log_q = of_labels(self._mcllo(odds, mode), y).sum(axis=1)
        log_q -= 0.5 * np.einsum("bi,bij,bj->b", away, precision, away)
        log_q -= 0.5 * (
            np.linalg.slogdet(posterior)[1] - np.linalg.slogdet(precision)[1]
        )
        self.null_mean, self.null_precision = mode, posterior
        return log_q - before
