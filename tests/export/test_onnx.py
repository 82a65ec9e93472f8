"""ONNX beyond the table: shapes, names, labels, and recalibrations behind other classifiers."""

import data
import models
import numpy as np
import pytest

import mcllo
from mcllo.calibrators import (
    AutoCalibrator,
    BetaCalibration,
    IsotonicCalibration,
    TemperatureScaling,
    VectorScaling,
)
from mcllo.exceptions import FileFormatError, InputError
from mcllo.export import ExportError, append_to_onnx, register_skl2onnx

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_blas_thread")]


def run(model, rows, names=None):
    content = model if isinstance(model, bytes) else model.SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(names, {session.get_inputs()[0].name: rows})


def test_what_a_model_looks_like():
    model = onnx.load_from_string(models.model("auto").export("onnx"))
    assert [i.name for i in model.graph.input] == ["probabilities"]
    assert [o.name for o in model.graph.output] == ["label", "calibrated"]
    dimensions = model.graph.input[0].type.tensor_type.shape.dim
    assert (dimensions[0].dim_param, dimensions[1].dim_value) == ("rows", 4)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 18)]
    told = {prop.key: prop.value for prop in model.metadata_props}
    assert told == {"method": "auto", "classes": '["east", "north", "south", "west"]'}
    onnx.checker.check_model(model, full_check=True)
    logits = onnx.load_from_string(models.model("auto, logits").export("onnx"))
    assert logits.graph.input[0].name == "logits"


def test_any_number_of_rows_and_the_label_of_each():
    calibrator = models.model("histogram")
    model = calibrator.export("onnx")
    for n in (1, 2, 77):
        rows = data.drawn(n, models.CLASSES, n)[0]
        label, probs = run(model, rows)
        np.testing.assert_allclose(probs, calibrator.predict_proba(rows), atol=1e-15)
        assert label.tolist() == calibrator.predict(rows).tolist()


def test_whole_numbers_stay_labels():
    X, y = data.drawn(60, ["0", "1", "2"], 4)
    calibrator = TemperatureScaling().fit(X, np.array(y, dtype=int) + 7)
    label, _ = run(calibrator.export("onnx"), X)
    assert label.dtype == np.int64
    assert label.tolist() == calibrator.predict(X).tolist()


@pytest.mark.parametrize("opset", [13, 21])
def test_other_opsets(opset):
    for name in ("auto", "xu_davoine", "isotonic", "histogram, absent class"):
        calibrator = models.model(name)
        rows = models.rows()[0]
        found = run(calibrator.export("onnx", opset=opset), rows)[1]
        with np.errstate(all="ignore"):
            expected = predict(calibrator, rows)
        np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_opsets_that_are_too_old_are_refused(iris):
    register_skl2onnx()
    X, y = iris
    with pytest.raises(InputError, match="opset must be 13 or later; got opset=12"):
        models.model("mcllo").export("onnx", opset=12)
    model = mcllo.RecalibratedClassifierCV(logistic(), TemperatureScaling()).fit(X, y)
    with pytest.raises(InputError, match="target_opset=18"):
        skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}, target_opset=12)


def test_a_recalibration_behind_logits_of_half_precision():
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT16
    body = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["logits"])],
        "network",
        [helper.make_tensor_value_info("x", kind, ["rows", 4])],
        [helper.make_tensor_value_info("logits", kind, ["rows", 4])],
    )
    network = helper.make_model(
        body, opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    calibrator = models.model("temperature, logits")
    rows = np.array([[1.0, -2.0, 0.5, 3.0]], dtype=np.float16)
    (found,) = run(append_to_onnx(network, calibrator), rows)
    assert found.dtype == np.float16
    np.testing.assert_allclose(
        found, calibrator.predict_proba(-rows.astype(float)), atol=1e-3
    )


def predict(calibrator, rows):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrator.predict_proba(rows)


def test_float32_inside_is_rough_and_refused_where_it_is_wrong():
    calibrator, rows = models.model("mcllo"), models.rows()[0].astype(np.float32)
    found = run(calibrator.export("onnx", dtype="float32", inside="float32"), rows)[1]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, predict(calibrator, rows), atol=1e-5)
    for name in ("histogram", "beta", "isotonic"):
        with pytest.raises(ExportError, match="needs float64 inside"):
            models.model(name).export("onnx", inside="float32")
    with pytest.raises(InputError, match="dtype must be 'float64' or 'float32'"):
        calibrator.export("onnx", dtype="float16")


@pytest.fixture(scope="module")
def iris():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def logistic():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=500)


