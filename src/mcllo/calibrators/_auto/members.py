"""The members of `AutoCalibrator`, each fitted to the whole or to a part of the rows.

====================  ==========================================================================
identity              the predictions themselves
temperature           a temperature with a slip (`calibrators/_auto/soft_temperature`): ``g``
spline, venn_abers    curves of the log odds of two classes (`calibrators/_auto/curves`);
                      venn_abers of 200 rows and more
mcllo                 MCLLO maps of g, one for each baseline, their geometric mean: 3 to 12
                      classes; ridge ``d c / 2 (|tau|^2 + |gamma - 1|^2)``
similar               knows which classes look alike (`calibrators/_auto/similar_classes`): ``s``;
                      3 to 100 classes
full_tight            full map of ``log s``, off-diagonals held back (m = 0.3): 3 to 20 classes
full_loose            the same, held back far less (m = 0.01)
full                  the same, all entries held back alike, ridge ``d c``: 21 to 100 classes
vector                a weight and an intercept for each ``log g_j``: more than 100 classes
====================  ==========================================================================

mcllo, vector and full maps are ``softmax(theta (x, 1))``, x = log g or log s: the mean of the
baselines' maps is such a map, too. A full map begins where look-alike classes leave off: what they
explain with five numbers it need not learn with c (c - 1). Fits to parts of the rows start at the
fit to all, with what it learned of the Hessian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._fit.linear_fit import by_blocks, identity_map
from ..._model import compiled
from ..._model.kernel import softmax
from ..._model.newton import Product
from ..._utils.notebook import show_progress
from ..._utils.results import Codes, Floats, Result
from ..._utils.threads import one_blas_thread
from .baseline_maps import BaselineMaps, fit_baselines, map_parameters
from .curves import MIN_ROWS_FOR_VENN_ABERS, Curve, fit_spline, fit_venn_abers
from .ridge_map import OfShare, by_factors, curvature, fit_ridge, of_share, structured_ridge
from .scored_rows import ScoredRows
from .similar_classes import SimilarClasses, fit_similar
from .soft_temperature import SoftTemperature, fit_soft_temperature

DIAGONAL_RIDGE = 0.7
"""d: strength of the ridge on what a class does to itself, for each class."""
OFF_DIAGONAL = {"full_tight": 0.3, "full_loose": 0.01}
"""m of the full maps, from strong to weak: each starts at the one before."""
SCALED = ("mcllo", "vector")
"""Members that are linear in ``log g``, and not in ``log s``."""
CURVES = ("spline", "venn_abers")
"""Members of two classes alone."""
MAX_CLASSES_FOR_BASELINE_AVERAGE = 12
MAX_CLASSES_FOR_STRUCTURED = 20
MAX_CLASSES_FOR_FULL = 100
TOL = 1e-6  # Newton decrement, in nats of all rows together, of the last step of a fit to all rows
PARTS_TOL = 2e-4  # the same of fits to parts, or to `MIN_SCORES_FOR_PART_TOL` scores
MIN_SCORES_FOR_PART_TOL = 2**13
"""Newton decrements, in nats of all rows together, at which fits take their last step: fits to all
rows, and fits to parts of them or to so many scores. Without C these are of single precision where
there is a map for each baseline."""
FULL_MAP_TOL = 8.0
FULL_MAP_PARTS_TOL = 0.1
"""The same for 'full' and its thousands of parameters: what is left of them then is below what rows
can tell. Its fits to parts begin at the identity, which knows of no labels. And for the look-alike
map of as many classes."""
MAX_PARAMETERS_FOR_NEW_HESSIAN = 200
"""Parameters of ridge maps up to which the Hessian is made anew for fits to parts."""
LEFT_OUT_TRACE_TOL = 0.1
"""What of the rows left out, at whose fit they begin, may be left in fits to parts: in nats of the
log likelihood of the rows left out. By estimate; measured it is a tenth of that or less."""


def member_names(n_classes: int) -> tuple[str, ...]:
    """Return the members for so many classes and enough rows, from simple to rich."""
    simple = ("identity", "temperature")
    if n_classes > MAX_CLASSES_FOR_FULL:
        return (*simple, "vector")
    if n_classes > MAX_CLASSES_FOR_STRUCTURED:
        return (*simple, "similar", "full")
    if n_classes > MAX_CLASSES_FOR_BASELINE_AVERAGE:
        return (*simple, "similar", *OFF_DIAGONAL)
    if n_classes > 2:
        return (*simple, "mcllo", "similar", *OFF_DIAGONAL)
    return (*simple, *CURVES)


@dataclass(frozen=True, eq=False)
class Members(Result):
    """All members, fitted.

    `soft` is 'temperature', on which the others build; `similar`, where there is one, that on which
    the full maps do; `maps` are theta of 'mcllo', 'vector' and the full maps, shape (c, c + 1), but
    (c, 2) for 'vector'; `curves` are 'spline' and 'venn_abers' of two classes.
    """

    soft: SoftTemperature
    maps: dict[str, Floats]
    similar: SimilarClasses | None = None
    curves: dict[str, Curve] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All members, from simple to rich."""
        scaled = [name for name in self.maps if name in SCALED]
        similar = [] if self.similar is None else ["similar"]
        full = [name for name in self.maps if name not in SCALED]
        return ("identity", "temperature", *scaled, *similar, *full, *self.curves)

    @show_progress("fitting")
    @one_blas_thread()
    def probabilities(self, scores: Floats) -> dict[str, Floats]:
        """Return what each member but the identity makes of scores, all of shape (c, n)."""
        g, logs = self.soft.both(scores)
        answers = {"temperature": g}
        for name in self.names[2:]:
            if name == "similar" and self.similar is not None:
                answers[name], logs = self.similar.both(g, logs)
                continue
            if name in self.curves:
                answers[name] = self.curves[name].probabilities(logs)
                continue
            theta = self.maps[name]
            eta = theta[:, :1] * logs if theta.shape[1] == 2 else theta[:, :-1] @ logs
            eta += theta[:, -1:]
            softmax(eta)
            answers[name] = eta
        return answers

    def answers(self, scores: Floats) -> list[Floats]:
        """Return what each member makes of scores, the identity too."""
        same = scores.copy()
        softmax(same)
        return [same, *self.probabilities(scores).values()]

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Members:
        """Return the members that `to_dict` described."""
        maps = {name: np.array(theta, dtype=float) for name, theta in content["maps"].items()}
        known = content.get("similar")  # files of before it was there have full maps of log g
        similar = None if known is None else SimilarClasses.from_dict(known)
        curves = {name: Curve.from_dict(one) for name, one in content.get("curves", {}).items()}
        return cls(SoftTemperature(**content["soft"]), maps, similar, curves)


