"""`Program`: what a fitted calibrator does to a row, as a short list of steps that every target
writes.

Each step makes a row vector of others. x, q, p are vectors; what stands in brackets are numbers
that the step carries:

================================  ==================================================================
`input`                           the row as given: probabilities, or logits
`unit` [tolerance]                ``x / sum x`` where ``|sum x - 1| > tolerance``, else x
`floor` [floor, every]            clipping: entries below the floor become the floor, in rows
                                  with a 0 or in every row; such rows are divided by their sum
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
`runs` [low, high, node, output]  belief in classes (`calibrators/_xu_davoine`, order "score") as
                                  pignistic or plausible probabilities
================================  ==================================================================

`Program.evaluate` is what they mean, in NumPy. A target (`_graph`, `_sql`, `_javascript`,
`_torch`, `_python`) has one short rule for each. What each calibrator does is a function of
`PROGRAMS`:

=====================  =====================================================================
rows                   ``p``: the row divided by its sum where that is off; where logarithms are
                       taken, zeros raised. Logits z as they are, ``p = softmax z``
a closed gate          p, as `identity`
temperature            ``softmax(u z)``
mcllo                  ``softmax(tau + gamma (z - z_b))``; all baselines: ``softmax(W z + a)``
vector, matrix,        ``softmax(W z + b)``; classes without labels keep p
dirichlet
auto                   ``sum_k w_k member_k``; the members see ``log g``,
                       ``g = (1 - e) softmax(u z) + e / c``; of two classes, curves of the log odds;
                       with trees of sum F and trust t,
                       ``(1 - t) q + t softmax(log q + F(log softmax z))`` of that
other frequencies      classes without labels get such a g, of their own u and e
beta                   ``logistic(a log s - b log(1 - s) + m)`` of each class, then shared
histogram, isotonic    a step function or a line of each class, then shared
xu_davoine             ``softmax(theta s)``, or belief functions in the order of the scores
=====================  =====================================================================

z are logits or log p. A new method is one function here; a new member of the pool is one function
for `_add_pool_of_members`, if it is no linear map of ``log g``. `ExportError` says why something
has no program, and what has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._fit.map import MCLLOMap
from .._utils.linalg import TINY
from .._utils.results import Floats
from .._validation.probabilities import DEFAULT_CLIP, MIN_REPORTED_ROW_ERROR
from ..calibrators._auto.boosted import Trees
from ..calibrators._base import (
    Calibrator,
    normalize_rows,
    refuse_choice_calibrator,
)
from ..calibrators._beta import MIN_PROB
from ..calibrators._xu_davoine import PlausibleSets, belief, plausibility_quadrature
from ..exceptions import InputError

Value = int
"""The place of a step whose vector is meant."""


class ExportError(InputError):
    """A calibrator cannot be written in some form; the message says why, and what can.

    Parameters
    ----------
    message : str, optional
        What must hold, and what was found. Default: a sentence made of the other arguments. With
        `values` or an `argument` a template, else said as it stands.
    argument, rule : str, optional
        The name of the argument at fault, and what must hold of it.
    value : object, optional
        What was found.
    found : str, optional
        The same in words.
    row, column : int, optional
        Zero-based place of the value; a column may also be a name.
    remedy : str, optional
        What to do.
    values : mapping, optional
        Fills the fields of message, rule and remedy.

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
    inputs : tuple of int
        The steps whose vectors it takes.
    parameters : dict
        What it carries: arrays, lists of arrays, numbers and words.
    size : int
        Length of the vector that it makes.
    """

    op: str
    inputs: tuple[Value, ...]
    parameters: dict[str, Any]
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

    def add_step(
        self, op: str, *inputs: Value, size: int | None = None, **parameters: Any
    ) -> Value:
        """Add a step; return its place."""
        if size is None:
            size = self.steps[inputs[0]].size if inputs else len(self.classes)
        self.steps.append(ProgramStep(op, inputs, parameters, size))
        return len(self.steps) - 1

    def take_entries(self, x: Value, index: Sequence[int]) -> Value:
        """Return some entries of x; x itself where that is all of them in order."""
        if list(index) == list(range(self.steps[x].size)):
            return x
        return self.add_step("take", x, index=[int(k) for k in index], size=len(index))

    def scale_and_shift(self, x: Value, weight: Any, shift: Any = 0.0) -> Value:
        """Return ``weight_j x_j + shift_j``."""
        size = self.steps[x].size
        weight = np.broadcast_to(weight, size).astype(float)
        shift = np.broadcast_to(shift, size).astype(float)
        return self.add_step("scale", x, weight=weight, shift=shift)

    def multiply_by_matrix(self, x: Value, weight: Floats, shift: Any = 0.0) -> Value:
        """Return ``sum_k weight_jk x_k + shift_j``."""
        shift = np.broadcast_to(shift, len(weight)).astype(float)
        return self.add_step(
            "matrix", x, weight=np.asarray(weight), shift=shift, size=len(weight)
        )

    def affine_map(self, x: Value, weight: Floats, shift: Any) -> Value:
        """Return `scale_and_shift` by one number or a diagonal, else `multiply_by_matrix`."""
        if np.ndim(weight) == 2:
            return self.multiply_by_matrix(x, weight, shift)
        return self.scale_and_shift(x, weight, shift)

    def share_among_present(
        self,
        q: Value,
        p: Value,
        present: Sequence[int],
        *,
        even: bool,
        least: float = 0.0,
    ) -> Value:
        """Return the row that answers q for the classes `present` make beside the others' p."""
        numbers = {"present": [int(k) for k in present], "even": even, "least": least}
        return self.add_step("share", q, p, **numbers, size=len(self.classes))

    def drop_unused_steps(self, answer: Value) -> Program:
        """Return the program whose answer is that of a step, with the steps it needs alone."""
        # backwards, as a step takes only vectors of steps before it
        needed = {answer}
        for k in range(answer, -1, -1):
            if k in needed:
                needed.update(self.steps[k].inputs)
        new_place = {old: new for new, old in enumerate(sorted(needed))}
        steps = []
        for old in new_place:
            step = self.steps[old]
            inputs = tuple(new_place[k] for k in step.inputs)
            steps.append(replace(step, inputs=inputs))
        return replace(self, steps=steps)

    def evaluate(self, rows: Any) -> Floats:
        """Return the answers to rows of shape (n, c)."""
        made: list[Floats] = []
        given = np.asarray(rows, dtype=np.float64)
        for step in self.steps:
            inputs = [made[k] for k in step.inputs] or [given]
            made.append(RUN[step.op](*inputs, **step.parameters))
        return made[-1]


