import json

import numpy as np
from block_data import cut, rows

from mcllo._block_assess import assess_blocks
from mcllo._block_assessment import BlockDetails, BlockFacts
from mcllo._block_fit import fit_blocks
from mcllo._block_sources import blocks_of_arrays, blocks_of_batches
from mcllo._posterior import calibration_posterior
from mcllo._predictions import Predictions
from mcllo._words import heading, notes


def test_facts_read_like_predictions():
    probs, y, weight = rows(n=300, zeros=True, weighted=True)
    y[y == 4] = 3
    options = {"classes": range(5), "clip": 1e-6}
    p = Predictions.from_arrays(probs, y, sample_weight=weight, **options)
    blocks = blocks_of_batches(cut((probs, y, weight), (100,)), **options)
    facts = BlockFacts.of(blocks)
    assert facts.absent == (4,)
    assert facts.zero_note == p.zero_note
    assert heading(facts) == heading(p)
    fit = fit_blocks(blocks_of_arrays(*rows(n=300)[:2]))
    assert notes(facts, fit) == notes(p, fit)


def test_the_posterior_needs_no_rows():
    probs, y, _ = rows(n=300)
    blocks = blocks_of_arrays(probs, y)
    details = BlockDetails.of(blocks.first, fit_blocks(blocks))
    expected = calibration_posterior(probs, y)
    np.testing.assert_allclose(details.posterior.posterior, expected.posterior, rtol=1e-9)
    assert set(details.skipped) == {"ladder", "class_tests", "baselines"}
    assert details.to_dict()["ladder"] is None


def test_an_assessment_is_plain_values():
    probs, y, _ = rows(n=300)
    found = assess_blocks(blocks_of_arrays(probs, y), seed=0)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["data"]["n_samples"] == 300
    assert len(content["reliability"]) == 6
    assert repr(found).startswith("<BlockAssessment of 300 rows, 5 classes: statistic")
