import pytest
from toy import TOY_X, TOY_Y

from mcllo import Predictions
from mcllo._drawing import draw
from mcllo.exceptions import InputError

TOY = Predictions.from_arrays(TOY_X, TOY_Y)


KINDS = ("reliability", "by_class", "parameters", "map", "ladder", "baselines")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_writes_an_svg_that_repeats(kind, tmp_path):
    for name in ("a.svg", "b.svg"):
        draw(TOY, kind, str(tmp_path / name), seed=0)
    assert (tmp_path / "a.svg").read_text().lstrip().startswith("<?xml")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_an_unknown_kind(tmp_path):
    with pytest.raises(InputError, match="kind 'reliabilty' is not known; did you mean"):
        draw(TOY, "reliabilty", str(tmp_path / "x.svg"))
