import copy
import inspect

import pytest

from mcllo import exceptions
from mcllo.exceptions import FileFormatError, InputError, MclloError, MclloWarning

CLASSES = {name: obj for name, obj in vars(exceptions).items() if inspect.isclass(obj)}


def test_all_lists_every_class_sorted():
    assert exceptions.__all__ == sorted(CLASSES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_each_class_has_one_of_the_two_bases(name):
    base = MclloError if name.endswith("Error") else MclloWarning
    assert issubclass(CLASSES[name], base)
    assert CLASSES[name].__doc__


@pytest.mark.parametrize("error", [InputError, FileFormatError])
def test_errors_of_data_are_value_errors(error):
    # so that code which knows nothing of mcllo can catch them
    with pytest.raises(ValueError, match="must hold"):
        raise error("this must hold.")


def test_warnings_are_user_warnings_and_not_errors():
    assert issubclass(MclloWarning, UserWarning)
    assert not issubclass(MclloWarning, MclloError)


def test_input_error_carries_the_row():
    assert InputError("bad.", row=17).row == 17
    assert InputError("bad.").row is None
    assert str(InputError("bad.", row=17)) == "bad."


def test_input_error_survives_a_copy_with_its_row():
    # worker processes send exceptions as copies
    again = copy.copy(InputError("bad.", row=3))
    assert (str(again), again.row) == ("bad.", 3)


def test_row_is_keyword_only():
    with pytest.raises(TypeError):
        InputError("bad.", 3)
