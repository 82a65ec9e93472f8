"""The one rule by which every claim of the paper is judged; written before the results were seen.

A claim is quoted as it is made, and its evidence is one of these:

============  =====================================================  ==============================
evidence      the claim                                              holds when
============  =====================================================  ==============================
`Runs`        was seen in one table; the study was run many times    true in 80 % of them or more
`Check`       is said of every case                                  there is no exception
`Beyond`      a number is above (below) a bound                      its 95 % interval is all there
`Within`      two numbers are about the same                         the 95 % interval of what is
                                                                     between them is in the margin
`Settings`    is general: networks, sizes, kinds of rows             it holds in every setting
`Readings`    rests on a choice that the paper does not give         it holds under every choice
`Unknown`     rests on what is not public                            never: it cannot be told
`Typo`        is an evident slip of the pen                          never: it is named, not scored
============  =====================================================  ==============================

``holds in part``: true in more than 20 % and less than 80 % of the runs, or in some settings and
not in others. ``does not hold``: in 20 % of the runs or less, an exception, an interval on the
wrong side, no setting. ``cannot be told``: an interval that reaches to both sides, under 10 runs,
readings that disagree. Settings that cannot tell do not count beside some that can.

Margins, in the units of what is compared: log loss and ECE `MARGIN`, shares of rows `SHARE`. A test
keeps its level when it rejects at most `LEVEL_MARGIN` more than that.

>>> verdict(Runs(47, 50)), verdict(Runs(29, 50)), verdict(Runs(3, 50)), verdict(Runs(4, 5))
('holds', 'holds in part', 'does not hold', 'cannot be told')
>>> verdict(Settings({"ours": Runs(47, 50), "public": Runs(10, 50)}))
'holds in part'
>>> verdict(Readings({"10 bins": Runs(47, 50), "20 bins": Runs(0, 50)}))
'cannot be told'
>>> verdict(Beyond(0.01, 0.02)), verdict(Beyond(-0.01, 0.02)), verdict(Within(-0.001, 0.002))
('holds', 'cannot be told', 'holds')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class Settings:
    """The evidence of several settings in which a general claim must come true."""

    parts: Mapping[str, Evidence]

    @property
    def verdict(self) -> str:
        """Return what the rule says."""
        found = {verdict(part) for part in self.parts.values()}
        told = found - {UNTOLD} or {UNTOLD}
        return told.pop() if len(told) == 1 else PART

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


Evidence = Runs | Check | Beyond | Within | Unknown | Settings


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: a short name, what it says, where, and what we have to judge it."""

    key: str
    text: str
    where: str
    evidence: Evidence


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
