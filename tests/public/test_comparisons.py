"""`compare`, by public names."""

import json
from dataclasses import replace

import data
import numpy as np
import pytest
from data import fitted
from inputs import case
from scipy.stats import chi2
from shared_data import load_cifar10_vgg16_keras
from toy import TOY_X, TOY_Y

import mcllo
from mcllo import Predictions, compare
from mcllo.exceptions import InputError


def sharpened(n, seed, c=3, power=2.0):
    """Labels from honest rows, predictions overconfident."""
    probs, y = data.drawn(n, range(c), seed, power=power)
    return probs, np.array(y)


TRAIN, HOLDOUT = sharpened(800, 0), sharpened(400, 1)


def named(rows, names):
    """Return rows whose classes have names."""
    return Predictions.from_arrays(rows[0], np.array(names)[rows[1]])


@pytest.fixture(scope="module")
def compared():
    methods = ("identity", "mcllo", "temperature", "histogram")
    return compare(TRAIN, HOLDOUT, methods=methods, seed=0)


def test_identity_changes_nothing(compared):
    raw, same = compared["uncalibrated"], compared["identity"]
    assert (same.statistic, same.log_loss) == (raw.statistic, raw.log_loss)
    assert same.label_change == 0.0
    assert same.pvalue_corrected == pytest.approx(same.pvalue)


def test_rows_and_their_order(compared):
    judged = ["uncalibrated", "identity", "mcllo", "temperature", "histogram"]
    assert [row.method for row in compared.rows] == ["uncalibrated_train", *judged]
    assert [row.method for row in compared.judged] == judged
    assert [row.n for row in compared.rows] == [800] + [400] * 5
    assert compared.best in ("mcllo", "temperature")
    assert compared["mcllo"].log_loss < compared["uncalibrated"].log_loss
    assert compared[compared.best].log_loss_difference == 0.0
    assert compared["uncalibrated"].label_change is None


def test_a_row_is_what_the_calibrator_gives(compared):
    calibrator = mcllo.calibrators.TemperatureScaling().fit(*TRAIN)
    probs = calibrator.predict_proba(HOLDOUT[0])
    fit = fitted(Predictions.from_arrays(probs, HOLDOUT[1]))
    ece = mcllo.metrics.expected_calibration_error(HOLDOUT[1], probs)
    row = compared["temperature"]
    assert row.log_loss == pytest.approx(mcllo.metrics.log_loss(HOLDOUT[1], probs))
    assert (row.ece, row.statistic) == pytest.approx((ece, fit.statistic))


def test_every_registered_method_runs_when_there_are_logits():
    train = Predictions.from_arrays(y=TRAIN[1], logits=np.log(TRAIN[0]))
    holdout = Predictions.from_arrays(y=HOLDOUT[1], logits=np.log(HOLDOUT[0]))
    c = compare(train, holdout, seed=0)
    assert {row.method for row in c.judged} == {*mcllo.CALIBRATORS, "uncalibrated"} - {
        "identity"
    }
    assert c.skipped == {}


def test_methods_of_logits_read_log_probabilities_and_are_named_so():
    c = compare(TRAIN, HOLDOUT, seed=0)
    paper = {"mcllo", "temperature", "vector_log_probs", "histogram", "xu_davoine"}
    assert paper | {"matrix_log_probs"} <= {row.method for row in c.judged}
    assert c.skipped == {}
    for name in ("VectorScaling", "MatrixScaling"):
        by_hand = getattr(mcllo.calibrators, name)(on="log_probs").fit(*TRAIN)
        row = f"{by_hand.method}_log_probs"
        expected = by_hand.predict_proba(HOLDOUT[0])
        np.testing.assert_allclose(
            c.recalibrated[row].probs, expected, rtol=0, atol=1e-12
        )
    logits = {"y": TRAIN[1], "logits": np.log(TRAIN[0])}
    mixed = compare(logits, HOLDOUT, methods="vector", seed=0)  # the holdout has none
    assert [row.method for row in mixed.judged] == ["uncalibrated", "vector_log_probs"]


