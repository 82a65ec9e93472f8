import os

import numpy as np
import pytest
from block_data import whole

from mcllo import _spill
from mcllo._block_rows import Block, Layout, Reading
from mcllo._spill import Spill, room_for


def kept(p, *, keep=True, reading=None):
    layout = Layout(p.classes, p.baseline_index, reading or Reading())
    spill = Spill(layout, whole=keep)
    half = p.n_samples // 2
    spill.write(Block(half, p.take(np.arange(half, p.n_samples))))
    spill.write(Block(0, p.take(np.arange(half))))
    spill.sort()
    return spill, half


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_what_comes_back_is_what_was_put_in(weighted, zeros):
    p = whole(n=101, weighted=weighted, zeros=zeros)
    spill, half = kept(p)
    assert [(b.start, b.n_samples) for b in spill.blocks] == [(0, half), (half, 101 - half)]
    for block, part in zip(spill.blocks, (slice(0, half), slice(half, None)), strict=True):
        np.testing.assert_array_equal(block.log_odds, p.log_odds[:, part])
        np.testing.assert_array_equal(block.rows.probs, p.probs[part])
        np.testing.assert_array_equal(block.rows.codes, p.codes[part])
        np.testing.assert_array_equal(block.rows.log_odds, p.log_odds[:, part])
        if zeros:
            np.testing.assert_array_equal(block.rows.raised, p.raised[part])
        if weighted:
            np.testing.assert_array_equal(block.sample_weight, p.sample_weight[part])
        else:
            assert block.sample_weight is None


def test_logits_come_back_as_logits():
    scores = np.random.default_rng(0).normal(size=(20, 3))
    p = _spill.Predictions.from_arrays(None, np.arange(20) % 3, logits=scores)
    spill, _ = kept(p, reading=Reading(logits=True))
    np.testing.assert_array_equal(spill.blocks[0].rows.logits, scores[:10])
    np.testing.assert_array_equal(spill.blocks[0].rows.probs, p.probs[:10])


def test_log_odds_alone_take_less_room():
    p = whole(n=100)
    small, large = kept(p, keep=False)[0], kept(p)[0]
    assert small._end == 100 * 4 * 8  # (c - 1) doubles a row
    assert large._end == 100 * (4 * 8 + 5 * 8 + 4)


def test_one_shared_position_works_too(monkeypatch):
    monkeypatch.delattr(os, "pwrite")
    monkeypatch.delattr(os, "preadv")
    p = whole(n=100)
    spill, half = kept(p)
    np.testing.assert_array_equal(spill.blocks[1].rows.probs, p.probs[half:])


def test_the_file_has_no_name_and_closes(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spill, _ = kept(whole(n=100))
    assert not os.listdir(tmp_path)
    spill.close()
    with pytest.raises(ValueError, match="closed"):
        _ = spill.blocks[0].log_odds


def test_a_full_disk_is_noticed(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert kept(whole(n=100))[0].full


def test_room_is_looked_up():
    assert room_for(1.0)
    assert not room_for(1e30)
