"""Raw input -> `Predictions`, once, at the door; nothing else validates.

Shapes and order, stated here once: rows are samples, columns are classes in the order of
`classes`; ``codes[i]`` is the column of row i's label. Inside the model the baseline is moved last
and arrays are transposed: ``log_odds[j, i] = log(x_ij / x_ib)`` for the classes j other than the
baseline b, in column order.

===========================  =====================================================================
`Predictions.from_arrays`    (probs, y), validated; zeros clipped
`as_predictions`             the same, or a `Predictions` that is one already
`predictions_for_inference`  the same for tests and intervals: counts as weights are whole
`predictions_for_scoring`    (y_true, y_prob), the order of `sklearn.metrics`; zeros stay zeros
===========================  =====================================================================

Everything that an assessment says of its data is in `DataFacts`, so that rows which are read in
blocks need not be kept for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._model.likelihood import log_odds_from_rows
from .._utils.results import Codes, Floats
from .._utils.statements import Statement
from ..exceptions import InputError
from .arguments import (
    RowSubgroups,
    clean_by,
    extract_by_column,
)
from .choice_sets import clean_choice_sets
from .frames import (
    check_row_indexes,
    n_columns,
    select_by_prefix,
    split_labels_from_tables,
)
from .labels import (
    Classes,
    add_label_remedy,
    as_class_list,
    check_n_class_names,
    check_not_reserved,
    default_baseline,
    encode_counts,
    encode_labels,
    find_baseline_column,
    find_class,
    no_labels_error,
)
from .missing_rows import check_missing_rule, drop_rows_with_gaps
from .probabilities import (
    Simplex,
    clean_probs,
    clipping_statement,
    simplex_from_arguments,
    warn_of_zeros,
)
from .weights import (
    RowFacts,
    WeightKind,
    clean_row_facts,
    expand_count_table,
    is_count_table,
    row_numbers,
)


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Validated predictions with their labels; every array is read-only.

    Use `Predictions.from_arrays`; every function that takes ``(probs, y)`` also takes one of these.

    Attributes
    ----------
    probs : ndarray of shape (n_samples, n_classes)
        Probabilities, rows summing to 1, zeros clipped to `clip`.
    codes : ndarray of shape (n_samples,)
        Column of each row's label.
    classes : tuple
        Labels in column order.
    baseline : label
        The class all log odds refer to.
    logits : ndarray or None
        Scores before the softmax, when given; they then define the log odds.
    sample_weight : ndarray or None
        Row i counts as ``sample_weight[i]`` rows.
    weight_kind : {"frequency", "survey", "importance"}
        What the weights mean; see `from_arrays`.
    groups : ndarray or None
        Number of the group each row belongs to; rows of a group may depend on each other.
    by : RowSubgroups or None
        The subgroup each row belongs to, where `assess` is to look at each of them.
    raised : ndarray of bool or None
        Where a small probability was clipped to `clip`; None when nowhere.
    clip : float or None
        Lower bound that zeros were clipped to; None when nothing was clipped.
    clip_given : bool
        Whether that bound was asked for, and is not the default rule's.
    n_zeros, n_clipped, n_clipped_true : int
        Zeros found, probabilities clipped, and how many of those were the true class's.
    n_renormalized : int
        Rows whose sum was off by more than 1e-9 and was divided out.
    max_row_error : float
        Largest distance of a row sum from 1.
    notes : tuple of Statement
        What was assumed when they were read from a file, and rows that were left out.
    offered : ndarray of bool of shape (n_samples, n_classes) or None
        Of choice sets (`from_choices`): which positions each row offers. `classes` are then
        positions, `probs` are 0 where nothing is offered, and `logits` are log probabilities.

    See Also
    --------
    read_predictions : Reads files.
    assess : Judges them.
    compare : Takes two, to learn from and to judge on.
    MCLLOCalibrator : Learns a recalibration from them.

    Notes
    -----
    How rows are read is described once, by the options of `from_arrays`. Functions that take
    ``(probs, y)`` take them too, as far as they can honour them:

    - ``logits``: scores before the softmax, instead of `probs` or beside them.
    - ``classes``, ``prefix``: which columns to use, and the label of each.
    - ``sample_weight``, ``weight_kind``: weights of the rows, and what they mean.
    - ``groups``: rows that may depend on each other.
    - ``normalize``, ``clip``: accept rows that do not sum to 1; lower bound of small probabilities.
    - ``missing``: refuse rows with gaps, or leave them out.

    Examples
    --------
    >>> p = Predictions.from_arrays([[0.7, 0.3], [0.2, 0.8]], ["cat", "dog"])
    >>> p
    Predictions(n_samples=2, classes=('cat', 'dog'), baseline='dog')
    >>> p.log_odds.round(3)
    array([[ 0.847, -1.386]])
    """

    probs: Floats
    codes: Codes
    classes: Classes
    baseline: Hashable
    logits: Floats | None = None
    sample_weight: Floats | None = None
    weight_kind: WeightKind = "frequency"
    groups: Codes | None = None
    by: RowSubgroups | None = None
    raised: NDArray[np.bool_] | None = None
    clip: float | None = None
    clip_given: bool = False
    n_zeros: int = 0
    n_clipped: int = 0
    n_clipped_true: int = 0
    n_renormalized: int = 0
    max_row_error: float = 0.0
    notes: tuple[Statement, ...] = ()
    offered: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        arrays = ("probs", "codes", "logits", "sample_weight", "groups", "raised")
        for name in (*arrays, "offered"):
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def from_arrays(
        cls,
        probs: Any = None,
        y: Any = None,
        *,
        logits: Any = None,
        classes: Sequence[Hashable] | None = None,
        prefix: str = "",
        baseline: Hashable | None = None,
        sample_weight: Any = None,
        weight_kind: WeightKind = "frequency",
        groups: Any = None,
        by: Any = None,
        normalize: bool = False,
        clip: float | None = None,
        missing: Literal["refuse", "drop"] = "refuse",
    ) -> Predictions:
        """Validate predictions and labels.

        Rows belong together by position. Indexes of pandas that say otherwise are refused, but for
        one that only counts 0 .. n-1 beside labels of other rows.

        Parameters
        ----------
        probs : array-like or frame of shape (n_samples, n_classes)
            Predicted probabilities. May be None when `logits` is given.
        y : array-like of shape (n_samples,), or table of shape (n_samples, n_classes)
            The labels that came true. A table is one-hot, or holds how often each row was labelled
            as each class: such a row becomes a weighted row for each class it was given. The name
            of a column, where `probs` is a frame that holds the labels too.
        logits : array-like or frame, optional
            Scores before the softmax: instead of `probs`, or beside them (they must then agree).
        classes : sequence, optional
            The label of each column; for a frame, the columns to use. Default: the frame's column
            names, else 0 .. c-1 for such integers, else the sorted distinct labels.
        prefix : str
            What stands before a class in the name of a frame's column: ``"prob_"`` for columns
            ``prob_cat, prob_dog`` and labels ``cat, dog``. What stands before and after it with a
            ``*``: ``"P(*)"``. Other columns are left out.
        baseline : label, optional
            Reference class of the log odds. Default: the last class that occurs in `y`.
        sample_weight : array-like of shape (n_samples,), optional
            Row i counts as ``sample_weight[i]`` rows.
        weight_kind : {"frequency", "survey", "importance"}
            "frequency": so many rows looked the same; whole numbers wherever something is tested.
            "survey": rows were sampled with unequal chances, a weight is 1 over the chance.
            "importance": rows matter so much, for any other reason. The latter two get robust
            standard errors and tests.
        groups : array-like of shape (n_samples,), optional
            Group of each row (an animal, a patient): rows of one may depend on each other.
        by : array-like of shape (n_samples,) or str, optional
            Subgroup of each row (a station, a sex), or the frame's column that holds it: `assess`
            then asks whether all are alike.
        normalize : bool
            Accept rows that do not sum to 1 (rounded files) and divide them by their sum.
        clip : float, optional
            Smaller probabilities are clipped to this. Default: 1e-6, only in rows that hold a 0.
        missing : {"refuse", "drop"}
            Rows in which a probability, the label, the weight or the group is missing: "drop"
            leaves them out, which `notes` count.

        Returns
        -------
        Predictions
            Checked, and read-only.

        Raises
        ------
        InputError
            One sentence: what must hold, what was found and where, what to do.
        """
        if n_columns(probs) == 1 and n_columns(y) > 1:
            raise InputError(
                "probs must be a table and y its labels; they seem to be swapped. "
                "Call with (probs, y)."
            )
        # Before anything becomes an array: what is not a frame has no index.
        beside = {"y": y, "sample_weight": sample_weight, "groups": groups, "by": by}
        check_row_indexes(probs=probs, logits=logits, **beside)
        classes = None if classes is None else as_class_list(classes)
        by, probs, logits = extract_by_column(by, probs, logits)
        probs, logits, y = split_labels_from_tables(probs, logits, y)
        if prefix:
            probs = (
                None
                if probs is None
                else select_by_prefix(probs, prefix, classes, "probs")
            )
            logits = (
                None
                if logits is None
                else select_by_prefix(logits, prefix, classes, "logits")
            )
        notes: tuple[Statement, ...] = ()
        check_missing_rule(missing)
        if missing == "drop":
            tables, beside, classes, notes = drop_rows_with_gaps(
                {"probs": probs, "logits": logits},
                {"y": y, "sample_weight": sample_weight, "groups": groups, "by": by},
                classes,
            )
            probs, logits = tables["probs"], tables["logits"]
            y, by = beside["y"], beside["by"]
            sample_weight, groups = beside["sample_weight"], beside["groups"]
        if logits is None:
            _refuse_transposed("probs", probs, y)
        else:
            _refuse_transposed("logits", logits, y)
        try:
            simplex = simplex_from_arguments(probs, logits, classes, normalize, clip)
        except InputError as error:
            if classes or prefix:
                raise
            table = probs if logits is None else logits
            raise add_label_remedy(error, table, y) from None
        facts = clean_row_facts(
            len(simplex.probs), sample_weight, weight_kind, groups, by
        )
        predictions = cls._labelled(simplex, y, classes, baseline, facts)
        if notes:
            predictions = replace(predictions, notes=notes)
        if clip is not None:
            return replace(predictions, clip_given=True)
        warn_of_zeros(predictions, predictions.probs.size)
        return predictions

    @classmethod
    def from_choices(
        cls,
        scores: Any,
        y: Any = None,
        *,
        kind: str,
        positions: Sequence[Hashable] | None = None,
        lengths: Any = None,
        by: Any = None,
        question: str | None = None,
        option: str | None = None,
        score: str | None = None,
        right: str | None = None,
    ) -> Predictions:
        """Validate choice sets: rows that offer options without identity, of varying number.

        The answers to a question, the horses of a race, the candidates of a search: an option is
        known by its position and its score.

        Parameters
        ----------
        scores : list of lists, array-like or frame of shape (n_samples, n_positions)
            The scores of each row's options, in order; in a padded table NaN (of log scores also
            -inf) where a position is not offered. With `question` a frame that has a row for each
            option.
        y : array-like of shape (n_samples,), optional
            The right option of each row: its place, counted from 0, or the name of its position.
        kind : {"log_likelihoods", "logits", "probs"}
            What scores are. All are normalised over what a row offers.
        positions : sequence, optional
            Names of the positions. Default: A, B, C, ...; of more than 26 positions 1, 2, 3, ...
            Positions that no row offers are left out.
        lengths : list of lists or array-like, optional
            Characters or tokens of each option, by which its log likelihood is divided.
        by : array-like of shape (n_samples,), optional
            Subgroup of each row, such as the subject of a question.
        question, option, score, right : str, optional
            Columns of a frame with a row for each option: the question it belongs to, its position,
            its score, and whether it is the right one.

        Returns
        -------
        Predictions
            Checked, and read-only; `offered` is the mask of what is offered.

        Raises
        ------
        InputError
            An answer that is not offered, a row with fewer than two options, scores that are none:
            one sentence with the row.

        See Also
        --------
        mcllo.assess_choices : Judges them.
        mcllo.ChoiceCalibrator : Learns a recalibration from them.
        Predictions.from_arrays : Rows whose columns are classes.

        Examples
        --------
        >>> rows = [[-1.2, -0.7, -3.0], [-0.1, -2.5]]
        >>> p = Predictions.from_choices(rows, [1, 0], kind="log_likelihoods")
        >>> p
        Predictions(n_samples=2, positions=('A', 'B', 'C'), options=(2, 3))
        >>> p.probs.round(3)
        array([[0.355, 0.586, 0.059],
               [0.917, 0.083, 0.   ]])
        """
        long_columns = None
        if question is not None:
            named = {"question": question, "option": option}
            named |= {"score": score, "right": right}
            long_columns = {
                name: column for name, column in named.items() if column is not None
            }
        rows = clean_choice_sets(
            scores,
            y,
            kind=kind,
            positions=positions,
            lengths=lengths,
            long_columns=long_columns,
        )
        predictions = cls(
            probs=rows.probs,
            codes=rows.codes,
            classes=rows.positions,
            baseline=rows.most_offered,
            logits=rows.log_probs,
            by=clean_by(by, len(rows.codes)),
            offered=rows.offered,
            **rows.changes(rows.codes),
        )
        warn_of_zeros(predictions, int(rows.offered.sum()))
        return predictions

    @classmethod
    def _labelled(
        cls,
        simplex: Simplex,
        y: Any,
        classes: Sequence[Hashable] | None,
        baseline: Hashable | None,
        facts: RowFacts,
    ) -> Predictions:
        """Return clean rows with their labels, of which a table of counts gives several each."""
        n_samples, n_classes = simplex.probs.shape
        names: Sequence[Hashable] | None = simplex.names if classes is None else classes
        if names is not None:
            check_n_class_names(names, n_classes)
        if y is None:
            raise no_labels_error("None")
        are_counts = n_columns(y) > 1 and is_count_table(y)
        codes, labels = (encode_counts if are_counts else encode_labels)(
            y, n_classes, names
        )
        if len(codes) != n_samples:
            raise InputError(
                f"probs and y must have the same number of rows; got {n_samples} and {len(codes)}."
            )
        if are_counts:
            rows, codes, times = expand_count_table(codes)
            simplex = simplex.take(rows)
            facts = facts.take(rows, times)
        check_not_reserved(labels)
        if baseline is not None:
            index = find_baseline_column(baseline, labels)
        else:
            index = default_baseline(np.bincount(codes, facts.weight, n_classes))
        return cls._build(simplex, codes, labels, index, facts)

    @classmethod
    def _build(
        cls,
        simplex: Simplex,
        codes: Codes,
        classes: Classes,
        baseline_index: int,
        facts: RowFacts,
    ) -> Predictions:
        """Return predictions out of parts that are all validated."""
        raised = simplex.raised
        n_clipped = 0
        n_clipped_true = 0
        if raised is not None:
            n_clipped = int(raised.sum())
            n_clipped_true = int(raised[np.arange(len(codes)), codes].sum())
        return cls(
            probs=simplex.probs,
            codes=codes,
            classes=classes,
            baseline=classes[baseline_index],
            logits=simplex.logits,
            sample_weight=facts.weight,
            weight_kind=facts.weight_kind,
            groups=facts.groups,
            by=facts.by,
            raised=raised,
            clip=simplex.clip,
            n_zeros=simplex.n_zeros,
            n_clipped=n_clipped,
            n_clipped_true=n_clipped_true,
            n_renormalized=simplex.n_renormalized,
            max_row_error=simplex.max_row_error,
        )

    def __repr__(self) -> str:
        if self.offered is not None:
            n_options = self.offered.sum(axis=1)
            return (
                f"Predictions(n_samples={self.n_samples}, positions={self.classes!r}, "
                f"options=({n_options.min()}, {n_options.max()}))"
            )
        return (
            f"Predictions(n_samples={self.n_samples}, classes={self.classes!r}, "
            f"baseline={self.baseline!r})"
        )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def baseline_index(self) -> int:
        """Column of the baseline."""
        return find_class(self.baseline, self.classes, "baseline")

    @property
    def compared(self) -> Classes:
        """The classes other than the baseline, in column order: the order of all parameters."""
        b = self.baseline_index
        return self.classes[:b] + self.classes[b + 1 :]

    @cached_property
    def class_weight(self) -> Floats:
        """Total weight of the rows of each class (counts when there are no weights)."""
        counts = np.bincount(
            self.codes, weights=self.sample_weight, minlength=self.n_classes
        )
        weight = counts.astype(np.float64)
        weight.setflags(write=False)
        return weight

    @property
    def row_weight(self) -> Floats:
        """The weights, also where all are 1."""
        return (
            np.ones(self.n_samples)
            if self.sample_weight is None
            else self.sample_weight
        )

    @property
    def absent(self) -> Classes:
        """Classes that never occur in the labels."""
        return tuple(self.classes[k] for k in np.flatnonzero(self.class_weight == 0.0))

    @cached_property
    def log_odds(self) -> Floats:
        """Log odds against the baseline, shape (n_classes - 1, n_samples), read-only.

        Of choice sets log probabilities, shape (n_classes, n_samples): log odds against an option
        that no row offers, which `offered` must mask.
        """
        if self.offered is not None:
            assert self.logits is not None
            odds = np.ascontiguousarray(self.logits.T)
        elif self.logits is None:
            odds = log_odds_from_rows(
                self.probs, self.baseline_index, rows_are_logs=False
            )
        else:  # no digit is lost where the softmax rounds to 0 or 1
            odds = log_odds_from_rows(
                self.logits, self.baseline_index, rows_are_logs=True
            )
        odds.setflags(write=False)
        return odds

    @cached_property
    def model_codes(self) -> Codes:
        """Labels as rows of `log_odds`; the baseline is ``n_classes - 1``."""
        b = self.baseline_index
        if b == self.n_classes - 1 or self.offered is not None:
            return self.codes
        # the baseline moves last, and the classes behind it move up
        moved = np.where(self.codes > b, self.codes - 1, self.codes)
        moved[self.codes == b] = self.n_classes - 1
        moved.setflags(write=False)
        return moved

    @property
    def counts_rows(self) -> bool:
        """Whether weights are frequencies; without weights each row counts once."""
        return self.facts.counts

    @property
    def has_whole_weights(self) -> bool:
        """Whether every row counts a whole number of times."""
        return self.counts_rows and self.facts.first_fraction is None

    @property
    def n_expanded_probs(self) -> float:
        """Probabilities of the rows, each as often as it counts: what drawing labels costs."""
        return self.facts.n_observations(self.n_samples) * self.n_classes

    @property
    def zero_note(self) -> str:
        """What clipping did, in a sentence; empty when it did nothing."""
        return self.zero_statement.text

    @property
    def zero_statement(self) -> Statement:
        """The same, for whoever calls arguments otherwise."""
        return clipping_statement(self, self.probs.size)

    def with_baseline(self, baseline: Hashable) -> Predictions:
        """Return the same predictions with log odds against another class.

        Parameters
        ----------
        baseline : label
            The reference class of the log odds.

        Returns
        -------
        Predictions
            The same rows.
        """
        label = self.classes[find_class(baseline, self.classes, "baseline")]
        if label == self.baseline:
            return self  # with its log odds, if they are computed
        return replace(self, baseline=label)

    def with_probs(self, probs: Any) -> Predictions:
        """Return other probabilities for the same rows and labels, say a recalibration of these.

        Zeros are clipped by the default rule without a warning; `n_clipped` counts them.

        Parameters
        ----------
        probs : array-like of shape (n_samples, n_classes)
            The probabilities.

        Returns
        -------
        Predictions
            The same labels, weights and groups.
        """
        is_choice = self.offered is not None
        simplex = clean_probs(probs, columns=self.classes, keep_zeros=is_choice)
        shape = simplex.probs.shape
        if shape != self.probs.shape:
            rule = f"have shape {self.probs.shape}"
            raise InputError(argument="probs", rule=rule, found=str(shape))
        if is_choice:
            return self._with_choice_probs(simplex.probs)
        return self._build(
            simplex, self.codes, self.classes, self.baseline_index, self.facts
        )

    def _with_choice_probs(self, probs: Floats) -> Predictions:
        """Return other probabilities of the options that these choice sets offer."""
        assert self.offered is not None
        # Not as labelled rows, whose positions that no row offers are left out.
        rows = clean_choice_sets(
            np.where(self.offered, probs, np.nan),
            None,
            kind="probs",
            positions=self.classes,
            labelled=False,
        )
        return replace(
            self,
            probs=rows.probs,
            logits=rows.log_probs,
            **rows.changes(self.codes),
        )

    def with_by(self, by: Any) -> Predictions:
        """Return the same predictions with the subgroup of each row."""
        return replace(self, by=clean_by(by, self.n_samples))

    def take(self, rows: Any) -> Predictions:
        """Return a subset of the rows (indices or a mask); counts of changes stay the whole's.

        Parameters
        ----------
        rows : array-like of int or bool
            Indices, or a mask.

        Returns
        -------
        Predictions
            Those rows.
        """
        picked = row_numbers(rows, self.n_samples)
        facts = self.facts.take(picked)
        return replace(
            self,
            probs=self.probs[picked],
            codes=self.codes[picked],
            logits=None if self.logits is None else self.logits[picked],
            raised=None if self.raised is None else self.raised[picked],
            sample_weight=facts.weight,
            groups=facts.groups,
            by=facts.by,
            offered=None if self.offered is None else self.offered[picked],
        )

    @property
    def offered_counts(self) -> Codes:
        """How many options each row offers."""
        if self.offered is None:
            return np.full(self.n_samples, self.n_classes)
        return np.asarray(self.offered.sum(axis=1), np.intp)

    @property
    def model_mask(self) -> NDArray[np.bool_] | None:
        """What is offered, in the shape of `log_odds`; None where every row offers every class."""
        if self.offered is None:
            return None
        return np.ascontiguousarray(self.offered.T)

    def with_importance_weights(self) -> Predictions:
        """Return the rows to learn from: weights that are no whole numbers are importance."""
        if self.facts.first_fraction is None:
            return self
        return replace(self, weight_kind="importance")

    def expand_weights(self) -> Predictions:
        """Return each row as often as its weight, a whole number, says."""
        if self.sample_weight is None:
            return self
        times = self.facts.times(self.n_classes)
        rows = np.repeat(np.arange(self.n_samples), times)
        return replace(self.take(rows), sample_weight=None)

    @property
    def facts(self) -> RowFacts:
        """Weights, their meaning, groups and subgroups."""
        return RowFacts(self.sample_weight, self.weight_kind, self.groups, self.by)