def test_string_labels_and_a_class_that_the_holdout_lacks():
    names, keep = np.array(["ant", "bee", "cat"]), HOLDOUT[1] != 2
    holdout = HOLDOUT[0][keep], names[HOLDOUT[1][keep]]
    c = compare((TRAIN[0], names[TRAIN[1]]), holdout, methods=["temperature"], seed=0)
    assert c.holdout.classes == ("ant", "bee", "cat")
    assert c.holdout.absent == ("cat",)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::mcllo.exceptions.LabelShiftWarning"
)  # 1 draw in 100
def test_cross_validation_sees_how_far_a_fit_overshoots():
    # calibrated rows, so any fit adds to the log loss: expected for q parameters and n rows about
    # q / (2 n) (here 6 / 160 = .0375, and more beyond first order). Folds that spread the labels
    # evenly say .024 +- .004.
    found, true = [], []
    for seed in range(60):
        probs, y = sharpened(100, seed, c=4, power=1.0)
        c = compare((probs, y), cv=5, methods=["mcllo"], n_resamples=19, seed=seed)
        found.append(c["mcllo"].log_loss - c["uncalibrated"].log_loss)
        fresh, labels = sharpened(5000, 1000 + seed, c=4, power=1.0)
        after = (
            mcllo.MCLLOCalibrator(classes=range(4))
            .fit(probs[:80], y[:80])
            .predict_proba(fresh)
        )
        loss = mcllo.metrics.log_loss
        true.append(loss(labels, after) - loss(labels, fresh))
    error = np.sqrt(np.var(found) / 60 + np.var(true) / 60)
    assert abs(np.mean(found) - np.mean(true)) < 2.6 * error
    assert np.mean(found) > 0.03


@pytest.mark.slow
def test_the_corrected_p_value_has_the_right_size():
    # methods specification 8g, c = 3, 300/100: plain .133 (theory .130), scaled .040, 400 reps
    plain, corrected, temperature = [], [], []
    for seed in range(200):
        probs, y = sharpened(400, seed + 10)
        both = (probs[:300], y[:300]), (probs[300:], y[300:])
        c = compare(*both, methods=["mcllo", "temperature"], n_resamples=199, seed=seed)
        plain.append(c["mcllo"].pvalue)
        corrected.append(c["mcllo"].pvalue_corrected)
        temperature.append(c["temperature"].pvalue_corrected)
    error = 2.6 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(np.array(plain) <= 0.05) > 0.05 + error
    assert abs(np.mean(np.array(corrected) <= 0.05) - 0.05) < error
    assert abs(np.mean(np.array(temperature) <= 0.05) - 0.05) < error


def test_the_numbers_of_the_vgg_split():
    # methods specification 7: VGG16 on CIFAR-10, permutation of seed 0, 8000/2000, baseline truck
    p = load_cifar10_vgg16_keras()
    rows = np.random.default_rng(0).permutation(10000)
    both = p.take(rows[:8000]), p.take(rows[8000:])
    c = compare(*both, methods=["mcllo", "temperature"], n_resamples=199, seed=0)
    assert c["uncalibrated_train"].statistic == pytest.approx(1028.6287, abs=1e-4)
    assert c["uncalibrated"].statistic == pytest.approx(203.17, abs=5e-3)
    assert c["mcllo"].statistic == pytest.approx(13.07, abs=5e-3)
    assert c["temperature"].statistic == pytest.approx(19.99, abs=6e-3)
    assert c["uncalibrated"].log_loss == pytest.approx(0.2295, abs=5e-5)
    assert c["mcllo"].log_loss == pytest.approx(0.1820, abs=5e-5)
    assert c["temperature"].log_loss == pytest.approx(0.1837, abs=5e-5)
    assert c["uncalibrated"].ece == pytest.approx(0.0406, abs=5e-5)
    assert c["mcllo"].ece == pytest.approx(0.0230, abs=5e-5)


