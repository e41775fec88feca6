"""Observes the cluster during a benchmark: its nodes and their grids."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from greensched_core.api_paths import NODES
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.signals.chain import GridSignals
from greensched_core.signals.watched import GRID_SIGNALS_PATH, SignalSink, decode_signal
from greensched_core.state import Node
from greensched_core.watching import Watch
from greensched_operator.ledger.grid_history import NOTED_EVERY_S, GridHistory, known_from
from greensched_testbed.stress.suite import Room

_KWOK = "kwok.x-k8s.io/node"  # annotation of nodes that kwok plays
_TAINTED = ("NoSchedule", "NoExecute")  # effects that keep our Jobs away
_decode_node = msgspec.json.Decoder(NodeObject).decode


class _Taint(msgspec.Struct):
    effect: str = ""


class _LookSpec(msgspec.Struct):
    taints: list[_Taint] | None = None


class _NodeInfo(msgspec.Struct):
    kubeletVersion: str = ""


class _LookStatus(msgspec.Struct):
    nodeInfo: _NodeInfo = msgspec.field(default_factory=_NodeInfo)


class _LookMeta(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Look(msgspec.Struct):
    """The fields of a node that the benchmark reads and decisions do not."""

    metadata: _LookMeta
    spec: _LookSpec = msgspec.field(default_factory=_LookSpec)
    status: _LookStatus = msgspec.field(default_factory=_LookStatus)

    def takes_work(self) -> bool:
        return not any(taint.effect in _TAINTED for taint in self.spec.taints or ())

    def is_played(self) -> bool:
        is_marked = _KWOK in (self.metadata.annotations or {})
        return is_marked or self.status.nodeInfo.kubeletVersion.startswith("kwok")


_decode_look = msgspec.json.Decoder(_Look).decode


@dataclass(frozen=True, slots=True)
class GridNow:
    """A zone's grid at one time; None means no data."""

    carbon_g_per_kwh: float | None
    price_per_mwh: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Ground:
    """The nodes that take work, as GreenSched reads them, and the recorded grid history."""

    nodes: Mapping[str, Node]
    faults: tuple[str, ...]  # what could not be read from the nodes
    is_played: bool  # kwok plays the nodes: no container runs
    signals: GridSignals
    history: GridHistory

    @property
    def zones(self) -> tuple[str, ...]:
        """The grid zones, by name; a node without one has no carbon and no price."""
        return tuple(sorted({node.zone for node in self.nodes.values() if node.zone}))

    @property
    def room(self) -> Room:
        """What every node has at least."""
        nodes = self.nodes.values()
        return Room(
            min(node.cpu_cores for node in nodes),
            min(node.memory_bytes for node in nodes),
            any(node.gpu_count for node in nodes),
        )

    def grid_at(self, now_s: float) -> dict[str, GridNow]:
        """Return each zone's carbon and price at a time, with their source."""
        found = {}
        for zone in self.zones:
            state = self.signals.zone(zone, now_s)
            found[zone] = GridNow(state.carbon.value, state.price.value, state.carbon.source)
        return found


@asynccontextmanager
async def looked_at(
    client: ApiClient, zone_map: Mapping[str, str], signals: GridSignals, clock: Clock
) -> AsyncIterator[Ground]:
    """Read the nodes, then follow and record the grid's signals while the context is open.

    Raises ApiUnavailable if nodes may not be listed. Raises BadInput if no node takes work, or if
    kwok plays only some of those that do.
    """
    nodes, faults, is_played = await _read_nodes(client, zone_map)
    ground = Ground(nodes, faults, is_played, signals, GridHistory(known_from(signals), clock))
    following = [asyncio.create_task(_note(ground))]
    if await _has_signals(client):
        watch = Watch(client, GRID_SIGNALS_PATH, decode_signal, SignalSink(signals, clock), clock)
        following.append(asyncio.create_task(watch.run()))
        while not watch.health.synced:
            await asyncio.sleep(0.05)
    try:
        yield ground
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _read_nodes(
    client: ApiClient, zone_map: Mapping[str, str]
) -> tuple[dict[str, Node], tuple[str, ...], bool]:
    reader = NodeReader(PowerCatalogue(), zone_map)
    nodes: dict[str, Node] = {}
    faults: list[str] = []
    played: dict[str, bool] = {}
    async for page in client.pages(NODES):
        for raw in page.items:
            look, (node, reader_faults) = _decode_look(raw), reader.read(_decode_node(raw))
            if not (node.schedulable and node.cpu_cores > 0 and look.takes_work()):
                continue
            nodes[node.name] = node
            faults += [f"{node.name}: {fault}" for fault in reader_faults]
            played[node.name] = look.is_played()
    if not nodes:
        raise BadInput("the cluster has no node that takes work")
    if len(set(played.values())) > 1:  # the same Job would end on some nodes and never on others
        real = [name for name, is_played in played.items() if not is_played]
        raise BadInput(
            f"kwok plays {sum(played.values())} of the {len(played)} nodes that take work, but not "
            f"{', '.join(sorted(real)[:3])}{' and others' if len(real) > 3 else ''}: "
            "cordon one kind (kubectl cordon NODE)"
        )
    return nodes, tuple(faults), all(played.values())


async def _has_signals(client: ApiClient) -> bool:
    """Return whether GridSignals can be read; a cluster without GreenSched has none."""
    try:
        await client.get(GRID_SIGNALS_PATH, {"limit": 1})
    except ApiUnavailable as fault:
        if fault.status in (403, 404):
            return False
        raise
    return True


async def _note(ground: Ground) -> None:
    while True:
        ground.history.note(ground.zones)
        await asyncio.sleep(NOTED_EVERY_S)
