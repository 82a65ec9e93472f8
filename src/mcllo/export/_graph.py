"""The target "onnx": plain operators of opset 18, and recalibrations appended to what is ONNX
already.

================  ==================================================================================
`write_onnx`      a model: input ``probabilities`` or ``logits`` of shape (any, c); outputs
                  ``label`` and ``calibrated``
float32           rows go in and come out as float32; between, numbers are float64, because
                  logarithms of tiny numbers and edges of bins need them. ``inside="float32"`` is
                  for hardware without float64: it rounds
`append_program`  the recalibration behind a classifier's probabilities, also where a ZipMap made
                  dictionaries of them
================  ==================================================================================

`GraphBuilder` has one method for each step of a `Program` (`STEP_FUNCTIONS`); rows are tensors of
shape (n, c).
`ReduceMax` and `ReduceMin` took their axes as an attribute before opset 18; everything else is the
same from opset 13 on. Class names and the method are in the model's metadata.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._utils.optional import ONNX_EXTRA, needed
from .._version import __version__
from ..exceptions import FileFormatError, InputError
from ._programs import STEP_FUNCTIONS, ExportError, Program, refuse_trees

DEFAULT_OPSET = 18
"""The first in which `ReduceMax` and `ReduceMin` take their axes as inputs."""
MIN_OPSET = 13
"""The first in which `ReduceSum`, `Squeeze` and `Unsqueeze` take their axes as inputs."""
NODE_PREFIX = "mcllo_"


@dataclass(frozen=True, eq=False)
class GraphTensor:
    """What a node makes: arithmetic adds nodes to its graph, and numbers become constants."""

    graph: GraphBuilder
    name: str
    __array_ufunc__ = None  # an array on the left leaves the operation to us

    def __add__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Add", self, other)

    def __radd__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Add", other, self)

    def __sub__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Sub", self, other)

    def __rsub__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Sub", other, self)

    def __mul__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Mul", self, other)

    def __truediv__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Div", self, other)

    def __neg__(self) -> GraphTensor:
        return self.graph.add_node("Neg", self)

    def __abs__(self) -> GraphTensor:
        return self.graph.add_node("Abs", self)

    def __lt__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Less", self, other)

    def __le__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("Greater", self, other)

    def __ge__(self, other: Any) -> GraphTensor:
        return self.graph.add_node("GreaterOrEqual", self, other)


class GraphBuilder:
    """Nodes and constants of a graph as they are added; `inner_dtype` is the dtype inside."""

    def __init__(
        self,
        n_classes: int,
        inner_dtype: str = "float64",
        prefix: str = NODE_PREFIX,
        opset: int = DEFAULT_OPSET,
    ) -> None:
        self.onnx = needed("onnx", ONNX_EXTRA)
        if opset < MIN_OPSET:
            remedy = "Convert whole classifiers with target_opset=18."
            rule = f"be {MIN_OPSET} or later"
            raise InputError(argument="opset", rule=rule, value=opset, remedy=remedy)
        self.n_classes = n_classes
        self.inner_dtype = np.dtype(inner_dtype)
        self.prefix = prefix
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_node(
        self, op: str, *inputs: Any, output_name: str | None = None, **attributes: Any
    ) -> GraphTensor:
        """Add a node; return its output. Inputs are tensors, their names, or numbers."""
        names = [self._input_name(part) for part in inputs]
        output = output_name or f"{self.prefix}{op.lower()}_{len(self.nodes)}"
        name = f"{self.prefix}node_{len(self.nodes)}"
        onnx_node = self.onnx.helper.make_node(
            op, names, [output], name=name, **attributes
        )
        self.nodes.append(onnx_node)
        return GraphTensor(self, output)

    def _input_name(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        tensor = value if isinstance(value, GraphTensor) else self.add_constant(value)
        return tensor.name

    def add_constant(self, value: Any, dtype: Any = None) -> GraphTensor:
        """Add a constant, of the dtype inside unless another is given."""
        array = np.array(value, dtype=self.inner_dtype if dtype is None else dtype)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return GraphTensor(self, name)

    def add_integers(self, value: Any) -> GraphTensor:
        """Add a constant of whole numbers, as axes and places are."""
        return self.add_constant(value, np.int64)

    def cast(
        self, x: GraphTensor | str, dtype: Any, output_name: str | None = None
    ) -> GraphTensor:
        """Return x as another type."""
        onnx_type = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add_node("Cast", x, to=onnx_type, output_name=output_name)

    def where(self, condition: GraphTensor, yes: Any, no: Any) -> GraphTensor:
        """Return one where a condition holds, else the other; both are computed."""
        return self.add_node("Where", condition, yes, no)

    def elementwise_max(self, x: GraphTensor, y: Any) -> GraphTensor:
        """Return the larger of two, entry by entry."""
        return self.add_node("Max", x, y)

    def elementwise_min(self, x: GraphTensor, y: Any) -> GraphTensor:
        """Return the smaller of two, entry by entry."""
        return self.add_node("Min", x, y)

    def row_sums(self, x: GraphTensor) -> GraphTensor:
        """Return the sum of each row, shape (n, 1)."""
        return self.add_node("ReduceSum", x, self.add_integers([1]), keepdims=1)

    def last_axis_max(self, x: GraphTensor) -> GraphTensor:
        """Return the largest entry of the last axis, which is kept."""
        return self._reduce_last_axis("ReduceMax", x)

    def last_axis_min(self, x: GraphTensor) -> GraphTensor:
        """Return the smallest entry of the last axis, which is kept."""
        return self._reduce_last_axis("ReduceMin", x)

    def _reduce_last_axis(self, op: str, x: GraphTensor) -> GraphTensor:
        if self.opset < 18:
            return self.add_node(op, x, axes=[-1], keepdims=1)
        return self.add_node(op, x, self.add_integers([-1]), keepdims=1)

    def slice_last_axis(self, x: GraphTensor, start: int, stop: int) -> GraphTensor:
        """Return some entries of the last axis."""
        return self.add_node(
            "Slice",
            x,
            self.add_integers([start]),
            self.add_integers([stop]),
            self.add_integers([-1]),
        )

    def pad_last_axis(
        self, x: GraphTensor, before: int, after: int, n_axes: int
    ) -> GraphTensor:
        """Return x with zeros before and after its last axis."""
        room = np.zeros((2, n_axes), dtype=np.int64)
        room[:, -1] = before, after
        return self.add_node("Pad", x, self.add_integers(room.ravel()), 0.0)

    def add_program(self, program: Program, rows: GraphTensor | str) -> GraphTensor:
        """Add all steps of a program on rows of the dtype inside; return the answer."""
        refuse_trees(program)
        x = rows if isinstance(rows, GraphTensor) else GraphTensor(self, rows)
        made: list[GraphTensor] = []
        for step in program.steps:
            rule = getattr(self, STEP_FUNCTIONS[step.op])
            given = [made[k] for k in step.inputs] or [x]
            made.append(rule(*given, **step.parameters))
        return made[-1]

    # the steps

    def keep_row(self, x: GraphTensor) -> GraphTensor:
        return x

    def divide_by_row_sum(self, x: GraphTensor, tolerance: float) -> GraphTensor:
        total = self.row_sums(x)
        if tolerance < 0.0:
            return x / total
        is_off = abs(total - 1.0) > tolerance
        return x / self.where(is_off, total, 1.0)

    def raise_to_floor(self, x: GraphTensor, floor: float, every: bool) -> GraphTensor:
        is_low = x < floor
        if not every:
            has_zero = self.last_axis_min(x) <= 0.0
            is_low = self.add_node("And", is_low, has_zero)
        raised = self.where(is_low, floor, x)
        # there is no maximum of truth values
        low_as_number = self.cast(is_low, np.float32)
        any_low = self.cast(self.last_axis_max(low_as_number), np.bool_)
        return raised / self.where(any_low, self.row_sums(raised), 1.0)

    def clamp(self, x: GraphTensor, low: float, high: float) -> GraphTensor:
        return self.elementwise_min(self.elementwise_max(x, low), high)

    def log(self, x: GraphTensor) -> GraphTensor:
        return self.add_node("Log", x)

    def log_of_one_minus(self, x: GraphTensor) -> GraphTensor:
        return self.log(1.0 - x)

    def exponential(self, x: GraphTensor) -> GraphTensor:
        return self.add_node("Exp", x)

    def log_logistic(self, x: GraphTensor) -> GraphTensor:
        small = self.exponential(-abs(x))  # never overflows
        log = self.log(1.0 + small)
        return self.elementwise_min(x, 0.0) - log

    def softmax(self, x: GraphTensor) -> GraphTensor:
        e = self.exponential(self.subtract_row_max(x))
        return e / self.row_sums(e)

    def log_softmax(self, x: GraphTensor) -> GraphTensor:
        gaps = self.subtract_row_max(x)
        total = self.row_sums(self.exponential(gaps))
        return gaps - self.log(total)

    def subtract_entry(self, x: GraphTensor, entry: int) -> GraphTensor:
        return x - self.slice_last_axis(x, entry, entry + 1)

    def subtract_row_max(self, x: GraphTensor) -> GraphTensor:
        return x - self.last_axis_max(x)

    def take_entries(self, x: GraphTensor, index: list[int]) -> GraphTensor:
        return self.add_node("Gather", x, self.add_integers(index), axis=1)

    def scale_and_shift(self, x: GraphTensor, weight: Any, shift: Any) -> GraphTensor:
        scaled = x * weight if (weight != 1.0).any() else x
        return scaled + shift if shift.any() else scaled

    def multiply_by_matrix(
        self, x: GraphTensor, weight: Any, shift: Any
    ) -> GraphTensor:
        product = self.add_node("MatMul", x, weight.T)
        return product + shift if shift.any() else product

    def add_vectors(self, *x: GraphTensor) -> GraphTensor:
        return self.add_node("Sum", *x)

    def apply_step_functions(
        self, x: GraphTensor, edges: list[Any], table: list[Any]
    ) -> GraphTensor:
        columns = []
        for j in range(len(edges)):
            column = self.slice_last_axis(x, j, j + 1)
            columns.append(self._apply_step_function(column, edges[j], table[j]))
        return self.add_node("Concat", *columns, axis=1)

    def _apply_step_function(
        self, column: GraphTensor, edges: Any, bin_values: Any
    ) -> GraphTensor:
        """Return the value of each entry's bin; where that is NaN, the entry itself."""
        if len(edges) == 0:
            edges = np.array([np.inf])  # a single bin: nothing is above
        is_above = self.cast(column > edges, self.inner_dtype)
        bin_index = self.cast(self.row_sums(is_above), np.int64)
        answer = self.add_node("Gather", bin_values, bin_index, axis=0)
        if not np.isnan(bin_values).any():
            return answer
        keeps_entry = self.add_node("IsNaN", answer)
        return self.where(keeps_entry, column, answer)

    def interpolate_linearly(
        self, x: GraphTensor, at: list[Any], value: list[Any]
    ) -> GraphTensor:
        columns = []
        for j in range(len(at)):
            column = self.slice_last_axis(x, j, j + 1)
            if len(at[j]) == 1:
                columns.append(column * 0.0 + value[j])
            else:
                columns.append(self._interpolate_column(column, at[j], value[j]))
        return self.add_node("Concat", *columns, axis=1)

    def _interpolate_column(
        self, column: GraphTensor, knots: Any, knot_values: Any
    ) -> GraphTensor:
        """Return ``numpy.interp(column, knots, knot_values)``, of two knots or more."""
        inside = self.clamp(column, knots[0], knots[-1])
        is_past = inside >= knots[1:-1]
        # of each segment: its left end, width, value at the left end, and rise
        segments = [knots[:-1], np.diff(knots), knot_values[:-1], np.diff(knot_values)]
        if len(knots) == 2:
            of_entry = [self.add_constant(numbers) for numbers in segments]
        else:
            n_past = self.row_sums(self.cast(is_past, self.inner_dtype))
            segment = self.cast(n_past, np.int64)
            of_entry = [
                self.add_node("Gather", numbers, segment, axis=0)
                for numbers in segments
            ]
        start, width, low, rise = of_entry
        part = (inside - start) / width
        return low + rise * part

    def share_among_present(
        self,
        q: GraphTensor,
        p: GraphTensor,
        present: list[int],
        even: bool,
        least: float,
    ) -> GraphTensor:
        absent = [k for k in range(self.n_classes) if k not in present]
        total = self.row_sums(q)
        p_of_present = self.take_entries(p, present)
        # what the present classes share: all that p gives them
        mass = self.row_sums(p_of_present) if absent else self.add_constant([[1.0]])
        without_answer = mass / float(len(present)) if even else p_of_present
        has_answer = total > least
        divisor = self.where(has_answer, total, 1.0)  # the other branch is computed too
        shares = q / divisor * mass
        row = self.where(has_answer, shares, without_answer)
        if not absent:
            return row
        p_of_absent = self.take_entries(p, absent)
        reordered = self.add_node("Concat", row, p_of_absent, axis=1)
        order = np.argsort([*present, *absent])
        return self.take_entries(reordered, order.tolist())

    def belief_in_runs(
        self, x: GraphTensor, low: Any, high: Any, node: Any, output: str
    ) -> GraphTensor:
        c = self.n_classes
        ranked = f"{self.prefix}ranked_{len(self.nodes)}"
        inputs = [x.name, self.add_integers([c]).name]
        outputs = [ranked, f"{ranked}_order"]
        top_k = self.onnx.helper.make_node("TopK", inputs, outputs, axis=1, largest=0)
        self.nodes.append(top_k)
        rows = self.add_node("Unsqueeze", ranked, self.add_integers([1]))
        up = self._cumulated_softmax(rows, low)
        down = self._cumulated_softmax(rows, high)
        if output == "pignistic":
            answer = self._pignistic_probabilities(up, down, node)
        else:
            gap = self.slice_last_axis(up, 1, c + 1) - self.slice_last_axis(down, 0, c)
            answer = self._integrate_over_nodes(gap, node)
        # Back to the order of the columns, by their scores; equal ones share their mean.
        own = self.add_node("Unsqueeze", x, self.add_integers([2]))
        is_same = self.cast(self.add_node("Equal", own, rows), self.inner_dtype)
        column = self.add_node("Unsqueeze", answer, self.add_integers([2]))
        sums = self.add_node("MatMul", is_same, column)
        row = self.add_node("Squeeze", sums, self.add_integers([2]))
        row = row / self.add_node(
            "ReduceSum", is_same, self.add_integers([2]), keepdims=0
        )
        return row / self.row_sums(row)

    def _cumulated_softmax(self, ranked_scores: GraphTensor, theta: Any) -> GraphTensor:
        """Return the cumulated softmax of ranked scores at every node, from 0 to 1."""
        c = self.n_classes
        eta = ranked_scores * theta[None, :, None]
        sums = self.add_node(
            "CumSum", self.exponential(self.subtract_row_max(eta)), self.add_integers(2)
        )
        return self.pad_last_axis(sums / self.slice_last_axis(sums, c - 1, c), 1, 0, 3)

    def _integrate_over_nodes(
        self, function_values: GraphTensor, node_weights: Any
    ) -> GraphTensor:
        """Return the integral by its nodes' weights."""
        weighted = function_values * node_weights[None, :, None]
        return self.add_node("ReduceSum", weighted, self.add_integers([1]), keepdims=0)

    def _pignistic_probabilities(
        self, cumulated_low: GraphTensor, cumulated_high: GraphTensor, node_weights: Any
    ) -> GraphTensor:
        """Return what each class gets when the mass of every run of d + 1 classes is shared."""
        c = self.n_classes
        single = cumulated_low
        change = cumulated_low
        for d in range(c):
            top = self.elementwise_min(
                self.slice_last_axis(cumulated_low, 1, c + 1 - d),
                self.slice_last_axis(cumulated_high, d + 1, c + 1),
            )
            bottom = self.elementwise_max(
                self.slice_last_axis(cumulated_low, 0, c - d),
                self.slice_last_axis(cumulated_high, d, c),
            )
            length = self.elementwise_max(top - bottom, 0.0)
            mass = self._integrate_over_nodes(length, node_weights)
            mass_per_class = mass / float(d + 1)
            # from where a run begins to where it ends: sums of these changes are the shares
            begins = self.pad_last_axis(mass_per_class, 0, d + 1, 2)
            ends = self.pad_last_axis(mass_per_class, d + 1, 0, 2)
            run_change = begins - ends
            if d == 0:
                single = mass
                change = run_change
            else:
                change = change + run_change
        shares = self.add_node(
            "CumSum", self.slice_last_axis(change, 0, c), self.add_integers(1)
        )
        # rounding must not take from what is sure
        return self.elementwise_max(shares, single)


