import dataclasses

import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._calibration_test import run_test
from mcllo._fit import fit_predictions
from mcllo._ladder_models import INSIDE, Models
from mcllo._ladder_rows import LadderRow, ladder_rows
from mcllo._nested_test import Plan


def rows_of(alpha, y=TOY_Y, method="chi2"):
    p = Predictions.from_arrays(TOY_X, y)
    fit = fit_predictions(p)
    plan = Plan.of(p, method=method, n_resamples=99, seed=0, n_tests=10)
    test = run_test(p, fit, method=method, n_resamples=99, seed=0)
    return {r.model: r for r in ladder_rows(Models(p, fit), plan, test, alpha)}


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


def test_chi_square_p_values_are_there_whatever_the_method():
    chi2, exact = rows_of(0.05), rows_of(0.05, method="exact")
    for name, row in exact.items():
        for column in ("chi2_pvalue", "next_chi2_pvalue", "larger_chi2_pvalue"):
            assert getattr(row, column) == pytest.approx(getattr(chi2[name], column), nan_ok=True)
        assert chi2[name].pvalue == chi2[name].chi2_pvalue
    assert exact["temperature"].pvalue != chi2["temperature"].pvalue


def test_pairs_that_two_columns_share_have_one_p_value():
    rows = rows_of(0.05, method="exact")
    assert rows["identity"].next_pvalue == rows["temperature"].pvalue
    assert rows["identity"].larger_pvalue == rows["mcllo"].pvalue
    for name in ("scale", "common_slope", "mcllo"):
        assert rows[name].next_pvalue == rows[name].larger_pvalue
        assert rows[name].next_method == rows[name].larger_method == "bootstrap"
    assert rows["shift"].next_method == "bootstrap"
    assert rows["shift"].next_model == "common_slope"


def test_rows_are_frozen_and_become_plain_values():
    row = rows_of(0.05)["full"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.df = 3
    content = row.to_dict()
    assert list(content) == [field.name for field in dataclasses.fields(LadderRow)]
    assert content["larger_pvalue"] is None
