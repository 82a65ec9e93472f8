"""The members of `AutoCalibrator`, each fitted to the whole or to a part of the rows.

====================  ==========================================================================
identity              the predictions themselves
temperature           a temperature with a slip (`calibrators/_auto/soft_temperature`): ``g``
mcllo                 MCLLO maps of g, one for each baseline, their geometric mean: up to 12
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
fit to all; they are made at the same time and share a preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._ground.notebook import ticking
from ..._ground.results import Codes, Floats, Result
from ..._ground.threads import one_blas_thread
from ..._math.kernel import softmax
from .._linear_fit import identity_map
from .baseline_maps import fit_baselines, map_of, refit_baselines
from .ridge_map import (
    MOST_WHOLE,
    Inverse,
    RidgeProblems,
    curvature,
    fit_ridge,
    inverse_curvature,
    shared_inverse,
    structured_ridge,
)
from .row_sets import RowSets, all_rows, some_rows
from .similar_classes import SimilarClasses, fit_similar, similar_features
from .soft_temperature import SoftTemperature, features, fit_soft_temperatures

OWN = 0.7
"""d: strength of the ridge on what a class does to itself, for each class."""
OFF_DIAGONAL = {"full_tight": 0.3, "full_loose": 0.01}
"""m of the full maps, from strong to weak: each starts at the one before."""
SCALED = ("mcllo", "vector")
"""Members that are linear in ``log g``, and not in ``log s``."""
MOST_AVERAGED, MOST_STRUCTURED, MOST_FULL = 12, 20, 100
TOL, TOL_OF_PARTS = 1e-6, 3e-3
"""Newton decrements, in nats of all rows together, at which fits take their last step: fits to all
rows, and fits to parts of them or of so many that they are held in float32."""
TOL_OF_WIDE, MOST_LEFT = 0.01, 16.0
"""The same for 'full' and its thousands of parameters, for each row, and for all: what is left of
them then is below what rows can tell. Its fits to parts begin at the identity, which knows of no
labels."""
TRACE = 0.1
"""What of the rows left out, at whose fit they begin, may be left in fits to parts: in nats of the
log likelihood of the rows left out. By estimate; measured it is a tenth of that or less."""


def member_names(n_classes: int) -> tuple[str, ...]:
    """Return the members for so many classes, from simple to rich."""
    simple = ("identity", "temperature")
    if n_classes > MOST_FULL:
        return (*simple, "vector")
    if n_classes > MOST_STRUCTURED:
        return (*simple, "similar", "full")
    if n_classes > MOST_AVERAGED:
        return (*simple, "similar", *OFF_DIAGONAL)
    return (*simple, "mcllo") if n_classes < 3 else (*simple, "mcllo", "similar", *OFF_DIAGONAL)


@dataclass(frozen=True, eq=False)
class Members(Result):
    """All members, fitted.

    Attributes
    ----------
    soft : SoftTemperature
        The member 'temperature', on which the others build.
    maps : dict of str to ndarray
        theta of 'mcllo', 'vector' and the full maps: shape (c, 2) for 'vector', else (c, c + 1).
    similar : SimilarClasses or None
        The member 'similar', on which the full maps build; None where there is none.
    """

    soft: SoftTemperature
    maps: dict[str, Floats]
    similar: SimilarClasses | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All members, from simple to rich."""
        scaled = [name for name in self.maps if name in SCALED]
        similar = [] if self.similar is None else ["similar"]
        full = [name for name in self.maps if name not in SCALED]
        return ("identity", "temperature", *scaled, *similar, *full)

    @ticking("fitting")
    @one_blas_thread()
    def probabilities(self, scores: Floats) -> dict[str, Floats]:
        """Return what each member but the identity makes of scores, all of shape (c, n)."""
        logs = self.soft.logs(scores)
        answers = {"temperature": np.exp(logs)}
        for name in self.names[2:]:
            if name == "similar" and self.similar is not None:
                logs = self.similar.logs(logs)
                answers[name] = np.exp(logs)
                continue
            theta = self.maps[name]
            eta = theta[:, :1] * logs if theta.shape[1] == 2 else theta[:, :-1] @ logs
            eta += theta[:, -1:]
            softmax(eta)
            answers[name] = eta
        return answers

    def logs_of_labels(self, scores: Floats, codes: Codes) -> Floats:
        """Return the log probability that each member gives to the labels, shape (n, K)."""
        same = scores.copy()
        softmax(same)
        rows = np.arange(len(codes))
        answers = [same, *self.probabilities(scores).values()]
        tiny = np.finfo(np.float64).tiny
        return np.log(np.maximum([p[codes, rows] for p in answers], tiny)).T

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Members:
        """Return the members that `to_dict` described."""
        maps = {name: np.array(theta, dtype=float) for name, theta in content["maps"].items()}
        known = content.get("similar")  # files of before it was there have full maps of log g
        similar = None if known is None else SimilarClasses.from_dict(known)
        return cls(SoftTemperature(**content["soft"]), maps, similar)


