import pytest
import typer

from mcllo._cli_options import (
    as_json_text,
    check_alpha,
    check_model,
    check_order,
    notes,
    split_names,
)


def test_names_are_split_at_commas_outside_quotes():
    assert split_names(None) is None
    assert split_names("a, b") == ["a", "b"]
    assert split_names('"a,b",c') == ["a,b", "c"]


def test_json_is_strict_and_keeps_letters():
    assert as_json_text({"é": 1}) == '{\n "é": 1\n}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json_text({"x": float("nan")})


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, 5.0])
def test_levels(alpha):
    with pytest.raises(typer.BadParameter, match="between 0 and 1"):
        check_alpha(alpha)
    check_alpha(0.05)


def test_a_model_is_never_written_over_the_data(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("x")
    with pytest.raises(typer.BadParameter, match="is the file with the data"):
        check_model(str(data), str(data))
    check_model("-", str(data))


def test_model_comes_before_file():
    with pytest.raises(typer.BadParameter, match="only one of MODEL and FILE"):
        check_order("-", "-")
    with pytest.raises(typer.BadParameter, match="mcllo apply MODEL FILE"):
        check_order("data.csv", "model.json")
    check_order("model.json", "data.csv")


def test_warnings_become_one_line_notes(capsys):
    import warnings

    with notes():
        warnings.warn("two\nlines, pass clip=1e-6.", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "mcllo: note: two lines, pass --clip 1e-6.\n"
