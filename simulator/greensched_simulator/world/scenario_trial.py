"""Finds faults that only building jobs and services shows, such as jobs that fit no node.

Each valid source of jobs and each valid service is tried by itself, so that one fault hides no
other. Faults that follow from another fault are not reported.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count, islice
from typing import Any

from pydantic import ValidationError

from greensched_core.errors import BadInput
from greensched_simulator.arrays.nodes import NodeArrays
from greensched_simulator.scenario.assumptions import Assumptions
from greensched_simulator.scenario.cluster import NodeGroup
from greensched_simulator.scenario.file import FaultsByPlace, FieldPlace
from greensched_simulator.scenario.model import Scenario, ScenarioWorkload, place_of
from greensched_simulator.world.job_building import NO_JOB_LEFT, drafts_of
from greensched_simulator.world.served_models import with_its_replica
from greensched_simulator.world.services import rooms, sized
from greensched_simulator.world.world import capacity_of, nodes_of

# Whether jobs fit and services can be served does not depend on these.
_NOT_OF_NODES = {"name", "zone", "pue", "sleep", "autoscaling", "embodied", "failures"}
_NOT_OF_JOBS = {
    "slack", "deadline_runtime_factor", "estimate_error", "suspend", "elastic", "data", "gpu_ratio",
}  # fmt: skip
_NOT_OF_FIT = Assumptions.model_fields.keys() - {"share_gpus"}
_NO_MATTER = (("zone",), ("name",))  # places of faults between parts
# Nor does it depend on watts and speeds, which are replaced by others.
_OF_SPEED = {"hardware", "curve_watts", "speed"}
_STAND_IN: dict[str, Any] = {"curve_watts": [float(step) for step in range(11)], "speed": 1.0}
_ANY_ZONE = "any"
_GROUP = {"name": "tried", "count": 1, "cpu_cores": 1, "memory": "1Gi", "zone": _ANY_ZONE}
_OF_WORKLOAD = re.compile(r"(workload[.\w]*): ")  # the start of reasons that name their place
_INSTEAD = {
    "name": "tried", "start": "2023-01-01T00:00:00Z", "length": "1h",
    "grids": {_ANY_ZONE: {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}},
    "workload": {"generator": {"jobs": 1}},
}  # fmt: skip


def faults_when_made(
    content: Mapping[str, Any], context: Mapping[str, Any], faulty: Collection[FieldPlace]
) -> FaultsByPlace:
    """Yield place and reason of each fault of jobs and services, drawn with the scenario's seed.

    `faulty` are the places of known faults between parts.
    """
    are_known = _speeds_are_known(content, context)
    scenario, left_out = _sound_part(_tried(content, are_known), context, faulty)
    if scenario is None or _lack(left_out, "cluster"):
        return
    nodes = nodes_of(scenario).nodes
    of_jobs = _of_jobs(scenario, nodes, left_out, are_known)
    of_services = _of_services(scenario, nodes, are_known)
    for place, reason in (*of_jobs, *of_services):
        yield _as_given(place, left_out), reason


def _of_jobs(
    scenario: Scenario, nodes: NodeArrays, left_out: Collection[FieldPlace], are_known: bool
) -> FaultsByPlace:
    workload = scenario.workload
    by_length = workload.load is not None
    apart = [place for place in left_out if place[1:2] != ("trainings",)]
    if _lack(apart, "workload", "assumptions", *["length"] * by_length):
        return
    if workload.generator is not None and by_length and not are_known:
        return  # the number of jobs for the load depends on speeds
    capacity, left, is_sound = capacity_of(nodes), False, apart == [*left_out]
    moves = by_length and not are_known  # arrivals, with the speeds
    length_s = math.inf if moves or _lack(left_out, "length") else scenario.length_s
    for place, source in _sources(workload):
        alone = scenario.model_copy(update={"workload": source})
        try:
            drafts = list(drafts_of(alone, scenario.seed, capacity, []))
        except BadInput as fault:
            is_sound = False
            named = _OF_WORKLOAD.match(str(fault))
            is_load = named is not None and named[1] == "workload.load"
            yield ("workload", "load") if is_load else place, _OF_WORKLOAD.sub("", str(fault), 1)
        else:
            left |= any((draft.arrival_s < length_s).any() for draft in drafts)
    if is_sound and not left:
        yield ("workload", "skip_unplaceable"), NO_JOB_LEFT


def _sources(workload: ScenarioWorkload) -> Iterator[tuple[FieldPlace, ScenarioWorkload]]:
    """Yield each source of jobs as a workload that has only this source."""
    for name in ("trace", "generator"):
        if getattr(workload, name) is not None:
            yield ("workload", name), workload.model_copy(update={"trainings": []})
    for number, training in enumerate(workload.trainings):
        update = {"trace": None, "generator": None, "trainings": [training]}
        yield ("workload", "trainings", number), workload.model_copy(update=update)


def _of_services(scenario: Scenario, nodes: NodeArrays, are_known: bool) -> FaultsByPlace:
    for number, service in enumerate(scenario.services):
        try:
            whole = with_its_replica(service)
            if are_known or whole.replica.gpus:  # the speeds of GPUs do not depend on the node
                sized(service, scenario, scenario.seed, nodes)
            else:
                rooms(whole, nodes)
        except BadInput as fault:
            yield ("services", number), str(fault)


def _groups(content: Mapping[str, Any]) -> list[Any]:
    cluster = content.get("cluster")
    groups = cluster.get("nodes") if isinstance(cluster, dict) else None
    return groups if isinstance(groups, list) else []


def _speeds_are_known(content: Mapping[str, Any], context: Mapping[str, Any]) -> bool:
    """Return whether the fields that determine nodes' speeds are valid in all groups."""
    for group in _groups(content):
        own = {name: group[name] for name in _OF_SPEED & group.keys()} if _is_map(group) else {}
        try:
            read = NodeGroup.model_validate(_GROUP | own, context=dict(context))
        except ValidationError:
            return False
        if read.hardware is None and read.curve_watts is None:
            return False
    return True