def _divide_by_row_sum(x: Floats, tolerance: float) -> Floats:
    total = x.sum(axis=1, keepdims=True)
    return x / np.where(np.abs(total - 1.0) > tolerance, total, 1.0)


def _raise_to_floor(x: Floats, floor: float, every: bool) -> Floats:
    low = x < floor
    if not every:
        low &= (x == 0.0).any(axis=1, keepdims=True)
    lifted = np.where(low, floor, x)
    touched = low.any(axis=1, keepdims=True)
    return lifted / np.where(touched, lifted.sum(axis=1, keepdims=True), 1.0)


def _softmax(x: Floats) -> Floats:
    e = np.exp(_subtract_row_max(x))
    return e / e.sum(axis=1, keepdims=True)


def _log_softmax(x: Floats) -> Floats:
    gaps = _subtract_row_max(x)
    return gaps - np.log(np.exp(gaps).sum(axis=1, keepdims=True))


def _subtract_row_max(x: Floats) -> Floats:
    return x - x.max(axis=1, keepdims=True)


def _apply_step_functions(
    x: Floats, edges: list[Floats], table: list[Floats]
) -> Floats:
    answers = np.empty_like(x)
    for j in range(x.shape[1]):
        bins = np.searchsorted(edges[j], x[:, j])
        answers[:, j] = table[j][bins]
    return np.where(np.isnan(answers), x, answers)


def _interpolate_linearly(x: Floats, at: list[Floats], value: list[Floats]) -> Floats:
    answers = np.empty_like(x)
    for j in range(x.shape[1]):
        answers[:, j] = np.interp(x[:, j], at[j], value[j])
    return answers


def _share_among_present(
    q: Floats, p: Floats, present: list[int], even: bool, least: float
) -> Floats:
    answers = np.zeros_like(p)
    has_answer = q.sum(axis=1, keepdims=True) > least
    answers[:, present] = np.where(has_answer, q, 0.0)
    absent = tuple(k for k in range(p.shape[1]) if k not in present)
    return normalize_rows(
        answers, p, absent=absent, zero_row="uniform" if even else "original"
    )


