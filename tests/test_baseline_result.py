import dataclasses

import pytest

from mcllo._baseline_result import BaselineSensitivity
from mcllo._table import Table


def result(pvalue, separated=(False, False), converged=(True, True), **changes):
    """Return a result of two baselines with these p-values; the rest is made up."""
    table = Table(
        {
            "baseline": ["cat", "dog"],
            "statistic": [1010.7, 1038.3],
            "df": [18, 18],
            "pvalue": list(pvalue),
            "log_likelihood": [-2.0, -1.0],
            "score": [1.0, 2.0],
            "largest_change": [0.28, 0.0],
            "mean_change": [0.004, 0.0],
            "label_changes": [0.014, 0.0],
            "separated": list(separated),
            "converged": list(converged),
        }
    )
    fields = {
        "reference": "dog",
        "max_score": 2.0,
        "pvalue": 0.04,
        "method": "exact",
        "n_resamples": 1999,
        "seed": 1,
        "mean_range": 0.005,
        "largest_range": 0.277,
        "label_disagreement": 0.014,
        "n_classes": 10,
    }
    return BaselineSensitivity(table=table, **{**fields, **changes})


def test_one_line():
    assert result([0.001, 0.0005]).verdict == (
        "the test decision does not hang on the baseline: statistic 1011 to 1038; repaired "
        "probabilities move by 0.0050 on average, 0.28 at most."
    )


def test_decisions_that_differ_are_said():
    # 0.05 rejects, 0.07 does not
    assert result([0.05, 0.07]).verdict.startswith(
        "the test decision hangs on the baseline (p in [0.050, 0.070]; use the one over all)"
    )


def test_a_flat_fit_is_not_called_separated():
    notes = result([0.1, 0.1], separated=[True, False], converged=[False, False]).notes
    assert notes[0].startswith("for 1 of 2 baselines (cat) the estimate does not exist")
    assert notes[1].startswith("for 1 of 2 baselines (dog) the estimate is not determined")
    assert notes[2] == "2 of 10 baselines were tried."


def test_what_does_not_exist_is_none():
    assert result([float("nan"), 0.1]).to_dict()["rows"][0]["pvalue"] is None


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        result([0.1, 0.1]).pvalue = 0.5