class MembersFit:
    """Fits the members to all rows, and then to parts of them.

    Scores are logits or log probabilities, shape (c, n). `kind` is the dtype in which rows are
    held, by default as their number asks; `tol` the decrement at which fits to all rows end, by
    default as `kind` asks.
    """

    def __init__(
        self,
        scores: Floats,
        codes: Codes,
        weight: Floats | None = None,
        *,
        kind: Any = None,
        tol: float | None = None,
    ) -> None:
        self.scores, self.codes, self.weight = scores, codes, weight
        c, names = len(scores), member_names(len(scores))
        wide = {"vector": 2, "full": c + 1}
        self.ridges = {name: np.full((c, wide[name]), OWN * c) for name in names if name in wide}
        for name in (name for name in names if name in OFF_DIAGONAL):
            self.ridges[name] = structured_ridge(c, OFF_DIAGONAL[name], OWN)
        self.inverses: dict[str, Inverse] = {}
        rows = all_rows(scores, codes, weight, kind)
        softs = fit_soft_temperatures(rows)
        self.rows = features(rows, softs)
        if tol is None:
            tol = TOL if self.rows.scores.dtype == np.float64 else TOL_OF_PARTS
        maps: dict[str, Floats] = {}
        if "mcllo" in names:
            self.baselines, self.hessians = fit_baselines(self.rows, OWN * c, tol)
            maps["mcllo"] = map_of(self.baselines[None]).mean(axis=1)
        similar = fit_similar(self.rows, None, tol) if "similar" in names else []
        self.told = similar_features(self.rows, similar) if similar else self.rows
        maps |= self._ridge_maps(self.rows, self.told, None, tol)
        self.whole = _each(softs, maps, similar)[0]

    def parts(self, weights: list[Floats], tol: float = TOL_OF_PARTS) -> list[Members]:
        """Return the members fitted with other weights; rows of weight 0 are left out."""
        rows = some_rows(self.scores, self.codes, weights)
        softs = fit_soft_temperatures(rows, [self.whole.soft] * len(weights), tol, TRACE)
        rows = features(rows, softs)
        maps: dict[str, Floats] = {}
        if "mcllo" in self.whole.maps:
            ridge, share = OWN * len(self.scores), self._share(rows)
            hessians = share * self.hessians + (1.0 - share) * ridge * np.eye(2 * len(self.scores))
            fits = refit_baselines(rows, ridge, self.baselines, hessians, tol, TRACE)
            maps["mcllo"] = map_of(fits).mean(axis=1)
        near, similar, told = self.whole.similar, [], rows
        if near is not None:
            start = np.concatenate([near.shared, near.intercept])
            similar = fit_similar(rows, start, tol, TRACE)
            told = similar_features(rows, similar)
        maps |= self._ridge_maps(rows, told, self.whole, tol)
        return _each(softs, maps, similar)

    def _share(self, rows: RowSets) -> float:
        """Return the mean weight of the sets as a part of all."""
        return float(rows.totals.mean() / self.rows.totals[0])

    def _ridge_maps(
        self, rows: RowSets, told: RowSets, near: Members | None, tol: float
    ) -> dict[str, Floats]:
        """Return theta of the vector maps (of `rows`) and full maps (of `told`) for each set."""
        share = self._share(rows)
        maps: dict[str, Floats] = {}
        last: Floats | None = None
        blocks: Floats | None = None
        for name, ridge in self.ridges.items():
            begin = None if near is None or name == "full" else near.maps[name]
            start = last if begin is None else begin
            own, all_own = (rows, self.rows) if name == "vector" else (told, self.told)
            if start is None:
                start = identity_map(len(ridge), ridge.shape[1] == 2)
            inverse, small = self.inverses.get(name), start.size <= MOST_WHOLE
            if inverse is None and name == "full":
                inverse = shared_inverse(all_own, start, OWN * len(ridge), share)
                self.inverses[name] = inverse
            elif inverse is None or small:  # where it is costly, parts take that of all rows,
                if blocks is None or small:
                    blocks = curvature(all_own, start)  # and the full maps share one
                inverse = self.inverses[name] = inverse_curvature(share * blocks, ridge)
            problems = RidgeProblems(own, own.label_sums(), ridge, inverse)
            whole = np.broadcast_to(start, (len(own.codes), *start.shape))
            wide = name == "full" and tol >= TOL
            near_enough = min(MOST_LEFT, TOL_OF_WIDE * own.totals.min()) if wide else tol
            maps[name] = fit_ridge(problems, whole, near_enough, np.inf if begin is None else TRACE)
            last = maps[name][0]
        return maps


def _each(
    softs: list[SoftTemperature], maps: dict[str, Floats], similar: list[SimilarClasses]
) -> list[Members]:
    """Return one for each set of rows."""
    return [
        Members(
            soft, {name: theta[k] for name, theta in maps.items()}, similar[k] if similar else None
        )
        for k, soft in enumerate(softs)
    ]