def add_label_output(
    graph: GraphBuilder,
    classes: tuple[Any, ...],
    probabilities: GraphTensor,
    output_name: str,
) -> int:
    """Add the most probable class, the first of equals, as `output_name`; return its type."""
    best = graph.add_node("ArgMax", probabilities, axis=1, keepdims=0)
    if all(isinstance(label, int) for label in classes):
        onnx_type = graph.onnx.TensorProto.INT64
        labels = graph.add_integers(classes).name
    else:
        onnx_type = graph.onnx.TensorProto.STRING
        labels = f"{graph.prefix}labels"
        text = [str(label).encode() for label in classes]
        graph.constants.append(
            graph.onnx.helper.make_tensor(labels, onnx_type, [len(text)], text)
        )
    graph.add_node("Gather", labels, best, axis=0, output_name=output_name)
    return int(onnx_type)


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
    graph = GraphBuilder(len(program.classes), inside, opset=opset)
    name = "probabilities" if program.input == "probs" else "logits"
    # float64 inside also where rows are float32: log of a tiny number, and edges of bins, need it
    rows = name if dtype == inside else graph.cast(name, inside)
    answer = graph.add_program(program, rows)
    graph.cast(answer, dtype, output_name="calibrated")
    label = add_label_output(graph, program.classes, answer, "label")
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


