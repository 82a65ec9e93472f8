"""The target "onnx": plain operators of opset 18, and recalibrations appended to what is ONNX
already.

================  ==================================================================================
`write_onnx`      a model: input ``probabilities`` or ``logits`` of shape (any, c); outputs
                  ``label`` and ``calibrated``
float32           rows go in and come out as float32; between, numbers are float64, because
                  logarithms of tiny numbers and edges of bins need them. ``inside="float32"`` is
                  for hardware without float64: it rounds
`append_to_onnx`  the recalibration behind a classifier's probabilities, also where a ZipMap made
                  dictionaries of them
================  ==================================================================================

`Graph` has one rule for each step of a `Program`, under its name; rows are tensors of shape (n, c).
`ReduceMax` and `ReduceMin` took their axes as an attribute before opset 18; everything else is the
same from opset 13 on. Class names and the method are in the model's metadata.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._utils.optional import ONNX_EXTRA, import_optional
from .._version import __version__
from ..exceptions import FileFormatError, InputError
from ._programs import ExportError, Program, refuse_trees

DEFAULT_OPSET = 18
"""The first in which `ReduceMax` and `ReduceMin` take their axes as inputs."""
MIN_OPSET = 13
"""The first in which `ReduceSum`, `Squeeze` and `Unsqueeze` take their axes as inputs."""
NODE_PREFIX = "mcllo_"


@dataclass(frozen=True, eq=False)
class Tensor:
    """What a node makes: arithmetic adds nodes to its graph, and numbers become constants."""

    graph: Graph
    name: str
    __array_ufunc__ = None  # an array on the left leaves the operation to us

    def __add__(self, other: Any) -> Tensor:
        return self.graph.node("Add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return self.graph.node("Add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return self.graph.node("Sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Any) -> Tensor:
        return self.graph.node("Div", self, other)

    def __neg__(self) -> Tensor:
        return self.graph.node("Neg", self)

    def __abs__(self) -> Tensor:
        return self.graph.node("Abs", self)

    def __lt__(self, other: Any) -> Tensor:
        return self.graph.node("Less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return self.graph.node("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return self.graph.node("Greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return self.graph.node("GreaterOrEqual", self, other)


class Graph:
    """Nodes and constants of a graph as they are added; `kind` is the dtype inside."""

    def __init__(
        self,
        n_classes: int,
        kind: str = "float64",
        prefix: str = NODE_PREFIX,
        opset: int = DEFAULT_OPSET,
    ) -> None:
        self.onnx = import_optional("onnx", ONNX_EXTRA)
        if opset < MIN_OPSET:
            remedy = "Convert whole classifiers with target_opset=18."
            rule = f"be {MIN_OPSET} or later"
            raise InputError(argument="opset", rule=rule, value=opset, remedy=remedy)
        self.n_classes = n_classes
        self.kind = np.dtype(kind)
        self.prefix = prefix
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(
        self, op: str, *inputs: Any, out: str | None = None, **attributes: Any
    ) -> Tensor:
        """Add a node; return its output. Inputs are tensors, their names, or numbers."""
        names = [self._name(part) for part in inputs]
        output = out or f"{self.prefix}{op.lower()}_{len(self.nodes)}"
        name = f"{self.prefix}node_{len(self.nodes)}"
        made = self.onnx.helper.make_node(op, names, [output], name=name, **attributes)
        self.nodes.append(made)
        return Tensor(self, output)

    def _name(self, part: Any) -> str:
        if isinstance(part, str):
            return part
        tensor = part if isinstance(part, Tensor) else self.constant(part)
        return tensor.name

    def constant(self, value: Any, dtype: Any = None) -> Tensor:
        """Add a constant, of the dtype inside unless another is given."""
        array = np.array(value, dtype=self.kind if dtype is None else dtype)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return Tensor(self, name)

    def index(self, value: Any) -> Tensor:
        """Add a constant of whole numbers, as axes and places are."""
        return self.constant(value, np.int64)

    def cast(self, x: Tensor | str, dtype: Any, out: str | None = None) -> Tensor:
        """Return x as another type."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", x, to=kind, out=out)

    def where(self, condition: Tensor, yes: Any, no: Any) -> Tensor:
        """Return one where a condition holds, else the other; both are computed."""
        return self.node("Where", condition, yes, no)

    def larger(self, x: Tensor, y: Any) -> Tensor:
        """Return the larger of two, entry by entry."""
        return self.node("Max", x, y)

    def smaller(self, x: Tensor, y: Any) -> Tensor:
        """Return the smaller of two, entry by entry."""
        return self.node("Min", x, y)

    def total(self, x: Tensor) -> Tensor:
        """Return the sum of each row, shape (n, 1)."""
        return self.node("ReduceSum", x, self.index([1]), keepdims=1)

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest entry of the last axis, which is kept."""
        return self._reduce("ReduceMax", x)

    def smallest(self, x: Tensor) -> Tensor:
        """Return the smallest entry of the last axis, which is kept."""
        return self._reduce("ReduceMin", x)

    def _reduce(self, op: str, x: Tensor) -> Tensor:
        if self.opset < 18:
            return self.node(op, x, axes=[-1], keepdims=1)
        return self.node(op, x, self.index([-1]), keepdims=1)

    def slice(self, x: Tensor, start: int, stop: int) -> Tensor:
        """Return some entries of the last axis."""
        return self.node(
            "Slice", x, self.index([start]), self.index([stop]), self.index([-1])
        )

    def pad(self, x: Tensor, before: int, after: int, axes: int) -> Tensor:
        """Return x with zeros before and after its last axis."""
        room = np.zeros((2, axes), dtype=np.int64)
        room[:, -1] = before, after
        return self.node("Pad", x, self.index(room.ravel()), 0.0)

    def run(self, program: Program, rows: Tensor | str) -> Tensor:
        """Add all steps of a program on rows of the dtype inside; return the answer."""
        refuse_trees(program)
        x = rows if isinstance(rows, Tensor) else Tensor(self, rows)
        made: list[Tensor] = []
        for step in program.steps:
            rule = getattr(self, step.op)
            given = [made[k] for k in step.of] or [x]
            made.append(rule(*given, **step.numbers))
        return made[-1]

    # the steps

    def input(self, x: Tensor) -> Tensor:
        return x

    def unit(self, x: Tensor, tolerance: float) -> Tensor:
        total = self.total(x)
        if tolerance < 0.0:
            return x / total
        is_off = abs(total - 1.0) > tolerance
        return x / self.where(is_off, total, 1.0)

    def floor(self, x: Tensor, floor: float, every: bool) -> Tensor:
        is_low = x < floor
        if not every:
            has_zero = self.smallest(x) <= 0.0
            is_low = self.node("And", is_low, has_zero)
        raised = self.where(is_low, floor, x)
        any_low = self.largest(
            self.cast(is_low, np.float32)
        )  # there is no maximum of truth values
        any_low = self.cast(any_low, np.bool_)
        return raised / self.where(any_low, self.total(raised), 1.0)

    def clamp(self, x: Tensor, low: float, high: float) -> Tensor:
        return self.smaller(self.larger(x, low), high)

    def log(self, x: Tensor) -> Tensor:
        return self.node("Log", x)

    def log1m(self, x: Tensor) -> Tensor:
        return self.log(1.0 - x)

    def exp(self, x: Tensor) -> Tensor:
        return self.node("Exp", x)

    def log_logistic(self, x: Tensor) -> Tensor:
        log = self.log(1.0 + self.exp(-abs(x)))  # the exponential never overflows
        return self.smaller(x, 0.0) - log

    def softmax(self, x: Tensor) -> Tensor:
        e = self.exp(self.minus_top(x))
        return e / self.total(e)

    def log_softmax(self, x: Tensor) -> Tensor:
        gaps = self.minus_top(x)
        total = self.total(self.exp(gaps))
        return gaps - self.log(total)

    def minus(self, x: Tensor, entry: int) -> Tensor:
        return x - self.slice(x, entry, entry + 1)

    def minus_top(self, x: Tensor) -> Tensor:
        return x - self.largest(x)

    def take(self, x: Tensor, index: list[int]) -> Tensor:
        return self.node("Gather", x, self.index(index), axis=1)

    def scale(self, x: Tensor, weight: Any, shift: Any) -> Tensor:
        scaled = x * weight if (weight != 1.0).any() else x
        return scaled + shift if shift.any() else scaled

    def matrix(self, x: Tensor, weight: Any, shift: Any) -> Tensor:
        product = self.node("MatMul", x, weight.T)
        return product + shift if shift.any() else product

    def add(self, *x: Tensor) -> Tensor:
        return self.node("Sum", *x)

    def steps(self, x: Tensor, edges: list[Any], table: list[Any]) -> Tensor:
        columns = []
        for j, (edge, answer) in enumerate(zip(edges, table, strict=True)):
            own = self.slice(x, j, j + 1)
            limits = (
                edge if len(edge) else np.array([np.inf])
            )  # a single bin: nothing is above
            is_above = self.cast(own > limits, self.kind)
            place = self.cast(self.total(is_above), np.int64)
            found = self.node("Gather", answer, place, axis=0)
            if np.isnan(answer).any():
                found = self.where(self.node("IsNaN", found), own, found)
            columns.append(found)
        return self.node("Concat", *columns, axis=1)

    def lines(self, x: Tensor, at: list[Any], value: list[Any]) -> Tensor:
        columns = []
        for j, (place, height) in enumerate(zip(at, value, strict=True)):
            own = self.slice(x, j, j + 1)
            if len(place) == 1:
                columns.append(own * 0.0 + height)
                continue
            inside = self.clamp(own, place[0], place[-1])
            is_past = inside >= place[1:-1]
            pieces = (place[:-1], np.diff(place), height[:-1], np.diff(height))
            if len(place) == 2:
                start, width, low, rise = [self.constant(piece) for piece in pieces]
            else:
                n_past = self.total(self.cast(is_past, self.kind))
                k = self.cast(n_past, np.int64)
                start, width, low, rise = [
                    self.node("Gather", piece, k, axis=0) for piece in pieces
                ]
            part = (inside - start) / width
            columns.append(low + rise * part)
        return self.node("Concat", *columns, axis=1)

    def share(
        self, q: Tensor, p: Tensor, present: list[int], even: bool, least: float
    ) -> Tensor:
        absent = [k for k in range(self.n_classes) if k not in present]
        total = self.total(q)
        kept = self.take(p, present)
        shared = self.total(kept) if absent else self.constant([[1.0]])
        instead = shared / float(len(present)) if even else kept
        has_answer = total > least
        divisor = self.where(has_answer, total, 1.0)
        row = self.where(has_answer, q / divisor * shared, instead)
        if not absent:
            return row
        both = self.node("Concat", row, self.take(p, absent), axis=1)
        order = np.argsort([*present, *absent])
        return self.take(both, order.tolist())

    def runs(self, x: Tensor, low: Any, high: Any, node: Any, output: str) -> Tensor:
        c = self.n_classes
        ranked = f"{self.prefix}ranked_{len(self.nodes)}"
        inputs = [x.name, self.index([c]).name]
        outputs = [ranked, f"{ranked}_order"]
        top_k = self.onnx.helper.make_node("TopK", inputs, outputs, axis=1, largest=0)
        self.nodes.append(top_k)
        rows = self.node("Unsqueeze", ranked, self.index([1]))
        up = self._cumulated(rows, low)
        down = self._cumulated(rows, high)
        if output == "pignistic":
            answer = self._pignistic(up, down, node)
        else:
            gap = self.slice(up, 1, c + 1) - self.slice(down, 0, c)
            answer = self._mean_over_nodes(gap, node)
        # Back to the order of the columns, by their scores; equal ones share their mean.
        own = self.node("Unsqueeze", x, self.index([2]))
        is_same = self.cast(self.node("Equal", own, rows), self.kind)
        column = self.node("Unsqueeze", answer, self.index([2]))
        sums = self.node("MatMul", is_same, column)
        row = self.node("Squeeze", sums, self.index([2]))
        row = row / self.node("ReduceSum", is_same, self.index([2]), keepdims=0)
        return row / self.total(row)

    def _cumulated(self, rows: Tensor, theta: Any) -> Tensor:
        """Return the cumulated softmax of ranked scores at every node, from 0 to 1."""
        c = self.n_classes
        eta = rows * theta[None, :, None]
        sums = self.node("CumSum", self.exp(self.minus_top(eta)), self.index(2))
        return self.pad(sums / self.slice(sums, c - 1, c), 1, 0, 3)

    def _mean_over_nodes(self, y: Tensor, node: Any) -> Tensor:
        """Return the integral by its nodes' weights."""
        weighted = y * node[None, :, None]
        return self.node("ReduceSum", weighted, self.index([1]), keepdims=0)

    def _pignistic(self, up: Tensor, down: Tensor, node: Any) -> Tensor:
        """Return what each class gets when the mass of every run of d + 1 classes is shared."""
        c = self.n_classes
        single = up
        change = up
        for d in range(c):
            top = self.smaller(
                self.slice(up, 1, c + 1 - d), self.slice(down, d + 1, c + 1)
            )
            bottom = self.larger(self.slice(up, 0, c - d), self.slice(down, d, c))
            length = self.larger(top - bottom, 0.0)
            mass = self._mean_over_nodes(length, node)
            part = mass / float(d + 1)
            # from where a run begins to where it ends: sums of these changes are the shares
            run_change = self.pad(part, 0, d + 1, 2) - self.pad(part, d + 1, 0, 2)
            if d == 0:
                single = mass
                change = run_change
            else:
                change = change + run_change
        shares = self.node("CumSum", self.slice(change, 0, c), self.index(1))
        return self.larger(shares, single)  # rounding must not take from what is sure