def _refuse_transposed(name: str, table: Any, y: Any) -> None:
    """Refuse a table with a column for each label and a row for each class."""
    shape = getattr(table, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or n_columns(y) != 1:
        return
    n_rows, n_columns_given = shape
    n_labels = len(y) if hasattr(y, "__len__") else 0
    if n_labels == n_columns_given and n_rows < n_labels:
        raise InputError(
            "{argument} must have a row for each of the {n_labels:,} labels; it has a column "
            "for each, and {n_rows} rows. Pass {argument}.T.",
            argument=name,
            values={"n_labels": n_labels, "n_rows": n_rows},
        )


def as_predictions(
    probs: Any, y: Any = None, *, choice_sets: bool = False, **options: Any
) -> Predictions:
    """Return `probs` itself when it is a `Predictions` (moved to `baseline`), else validate.

    Choice sets are refused unless the caller takes `choice_sets`.
    """
    if not isinstance(probs, Predictions):
        return Predictions.from_arrays(probs, y, **options)
    if not choice_sets:
        refuse_choice_sets(probs)
    baseline = options.pop("baseline", None)
    by = options.pop("by", None)
    if by is not None:
        probs = probs.with_by(by)
    defaults = (
        None,
        False,
        "frequency",
        "",
        "refuse",
    )  # by identity: a table cannot be compared with them
    given = []
    for name, value in options.items():
        if not any(value is default for default in defaults):
            given.append(name)
    if y is not None or given:
        extra = "y" if y is not None else f"{min(given)}="
        raise InputError(
            f"{extra} must not be given beside a Predictions; it holds its own."
        )
    return probs if baseline is None else probs.with_baseline(baseline)


def refuse_choice_sets(predictions: Predictions) -> None:
    """Refuse rows whose options have no identity, where columns must be classes."""
    if predictions.offered is not None:
        raise InputError(
            "these predictions are choice sets, whose columns are positions and not classes; "
            "use assess_choices, calibration_test or ChoiceCalibrator."
        )


def predictions_for_inference(
    probs: Any, y: Any = None, *, independent: bool = False, **options: Any
) -> Predictions:
    """Return `as_predictions` for a test or an interval: weights that count rows must be whole.

    What takes rows for `independent` refuses groups and weights that are no counts as well.
    """
    predictions = as_predictions(probs, y, **options)
    if independent:
        predictions.facts.refuse_dependence()
    else:
        predictions.facts.refuse_fractions()
    return predictions


def predictions_for_scoring(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    classes: Sequence[Hashable] | None = None,
    baseline: Hashable | None = None,
    keep_zeros: bool = True,
    choice_sets: bool = False,
) -> Predictions:
    """Validate what is scored, in the order of `sklearn.metrics`; zeros stay zeros by default.

    A `Predictions` stands for itself, with ``y_true=None``; one of choice sets where these are
    taken, by what looks at the most probable option or at the one that came true. One-dimensional
    `y_prob` is, as in scikit-learn's binary scorers, the probability of the second of two classes.
    """
    options = {"sample_weight": sample_weight, "classes": classes, "baseline": baseline}
    if (
        not isinstance(y_prob, Predictions)
        and n_columns(y_true) > 1
        and n_columns(y_prob) == 1
    ):
        raise InputError(
            "y_true must be labels and y_prob a table of probabilities; they seem to be swapped. "
            "Call with (y_true, y_prob)."
        )
    is_vector = isinstance(y_prob, np.ndarray) and y_prob.ndim == 1
    if is_vector and y_prob.dtype.kind == "f":
        y_prob = np.column_stack([1.0 - y_prob, y_prob])
    if isinstance(y_prob, Predictions) or not keep_zeros:
        return as_predictions(y_prob, y_true, choice_sets=choice_sets, **options)
    check_row_indexes(y_prob=y_prob, y_true=y_true, sample_weight=sample_weight)
    _refuse_transposed("y_prob", y_prob, y_true)
    classes = None if classes is None else as_class_list(classes)
    simplex = clean_probs(y_prob, columns=classes, keep_zeros=True)
    facts = clean_row_facts(len(simplex.probs), sample_weight)
    return Predictions._labelled(simplex, y_true, classes, baseline, facts)


@dataclass(frozen=True, eq=False)
class DataFacts:
    """What is known of the rows, in memory or not; names as in `Predictions`.

    Attributes
    ----------
    sample_weight : ndarray, float or None
        The weights, or the sum of those that are not in memory; None when every row counts once.
    """

    n_samples: int
    classes: Classes
    baseline: Any
    class_weight: Floats
    sample_weight: Floats | float | None
    weight_kind: str = "frequency"
    groups: Codes | None = None
    n_zeros: int = 0
    n_clipped: int = 0
    n_clipped_true: int = 0
    clip: float | None = None
    n_renormalized: int = 0
    max_row_error: float = 0.0
    notes: tuple[Statement, ...] = ()

    @classmethod
    def from_predictions(cls, predictions: Predictions) -> DataFacts:
        """Return the facts of rows in memory."""
        return cls(
            **{field.name: getattr(predictions, field.name) for field in fields(cls)}
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def absent(self) -> Classes:
        """Classes that never occur in the labels."""
        pairs = zip(self.classes, self.class_weight, strict=True)
        return tuple(label for label, weight in pairs if weight == 0.0)

    @property
    def zero_statement(self) -> Statement:
        """What clipping did; empty when it did nothing."""
        return clipping_statement(self, self.n_samples * self.n_classes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        weighted = self.sample_weight is not None
        return {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "classes": list(self.classes),
            "baseline": self.baseline,
            "class_counts": self.class_weight.tolist(),
            "absent_classes": list(self.absent),
            "weighted": weighted,
            "weight_kind": self.weight_kind if weighted else None,
            "n_groups": None if self.groups is None else len(np.unique(self.groups)),
            "n_zeros": self.n_zeros,
            "n_clipped": self.n_clipped,
            "n_clipped_true": self.n_clipped_true,
            "clip": self.clip,
            "n_renormalized": self.n_renormalized,
            "max_row_error": self.max_row_error,
            "notes": [{"kind": note.kind, "text": note.text} for note in self.notes],
        }
