"""The time for which a comparison bills its policies, and which of them stretch it."""

import numpy as np

from greensched_core.units import SECONDS_PER_HOUR
from greensched_policies.costs.cost import Floats
from greensched_simulator.policy import Policy
from greensched_simulator.results.cells import short
from greensched_simulator.results.comparison import Results

_NAMED = 3  # policies in a sentence; the others are counted
_LEAST_STRETCH = 0.005  # of the billed time; less changes no percentage that is shown


def how_long_billed(results: Results) -> str:
    """Return sentences on the hours billed in a comparison, and on what stretches them."""
    billed_h = _mean_h(_billed_s(results))
    return (
        f"All are billed for {short(billed_h)} h, until the last job under any of them has ended. "
        f"{_stretched(results, billed_h)}Idle energy counts more in a longer time, so percentages "
        "differ from those of a comparison that is billed for another time."
    )


def _stretched(results: Results, billed_h: float) -> str:
    """Return who stretches the billed time, and by how much; empty if nobody does."""
    alone_h = {policy: _mean_h(_alone_s(results, policy)) for policy in results.policies}
    base = results.baseline
    if base is None or len(alone_h) < 2:
        return ""
    stretch_h = {policy: hours - alone_h[base] for policy, hours in alone_h.items()}
    longer = [policy for policy, by_h in stretch_h.items() if by_h > _LEAST_STRETCH * billed_h]
    if longer:
        longer.sort(key=lambda policy: -stretch_h[policy])
        named = [f"{each.label} (+{short(stretch_h[each])} h)" for each in longer[:_NAMED]]
        if longer[_NAMED:]:
            named.append(f"{len(longer) - _NAMED} others")
        listed = " and ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)
        verb = "stretch" if longer[1:] else "stretches"
        return f"For {base.label} alone it would be {short(alone_h[base])} h: {listed} {verb} it. "
    others_h = max(hours for policy, hours in alone_h.items() if policy != base)
    by_h = billed_h - others_h
    if by_h <= _LEAST_STRETCH * billed_h:
        return ""
    return (
        f"Without {base.label}, the baseline, it would be {short(others_h)} h: {base.label} "
        f"stretches it by {short(by_h)} h. "
    )


def _billed_s(results: Results) -> Floats:
    """Return the billed seconds of each seed."""
    outcomes = results.outcomes[results.policies[0]]
    return np.array([outcome.billed_s for outcome in outcomes])


def _alone_s(results: Results, policy: Policy) -> Floats:
    return np.array([outcome.billed_alone_s for outcome in results.outcomes[policy]])


def _mean_h(seconds: Floats) -> float:
    return float(seconds.mean()) / SECONDS_PER_HOUR
