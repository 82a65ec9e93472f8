"""The one rule by which every claim of the paper is judged.

Thresholds and margins were written down before the results of the first runs were seen; `Kept`,
`Can`, `Both` and "one quotation, one row" were added after a review of the first verdicts, and
before any was computed by them. A claim is quoted as it is made, and its evidence is one of these:

============  =====================================================  ==============================
evidence      the claim                                              holds when
============  =====================================================  ==============================
`Runs`        was seen in one table; the study was run many times    true in 80 % of them or more
`Kept`        was seen in one table: "not rejected" after a fitted   true in 80 % or more of what
              map                                                    an exactly right map reaches
`Can`         something can happen                                   true in more than 20 % of the
                                                                     runs
`Check`       is said of every case                                  there is no exception
`Beyond`      a number is above (below) a bound                      its 95 % interval is all there
`Within`      two numbers are about the same                         the 95 % interval of what is
                                                                     between them is in the margin
`Settings`    is general: networks, sizes, kinds of rows, studies    it holds in every setting
`Both`        joins two things by "and" or "both"                    both hold
`Readings`    rests on a choice that the paper does not give         it holds under every choice
`Unknown`     rests on what is not public                            never: it cannot be told
`Typo`        is an evident slip of the pen                          never: it is named, not scored
`Opinion`     is advice, a definition, or a matter of taste          never: it is not scored
============  =====================================================  ==============================

``holds in part``: true in more than 20 % and less than 80 % of the runs, or in some settings and
not in others. ``does not hold``: in 20 % of the runs or less, an exception, an interval on the
wrong side, no setting; of what can happen, never. ``cannot be told``: an interval that reaches to
both sides, under 10 runs, readings that disagree, what can happen and was seen rarely, half of a
"both". Settings that cannot tell do not count beside some that can.

One quotation is judged by one criterion and is one row: where several studies have evidence, each
is a setting (`joint`).

Margins, in the units of what is compared: log loss and ECE `MARGIN`, shares of rows `SHARE`. A test
keeps its level when it rejects at most `LEVEL_MARGIN` more than that.

>>> verdict(Runs(47, 50)), verdict(Runs(29, 50)), verdict(Runs(3, 50)), verdict(Runs(4, 5))
('holds', 'holds in part', 'does not hold', 'cannot be told')
>>> verdict(Kept(31, 50, 0.75)), verdict(Runs(31, 50)), verdict(Can(11, 50)), verdict(Can(3, 50))
('holds', 'holds in part', 'holds', 'cannot be told')
>>> verdict(Both({"test": Runs(47, 50), "ECE": Runs(4, 5)}))
'cannot be told'
>>> verdict(Settings({"ours": Runs(47, 50), "public": Runs(10, 50)}))
'holds in part'
>>> verdict(Readings({"10 bins": Runs(47, 50), "20 bins": Runs(0, 50)}))
'cannot be told'
>>> verdict(Beyond(0.01, 0.02)), verdict(Beyond(-0.01, 0.02)), verdict(Within(-0.001, 0.002))
('holds', 'cannot be told', 'holds')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .pages import Row, Rows, digits

HOLDS, PART, FAILS = "holds", "holds in part", "does not hold"
UNTOLD, UNSCORED = "cannot be told", "not scored"
VERDICTS = (HOLDS, PART, FAILS, UNTOLD, UNSCORED)
MOST, FEW, LEAST_RUNS = 0.8, 0.2, 10
MARGIN, SHARE, LEVEL_MARGIN = 0.005, 0.01, 0.02


@dataclass(frozen=True)
class Runs:
    """In how many runs of the study the claim came true."""

    true: int
    of: int

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        if self.of < LEAST_RUNS:
            return UNTOLD
        share = self.true / self.of
        return HOLDS if share >= MOST else FAILS if share <= FEW else PART

    def __str__(self) -> str:
        """Return the evidence in words."""
        return f"{self.true:,} of {self.of:,}"


@dataclass(frozen=True)
class Kept(Runs):
    """In how many runs a fitted map was not rejected, and the share that a right map reaches.

    The plain test rejects maps that are exactly right, because they were estimated
    (`studies.ceilings`): no method can be held to more than they reach.
    """

    ceiling: float

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        if self.of < LEAST_RUNS:
            return UNTOLD
        share = self.true / self.of / self.ceiling
        return HOLDS if share >= MOST else FAILS if share <= FEW else PART

    def __str__(self) -> str:
        """Return the evidence in words."""
        return f"{super().__str__()} (right maps {100 * self.ceiling:.0f} %)"


@dataclass(frozen=True)
class Can(Runs):
    """In how many runs something happened that is said to be possible."""

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        if self.true == 0 and self.of >= LEAST_RUNS:
            return FAILS
        return HOLDS if self.true > FEW * self.of else UNTOLD

    def __str__(self) -> str:
        """Return the evidence in words."""
        return f"seen in {super().__str__()}"


@dataclass(frozen=True)
class Check:
    """How many exceptions there are to what is said of every case."""

    exceptions: int
    of: int = 1

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        return FAILS if self.exceptions else HOLDS

    def __str__(self) -> str:
        """Return the evidence in words."""
        return f"{self.exceptions or 'no':} exception{'s' * (self.exceptions != 1)}" + (
            f" in {self.of:,}" if self.of > 1 else ""
        )


@dataclass(frozen=True)
class Beyond:
    """The 95 % interval of a number that is said to be above a bound, or below it."""

    low: float
    high: float
    bound: float = 0.0
    below: bool = False

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        above, under = self.low > self.bound, self.high < self.bound
        if not above and not under:
            return UNTOLD
        return HOLDS if under == self.below else FAILS

    def __str__(self) -> str:
        """Return the evidence in words."""
        side = "below" if self.below else "above"
        return f"{interval_words(self.low, self.high)}, {side} {self.bound:g}?"


@dataclass(frozen=True)
class Within:
    """The 95 % interval of what is between two numbers that are said to be about the same."""

    low: float
    high: float
    margin: float = MARGIN

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        if -self.margin <= self.low and self.high <= self.margin:
            return HOLDS
        return FAILS if self.low > self.margin or self.high < -self.margin else UNTOLD

    def __str__(self) -> str:
        """Return the evidence in words."""
        return f"{interval_words(self.low, self.high)}, within ± {self.margin:g}?"


@dataclass(frozen=True)
class Unknown:
    """What is not public, and without which nothing can be said."""

    why: str
    verdict: str = UNTOLD

    def __str__(self) -> str:
        """Return the reason."""
        return self.why


@dataclass(frozen=True)
class Typo(Unknown):
    """What the paper evidently means instead."""

    verdict: str = UNSCORED


@dataclass(frozen=True)
class Opinion(Unknown):
    """Why a sentence is nothing that runs could judge."""

    verdict: str = UNSCORED


@dataclass(frozen=True)
class Settings:
    """The evidence of several settings in which a general claim must come true."""

    parts: Mapping[str, Evidence]

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        return joint(verdict(part) for part in self.parts.values())

    def __str__(self) -> str:
        """Return the evidence in words."""
        return "; ".join(f"{name}: {part}" for name, part in self.parts.items())


@dataclass(frozen=True)
class Readings(Settings):
    """The evidence under several readings of the paper."""

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        found = {verdict(part) for part in self.parts.values()}
        return found.pop() if len(found) == 1 else UNTOLD


@dataclass(frozen=True)
class Both(Settings):
    """The evidence of two things that a claim joins: it holds where both do."""

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        found = {verdict(part) for part in self.parts.values()}
        if FAILS in found:
            return FAILS
        if UNTOLD in found:
            return UNTOLD
        return found.pop() if len(found) == 1 else PART

    def __str__(self) -> str:
        """Return the evidence in words."""
        return f"both of {super().__str__()}"


Evidence = Runs | Check | Beyond | Within | Unknown | Settings


QUOTED = {
    "comparable": (
        '"MCLLO recalibration produces probability predictions that are comparable to or more '
        "well-calibrated than those obtained from competing recalibration methods, as confirmed "
        'by both the MCLLO LRT and ECE"',
        "Section 4",
    ),
    "which_is_best": (
        '"Our LRT approach can help researchers learn which recalibration strategy may be best in '
        'a given situation"',
        "Section 4.3.3",
    ),
    "maps_to_calibrated": (
        '"if a predictive model does not produce well calibrated probability predictions, MCLLO '
        "recalibration can map the outputted predictions to well-calibrated probability "
        'predictions"',
        "Section 5",
    ),
    "baseline_effects": (
        'effects of the baseline: "Empirically, we have found these effects to be very small"',
        "Section 5",
    ),
    "last_class": (
        '"in all three studies, we select the baseline category to be the last category '
        'alphabetically"',
        "Section 4",
    ),
    "logits_temperature": (
        'temperature scaling "can only be applied when the logits are available", and is "unusable '
        'for probability scale predictions"',
        "Section 1",
    ),
    "logits_vector": (
        'vector scaling "can only be applied when the logits are available", and is "unusable for '
        'probability scale predictions"',
        "Section 1",
    ),
    "bins": (
        '"a different number of bins can impact the resulting calibration metric greatly", and '
        '"different choices of bin number can lead to different ECE scores"',
        "Sections 1 and 5",
    ),
}
"""Sentences that more than one study has evidence for, and where they stand."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: a short name, what it says, where, and what we have to judge it."""

    key: str
    text: str
    where: str
    evidence: Evidence


