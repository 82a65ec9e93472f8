"""The page of choice sets: what it says, in the words of the assessment, and its picture."""

import json
import re

import numpy as np
import pytest
from choice_data import simulate

import mcllo
from mcllo.exceptions import InputError


@pytest.fixture(scope="module")
def assessed():
    subjects = np.array(["law", "<b>physics</b>"])[np.arange(2000) % 2]
    predictions = simulate(2000, 4, 0.6, [-0.6, 0, 0, 0], seed=1).with_by(subjects)
    return mcllo.assess_choices(predictions, seed=1)


@pytest.fixture(scope="module")
def page(assessed):
    return mcllo.report(assessed, title="Quiz", date="1 May 2026").html()


def test_the_page_says_what_the_assessment_says(assessed, page):
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)).replace("&#39;", "'")
    for kind in ("meaning", "chosen", "slope", "position", "remedy"):
        statements = [s for s in assessed.statements() if s.kind == kind]
        assert statements, kind
        for statement in statements:
            assert statement.text in words
    assert 'data-test-verdict="miscalibrated"' in page
    for table in ("positions", "parts-group", "parts-options"):
        assert f'data-test-table="{table}"' in page
    assert "<svg" in page
    assert "most probable option" in words
    assert "most probable class" not in words


def test_names_are_text_and_the_page_asks_for_nothing(page):
    assert "<b>physics" not in page
    assert "&lt;b&gt;physics" in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("ending", [".html", ".md", ".json"])
def test_forms(assessed, tmp_path, ending):
    report = mcllo.report(assessed, title="Quiz", date="1 May 2026")
    report.write(tmp_path / f"quiz{ending}")
    text = (tmp_path / f"quiz{ending}").read_text()
    if ending == ".json":
        assert json.loads(text)["result"]["kind"] == "choice_sets"
    elif ending == ".md":
        assert text.startswith("# Quiz\n")
        assert "Position A is chosen" in text
    else:
        assert text == report.html()
    assert repr(report) == "<ChoiceReport 'Quiz': miscalibrated>"


def test_other_endings_are_refused(assessed, tmp_path):
    with pytest.raises(InputError, match="must end in"):
        mcllo.report(assessed).write(tmp_path / "quiz.pdf")
