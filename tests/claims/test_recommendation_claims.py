"""The recommendation's intervals hold for all methods at once, and "improves" is rarely false."""

import numpy as np
import pytest
from studies.claims import recommendation as claims

pytestmark = pytest.mark.slow

REPS = 40
FAST = [name for name in claims.DESIGNS if "5000" not in name and "network" not in name]


def test_intervals_hold_and_no_harm_is_recommended():
    # nominal .95: the mean of 9 designs of 40 data sets has a Monte Carlo error of .011. With t
    # intervals and Bonferroni's k it is .79 on the same data sets.
    rows = claims.run(
        REPS, seed=1, designs={name: claims.DESIGNS[name] for name in FAST}
    )
    joint = np.array([row["joint"] for row in rows])
    assert joint.mean() > 0.93
    assert joint.min() > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / REPS)
    assert np.mean([row["named"] for row in rows]) > 0.97
    assert max(row["false"] for row in rows) <= 0.025