def graph_label(
    graph: Graph, classes: tuple[Any, ...], answer: Tensor, out: str
) -> int:
    """Add the most probable class, the first of equals, as `out`; return its type."""
    best = graph.node("ArgMax", answer, axis=1, keepdims=0)
    if all(isinstance(label, int) for label in classes):
        kind = graph.onnx.TensorProto.INT64
        labels = graph.index(classes).name
    else:
        kind = graph.onnx.TensorProto.STRING
        labels = f"{graph.prefix}labels"
        text = [str(label).encode() for label in classes]
        graph.constants.append(
            graph.onnx.helper.make_tensor(labels, kind, [len(text)], text)
        )
    graph.node("Gather", labels, best, axis=0, out=out)
    return int(kind)


DTYPES = ("float64", "float32")
DISCONTINUOUS_STEPS = {"steps", "lines", "clamp"}
"""Steps that float32 is too coarse for: wrong by up to 0.4 in tests, where others are by 1e-5."""


def write_onnx(
    program: Program,
    *,
    dtype: str = "float64",
    inside: str = "float64",
    opset: int = DEFAULT_OPSET,
) -> Any:
    """Return the model, checked by ``onnx.checker``.

    Parameters
    ----------
    program : Program
        What it computes.
    dtype : {"float64", "float32"}
        Of its input and its output.
    inside : {"float64", "float32"}
        Of all numbers between.
    opset : int
        Version of the operators, 13 or later.
    """
    for name, value in (("dtype", dtype), ("inside", inside)):
        if value not in DTYPES:
            raise InputError(
                argument=name, rule="be 'float64' or 'float32'", value=value
            )
    if (
        inside == "float32"
        and {step.op for step in program.steps} & DISCONTINUOUS_STEPS
    ):
        raise ExportError(
            f"{program.method} needs float64 inside: in float32 a probability beside the edge of a "
            "bin, or near 1, gets another answer. Leave inside= out; dtype='float32' reads and "
            "writes float32."
        )
    graph = Graph(len(program.classes), inside, opset=opset)
    name = "probabilities" if program.input == "probs" else "logits"
    # float64 inside also where rows are float32: log of a tiny number, and edges of bins, need it
    rows = name if dtype == inside else graph.cast(name, inside)
    answer = graph.run(program, rows)
    graph.cast(answer, dtype, out="calibrated")
    label = graph_label(graph, program.classes, answer, "label")
    helper = graph.onnx.helper
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["rows", len(program.classes)]
    body = helper.make_graph(
        graph.nodes,
        "mcllo",
        [helper.make_tensor_value_info(name, kind, shape)],
        [
            helper.make_tensor_value_info("label", label, ["rows"]),
            helper.make_tensor_value_info("calibrated", kind, shape),
        ],
        graph.constants,
    )
    model = helper.make_model(
        body,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,  # of opset 18
        producer_name="mcllo",
        producer_version=__version__,
    )
    told = {"method": program.method, "classes": json.dumps(list(program.classes))}
    helper.set_model_props(model, told)
    graph.onnx.checker.check_model(model, full_check=True)
    return model


