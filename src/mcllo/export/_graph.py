"""The steps of a `Program` as ONNX operators: one rule for each, under its name.

Rows are tensors of shape (n, c). `ReduceMax` and `ReduceMin` took their axes as an attribute before
opset 18; everything else is the same from opset 13 on.

The target "onnx": plain operators of opset 18, and recalibrations appended to what is ONNX
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

The rules of the steps are in `_onnx_graph`. Class names and the method are in the model's
metadata.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .._utils.optional import ONNX_EXTRA, needed
from .._version import __version__
from ..exceptions import FileFormatError, InputError
from ._programs import ExportError, Program, refuse_trees

DEFAULT_OPSET = 18
MIN_OPSET = 13
NODE_PREFIX = "mcllo_"


class Graph:
    """Nodes and constants of a graph as they are added; `kind` is the dtype inside."""

    def __init__(
        self,
        n_classes: int,
        kind: str = "float64",
        prefix: str = NODE_PREFIX,
        opset: int = DEFAULT_OPSET,
    ) -> None:
        self.onnx = needed("onnx", ONNX_EXTRA)
        if opset < MIN_OPSET:
            remedy = "Convert whole classifiers with target_opset=18."
            rule = f"be {MIN_OPSET} or later"
            raise InputError(argument="opset", rule=rule, value=opset, remedy=remedy)
        self.n_classes, self.kind, self.prefix, self.opset = (
            n_classes,
            np.dtype(kind),
            prefix,
            opset,
        )
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, op: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        """Add a node; return its output's name."""
        name = out or f"{self.prefix}{op.lower()}_{len(self.nodes)}"
        made = self.onnx.helper.make_node(
            op, list(inputs), [name], name=f"{self.prefix}node_{len(self.nodes)}", **attributes
        )
        self.nodes.append(made)
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add a constant, of the dtype inside unless another is given; return its name."""
        array = np.array(value, dtype=self.kind if dtype is None else dtype)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def cast(self, x: str, dtype: Any, out: str | None = None) -> str:
        """Return x as another type."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", x, to=kind, out=out)

    def total(self, x: str) -> str:
        """Return the sum of each row, shape (n, 1)."""
        return self.node("ReduceSum", x, self.constant([1], np.int64), keepdims=1)

    def slice(self, x: str, start: int, stop: int) -> str:
        """Return some entries of the last axis."""
        return self.node("Slice", x, *(self.constant([k], np.int64) for k in (start, stop, -1)))

    def pad(self, x: str, before: int, after: int, axes: int) -> str:
        """Return x with zeros before and after its last axis."""
        room = np.zeros((2, axes), dtype=np.int64)
        room[:, -1] = before, after
        return self.node("Pad", x, self.constant(room.ravel(), np.int64), self.constant(0.0))

    def run(self, program: Program, x: str) -> str:
        """Add all steps of a program on the rows x, of the dtype inside; return the answer."""
        refuse_trees(program)
        made: list[str] = []
        for step in program.steps:
            rule = getattr(self, step.op)
            made.append(rule(*([made[k] for k in step.of] or [x]), **step.numbers))
        return made[-1]

    # the steps

    def input(self, x: str) -> str:
        return x

    def unit(self, x: str, tolerance: float) -> str:
        total = self.total(x)
        if tolerance < 0.0:
            return self.node("Div", x, total)
        off = self.node("Abs", self.node("Sub", total, self.constant(1.0)))
        far = self.node("Greater", off, self.constant(tolerance))
        return self.node("Div", x, self.node("Where", far, total, self.constant(1.0)))

    def floor(self, x: str, floor: float, every: bool) -> str:
        low = self.node("Less", x, self.constant(floor))
        if not every:
            zero = self.node("LessOrEqual", self._extreme("ReduceMin", x), self.constant(0.0))
            low = self.node("And", low, zero)
        lifted = self.node("Where", low, self.constant(floor), x)
        touched = self._extreme("ReduceMax", self.cast(low, np.float32))
        some = self.cast(touched, np.bool_)
        total = self.node("Where", some, self.total(lifted), self.constant(1.0))
        return self.node("Div", lifted, total)

    def clamp(self, x: str, low: float, high: float) -> str:
        return self.node("Min", self.node("Max", x, self.constant(low)), self.constant(high))

    def log(self, x: str) -> str:
        return self.node("Log", x)

    def log1m(self, x: str) -> str:
        return self.node("Log", self.node("Sub", self.constant(1.0), x))

    def exp(self, x: str) -> str:
        return self.node("Exp", x)

    def log_logistic(self, x: str) -> str:
        small = self.node("Exp", self.node("Neg", self.node("Abs", x)))
        log = self.node("Log", self.node("Add", self.constant(1.0), small))
        return self.node("Sub", self.node("Min", x, self.constant(0.0)), log)

    def softmax(self, x: str) -> str:
        e = self.node("Exp", self.minus_top(x))
        return self.node("Div", e, self.total(e))

    def log_softmax(self, x: str) -> str:
        gaps = self.minus_top(x)
        return self.node("Sub", gaps, self.node("Log", self.total(self.node("Exp", gaps))))

    def minus(self, x: str, entry: int) -> str:
        return self.node("Sub", x, self.slice(x, entry, entry + 1))

    def minus_top(self, x: str) -> str:
        return self.node("Sub", x, self._extreme("ReduceMax", x))

    def take(self, x: str, index: list[int]) -> str:
        return self.node("Gather", x, self.constant(index, np.int64), axis=1)

    def scale(self, x: str, weight: Any, shift: Any) -> str:
        made = x if (weight == 1.0).all() else self.node("Mul", x, self.constant(weight))
        return made if not shift.any() else self.node("Add", made, self.constant(shift))

    def matrix(self, x: str, weight: Any, shift: Any) -> str:
        made = self.node("MatMul", x, self.constant(weight.T))
        return made if not shift.any() else self.node("Add", made, self.constant(shift))

    def add(self, *x: str) -> str:
        return self.node("Sum", *x)

    def steps(self, x: str, edges: list[Any], table: list[Any]) -> str:
        columns = []
        for j, (edge, answer) in enumerate(zip(edges, table, strict=True)):
            own = self.slice(x, j, j + 1)
            limits = edge if len(edge) else np.array([np.inf])  # a single bin: nothing is above
            above = self.cast(self.node("Greater", own, self.constant(limits)), self.kind)
            place = self.cast(self.total(above), np.int64)
            found = self.node("Gather", self.constant(answer), place, axis=0)
            if np.isnan(answer).any():
                found = self.node("Where", self.node("IsNaN", found), own, found)
            columns.append(found)
        return self.node("Concat", *columns, axis=1)

    def lines(self, x: str, at: list[Any], value: list[Any]) -> str:
        columns = []
        for j, (place, height) in enumerate(zip(at, value, strict=True)):
            own = self.slice(x, j, j + 1)
            if len(place) == 1:
                flat = self.node("Mul", own, self.constant(0.0))
                columns.append(self.node("Add", flat, self.constant(height)))
                continue
            inside = self.node("Max", own, self.constant(place[0]))
            inside = self.node("Min", inside, self.constant(place[-1]))
            below = self.node("GreaterOrEqual", inside, self.constant(place[1:-1]))
            count = self.total(self.cast(below, self.kind)) if len(place) > 2 else None
            tables = (place[:-1], np.diff(place), height[:-1], np.diff(height))
            if count is None:
                start, width, low, rise = (self.constant(part) for part in tables)
            else:
                k = self.cast(count, np.int64)
                start, width, low, rise = (
                    self.node("Gather", self.constant(part), k, axis=0) for part in tables
                )
            part = self.node("Div", self.node("Sub", inside, start), width)
            columns.append(self.node("Add", low, self.node("Mul", rise, part)))
        return self.node("Concat", *columns, axis=1)

    def share(self, q: str, p: str, present: list[int], even: bool, least: float) -> str:
        total = self.total(q)
        kept = self.take(p, present)
        absent = [k for k in range(self.n_classes) if k not in present]
        shared = self.total(kept) if absent else self.constant([[1.0]])
        instead = kept
        if even:
            instead = self.node("Div", shared, self.constant(float(len(present))))
        some = self.node("Greater", total, self.constant(least))
        safe = self.node("Where", some, total, self.constant(1.0))
        mine = self.node("Mul", self.node("Div", q, safe), shared)
        row = self.node("Where", some, mine, instead)
        if not absent:
            return row
        both = self.node("Concat", row, self.take(p, absent), axis=1)
        back = np.argsort([*present, *absent])
        return self.take(both, back.tolist())

    def runs(self, x: str, low: Any, high: Any, node: Any, output: str) -> str:
        c = self.n_classes
        ranked = f"{self.prefix}ranked_{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(
                "TopK",
                [x, self.constant([c], np.int64)],
                [ranked, f"{ranked}_order"],
                axis=1,
                largest=0,
            )
        )
        rows = self.node("Unsqueeze", ranked, self.constant([1], np.int64))

        def cumulated(theta: Any) -> str:
            eta = self.node("Mul", rows, self.constant(theta[None, :, None]))
            e = self.node("Exp", self.node("Sub", eta, self._extreme("ReduceMax", eta)))
            total = self.node("CumSum", e, self.constant(2, np.int64))
            return self.pad(self.node("Div", total, self.slice(total, c - 1, c)), 1, 0, 3)

        def mean(y: str) -> str:
            weighted = self.node("Mul", y, self.constant(node[None, :, None]))
            return self.node("ReduceSum", weighted, self.constant([1], np.int64), keepdims=0)

        up, down = cumulated(low), cumulated(high)
        if output == "pignistic":
            change, sure = None, ""
            for d in range(c):
                top = self.node("Min", self.slice(up, 1, c + 1 - d), self.slice(down, d + 1, c + 1))
                bottom = self.node("Max", self.slice(up, 0, c - d), self.slice(down, d, c))
                length = self.node("Max", self.node("Sub", top, bottom), self.constant(0.0))
                mass = mean(length)
                sure = mass if d == 0 else sure
                part = self.node("Div", mass, self.constant(float(d + 1)))
                both = self.node("Sub", self.pad(part, 0, d + 1, 2), self.pad(part, d + 1, 0, 2))
                change = both if change is None else self.node("Add", change, both)
            sums = self.node("CumSum", self.slice(str(change), 0, c), self.constant(1, np.int64))
            answer = self.node("Max", sums, sure)
        else:
            answer = mean(self.node("Sub", self.slice(up, 1, c + 1), self.slice(down, 0, c)))
        own = self.node("Unsqueeze", x, self.constant([2], np.int64))
        same = self.cast(self.node("Equal", own, rows), self.kind)
        column = self.node("Unsqueeze", answer, self.constant([2], np.int64))
        row = self.node("Squeeze", self.node("MatMul", same, column), self.constant([2], np.int64))
        row = self.node(
            "Div", row, self.node("ReduceSum", same, self.constant([2], np.int64), keepdims=0)
        )
        return self.node("Div", row, self.total(row))

    def _extreme(self, op: str, x: str) -> str:
        """Return `ReduceMax` or `ReduceMin` over the last axis, which is kept."""
        if self.opset < 18:
            return self.node(op, x, axes=[-1], keepdims=1)
        return self.node(op, x, self.constant([-1], np.int64), keepdims=1)


