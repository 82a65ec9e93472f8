"""The target "python": one file that needs Python 3.8 and its standard library, nothing else."""

from __future__ import annotations

from .._version import __version__
from ._lines import Language
from ._programs import Program

HELPERS = {
    "unit": '''
def unit(x, tolerance):
    """Divide by the sum where it is off by more than the tolerance."""
    total = math.fsum(x)
    return [a / total for a in x] if abs(total - 1.0) > tolerance else x
''',
    "floor": '''
def floor(x, least, every):
    """Raise small entries, in rows with a zero or in every row; divide such rows by their sum."""
    if not (min(x) < least and (every or 0.0 in x)):
        return x
    x = [max(a, least) for a in x]
    total = math.fsum(x)
    return [a / total for a in x]
''',
    "clamp": """
def clamp(x, low, high):
    return [min(max(a, low), high) for a in x]
""",
    "log": """
def log(x):
    return [math.log(a) for a in x]
""",
    "log1m": '''
def log1m(x):
    """log(1 - x)"""
    return [math.log1p(-a) for a in x]
''',
    "exp": """
def exp(x):
    return [math.exp(a) for a in x]
""",
    "log_logistic": '''
def log_logistic(x):
    """-log(1 + exp(-x))"""
    return [min(a, 0.0) - math.log1p(math.exp(-abs(a))) for a in x]
''',
    "minus_top": """
def minus_top(x):
    top = max(x)
    return [a - top for a in x]
""",
    "softmax": """
def softmax(x):
    e = [math.exp(a) for a in minus_top(x)]
    total = sum(e)
    return [a / total for a in e]
""",
    "log_softmax": """
def log_softmax(x):
    gaps = minus_top(x)
    log = math.log(math.fsum(math.exp(a) for a in gaps))
    return [a - log for a in gaps]
""",
    "minus": """
def minus(x, entry):
    return [a - x[entry] for a in x]
""",
    "take": """
def take(x, index):
    return [x[k] for k in index]
""",
    "scale": """
def scale(x, weight, shift):
    return [w * a + s for a, w, s in zip(x, weight, shift)]
""",
    "matrix": """
def matrix(x, weight, shift):
    return [math.fsum(w * a for w, a in zip(row, x)) + s for row, s in zip(weight, shift)]
""",
    "add": """
def add(*vectors):
    return [sum(entries) for entries in zip(*vectors)]
""",
    "steps": '''
def steps(x, edges, table):
    """The value of the bin, closed on the right, of each entry; None is the entry itself."""
    found = [t[bisect.bisect_left(e, a)] for a, e, t in zip(x, edges, table)]
    return [a if f is None else f for a, f in zip(x, found)]
''',
    "lines": '''
def lines(x, at, value):
    """Straight lines through points, constant outside of them."""
    answer = []
    for a, xs, ys in zip(x, at, value):
        k = bisect.bisect_right(xs, a)
        if k == 0 or k == len(xs):
            answer.append(ys[max(k - 1, 0)])
        else:
            part = (a - xs[k - 1]) / (xs[k] - xs[k - 1])
            answer.append(ys[k - 1] + (ys[k] - ys[k - 1]) * part)
    return answer
''',
    "share": '''
def share(q, p, present, even, least):
    """Answers q for some classes, which share what p gives to them; the others keep p."""
    row, total = list(p), math.fsum(q)
    shared = math.fsum(p[k] for k in present) if len(present) < len(p) else 1.0
    for a, k in zip(q, present):
        if total > least:
            row[k] = a / total * shared
        elif even:
            row[k] = shared / len(present)
    return row
''',
    "trees": '''
def trees(x, features, thresholds, values):
    """Sums of trees: one split of all, one of each side, and the values of four leaves."""
    total = [0.0] * len(values[0])
    for of_round in zip(features, thresholds, values):
        for k, (feature, threshold, value) in enumerate(zip(*of_round)):
            side = 1 if x[feature[0]] <= threshold[0] else 2
            goes_left = x[feature[side]] <= threshold[side]
            total[k] += value[2 * side - 2 if goes_left else 2 * side - 1]
    return total
''',
    "runs": '''
def runs(x, low, high, node, output):
    """Belief in runs of classes that follow each other in score; see mcllo's _evidential."""
    c = len(x)
    order = sorted(range(c), key=lambda k: x[k])
    ranked = [x[k] for k in order]
    answer = [0.0] * c
    sure = [0.0] * c
    for lower_theta, upper_theta, weight in zip(low, high, node):
        up, down = [0.0], [0.0]
        for theta, total in ((lower_theta, up), (upper_theta, down)):
            for a in softmax([theta * s for s in ranked]):
                total.append(total[-1] + a)
            total[:] = [a / total[-1] for a in total]
        for i in range(c):
            if output != "pignistic":
                answer[i] += weight * (up[i + 1] - down[i])
                continue
            for d in range(c - i):
                length = min(up[i + 1], down[i + d + 1]) - max(up[i], down[i + d])
                if length > 0.0:
                    for k in range(i, i + d + 1):
                        answer[k] += weight * length / (d + 1)
                    if d == 0:
                        sure[i] += weight * length
    answer = [max(a, s) for a, s in zip(answer, sure)]
    row = [0.0] * c
    for k, s in enumerate(x):
        same = [a for a, r in zip(answer, ranked) if r == s]
        row[k] = math.fsum(same) / len(same)
    total = math.fsum(row)
    return [a / total for a in row]
''',
}
PYTHON = Language(HELPERS, "{name} = {value}", "None", "True", "False", repr)