def test_errors():
    grouped = Predictions.from_arrays(*TRAIN, groups=np.arange(800) // 400)
    other = named(TRAIN, list("abc")), named(HOLDOUT, list("abd"))
    for arguments, options, message in (
        ((TRAIN,), {}, "compare must get a holdout or cv="),
        ((TRAIN, HOLDOUT), {"cv": 5}, "compare must get a holdout or cv="),
        ((TRAIN,), {"cv": 1}, "cv must be a whole number of at least 2 folds"),
        ((TRAIN,), {"cv": 801}, r"cv must not exceed the number of rows \(800\)"),
        ((grouped,), {"cv": 3}, r"cv must not exceed the number of groups \(2\)"),
        ((TRAIN, HOLDOUT), {"methods": ["temprature"]}, "did you mean 'temperature'?"),
        ((TRAIN[0], HOLDOUT), {}, "train must be a Predictions, "),
        (other, {}, "must have the same classes in the same order"),
    ):
        with case(message), pytest.raises(InputError, match=message):
            compare(*arguments, **options)


BOTH = (TOY_X, TOY_Y), (TOY_X[::-1], TOY_Y[::-1])


C = compare(*BOTH, methods=["temperature", "histogram"], seed=0)


def test_the_recommendation_is_about_the_judged_rows():
    r = C.recommendation
    losses = {row.method: row.log_loss for row in C.judged}
    assert r.method == C.best == min(losses, key=losses.get)
    assert r.log_loss == pytest.approx(C[C.best].log_loss)
    others = {d.method: d.difference for d in r.differences}
    for row in C.judged:
        if row.method != C.best:
            assert others[row.method] == pytest.approx(row.log_loss_difference)
    assert C.recommendation is r
    assert C.to_dict()["recommendation"] == r.to_dict()


def test_a_bound_says_that_it_is_one_and_so_does_what_is_computed_from_it():
    for p, words in ((1e-300, "<= 1.0e-300"), (1e-20, "<= 1.0e-20"), (0.0, "< 1e-300")):
        bound = {"pvalue_method": "bound", "corrected_method": "bound"}
        row = replace(C["temperature"], pvalue=p, pvalue_corrected=p, **bound)
        line = str(replace(C, rows=(C["uncalibrated"], row))).splitlines()[4]
        assert line.count(words) == 2


def test_a_map_that_changes_nothing_but_for_rounding_leads_nowhere():
    raw = C["uncalibrated"]
    names = ("ece", "classwise_ece", "log_loss", "brier")
    near = {name: getattr(raw, name) - 1e-15 for name in names}
    row = replace(raw, method="auto", label_change=0.0, **near)
    unchanged = {"auto": mcllo.CALIBRATORS["identity"]()}
    c = mcllo.compare(C.train, C.holdout, methods=unchanged, n_resamples=19, seed=0)
    c = replace(c, rows=(raw, row))
    assert (c.best, c.recommendation.ties) == ("uncalibrated", ("auto",))
    assert all(c.has_best(r, name) for r in c.rows for name in (*names, "accuracy"))
    assert [r.method for r in c.ranked] == ["uncalibrated", "auto"]


def test_frame_and_strict_json():
    frame = C.to_frame()
    assert frame["method"].tolist()[:2] == ["uncalibrated_train", "uncalibrated"]
    content = json.loads(json.dumps(C.to_dict(), allow_nan=False))
    keys = {
        "method",
        "n",
        "pvalue",
        "pvalue_corrected",
        "ece",
        "accuracy",
        "label_change",
    }
    assert keys | {"log_loss", "brier", "classwise_ece", "fit_seconds"} <= set(
        content["rows"][0]
    )
    assert content["rows"][0]["log_loss_difference"] is None
    assert content["skipped"] == {}
    with pytest.raises(KeyError, match="isotonic"):
        C["isotonic"]


def test_zero_probabilities_that_came_true_are_counted():
    # of the rows at .95 none is class 1 in training, so its bin says 0; then one comes true
    probs = np.vstack([np.tile([0.95, 0.05], (40, 1)), np.tile([0.45, 0.55], (10, 1))])
    y = np.repeat([0, 1], [40, 10])
    later = y.copy()
    later[0] = 1
    c = compare((probs, y), (probs, later), methods=["histogram"], seed=0)
    assert c["histogram"].n_zero_labels == 1
    assert "came true with probability 0 (clipped to 1e-6 here): histogram 1" in str(c)


# --- rows that depend on each other, or whose weights are no counts


@pytest.mark.parametrize(
    "options",
    [
        {"groups": np.arange(300) // 5},
        {"sample_weight": np.linspace(0.5, 3.0, 300), "weight_kind": "importance"},
    ],
    ids=["groups", "importance"],
)
def test_tests_are_robust_where_rows_are_not_independent(options):
    train = sharpened(300, 0)
    holdout = Predictions.from_arrays(*sharpened(300, 1), **options)
    found = compare(train, holdout, methods=("mcllo", "temperature"), seed=4)
    rows = {row.method: row for row in found.rows}
    expected = mcllo.robust_test(holdout, n_resamples=499, seed=4)
    assert rows["uncalibrated"].pvalue == expected.pvalue
    assert rows["uncalibrated"].pvalue_method == expected.method
    assert rows["uncalibrated_train"].pvalue_method in ("chi2", "exact", "bound")
    assert rows["mcllo"].pvalue_corrected is None


def test_fractions_of_rows_are_not_judged():
    probs, y = sharpened(60, 0)
    some = Predictions.from_arrays(probs, y, sample_weight=np.full(60, 0.5))
    with pytest.raises(InputError, match="whole numbers where weights count rows"):
        compare(some, (probs, y), seed=0)
    with pytest.raises(InputError, match="whole numbers where weights count rows"):
        compare((probs, y), some, seed=0)


def test_the_papers_p_values_of_every_row_with_statistic_and_df():
    """Table 2 of the paper: chi-square with 2 (c - 1) degrees of freedom, whatever n."""
    data = mcllo.datasets.load_obesity_forest()
    c = mcllo.compare(
        data.train, data.holdout, methods=("mcllo", "histogram"), method="chi2", seed=0
    )
    assert c.test_method == c.to_dict()["test_method"] == "chi2"
    heads = next(line for line in str(c).splitlines() if line.startswith("method"))
    assert heads.split()[:5] == ["method", "n", "statistic", "df", "p"]
    for row in c.rows:
        assert (row.df, row.pvalue_method) == (2 * (7 - 1), "chi2")
        assert row.pvalue == pytest.approx(chi2.sf(row.statistic, row.df))
        assert f"  {row.statistic:.2f}  12  " in str(c)
    # 132 rows: by default labels are drawn, and the table has the p-values alone
    drawn = mcllo.compare(
        data.train, data.holdout, methods=("mcllo",), n_resamples=19, seed=0
    )
    assert drawn["mcllo"].pvalue_method == "exact"
    assert "statistic" not in str(drawn).splitlines()[2]
    with pytest.raises(InputError, match="method must be 'auto', 'chi2'"):
        mcllo.compare(data.train, data.holdout, method="chisq")


def scaled_rows(seed, n=300):
    """Logits whose labels follow a map of vector scaling, in two parts."""
    rng = np.random.default_rng([seed, 77])
    logits = rng.normal(0, 1.5, (n, 4))
    right = np.exp(logits * [0.6, 0.8, 1.0, 0.7] + [0.3, 0, -0.3, 0])
    right /= right.sum(axis=1, keepdims=True)
    y = (right.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    border = 2 * n // 3
    return [
        {"logits": logits[part], "y": y[part], "classes": range(4)}
        for part in (slice(0, border), slice(border, n))
    ]


def test_a_corrected_p_value_by_fitting_anew():
    parts = scaled_rows(0)
    options = {"methods": ["vector", "histogram"], "method": "chi2", "seed": 0}
    c = compare(*parts, **options, bootstrap=19)
    for name in ("vector", "histogram"):
        row = c[name]
        assert row.corrected_method == "bootstrap"
        assert round(20 * row.pvalue_corrected, 9) in range(1, 21)  # of 19 draws
    again = compare(*parts, **options, bootstrap=19)
    assert again["vector"].pvalue_corrected == c["vector"].pvalue_corrected
    assert compare(*parts, **options)["vector"].pvalue_corrected is None
    with pytest.raises(InputError, match="bootstrap must be a whole number of draws"):
        compare(*parts, **options, bootstrap=-1)


@pytest.mark.slow
def test_a_right_map_is_rejected_as_often_as_the_level_says():
    """40 data sets: 20 % of them are 8, and 16 would be beyond 3 standard errors (2.5)."""
    plain, corrected = [], []
    for seed in range(40):
        c = compare(
            *scaled_rows(seed),
            methods=["vector"],
            method="chi2",
            bootstrap=49,
            seed=seed,
        )
        plain.append(c["vector"].pvalue <= 0.2)
        corrected.append(c["vector"].pvalue_corrected <= 0.2)
    assert sum(corrected) < 16
    assert sum(plain) > sum(corrected)
