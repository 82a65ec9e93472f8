import numpy as np
import pandas as pd
import pytest
from block_data import cut, rows, whole

from mcllo import Predictions
from mcllo._blocks.sources import BatchSource, blocks_of_arrays, blocks_of_batches
from mcllo.exceptions import InputError


def same_rows(blocks, p):
    found = blocks.take()
    np.testing.assert_allclose(found.probs, p.probs, rtol=1e-15)
    np.testing.assert_array_equal(found.codes, p.codes)
    assert (found.classes, found.baseline) == (p.classes, p.baseline)
    assert (found.sample_weight is None) == (p.sample_weight is None)
    if p.sample_weight is not None:
        np.testing.assert_array_equal(found.sample_weight, p.sample_weight)
    names = ("n_zeros", "n_clipped", "n_clipped_true", "n_renormalized", "clip")
    assert [getattr(found, name) for name in names] == [getattr(p, name) for name in names]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_all_sources_give_the_same_rows(weighted, zeros):
    probs, y, weight = rows(weighted=weighted, zeros=zeros)
    p = whole(weighted=weighted, zeros=zeros)
    clip = 1e-6 if zeros else None
    batches = cut((probs, y, weight), (1, 800, 801))
    same_rows(blocks_of_arrays(probs, y, sample_weight=weight, clip=clip), p)
    same_rows(blocks_of_arrays(p), p)
    same_rows(blocks_of_batches(batches, clip=clip), p)
    same_rows(blocks_of_batches(lambda: iter(batches), clip=clip), p)
    same_rows(blocks_of_batches(iter(batches), clip=clip), p)


def test_slices_are_small(monkeypatch):
    monkeypatch.setattr("mcllo._blocks.sources.block_rows", lambda _: 7)
    probs, y, _ = rows(n=50)
    blocks = blocks_of_arrays(probs, y)
    assert len(blocks.first.sizes) == 8
    assert blocks.first.sizes[-1] == (49, 1)
    same_rows(blocks, whole(n=50))
    same_rows(blocks_of_arrays(whole(n=50)), whole(n=50))
    # a large batch is cut too
    same_rows(blocks_of_batches([(probs[:30], y[:30]), (probs[30:], y[30:])]), whole(n=50))


def test_words_frames_and_baseline():
    probs, y, _ = rows(n=200, c=3)
    names = np.array(["ant", "bee", "cat"])
    frame = pd.DataFrame(probs, columns=names)
    p = Predictions.from_arrays(frame, names[y], baseline="bee")
    same_rows(blocks_of_arrays(frame, names[y], baseline="bee"), p)
    shuffled = frame[["cat", "ant", "bee"]]
    batches = [(frame[:120], names[y[:120]]), (shuffled[120:], names[y[120:]])]
    same_rows(blocks_of_batches(batches, baseline="bee"), p)


def test_logits_and_one_hot_and_counts():
    scores = np.random.default_rng(0).normal(size=(60, 3))
    y = np.arange(60) % 3
    p = Predictions.from_arrays(None, y, logits=scores)
    same_rows(blocks_of_arrays(None, y, logits=scores), p)
    same_rows(blocks_of_batches(cut((scores, y), (11,)), logits=True), p)
    same_rows(blocks_of_arrays(p.probs, np.eye(3)[y]), Predictions.from_arrays(p.probs, y))
    counts = np.random.default_rng(1).integers(1, 4, (60, 3))
    q = Predictions.from_arrays(p.probs, counts)
    same_rows(blocks_of_arrays(p.probs, counts), q)
    some = blocks_of_batches(cut((p.probs, counts), (11,))).take(np.array([3, 100]))
    np.testing.assert_array_equal(some.probs, q.probs[[3, 100]])


def test_float32_is_read_as_float32():
    probs, y, _ = rows(n=100)
    small = probs.astype(np.float32)
    same_rows(blocks_of_arrays(small, y), Predictions.from_arrays(small, y))


def test_an_iterator_is_read_once():
    probs, y, _ = rows(n=100)
    calls = []

    def batches():
        for batch in cut((probs, y), (50,)):
            calls.append(len(batch[0]))
            yield batch

    blocks = blocks_of_batches(batches())
    blocks.take()
    blocks.terms(np.r_[np.zeros(4), np.ones(4)])
    assert calls == [50, 50]