def _belief_in_runs(
    x: Floats, low: Floats, high: Floats, node: Floats, output: str
) -> Floats:
    found = belief(x, PlausibleSets(0.0, low, high), "score")
    if output == "pignistic":
        return found.betp
    return found.pl / found.pl.sum(axis=1, keepdims=True)


RUN: dict[str, Any] = {
    "input": lambda x: x,
    "unit": _divide_by_row_sum,
    "floor": _raise_to_floor,
    "clamp": lambda x, low, high: np.clip(x, low, high),
    "log": np.log,
    "log1m": lambda x: np.log1p(-x),
    "exp": np.exp,
    "log_logistic": lambda x: -np.logaddexp(0.0, -x),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "minus": lambda x, entry: x - x[:, [entry]],
    "minus_top": _subtract_row_max,
    "take": lambda x, index: x[:, index],
    "scale": lambda x, weight, shift: x * weight + shift,
    "matrix": lambda x, weight, shift: x @ weight.T + shift,
    "add": lambda *x: np.sum(x, axis=0),
    "steps": _apply_step_functions,
    "lines": _interpolate_linearly,
    "share": _share_among_present,
    "trees": lambda x, **numbers: Trees(**numbers).sum_leaf_values(x.T).T,
    "runs": _belief_in_runs,
}
"""What each step means."""

STEP_FUNCTIONS = {
    "input": "keep_row",
    "unit": "divide_by_row_sum",
    "floor": "raise_to_floor",
    "clamp": "clamp",
    "log": "log",
    "log1m": "log_of_one_minus",
    "exp": "exponential",
    "log_logistic": "log_logistic",
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "minus": "subtract_entry",
    "minus_top": "subtract_row_max",
    "take": "take_entries",
    "scale": "scale_and_shift",
    "matrix": "multiply_by_matrix",
    "add": "add_vectors",
    "steps": "apply_step_functions",
    "lines": "interpolate_linearly",
    "share": "share_among_present",
    "runs": "belief_in_runs",
}
"""The methods that write each step in `_graph` and `_sql`; trees have none there."""


def refuse_trees(program: Program) -> None:
    """Refuse a program with trees, in a form that writes none."""
    if any(step.op == "trees" for step in program.steps):
        raise ExportError(
            "the trees of flexible=True are written as js and python only; fit with flexible=False "
            "for another form."
        )


def build_program(calibrator: Calibrator, input: str | None = None) -> Program:
    """Return the program of a fitted calibrator.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted one.
    input : {"probs", "logits"}, optional
        What rows will hold; by default what the calibrator was fitted to. The answer is that of
        ``predict_proba(logits=...)`` or of ``predict_proba(probs)``.
    """
    refuse_choice_calibrator(calibrator)
    classes = tuple(calibrator.classes_.tolist())
    given = calibrator.input_ if input is None else input
    if given not in ("probs", "logits"):
        raise InputError(argument="input", rule="be 'probs' or 'logits'", value=input)
    if calibrator.input == "logits" and given == "probs":
        raise ExportError(
            f"this {calibrator.method} map was fitted to logits, and probabilities do not tell "
            "what was added to a row's logits. Export it for logits, or fit it to probabilities "
            "(on='log_probs')."
        )
    normalize = bool(getattr(calibrator, "normalize", False))
    program = Program(calibrator.method, classes, given, normalize=normalize)
    # z are logits or log p, and p are probabilities. A step that nothing needs is left out at the
    # end, so that both can be made here.
    z = p = program.add_step("input")
    if given == "logits":
        p = program.add_step("softmax", z)
        if calibrator.input == "probs":
            # finite where a probability is too small for a number, so that none is clipped
            z = program.add_step("log_softmax", z)
    else:
        p = program.add_step("unit", p, tolerance=MIN_REPORTED_ROW_ERROR)
        if calibrator.needs_logs:
            p = _add_clipping(program, calibrator, p)
            z = program.add_step("log", p)
    gate_is_closed = bool(getattr(calibrator, "_closed", False))
    q = p if gate_is_closed else PROGRAMS[calibrator.method](program, calibrator, z, p)
    answer = _add_prior_shift(program, calibrator, q, z, p)
    return program.drop_unused_steps(answer)


