"""Models and changes in words."""

from mcllo._ladder_models import MODELS
from mcllo._plot.plain_words import MODEL_NAMES, format_change, model_name


def test_every_model_has_a_name_of_its_own():
    assert tuple(MODEL_NAMES) == MODELS
    assert len(set(MODEL_NAMES.values())) == len(MODELS)


def test_an_unknown_model_is_shown_as_it_is():
    assert model_name("new_one") == "new one"


def test_tiny_changes_are_not_given_digits():
    assert format_change(0.01234) == "0.012"
    assert format_change(0.0) == format_change(2.6e-15) == "< 0.0001"
