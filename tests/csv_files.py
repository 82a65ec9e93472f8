"""Small prediction files for the tests of the file and command-line side."""

import numpy as np

CLASSES = ["cat", "dog", "truck"]


def predictions(n=60, seed=0):
    """Return probabilities of three classes, and labels drawn from a sharpened version of them."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([1.0, 1.0, 1.0], size=n)
    true = probs**2 / (probs**2).sum(axis=1, keepdims=True)
    return probs, [str(rng.choice(CLASSES, p=row)) for row in true]


def csv_text(n=60, seed=0, separator=",", header=("cat", "dog", "truck", "y")):
    """Return those predictions as CSV with the label last."""
    probs, y = predictions(n, seed)
    lines = [[*map(repr, row), label] for row, label in zip(probs.tolist(), y, strict=True)]
    return "".join(separator.join(line) + "\n" for line in [list(header), *lines])


def replaced(line, old, new, text=None):
    """Return CSV text with one line (counted from 1) changed."""
    lines = (csv_text() if text is None else text).splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return "".join(lines)


def with_line(line, new):
    """Return CSV text with a line (counted from 1) replaced."""
    lines = csv_text().splitlines(keepends=True)
    lines[line - 1] = new + "\n"
    return "".join(lines)
