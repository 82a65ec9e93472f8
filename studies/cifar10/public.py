"""Two public sets of predictions for the same 10,000 images, as a second opinion.

``python -m studies.cifar10.public --cleanlab FILE --keras FILE`` writes ``given/public_splits.csv``
and ``given/public_choices.csv``, in two minutes. The files are not ours to pass on; they are

========  =====================================================================================
cleanlab  github.com/cleanlab/label-errors, commit 6d5d6b3, Apache-2.0:
          ``cross_validated_predicted_probabilities/cifar10_test_set_pyx.npy`` (Northcutt, Athalye
          and Mueller 2021, arXiv 2103.14749). Which network it was is not said there
keras     github.com/p-lambda/verified_calibration, commit ee81c34, MIT: ``data/cifar_probs.dat``, a
          VGG16 (Kumar, Liang and Ma 2019, arXiv 1909.10155)
========  =====================================================================================

A FILE is ``.npy``, or ``.npz`` with an array ``probs``: (10000, 10) in the order of the test set.
Its numbers are checked by `SHA256`, of the array's bytes. Neither set has the network's own logits:
vector scaling takes logs of probabilities, which are these up to a constant for each image.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np

import mcllo
from mcllo.datasets import load_cifar10_vgg

from .. import choices
from ..pages import write
from .splits import N_SPLITS, all_images, labelled, split, split_rows

GIVEN = Path(__file__).parent / "given"
SHA256 = {
    "cleanlab": "9303b7292a7834b1f27491c70116a8948d35d628ae84c28c3c5ec3e53c446db0",  # float64
    "keras": "708c9c73044644af0a63c406d0fae095b83f49eb270001503c066e8d99b3a11f",  # float32
}


def read(network: str, path: Path) -> mcllo.Predictions:
    """Return the predictions of a file, unless it holds other numbers."""
    found = np.load(path, allow_pickle=False)
    probs = found if isinstance(found, np.ndarray) else found["probs"]
    checksum = hashlib.sha256(np.ascontiguousarray(probs).tobytes()).hexdigest()
    if checksum != SHA256[network]:
        raise SystemExit(
            f"{path.name} must hold an array with the sha256 {SHA256[network]}; got {checksum}."
        )
    own = all_images(load_cifar10_vgg())
    return labelled(own, np.log(probs), own.codes)


def main() -> None:
    """Judge the files that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for network in SHA256:
        parser.add_argument(f"--{network}", type=Path, required=True)
    files = vars(parser.parse_args())
    rows, chosen = [], []
    for network in SHA256:
        predictions = read(network, files[network])
        rows += split_rows(network, predictions)
        runs = choices.judged(split(predictions, seed) for seed in range(N_SPLITS))
        chosen += [{"network": network, **row} for row in choices.choice_rows(runs)]
    write(GIVEN / "public_splits.csv", rows)
    write(GIVEN / "public_choices.csv", chosen)


if __name__ == "__main__":
    main()
