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
from ._onnx_graph import DEFAULT_OPSET, NODE_PREFIX, Graph, graph_label
from ._program import ExportError, Program

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
            rule=f"name an output of shape (rows, {c}); the model has {names}",
            value=output,
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
