"""Explanations that are no shift or slope: shares by hand, and which explanation is named."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from independent import draw

import mcllo
from mcllo import Predictions, calibration_test
from mcllo._diagnostics.attribution import Explanations, attribute_miscalibration
from mcllo._diagnostics.mixtures import (
    Mixture,
    MixtureRows,
    constant_lapse_rate_pvalue,
    fit_confused_pair,
    fit_lapse,
    has_confident_rows,
    likelihood_interval_of_share,
    maximise_over_share,
    maximise_over_two_shares,
)
from mcllo._diagnostics.nested_models import fit_nested_models
from mcllo._utils.statements import suppress_warnings

NAMES = ["cat", "dog", "fox", "owl", "yak"]


def counted(rows, counts):
    """Predictions with so many labels of each class for each row."""
    probs = [
        row for row, own in zip(rows, counts, strict=True) for _ in range(sum(own))
    ]
    y = [k for own in counts for k, many in enumerate(own) for _ in range(many)]
    return MixtureRows(
        Predictions.from_arrays(probs, y, classes=list(range(len(rows[0])))), 0
    )


def test_a_share_by_hand():
    # log(1 + e) + log(1 - e / 2): slope 1 / (1 + e) - 1 / (2 - e) = 0 at e = 1/2; 3/2 * 3/4 = 9/8
    share, gain = maximise_over_share(np.array([1.0, -0.5]), np.ones(2))
    assert share == pytest.approx(0.5)
    assert gain == pytest.approx(np.log(9 / 8))


def test_a_share_without_rows_for_it_is_nothing():
    assert maximise_over_share(np.array([-1.0, 0.5]), np.ones(2)) == (0.0, 0.0)
    assert maximise_over_share(np.zeros(0), np.zeros(0)) == (0.0, 0.0)
    assert likelihood_interval_of_share(np.array([-1.0]), np.ones(1), 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_the_interval_is_where_the_likelihood_ratio_is_chi_squares(weight):
    d = np.exp(np.random.default_rng(0).normal(-0.3, 1.2, 200)) - 1.0
    w = np.full(200, weight)
    share, gain = maximise_over_share(d, w)
    for end in likelihood_interval_of_share(d, w, share):
        lost = gain - weight * np.log1p(end * d).sum()
        assert 2.0 * lost == pytest.approx(3.8415, abs=1e-3)


def test_a_lapse_by_hand():
    # 0.98 (1 - e) + e / 3 = 0.9 of the labels: e = 0.08 / (0.98 - 1/3) = 0.1237; two thirds of
    # these fail
    rows = counted([[0.98, 0.01, 0.01]], [(900, 50, 50)])
    found = fit_lapse(rows)
    assert found.lapse_share == pytest.approx(0.08 / (0.98 - 1 / 3), rel=1e-4)
    assert found.mixture.share == pytest.approx(found.lapse_share * 2 / 3)
    assert found.mixture.low < found.mixture.share < found.mixture.high
    np.testing.assert_allclose(found.probs[0], [0.9, 0.05, 0.05], rtol=1e-4)


def test_a_lapse_may_follow_the_mean_prediction():
    rng = np.random.default_rng(3)
    probs = rng.dirichlet([0.4, 0.1, 0.02], 4000) * 0.999 + 0.001 / 3
    shares = probs.mean(axis=0)
    y = draw(0.9 * probs + 0.1 * shares, rng)
    found = fit_lapse(
        MixtureRows(Predictions.from_arrays(probs, y, classes=[0, 1, 2]), 0)
    )
    np.testing.assert_allclose(found.target, shares)
    assert found.lapse_share == pytest.approx(0.1, abs=0.03)


def test_however_sure_needs_sure_rows():
    unsure = counted(
        [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]], [(500, 250, 250), (250, 500, 250)]
    )
    assert not has_confident_rows(unsure, fit_lapse(unsure))
    sure = counted([[0.98, 0.01, 0.01]], [(900, 50, 50)])
    assert has_confident_rows(sure, fit_lapse(sure))


def test_few_lapses_are_no_rate():
    assert fit_lapse(counted([[0.98, 0.01, 0.01]], [(996, 2, 2)])) is None


def test_a_leak_by_hand():
    # of 50 % that should be class 0, 3 in 10 are labelled 1: (.5, .3, .2) becomes (.35, .45, .2)
    found = fit_confused_pair(counted([[0.5, 0.3, 0.2]], [(350, 450, 200)])).mixture
    assert (found.model, found.labels) == ("leak", (0, 1))
    assert found.share == pytest.approx(0.3, rel=1e-4)
    assert (found.back, found.back_low, found.back_high) == (0.0, 0.0, 0.0)


def test_a_swap_by_hand():
    # a quarter goes either way: (.6, .2, .2) becomes (.5, .3, .2), and (.2, .6, .2) (.3, .5, .2)
    rows = counted(
        [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]], [(500, 300, 200), (300, 500, 200)]
    )
    found = fit_confused_pair(rows)
    assert (found.mixture.model, found.mixture.labels) == ("swap", (0, 1))
    assert found.mixture.share == found.mixture.back == pytest.approx(0.25, rel=1e-4)
    np.testing.assert_allclose(
        found.probs[[0, -1]], [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]], rtol=1e-4
    )


def test_a_confusion_has_two_shares():
    # .6 - .4 * .6 + .1 * .2 = .38 and .2 - .4 * .2 + .1 * .6 = .18
    counts = [(3800, 4200, 2000), (1800, 6200, 2000)]
    found = fit_confused_pair(
        counted([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]], counts)
    ).mixture
    assert (found.model, found.labels) == ("confusion", (0, 1))
    assert (found.share, found.back) == pytest.approx((0.4, 0.1), rel=1e-3)
    assert found.low < 0.4 < found.high
    assert found.back_low < 0.1 < found.back_high


def test_two_shares_are_the_maximum():
    rng = np.random.default_rng(1)
    forth, back = rng.exponential(1.5, (2, 300)) - 1.0
    weight = np.ones(300)
    found = maximise_over_two_shares(forth, back, weight)
    shares = np.array([found.forth[0], found.back[0]])
    for step in ([0.01, 0.0], [-0.01, 0.0], [0.0, 0.01], [0.0, -0.01], [0.01, -0.01]):
        moved = np.clip(shares + step, 0.0, None)
        assert np.log1p(moved @ [forth, back]).sum() <= found.gain + 1e-9


def net(rng, n, c):
    """Rows as networks make them: one logit raised by 6, give or take 2.5."""
    logits = rng.normal(0.0, 1.0, (n, c))
    logits[np.arange(n), rng.integers(c, size=n)] += rng.normal(6.0, 2.5, n)
    return softmax(logits)


def softmax(logits):
    found = np.exp(logits - logits.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def swapped(probs, share=0.3):
    found = probs.copy()
    found[:, 0] += share * (probs[:, 1] - probs[:, 0])
    found[:, 1] += share * (probs[:, 0] - probs[:, 1])
    return found


def tempered(probs, slope, shift=()):
    return softmax(
        slope * np.log(probs)
        + np.array([*shift, *[0.0] * probs.shape[1]])[: probs.shape[1]]
    )


TRUTHS = {
    "swap": swapped,
    "lapse": lambda x: 0.95 * x + 0.01,
    "both": lambda x: 0.95 * tempered(x, 0.8) + 0.01,
    "beside": lambda x: tempered(x, 0.75, (0.0, 1.2)),
    "temperature": lambda x: tempered(x, 0.75),
}


@cache
def rows(truth, n=3000, seed=0):
    rng = np.random.default_rng(seed)
    probs = net(rng, n, 5)
    y = np.array(NAMES)[draw(TRUTHS[truth](probs), rng)]
    return Predictions.from_arrays(probs, y, classes=NAMES)


def miscalibrated_classes(p, **options):
    with suppress_warnings():
        test = calibration_test(p, seed=1, n_resamples=499)
        nested_models = fit_nested_models(p, seed=1, n_resamples=99)
        return attribute_miscalibration(
            p, test=test, nested_models=nested_models, seed=0, **options
        )


def test_a_swap_names_the_pair():
    found = miscalibrated_classes(rows("swap"))
    assert (found.kind, set(found.labels), found.one_of) == ("pair", {"cat", "dog"}, ())
    assert found.mixture.model == "swap"
    assert found.mixture.low < 0.3 < found.mixture.high
    (said,) = found.statements()
    assert (said.kind, said.level) == ("attribution.pair", "bad")
    assert said.text.startswith(
        "'cat' and 'dog' are confused: of the rows that should be one"
    )


def test_a_lapse_is_no_temperature():
    found = miscalibrated_classes(rows("lapse"))
    assert (found.kind, found.labels, found.one_of) == ("lapse", (), ())
    assert found.mixture.slope == 1.0
    assert found.mixture.low < 0.05 * 4 / 5 < found.mixture.high
    (said,) = found.statements()
    assert said.kind == "attribution.lapse"
    assert "divide" not in said.text
    assert "AutoCalibrator" in said.text
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_lapse_beside_a_temperature():
    found = miscalibrated_classes(rows("both"))
    assert found.kind == "lapse"
    assert found.mixture.slope == pytest.approx(0.8, abs=0.1)
    assert found.statements()[0].text.endswith(
        "Beside that, all classes are overconfident, alike."
    )


def test_a_class_beside_a_temperature():
    found = miscalibrated_classes(rows("beside"))
    assert (found.kind, found.labels, found.beside) == ("classes", ("dog",), True)
    assert found.slope_low < 0.75 < found.slope_high
    every, dog = found.statements()
    assert every.kind == "attribution.all"
    assert every.text.startswith(
        "All classes are overconfident, alike: divide the logits by 1."
    )
    assert dog.text.startswith("'dog' is predicted too rarely")
    # what is said of the class is said of the probabilities after the temperature
    (detail,) = found.details
    after = tempered(rows("beside").probs, found.slope)
    assert detail.predicted == pytest.approx(after[:, 1].mean())
    assert detail.delta_interval[0] < np.exp(1.2) < detail.delta_interval[1]


def test_a_temperature_is_no_lapse():
    found = miscalibrated_classes(rows("temperature"))
    assert (found.kind, found.mixture, found.rival) == ("temperature", None, "")


def test_few_rows_do_not_tell_a_lapse_from_a_temperature():
    found = miscalibrated_classes(rows("temperature", n=250, seed=12))
    assert (found.kind, found.rival) == ("temperature", "lapse")
    assert found.statements()[0].text.endswith(
        "the two explain these rows about equally well."
    )


def test_what_is_far_likelier_and_not_all_is_said_so():
    found = replace(
        miscalibrated_classes(rows("temperature")), kind="spread", rival="lapse"
    )
    (said,) = found.statements()
    assert (
        "improbable labels come true more often than any temperature allows"
        in said.text
    )
    assert "On the whole" not in said.text


def test_a_slope_among_the_alternatives():
    found = miscalibrated_classes(rows("beside"))
    either = replace(found, beside=False, one_of=(("yak",),), rival="slope")
    assert either.statements()[-1].text == (
        "One of these is also off, and these rows cannot tell which: 'yak', or all classes, alike."
    )


@pytest.mark.parametrize("truth", ["swap", "lapse", "beside"])
def test_the_order_of_the_classes_does_not_matter(truth):
    p = rows(truth)
    order = [3, 1, 4, 0, 2]
    classes = [NAMES[k] for k in order]
    y = [NAMES[k] for k in p.codes]
    moved = miscalibrated_classes(
        Predictions.from_arrays(p.probs[:, order], y, classes=classes)
    )
    found = miscalibrated_classes(p)
    assert (moved.kind, set(moved.labels)) == (found.kind, set(found.labels))
    if found.mixture is not None:
        assert moved.mixture.share == pytest.approx(found.mixture.share, rel=1e-3)


def test_whole_weights_are_repeated_rows():
    p = rows("both", n=1500)
    twice = MixtureRows(replace(p, sample_weight=np.full(p.n_samples, 2.0)), 0)
    again = MixtureRows(p.take(np.repeat(np.arange(p.n_samples), 2)), 0)
    for fit in (fit_lapse, fit_confused_pair):
        a, b = fit(twice).mixture.to_dict(), fit(again).mixture.to_dict()
        assert a.pop("model") == b.pop("model")
        assert a.pop("labels") == b.pop("labels")
        assert a == pytest.approx(b)


def test_labels_of_probability_zero_are_no_lapse():
    p = rows("lapse")
    probs = np.where(p.probs < 0.002, 0.0, p.probs)
    with suppress_warnings():
        y = [NAMES[k] for k in p.codes]
        clipped = Predictions.from_arrays(probs, y, classes=NAMES, normalize=True)
    assert clipped.n_clipped_true > 0
    assert miscalibrated_classes(clipped).mixture is None


def test_a_rate_that_falls_with_confidence_is_no_lapse():
    rng = np.random.default_rng(0)
    probs = net(rng, 6000, 5)
    truth = 0.5 * tempered(probs, 0.4) + 0.5 * tempered(probs, 1.6)
    p = Predictions.from_arrays(probs, draw(truth, rng), classes=range(5))
    own = MixtureRows(p, 0)
    assert constant_lapse_rate_pvalue(own, fit_lapse(own)) < 0.01
    true = MixtureRows(rows("lapse"), 0)
    assert constant_lapse_rate_pvalue(true, fit_lapse(true)) > 0.05


def test_many_rows_are_judged_by_some(monkeypatch):
    p = rows("lapse")
    monkeypatch.setattr("mcllo._diagnostics.mixtures.MAX_ENTRIES", 5 * 2000)
    with suppress_warnings():
        nested_models = fit_nested_models(p, seed=1, n_resamples=99)
    some = Explanations(p, [], nested_models, alpha=0.05, seed=0)
    assert some.predictions.n_samples == 2000
    assert some.mixture.model == "lapse"


WORDS = {
    "'cat' is confused with 'dog': of the rows that should be 'cat', about 30.0 % (25.0 to 35.0) "
    "have the label 'dog'. All else": ("leak", (0.0, 0.0, 0.0)),
    "'cat' is confused with 'dog': of the rows that should be 'cat', about 30.0 % (25.0 to 35.0) "
    "have the label 'dog', and about 10.0 % (5.0 to 15.0) the other way. All else": (
        "confusion",
        (0.1, 0.05, 0.15),
    ),
}


@pytest.mark.parametrize("words", WORDS)
def test_what_is_said_of_a_pair(words):
    model, back = WORDS[words]
    found = Mixture(model, ("cat", "dog"), 0.3, 0.25, 0.35, *back, 1.0, 50.0)
    assert found.statement().text.startswith(words)


def test_text_report_and_json_say_the_same():
    found = mcllo.assess(rows("lapse"), seed=0)
    assert "Sure predictions fail, however sure they are" in " ".join(
        str(found).split()
    )
    assert "divide the logits" not in str(found)
    assert found.to_dict()["miscalibrated_classes"]["mixture"]["model"] == "lapse"
    page = mcllo.report(found).markdown()
    assert page.count("Sure predictions fail, however sure they are") >= 2
    assert "What is wrong is no shift or slope" in page
    assert "What is wrong is no shift or slope" in " ".join(str(found).split())
