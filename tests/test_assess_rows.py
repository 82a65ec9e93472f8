import numpy as np
import pytest
from block_data import rows

from mcllo import Assessment, assess
from mcllo._block_assessment import BlockAssessment
from mcllo.exceptions import InputError

da = pytest.importorskip("dask.array")


def test_dask_rows_give_what_arrays_give():
    probs, y, _ = rows(c=3)
    plain = assess(probs, y, n_resamples=99, seed=1)
    found = assess(da.from_array(probs, chunks=800), da.from_array(y, 700), n_resamples=99, seed=1)
    assert isinstance(plain, Assessment)
    assert isinstance(found, BlockAssessment)
    assert found.test.pvalue == plain.test.pvalue
    np.testing.assert_allclose(found.fit.theta, plain.fit.theta, atol=1e-10)
    assert found.metrics == pytest.approx(plain.metrics, rel=1e-12)
    assert str(found).splitlines()[0] == str(plain).splitlines()[0]


def test_dask_logits_are_read():
    probs, y, _ = rows(c=3)
    found = assess(None, y, logits=da.from_array(np.log(probs), chunks=800), method="chi2", seed=1)
    assert found.test.statistic == pytest.approx(
        assess(probs, y, method="chi2", seed=1).test.statistic, rel=1e-9
    )


@pytest.mark.parametrize(
    "option", [{"baseline": "auto"}, {"weight_kind": "survey"}, {"groups": np.arange(3000)}]
)
def test_what_needs_all_rows_is_refused(option):
    probs, y, _ = rows(c=3)
    with pytest.raises(InputError, match=r"needs all rows in memory. Pass probs\.compute\(\)"):
        assess(da.from_array(probs, chunks=800), y, **option)
