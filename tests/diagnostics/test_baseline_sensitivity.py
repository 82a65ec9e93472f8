"""`baseline_sensitivity`: every baseline's fit, the p-value over all, and what is said."""

import dataclasses

import pytest
from toy import TOY_X, TOY_Y

from mcllo import baseline_sensitivity
from mcllo._utils.formatting import Table

TOY = baseline_sensitivity(TOY_X, TOY_Y, seed=0)


def result(**columns):
    """Return TOY's result, two of its three baselines, with other columns."""
    two = {name: values[:2] for name, values in TOY.table.to_dict().items()}
    table = Table(two | {"baseline": ["cat", "dog"]} | columns)
    return dataclasses.replace(TOY, table=table, reference="dog")


def test_decisions_that_differ_are_said():
    # 0.05 rejects, 0.07 does not
    assert result(pvalue=[0.05, 0.07]).verdict.startswith(
        "the test decision hangs on the baseline (p in [0.050, 0.070]; use the one over all)"
    )


def test_a_flat_fit_is_not_called_separated():
    notes = result(separated=[True, False], converged=[False, False]).notes
    assert notes[0].startswith("for 1 of 2 baselines (cat) the estimate does not exist")
    assert notes[1].startswith(
        "for 1 of 2 baselines (dog) the estimate is not determined"
    )
    assert notes[2] == "2 of 3 baselines were tried."


def test_it_is_frozen_and_what_does_not_exist_is_none():
    found = result(pvalue=[float("nan"), 0.1])
    assert found.to_dict()["rows"][0]["pvalue"] is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.pvalue = 0.5
