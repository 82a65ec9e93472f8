import numpy as np
import pytest
from test_recommend import noisy, two

from mcllo._recommend import LossDifference, Recommendation, recommend
from mcllo._recommend_words import listed


def made(method, *differences, crossed=True):
    others = tuple(LossDifference(*d) for d in differences)
    return Recommendation(method, 0.182, others, 0.95, len(others), 2000, crossed)


NEXT = ("temperature", 0.0009, 0.0006, -0.0003, 0.0021)
CLOSE = ("dirichlet", 0.0011, 0.0006, -0.0001, 0.0023)
FAR = ("beta", 0.02, 0.002, 0.014, 0.026)
RAW = ("uncalibrated", 0.0475, 0.003, 0.041, 0.054)


def test_a_lead_in_words():
    text = str(made("auto", NEXT, RAW))
    assert text.startswith(
        "Recommended: auto, which has the lowest log loss. Its cross-validated log loss, 0.1820, "
        "is 0.0475 (0.0410 to 0.0540) below doing nothing and 0.0009 (-0.0003 to 0.0021) below the "
        "next of 2 methods, temperature. temperature cannot be told from it and is simpler. "
        "The intervals are paired, hold for all 2 methods at once"
    )


def test_the_words_say_what_was_judged():
    text = str(made("auto", NEXT, RAW, crossed=False))
    assert "Its log loss, 0.1820 on 2,000 rows that no map was fitted to, is" in text
    assert "cross-validated" not in text


@pytest.mark.parametrize(
    ("method", "others", "words"),
    [
        (
            "auto",
            (NEXT, CLOSE),
            "temperature and dirichlet cannot be told from it; the simpl",
        ),
        ("temperature", (CLOSE,), "dirichlet cannot be told from it and is less simple."),
        ("mcllo", (CLOSE, ("auto", *CLOSE[1:])), "it is the simplest of these."),
        ("mcllo", (FAR,), "All others are worse, beyond chance."),
    ],
)
def test_what_else_would_do(method, others, words):
    assert words in str(made(method, *others, RAW))


def test_a_lead_within_chance_is_not_recommended():
    raw = ("uncalibrated", 0.001, 0.001, -0.002, 0.004)
    text = str(made("mcllo", NEXT, raw))
    assert text.startswith(
        "No method is shown to be better than leaving the predictions as they are. The lowest "
        "cross-validated log loss, that of mcllo, 0.1820, is 0.0010 (-0.0020 to 0.0040) below"
    )
    assert "Recommended" not in text


def test_leaving_things_alone_can_be_lowest():
    text = str(made("uncalibrated", NEXT, crossed=False))
    assert text.startswith("No method is shown to be better than leaving the predictions")
    assert "is the lowest; temperature comes next, 0.0009 (-0.0003 to 0.0021) above." in text


def test_one_method_and_none():
    rng = np.random.default_rng(0)
    raw = two(np.full(500, 0.5))
    text = str(recommend({"uncalibrated": raw, "mcllo": two(noisy(rng, 500, 0.2))}))
    assert "next of" not in text
    assert "at once" not in text
    assert str(recommend({"uncalibrated": raw})) == "No method was compared."


def test_no_minus_zero():
    assert "-0.0000" not in str(made("auto", ("beta", 0.001, 0.0005, -0.00001, 0.002), RAW))


def test_lists():
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]