def append_program(model: Any, program: Program, output: str | None = None) -> Any:
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
    opset = _read_or_add_opset(recalibrated, onnx)
    found = _find_probability_output(body, program, output)
    zipmap = _find_producing_node(body, found.name, "ZipMap")
    if zipmap is None:
        tensor = found.name
        kind = found.type.tensor_type.elem_type
    else:
        _check_zipmap_classes(zipmap, program)
        tensor = zipmap.input[0]
        kind = onnx.TensorProto.FLOAT
    # names of nodes are unique in a graph
    prefix = NODE_PREFIX
    while any(name.startswith(prefix) for node in body.node for name in node.output):
        prefix += "_"  # recalibrated once before
    graph = GraphBuilder(len(program.classes), "float64", prefix, opset)

    # The classifier's probabilities get another name, and the recalibrated ones take theirs.
    raw = f"{prefix}{tensor}"
    for node in body.node:
        _replace_name(node.input, tensor, raw)
        _replace_name(node.output, tensor, raw)
    answer = graph.add_program(program, graph.cast(raw, "float64"))
    graph.cast(answer, onnx.helper.tensor_dtype_to_np_dtype(kind), output_name=tensor)
    if zipmap is not None:
        _replace_name(zipmap.input, raw, tensor)
    labels = [
        one
        for one in body.output
        if one.name != found.name and _is_label_output(one, onnx)
    ]
    if labels:
        label = labels[0]
        for node in body.node:
            _replace_name(node.output, label.name, f"{prefix}{label.name}")
            _replace_name(node.input, label.name, f"{prefix}{label.name}")
        label.type.tensor_type.elem_type = add_label_output(
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


def _read_or_add_opset(model: Any, onnx: Any) -> int:
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


def _find_producing_node(body: Any, output_name: str, operator: str) -> Any:
    """Return the node of an operator that makes an output; None where another does."""
    for node in body.node:
        if node.op_type == operator and output_name in node.output:
            return node
    return None


def _replace_name(node_names: Any, old: str, new: str) -> None:
    for k, name in enumerate(node_names):
        if name == old:
            node_names[k] = new


def _is_label_output(output: Any, onnx: Any) -> bool:
    kinds = (onnx.TensorProto.INT64, onnx.TensorProto.STRING)
    return (
        output.type.HasField("tensor_type")
        and output.type.tensor_type.elem_type in kinds
    )


def _find_probability_output(body: Any, program: Program, output: str | None) -> Any:
    """Return the output to recalibrate."""
    c = len(program.classes)
    candidates = []
    for candidate in body.output:
        shape = candidate.type.tensor_type.shape.dim
        # ONNX's numbers of the floats of 32, 16 and 64 bits
        is_float = candidate.type.tensor_type.elem_type in (1, 10, 11)
        is_matrix = is_float and len(shape) == 2
        is_row = is_matrix and shape[1].dim_value in (0, c)  # 0: not said
        if is_row or _find_producing_node(body, candidate.name, "ZipMap") is not None:
            candidates.append(candidate)
    if output is not None:
        candidates = [candidate for candidate in candidates if candidate.name == output]
    if len(candidates) != 1:
        names = [candidate.name for candidate in body.output]
        raise InputError(
            argument="output",
            rule=f"name an output of shape (rows, {c}); the model has {{names}}",
            value=output,
            values={"names": names},
        )
    return candidates[0]


def _check_zipmap_classes(zipmap: Any, program: Program) -> None:
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
