"""The time for which a comparison bills its policies, and which of them lengthen it."""

from collections.abc import Sequence

import numpy as np

from greensched_core.units import SECONDS_PER_HOUR
from greensched_simulator.policy import Policy
from greensched_simulator.results.cells import short
from greensched_simulator.results.comparison import Results, mean_outcome

_NAMED = 3  # policies in a sentence; the others are counted
_LEAST_LENGTHENING = 0.005  # of the billed time; less changes no percentage that is shown


def how_long_billed(results: Results) -> str:
    """Return sentences on the hours billed in a comparison, and on what lengthens them."""
    billed_h = float(np.mean(results.billed_s)) / SECONDS_PER_HOUR
    without = [each.label for each in results.policies if not _has_bill(results, each)]
    every = f"All but {', '.join(without)}" if without else "All"
    return (
        f"{every} are billed for {short(billed_h)} h, until the last job under any of them has "
        f"ended. {_lengthened(results, billed_h)}Idle energy counts more in a longer time, so "
        "percentages differ from those of a comparison that is billed for another time."
    )


def _without(results: Results, others: Sequence[Policy]) -> float:
    """Return the mean over seeds of the hours for which only `others` would be billed."""
    alone_s = [[each.billed_alone_s for each in results.outcomes[policy]] for policy in others]
    return float(np.max(alone_s, axis=0).mean()) / SECONDS_PER_HOUR


def _has_bill(results: Results, policy: Policy) -> bool:
    return mean_outcome(results.outcomes[policy]).is_billed


def _lengthened(results: Results, billed_h: float) -> str:
    """Return who lengthens the billed time, and by how much; empty if nobody does."""
    alone_h = {
        policy: mean_outcome(results.outcomes[policy]).billed_alone_s / SECONDS_PER_HOUR
        for policy in results.policies
        if _has_bill(results, policy)
    }
    base = results.baseline
    if base not in alone_h or len(alone_h) < 2:
        return ""
    longer_h = {policy: hours - alone_h[base] for policy, hours in alone_h.items()}
    longer = [policy for policy, by_h in longer_h.items() if by_h > _LEAST_LENGTHENING * billed_h]
    if longer:
        longer.sort(key=lambda policy: -longer_h[policy])
        named = [f"{each.label} (+{short(longer_h[each])} h)" for each in longer[:_NAMED]]
        if longer[_NAMED:]:
            named.append(f"{len(longer) - _NAMED} others")
        listed = " and ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)
        verb = "lengthen" if longer[1:] else "lengthens"
        return f"For {base.label} alone it would be {short(alone_h[base])} h: {listed} {verb} it. "
    others_h = _without(results, [policy for policy in alone_h if policy != base])
    by_h = billed_h - others_h
    if by_h <= _LEAST_LENGTHENING * billed_h:
        return ""
    return (
        f"Without {base.label}, the baseline, it would be {short(others_h)} h: {base.label} "
        f"lengthens it by {short(by_h)} h. "
    )
