"""Splits a policy's saving by its levers: when, where, in which order and how fast work runs, …

A lever is one of a policy's rules; it is off when the baseline's rule replaces it. Each combination
of levers is a policy that is run like any other. A lever's part is its Shapley value (Shapley, "A
Value for n-Person Games", 1953): the change when it is switched on, averaged over all orders of
switching the levers on. The parts add up to the whole change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.policy import LEARNED, Policy
from greensched_simulator.results.cells import ConfidenceInterval
from greensched_simulator.results.comparison import (
    ComparedFigure,
    Results,
    confidence_interval,
    does_less,
)

LEVERS = ("when", "where", "queue", "sleep", "cap", "pause")  # fields of a policy


def levers_of(policy: Policy, baseline: Policy) -> tuple[str, ...]:
    """Return the levers in which a policy differs from the baseline.

    The heads of two bundles cannot be combined, so they have no levers.
    """
    if policy.bundle and baseline.bundle and policy.bundle != baseline.bundle:
        return ()
    return tuple(name for name in LEVERS if getattr(policy, name) != getattr(baseline, name))


def combinations_of(policy: Policy, baseline: Policy) -> dict[frozenset[str], Policy]:
    """Return the policy for each set of levers that are on; the empty set is the baseline."""
    levers = levers_of(policy, baseline)
    return {
        frozenset(on): _mixed(policy, baseline, on)
        for size in range(len(levers) + 1)
        for on in combinations(levers, size)
    }


def _mixed(policy: Policy, baseline: Policy, on: Sequence[str]) -> Policy:
    """Return the policy with the levers that are on, and the baseline's other rules."""
    if not on:
        return baseline
    rules = {name: getattr(policy if name in on else baseline, name) for name in LEVERS}
    bundle = policy.bundle or baseline.bundle if LEARNED in rules.values() else ""
    return replace(policy, **rules, bundle=bundle)


def with_combinations(policies: Sequence[Policy], baseline: Policy) -> tuple[Policy, ...]:
    """Return the policies and, after them, the combinations of their levers, each once."""
    needed = [mixed for policy in policies for mixed in combinations_of(policy, baseline).values()]
    return tuple(dict.fromkeys((*policies, *needed)))


def with_all_combinations(results: Results) -> tuple[Policy, ...]:
    """Return the policies with at least two levers of which all combinations were run."""
    if results.baseline is None:
        return ()
    return tuple(
        policy
        for policy in results.policies
        if len(levers_of(policy, results.baseline)) > 1
        and set(combinations_of(policy, results.baseline).values()) <= set(results.policies)
    )


def parts(
    figure: ComparedFigure, results: Results, policy: Policy
) -> Mapping[str, ConfidenceInterval]:
    """Return each lever's part of a policy's change, in % of each seed's baseline.

    The policy must be one of `with_all_combinations`. If a seed's baseline is 0, the parts are NaN.
    """
    assert results.baseline is not None, "there is no baseline"
    worth = {
        on: np.array([figure.of(outcome) for outcome in results.outcomes[mixed]], dtype=np.float64)
        for on, mixed in combinations_of(policy, results.baseline).items()
    }
    whole = np.abs(worth[frozenset()])
    levers = levers_of(policy, results.baseline)
    with np.errstate(all="ignore"):
        return {
            lever: confidence_interval(
                np.where(whole == 0.0, np.nan, 100.0 * _shapley(lever, levers, worth) / whole)
            )
            for lever in levers
        }


def parts_do_less(results: Results, policy: Policy) -> bool:
    """Return whether any combination of a policy's levers did less work than the baseline."""
    assert results.baseline is not None, "there is no baseline"
    mixed = combinations_of(policy, results.baseline).values()
    return any(does_less(results, each) for each in mixed)


def _shapley(lever: str, levers: Sequence[str], worth: Mapping[frozenset[str], Floats]) -> Floats:
    others = [name for name in levers if name != lever]
    total = np.zeros_like(worth[frozenset()])
    for size in range(len(others) + 1):
        share = factorial(size) * factorial(len(others) - size) / factorial(len(levers))
        for on in combinations(others, size):
            total += share * (worth[frozenset((*on, lever))] - worth[frozenset(on)])
    return total
