"""Small predictions that come with the package, each with its source, licence, script and checksum.

======================  ======================================================================
`load_obesity_forest`   random forest of 500 trees, 528 people, 7 classes, votes with zeros
`load_portal_rodents`   multinomial regression, captures of desert rodents, 7 genera, logits,
                        rows that depend on each other, a community that shifts
`load_cifar10_vgg`      a VGG on the 10,000 test images of CIFAR-10, or a smaller one, logits
======================  ======================================================================

Each returns a `Dataset`: rows to learn a recalibration from (`train`) and others to judge it on
(`holdout`). The files are made by ``studies/*/make_predictions.py`` and ``studies/cifar10``; a file
whose checksum differs from ``data/SHA256SUMS`` is not read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib.resources import files
from io import BytesIO
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._validation.predictions import Predictions
from ..exceptions import FileFormatError, InputError

__all__ = ["Dataset", "load_cifar10_vgg", "load_obesity_forest", "load_portal_rodents"]

Arrays = dict[str, NDArray[Any]]
RodentGroups = Literal["plot", "month", "plot_month"]
Network = Literal["large", "small"]

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
N_CIFAR10_TRAIN = 8000
"""Images to learn from, of the 10,000; the paper's split in size, not in rows."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Predictions with their labels, in two parts, and where they come from.

    Attributes
    ----------
    name : str
        Short name.
    train, holdout : Predictions
        Rows to learn a recalibration from, and rows to judge it on. The model that made the
        predictions saw neither.
    DESCR : str
        Source, licence, script that made the file, checksum.
    sha256 : str
        Checksum of the file.
    train_columns, holdout_columns : dict of str to ndarray
        What else is known of the rows, such as ``year``; empty when nothing is.

    See Also
    --------
    load_obesity_forest : A forest on 528 people.
    load_cifar10_vgg : A network on images.
    load_portal_rodents : A regression whose data drift.
    mcllo.Predictions : What the two parts are.

    Notes
    -----
    Files are small and come with the package; `DESCR` has the script that made them.

    Examples
    --------
    >>> import mcllo.datasets
    >>> data = mcllo.datasets.load_obesity_forest()
    >>> data
    <Dataset obesity_forest: 396 rows to learn from, 132 to judge on, 7 classes>
    >>> mcllo.assess(data.train, seed=0).test.rejects(alpha=0.05)
    True
    """

    name: str
    train: Predictions
    holdout: Predictions
    DESCR: str
    sha256: str
    train_columns: Arrays = field(default_factory=dict)
    holdout_columns: Arrays = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name}: {self.train.n_samples} rows to learn from, "
            f"{self.holdout.n_samples} to judge on, {self.train.n_classes} classes>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: what it is, without the rows."""
        return {
            "name": self.name,
            "n_train": self.train.n_samples,
            "n_holdout": self.holdout.n_samples,
            "classes": list(self.train.classes),
            "baseline": self.train.baseline,
            "sha256": self.sha256,
            "DESCR": self.DESCR,
        }


def load_obesity_forest(*, clip: float = 1e-6) -> Dataset:
    """Load the votes of a random forest on seven obesity levels.

    500 trees, trained on 1,583 other rows without height and weight. A quarter of the probabilities
    are votes of 0; none of them is of a class that came true.

    Parameters
    ----------
    clip : float
        Floor for votes of 0: the default changes little and suits testing; half a vote, 0.001,
        suits recalibration with a penalty.

    Returns
    -------
    Dataset
        Baseline Normal_Weight; 396 rows to learn from, 132 to judge on.

    See Also
    --------
    load_cifar10_vgg : Many rows and ten classes.
    load_portal_rodents : Dependent rows whose class shares drift.
    mcllo.reproduce.table4 : The paper's table, made of these rows.

    Notes
    -----
    The people are those of [1]_. The forest and the split are ours: those of [2]_ are not public.

    References
    ----------
    .. [1] F. Mendoza Palechor, A. de la Hoz Manotas (2019). Data on obesity levels, eating habits
           and physical condition. UCI Machine Learning Repository 544, doi:10.24432/C5H31Z.
    .. [2] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> forest = load_obesity_forest()
    >>> forest.holdout.n_samples, forest.holdout.baseline
    (132, 'Normal_Weight')
    """
    arrays, sha256 = _load_verified_arrays("obesity_forest")
    probs = arrays["votes"] / float(arrays["n_trees"])
    classes = tuple(str(label) for label in arrays["classes"])
    rule = {"classes": classes, "baseline": "Normal_Weight", "clip": clip}
    return _build_dataset("obesity_forest", arrays, sha256, {"probs": probs}, rule)


