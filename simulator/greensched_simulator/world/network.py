"""The data that jobs read, its zones, and the costs of links between zones."""

from collections.abc import Sequence

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.moving import NO_LINKS
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.model import Scenario, ScenarioWorkload

_BITS_PER_GBIT = 1e9
_BYTES_PER_GB = 1e9


def links_of(scenario: Scenario) -> Floats:
    """Return the costs of bringing data from each zone to each, [4,Z,Z]; see `moving`."""
    zones = list(scenario.grids)
    if not scenario.workload.data or len(zones) == 1:
        return NO_LINKS
    network = scenario.network
    usual = (network.latency, network.gbit_per_s, network.kwh_per_gb, network.price_per_gb)
    links = np.broadcast_to(_link(*usual)[:, None, None], (4, len(zones), len(zones))).copy()
    for link in network.links:
        given = (link.latency, link.gbit_per_s, link.kwh_per_gb, link.price_per_gb)
        own = _link(*(u if each is None else each for each, u in zip(given, usual, strict=True)))
        first, second = (zones.index(zone) for zone in link.zones)
        links[:, first, second] = links[:, second, first] = own
    links[:, np.arange(len(zones)), np.arange(len(zones))] = 0.0
    return links


def _link(latency_s: float, gbit_per_s: float, kwh_per_gb: float, price_per_gb: float) -> Floats:
    """Return latency in seconds, then seconds, joules and money per byte."""
    return np.array([
        latency_s,
        8.0 / (gbit_per_s * _BITS_PER_GBIT),
        kwh_per_gb * JOULES_PER_KWH / _BYTES_PER_GB,
        price_per_gb / _BYTES_PER_GB,
    ])  # fmt: skip


def data_of_jobs(
    workload: ScenarioWorkload, zones: Sequence[str], count: int, seed: int
) -> tuple[Floats, Integers]:
    """Return bytes and zone of the data that each worker of a job reads, [J]; 0 bytes: none."""
    size, home = np.zeros(count), np.zeros(count, np.int64)
    shares = np.cumsum([kind.share for kind in workload.data])
    kind_of = np.searchsorted(shares, stream(seed, "jobs/data").random(count), side="right")
    drawn_size = stream(seed, "jobs/data/size").random(count)
    drawn_zone = stream(seed, "jobs/data/zone").random(count)
    for number, kind in enumerate(workload.data):
        is_kind = kind_of == number
        places = np.array([list(zones).index(zone) for zone in kind.zones or zones], np.int64)
        size[is_kind] = np.array(kind.size)[(drawn_size[is_kind] * len(kind.size)).astype(np.int64)]
        home[is_kind] = places[(drawn_zone[is_kind] * places.size).astype(np.int64)]
    return size, home
