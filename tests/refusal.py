"""What every refusal of input must look like, for the tests of the door."""

import pytest

from mcllo.exceptions import InputError


def refusal(function, *args, **options):
    """Return the InputError of a call; it must be one line of text without a foreign traceback."""
    with pytest.raises(InputError) as caught:
        function(*args, **options)
    error = caught.value
    message = str(error)
    assert "\n" not in message
    assert message[-1] in ".?"
    assert len(message) < 300
    assert error.__context__ is None or error.__suppress_context__
    return error