def joint(verdicts: Iterable[str]) -> str:
    """Return the verdict of several settings; those that cannot tell do not count beside others.

    >>> joint(["holds", "cannot be told"]), joint(["holds", "does not hold"])
    ('holds', 'holds in part')
    """
    found = set(verdicts) - {UNSCORED} or {UNSCORED}
    told = found - {UNTOLD} or {UNTOLD}
    return told.pop() if len(told) == 1 else PART


def quoted(key: str, evidence: Evidence) -> Claim:
    """Return a claim of `QUOTED`, with what one study has to judge it."""
    text, where = QUOTED[key]
    return Claim(key, text, where, evidence)


def verdict(evidence: Evidence) -> str:
    """Return one of `VERDICTS`."""
    return evidence.verdict


def interval_words(low: float, high: float) -> str:
    """Return an interval in words.

    >>> interval_words(-0.00123, 0.5), interval_words(-0.000018, 1234.0)
    ('−0.0012 to 0.5', '−0.000018 to 1,234')
    """
    ends = (digits(end) if "e" in f"{end:.2g}" else f"{end:.2g}" for end in (low, high))
    return " to ".join(ends).replace("-", "−")


def claim_rows(claims: Sequence[Claim]) -> Rows:
    """Return the claims with their verdicts, for ``results/verdicts.csv``."""
    names = [claim.key for claim in claims]
    if len(set(names)) != len(names):
        raise ValueError(f"every claim must have its own name; got {names}.")
    return [
        {"key": c.key, "claim": c.text, "where": c.where}
        | {"evidence": str(c.evidence), "verdict": verdict(c.evidence)}
        for c in claims
    ]


def verdict_facts(rows: Sequence[Row]) -> dict[str, object]:
    """Return for a page each claim, its place and its verdict: three cells of its table.

    >>> rows = claim_rows([Claim("lower", "MCLLO lowers ECE", "Section 3", Runs(9, 10))])
    >>> verdict_facts(rows)["claim"]["lower"]
    'MCLLO lowers ECE (Section 3) | **holds** | 9 of 10'
    """
    line = "{claim} ({where}) | **{verdict}** | {evidence}"
    return {"claim": {row["key"]: line.format(**row) for row in rows}}
