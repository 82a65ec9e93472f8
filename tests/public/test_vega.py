"""`to_vega()`: the numbers of the results, as Vega-Lite reads them."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from jsonschema import validators

import mcllo

RNG = np.random.default_rng(0)
HONEST = RNG.dirichlet([1.0, 1.0, 1.0], 600)
LABELS = (HONEST.cumsum(axis=1) > RNG.random((600, 1))).argmax(axis=1)
SHARP = HONEST**1.6 / (HONEST**1.6).sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def assessed():
    return mcllo.assess(SHARP, LABELS, seed=0, n_resamples=99)


@pytest.fixture(scope="module")
def compared():
    train, holdout = (SHARP[:300], LABELS[:300]), (SHARP[300:], LABELS[300:])
    methods = ["temperature", "histogram"]
    return mcllo.compare(train, holdout, methods=methods, n_resamples=99, seed=0)


def test_the_rows_are_the_bins_of_the_curve(assessed):
    chart = assessed.to_vega()
    curve = mcllo.reliability_curve(SHARP, LABELS)
    used = curve.counts > 0
    rows = chart["data"]["values"]
    assert len(rows) == used.sum() < 10  # three classes: nothing below a third
    for name, values in (
        ("rows", curve.counts),
        ("bin_end", curve.edges[1:]),
        ("predicted", curve.mean_predicted),
        ("observed", curve.observed),
        ("low", curve.low),
        ("band_high", curve.band_high),
        ("outside", curve.outside),
    ):
        assert [row[name] for row in rows] == values[used].tolist(), name
    assert curve.to_vega() == chart
    marks = [layer["mark"]["type"] for layer in chart["layer"]]
    assert marks == ["rect", "line", "rule", "point"]


def test_a_panel_for_each_class(assessed):
    chart = assessed.to_vega(by_class=True)
    assert chart["facet"]["sort"] == ["0", "1", "2"]
    own = [row for row in chart["data"]["values"] if row["class"] == "1"]
    curve = mcllo.reliability_curve(SHARP, LABELS, label=1)
    assert [row["observed"] for row in own] == curve.observed[curve.counts > 0].tolist()
    one = curve.to_vega()
    assert one["title"] == "Reliability of 1"
    assert one["data"]["values"] == own


def test_the_methods_of_a_comparison(compared):
    chart = compared.to_vega()
    rows = chart["data"]["values"]
    assert [row["method"] for row in rows] == [row.method for row in compared.ranked]
    for row in rows:
        found = compared[row["method"]]
        assert (row["pvalue"], row["ece"]) == (found.pvalue, found.ece)
        assert row["difference_high"] == found.difference_high
    fields = {
        layer["encoding"]["x"]["field"]
        for panel in chart["hconcat"]
        for layer in panel.get("layer", [panel])
    }
    assert fields == {"pvalue", "ece", "difference_low", "log_loss_difference"}
    assert fields <= set(rows[0])


def test_weights_that_are_no_counts_have_no_band():
    weight = RNG.random(600) + 0.5
    curve = mcllo.reliability_curve(SHARP, LABELS, sample_weight=weight)
    rows = curve.to_vega()["data"]["values"]
    assert {row["band_low"] for row in rows} == {None}
    assert json.dumps(curve.to_vega(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("altair") is None, reason="altair is not installed")
@pytest.mark.filterwarnings("ignore")
def test_the_charts_keep_to_the_schema(assessed, compared):
    import altair

    (path,) = Path(altair.__file__).parent.rglob("vega-lite-schema.json")
    schema = json.loads(path.read_text())
    validator = validators.validator_for(schema)(schema)
    for chart in (
        assessed.to_vega(),
        assessed.to_vega(by_class=True),
        compared.to_vega(),
    ):
        assert json.loads(json.dumps(chart, allow_nan=False)) == chart
        assert list(validator.iter_errors(chart)) == []
    broken = {**assessed.to_vega(), "layer": [{"mark": "pont"}]}
    assert list(validator.iter_errors(broken))
