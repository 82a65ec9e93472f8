"""`Program`: a fitted calibrator as a short list of steps on rows, which every target writes.

Each step makes a row vector of others. x, q, p are vectors; what stands in brackets are numbers
that the step carries:

================================  ==================================================================
`input`                           the row as given: probabilities, or logits
`unit` [tolerance]                ``x / sum x`` where ``|sum x - 1| > tolerance``, else x
`floor` [floor, every]            clipping (`_validation/clipping`): entries below the floor become
                                  the floor, in rows with a 0 or in every row; such rows are divided
                                  by their sum
`clamp` [low, high]               ``min(max(x, low), high)``
`log`, `log1m`, `exp`             ``log x``, ``log(1 - x)``, ``exp x``
`log_logistic`                    ``-log(1 + exp(-x))``
`softmax`                         ``exp(x_j - max x) / sum_k exp(x_k - max x)``
`log_softmax`                     its logarithm, finite where softmax is 0
`minus` [entry]                   ``x_j - x_entry``
`minus_top`                       ``x_j - max x``
`take` [index]                    ``x_index``
`scale` [weight, shift]           ``weight_j x_j + shift_j``
`matrix` [weight, shift]          ``sum_k weight_jk x_k + shift_j``
`add`                             ``x + y + ...``
`steps` [edges, table]            ``table_jm``, ``m`` the number of ``edges_j`` below ``x_j``; where
                                  the table says NaN, ``x_j`` itself
`lines` [at, value]               straight lines through the points ``(at_j, value_j)``, constant
                                  outside
`share` [present, even, least]    of answers q and a row p: ``q_j / sum q`` of what p gives to the
                                  classes `present`, the other classes keep p; where ``sum q`` is at
                                  most `least`, p, or the same for all present ones (`even`)
`trees` [features, thresholds,    sums of trees of two levels (`calibrators/_auto/boosted`):
values]                           of round r and tree k the value ``values_rk`` of the leaf that x
                                  falls in, by three splits ``x_features <= thresholds``
`runs` [low, high, node, output]  belief in classes (`calibrators/_evidential`, order "score") as
                                  pignistic or plausible probabilities
================================  ==================================================================

`run` is what they mean, in NumPy. A target (`_onnx`, `_sql`, `_javascript`, `_torch`, `_python`)
has one short rule for each; what a calibrator does is written once, in `_programs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._utils.results import Floats
from ..calibrators._auto.boosted import Trees
from ..calibrators._base import normalize_rows
from ..calibrators._evidential import PlausibleSets, belief
from ..exceptions import InputError

Value = int
"""The place of a step whose vector is meant."""


class ExportError(InputError):
    """A calibrator cannot be written in some form; the message says why, and what can.

    Parameters
    ----------
    message : str or Phrase, optional
        What must hold, and what was found. Default: a sentence made of the other arguments.
    argument, rule : str or Phrase, optional
        The name of the argument at fault, and what must hold of it.
    value : object, optional
        What was found.
    row, column : int, optional
        Zero-based place of the value; a column may also be a name.
    remedy : str or Phrase, optional
        What to do.

    See Also
    --------
    export : Raises it.
    mcllo.exceptions.InputError : Its base.
    mcllo.load_calibrator : Reads what ``save`` wrote, of every calibrator.

    Examples
    --------
    >>> error = ExportError("torch is not installed.", remedy="pip install torch")
    >>> print(error)
    torch is not installed. pip install torch
    """


@dataclass(frozen=True, eq=False)
class ProgramStep:
    """One step: what is done, to the vectors of which steps, with which numbers.

    Attributes
    ----------
    op : str
        Its name in the table above.
    of : tuple of int
        The steps whose vectors it takes.
    numbers : dict
        What it carries: arrays, lists of arrays, numbers and words.
    size : int
        Length of the vector that it makes.
    """

    op: str
    of: tuple[Value, ...]
    numbers: dict[str, Any]
    size: int


@dataclass(eq=False)
class Program:
    """Steps from a row to its recalibrated probabilities; the last step is the answer.

    Attributes
    ----------
    method : str
        The calibrator's method.
    classes : tuple
        Labels in column order.
    input : {"probs", "logits"}
        What a row holds.
    normalize : bool
        Whether rows of probabilities may have any positive sum.
    zeros : bool
        Whether a probability of 0 has an answer; without a floor it has none.
    steps : list of Step
        In the order in which they are done.
    """

    method: str
    classes: tuple[Any, ...]
    input: str
    normalize: bool = False
    zeros: bool = True
    steps: list[ProgramStep] = field(default_factory=list)

    def step(self, op: str, *of: Value, size: int | None = None, **numbers: Any) -> Value:
        """Add a step; return its place."""
        if size is None:
            size = self.steps[of[0]].size if of else len(self.classes)
        self.steps.append(ProgramStep(op, of, numbers, size))
        return len(self.steps) - 1

    def take(self, x: Value, index: Sequence[int]) -> Value:
        """Return some entries of x; x itself where that is all of them in order."""
        if list(index) == list(range(self.steps[x].size)):
            return x
        return self.step("take", x, index=[int(k) for k in index], size=len(index))

    def scale_and_shift(self, x: Value, weight: Any, shift: Any = 0.0) -> Value:
        """Return ``weight_j x_j + shift_j``."""
        weight, shift = (
            np.broadcast_to(v, self.steps[x].size).astype(float) for v in (weight, shift)
        )
        return self.step("scale", x, weight=weight, shift=shift)

    def matrix(self, x: Value, weight: Floats, shift: Any = 0.0) -> Value:
        """Return ``sum_k weight_jk x_k + shift_j``."""
        shift = np.broadcast_to(shift, len(weight)).astype(float)
        return self.step("matrix", x, weight=np.asarray(weight), shift=shift, size=len(weight))

    def affine(self, x: Value, weight: Floats, shift: Any) -> Value:
        """Return `scale_and_shift` by one number or a diagonal, else `matrix`."""
        return (self.matrix if np.ndim(weight) == 2 else self.scale_and_shift)(x, weight, shift)

    def share(
        self, q: Value, p: Value, present: Sequence[int], *, even: bool, least: float = 0.0
    ) -> Value:
        """Return the row that answers q for the classes `present` make beside the others' p."""
        numbers = {"present": [int(k) for k in present], "even": even, "least": least}
        return self.step("share", q, p, **numbers, size=len(self.classes))

    def ending(self, answer: Value) -> Program:
        """Return the program whose answer is that of a step, with the steps it needs alone."""
        needed = {answer}
        for k in range(answer, -1, -1):
            if k in needed:
                needed.update(self.steps[k].of)
        place = {old: new for new, old in enumerate(sorted(needed))}
        steps = [
            replace(self.steps[old], of=tuple(place[k] for k in self.steps[old].of))
            for old in place
        ]
        return replace(self, steps=steps)

    def run(self, rows: Any) -> Floats:
        """Return the answers to rows of shape (n, c)."""
        made: list[Floats] = []
        given = np.asarray(rows, dtype=np.float64)
        for step in self.steps:
            of = [made[k] for k in step.of] or [given]
            made.append(RUN[step.op](*of, **step.numbers))
        return made[-1]


