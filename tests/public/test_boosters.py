"""Models of other packages that are already trained: LightGBM, XGBoost, CatBoost, PyTorch.

The lines are those of docs/how-to/scikit-learn.md.
"""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss

from mcllo import AutoCalibrator, MCLLOCalibrator, RecalibratedClassifierCV, assess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]


def rows(c=3, seed=0):
    """Return rows to train on, to calibrate with, and to judge by."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=900)
    X = rng.normal(size=(900, 4)) + np.eye(4)[y]
    return (X[:300], y[:300]), (X[300:600], y[300:600]), (X[600:], y[600:])


def lightgbm_model():
    package = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    return package.LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1)


def xgboost_model():
    package = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    return package.XGBClassifier(n_estimators=60, n_jobs=1)


def catboost_model():
    reason = "CatBoost is not installed (100 MB; extra 'boosters')"
    package = pytest.importorskip("catboost", reason=reason)
    return package.CatBoostClassifier(
        iterations=300,
        learning_rate=0.3,
        verbose=False,
        thread_count=1,
        allow_writing_files=False,
    )


MODELS = [lightgbm_model, xgboost_model, catboost_model]
each_model = pytest.mark.parametrize(
    "make", MODELS, ids=lambda make: make.__name__[:-6]
)


@each_model
@pytest.mark.parametrize("c", [2, 3])
def test_a_trained_classifier(make, c):
    train, (X_cal, y_cal), (X_new, y_new) = rows(c)
    model = make().fit(*train)
    before = model.predict_proba(X_new)
    calibrated = RecalibratedClassifierCV(FrozenEstimator(model)).fit(X_cal, y_cal)
    after = calibrated.predict_proba(X_new)
    assert calibrated.classes_.tolist() == list(range(c))
    # they are all overconfident; LightGBM of two classes gains least, 0.0197
    assert log_loss(y_new, after) < log_loss(y_new, before) - 0.01
    by_hand = AutoCalibrator().fit(model.predict_proba(X_cal), y_cal)
    np.testing.assert_allclose(by_hand.predict_proba(before), after, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(model.predict_proba(X_new), before)
    assert assess(before, y_new).test.rejects()


@each_model
def test_cross_fitted(make):
    (X, y), _, (X_new, _) = rows()
    model = RecalibratedClassifierCV(make(), "temperature", cv=2).fit(X, y)
    assert model.predict_proba(X_new).shape == (300, 3)


def test_parameters_reach_lightgbm():
    (X, y), _, _ = rows()
    model = RecalibratedClassifierCV(lightgbm_model(), cv=2)
    model.fit(X, y, sample_weight=np.ones(300), categorical_feature=[])
    assert model.predict_proba(X).shape == (300, 3)


def test_native_boosters_give_probabilities_or_logits():
    lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    train, (X_cal, y_cal), (X_new, _) = rows()
    options = {
        "objective": "multiclass",
        "num_class": 3,
        "verbose": -1,
        "num_threads": 1,
    }
    booster = lgb.train(options, lgb.Dataset(*train), num_boost_round=40)
    by_probs = MCLLOCalibrator().fit(booster.predict(X_cal), y_cal)
    by_logits = MCLLOCalibrator().fit(
        y=y_cal, logits=booster.predict(X_cal, raw_score=True)
    )
    np.testing.assert_allclose(
        by_probs.predict_proba(booster.predict(X_new)),
        by_logits.predict_proba(logits=booster.predict(X_new, raw_score=True)),
        rtol=0,
        atol=1e-9,
    )


def test_native_xgboost():
    xgb = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    (X, y), (X_cal, y_cal), _ = rows()
    options = {"objective": "multi:softprob", "num_class": 3, "nthread": 1}
    booster = xgb.train(options, xgb.DMatrix(X, y), num_boost_round=20)
    logits = booster.predict(xgb.DMatrix(X_cal), output_margin=True)
    by_logits = MCLLOCalibrator().fit(y=y_cal, logits=logits)
    by_probs = MCLLOCalibrator().fit(booster.predict(xgb.DMatrix(X_cal)), y_cal)
    np.testing.assert_allclose(
        by_logits.fit_.gamma, by_probs.fit_.gamma, rtol=1e-3
    )  # float32


def test_tensors_of_pytorch():
    torch = pytest.importorskip(
        "torch", reason="PyTorch is not installed (it is large)"
    )
    _, (X_cal, y_cal), (X_new, _) = rows()
    torch.manual_seed(0)
    network = torch.nn.Linear(4, 3)
    logits = network(torch.tensor(X_cal, dtype=torch.float32))  # with its graph
    calibrator = MCLLOCalibrator().fit(y=torch.tensor(y_cal), logits=logits)
    plain = MCLLOCalibrator().fit(
        softmax(logits.detach().double().numpy(), axis=1), y_cal
    )
    np.testing.assert_allclose(calibrator.fit_.theta, plain.fit_.theta, rtol=1e-6)
    out = calibrator.predict_proba(
        logits=network(torch.tensor(X_new, dtype=torch.float32))
    )
    np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    half = MCLLOCalibrator().fit(y=y_cal, logits=logits.to(torch.bfloat16))
    np.testing.assert_allclose(
        half.fit_.gamma, plain.fit_.gamma, rtol=0, atol=0.02
    )  # 8 bits
