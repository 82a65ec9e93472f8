"""Logs of Inspect: written and read by its own package, where it is installed."""

import math
import sys

import pytest

import mcllo
from mcllo.exceptions import FileFormatError


def write(path, samples, task="mmlu"):
    """Write samples (probabilities by token, right letter, number of choices, score or None)."""
    log = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
    model = pytest.importorskip("inspect_ai.model")
    scorer = pytest.importorskip("inspect_ai.scorer")
    written = []
    for number, (probs, right, n_choices, explanation) in enumerate(samples):
        tops = [
            model.TopLogprob(token=token, logprob=math.log(p))
            for token, p in probs.items()
        ]
        # "ANSWER: B": the letter is the last token that is one
        words = [model.Logprob(token="A", logprob=-0.1, top_logprobs=[])]
        for top in tops[:1]:
            own = {"token": top.token, "logprob": top.logprob}
            words.append(model.Logprob(**own, top_logprobs=tops))
        choice = model.ChatCompletionChoice(
            message=model.ChatMessageAssistant(content="ANSWER"),
            logprobs=model.Logprobs(content=words) if tops else None,
        )
        written.append(
            log.EvalSample(
                id=f"q{number}",
                epoch=1,
                input="question",
                choices=["text"] * n_choices,
                target=right,
                output=model.ModelOutput(model="m", choices=[choice]),
                metadata={"subject": "law" if number % 2 else "physics"},
                scores={"choice": scorer.Score(value="C", explanation=explanation)},
            )
        )
    spec = log.EvalSpec(
        created="2026-11-01T00:00:00+00:00",
        task=task,
        dataset=log.EvalDataset(),
        model="m",
        config=log.EvalConfig(),
    )
    whole = log.EvalLog(eval=spec, samples=written, status="success")
    log.write_eval_log(whole, str(path))
    return path


GOOD = [({" B": 0.7, " A": 0.2}, "B", 3, None), ({"A": 0.6, "C": 0.1}, "A", 4, None)]


def test_letters_and_all_else(tmp_path):
    p = mcllo.read_choices(write(tmp_path / "run.eval", GOOD), by="subject")
    assert p.classes == ("A", "B", "C", "D", "other")
    # C is not listed: a half of what is left to it and all else, 1 - 0.9
    assert p.probs[0] == pytest.approx([0.2, 0.7, 0.05, 0.0, 0.05])
    # B and D: half of the last that is listed, 0.1 / 2
    assert p.probs[1] == pytest.approx([0.6, 0.05, 0.1, 0.05, 0.2])
    assert p.offered[0].tolist() == [True, True, True, False, True]
    assert p.codes.tolist() == [1, 0]
    assert p.by.names == ("law", "physics")


def test_tasks_are_subgroups(tmp_path):
    files = [write(tmp_path / f"{task}.eval", GOOD, task) for task in ("law", "art")]
    assert mcllo.read_choices(files).by.names == ("art", "law")


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (({}, "A", 3, None), "sample q2 must have a letter as its answer"),
        (({"The": 0.5}, "A", 3, None), "sample q2 must have a letter as its answer"),
        (
            ({"A": 0.5}, ["A", "B"], 3, None),
            "sample q2 must have one right letter; it has 2",
        ),
        (({"A": 0.5}, "A", 0, None), "sample q2 must have at least two choices"),
        (({"A": 0.5}, "A", 3, "Choices were shuffled before"), "choices shuffled"),
    ],
)
def test_what_cannot_be_read_says_which_sample(tmp_path, sample, message):
    path = write(tmp_path / "run.eval", [*GOOD, sample])
    with pytest.raises(FileFormatError, match=message):
        mcllo.read_choices(path)


def test_a_damaged_log_is_one_sentence(tmp_path):
    pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
    path = tmp_path / "run.eval"
    path.write_bytes(b"no archive")
    with pytest.raises(FileFormatError, match="cannot be read by Inspect") as caught:
        mcllo.read_choices(path)
    assert "\n" not in str(caught.value)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(FileFormatError, match="pip install inspect-ai"):
        mcllo.read_choices("run.eval")