def _unit(x: Floats, tolerance: float) -> Floats:
    total = x.sum(axis=1, keepdims=True)
    return x / np.where(np.abs(total - 1.0) > tolerance, total, 1.0)


def _floor(x: Floats, floor: float, every: bool) -> Floats:
    low = x < floor
    if not every:
        low &= (x == 0.0).any(axis=1, keepdims=True)
    lifted = np.where(low, floor, x)
    touched = low.any(axis=1, keepdims=True)
    return lifted / np.where(touched, lifted.sum(axis=1, keepdims=True), 1.0)


def _softmax(x: Floats) -> Floats:
    e = np.exp(_minus_top(x))
    return e / e.sum(axis=1, keepdims=True)


def _log_softmax(x: Floats) -> Floats:
    gaps = _minus_top(x)
    return gaps - np.log(np.exp(gaps).sum(axis=1, keepdims=True))


def _minus_top(x: Floats) -> Floats:
    return x - x.max(axis=1, keepdims=True)


def _steps(x: Floats, edges: list[Floats], table: list[Floats]) -> Floats:
    columns = zip(x.T, edges, table, strict=True)
    answer = np.stack([t[np.searchsorted(e, column)] for column, e, t in columns], axis=1)
    return np.where(np.isnan(answer), x, answer)


def _lines(x: Floats, at: list[Floats], value: list[Floats]) -> Floats:
    columns = zip(x.T, at, value, strict=True)
    return np.stack([np.interp(column, a, v) for column, a, v in columns], axis=1)


def _share(q: Floats, p: Floats, present: list[int], even: bool, least: float) -> Floats:
    answers = np.zeros_like(p)
    answers[:, present] = np.where(q.sum(axis=1, keepdims=True) > least, q, 0.0)
    absent = tuple(k for k in range(p.shape[1]) if k not in present)
    return normalize_rows(answers, p, absent=absent, zero_row="uniform" if even else "original")


def _runs(x: Floats, low: Floats, high: Floats, node: Floats, output: str) -> Floats:
    found = belief(x, PlausibleSets(0.0, low, high), "score")
    return found.betp if output == "pignistic" else found.pl / found.pl.sum(axis=1, keepdims=True)


RUN: dict[str, Any] = {
    "input": lambda x: x,
    "unit": _unit,
    "floor": _floor,
    "clamp": lambda x, low, high: np.clip(x, low, high),
    "log": np.log,
    "log1m": lambda x: np.log1p(-x),
    "exp": np.exp,
    "log_logistic": lambda x: -np.logaddexp(0.0, -x),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "minus": lambda x, entry: x - x[:, [entry]],
    "minus_top": _minus_top,
    "take": lambda x, index: x[:, index],
    "scale": lambda x, weight, shift: x * weight + shift,
    "matrix": lambda x, weight, shift: x @ weight.T + shift,
    "add": lambda *x: np.sum(x, axis=0),
    "steps": _steps,
    "lines": _lines,
    "share": _share,
    "trees": lambda x, **numbers: Trees(**numbers).sums(x.T).T,
    "runs": _runs,
}
"""What each step means."""


def refuse_trees(program: Program) -> None:
    """Refuse a program with trees, in a form that writes none."""
    if any(step.op == "trees" for step in program.steps):
        raise ExportError(
            "the trees of flexible=True are written as js and python only; fit with flexible=False "
            "for another form."
        )
