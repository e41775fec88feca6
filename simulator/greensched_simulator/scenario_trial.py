"""What only shows when a scenario's jobs and services are made: jobs that fit no node, and so on.

What is sound is tried, each source of jobs and each service by itself, so that one fault hides no
other; of what rests on a fault nothing is said.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import count, islice
from typing import Any

from pydantic import ValidationError

from greensched_core.errors import BadInput
from greensched_simulator.job_building import drafts_of
from greensched_simulator.nodes import Nodes
from greensched_simulator.scenario_file import Place
from greensched_simulator.scenario_model import Scenario, Workload, place_of
from greensched_simulator.services import sized
from greensched_simulator.world import capacity_of, nodes_of

Found = Iterator[tuple[Place, str]]

# Whether jobs fit and services can be served does not depend on these.
_NOT_OF_NODES = {"zone", "pue", "sleep", "embodied", "failures"}
_NOT_OF_JOBS = {
    "slack", "deadline_runtime_factor", "estimate_error", "suspend", "elastic", "data",
}  # fmt: skip
_NO_MATTER = (("zone",), ("name",))  # of what belongs together
_ANY_ZONE = "any"
_INSTEAD = {
    "name": "tried", "start": "2023-01-01T00:00:00Z", "length": "1h",
    "grids": {_ANY_ZONE: {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}},
    "workload": {"generator": {"jobs": 1}},
}  # fmt: skip


def faults_when_made(
    content: Mapping[str, Any], context: Mapping[str, Any], faulty: Collection[Place]
) -> Found:
    """Yield place and reason of each fault of jobs and services, drawn with the scenario's seed.

    `faulty` are the places of what is known not to belong together.
    """
    scenario, left_out = _sound_part(_tried(content), context, faulty)
    if scenario is None or _lack(left_out, "cluster"):
        return
    nodes = nodes_of(scenario).nodes
    for place, reason in (*_of_jobs(scenario, nodes, left_out), *_of_services(scenario, nodes)):
        yield _as_given(place, left_out), reason


def _of_jobs(scenario: Scenario, nodes: Nodes, left_out: Collection[Place]) -> Found:
    makes_load = scenario.workload.load is not None  # by the length
    apart = [place for place in left_out if place[1:2] != ("trainings",)]
    if _lack(apart, "workload", "assumptions", *["length"] * makes_load):
        return
    capacity = capacity_of(nodes)
    for place, workload in _sources(scenario.workload):
        alone = scenario.model_copy(update={"workload": workload})
        try:
            list(drafts_of(alone, scenario.seed, capacity, []))
        except BadInput as fault:
            yield place, str(fault)


def _sources(workload: Workload) -> Iterator[tuple[Place, Workload]]:
    """Yield each source of jobs, as a workload that has no other."""
    for name in ("trace", "generator"):
        if getattr(workload, name) is not None:
            yield ("workload", name), workload.model_copy(update={"trainings": []})
    for number, training in enumerate(workload.trainings):
        update = {"trace": None, "generator": None, "trainings": [training]}
        yield ("workload", "trainings", number), workload.model_copy(update=update)


def _of_services(scenario: Scenario, nodes: Nodes) -> Found:
    for number, service in enumerate(scenario.services):
        try:
            sized(service, scenario, scenario.seed, nodes)
        except BadInput as fault:
            yield ("services", number), str(fault)


def _tried(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that jobs and services are made from, in a zone that is there in any case."""
    names = ("seed", "length", "cluster", "workload", "services", "assumptions")
    tried = {name: content[name] for name in names if name in content}
    workload, cluster = tried.get("workload"), tried.get("cluster")
    if isinstance(workload, dict):
        tried["workload"] = _but(_NOT_OF_JOBS, workload)
    if isinstance(cluster, dict) and isinstance(cluster.get("nodes"), list):
        groups = [
            _but(_NOT_OF_NODES, group) | {"zone": _ANY_ZONE} if isinstance(group, dict) else group
            for group in cluster["nodes"]
        ]
        tried["cluster"] = {**cluster, "nodes": groups}
    return tried


def _but(names: Collection[str], part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in names}


def _sound_part(
    tried: dict[str, Any], context: Mapping[str, Any], faulty: Collection[Place]
) -> tuple[Scenario | None, set[Place]]:
    """Return the scenario without what is at fault, and the places that were left out for it."""
    left_out: set[Place] = set()
    ahead = [place for place in faulty if _holds(tried, place) and place[3:] not in _NO_MATTER]
    while True:
        left_out |= {_left_for(place, tried, left_out) for place in ahead}
        if () in left_out:
            return None, left_out
        try:
            content = _INSTEAD | _without(left_out, tried)
            return Scenario.model_validate(content, context=dict(context)), left_out
        except ValidationError as fault:
            ahead = [_as_given(place_of(error["loc"]), left_out) for error in fault.errors()]


def _left_for(place: Place, tried: Any, left_out: Collection[Place]) -> Place:
    """Return what goes for a fault: an entry of a list as a whole, and what lacks something."""
    place = place[: next((at + 1 for at, name in enumerate(place) if isinstance(name, int)), None)]
    while place and (place in left_out or not _holds(tried, place)):
        place = place[:-1]
    return place


def _holds(raw: Any, place: Place) -> bool:
    for at in place:
        if isinstance(raw, dict) and at in raw:
            raw = raw[at]
        elif isinstance(raw, list) and isinstance(at, int) and at < len(raw):
            raw = raw[at]
        else:
            return False
    return True


def _without(left_out: Collection[Place], raw: Any, place: Place = ()) -> Any:
    """Return what stands at a place, without the places that were left out."""
    if isinstance(raw, dict):
        return {name: _without(left_out, value, (*place, name))
                for name, value in raw.items() if (*place, name) not in left_out}  # fmt: skip
    if isinstance(raw, list):
        return [_without(left_out, value, (*place, at))
                for at, value in enumerate(raw) if (*place, at) not in left_out]  # fmt: skip
    return raw


def _as_given(place: Place, left_out: Collection[Place]) -> Place:
    """Return where something stands in the file, whose lists have what was left out of them."""
    found: Place = ()
    for at in place:
        if isinstance(at, int):
            kept = (number for number in count() if (*found, number) not in left_out)
            at = next(islice(kept, at, None))
        found = (*found, at)
    return found


def _lack(left_out: Collection[Place], *names: str) -> bool:
    """Tell whether anything in one of these parts of the scenario was left out."""
    return any(place[0] in names for place in left_out)
