"""The models of the ladder in words."""

from mcllo._ladder_models import MODELS
from mcllo._plot.model_names import MODEL_NAMES, model_name


def test_every_model_has_a_name_of_its_own():
    assert tuple(MODEL_NAMES) == MODELS
    assert len(set(MODEL_NAMES.values())) == len(MODELS)


def test_an_unknown_model_is_shown_as_it_is():
    assert model_name("new_one") == "new one"
