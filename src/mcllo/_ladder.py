"""`ladder`: which kind of miscalibration? Nested models from the identity to the full map.

==============  ==========================================  ===================  ===========
model           log odds after recalibration                parameters           inside
==============  ==========================================  ===================  ===========
identity        ``l_j``                                     0
temperature     ``gamma l_j``                               1                    identity
shift           ``tau_j + l_j``                             c - 1                identity
scale           ``gamma_j l_j``                             c - 1                temperature
common_slope    ``tau_j + gamma l_j``                       c                    temperature, shift
mcllo           ``tau_j + gamma_j l_j``                     2 (c - 1)            all above
full            ``tau_j + sum_k W_jk l_k``                  c (c - 1)            all above
==============  ==========================================  ===================  ===========

Each is ``theta = theta0 + A beta`` on the solver of the whole fit (`_restriction`). Against the
identity the p-value is exact where chi-square cannot be trusted; see `_nested_test`.

Closed testing: "the labels follow model m" is tested against MCLLO (MCLLO itself against the full
map). The intersection of two of these hypotheses is again one of them, so rejecting m only when m
and every model inside it are rejected at level alpha keeps the probability of any false rejection
at alpha. The smallest model that is not rejected is named. The identity's test is that of
`calibration_test`. Only `scale` and `mcllo` depend on the baseline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._calibration_test import N_RESAMPLES, CalibrationTest, Method, chi2_sf, run_test
from ._fit import MCLLOFit, fit_predictions, free_parameters, none_for_nan
from ._ladder_words import ladder_sentence
from ._monte_carlo import Seed, entropy_of
from ._multiplicity import closed_test
from ._nested_test import Plan, TailP, against_identity, against_larger, gain
from ._predictions import Predictions, as_predictions
from ._restriction import Family, RestrictedFit, restricted_fit
from ._table import Table
from .exceptions import InputError

Floats = NDArray[np.float64]

MODELS = ("identity", "temperature", "shift", "scale", "common_slope", "mcllo", "full")
INSIDE: dict[str, tuple[str, ...]] = {
    "identity": (),
    "temperature": ("identity",),
    "shift": ("identity",),
    "scale": ("identity", "temperature"),
    "common_slope": ("identity", "temperature", "shift"),
    "mcllo": ("identity", "temperature", "shift", "scale", "common_slope"),
    "full": ("identity", "temperature", "shift", "scale", "common_slope", "mcllo"),
}
NEXT = {
    "identity": "temperature",
    "temperature": "common_slope",
    "shift": "common_slope",
    "scale": "mcllo",
    "common_slope": "mcllo",
    "mcllo": "full",
}
MOST_CLASSES = 30
"""Classes beyond which the full map is not fitted."""


@dataclass(frozen=True, eq=False)
class LadderRow:
    """One model of the ladder.

    Attributes
    ----------
    model : str
        Its name.
    df : int
        Parameters that the rows can tell apart.
    statistic, pvalue : float
        Likelihood ratio of the identity against this model.
    method : {'chi2', 'exact', 'bound'}
        How `pvalue` was computed.
    n_resamples : int
        Draws behind it.
    next_model, next_statistic, next_df, next_pvalue
        This model against the next larger one; the p-value is chi-square's. None or NaN at the top.
    larger, larger_statistic, larger_df, larger_pvalue, larger_method, larger_n_resamples
        Is this model enough? It against MCLLO (MCLLO against the full map); 'bootstrap' draws
        labels from the fitted smaller model and is approximate, 'exact' is the identity's.
    rejected : bool
        Whether closed testing rejects that the labels follow this model.
    log_likelihood, aic, bic : float
        Of the fitted model.
    """

    model: str
    df: int
    statistic: float
    pvalue: float
    method: str
    n_resamples: int
    next_model: str | None
    next_statistic: float
    next_df: int
    next_pvalue: float
    larger: str | None
    larger_statistic: float
    larger_df: int
    larger_pvalue: float
    larger_method: str | None
    larger_n_resamples: int
    rejected: bool
    log_likelihood: float
    aic: float
    bic: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; what does not exist is None."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        found: dict[str, Any] = none_for_nan(plain)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Ladder:
    """Nested models of miscalibration; print it for a table and the verdict.

    Attributes
    ----------
    rows : tuple of LadderRow
        From the identity upwards.
    chosen : str
        The smallest model that closed testing does not reject. Not rejected is not proven.
    sentence : str
        What that says about the predictions.
    alpha : float
        Probability of any false rejection.
    reason : str
        Why the p-values were computed as they were.
    skipped : str
        Why the full map is missing; empty when it is there.
    seed : int
        What draws were made from.
    """

    rows: tuple[LadderRow, ...]
    chosen: str
    sentence: str
    alpha: float
    reason: str
    skipped: str
    seed: int

    def __getitem__(self, model: str) -> LadderRow:
        for row in self.rows:
            if row.model == model:
                return row
        raise KeyError(model)

    __iter__ = None  # a result is not a sequence

    @property
    def table(self) -> Table:
        """All numbers, a row for each model."""
        names = [field.name for field in fields(LadderRow)]
        return Table({name: [getattr(row, name) for row in self.rows] for name in names})

    def to_frame(self) -> Any:
        """Return a pandas ``DataFrame`` with a row for each model."""
        return self.table.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for strict JSON."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "chosen": self.chosen,
            "sentence": self.sentence,
            "alpha": self.alpha,
            "reason": self.reason,
            "skipped": self.skipped,
            "seed": self.seed,
        }

    def __str__(self) -> str:
        table = Table(
            {
                "model": [row.model for row in self.rows],
                "df": [row.df for row in self.rows],
                "statistic": [row.statistic for row in self.rows],
                "p": [row.pvalue for row in self.rows],
                "p (enough?)": [row.larger_pvalue for row in self.rows],
                "AIC": [row.aic for row in self.rows],
                "BIC": [row.bic for row in self.rows],
            }
        )
        note = f"\n({self.skipped})" if self.skipped else ""
        return f"{self.sentence}\n{table}{note}"

    def __repr__(self) -> str:
        return f"<Ladder of {len(self.rows)} models: chosen {self.chosen!r}>"


def ladder(
    probs: Any,
    y: Any = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    method: Method = "auto",
    alpha: float = 0.05,
    baseline: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
    clip: float | None = None,
) -> Ladder:
    """Find the smallest model of miscalibration that the labels do not contradict.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    n_resamples : int
        Most draws of labels for a p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    method : {'auto', 'chi2', 'exact', 'sequential'}
        As in `calibration_test`. Whether a model is enough is then judged by parametric bootstrap,
        for it cannot be tested exactly.
    alpha : float
        Probability with which closed testing may reject any true model.
    baseline, classes, sample_weight, normalize, clip
        As in `Predictions.from_arrays`.

    Returns
    -------
    Ladder
        `rows`, `chosen`, `sentence`, `table`; ``print`` it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], size=4000)
    >>> y = [rng.choice(3, p=row) for row in honest]
    >>> sharp = honest**2 / (honest**2).sum(axis=1, keepdims=True)  # overconfident
    >>> found = ladder(sharp, y)
    >>> found.chosen, found["temperature"].df
    ('temperature', 1)
    """
    predictions = as_predictions(
        probs,
        y,
        baseline=baseline,
        classes=classes,
        sample_weight=sample_weight,
        normalize=normalize,
        clip=clip,
    )
    return ladder_of(predictions, n_resamples=n_resamples, seed=seed, method=method, alpha=alpha)


def ladder_of(
    predictions: Predictions,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    method: Method = "auto",
    alpha: float = 0.05,
) -> Ladder:
    """Climb the ladder for validated predictions."""
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha must lie in (0, 1); got alpha={alpha}.")
    entropy = entropy_of(seed)
    fit = fit_predictions(predictions)
    models = Models(predictions, fit)
    test = run_test(predictions, fit, method=method, n_resamples=n_resamples, seed=entropy)
    plans = {
        full: Plan.of(predictions, df, method, n_resamples, entropy)
        for full, df in ((False, fit.df), (True, models.full_df))
    }
    rows = _rows(models, plans, test, alpha)
    chosen = _smallest(rows)
    return Ladder(
        rows=rows,
        chosen=chosen.model,
        sentence=ladder_sentence(rows, chosen, models.fits[chosen.model], predictions, alpha),
        alpha=alpha,
        reason=plans[False].reason,
        skipped=models.skipped,
        seed=entropy,
    )


class Models:
    """The fitted models of the ladder."""

    def __init__(self, predictions: Predictions, fit: MCLLOFit) -> None:
        self.mcllo, self.fits = Family(predictions), {}
        for name, basis in mcllo_bases(len(predictions.log_odds)).items():
            self.fits[name] = restricted_fit(self.mcllo, self.mcllo.identified(basis))
        free = free_parameters(predictions.log_odds)
        theta = np.concatenate([fit.tau, fit.gamma])
        self.fits["mcllo"] = RestrictedFit(
            theta, fit.log_likelihood, np.eye(len(free))[:, free], self.fits["mcllo"].settled
        )
        weight = predictions.sample_weight
        self.total = float(predictions.n_samples if weight is None else weight.sum())
        self.full_df, self.skipped = 0, _why_no_full(predictions, self.total)
        if not self.skipped:
            self.full = Family(predictions, full=True)
            basis = self.full.identified(np.eye(len(self.full.identity)))
            self.fits["full"] = restricted_fit(self.full, basis)
            self.full_df = self.fits["full"].df

    def family(self, model: str) -> Family:
        """Return the family that a model is a restriction of."""
        return self.full if model == "full" else self.mcllo


def mcllo_bases(n_compared: int) -> dict[str, Floats]:
    """Return the free directions of theta = (tau, gamma), for each model up to MCLLO."""
    every = np.eye(2 * n_compared)
    tau, gamma = every[:, :n_compared], every[:, n_compared:]
    common = gamma.sum(axis=1, keepdims=True)
    return {
        "identity": every[:, :0],
        "temperature": common,
        "shift": tau,
        "scale": gamma,
        "common_slope": np.hstack([tau, common]),
        "mcllo": every,
    }


def _why_no_full(predictions: Predictions, total: float) -> str:
    c = predictions.n_classes
    if c > MOST_CLASSES:
        return f"the full map is left out: more than {MOST_CLASSES} classes"
    if c * (c - 1) >= total:
        return f"the full map is left out: {c * (c - 1)} parameters for {total:g} rows"
    return ""


def _rows(
    models: Models, plans: dict[bool, Plan], test: CalibrationTest, alpha: float
) -> tuple[LadderRow, ...]:
    tails = {name: _tail(models, plans, test, name) for name in models.fits}
    larger = {name: _larger_tail(models, plans, test, name) for name in models.fits}
    local = {name: tail.pvalue for name, tail in larger.items()}
    rejected = closed_test(local, INSIDE, alpha)
    return tuple(
        _row(models, name, tails[name], larger[name], rejected[name]) for name in models.fits
    )


def _tail(
    models: Models, plans: dict[bool, Plan], test: CalibrationTest, name: str
) -> TailP:
    """Return the p-value of the identity against a model."""
    if name == "identity":
        return TailP(1.0, "exact", 0, "")
    if name == "mcllo":
        return TailP(test.pvalue, test.method, test.n_resamples, test.reason)
    family, fit = models.family(name), models.fits[name]
    value = gain(models.fits["identity"], fit)
    return against_identity(plans[name == "full"], family, fit.basis, value)


def _larger_tail(
    models: Models, plans: dict[bool, Plan], test: CalibrationTest, name: str
) -> TailP:
    """Return the p-value of a model against MCLLO, or of MCLLO against the full map."""
    if name == "identity":
        return TailP(test.pvalue, test.method, test.n_resamples, test.reason)
    larger = _larger(models, name)
    if larger is None:
        return TailP(math.nan, "", 0, "")
    fits, family = models.fits, models.family(larger)
    return against_larger(
        plans[larger == "full"], models.mcllo, fits[name], family, fits[larger]
    )


def _larger(models: Models, name: str) -> str | None:
    larger = {"mcllo": "full", "full": None}.get(name, "mcllo")
    return larger if larger in models.fits else None


def _row(models: Models, name: str, tail: TailP, more: TailP, rejected: bool) -> LadderRow:
    fits, fit = models.fits, models.fits[name]
    larger, following = _larger(models, name), NEXT.get(name)
    above = None if larger is None else fits[larger]
    after = fits.get(following) if following is not None else None
    next_gain = math.nan if after is None else gain(fit, after)
    next_df = 0 if after is None else after.df - fit.df
    return LadderRow(
        model=name,
        df=fit.df,
        statistic=gain(fits["identity"], fit),
        pvalue=tail.pvalue,
        method=tail.method,
        n_resamples=tail.n_resamples,
        next_model=None if after is None else following,
        next_statistic=next_gain,
        next_df=next_df,
        next_pvalue=math.nan if after is None else chi2_sf(next_gain, next_df),
        larger=larger,
        larger_statistic=math.nan if above is None else gain(fit, above),
        larger_df=0 if above is None else above.df - fit.df,
        larger_pvalue=more.pvalue,
        larger_method=more.method or None,
        larger_n_resamples=more.n_resamples,
        rejected=rejected,
        log_likelihood=fit.log_likelihood,
        aic=2.0 * fit.df - 2.0 * fit.log_likelihood,
        bic=math.log(models.total) * fit.df - 2.0 * fit.log_likelihood,
    )


def _smallest(rows: tuple[LadderRow, ...]) -> LadderRow:
    """Return the model with the fewest parameters that is not rejected; of equals the likelier."""
    kept = [row for row in rows if not row.rejected]
    fewest = min(row.df for row in kept)
    return max((row for row in kept if row.df == fewest), key=lambda row: row.log_likelihood)
