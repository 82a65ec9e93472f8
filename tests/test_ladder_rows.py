import dataclasses

import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._calibration_test import run_test
from mcllo._fit import fit_predictions
from mcllo._ladder_models import INSIDE, Models
from mcllo._ladder_rows import LadderRow, ladder_rows
from mcllo._nested_test import Plan


def rows_of(alpha, y=TOY_Y):
    p = Predictions.from_arrays(TOY_X, y)
    fit = fit_predictions(p)
    plan = Plan.of(p, 4, method="chi2", n_resamples=99, seed=0, n_tests=8)
    test = run_test(p, fit, method="chi2")
    return {r.model: r for r in ladder_rows(Models(p, fit), {False: plan, True: plan}, test, alpha)}


def test_statistics_add_up_along_the_ladder():
    rows = rows_of(0.05)
    for name in ("identity", "temperature", "shift", "scale", "common_slope"):
        total = rows[name].statistic + rows[name].larger_statistic
        assert total == pytest.approx(rows["mcllo"].statistic, abs=1e-9)
        assert rows[name].df + rows[name].larger_df == rows["mcllo"].df
    assert rows["mcllo"].larger == "full"


@pytest.mark.parametrize("alpha", [0.05, 0.645, 0.7, 0.9, 0.95])
def test_rejections_are_those_of_closed_testing(alpha):
    # TOY chi-square p-values lie between .64 and .91, so these levels reject none, some and most
    rows = rows_of(alpha)
    local = {name: row.larger_pvalue <= alpha for name, row in rows.items()}
    for name, row in rows.items():
        assert row.rejected == (local[name] and all(local[part] for part in INSIDE[name]))
    assert not rows["full"].rejected


def test_rows_are_frozen_and_become_plain_values():
    row = rows_of(0.05)["full"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.df = 3
    content = row.to_dict()
    assert list(content) == [field.name for field in dataclasses.fields(LadderRow)]
    assert content["larger_pvalue"] is None