FILE = '''"""Recalibrated class probabilities: {method}, fitted and written by mcllo {version}.

Needs nothing but Python. ``predict_proba(rows)`` takes {what} for each class in
the order of ``CLASSES`` and returns recalibrated probabilities; ``predict(rows)`` the most probable
class.
"""

import bisect
import math

METHOD = {method_name}
CLASSES = {classes}

{constants}
{helpers}

def predict_row(row):
    """Return the recalibrated probabilities of one row."""
    v0 = [float(a) for a in row]
    if len(v0) != len(CLASSES):
        raise ValueError(f"a row must have {{len(CLASSES)}} numbers; got {{len(v0)}}.")
    if not all(map(math.isfinite, v0)):
        raise ValueError(f"a row must hold finite numbers; got {{v0}}.")
{checks}{body}
    return {last}


def predict_proba(rows):
    """Return the recalibrated probabilities of rows."""
    return [predict_row(row) for row in rows]


def predict(rows):
    """Return the most probable class of each row."""
    return [CLASSES[max(range(len(p)), key=p.__getitem__)] for p in predict_proba(rows)]
'''
CHECK = """    if min(v0) < 0.0 or {sum_rule}:
        raise ValueError(f"a row must hold probabilities{sum_words}; got {{v0}}.")
"""
ZERO_CHECK = """    if min(v0) == 0.0:
        raise ValueError(f"a row must hold positive probabilities; got {{v0}}.")
"""


def write_python(program: Program) -> str:
    """Return the file's text."""
    body = "\n".join(f"    {line}" for line in PYTHON.step_lines(program))
    checks = ""
    if program.input == "probs":
        loose = program.normalize
        checks = CHECK.format(
            sum_rule="sum(v0) <= 0.0" if loose else "abs(math.fsum(v0) - 1.0) > 1e-6",
            sum_words="" if loose else " that sum to 1",
        )
        checks += "" if program.zeros else ZERO_CHECK.format()
    return FILE.format(
        method=program.method,
        method_name=repr(program.method),
        version=__version__,
        what="a probability" if program.input == "probs" else "a logit",
        classes=PYTHON.literal(program.classes),
        constants="\n".join(PYTHON.constant_lines(program)),
        helpers="\n".join(PYTHON.used_helpers(program)),
        checks=checks,
        body=body,
        last=f"v{len(program.steps) - 1}",
    )
