"""The time for which a comparison bills its policies, and which of them lengthen it."""

import numpy as np

from greensched_core.units import SECONDS_PER_HOUR
from greensched_policies.costs.cost import Floats
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
        f"ended{_in_some_seeds(results)}. {_lengthened(results, billed_h)}Idle energy counts more "
        "in a longer time, so percentages differ from those of a comparison that is billed for "
        "another time."
    )


def _in_some_seeds(results: Results) -> str:
    """Return which policies have a bill in some seeds only, and lengthen the time there."""
    told = []
    for policy in results.policies:
        outcomes = results.outcomes[policy]
        billed = sum(each.is_billed for each in outcomes)
        if 0 < billed < len(outcomes):
            told.append(f"{policy.label} in {billed} of {len(outcomes)} seeds")
    return f" ({', '.join(told)} too)" if told else ""


def _alone_h(results: Results, policy: Policy) -> Floats:
    """Return the hours that would be billed for a policy alone, [seeds]; 0 where it has no bill."""
    alone_s = [each.billed_alone_s if each.is_billed else 0.0 for each in results.outcomes[policy]]
    return np.array(alone_s) / SECONDS_PER_HOUR


def _has_bill(results: Results, policy: Policy) -> bool:
    return mean_outcome(results.outcomes[policy]).is_billed


def _lengthened(results: Results, billed_h: float) -> str:
    """Return who lengthens the billed time, and by how much; empty if nobody does."""
    base = results.baseline
    if base is None or not _has_bill(results, base):
        return ""
    base_h = _alone_h(results, base)
    others_h = {each: _alone_h(results, each) for each in results.policies if each != base}
    billed = [policy for policy, hours in others_h.items() if hours.any()]
    if not billed:
        return ""
    longer_h = {each: _longer_h(others_h[each], base_h) for each in billed}
    longer = [policy for policy, by_h in longer_h.items() if by_h > _LEAST_LENGTHENING * billed_h]
    if longer:
        longer.sort(key=lambda policy: -longer_h[policy])
        named = [f"{each.label} (+{short(longer_h[each])} h)" for each in longer[:_NAMED]]
        if longer[_NAMED:]:
            named.append(f"{len(longer) - _NAMED} others")
        listed = " and ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)
        verb = "lengthen" if longer[1:] else "lengthens"
        alone_h = float(base_h.mean())
        return f"For {base.label} alone it would be {short(alone_h)} h: {listed} {verb} it. "
    without_h = float(np.max([others_h[each] for each in billed], axis=0).mean())
    by_h = billed_h - without_h
    if by_h <= _LEAST_LENGTHENING * billed_h:
        return ""
    return (
        f"Without {base.label}, the baseline, it would be {short(without_h)} h: {base.label} "
        f"lengthens it by {short(by_h)} h. "
    )


def _longer_h(own_h: Floats, base_h: Floats) -> float:
    """Return by how much a policy lasts longer than the baseline, over the seeds with its bill."""
    return float(np.where(own_h > 0.0, own_h - base_h, 0.0).mean())
