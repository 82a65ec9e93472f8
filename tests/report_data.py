"""Results to report on, made once: small, seeded, and one with hostile class names."""

from functools import cache

import numpy as np

import mcllo
from mcllo._apps.report import report
from mcllo._utils.statements import suppress_warnings

PETS = ("cat", "dog", "truck")
HOSTILE = (
    "<script>window.stolen = 1; alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "x" * 200,
    "👩‍👩‍👧 family 🎉",
    "مرحبا بالعالم",
    "\u202eevil | **md** [a](javascript:alert(3)) `code`",
    "$\\frac{1}{2}$ & {{ 7 * 7 }}",
)


def assess(*args, **options):
    """Return the assessment that a report shows: with all its details."""
    return mcllo.assess(*args, full=True, **options)


def predictions(n, classes, power=1.0, seed=0):
    """Draw labels from Dirichlet rows and predict those rows raised to `power`; 1 is calibrated."""
    rng = np.random.default_rng(seed)
    honest = rng.dirichlet(np.ones(len(classes)), size=n)
    codes = (honest.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    shown = honest**power / (honest**power).sum(axis=1, keepdims=True)
    return mcllo.Predictions.from_arrays(
        shown, [classes[code] for code in codes], classes=list(classes)
    )


@cache
def overconfident():
    return assess(predictions(600, PETS, 2.0), seed=0, n_resamples=199)


@cache
def calm():
    return assess(predictions(600, PETS, seed=7), seed=0, n_resamples=199)


@cache
def hostile():
    return assess(predictions(600, HOSTILE, 2.0), seed=0, n_resamples=199)


@cache
def many():
    names = [f"species {j:03d}" for j in range(100)]
    return assess(predictions(3000, names, 1.5), seed=0, n_resamples=19, method="chi2")


@cache
def separated():
    probs = [
        [0.9, 0.05, 0.05],
        [0.8, 0.1, 0.1],
        [0.1, 0.8, 0.1],
        [0.1, 0.1, 0.8],
        [0.2, 0.2, 0.6],
    ]
    with suppress_warnings():
        return assess(probs, ["a", "a", "b", "c", "c"], seed=0, n_resamples=99)


@cache
def grouped():
    """Return the assessment of rows that come five at a time."""
    rows = predictions(600, PETS, 2.0)
    return assess(
        rows.probs,
        [PETS[code] for code in rows.codes],
        classes=PETS,
        groups=np.arange(600) // 5,
        seed=0,
        n_resamples=199,
    )


@cache
def zeros():
    """Return the assessment of probabilities with two decimals and a floor; one label had 0."""
    rows = predictions(300, PETS, 1.5)
    probs = rows.probs.round(2)
    labels = [PETS[code] for code in rows.codes]
    probs[0], labels[0] = [0.0, 0.5, 0.5], "cat"
    probs[1:][probs[np.arange(300), rows.codes][1:] == 0.0] = 1.0 / 3.0
    with suppress_warnings():
        return assess(
            probs,
            labels,
            classes=PETS,
            normalize=True,
            clip=1e-6,
            seed=0,
            n_resamples=99,
        )


@cache
def wave():
    """Two classes whose truth waves around the prediction: no shift, no slope (docs of omnibus)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 0.9, size=2000)
    truth = x + 0.08 * np.cos(4 * np.pi * (x - 0.5) / 0.8)
    y = (rng.random(2000) < truth).astype(int)
    return assess(np.column_stack([1 - x, x]), y, seed=0, n_resamples=199)


def off(place, seed=1):
    """Return the assessment of ten classes of which one comes true too often: not the others."""
    names = [f"kind {j}" for j in range(10)]
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(10, 0.6), size=2000).clip(1e-9)
    truth = probs * np.where(np.arange(10) == place, 2.2, 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    codes = (truth.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    labels = [names[code] for code in codes]
    return assess(
        probs,
        labels,
        classes=names,
        normalize=True,
        seed=0,
        n_resamples=199,
        method="chi2",
    )


@cache
def one_off():
    """One class is off; the last, which is the baseline, is not."""
    return off(3)


@cache
def baseline_off():
    return off(9)


@cache
def slight():
    """So many rows that a slope of 0.97 is found; it hardly matters."""
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.ones(3), size=60_000)
    truth = probs**0.97 / (probs**0.97).sum(axis=1, keepdims=True)
    codes = (truth.cumsum(axis=1) > rng.random((60_000, 1))).argmax(axis=1)
    labels = np.array(PETS)[codes]
    return assess(probs, labels, classes=PETS, seed=0, n_resamples=19, method="chi2")


@cache
def few():
    return assess(predictions(20, PETS, seed=4), seed=0, n_resamples=199)


@cache
def few_groups():
    """Three groups, of which nothing can be learned."""
    rows = predictions(600, PETS, 2.0)
    return assess(
        rows.probs,
        [PETS[code] for code in rows.codes],
        classes=PETS,
        groups=np.arange(600) % 3,
        seed=0,
        n_resamples=199,
    )


@cache
def divided():
    """Two stations, of which one is off."""
    rows = [predictions(600, PETS, power, seed=6) for power in (1.0, 2.5)]
    labels = [PETS[code] for part in rows for code in part.codes]
    return assess(
        np.concatenate([part.probs for part in rows]),
        labels,
        classes=PETS,
        by=["Bern"] * 600 + ["Davos"] * 600,
        seed=0,
        n_resamples=99,
        method="chi2",
    )


@cache
def mixed_up():
    """The columns stand under the names of other classes."""
    rows = predictions(600, PETS, 1.0, seed=5)
    labels = [PETS[code] for code in rows.codes]
    sharp = rows.probs**2 / (rows.probs**2).sum(axis=1, keepdims=True)
    return assess(sharp[:, [1, 2, 0]], labels, classes=PETS, seed=0, n_resamples=199)


@cache
def own_rows():
    """A recalibration judged on the rows that it was fitted to."""
    rows = predictions(600, PETS, 2.0)
    labels = [PETS[code] for code in rows.codes]
    recalibrated = (
        mcllo.MCLLOCalibrator().fit(rows.probs, labels).predict_proba(rows.probs)
    )
    return assess(recalibrated, labels, classes=PETS, seed=0, n_resamples=199)


@cache
def compared(classes=PETS):
    return mcllo.compare(
        predictions(600, classes, 2.0),
        predictions(500, classes, 2.0, seed=1),
        methods=("mcllo", "temperature", "histogram"),
        seed=0,
        n_resamples=99,
    )


@cache
def helped():
    """Return a comparison whose recommended recalibration is shown to help."""
    return mcllo.compare(
        predictions(600, PETS, 2.0),
        predictions(2000, PETS, 2.0, seed=1),
        methods=("mcllo", "temperature", "histogram"),
        seed=0,
        n_resamples=99,
    )


@cache
def reported(make):
    """Return the report on ``make()``; its pictures are drawn once for all tests of a process."""
    return report(make())