def label_log_likelihoods(answers: list[Floats], codes: Codes) -> Floats:
    """Return the log probability that each answer, shape (c, n), gives to the labels: (n, K)."""
    rows, tiny = np.arange(len(codes)), np.finfo(np.float64).tiny
    return np.log(np.maximum([p[codes, rows] for p in answers], tiny)).T


class MembersFit:
    """Fits the members to all rows, and then to parts of them.

    Scores are logits or log probabilities, shape (c, n); `tol` is the decrement at which fits to
    all rows end, by default as their number asks.
    """

    def __init__(
        self,
        scores: Floats,
        codes: Codes,
        weight: Floats | None = None,
        *,
        tol: float | None = None,
    ) -> None:
        c, many = len(scores), scores.size >= MIN_SCORES_FOR_PART_TOL
        if (
            many
            and c <= MAX_CLASSES_FOR_BASELINE_AVERAGE
            and tol is None
            and compiled.library() is None
        ):
            scores = scores.astype(np.float32)  # a map for each baseline: so many exponentials
        self.rows = ScoredRows(scores, codes, weight)
        if tol is None:
            tol = PARTS_TOL if many else TOL
        wide = {"vector": 2, "full": c + 1}
        self.ridges = {
            name: np.full((c, wide[name]), DIAGONAL_RIDGE * c)
            if name in wide
            else structured_ridge(c, OFF_DIAGONAL[name], DIAGONAL_RIDGE)
            for name in member_names(c)
            if name in wide or name in OFF_DIAGONAL
        }
        self.inverses: dict[str, OfShare] = {}
        self.baselines: BaselineMaps | None = None
        self.whole = self._fit(self.rows, tol)

    def parts(self, weights: list[Floats], tol: float = PARTS_TOL) -> list[Members]:
        """Return the members fitted with other weights; rows of weight 0 are left out."""
        left_out = (self.rows.with_weight(self.rows.unit - weight) for weight in weights)
        parts = zip(map(self.rows.with_weight, weights), left_out, strict=True)
        return [self._fit(rows, tol, self.whole, without) for rows, without in parts]

    def _fit(
        self,
        rows: ScoredRows,
        tol: float,
        near: Members | None = None,
        left_out: ScoredRows | None = None,
    ) -> Members:
        """Return the members; `near` are those of all rows, where some are left out."""
        names = member_names(len(rows.scores))
        if near is None:
            trace, soft = np.inf, fit_soft_temperature(rows)
        else:
            trace = LEFT_OUT_TRACE_TOL
            soft = fit_soft_temperature(rows, near.soft, tol, trace)
        g, logs = soft.both(rows.scores)
        rows = told = replace(rows, scores=logs)
        maps: dict[str, Floats] = {}
        if "mcllo" in names:
            start = None if left_out is None else self._without(left_out, soft)
            baselines = fit_baselines(rows, DIAGONAL_RIDGE * len(g), tol, start)
            self.baselines = self.baselines or baselines
            maps["mcllo"] = map_parameters(baselines.theta).mean(axis=0)
        similar = None
        if "similar" in names:
            known = None if near is None else near.similar
            inverse = self._inverse("similar", rows)
            enough = FULL_MAP_PARTS_TOL if "full" in names and tol >= TOL else tol
            similar, logs, inverses = fit_similar(g, rows, enough, known, inverse, trace)
            if inverses is not None:
                self.inverses["similar"] = inverses
            told = replace(rows, scores=logs)
        maps |= self._ridge_maps(rows, told, tol, near)
        curves: dict[str, Curve] = {}
        if len(g) == 2:
            furthest = math.log(2.0 / soft.slip - 1.0)
            curves["spline"] = fit_spline(rows, furthest, tol)
            # rows of the whole: parts have the same members
            if self.rows.total >= MIN_ROWS_FOR_VENN_ABERS:
                curves["venn_abers"] = fit_venn_abers(rows)
        return Members(soft, maps, similar, curves)

    def _without(self, left_out: ScoredRows, soft: SoftTemperature) -> BaselineMaps:
        """Return where baselines' maps begin without these rows, of log g by their own `soft`.

        As log g changes, by u and slip, gamma does: by the slope of the old ones on the new.
        """
        assert self.baselines is not None
        if len(left_out.codes) == 0 or self.rows.scores.size < MIN_SCORES_FOR_PART_TOL:
            return self.baselines  # a pass over few rows costs no more than this
        (_, old), (g, new) = (each.both(left_out.scores) for each in (self.whole.soft, soft))
        start = self.baselines.without(replace(left_out, scores=old))
        new -= (g * new).sum(axis=0)
        spread = float((g * new * new).sum())
        if spread > 0.0:
            start.theta[:, len(g) - 1 :] *= float((g * new * old).sum()) / spread
        return start

    def _ridge_maps(
        self, rows: ScoredRows, told: ScoredRows, tol: float, near: Members | None
    ) -> dict[str, Floats]:
        """Return theta of the vector map (of `rows`) and of full maps (of `told`)."""
        maps: dict[str, Floats] = {}
        start, blocks = identity_map(len(rows.scores), "vector" in self.ridges), None
        before = ""
        for name, ridge in self.ridges.items():
            own, enough, trace = rows if name == "vector" else told, tol, np.inf
            if near is not None and name != "full":
                moved = start - near.maps[before] if before else 0.0
                start, trace, before = near.maps[name] + moved, LEFT_OUT_TRACE_TOL, name
            if name == "full" and tol >= TOL:
                enough = FULL_MAP_TOL
            inverse = self._inverse(name, own)
            if inverse is None and name == "full":
                inverse = by_factors(own, start, DIAGONAL_RIDGE * len(ridge))
                self.inverses[name] = divide_inverse(inverse)
            elif inverse is None:
                blocks = curvature(own, start) if blocks is None else blocks
                inverse = by_blocks(blocks, ridge)
            start, learned = fit_ridge(own, ridge, start, inverse, enough, trace)
            if near is None and start.size <= MAX_PARAMETERS_FOR_NEW_HESSIAN:
                blocks = curvature(own, start)
                self.inverses[name] = of_share(blocks, ridge)
            self.inverses.setdefault(name, divide_inverse(learned))
            maps[name] = start
        return maps

    def _inverse(self, name: str, rows: ScoredRows) -> Product | None:
        """Return that of a share of all rows, about, once the member was fitted to all."""
        known = self.inverses.get(name)
        return None if known is None else known(round(rows.total / self.rows.total, 2))


def divide_inverse(inverse: Product) -> OfShare:
    """Return the same where it is not known apart from the ridge."""
    return lambda share: lambda v: inverse(v) / share
