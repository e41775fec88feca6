"""Runs the whole benchmark: rounds of all strategies on one cluster, and their figures."""

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
from greensched_core.metering.prometheus import PrometheusApi
from greensched_extender.settings import ExtenderSettings
from greensched_testbed.replay import ReplayProgress
from greensched_testbed.stress.amounts import (
    MeterSources,
    ShippedAssumptions,
    amounts_by_meter,
    meter_of_all,
)
from greensched_testbed.stress.ground import Ground, looked_at
from greensched_testbed.stress.job_objects import Images
from greensched_testbed.stress.kubelet_meter import KubeletMeter
from greensched_testbed.stress.play import PlayedSuite, Setup, played_suite, pull_images
from greensched_testbed.stress.results import StrategyFigure, StressResult, figures_of
from greensched_testbed.stress.strategies import Strategy, order_of
from greensched_testbed.stress.suite import Suite, SuiteOptions, make_suite

SCRAPES_LAG_S = 60.0  # wait before queries, so that Prometheus has scraped the Jobs' ends


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """What is run, and how it is metered.

    prometheus_url: "" means no Prometheus. zone_map: grid zone by topology label. patience_s: wait
    at most so long after the last arrival; None: derive it from the suite's runtimes and deadlines.
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
    """How the benchmark reports its progress."""

    step: Callable[[str], None]
    progress: Callable[[str, ReplayProgress], None]


@dataclass(frozen=True, slots=True)
class BenchmarkedCluster:
    """The cluster on which the benchmark ran."""

    url: str
    version: str
    nodes: int
    cores: float
    zones: tuple[str, ...]
    hardware: Mapping[str, int]  # number of nodes, by hardware and source of its power curve
    is_played: bool


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """All runs, and the figures by one meter."""

    suite: Suite
    options: BenchmarkOptions
    cluster: BenchmarkedCluster
    currency: str
    results: tuple[StressResult, ...]
    meter: str | None  # by which all runs are compared; None: no meter measured all
    figures: Mapping[str, Mapping[str, StrategyFigure]]  # by strategy
    notes: tuple[str, ...]


async def run_benchmark(
    access: ApiAccess, options: BenchmarkOptions, output: ProgressOutput, clock: Clock | None = None
) -> BenchmarkOutcome:
    """Run every strategy in every round, and return the figures.

    When interrupted it deletes the namespace of the current run. Raises BadInput if no Job fits
    the nodes, ApiUnavailable if the API server does not answer or refuses an object.
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
        output.step(intention(suite, options, cluster))
        kubelet = None
        if not ground.is_played:  # kwok's nodes have no kubelet
            kubelet = KubeletMeter(client, list(ground.nodes), clock)
            await stack.enter_async_context(kubelet.asking())
        runs = await _all_rounds(client, suite, options, ground, clock, output)
        prometheus = await _prometheus(stack, options, output)
        assumed = ShippedAssumptions(shipped.default_pue, shipped.gpu_ratio)
        meters = MeterSources(ground, assumed, kubelet, prometheus)
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
    output: ProgressOutput,
) -> list[tuple[str, PlayedSuite]]:
    """Run all rounds; return the runs with the names of their namespaces."""
    setup = Setup(client, ground, options.images, clock)
    mark, runs = uuid.uuid4().hex[:6], []
    if not ground.is_played:  # kwok pulls nothing
        without = await pull_images(client, ground, options.images, f"stress-{mark}-pull", clock)
        output.step(
            f"{options.images.plain} was started on {len(ground.nodes) - len(without)} nodes"
        )
        for node, why in without.items():
            output.step(f"{node}: the image did not run there ({why}); Jobs there may wait for it")
    for number in range(options.rounds):
        for strategy in order_of(options.strategies, number):
            title = f"round {number + 1}, {strategy.name}"
            name = f"stress-{mark}-{number + 1}-{strategy.namespace_part}"
            progress = partial(output.progress, title)
            run = await played_suite(
                setup, suite, strategy, number, name, progress, options.patience_s
            )
            for line in troubles(run):
                output.step(line)
            runs.append((name, run))
    return runs


def troubles(run: PlayedSuite) -> list[str]:
    """Return a message for each Job of a run that did not complete, with the reason."""
    return [
        f"round {run.round + 1}, {run.strategy.name}: {each.job.name} "
        f"{each.end or 'did not end in time'}{f': {each.why}' if each.why else ''}"
        for each in run.runs
        if each.end != "completed"
    ]


async def _prometheus(
    stack: AsyncExitStack, options: BenchmarkOptions, output: ProgressOutput
) -> PrometheusApi | None:
    if not options.prometheus_url:
        return None
    output.step(
        f"waiting {options.scrapes_lag_s:.0f} s until Prometheus has scraped the ends of the Jobs"
    )
    await asyncio.sleep(options.scrapes_lag_s)
    http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
    return PrometheusApi(http, options.prometheus_url)


async def cluster_of(client: ApiClient, access: ApiAccess, ground: Ground) -> BenchmarkedCluster:
    """Return the description of the cluster for the results."""
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
    """Return a message that says what will run, and where."""
    span_s = max(options.suite.span_s, 1.0)
    share = suite.core_seconds / span_s / cluster.cores if cluster.cores else 0.0
    return (
        f"suite {suite.digest} (seed {options.suite.seed}): {len(suite.jobs)} Jobs within "
        f"{options.suite.span_s:.0f} s, about {share:.0%} of the {cluster.cores:g} cores of "
        f"{cluster.nodes} nodes at {cluster.url}; {options.rounds} rounds of "
        f"{', '.join(each.name for each in options.strategies)}"
    )