def build_log_probs_program(classes: tuple[Any, ...]) -> Program:
    """Return the program of ``log p`` with zeros raised by the default rule."""
    program = Program("log", classes, "probs")
    row = program.add_step("input")
    p = program.add_step("unit", row, tolerance=MIN_REPORTED_ROW_ERROR)
    p = program.add_step("floor", p, floor=DEFAULT_CLIP, every=False)
    program.add_step("log", p)
    return program


def _add_clipping(program: Program, calibrator: Any, p: Value) -> Value:
    """Return p after clipping."""
    clip = getattr(calibrator, "clip_", None) or getattr(calibrator, "clip", None)
    if clip == 0.0:  # nothing is raised: log 0 has no answer
        program.zeros = False
        return p
    floor = DEFAULT_CLIP if clip is None else float(clip)
    return program.add_step("floor", p, floor=floor, every=clip is not None)


def _keep_probs(program: Program, calibrator: Any, z: Value, p: Value) -> Value:
    return p


def _add_temperature_scaling(
    program: Program, calibrator: Any, z: Value, p: Value
) -> Value:
    scaled = program.scale_and_shift(z, calibrator.inverse_temperature_)
    return program.add_step("softmax", scaled)


def _add_mcllo_map(program: Program, calibrator: Any, z: Value, p: Value) -> Value:
    fit = calibrator.fit_
    if isinstance(fit, MCLLOMap):
        b = fit.baseline_index
        tau = np.insert(fit.tau, b, 0.0)
        gamma = np.insert(fit.gamma, b, 1.0)
        log_odds = program.add_step("minus", z, entry=b)
        eta = program.scale_and_shift(log_odds, gamma, tau)
        return program.add_step("softmax", eta)
    below_top = program.add_step("minus_top", z)
    eta = program.multiply_by_matrix(below_top, fit.weights, fit.intercepts)
    return program.add_step("softmax", eta)


def _add_linear_map(program: Program, calibrator: Any, z: Value, p: Value) -> Value:
    linear = calibrator.map_
    c = len(program.classes)
    # A class without labels has no parameters: it keeps its p, and the others share the rest.
    present = [k for k in range(c) if k not in linear.absent]
    intercept = linear.intercept[present]
    if linear.coef.ndim == 2:
        eta = program.multiply_by_matrix(z, linear.coef[present], intercept)
    else:
        weight = np.broadcast_to(linear.coef, c)[present]
        eta = program.scale_and_shift(
            program.take_entries(z, present), weight, intercept
        )
    q = program.add_step("softmax", eta)
    if not linear.absent:
        return q
    return program.share_among_present(q, p, present, even=False)


def _columns_of_seen_classes(program: Program, calibrator: Any) -> list[int]:
    """Return the columns of classes that labels had."""
    return [k for k in range(len(program.classes)) if k not in calibrator.absent_]


def _add_beta_calibration(
    program: Program, calibrator: Any, z: Value, p: Value
) -> Value:
    present = _columns_of_seen_classes(program, calibrator)
    a, b, m = calibrator.coef_[present].T
    s = program.add_step(
        "clamp", program.take_entries(p, present), low=MIN_PROB, high=1.0 - MIN_PROB
    )
    a_log_s = program.scale_and_shift(program.add_step("log", s), a, m)
    b_log_1_minus_s = program.scale_and_shift(program.add_step("log1m", s), -b)
    log_odds = program.add_step("add", a_log_s, b_log_1_minus_s)
    logs = program.add_step("log_logistic", log_odds)
    # relative to the largest: of many tiny probabilities none may become 0 before they are shared
    q = program.add_step("exp", program.add_step("minus_top", logs))
    return program.share_among_present(
        q, p, present, even=calibrator.zero_row == "uniform"
    )


def _add_histogram_binning(
    program: Program, calibrator: Any, z: Value, p: Value
) -> Value:
    present = _columns_of_seen_classes(program, calibrator)
    edges = [calibrator.edges_[k] for k in present]
    table = [calibrator.table_[k] for k in present]
    q = program.add_step(
        "steps", program.take_entries(p, present), edges=edges, table=table
    )
    return program.share_among_present(
        q, p, present, even=calibrator.zero_row == "uniform"
    )


