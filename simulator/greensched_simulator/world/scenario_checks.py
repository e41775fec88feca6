"""Checks across the parts of a scenario, and of the files that it names.

Each readable part is checked independently, so that one fault hides no other.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from greensched_core.errors import BadInput
from greensched_core.quoting import near
from greensched_core.signals.timestamps import format_timestamp
from greensched_simulator.formats.grid_files import read_series
from greensched_simulator.scenario.cluster import NodeGroup
from greensched_simulator.scenario.fields import Duration, Moment, PolicyFile
from greensched_simulator.scenario.file import FaultsByPlace, FieldPlace
from greensched_simulator.scenario.language import Training
from greensched_simulator.scenario.model import (
    Carbon,
    CarbonFile,
    Elastic,
    Generator,
    Price,
    PriceConstant,
    PriceFile,
)
from greensched_simulator.scenario.network import Between, DataKind
from greensched_simulator.scenario.policy_file import read_policy_file
from greensched_simulator.scenario.services import Service
from greensched_simulator.scenario.site import SolarFile, Temperature, TemperatureFile, Yield
from greensched_simulator.scenario.trace_workload import TraceWorkload
from greensched_simulator.world.job_building import read_trace
from greensched_simulator.world.node_power import sleep_faults
from greensched_simulator.world.service_checks import service_faults
from greensched_simulator.world.trainings import speed_with
from greensched_simulator.world.zone_steps import Source, column_of

_ROUNDING = 1e-9  # of a sum of shares


def belongs_together(content: Mapping[str, Any], context: Mapping[str, Any]) -> FaultsByPlace:
    """Yield place and reason of each fault between parts that are valid by themselves."""
    groups = [_mapping(raw) for raw in _list(_mapping(content.get("cluster")).get("nodes"))]
    grids = _mapping(content.get("grids"))
    yield from _zones(groups, grids)
    for number, group in enumerate(groups):
        if group and group.get("hardware") is None and group.get("curve_watts") is None:
            yield ("cluster", "nodes", number), "name its hardware, or give curve_watts"
        yield from _sleep(number, group, content, context)
        yield from _autoscaling(number, _read(NodeGroup, group, context))
    span = _span(content)
    for zone, grid in grids.items():
        carbon = _read(Carbon, _mapping(grid).get("carbon"), context)
        price = _read(Price, _mapping(grid).get("price"), context)
        yield from _currency(("grids", zone, "price", "unit"), price, content)
        marginal = _read(Carbon, _mapping(grid).get("marginal"), context)
        for signal, source in (("carbon", carbon), ("marginal", marginal), ("price", price)):
            if isinstance(source, CarbonFile | PriceFile):
                yield from _grid_file(("grids", zone, signal, "file"), source, span)
    yield from _green_policy(content, context)
    yield from _sites(content, groups, grids, span, context)
    yield from _data(content, grids, context)
    if isinstance(content.get("workload"), dict):
        yield from _workload(content["workload"], context)
        yield from _trainings(content["workload"], groups, context)
    length_s = None if span is None else span[1] - span[0]
    read = [_read(Service, raw, context) for raw in _list(content.get("services"))]
    for at, reason in service_faults(read, length_s):
        yield ("services", *at), reason
    if read and _mapping(content.get("assumptions")).get("cpu_caps") == "package-power":
        reason = (
            "package-power cannot be combined with services: caps do not see the requests, by "
            "which the watts of replicas change; use frequency"
        )
        yield ("assumptions", "cpu_caps"), reason


def _zones(groups: list[Mapping[str, Any]], grids: Mapping[str, Any]) -> FaultsByPlace:
    names: set[str] = set()
    for number, group in enumerate(groups):
        place = ("cluster", "nodes", number)
        zone, name = group.get("zone"), group.get("name")
        if isinstance(name, str):
            if name in names:
                yield (*place, "name"), f"{name!r} names another group already"
            names.add(name)
        if isinstance(zone, str) and zone not in grids:
            yield (*place, "zone"), f"{zone!r} has no grid{near(zone, grids)}; add it under grids"
    used = {str(group["zone"]) for group in groups if group.get("zone") is not None}
    with_marginal = [
        zone for zone, grid in grids.items() if _mapping(grid).get("marginal") is not None
    ]
    for zone in grids:
        if with_marginal and zone not in with_marginal:
            reason = (
                f"has no marginal carbon, but {with_marginal[0]} has: "
                f"give it to all zones or to none"
            )
            yield ("grids", zone), reason
        if groups and zone not in used:
            meant = near(zone, filter(None, used))
            reason = f"no node is in this zone{meant}; remove it, or put nodes there"
            yield ("grids", zone), reason


def _sleep(
    number: int,
    group: Mapping[str, Any],
    content: Mapping[str, Any],
    context: Mapping[str, Any],
) -> FaultsByPlace:
    place = ("cluster", "nodes", number, "sleep")
    read = _read(NodeGroup, group, context)
    if group.get("sleep") is None or not isinstance(read, NodeGroup):
        return
    if read.hardware is not None or read.curve_watts is not None:
        yield from (((*place, field), reason) for field, reason in sleep_faults(read))
    if _mapping(content.get("assumptions")).get("empty_nodes_sleep") is True:
        yield place, "assumptions.empty_nodes_sleep lets all nodes sleep at no cost: remove either"


def _autoscaling(number: int, group: NodeGroup | None) -> FaultsByPlace:
    place = ("cluster", "nodes", number, "autoscaling")
    if group is None or group.autoscaling is None:
        return
    if group.autoscaling.min > group.count:
        nodes = f"{group.count} node" + ("" if group.count == 1 else "s")
        yield (*place, "min"), f"the group has {nodes}: give at most {group.count}"
    if group.sleep is None:
        yield (
            place,
            "a node that is off draws something, and takes time to start: give sleep, too, such as "
            "{watts: 0, wake: 2m}",
        )


def _currency(place: FieldPlace, price: Any, content: Mapping[str, Any]) -> FaultsByPlace:
    if not isinstance(price, PriceFile | PriceConstant):
        return
    own, currency = content.get("currency", "EUR"), price.unit.partition("/")[0]
    if currency != own and currency not in _mapping(content.get("exchange_rates")):
        yield (
            place,
            f"the value of a {currency} is missing: add it to exchange_rates, in {own}",
        )


def _span(content: Mapping[str, Any]) -> tuple[float, float] | None:
    start_s = _read(Moment, content.get("start"), {})
    length_s = _read(Duration, content.get("length"), {})
    return None if start_s is None or length_s is None else (start_s, start_s + length_s)


def _grid_file(
    place: FieldPlace, source: Source, span: tuple[float, float] | None
) -> FaultsByPlace:
    try:
        series = read_series(source.file, column_of(source))
    except BadInput as fault:
        yield place, str(fault)
        return
    first_s, end_s = series.times_s[0], series.times_s[-1]
    if span is not None and not first_s <= span[0] < span[1] <= end_s:
        yield (
            place,
            f"{source.file} holds {format_timestamp(first_s)} to {format_timestamp(end_s)}, the "
            f"scenario lasts from {format_timestamp(span[0])} to {format_timestamp(span[1])}: "
            "change start or length, or give a file that covers them",
        )
    elif span is not None and not series.has_any(*span):
        yield (
            place,
            f"{source.file} holds no value from {format_timestamp(span[0])} to "
            f"{format_timestamp(span[1])}: change start or length, or give another file",
        )


def _sites(
    content: Mapping[str, Any],
    groups: list[Mapping[str, Any]],
    grids: Mapping[str, Any],
    span: tuple[float, float] | None,
    context: Mapping[str, Any],
) -> FaultsByPlace:
    sites = _mapping(content.get("sites"))
    for zone, site in sites.items():
        if zone not in grids:
            yield ("sites", zone), f"{zone!r} has no grid{near(zone, grids)}; add it under grids"
        weather = _mapping(_mapping(site).get("weather"))
        temperature = _read(Temperature, weather.get("temperature"), context)
        if isinstance(temperature, TemperatureFile):
            yield from _grid_file(
                ("sites", zone, "weather", "temperature", "file"), temperature, span
            )
        solar = _mapping(_mapping(site).get("solar"))
        output = _read(Yield, solar.get("output"), context)
        if isinstance(output, SolarFile):
            yield from _grid_file(("sites", zone, "solar", "output", "file"), output, span)
        if _mapping(site).get("battery") is not None and _mapping(site).get("solar") is None:
            yield ("sites", zone, "battery"), "is charged only from panels: give solar, too"
    for number, group in enumerate(groups):
        home = group.get("zone")
        follows = isinstance(home, str) and _mapping(sites.get(home)).get("weather") is not None
        if follows and "pue" in group:
            reason = f"depends on the weather, sites.{home}.weather: remove one of the two"
            yield ("cluster", "nodes", number, "pue"), reason


def _workload(raw: Mapping[str, Any], context: Mapping[str, Any]) -> FaultsByPlace:
    place = ("workload",)
    trainings = _list(raw.get("trainings"))
    sources = sum(raw.get(name) is not None for name in ("trace", "generator"))
    if sources == 2 or (sources == 0 and not trainings):
        yield place, "give either trace or generator" + ("" if sources else ", or trainings")
    if sources == 0 and trainings and raw.get("load") is not None:
        yield (*place, "load"), "applies to a trace or generator, and there is none: remove it"
    trace = _read(TraceWorkload, raw.get("trace"), context)
    if trace is not None:
        try:
            read_trace(trace)
        except BadInput as fault:
            yield (*place, "trace", "file"), str(fault)
    made = _read(Generator, raw.get("generator"), context)
    if made is not None and (made.jobs is None) == (raw.get("load") is None):
        yield (*place, "generator"), "give either its number of jobs or workload.load"
    kinds = [_read(Elastic, kind, context) for kind in _list(raw.get("elastic"))]
    if kinds and raw.get("suspend") is None:
        yield (*place, "elastic"), "jobs are scaled between two run segments: give suspend, too"
    if sum(kind.share for kind in kinds if kind is not None) > 1.0 + _ROUNDING:
        yield (*place, "elastic"), "the shares of all kinds are more than 1 together"
    if made is not None and made.runtime_shortest > made.runtime_longest:
        yield (*place, "generator", "runtime_shortest"), "is longer than runtime_longest"


def _data(
    content: Mapping[str, Any], grids: Mapping[str, Any], context: Mapping[str, Any]
) -> FaultsByPlace:
    workload, network = _mapping(content.get("workload")), _mapping(content.get("network"))
    raw, place = _list(workload.get("data")), ("workload", "data")
    kinds = [_read(DataKind, kind, context) for kind in raw]
    if sum(kind.share for kind in kinds if kind is not None) > 1.0 + _ROUNDING:
        yield place, "the shares of all kinds are more than 1 together"
    named = [((*place, number, "zones"), kind.zones) for number, kind in enumerate(kinds) if kind]
    links = [_read(Between, link, context) for link in _list(network.get("links"))]
    linked = set[frozenset[str]]()
    for number, link in enumerate(links):
        if link is not None:
            where, pair = ("network", "links", number, "zones"), frozenset(link.zones)
            named.append((where, [*link.zones]))
            if not link.model_fields_set - {"zones"}:
                yield ("network", "links", number), "changes no value: remove it"
            if len(pair) == 1:
                yield where, "are the same: no data moves within a zone"
            if pair in linked:
                yield where, f"{' and '.join(link.zones)} are given twice"
            linked.add(pair)
    for where, zones in named:
        for zone in zones:
            if zone not in grids:
                yield where, f"{zone!r} has no grid{near(zone, grids)}; add it under grids"
    if network and workload and workload.get("data", []) == []:
        yield ("network",), "moves no data: give workload.data, or remove it"


def _trainings(
    raw: Mapping[str, Any], groups: list[Mapping[str, Any]], context: Mapping[str, Any]
) -> FaultsByPlace:
    names: set[str] = set()
    nodes = [_read(NodeGroup, group, context) for group in groups]
    for number, each in enumerate(_list(raw.get("trainings"))):
        training = _read(Training, each, context)
        if training is None:
            continue
        place = ("workload", "trainings", number)
        if training.name in names:
            yield (*place, "name"), f"{training.name!r} names other trainings already"
        names.add(training.name)
        if not all(_has_curve(node) for node in nodes):
            continue
        try:
            speed_with(training.gpu, nodes)
        except BadInput as fault:
            yield (*place, "gpu"), str(fault)


def _green_policy(content: Mapping[str, Any], context: Mapping[str, Any]) -> FaultsByPlace:
    path = _read(PolicyFile, content.get("green_policy"), context)
    if path is not None:
        try:
            read_policy_file(path)
        except BadInput as fault:
            yield ("green_policy",), str(fault)


def _has_curve(group: NodeGroup | None) -> bool:
    """Return whether a group is valid by itself, so that its speed is known."""
    return group is not None and (group.hardware or group.curve_watts) is not None


def _read(kind: Any, raw: Any, context: Mapping[str, Any]) -> Any:
    """Return a part if it is valid by itself, else None: its faults are reported elsewhere."""
    try:
        return TypeAdapter(kind).validate_python(raw, context=dict(context))
    except ValidationError:
        return None


def _mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _list(raw: Any) -> list[Any]:
    return raw if isinstance(raw, list) else []