def test_a_function_is_called_for_each_pass_when_nothing_is_kept():
    probs, y, _ = rows(n=100)
    calls = []

    def batches():
        calls.append(1)
        return cut((probs, y), (50,))

    blocks = blocks_of_batches(batches, spill=False)
    blocks.take()
    assert len(calls) == 3  # the first look, the first pass, the picking
    kept = blocks_of_batches(batches)
    kept.take()
    assert len(calls) == 5


def test_empty_batches_are_passed_over():
    probs, y, _ = rows(n=100)
    same_rows(blocks_of_batches(cut((probs, y), (0, 50, 50, 100))), whole(n=100))


def test_errors_name_the_row_of_the_whole(monkeypatch):
    monkeypatch.setattr("mcllo._blocks.sources.block_rows", lambda _: 20)
    probs, y, _ = rows(n=100)
    bad = probs.copy()
    bad[70, 2] = np.nan
    with pytest.raises(InputError, match=r"got probs\[70, 2\]=nan"):
        _ = blocks_of_arrays(bad, y).first
    with pytest.raises(InputError, match=r"got probs\[70, 2\]=nan") as found:
        _ = blocks_of_batches(cut((bad, y), (33,))).first
    assert found.value.row == 70
    with pytest.raises(InputError, match=r"y contains 9 \(row 60\), which is not a class"):
        _ = blocks_of_batches(cut((probs, np.where(np.arange(100) == 60, 9, y)), (33,))).first


@pytest.mark.parametrize("kind", [int, str])
def test_a_first_batch_that_lacks_classes_asks_for_them(kind):
    # sorted labels 1, 1, 2, 2, 3, 3: the first batch alone would be read as 0, 1, 2, or not at all
    y = np.array([1, 1, 2, 2, 3, 3]).astype(kind)
    probs = np.full((6, 3), [0.5, 0.3, 0.2])
    batches = [(probs[:4], y[:4]), (probs[4:], y[4:])]
    whole = Predictions.from_arrays(probs, y)
    match = r"contains 3 \(row 4\), which is not a class; .* first batch; .* pass classes=\."
    if kind is str:
        match = r"y has 2 distinct labels \['1', '2'\]\. Classes .* first batch; .* pass classes=\."
    for given in (batches, lambda: iter(batches), iter(batches)):
        with pytest.raises(InputError, match=match):
            _ = blocks_of_batches(given).first
    same_rows(blocks_of_batches(batches, classes=whole.classes), whole)
    frames = [(pd.DataFrame(p, columns=["1", "2", "3"]), own) for p, own in batches]
    same_rows(blocks_of_batches(frames), whole)


def test_with_classes_a_wrong_label_is_just_that():
    batches = [([[0.5, 0.5]], ["a"]), ([[0.5, 0.5]], ["c"])]
    with pytest.raises(InputError, match=r"classes are \['a', 'b'\]\.$"):
        _ = blocks_of_batches(batches, classes=["a", "b"]).first


def test_what_is_no_batch_is_refused():
    with pytest.raises(InputError, match="at least one row"):
        blocks_of_batches([])
    with pytest.raises(InputError, match=r"must be \(probs, y\).*got ndarray"):
        blocks_of_batches([np.ones((3, 2)) / 2])
    with pytest.raises(InputError, match=r"must be \(probs, y\).*got tuple of 1"):
        blocks_of_batches([(np.ones((3, 2)) / 2,)])
    with pytest.raises(InputError, match="same number of rows; got 100 and 99"):
        blocks_of_arrays(rows(n=100)[0], rows(n=100)[1][:99])
    with pytest.raises(InputError, match="y must hold one label"):
        blocks_of_arrays(rows(n=100)[0])
    with pytest.raises(InputError, match="which column is which class is unclear"):
        BatchSource([(rows(n=100)[0], ["a"] * 100)], blocks_of_arrays(whole()).layout.reading)
    grouped = Predictions.from_arrays(*rows(n=100)[:2], groups=np.arange(100) % 9)
    with pytest.raises(InputError, match="groups and survey weights need all rows"):
        blocks_of_arrays(grouped)


def test_weights_must_not_all_be_zero():
    probs, y, _ = rows(n=100)
    with pytest.raises(InputError, match="must not be 0 everywhere"):
        _ = blocks_of_batches(cut((probs, y, np.zeros(100)), (50,))).first
    light = np.r_[np.zeros(50), np.ones(50)]
    assert blocks_of_batches(cut((probs, y, light), (50,))).first.scores.weight == 50.0