def append_to_onnx(model: Any, program: Program, output: str | None = None) -> Any:
    """Return an ONNX classifier whose probabilities are recalibrated, under the same names.

    Parameters
    ----------
    model : onnx.ModelProto
        The classifier. It is not changed.
    program : Program
        The recalibration; its classes must be those of the model's columns, in their order.
    output : str, optional
        The output to recalibrate, where several could hold probabilities: a tensor of shape (rows,
        c) or what a ZipMap made of one. An output of labels is made anew from the recalibrated
        ones.
    """
    onnx = import_optional("onnx", ONNX_EXTRA)
    recalibrated = onnx.ModelProto()
    recalibrated.CopyFrom(model)
    body = recalibrated.graph
    opset = _opset(recalibrated, onnx)
    found = _probabilities(body, program, output)
    zipmap = _maker(body, found.name, "ZipMap")
    if zipmap is None:
        tensor = found.name
        kind = found.type.tensor_type.elem_type
    else:
        _check_zipmap(zipmap, program)
        tensor = zipmap.input[0]
        kind = onnx.TensorProto.FLOAT
    # names of nodes are unique in a graph
    prefix = NODE_PREFIX
    while any(name.startswith(prefix) for node in body.node for name in node.output):
        prefix += "_"  # recalibrated once before
    graph = Graph(len(program.classes), "float64", prefix, opset)

    # The classifier's probabilities get another name, and the recalibrated ones take theirs.
    raw = f"{prefix}{tensor}"
    for node in body.node:
        _rename(node.input, tensor, raw)
        _rename(node.output, tensor, raw)
    answer = graph.run(program, graph.cast(raw, "float64"))
    graph.cast(answer, onnx.helper.tensor_dtype_to_np_dtype(kind), out=tensor)
    if zipmap is not None:
        _rename(zipmap.input, raw, tensor)
    labels = [
        one for one in body.output if one.name != found.name and _is_label(one, onnx)
    ]
    if labels:
        label = labels[0]
        for node in body.node:
            _rename(node.output, label.name, f"{prefix}{label.name}")
            _rename(node.input, label.name, f"{prefix}{label.name}")
        label.type.tensor_type.elem_type = graph_label(
            graph, program.classes, answer, label.name
        )
    body.initializer.extend(graph.constants)

    # Nodes stand in the order in which they are computed: dictionaries are made last.
    zipmaps = [node for node in body.node if node.op_type == "ZipMap"]
    others = [node for node in body.node if node.op_type != "ZipMap"]
    del body.node[:]
    body.node.extend([*others, *graph.nodes, *zipmaps])
    onnx.checker.check_model(recalibrated)
    return recalibrated