def _add_isotonic_calibration(
    program: Program, calibrator: Any, z: Value, p: Value
) -> Value:
    present = _columns_of_seen_classes(program, calibrator)
    at = [calibrator.knots_[k][0] for k in present]
    value = [calibrator.knots_[k][1] for k in present]
    q = program.add_step("lines", program.take_entries(p, present), at=at, value=value)
    return program.share_among_present(
        q, p, present, even=calibrator.zero_row == "uniform"
    )


def _add_xu_davoine(program: Program, calibrator: Any, z: Value, p: Value) -> Value:
    s = z if calibrator.scores == "log" else p
    if calibrator.output == "plug_in":
        scaled = program.scale_and_shift(s, calibrator.theta_)
        return program.add_step("softmax", scaled)
    if calibrator.order != "score":
        raise ExportError(
            f"order={calibrator.order!r} of xu_davoine searches each row for where its bounds "
            "turn, which is a search and no formula; fit it with order='score' or "
            "output='plug_in' to export it."
        )
    sets = calibrator.sets_
    _, node_weights = plausibility_quadrature()
    return program.add_step(
        "runs",
        s,
        low=sets.low,
        high=sets.high,
        node=node_weights,
        output=calibrator.output,
    )


def _add_pool_of_members(
    program: Program, calibrator: Any, z: Value, p: Value
) -> Value:
    stack = calibrator.stack_
    members = stack.members
    g = _add_temperature_with_lapse(program, members.soft, z)
    logs = program.add_step("log", g)
    answers = {"identity": p, "temperature": g}
    for name in members.names[2:]:
        if name == "similar":  # and the full maps build on it
            logs = _add_similarity_member(program, members.similar, logs, g)
            answers[name] = program.add_step("exp", logs)
        elif name in members.curves:
            answers[name] = _add_log_odds_curve(program, members.curves[name], logs)
        elif stack.weights[name] > 0.0:
            answers[name] = _add_linear_member(program, members.maps[name], logs)
    parts = []
    for name, answer in answers.items():
        weight = stack.weights[name]
        if weight > 0.0:
            parts.append(program.scale_and_shift(answer, weight))
    total = program.add_step("add", *parts)
    q = program.add_step("unit", total, tolerance=-1.0)  # divides every row by its sum
    correction = stack.correction
    if correction is None or correction.trees is None:
        return q
    return _add_tree_correction(program, correction, z, q)


def _add_tree_correction(
    program: Program, correction: Any, z: Value, q: Value
) -> Value:
    """Return the pool's answer q with trees on it."""
    trees = correction.trees
    numbers = {
        "features": trees.features,
        "thresholds": trees.thresholds,
        "values": trees.values,
    }
    if len(program.classes) == 2:
        # trees of the log odds, whose sum is the first class's
        log_odds = program.multiply_by_matrix(z, np.array([[1.0, -1.0]]))
        sums = program.add_step("trees", log_odds, **numbers, size=1)
        sums = program.multiply_by_matrix(sums, np.array([[1.0], [0.0]]))
    else:
        log_p = program.add_step("log_softmax", z)
        sums = program.add_step("trees", log_p, **numbers)
    # raised as the calibrator does it: of a 0 the logarithm would be -inf
    positive_q = program.add_step("clamp", q, low=TINY, high=1.0)
    log_q = program.add_step("log", positive_q)
    eta = program.add_step("add", log_q, sums)
    corrected = program.add_step("softmax", eta)
    trust = correction.trust
    kept_part = program.scale_and_shift(q, 1.0 - trust)
    corrected_part = program.scale_and_shift(corrected, trust)
    return program.add_step("add", kept_part, corrected_part)


def _add_temperature_with_lapse(
    program: Program, temperature_with_lapse: Any, z: Value
) -> Value:
    """Return a temperature with a lapse rate e: ``(1 - e) softmax(u z) + e / c``."""
    lapse = temperature_with_lapse.slip
    sharp = program.add_step(
        "softmax",
        program.scale_and_shift(z, temperature_with_lapse.inverse_temperature),
    )
    return program.scale_and_shift(sharp, 1.0 - lapse, lapse / len(program.classes))


