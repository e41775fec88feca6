"""Explains a decision in one sentence: where the pod went, what that saves, and why."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from greensched_extender.amounts import digits, scaled_amounts
from greensched_extender.zone_outcome import ZoneOutcome
from greensched_policies.learned.model_fields import ONNX

TOO_LATE = "answered too late"  # the outcome of a pod that was bound before its decision
ExplainedCandidate = Mapping[str, Any]

_CARBON, _COST, _ENERGY = "carbonGrams", "cost", "energyJoules"
# What each policy weighs: by fixed weights here, or by the decision's; other policies differ.
_WEIGHED = {
    "least-carbon": {_CARBON: 1.0},
    "least-cost": {_COST: 1.0},
    "least-energy": {_ENERGY: 1.0},
}
_LEFT = {
    ZoneOutcome.BETTER_ELSEWHERE: "but another is much better now",
    ZoneOutcome.NOT_OFFERED: "of which no node was offered",
    ZoneOutcome.NO_SIGNAL: "which has no fresh signal",
    ZoneOutcome.OTHER_TIME: "but for another time",
}
_BY_WEIGHTS = (ONNX, "weighted-cost")
_EQUAL = 0.01  # as in scores: within 1 % of the cheapest counts as equal
_SMALL = 0.2  # a mean below this share of the mean magnitude is no base for percentages
_JOULES_PER_WH = 3_600.0
_WH_PER_KWH, _WH_PER_MWH = 1e3, 1e6


def why(decision: Mapping[str, Any]) -> str:
    """Return the sentence for a rendered decision with `weights`, its cheapest node first."""
    offered: Sequence[ExplainedCandidate] = decision["candidates"]
    known = [each for each in offered if _finite(each["relativeCost"])]
    if not known:
        return "The extender could not rank any of the nodes offered, so all scored alike."
    outcome = decision["outcome"].get("node")
    name = outcome or decision["expectedNode"] or known[0]["node"]
    place = next((n for n, each in enumerate(known) if each["node"] == name), None)
    if place is None:
        return f"{name} was not among the {len(known)} nodes that the extender was asked about."
    if len(known) == 1:
        return f"{name} was the only node offered that the extender knows."
    if _asks_for_nothing(decision, known):
        sentence = (
            "The pod requests neither CPU nor GPU, so it counts as 0 W on each node and all are "
            "equally cheap: set resources.requests for its containers"
        )
    else:
        sentence = _standing(decision, known, place) + _due_to(decision, known, place)
    return sentence + _planned(decision, known[place]) + _who_decided(decision, known, place) + "."


def as_cheap(cost: float, other: float) -> bool:
    """Return whether two relative costs count as equal, as in scores: within 1 %."""
    return abs(cost - other) <= _EQUAL * min(abs(cost), abs(other))


def _asks_for_nothing(decision: Mapping[str, Any], known: Sequence[ExplainedCandidate]) -> bool:
    pod = decision["pod"]
    return not (pod["cpuCores"] or pod["gpus"]) and all(not each["powerWatts"] for each in known)


def _planned(decision: Mapping[str, Any], chosen: ExplainedCandidate) -> str:
    """Return whether a planned zone decided; "" if none was planned."""
    planned = decision.get("plannedZone")
    if not planned or decision["outcome"]["state"] == TOO_LATE:
        return ""
    zone = planned["zone"]
    if planned["outcome"] == ZoneOutcome.HONOURED:
        return f"; its start was planned in {zone}" if chosen["zone"] == zone else ""
    return f"; its start was planned in {zone}, {_LEFT[planned['outcome']]}"


def _who_decided(
    decision: Mapping[str, Any], known: Sequence[ExplainedCandidate], place: int
) -> str:
    if decision["outcome"]["state"] == TOO_LATE:
        return "; the answer came too late, so kube-scheduler's own scores decided alone"
    is_best = known[place]["score"] == max(each["score"] for each in known)
    if is_best or not decision["outcome"].get("node"):
        return ""
    return "; kube-scheduler's own scores preferred it"


def _standing(decision: Mapping[str, Any], known: Sequence[ExplainedCandidate], place: int) -> str:
    costs = [float(each["relativeCost"]) for each in known]
    mine, least = costs[place], costs[0]
    name, count, policy = known[place]["node"], len(known), decision["policy"]
    is_price = policy in _BY_WEIGHTS or policy in _WEIGHED  # other rules rank; they do not price
    if costs[-1] - least <= _EQUAL * abs(least):
        alike = "cost the same" if is_price else f"score alike by {policy}"
        return f"{name} was one of {count} nodes that {alike} within 1 %"
    if mine - least > _EQUAL * abs(least):
        rank = f"number {place + 1} by {'cost' if is_price else policy}"
    elif is_price:
        rank = "the cheapest" if place == 0 else "as cheap as the cheapest"
    else:
        rank = f"preferred most by {policy}" + ("" if place == 0 else ", with others,")
    return f"{name} was {rank} of {count}{_against_mean(mine, costs) if is_price else ''}"


def _against_mean(mine: float, costs: Sequence[float]) -> str:
    mean = fmean(costs)
    if mean <= _SMALL * fmean(
        abs(cost) for cost in costs
    ):  # costs of both signs: a percentage is meaningless
        return ""
    percent = round(100 * (1 - mine / mean))
    if percent == 0:
        return ": as much as the average node"
    return f": {abs(percent)} % {'less' if percent > 0 else 'more'} than the average node"


def _due_to(decision: Mapping[str, Any], known: Sequence[ExplainedCandidate], place: int) -> str:
    """Return the main cause of the difference from the average node, with both figures."""
    gains = {}
    for kind, weight in _weights(decision).items():
        amounts = [each[kind] for each in known]
        if weight and all(_finite(amount) for amount in amounts) and fmean(amounts) > 0:
            gains[kind] = weight * (1 - amounts[place] / fmean(amounts))
    if not gains:
        return ""
    kind = max(gains, key=lambda each: abs(gains[each]))
    if abs(gains[kind]) < _EQUAL:
        return ""
    energies = [float(each[_ENERGY]) / _JOULES_PER_WH for each in known]
    mine, mean = energies[place], fmean(energies)
    if kind == _ENERGY or mean <= 0 or mine <= 0:
        return f", by its energy ({_against(mine, mean)})"
    return _grid_or_energy(kind, known, place, mine, mean)


def _grid_or_energy(
    kind: str, known: Sequence[ExplainedCandidate], place: int, mine_wh: float, mean_wh: float
) -> str:
    """Return whether energy or the grid, whose product grams and money are, differs more."""
    amount, mean_amount = float(known[place][kind]), fmean(each[kind] for each in known)
    grid = amount / mine_wh, mean_amount / mean_wh
    by_energy = abs(math.log(mine_wh / mean_wh))
    by_grid = abs(math.log(grid[0] / grid[1])) if grid[0] > 0 else math.inf
    if by_energy > by_grid:
        return f", mostly energy ({_against(mine_wh, mean_wh)})"
    if kind == _CARBON:
        shown = [digits(each * _WH_PER_KWH) for each in grid]
        return f", mostly carbon ({shown[0]} against {shown[1]} g/kWh)"
    shown = [digits(each * _WH_PER_MWH) for each in grid]
    currency = known[place].get("currency") or "money"
    return f", mostly price ({shown[0]} against {shown[1]} {currency}/MWh)"


def _against(mine_wh: float, mean_wh: float) -> str:
    (mine, mean), unit = scaled_amounts([mine_wh, mean_wh], "Wh")
    return f"{mine} against {mean} {unit}"


def _weights(decision: Mapping[str, Any]) -> Mapping[str, float]:
    if decision["policy"] in _BY_WEIGHTS:
        weights = decision["weights"]
        return {_CARBON: weights["carbon"], _COST: weights["cost"]}
    return _WEIGHED.get(decision["policy"], {})


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
