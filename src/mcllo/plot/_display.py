"""`ReliabilityDisplay`: reliability diagrams in the shape of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

from matplotlib.axes import Axes

from .._assessment.assess import assess
from .._assessment.assessment import Assessment
from .._inference.monte_carlo import Seed
from .._validation.predictions import predictions_for_scoring
from ._reliability_diagram import reliability, reliability_by_class


class ReliabilityDisplay:
    """Reliability diagram of a classifier of several classes, with a band.

    As `sklearn.calibration.CalibrationDisplay`, which is for two classes and has no band. Make one
    with `from_estimator` or `from_predictions`; `plot` draws it again, with ``curve="bins"`` say:
    then boxes show where calibrated predictions would lie.

    Parameters
    ----------
    assessment : Assessment
        What `mcllo.assess` returned.

    Attributes
    ----------
    assessment : Assessment
        The numbers behind the figure, and the verdict: ``print`` it.
    ax_ : Axes
        The diagram, or the first of them.
    axes_ : list of Axes
        All diagrams.
    figure_ : Figure
        The figure they are on.

    See Also
    --------
    reliability : The function that draws it.
    reliability_by_class : Draws a diagram for each class.
    mcllo.reliability_curve : The numbers, with other levels and bins.

    Examples
    --------
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> display = ReliabilityDisplay.from_predictions(y, probs, seed=0)
    >>> display.ax_.get_ylabel()
    'Observed frequency'
    """

    ax_: Axes
    axes_: list[Axes]
    figure_: Any

    def __init__(self, assessment: Assessment) -> None:
        self.assessment = assessment

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        by_class: bool = False,
        seed: Seed = None,
        **options: Any,
    ) -> Self:
        """Draw the reliability of a fitted classifier on rows that it was not fitted to.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba`` and ``classes_``.
        X : array-like of shape (n_samples, n_features)
            What it predicts from.
        y : array-like of shape (n_samples,)
            The labels that came true.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        by_class : bool
            A diagram for each class instead of one for the most probable class.
        seed : int or Generator, optional
            Of the draws behind what calibrated predictions show.
        **options
            Of `reliability` or `reliability_by_class`: ``ax``, ``curve``, ``n_bins``, ``binning``.

        Returns
        -------
        ReliabilityDisplay
            Drawn.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> X = X[:, 1:2]  # the width of the sepals alone
        >>> classifier = GaussianNB().fit(X[::2], y[::2])
        >>> display = ReliabilityDisplay.from_estimator(classifier, X[1::2], y[1::2], by_class=True)
        >>> len(display.axes_)
        3
        """
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            classes=list(estimator.classes_),
            sample_weight=sample_weight,
            by_class=by_class,
            seed=seed,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Sequence[Hashable] | None = None,
        sample_weight: Any = None,
        by_class: bool = False,
        seed: Seed = None,
        **options: Any,
    ) -> Self:
        """Draw the reliability of predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The labels that came true.
        y_prob : array-like of shape (n_samples, n_classes)
            Predicted probabilities; of shape (n_samples,), those of the second of two classes.
        classes : sequence, optional
            The label of each column.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        by_class : bool
            A diagram for each class instead of one for the most probable class.
        seed : int or Generator, optional
            Of the draws behind what calibrated predictions show.
        **options
            Of `reliability` or `reliability_by_class`: ``ax``, ``curve``, ``n_bins``, ``binning``.

        Returns
        -------
        ReliabilityDisplay
            Drawn.

        Examples
        --------
        >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
        >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
        >>> display = ReliabilityDisplay.from_predictions(y, probs, curve="smooth", seed=0)
        >>> display.assessment.verdict.kind
        'inconclusive'
        """
        rows = predictions_for_scoring(
            y_true,
            y_prob,
            sample_weight=sample_weight,
            classes=classes,
            keep_zeros=False,
        )
        return cls(assess(rows, seed=seed)).plot(by_class=by_class, **options)

    def plot(self, *, by_class: bool = False, **options: Any) -> Self:
        """Draw it, on a new figure or ``ax``.

        Parameters
        ----------
        by_class : bool
            A diagram for each class instead of one for the most probable class.
        **options
            Of `reliability` or `reliability_by_class`.

        Returns
        -------
        ReliabilityDisplay
            Itself.

        Examples
        --------
        >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
        >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
        >>> display = ReliabilityDisplay.from_predictions(y, probs, seed=0)
        >>> len(display.plot(by_class=True, n_bins=5).axes_)
        2
        """
        if by_class:
            self.axes_ = reliability_by_class(self.assessment, **options)
        else:
            self.axes_ = [reliability(self.assessment, **options)]
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        return self