def classifiers():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    whole = mcllo.RecalibratedClassifierCV
    forest = RandomForestClassifier(10, random_state=0)
    scaled = make_pipeline(StandardScaler(), logistic())
    return {
        "logistic, mcllo": lambda X, y: whole(logistic()),
        "pipeline, auto": lambda X, y: whole(scaled, AutoCalibrator()),
        "forest, isotonic": lambda X, y: whole(
            forest, IsotonicCalibration(), ensemble=False
        ),
        "frozen": lambda X, y: whole(
            FrozenEstimator(logistic().fit(X, y)), TemperatureScaling()
        ),
        "scores": lambda X, y: whole(logistic(), VectorScaling(penalty=1.0)),
        "log probabilities": lambda X, y: whole(forest, VectorScaling(penalty=1.0)),
        "in a pipeline": lambda X, y: make_pipeline(
            StandardScaler(), whole(logistic(), BetaCalibration())
        ),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", classifiers())
def test_whole_classifiers(name, iris):
    register_skl2onnx()
    X, y = iris
    if name == "scores":  # labels may be numbers too
        y = np.unique(y, return_inverse=True)[1]
    model = classifiers()[name](X, y).fit(X, y)
    rows = X.astype(np.float32)
    made = skl2onnx.to_onnx(model, rows[:1], options={"zipmap": False})
    label, probs = run(made, rows)
    # classifiers in float32 differ from scikit-learn's by themselves; recalibrations add nothing to
    # see
    np.testing.assert_allclose(probs, model.predict_proba(rows), atol=2e-6)
    assert (label == model.predict(rows)).mean() > 0.99


@pytest.mark.filterwarnings("ignore")
def test_whole_classifiers_in_float64(iris):
    register_skl2onnx()
    X, y = iris
    model = mcllo.RecalibratedClassifierCV(logistic(), AutoCalibrator()).fit(X, y)
    made = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    np.testing.assert_allclose(run(made, X)[1], model.predict_proba(X), atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_a_fold_that_misses_a_class(iris):
    register_skl2onnx()
    X, y = iris
    every = np.arange(len(y))
    folds = [(every[y != "setosa"], every[::2]), (every, every[1::2])]
    model = mcllo.RecalibratedClassifierCV(logistic(), cv=folds).fit(X, y)
    made = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    np.testing.assert_allclose(run(made, X)[1], model.predict_proba(X), atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("zipmap", "opset"), [(True, 15), (False, 18)])
def test_a_recalibration_behind_an_onnx_classifier(zipmap, opset, iris):
    X, y = iris
    rows = X.astype(np.float32)
    classifier = logistic().fit(X, y)
    before = skl2onnx.to_onnx(
        classifier, rows[:1], options={"zipmap": zipmap}, target_opset=opset
    )
    kept = before.SerializeToString()
    raw = run(skl2onnx.to_onnx(classifier, rows[:1], options={"zipmap": False}), rows)[
        1
    ]
    calibrator = mcllo.MCLLOCalibrator(penalty=1.0).fit(classifier.predict_proba(X), y)
    after = append_to_onnx(before, calibrator)
    assert before.SerializeToString() == kept
    assert [o.name for o in after.graph.output] == [o.name for o in before.graph.output]
    label, probs = run(after, rows)
    if zipmap:
        probs = np.array([[row[name] for name in classifier.classes_] for row in probs])
    expected = calibrator.predict_proba(raw)
    np.testing.assert_allclose(probs, expected, atol=1e-7)
    assert label.tolist() == calibrator.classes_[expected.argmax(axis=1)].tolist()
    twice = append_to_onnx(
        after, calibrator
    )  # a recalibration of the recalibration, if one insists
    assert len(run(twice, rows)) == 2


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_appended(iris):
    X, y = iris
    made = skl2onnx.to_onnx(logistic().fit(X, y), X[:1].astype(np.float32))
    other = models.model("temperature")
    with pytest.raises(ExportError, match="the model's classes must be"):
        append_to_onnx(made, other)
    plain = skl2onnx.to_onnx(
        logistic().fit(X, y), X[:1].astype(np.float32), options={"zipmap": False}
    )
    with pytest.raises(InputError, match="name an output of shape"):
        append_to_onnx(plain, other)
    old = skl2onnx.to_onnx(
        logistic().fit(X, y),
        X[:1].astype(np.float32),
        options={"zipmap": False},
        target_opset=12,
    )
    right = TemperatureScaling().fit(np.full((3, 3), 1 / 3), np.unique(y))
    with pytest.raises(FileFormatError, match="opset 13 or later"):
        append_to_onnx(old, right)
