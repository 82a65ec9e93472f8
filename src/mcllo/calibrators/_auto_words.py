"""What a stacked ladder says of itself, in one sentence."""

from __future__ import annotations

import math

from ._auto_stack import Stack

KINDS = {
    "full_tight": "full map",
    "full_loose": "full map",
    "mcllo": "MCLLO",
    "vector": "vector map",
    "temperature": "temperature",
    "identity": "identity",
}
SHOWN = 0.005
"""Share below which a member is not named."""
SAME = 0.05
"""Distance of log u from 0 that is not worth a word."""


def shares(weights: dict[str, float]) -> dict[str, float]:
    """Return the weights by kind of member, largest first."""
    kinds: dict[str, float] = {}
    for name, weight in weights.items():
        kinds[KINDS[name]] = kinds.get(KINDS[name], 0.0) + weight
    return dict(sorted(kinds.items(), key=lambda item: -item[1]))


def reason(stack: Stack) -> str:
    """Return what the weights say about the predictions."""
    kinds = shares(stack.weights)
    if not stack.gain > 0.0:
        return "no repair promises a gain"
    if kinds["identity"] >= 0.5:
        return "there is little to repair"
    del kinds["identity"]
    leading = max(kinds, key=lambda kind: kinds[kind])
    if leading == "full map":
        return "classes leak into each other"
    if leading != "temperature":
        return "some classes are predicted too often or too boldly"
    v = math.log(stack.ladder.soft.inverse_temperature)
    if abs(v) < SAME:
        return "sure predictions fail now and then"
    return "predictions are too bold" if v < 0.0 else "predictions are too cautious"


def describe(stack: Stack) -> str:
    """Return shares, reason, and cross-validated losses."""
    named = ", ".join(
        f"{100.0 * share:.0f} % {kind}"
        for kind, share in shares(stack.weights).items()
        if share >= SHOWN
    )
    if not math.isfinite(stack.gain_se):
        return f"{named}: too few rows to leave any out"
    what = "log loss" if stack.gain > 0.0 else "log loss of a repair"
    return (
        f"{named}: {reason(stack)}; cross-validated {what} {stack.loss:.4f} "
        f"against {stack.raw_loss:.4f} raw"
    )
