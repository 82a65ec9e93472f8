"""`mcllo.datasets`: the files are whole, and say where they come from."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mcllo
import mcllo.datasets
from mcllo.datasets import load_cifar10_vgg, load_obesity_forest, load_portal_rodents
from mcllo.exceptions import FileFormatError, InputError

DATA = Path(mcllo.datasets.__file__).parent / "data"
LOADERS = [load_obesity_forest, load_portal_rodents, load_cifar10_vgg]


@pytest.mark.parametrize("load", LOADERS)
def test_every_part_is_ready_for_use_and_described(load):
    data = load()
    assert data.train.classes == data.holdout.classes
    for part, columns in (
        (data.train, data.train_columns),
        (data.holdout, data.holdout_columns),
    ):
        assert part.probs.sum(axis=1) == pytest.approx(1.0)
        assert part.absent == ()
        assert {len(column) for column in columns.values()} <= {part.n_samples}
        assert not any(
            array.flags.writeable for array in (part.probs, *columns.values())
        )
    path = DATA / f"{data.name}.npz"
    assert data.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    for word in ("Data  ", "Licence  ", "Script   studies/", data.sha256):
        assert word in data.DESCR
    assert "{" not in data.DESCR
    assert data.to_dict()["sha256"] == data.sha256
    assert "rows to learn from" in repr(data)


def test_the_licence_of_the_obesity_data_is_met():
    text = load_obesity_forest().DESCR
    # CC BY 4.0, section 3(a): authors, licence with its address, and that changes were made
    for word in (
        "Palechor",
        "Hoz Manotas",
        "10.24432/C5H31Z",
        "licenses/by/4.0",
        "Changes:",
    ):
        assert word in text


def test_forest_is_the_votes_of_the_file():
    with np.load(DATA / "obesity_forest.npz") as file:
        votes, train = file["votes"], file["train"]
    assert (votes.sum(axis=1) == 500).all()
    data = load_obesity_forest()
    assert data.train.n_zeros == int((votes[train] == 0).sum())
    assert data.holdout.n_zeros == int((votes[~train] == 0).sum())
    kept = votes[~train] > 0
    assert data.holdout.probs[kept] == pytest.approx(
        votes[~train][kept] / 500.0, abs=1e-5
    )
    assert load_obesity_forest(clip=1e-3).holdout.probs.min() == pytest.approx(
        1e-3, rel=0.01
    )


def hits(part):
    return int((part.probs.argmax(axis=1) == part.codes).sum())


def test_sizes_and_hits():
    # counted once with numpy on the files; the paper's sizes are 396 and 132
    data = load_obesity_forest()
    assert (data.train.n_samples, data.holdout.n_samples) == (396, 132)
    assert (hits(data.train), hits(data.holdout)) == (348, 112)
    assert "348 most probable classes right, 87.88 %" in data.DESCR
    rodents = load_portal_rodents(groups=None)
    assert (rodents.train.n_samples, rodents.holdout.n_samples) == (9086, 12442)
    assert rodents.train_columns["year"].max() == 1994
    assert rodents.holdout_columns["year"].min() == 1995
    assert rodents.train.logits is not None
    assert rodents.train.n_clipped == 0
    assert rodents.train.groups is None
    with pytest.raises(
        InputError, match="'plot', 'month', 'plot_month' or None; got 'animal'"
    ):
        load_portal_rodents(groups="animal")


def test_groups_of_rodents():
    # 24 plots; months counted as pairs (year, month) with at least one capture after 1994
    for groups, keys, number in (
        ("plot", ("plot",), 24),
        ("month", ("year", "month"), 87),
        ("plot_month", ("year", "month", "plot"), 1776),
    ):
        data = load_portal_rodents(groups=groups)
        columns = (data.holdout_columns[key].tolist() for key in keys)
        seen = set(zip(*columns, strict=True))
        assert len(np.unique(data.holdout.groups)) == len(seen) == number


def test_cifar10_split_and_accuracy():
    data = load_cifar10_vgg()
    assert (data.train.n_samples, data.holdout.n_samples) == (8000, 2000)
    assert data.train.baseline == "truck"
    images = np.concatenate(
        [data.train_columns["image"], data.holdout_columns["image"]]
    )
    assert sorted(images.tolist()) == list(range(10000))
    assert (data.train.class_weight + data.holdout.class_weight == 1000).all()
    assert f"{hits(data.holdout) / 20:.2f} %" in data.DESCR
    assert (
        hits(data.train) + hits(data.holdout) >= 9250
    )  # the paper's network: 93.0 % of 2,000
    small = load_cifar10_vgg(network="small")
    np.testing.assert_array_equal(
        small.holdout_columns["image"], data.holdout_columns["image"]
    )
    np.testing.assert_array_equal(small.holdout.codes, data.holdout.codes)
    assert hits(small.holdout) < hits(data.holdout)
    with pytest.raises(
        InputError, match=r"network must be 'large' or 'small'; got 'huge'"
    ):
        load_cifar10_vgg(network="huge")


def test_files_are_small_and_all_have_a_checksum():
    files = sorted(DATA.glob("*.npz"))
    assert sum(file.stat().st_size for file in files) < 1.5e6
    listed = [
        line.split()[1] for line in (DATA / "SHA256SUMS").read_text().splitlines()
    ]
    assert listed == [file.name for file in files]


@pytest.mark.slow
def test_loading_is_light():
    code = (
        "import sys, mcllo.datasets; mcllo.datasets.load_obesity_forest(); "
        "print(' '.join(m for m in sys.modules if '.' not in m))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"matplotlib", "pandas", "pyarrow", "sklearn", "typer", "jinja2"}
    assert not set(run.stdout.split()) & heavy


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """A copy of the files that a test may damage."""
    shutil.copytree(DATA, tmp_path / "data")
    monkeypatch.setattr(mcllo.datasets, "files", lambda _: tmp_path)
    return tmp_path / "data"


def test_a_damaged_and_a_missing_file_are_refused(own_files):
    assert load_obesity_forest().name == "obesity_forest"
    path = own_files / "obesity_forest.npz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        FileFormatError, match=r"must have the sha256 .*; got .*damaged"
    ):
        load_obesity_forest()
    (own_files / "portal_rodents.npz").unlink()
    with pytest.raises(
        FileFormatError, match=r"portal_rodents\.npz must be part of the package"
    ):
        load_portal_rodents()
