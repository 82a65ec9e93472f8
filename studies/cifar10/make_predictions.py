"""Put the logits that ``train.py`` wrote into `mcllo.datasets`, with their checksum.

``python -m studies.cifar10.make_predictions [large|small]``; afterwards the network's
``logits_*.npz`` is a duplicate.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ..pages import DATA, ship

HERE = Path(__file__).resolve().parent
N_IMAGES, N_CLASSES = 10_000, 10
NAMES = {"large": "cifar10_vgg", "small": "cifar10_vgg_small"}


def main(network: str = "large", folder: Path = DATA, file: Path | None = None) -> Path:
    """Check the arrays and write the data file."""
    file = file or HERE / f"logits_{network}.npz"
    with np.load(file, allow_pickle=False) as data:
        logits, labels = (
            data["logits"].astype(np.float32),
            data["labels"].astype(np.uint8),
        )
    counts = np.bincount(labels, minlength=N_CLASSES).tolist()
    if (
        logits.shape != (N_IMAGES, N_CLASSES)
        or counts != [N_IMAGES // N_CLASSES] * N_CLASSES
    ):
        raise SystemExit(
            f"{file.name} must hold logits of {N_IMAGES} images and {N_CLASSES} classes, "
            f"a tenth of the labels each; got {logits.shape} and counts {counts}."
        )
    return ship(NAMES[network], folder, logits=logits, labels=labels)


if __name__ == "__main__":
    print(f"wrote {main(*sys.argv[1:2]).name}")