def _add_similarity_member(
    program: Program, member: Any, log_g: Value, g: Value
) -> Value:
    """Return the log of the member that knows which classes are similar, A its similarity.

    ``log_softmax((1 + b_3) log g + b_0 A log g + intercept + b_1 A g + b_2 g + b_4 log(A g))``
    """
    A = member.similarity
    b = member.shared
    identity = np.eye(len(program.classes))
    A_g = program.multiply_by_matrix(g, A)
    of_logs = program.multiply_by_matrix(
        log_g, (1.0 + b[3]) * identity + b[0] * A, member.intercept
    )
    of_g = program.multiply_by_matrix(g, b[1] * A + b[2] * identity)
    of_log_A_g = program.scale_and_shift(program.add_step("log", A_g), b[4])
    return program.add_step(
        "log_softmax", program.add_step("add", of_logs, of_g, of_log_A_g)
    )


def _add_log_odds_curve(program: Program, curve: Any, log_g: Value) -> Value:
    """Return the member whose log odds, of two classes, are a curve of those of g."""
    odds = program.multiply_by_matrix(log_g, np.array([[-1.0, 1.0]]))
    bent = program.add_step("lines", odds, at=[curve.at], value=[curve.value])
    eta = program.multiply_by_matrix(bent, np.array([[-0.5], [0.5]]))
    return program.add_step("softmax", eta)


def _add_prior_shift(
    program: Program, calibrator: Any, q: Value, z: Value, p: Value
) -> Value:
    """Return q for the class frequencies asked for, as `calibrators/_label_shift` does."""
    learned = getattr(calibrator, "learned_", None)
    if learned is None:
        return q
    prior_kind = getattr(calibrator, "_prior_kind", "fit")
    every = range(len(program.classes))
    # Nothing was learned of classes without labels: they keep p, or what a temperature makes of it.
    if learned.kept:
        present = [k for k in every if k not in learned.kept]
        h = p
        if learned.tempered is not None:
            h = _add_temperature_with_lapse(program, learned.tempered, z)
        q_present = program.take_entries(q, present)
        q = program.share_among_present(q_present, h, present, even=False, least=TINY)
    for offset in _log_frequency_ratios(calibrator, learned, prior_kind):
        weighted = program.scale_and_shift(q, np.exp(offset - offset.max()))
        # a row of 0 stays as it is
        q = program.share_among_present(weighted, q, every, even=False, least=TINY)
    return q


def _log_frequency_ratios(
    calibrator: Any, learned: Any, prior_kind: str
) -> list[Floats]:
    """Return what the log probabilities are moved by, one after the other, for other frequencies.

    First from those of the fit to the reference, then from there to those to come.
    """
    if prior_kind == "fit":
        return []
    if prior_kind == "unlabelled" and calibrator.new_shares_ is None:
        raise ExportError(
            "prior='unlabelled' estimates class frequencies from all rows to come, and a form sees "
            "one row at a time. Call adapt(X) with rows to come first, then export."
        )
    if prior_kind == "unlabelled":
        frequencies = calibrator.new_shares_.shares
    elif prior_kind == "frequencies":
        frequencies = calibrator.prior
    else:
        return [learned.offset]
    shares = np.asarray(frequencies, dtype=float)
    with np.errstate(divide="ignore"):  # a class that is not to come
        to_come = np.log(shares / shares.sum()) - np.log(learned.reference)
    return [learned.offset, to_come]


def _add_linear_member(program: Program, coefficients: Any, log_g: Value) -> Value:
    """Return ``softmax(theta (log g, 1))``; two columns are a weight and an intercept."""
    c = len(program.classes)
    if np.shape(coefficients) not in ((c, 2), (c, c + 1)):
        raise ExportError(
            "a member of this pool is no linear map of log g, and `export/_programs` does not "
            "know it; export a single method, such as mcllo or temperature."
        )
    weight = coefficients[:, 0] if coefficients.shape[1] == 2 else coefficients[:, :-1]
    return program.add_step(
        "softmax", program.affine_map(log_g, weight, coefficients[:, -1])
    )


PROGRAMS: dict[str, Callable[[Program, Any, Value, Value], Value]] = {
    "identity": _keep_probs,
    "temperature": _add_temperature_scaling,
    "mcllo": _add_mcllo_map,
    "vector": _add_linear_map,
    "matrix": _add_linear_map,
    "dirichlet": _add_linear_map,
    "auto": _add_pool_of_members,
    "beta": _add_beta_calibration,
    "histogram": _add_histogram_binning,
    "isotonic": _add_isotonic_calibration,
    "xu_davoine": _add_xu_davoine,
}
"""From the scores z and the probabilities p to the answer; by method."""
