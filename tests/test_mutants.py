"""The list of mutants fits the code; `make mutants` runs them."""

import pytest
from mutants import ROOT
from mutants import mutants as listed

mutants = listed()


def test_every_mutant_changes_one_place():
    texts = {mutant.path: (ROOT / mutant.path).read_text() for mutant in mutants}
    for mutant in mutants:
        assert mutant.of(texts[mutant.path]) != texts[mutant.path], mutant


def test_every_mutant_names_tests_that_exist_and_a_name_of_its_own():
    missing = {test for mutant in mutants for test in mutant.tests if not (ROOT / test).exists()}
    assert not missing
    assert len({str(mutant) for mutant in mutants}) == len(mutants) >= 100


def test_a_place_that_is_gone_or_stands_twice_is_refused():
    mutant = mutants[0]
    with pytest.raises(ValueError, match="does 0 times"):
        mutant.of("")
    with pytest.raises(ValueError, match="does 2 times"):
        mutant.of(2 * mutant.before)
