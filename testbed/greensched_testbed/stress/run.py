"""The benchmark as a whole: rounds of all strategies on one cluster, and what they came to."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

import httpx
import msgspec

from greensched_core.clock import Clock, WallClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.power.prometheus import PrometheusApi
from greensched_extender.settings import ExtenderSettings
from greensched_testbed.replay import ReplayProgress
from greensched_testbed.stress.amounts import (
    AskedMeters,
    ShippedAssumptions,
    amounts_by_meter,
    meter_of_all,
)
from greensched_testbed.stress.ground import Ground, looked_at
from greensched_testbed.stress.job_objects import Images
from greensched_testbed.stress.kubelet_meter import KubeletMeter
from greensched_testbed.stress.play import PlayedSuite, Setup, played, pull_images
from greensched_testbed.stress.results import StrategyFigure, StressResult, figures_of
from greensched_testbed.stress.strategies import Strategy, order_of
from greensched_testbed.stress.suite import Suite, SuiteOptions, make_suite

SCRAPES_LAG_S = 60.0  # Prometheus is asked when it has scraped the ends


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """What is run, and how it is metered.

    prometheus_url: "" asks none. zone_map: grid zone by topology label. patience_s: after the last
    arrival; None: by the suite's runtimes and deadlines.
    """

    strategies: tuple[Strategy, ...]
    suite: SuiteOptions = field(default_factory=SuiteOptions)
    rounds: int = 3
    images: Images = field(default_factory=Images)
    prometheus_url: str = ""
    zone_map: Mapping[str, str] = field(default_factory=dict)
    patience_s: float | None = None
    scrapes_lag_s: float = SCRAPES_LAG_S


@dataclass(frozen=True, slots=True)
class ProgressOutput:
    """How the benchmark tells what it is doing."""

    step: Callable[[str], None]
    progress: Callable[[str, ReplayProgress], None]


@dataclass(frozen=True, slots=True)
class BenchmarkedCluster:
    """What was run on."""

    url: str
    version: str
    nodes: int
    cores: float
    zones: tuple[str, ...]
    hardware: Mapping[str, int]  # nodes by what their curve is of
    is_played: bool


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """All runs, and the figures by one meter."""

    suite: Suite
    options: BenchmarkOptions
    cluster: BenchmarkedCluster
    currency: str
    results: tuple[StressResult, ...]
    meter: str | None  # that all runs were compared by; None: none saw all
    figures: Mapping[str, Mapping[str, StrategyFigure]]  # by strategy
    notes: tuple[str, ...]


async def run_benchmark(
    access: ApiAccess, options: BenchmarkOptions, told: ProgressOutput, clock: Clock | None = None
) -> BenchmarkOutcome:
    """Run every strategy in every round, and return what they came to.

    Interrupted, it deletes the namespace of the run that was on. Raises BadInput where nothing
    fits the nodes, ApiUnavailable where the API server is away or refuses an object.
    """
    clock = clock or WallClock()
    shipped = ExtenderSettings.model_construct()
    signals = shipped.grid_signals()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(ApiClient(access))
        ground = await stack.enter_async_context(
            looked_at(client, options.zone_map, signals, clock)
        )
        suite = make_suite(options.suite, ground.room)
        cluster = await cluster_of(client, access, ground)
        told.step(intention(suite, options, cluster))
        kubelet = None
        if not ground.is_played:  # kwok's nodes have no kubelet
            kubelet = KubeletMeter(client, list(ground.nodes), clock)
            await stack.enter_async_context(kubelet.asking())
        runs = await _all_rounds(client, suite, options, ground, clock, told)
        prometheus = await _prometheus(stack, options, told)
        assumed = ShippedAssumptions(shipped.default_pue, shipped.gpu_ratio)
        meters = AskedMeters(ground, assumed, kubelet, prometheus)
        results, notes = [], list(ground.faults)
        for name, run in runs:
            amounts, faults = await amounts_by_meter(meters, name, run.runs)
            results.append(StressResult(run, amounts))
            notes += faults
    if kubelet is not None and kubelet.fault:
        notes.append(f"a kubelet was not read: {kubelet.fault}")
    meter = meter_of_all([result.amounts for result in results])
    figures = figures_of(results, meter)
    return BenchmarkOutcome(
        suite, options, cluster, signals.currency, tuple(results), meter, figures,
        tuple(dict.fromkeys(notes)),
    )  # fmt: skip


async def _all_rounds(
    client: ApiClient,
    suite: Suite,
    options: BenchmarkOptions,
    ground: Ground,
    clock: Clock,
    told: ProgressOutput,
) -> list[tuple[str, PlayedSuite]]:
    """Return the runs with the names of their namespaces."""
    setup = Setup(client, ground, options.images, clock)
    mark, runs = uuid.uuid4().hex[:6], []
    if not ground.is_played:  # kwok pulls nothing
        without = await pull_images(client, ground, options.images, f"stress-{mark}-pull", clock)
        told.step(f"{options.images.plain} was started on {len(ground.nodes) - len(without)} nodes")
        for node, why in without.items():
            told.step(f"{node}: the image did not run there ({why}); Jobs there may wait for it")
    for number in range(options.rounds):
        for strategy in order_of(options.strategies, number):
            title = f"round {number + 1}, {strategy.name}"
            name = f"stress-{mark}-{number + 1}-{strategy.namespace_part}"
            progress = partial(told.progress, title)
            run = await played(setup, suite, strategy, number, name, progress, options.patience_s)
            for line in troubles(run):
                told.step(line)
            runs.append((name, run))
    return runs


def troubles(run: PlayedSuite) -> list[str]:
    """Return in words which Jobs of a run did not complete, and why."""
    return [
        f"round {run.round + 1}, {run.strategy.name}: {each.job.name} "
        f"{each.end or 'did not end in time'}{f': {each.why}' if each.why else ''}"
        for each in run.runs
        if each.end != "completed"
    ]


async def _prometheus(
    stack: AsyncExitStack, options: BenchmarkOptions, told: ProgressOutput
) -> PrometheusApi | None:
    if not options.prometheus_url:
        return None
    told.step(
        f"waiting {options.scrapes_lag_s:.0f} s until Prometheus has scraped the ends of the Jobs"
    )
    await asyncio.sleep(options.scrapes_lag_s)
    http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
    return PrometheusApi(http, options.prometheus_url)


async def cluster_of(client: ApiClient, access: ApiAccess, ground: Ground) -> BenchmarkedCluster:
    """Return what the results say of the cluster."""
    version = msgspec.json.decode(await client.get("/version"))["gitVersion"]
    hardware: dict[str, int] = {}
    for node in ground.nodes.values():
        name = f"{node.hardware} (curve by {node.curve_source})"
        hardware[name] = hardware.get(name, 0) + 1
    return BenchmarkedCluster(
        access.base_url, version, len(ground.nodes),
        sum(node.cpu_cores for node in ground.nodes.values()), ground.zones, hardware,
        ground.is_played,
    )  # fmt: skip


def intention(suite: Suite, options: BenchmarkOptions, cluster: BenchmarkedCluster) -> str:
    """Return in words what will be run, and where."""
    span_s = max(options.suite.span_s, 1.0)
    share = suite.core_seconds / span_s / cluster.cores if cluster.cores else 0.0
    return (
        f"suite {suite.digest} (seed {options.suite.seed}): {len(suite.jobs)} Jobs within "
        f"{options.suite.span_s:.0f} s, about {share:.0%} of the {cluster.cores:g} cores of "
        f"{cluster.nodes} nodes at {cluster.url}; {options.rounds} rounds of "
        f"{', '.join(each.name for each in options.strategies)}"
    )