def load_portal_rodents(*, groups: RodentGroups | None = "plot") -> Dataset:
    """Load predictions of the genus of rodents caught near Portal, Arizona, 1986 to 2002.

    Multinomial regression on hindfoot length, log weight, sex and plot type, trained on the years
    before. The community shifts in these years, and captures repeat animals and plots.

    Parameters
    ----------
    groups : {"plot", "month", "plot_month"}, optional
        What the rows depend on each other by: one of 24 plots, one calendar month of trapping, or
        both; None calls all rows independent. Animals are not identified in this data set, and are
        trapped again on the same plot, so that only "plot" holds all captures of one together.

    Returns
    -------
    Dataset
        Captures of 1986 to 1994 to learn from, of 1995 to 2002 to judge on, with logits; the
        columns are ``year``, ``month`` and ``plot``. The baseline is the last genus.

    See Also
    --------
    load_cifar10_vgg : Many rows and ten classes.
    load_obesity_forest : Few rows, zeros among the probabilities.
    mcllo.robust_test : A test for rows that depend on each other.
    mcllo.Monitor : Watches predictions over time.

    Notes
    -----
    The captures are those of [1]_; the regression is ours.

    References
    ----------
    .. [1] S. K. M. Ernest, J. Brown, T. Valone, E. P. White. Portal Project Teaching Database,
           doi:10.6084/m9.figshare.1314459.

    Examples
    --------
    >>> rodents = load_portal_rodents()
    >>> rodents.holdout.baseline, sorted(rodents.holdout_columns)
    ('Reithrodontomys', ['month', 'plot', 'year'])
    """
    arrays, sha256 = _load_verified_arrays("portal_rodents")
    plot = arrays["plot"].astype(np.int64)
    month = arrays["year"].astype(np.int64) * 12 + arrays["month"]
    group_of_row = {
        None: None,
        "plot": plot,
        "month": month,
        "plot_month": month * 100 + plot,
    }
    if groups not in group_of_row:
        raise InputError(
            f"groups must be 'plot', 'month', 'plot_month' or None; got {groups!r}. Choose one."
        )
    rule = {"classes": tuple(str(label) for label in arrays["classes"])}
    rows = {"logits": arrays["logits"], "groups": group_of_row[groups]}
    return _build_dataset(
        "portal_rodents", arrays, sha256, rows, rule, ("year", "month", "plot")
    )


def load_cifar10_vgg(*, network: Network = "large") -> Dataset:
    """Load the logits of a VGG on the 10,000 test images of CIFAR-10.

    Parameters
    ----------
    network : {"large", "small"}
        One of the accuracy of the paper's network, overconfident as that one is; or a smaller one
        that was trained for less.

    Returns
    -------
    Dataset
        A random 8,000 images to learn from and 2,000 to judge on, the same for both networks; the
        column ``image`` is the image's number in the test set, from 0. The baseline is truck.

    See Also
    --------
    load_obesity_forest : Few rows, zeros among the probabilities.
    load_portal_rodents : Dependent rows whose class shares drift.
    mcllo.reproduce.table2 : The paper's table, made of these rows.

    Notes
    -----
    The images are those of [1]_. The networks are ours: the one of [2]_ is not public.

    References
    ----------
    .. [1] A. Krizhevsky (2009). Learning multiple layers of features from tiny images. Technical
           report, University of Toronto.
    .. [2] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> images = load_cifar10_vgg()
    >>> images
    <Dataset cifar10_vgg: 8000 rows to learn from, 2000 to judge on, 10 classes>
    >>> images.holdout.logits.shape, images.holdout.baseline, sorted(images.holdout_columns)
    ((2000, 10), 'truck', ['image'])
    """
    names = {"large": "cifar10_vgg", "small": "cifar10_vgg_small"}
    if network not in names:
        raise InputError(
            f"network must be 'large' or 'small'; got {network!r}. Choose one."
        )
    name = names[network]
    arrays, sha256 = _load_verified_arrays(name)
    n_images = len(arrays["labels"])
    order = np.random.default_rng(0).permutation(n_images)
    is_train = np.zeros(n_images, dtype=bool)
    is_train[order[:N_CIFAR10_TRAIN]] = True
    arrays["train"] = is_train
    arrays["image"] = np.arange(n_images)
    rule = {"classes": CIFAR10_CLASSES}
    return _build_dataset(
        name, arrays, sha256, {"logits": arrays["logits"]}, rule, ("image",)
    )


def _build_dataset(
    name: str,
    arrays: Arrays,
    sha256: str,
    rows: dict[str, Any],
    rule: dict[str, Any],
    columns: tuple[str, ...] = (),
) -> Dataset:
    """Validate the rows with ``train`` and the others, each on its own."""
    labels = np.asarray(rule["classes"])[arrays["labels"]]
    is_train = arrays["train"].astype(bool)

    def part(mask: NDArray[np.bool_]) -> tuple[Predictions, Arrays]:
        given = dict(rule)
        for key, value in rows.items():
            given[key] = None if value is None else value[mask]
        kept = {}
        for column in columns:
            kept[column] = arrays[column][mask]
            kept[column].setflags(write=False)
        return Predictions.from_arrays(y=labels[mask], **given), kept

    train, train_columns = part(is_train)
    holdout, holdout_columns = part(~is_train)
    text = describe(name, train, holdout, sha256)
    return Dataset(name, train, holdout, text, sha256, train_columns, holdout_columns)


def describe(name: str, train: Predictions, holdout: Predictions, sha256: str) -> str:
    """Return a description whose numbers are computed from the rows it describes."""
    template = (files(__name__) / "data" / f"{name}.md").read_text(encoding="utf-8")
    facts: dict[str, str] = {"sha256": sha256}
    for word, part in (("train", train), ("holdout", holdout)):
        hits = int((part.probs.argmax(axis=1) == part.codes).sum())
        facts[f"n_{word}"] = f"{part.n_samples:,}"
        facts[f"hits_{word}"] = f"{hits:,}"
        facts[f"accuracy_{word}"] = f"{100 * hits / part.n_samples:.2f} %"
    return template.format(**facts)


def _load_verified_arrays(name: str) -> tuple[Arrays, str]:
    """Return the arrays of a file whose checksum is right, and the checksum."""
    folder = files(__name__) / "data"
    file = f"{name}.npz"
    path = folder / file
    if not path.is_file():
        raise FileFormatError(
            f"{file} must be part of the package; it is not. "
            "Install mcllo again, or make the file with the scripts in studies/."
        )
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    expected = None
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        checksum, listed_file = line.split()
        if listed_file == file:
            expected = checksum
    if found != expected:
        raise FileFormatError(
            f"{file} must have the sha256 {expected}; got {found}. "
            "The file was changed or damaged: install mcllo again."
        )
    with np.load(BytesIO(content), allow_pickle=False) as data:
        return {key: data[key] for key in data.files}, found
