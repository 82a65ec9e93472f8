"""Fitted calibrators of every kind that an export must carry; small, and made once."""

import warnings
from functools import cache

import data
import numpy as np

from mcllo import calibrators as c

CLASSES = ["east", "north", "south", "west"]


@cache
def rows(n=160, power=1.5, seed=20):
    """Overconfident rows, of which some hold zeros; calibrated ones of power 1."""
    X, y = data.drawn(n, CLASSES, seed, power=power)
    if power != 1.0:
        X[:5, 1:] = 0.0
        X[5:9, 0] = 0.0
    return X / X.sum(axis=1, keepdims=True), np.asarray(y)


def _fit(calibrator, *, without=None, power=1.5, n=160):
    X, y = rows(n, power)
    if without is not None:
        kept = y != without
        X, y = X[kept], y[kept]
    given = np.log(np.maximum(X, 1e-4)) + 0.3 if calibrator.input == "logits" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrator.fit(given, y)


def _of(calibrator, n_classes, n, confused=0.0, uneven=1.0):
    """Return a calibrator fitted to rows of so many classes, some taken for their neighbours.

    Every other class comes `uneven` times as often as predicted.
    """
    names = [f"k{k:03d}" for k in range(n_classes)]
    rng = np.random.default_rng(n_classes)
    honest = rng.dirichlet(np.full(n_classes, 2.0 / n_classes), size=n)
    mixed = (1.0 - confused) * honest + confused * np.roll(honest, 1, axis=1)
    mixed[:, ::2] *= uneven
    mixed /= mixed.sum(axis=1, keepdims=True)
    y = (mixed.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    X = honest**2.0
    X[X < 1e-9] = 0.0
    calibrator.set_params(classes=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrator.fit(X / X.sum(axis=1, keepdims=True), [names[k] for k in y])


def _of_trees(n_classes, n=1500):
    """Return a pool with trees: where the first class has more than 0.4 it has far more.

    Of two classes between 0.4 and 0.7, which no curve of the pool can follow.
    """
    rng = np.random.default_rng(n_classes)
    X = rng.dirichlet(np.ones(n_classes), size=n)
    truth = X.copy()
    far_more = X[:, 0] > 0.4 if n_classes > 2 else abs(X[:, 0] - 0.55) < 0.15
    truth[:, 0] *= np.where(far_more, 5.0, 0.4)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return c.AutoCalibrator(flexible=True).fit(X, y)


def _adapted(calibrator):
    X = rows(160, 1.0)[0]
    many_of_one = X[
        np.argsort(-X[:, 0])[:60]
    ]  # as they come they are no other than the model's
    return _fit(calibrator, power=2.5).adapt(many_of_one)


def named(make, **options):
    """Return a calibrator that knows all classes, also those that no label has."""
    return make(classes=CLASSES, **options)


MAKERS = {
    "identity": lambda: _fit(c.Identity()),
    "identity, normalize": lambda: _fit(c.Identity(normalize=True)),
    "mcllo": lambda: _fit(c.MCLLOCalibrator()),
    "mcllo, first baseline": lambda: _fit(c.MCLLOCalibrator(baseline="east")),
    "mcllo, all baselines": lambda: _fit(
        c.MCLLOCalibrator(baseline="all", penalty=1.0)
    ),
    "mcllo, clip 0.01": lambda: _fit(c.MCLLOCalibrator(clip=0.01)),
    "mcllo, open gate": lambda: _fit(c.MCLLOCalibrator(gate=0.05), power=3.0),
    "mcllo, closed gate": lambda: _fit(c.MCLLOCalibrator(gate=1e-9), power=1.0),
    "auto": lambda: _fit(c.AutoCalibrator(), power=2.5),
    "auto, logits": lambda: _fit(c.AutoCalibrator(on="logits"), power=2.5),
    "auto, known frequencies": lambda: _fit(
        c.AutoCalibrator(prior=[0.4, 0.3, 0.2, 0.1]), power=2.5
    ),
    "mcllo, frequencies kept": lambda: _fit(c.MCLLOCalibrator(prior="keep")),
    "auto, closed gate": lambda: _fit(c.AutoCalibrator(gate=1e-9), power=1.0),
    "auto, estimated frequencies": lambda: _adapted(
        c.AutoCalibrator(prior="unlabelled")
    ),
    "auto, removed class": lambda: _fit(
        named(c.AutoCalibrator, prior="keep"), without="north", power=2.5
    ),
    "auto, two classes": lambda: _of(c.AutoCalibrator(), 2, 600),
    "auto, 21 classes": lambda: _of(c.AutoCalibrator(), 21, 600, confused=0.4),
    "auto, 101 classes": lambda: _of(c.AutoCalibrator(), 101, 1500, uneven=6.0),
    "auto, trees": lambda: _of_trees(3),
    "auto, trees of two classes": lambda: _of_trees(2),
    "mcllo, two classes": lambda: _of(c.MCLLOCalibrator(), 2, 200),
    "mcllo, closed gate, two classes to come": lambda: _fit(
        c.MCLLOCalibrator(gate=1e-9, prior=[0.5, 0.5, 0.0, 0.0]), power=1.0
    ),
    "temperature": lambda: _fit(c.TemperatureScaling()),
    "temperature, logits": lambda: _fit(c.TemperatureScaling(on="logits")),
    "vector": lambda: _fit(c.VectorScaling(penalty=1.0)),
    "vector, log probs": lambda: _fit(c.VectorScaling(on="log_probs", penalty=1.0)),
    "vector, absent class": lambda: _fit(
        named(c.VectorScaling, penalty=1.0), without="north"
    ),
    "matrix": lambda: _fit(c.MatrixScaling(penalty=1.0)),
    "matrix, log probs": lambda: _fit(c.MatrixScaling(on="log_probs", penalty=1.0)),
    "matrix, absent class": lambda: _fit(
        named(c.MatrixScaling, on="log_probs", penalty=1.0), without="north"
    ),
    "dirichlet": lambda: _fit(c.DirichletCalibration()),
    "histogram": lambda: _fit(c.HistogramBinning()),
    "histogram, mass": lambda: _fit(c.HistogramBinning(n_bins="sqrt", binning="mass")),
    "histogram, identity in empty bins": lambda: _fit(
        c.HistogramBinning(empty="identity", zero_row="uniform")
    ),
    "histogram, absent class": lambda: _fit(named(c.HistogramBinning), without="south"),
    "isotonic": lambda: _fit(c.IsotonicCalibration()),
    "isotonic, absent class": lambda: _fit(
        named(c.IsotonicCalibration), without="south"
    ),
    "beta": lambda: _fit(c.BetaCalibration()),
    "beta, absent class": lambda: _fit(named(c.BetaCalibration), without="west"),
    "xu_davoine": lambda: _fit(c.XuDavoine()),
    "xu_davoine, plausibility of logs": lambda: _fit(
        c.XuDavoine(scores="log", output="plausibility")
    ),
    "xu_davoine, plug-in": lambda: _fit(c.XuDavoine(output="plug_in")),
}


@cache
def model(name):
    """Return the fitted calibrator of this name."""
    return MAKERS[name]()
