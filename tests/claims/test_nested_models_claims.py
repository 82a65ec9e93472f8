"""The family of nested models error, simulated: the full map is inside it."""

import pytest
from studies.claims import nested_models as study

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("design", "reps", "before"),
    [
        (study.Design("dirichlet:1", 3, 500), 500, 0.07),
        (study.Design("dirichlet:1", 3, 500, "temperature", 0.6), 500, 0.07),
        (study.Design("dirichlet:0.3", 5, 100), 60, 0.0),
    ],
    ids=["calibrated", "temperature", "few rows"],
)
def test_any_true_model_is_rejected_in_at_most_the_level(design, reps, before):
    (row,) = study.run(reps, seed=5, designs=[design])
    assert row["error"] <= 0.05 + 2.5 * (0.05 * 0.95 / reps) ** 0.5
    assert (
        row["before"] >= before
    )  # "the full map fits better" outside of the closed test