def graph_label(graph: Graph, classes: tuple[Any, ...], answer: str, out: str) -> int:
    """Add the most probable class, the first of equals, as `out`; return its type."""
    best = graph.node("ArgMax", answer, axis=1, keepdims=0)
    if all(isinstance(label, int) for label in classes):
        labels, kind = graph.constant(classes, np.int64), graph.onnx.TensorProto.INT64
    else:
        name = f"{graph.prefix}labels"
        text = [str(label).encode() for label in classes]
        kind = graph.onnx.TensorProto.STRING
        graph.constants.append(graph.onnx.helper.make_tensor(name, kind, [len(text)], text))
        labels = name
    graph.node("Gather", labels, best, axis=0, out=out)
    return int(kind)


IR_VERSION = 8
DTYPES = ("float64", "float32")
DISCONTINUOUS_STEPS = {"steps", "lines", "clamp"}
"""Steps that float32 is too coarse for: wrong by up to 0.4 in tests, where others are by 1e-5."""


def write_onnx(
    program: Program, *, dtype: str = "float64", inside: str = "float64", opset: int = DEFAULT_OPSET
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
            raise InputError(argument=name, rule="be 'float64' or 'float32'", value=value)
    if inside == "float32" and {step.op for step in program.steps} & DISCONTINUOUS_STEPS:
        raise ExportError(
            f"{program.method} needs float64 inside: in float32 a probability beside the edge of a "
            "bin, or near 1, gets another answer. Leave inside= out; dtype='float32' reads and "
            "writes float32."
        )
    graph = Graph(len(program.classes), inside, opset=opset)
    helper = graph.onnx.helper
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    name = "probabilities" if program.input == "probs" else "logits"
    answer = graph.run(program, name if dtype == inside else graph.cast(name, inside))
    graph.cast(answer, dtype, out="calibrated")
    label = graph_label(graph, program.classes, answer, "label")
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
        ir_version=IR_VERSION,
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
    onnx = needed("onnx", ONNX_EXTRA)
    recalibrated = onnx.ModelProto()
    recalibrated.CopyFrom(model)
    body = recalibrated.graph
    version = next((o.version for o in recalibrated.opset_import if o.domain in ("", "ai.onnx")), 0)
    if version == 0:
        recalibrated.opset_import.append(onnx.helper.make_opsetid("", DEFAULT_OPSET))
        version = DEFAULT_OPSET
    if version < 13:
        raise FileFormatError(
            f"the model must use opset 13 or later; it uses {version}. Convert it again with "
            "target_opset=18."
        )
    found = _probabilities(body, program, output)
    zipmap = next((n for n in body.node if n.op_type == "ZipMap" and found.name in n.output), None)
    if zipmap is not None:
        _check_zipmap(zipmap, program)
    tensor = found.name if zipmap is None else zipmap.input[0]
    kind = onnx.TensorProto.FLOAT if zipmap is not None else found.type.tensor_type.elem_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    prefix = NODE_PREFIX
    while any(name.startswith(prefix) for node in body.node for name in node.output):
        prefix += "_"  # recalibrated once before
    graph = Graph(len(program.classes), "float64", prefix, version)
    raw = f"{prefix}{tensor}"
    for node in body.node:
        _rename(node.input, tensor, raw)
        _rename(node.output, tensor, raw)
    answer = graph.run(program, graph.cast(raw, "float64"))
    graph.cast(answer, dtype, out=tensor)
    if zipmap is not None:
        _rename(zipmap.input, raw, tensor)
    labels = [o for o in body.output if o.name != found.name and _is_label(o, onnx)]
    if labels:
        for node in body.node:
            _rename(node.output, labels[0].name, f"{prefix}{labels[0].name}")
            _rename(node.input, labels[0].name, f"{prefix}{labels[0].name}")
        kind = graph_label(graph, program.classes, answer, labels[0].name)
        labels[0].type.tensor_type.elem_type = kind
    body.initializer.extend(graph.constants)
    before = list(body.node)
    del body.node[:]
    body.node.extend([n for n in before if n is not zipmap and n.op_type != "ZipMap"])
    body.node.extend([*graph.nodes, *(n for n in before if n.op_type == "ZipMap")])
    onnx.checker.check_model(recalibrated)
    return recalibrated


def _rename(names: Any, old: str, new: str) -> None:
    for k, name in enumerate(names):
        if name == old:
            names[k] = new


def _is_label(output: Any, onnx: Any) -> bool:
    kinds = (onnx.TensorProto.INT64, onnx.TensorProto.STRING)
    return output.type.HasField("tensor_type") and output.type.tensor_type.elem_type in kinds


def _probabilities(body: Any, program: Program, output: str | None) -> Any:
    """Return the output to recalibrate."""
    c = len(program.classes)
    zipped = {name for node in body.node if node.op_type == "ZipMap" for name in node.output}
    fit = []
    for one in body.output:
        shape = one.type.tensor_type.shape.dim
        floats = one.type.tensor_type.elem_type in (1, 10, 11) and len(shape) == 2
        if one.name in zipped or (floats and shape[1].dim_value in (0, c)):
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
    named = {a.name: a for a in zipmap.attribute}
    labels: list[Any] = []
    if "classlabels_strings" in named:
        labels = [text.decode() for text in named["classlabels_strings"].strings]
    elif "classlabels_int64s" in named:
        labels = list(named["classlabels_int64s"].ints)
    expected = [label if isinstance(label, int) else str(label) for label in program.classes]
    if labels and labels != expected:
        raise ExportError(
            f"the model's classes must be {expected} in this order; they are {labels}. Fit the "
            "calibrator with classes= in the model's order."
        )
