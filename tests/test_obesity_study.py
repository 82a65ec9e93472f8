"""The obesity study: words that no table fills in, verdicts, and accuracy against calibration."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata
from studies import pages
from studies.obesity import analysis as obesity
from studies.obesity import tradeoff, verdicts

from mcllo.datasets import load_obesity_forest

ROOT = Path(__file__).resolve().parents[1]


def results(name):
    return pages.read(ROOT / "studies" / "obesity" / "results" / f"{name}.csv")


@pytest.fixture(scope="module")
def seeds():
    return pages.read(obesity.SEEDS)


def test_examples():
    for module in (obesity, verdicts, tradeoff):
        found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
        assert (found.attempted > 0, found.failed) == (True, 0), module


def test_words_that_no_table_fills_in():
    """A new forest must make these fail, not the reader."""
    bins = {row["set"]: row for row in results("bins")}
    raw = bins["uncalibrated"]
    assert raw["ece_5"] == raw["ece_10"] == raw["ece_12"]  # underconfident in every bin
    assert min(row["mce_20"] for row in bins.values()) == pytest.approx(0.39, abs=0.005)
    rows = {(row["method"], row["reading"]): row for row in results("choices")}
    binned = [row for (method, _), row in rows.items() if method == "histogram"]
    assert len(binned) == 4
    for row in binned:  # the paper's 0.083 and 3.03 %
        assert row["median_ece"] + 0.01 < 0.083 < row["q95_ece"] + 0.015
        assert row["median_label_change"] > 0.0303
    smoothed, free = (
        row for (method, _), row in rows.items() if method == "xu_davoine"
    )
    assert smoothed["not_rejected"] == 0
    assert free["median_ece"] < 0.078 < smoothed["median_ece"]
    assert smoothed["q05_ece"] < 0.078 < free["q95_ece"]
    trades = {row["set"]: row for row in results("tradeoff")}
    for name in ("mcllo", "histogram"):
        row = trades[name]
        assert row["ece_falls"] == row["forests"]
        assert abs(row["accuracy_change"]) < 0.5 / 132
        assert max(abs(row["ece_correlation"]), abs(row["log_loss_correlation"])) < 0.28
    assert [
        trades[n][k] for n in ("xu_davoine", "temperature") for k in ("up", "down")
    ] == [0] * 4


def test_every_claim_is_on_the_page_with_its_verdict():
    rows, page = (
        results("verdicts"),
        (ROOT / "docs" / "studies" / "obesity.md").read_text(),
    )
    template = (ROOT / "studies" / "obesity" / "page.md").read_text()
    assert re.findall(r"\{claim\[(\w+)\]\}", template) == [row["key"] for row in rows]
    for row in rows:
        assert f"**{row['verdict']}** | {row['evidence']} |" in page
    found = {row["key"]: row["verdict"] for row in rows}
    assert found["last_class"] == "not scored"
    assert (
        found["binning_recalibrations"] == found["xu_rejected"] == "cannot be told"
    )  # readings disagree


def test_quotations_are_the_papers():
    path = ROOT.parent / "shared" / "paper" / "mcllo_paper.tex"
    if not path.exists():
        pytest.skip("the paper is not here")
    tex = " ".join(
        re.sub(r"\\mathbf\{([^}]*)\}|[$\\{}]", r"\1", path.read_text()).split()
    )
    for row in results("verdicts"):
        for quoted in re.findall(r'"([^"]+)"', row["claim"]):
            words = quoted.replace("α", "alpha").removesuffix('"')
            assert words in tex, words


def test_accuracy_against_calibration_another_way(seeds):
    row = next(row for row in results("tradeoff") if row["set"] == "mcllo")
    people = [
        round(132 * (s["accuracy_mcllo"] - s["accuracy_uncalibrated"])) for s in seeds
    ]
    assert (row["up"], row["down"]) == (
        sum(n > 0 for n in people),
        sum(n < 0 for n in people),
    )
    fall = [s["ece_uncalibrated"] - s["ece_mcllo"] for s in seeds]
    ranks = np.corrcoef(rankdata(people), rankdata(np.round(fall, 4)))[0, 1]
    assert row["ece_correlation"] == pytest.approx(ranks, abs=1e-4)
    both = sum(n < 0 and f > 0 for n, f in zip(people, fall, strict=True))
    assert row["ece_traded"] == both


def test_a_constant_on_logits_moves_vector_scaling_only():
    data = load_obesity_forest()
    temperature, vector = obesity.logits(data.train, data.holdout)
    assert temperature["largest_change"] < 1e-6 < 0.1 < vector["largest_change"]


def test_splits_hold_every_row_once_and_names_are_words():
    data = load_obesity_forest()
    pairs = obesity.splits(data)
    assert [(a.n_samples, b.n_samples) for a, b in pairs] == [(396, 132)] * 50
    total = sum(part.probs.sum(axis=0) for part in pairs[3])
    np.testing.assert_allclose(
        total, data.train.probs.sum(0) + data.holdout.probs.sum(0)
    )
    assert obesity.readable(data.train).classes[2] == "Obesity Type I"
    assert obesity.readable(data.train).baseline == "Normal Weight"
