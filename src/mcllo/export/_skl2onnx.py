"""Whole classifiers to ONNX: `RecalibratedClassifierCV` and calibrators, for skl2onnx.

====================  ==========================================================================
a calibrator          its program on the input
`Recalibrated-`       each pair's classifier by skl2onnx, its columns in the order of all classes,
`ClassifierCV`        the calibrator's program; the mean of the pairs, and its most probable class
====================  ==========================================================================

`register_skl2onnx` makes ``skl2onnx.to_onnx`` know both, also inside pipelines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from .._utils.optional import ONNX_EXTRA, needed
from ..calibrators import CALIBRATORS
from ..model_selection import RecalibratedClassifierCV
from ._graph import DEFAULT_OPSET, GraphBuilder, GraphTensor, add_label_output
from ._programs import ExportError, build_log_probs_program, build_program

OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
}
"""What skl2onnx offers for every classifier."""


def register_skl2onnx() -> None:
    """Make ``skl2onnx.to_onnx`` convert calibrators and `RecalibratedClassifierCV`.

    Raises
    ------
    ImportError
        When skl2onnx is not installed.

    See Also
    --------
    export : A calibrator alone.
    append_to_onnx : Behind a model that is ONNX already.
    mcllo.RecalibratedClassifierCV : A classifier with its calibrator.

    Examples
    --------
    >>> import skl2onnx  # doctest: +SKIP
    >>> register_skl2onnx()  # doctest: +SKIP
    >>> rows = X[:1].astype("float32")  # doctest: +SKIP
    >>> both = skl2onnx.to_onnx(model, rows, options={"zipmap": False})  # doctest: +SKIP
    """
    skl2onnx = needed("skl2onnx", ONNX_EXTRA)
    calculate = needed("skl2onnx.common.shape_calculator", ONNX_EXTRA)
    shape = calculate.calculate_linear_classifier_output_shapes

    def register(cls: Any, convert: Any) -> None:
        name = f"Mcllo{cls.__name__}"
        skl2onnx.update_registered_converter(cls, name, shape, convert, options=OPTIONS)

    for cls in CALIBRATORS.values():
        register(cls, _convert_calibrator)
    register(RecalibratedClassifierCV, _convert_classifier)


def _convert_calibrator(scope: Any, operator: Any, container: Any) -> None:
    graph = _start_graph(scope, container, len(operator.raw_operator.classes_))
    calibrator: Any = operator.raw_operator
    rows = graph.cast(operator.inputs[0].full_name, "float64")
    answer = graph.add_program(build_program(calibrator), rows)
    _add_model_outputs(graph, operator, container, answer)


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    graph = _start_graph(scope, container, len(model.classes_))
    pairs = [
        _add_recalibrated_pair(scope, operator, container, graph, pair)
        for pair in model.calibrated_classifiers_
    ]
    answer = pairs[0]
    if len(pairs) > 1:
        total = graph.add_node("Sum", *pairs)
        answer = total / float(len(pairs))
    _add_model_outputs(graph, operator, container, answer)


def _start_graph(scope: Any, container: Any, n_classes: int) -> GraphBuilder:
    prefix = scope.get_unique_variable_name("mcllo") + "_"
    opset = min(container.target_opset_any_domain(""), DEFAULT_OPSET)
    return GraphBuilder(n_classes, "float64", prefix, opset)


def _add_recalibrated_pair(
    scope: Any, operator: Any, container: Any, graph: GraphBuilder, pair: Any
) -> GraphTensor:
    """Return the recalibrated probabilities of one classifier, by its calibrator."""
    classifier = pair.estimator
    while isinstance(classifier, FrozenEstimator):
        classifier = classifier.estimator
    if not isinstance(pair.calibrator, tuple(CALIBRATORS.values())):
        raise ExportError(
            f"the calibrator must be one of mcllo.CALIBRATORS; {type(pair.calibrator).__name__} is "
            "not."
        )
    calibrator: Any = pair.calibrator
    program = build_program(calibrator)
    # as `RecalibratedClassifierCV` asks: scores where there are any, else log p
    scores = program.input == "logits" and hasattr(classifier, "decision_function")
    raw = _add_classifier(scope, operator, container, classifier, scores)
    known = classifier.classes_.tolist()
    x = graph.cast(raw, "float64")
    wanted = pair.classes.tolist()
    if known != wanted:
        x = _align_columns(graph, x, known, wanted, scores)
    if program.input == "logits" and not scores:
        x = graph.add_program(build_log_probs_program(program.classes), x)
    return graph.add_program(program, x)


def _add_classifier(
    scope: Any, operator: Any, container: Any, classifier: Any, as_scores: bool
) -> str:
    """Add the classifier itself; return the name of its probabilities, or of its scores."""
    supported = needed(
        "skl2onnx._supported_operators", ONNX_EXTRA
    ).sklearn_operator_name_map
    types = needed("skl2onnx.common.data_types", ONNX_EXTRA)
    if type(classifier) not in supported:
        raise ExportError(
            f"skl2onnx has no converter for {type(classifier).__name__}; register one with "
            "skl2onnx.update_registered_converter."
        )
    if as_scores:
        shape = getattr(classifier, "coef_", np.empty((0, 0))).shape
        known = container.has_options(classifier, "raw_scores")
        if not known or shape[0] != len(classifier.classes_):
            raise ExportError(
                f"the scores of {type(classifier).__name__} have no plain form in ONNX for a "
                "calibrator of logits; use a calibrator of probabilities (on='log_probs')."
            )
    local_operator = scope.declare_local_operator(
        supported[type(classifier)], classifier
    )
    local_operator.inputs = operator.inputs
    if as_scores:
        for side in (scope, container):
            side.add_options(id(classifier), {"raw_scores": True})
    label_kind = (
        types.Int64TensorType
        if _has_integer_labels(classifier)
        else types.StringTensorType
    )
    kind = operator.outputs[1].type.__class__
    local_operator.outputs.append(scope.declare_local_variable("label", label_kind()))
    local_operator.outputs.append(scope.declare_local_variable("scores", kind()))
    return str(local_operator.outputs[1].full_name)


def _has_integer_labels(classifier: Any) -> bool:
    """Whether labels are whole numbers."""
    return bool(np.issubdtype(classifier.classes_.dtype, np.integer))


def _align_columns(
    graph: GraphBuilder,
    x: GraphTensor,
    known_classes: list[Any],
    all_classes: list[Any],
    are_scores: bool,
) -> GraphTensor:
    """Return columns in the order of all classes; what the classifier never saw has 0."""
    if are_scores:
        raise ExportError(
            "a fold's classifier never saw some class, and scores of classes that it did not see "
            "have no plain form. Use a calibrator of probabilities, or folds with every class."
        )
    zero = graph.slice_last_axis(x, 0, 1) * 0.0
    with_zero = graph.add_node("Concat", x, zero, axis=1)
    places = [
        known_classes.index(label) if label in known_classes else len(known_classes)
        for label in all_classes
    ]
    return graph.take_entries(with_zero, places)


def _add_model_outputs(
    graph: GraphBuilder,
    operator: Any,
    container: Any,
    probabilities_tensor: GraphTensor,
) -> None:
    """Write label and probabilities, and hand all nodes to skl2onnx."""
    model = operator.raw_operator
    label, probabilities = (output.full_name for output in operator.outputs)
    kind = operator.outputs[1].type.__class__.__name__
    graph.cast(
        probabilities_tensor,
        "float64" if kind.startswith("Double") else "float32",
        output_name=probabilities,
    )
    classes = tuple(model.classes_.tolist())
    add_label_output(graph, classes, probabilities_tensor, label)
    container.initializers.extend(graph.constants)
    value_of = graph.onnx.helper.get_attribute_value
    for node in graph.nodes:
        given = {attribute.name: value_of(attribute) for attribute in node.attribute}
        container.add_node(
            node.op_type,
            list(node.input),
            list(node.output),
            op_version=graph.opset,
            name=node.name,
            **given,
        )