def _opset(model: Any, onnx: Any) -> int:
    """Return the version of a model's plain operators; give it one where it has none."""
    version = 0
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx"):
            version = opset.version
            break
    if version == 0:
        model.opset_import.append(onnx.helper.make_opsetid("", DEFAULT_OPSET))
        return DEFAULT_OPSET
    if version < MIN_OPSET:
        raise FileFormatError(
            f"the model must use opset 13 or later; it uses {version}. Convert it again with "
            "target_opset=18."
        )
    return int(version)


def _maker(body: Any, name: str, op: str) -> Any:
    """Return the node of an operator that makes an output; None where another does."""
    for node in body.node:
        if node.op_type == op and name in node.output:
            return node
    return None


def _rename(names: Any, old: str, new: str) -> None:
    for k, name in enumerate(names):
        if name == old:
            names[k] = new


def _is_label(output: Any, onnx: Any) -> bool:
    kinds = (onnx.TensorProto.INT64, onnx.TensorProto.STRING)
    return (
        output.type.HasField("tensor_type")
        and output.type.tensor_type.elem_type in kinds
    )


def _probabilities(body: Any, program: Program, output: str | None) -> Any:
    """Return the output to recalibrate."""
    c = len(program.classes)
    fit = []
    for one in body.output:
        shape = one.type.tensor_type.shape.dim
        is_float = one.type.tensor_type.elem_type in (
            1,
            10,
            11,
        )  # of 32, 16 and 64 bits
        is_row = (
            is_float and len(shape) == 2 and shape[1].dim_value in (0, c)
        )  # 0: not said
        if is_row or _maker(body, one.name, "ZipMap") is not None:
            fit.append(one)
    if output is not None:
        fit = [one for one in fit if one.name == output]
    if len(fit) != 1:
        names = [one.name for one in body.output]
        raise InputError(
            argument="output",
            rule=f"name an output of shape (rows, {c}); the model has {{names}}",
            value=output,
            values={"names": names},
        )
    return fit[0]


def _check_zipmap(zipmap: Any, program: Program) -> None:
    """Refuse columns of other classes."""
    named = {attribute.name: attribute for attribute in zipmap.attribute}
    labels: list[Any] = []
    if "classlabels_strings" in named:
        labels = [text.decode() for text in named["classlabels_strings"].strings]
    elif "classlabels_int64s" in named:
        labels = list(named["classlabels_int64s"].ints)
    expected = [
        label if isinstance(label, int) else str(label) for label in program.classes
    ]
    if labels and labels != expected:
        raise ExportError(
            f"the model's classes must be {expected} in this order; they are {labels}. Fit the "
            "calibrator with classes= in the model's order."
        )
