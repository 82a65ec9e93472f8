"""The list of mutants fits the code; `make mutants` runs them."""

import pytest
from mutants import ROOT
from mutants import mutants as listed


def test_every_mutant_changes_one_place_and_names_tests_that_exist():
    mutants = listed()
    assert len({str(mutant) for mutant in mutants}) == len(mutants) >= 100
    for mutant in mutants:
        text = (ROOT / mutant.path).read_text()
        assert mutant.of(text) != text, mutant
        assert all((ROOT / test).exists() for test in mutant.tests), mutant
    with pytest.raises(ValueError, match="does 0 times"):
        mutant.of("")
    with pytest.raises(ValueError, match="does 2 times"):
        mutant.of(2 * mutant.before)