def _tried(content: Mapping[str, Any], are_known: bool) -> dict[str, Any]:
    """Return the parts that jobs and services are built from, in a zone that always exists.

    Nodes get new names. If speeds are not known, all nodes have the same.
    """
    names = ("seed", "length", "cluster", "workload", "services", "assumptions")
    tried = {name: content[name] for name in names if name in content}
    for name, without in (("workload", _NOT_OF_JOBS), ("assumptions", _NOT_OF_FIT)):
        if _is_map(tried.get(name)):
            tried[name] = _but(without, tried[name])
    groups = _groups(content)
    if groups:
        without = _NOT_OF_NODES if are_known else _NOT_OF_NODES | _OF_SPEED
        instead = {"zone": _ANY_ZONE} | ({} if are_known else _STAND_IN)
        tried["cluster"] = content["cluster"] | {
            "nodes": [
                _but(without, each) | instead | {"name": f"tried-{number}"}
                if _is_map(each)
                else each
                for number, each in enumerate(groups)
            ]
        }
    return tried


def _is_map(raw: Any) -> bool:
    return isinstance(raw, dict)


def _but(names: Collection[str], part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in names}


def _sound_part(
    tried: dict[str, Any], context: Mapping[str, Any], faulty: Collection[FieldPlace]
) -> tuple[Scenario | None, set[FieldPlace]]:
    """Return the scenario without its faulty places, and the places that were left out."""
    left_out: set[FieldPlace] = set()
    ahead = [place for place in faulty if _holds(tried, place) and _matters(place)]
    while True:
        left_out |= {_left_for(place, tried, left_out) for place in ahead}
        if () in left_out:
            return None, left_out
        try:
            content = _INSTEAD | _without(left_out, tried)
            return Scenario.model_validate(content, context=dict(context)), left_out
        except ValidationError as fault:
            ahead = [_as_given(place_of(error["loc"]), left_out) for error in fault.errors()]


def _matters(place: FieldPlace) -> bool:
    """Return whether jobs and services depend on a place; a whole node group only lacks watts."""
    return place[3:] not in _NO_MATTER and (len(place) != 3 or place[:2] != ("cluster", "nodes"))


def _left_for(place: FieldPlace, tried: Any, left_out: Collection[FieldPlace]) -> FieldPlace:
    """Return the place to leave out for a fault: whole list entries, and parts lacking a field."""
    place = place[: next((at + 1 for at, name in enumerate(place) if isinstance(name, int)), None)]
    while place and (place in left_out or not _holds(tried, place)):
        place = place[:-1]
    return place


def _holds(raw: Any, place: FieldPlace) -> bool:
    for at in place:
        if isinstance(raw, dict) and at in raw:
            raw = raw[at]
        elif isinstance(raw, list) and isinstance(at, int) and at < len(raw):
            raw = raw[at]
        else:
            return False
    return True


def _without(left_out: Collection[FieldPlace], raw: Any, place: FieldPlace = ()) -> Any:
    """Return the content at a place, without the places that were left out."""
    if isinstance(raw, dict):
        return {name: _without(left_out, value, (*place, name))
                for name, value in raw.items() if (*place, name) not in left_out}  # fmt: skip
    if isinstance(raw, list):
        return [_without(left_out, value, (*place, at))
                for at, value in enumerate(raw) if (*place, at) not in left_out]  # fmt: skip
    return raw


def _as_given(place: FieldPlace, left_out: Collection[FieldPlace]) -> FieldPlace:
    """Return a place as in the file, whose lists still have the entries that were left out."""
    found: FieldPlace = ()
    for at in place:
        if isinstance(at, int):
            kept = (number for number in count() if (*found, number) not in left_out)
            at = next(islice(kept, at, None))
        found = (*found, at)
    return found


def _lack(left_out: Collection[FieldPlace], *names: str) -> bool:
    """Return whether anything in one of these parts of the scenario was left out."""
    return any(place[0] in names for place in left_out)
