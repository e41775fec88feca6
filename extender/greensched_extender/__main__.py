"""Starts and stops the extender: settings, logs, API client, watches, applications, servers."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import httpx
import msgspec
import structlog
import uvloop
from prometheus_client import disable_created_metrics

from greensched_core.api_paths import BOUND_AND_RUNNING, CRON_JOBS, JOBS, NODES, PODS
from greensched_core.clock import Clock
from greensched_core.custom_resources.policy_lookup import GREEN_POLICIES_PATH
from greensched_core.declarations import Declarations, OwnerDeclarations, OwnerObject
from greensched_core.errors import BadInput, TaskEnded
from greensched_core.kubernetes_api import ApiClient
from greensched_core.lateness import say_when_late
from greensched_core.logs import set_up_logs
from greensched_core.metering.measured import PowerReader
from greensched_core.metering.prometheus import PrometheusApi
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject, PodObject
from greensched_core.open_files import raise_file_limit
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.serving import Certificates, Server, keep_certificates, run_servers, server
from greensched_core.settings import load_settings, unknown_variables
from greensched_core.signals.watched import GRID_SIGNALS_PATH, SignalSink, decode_signal
from greensched_core.watching import Watch
from greensched_extender.app import Health, explain_app, extender_app
from greensched_extender.decisions import Decisions
from greensched_extender.explain import Explanations
from greensched_extender.gauges import Gauges, WatchesHealth
from greensched_extender.green_policies import GreenPolicies, decode_policy
from greensched_extender.grid import OutlookCache
from greensched_extender.metrics import ExtenderMetrics
from greensched_extender.policy_choice import PolicyChoice, PolicySettings
from greensched_extender.scoring import ScoringAssumptions
from greensched_extender.service import AnswerSettings, Extender, Knowledge
from greensched_extender.settings import ExtenderSettings
from greensched_extender.snapshot import Snapshot
from greensched_extender.upkeep import (
    keep_bundle,
    keep_measured,
    keep_provisional,
    settle_memory,
)
from greensched_extender.watch_cluster import (
    NodeSink,
    PodSink,
)
from greensched_policies.encoding.weights import Weights
from greensched_policies.learned.config_map import decode_config_map
from greensched_policies.library.loading import load

log = structlog.get_logger()

_LOOPBACK = "127.0.0.1"
_END_BY_THEMSELVES = frozenset({"memory"})  # tasks; every other one runs until it is cancelled


class Process:
    """All connected parts of an extender; nothing starts before `run`.

    Raises BadInput when a setting names something that cannot be used.
    """

    def __init__(
        self, settings: ExtenderSettings, client: ApiClient, http: httpx.AsyncClient, clock: Clock
    ) -> None:
        self._settings = settings
        self._client = client
        self._clock = clock
        self.metrics = ExtenderMetrics()
        self.decisions = Decisions(settings.decisions_max_bytes)
        self.snapshot = Snapshot(
            clock,
            utilisation_ratio=settings.utilisation_ratio,
            gpu_ratio=settings.gpu_ratio,
            default_pue=settings.default_pue,
            provisional_ttl_s=settings.provisional_ttl_s,
        )
        self.signals = settings.grid_signals(
            self.metrics.count_steps,
            lambda _, fault: self.metrics.signal_faults.labels(fault.reason).inc(),
        )
        self.grid = OutlookCache(self.signals.zone, self.signals.zone_means)
        self.choice = self._policy_choice()
        self.assumptions = ScoringAssumptions(
            settings.utilisation_ratio,
            settings.gpu_ratio,
            settings.empty_nodes_sleep,
            settings.default_runtime_s,
        )
        self.policies = self._green_policies()
        self.declarations = Declarations()
        self._watches(client)
        self.known = self._knowledge()
        self.extender = self._extender(client)
        self._reader = PowerReader(
            PrometheusApi(http, settings.prometheus_url, timeout_s=settings.prometheus_timeout_s),
            cpu_cores=self.cpu_cores,
        )
        self._tasks: list[asyncio.Task[None]] = []

    def cpu_cores(self, node_name: str) -> float | None:
        """Return the CPU cores of a node in the snapshot; None for other nodes."""
        report = self.snapshot.report(node_name)
        return report.node.cpu_cores if report and report.node else None

    def _green_policies(self) -> GreenPolicies:
        settings, metrics = self._settings, self.metrics
        return GreenPolicies(
            Weights(settings.weight_cost, settings.weight_carbon, settings.weight_performance),
            settings.policy_namespace,
            lambda part: metrics.policy_faults.labels(part).inc(),
        )

    def _knowledge(self) -> Knowledge:
        return Knowledge(
            self.snapshot,
            self.watches.snapshot_age_s,
            self.grid,
            self.declarations,
            self.policies,
        )

    def _policy_choice(self) -> PolicyChoice:
        settings, metrics = self._settings, self.metrics
        return PolicyChoice(
            PolicySettings(
                settings.policy,
                settings.bundle,
                settings.fallback_policy,
                settings.model_budget_ms / 1e3,
            ),
            monotonic=self._clock.monotonic,
            count=lambda reason: metrics.guard_fallbacks.labels(reason.value).inc(),
            count_load=lambda outcome: metrics.bundle_loads.labels(outcome).inc(),
        )

    def _watches(self, client: ApiClient) -> None:
        clock = self._clock
        reader = NodeReader(PowerCatalogue(), self._settings.zone_map)
        self._nodes = Watch(
            client,
            NODES,
            msgspec.json.Decoder(NodeObject).decode,
            NodeSink(self.snapshot, reader),
            clock,
        )
        self._pods = Watch(
            client,
            PODS,
            msgspec.json.Decoder(PodObject).decode,
            PodSink(
                self.snapshot,
                self.decisions,
                clock,
                scheduler_names=frozenset(self._settings.scheduler_names),
                count_binding=self.metrics.count_binding,
            ),
            clock,
            field_selector=BOUND_AND_RUNNING,
        )
        signals = SignalSink(self.signals, clock)
        self._grid_signals = Watch(client, GRID_SIGNALS_PATH, decode_signal, signals, clock)
        self._jobs = self._owners_watch(client, JOBS, self.declarations.jobs)
        self._cron_jobs = self._owners_watch(client, CRON_JOBS, self.declarations.cron_jobs)
        self._policy_watches(client)
        self.watches = WatchesHealth(
            clock,
            needed={"nodes": self._nodes.health, "pods": self._pods.health},
            optional={
                "gridsignals": self._grid_signals.health,
                "jobs": self._jobs.health,
                "cronjobs": self._cron_jobs.health,
                "greenpolicies": self._policies.health,
                "configmaps": self._bundles.health,
            },
        )

    def _policy_watches(self, client: ApiClient) -> None:
        clock, namespace = self._clock, self._settings.policy_namespace
        self._policies = Watch(client, GREEN_POLICIES_PATH, decode_policy, self.policies, clock)
        config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
        self._bundles = Watch(client, config_maps, decode_config_map, self.choice.bundles, clock)

    def _owners_watch(
        self, client: ApiClient, path: str, sink: OwnerDeclarations
    ) -> Watch[OwnerObject]:
        return Watch(client, path, msgspec.json.Decoder(OwnerObject).decode, sink, self._clock)

    def _extender(self, client: ApiClient) -> Extender:
        settings = self._settings
        return Extender(
            AnswerSettings(
                frozenset(settings.scheduler_names),
                self.assumptions,
                settings.filter_enabled,
                settings.snapshot_max_age_s,
            ),
            self.known,
            choice=self.choice,
            decisions=self.decisions,
            metrics=self.metrics,
            clock=self._clock,
            binder=client if settings.bind_enabled else None,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then end requests, servers and tasks, in that order.

        Raises TaskEnded if a task or a server ended before; a task that ends sets `stop`.
        """
        verbs, explanations = self._make_servers()
        for name, work in self._work(verbs).items():
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(lambda ended: stop.set() if _ended(ended) else None)
            self._tasks.append(task)
        listening = asyncio.create_task(_say_when_listening(verbs, explanations))
        late_warning = asyncio.create_task(
            say_when_late(self.watches.missing, self._client, self._settings)
        )
        try:
            await run_servers([verbs, explanations], stop)
        finally:
            ended = self.alive()
            for each in (*self._tasks, listening, late_warning):
                each.cancel()
            await asyncio.gather(*self._tasks, listening, late_warning, return_exceptions=True)
        if ended:
            raise TaskEnded(ended)

    def alive(self) -> str:
        """Return "" while every task runs, else which ones ended; only a bug ends a task."""
        ended = [task.get_name() for task in self._tasks if task.done() and _ended(task)]
        return f"ended: {', '.join(ended)}" if ended else ""

    def _make_servers(self) -> tuple[Server, Server]:
        settings = self._settings
        gauges = Gauges(
            self.metrics,
            snapshot=self.snapshot,
            watches=self.watches,
            choice=self.choice,
            grid=self.grid,
            clock=self._clock,
        )
        explanations = Explanations(
            known=self.known,
            choice=self.choice,
            decisions=self.decisions,
            assumptions=self.assumptions,
            watches=self.watches.describe,
            clock=self._clock,
        )
        verbs = extender_app(
            self.extender,
            self.metrics,
            Health(self.alive, self.watches.missing),
            gauges.set,
            max_body_bytes=settings.max_body_bytes,
        )
        self._certificates = _certificates(settings)
        host, port, refuse = settings.listen_host, settings.listen_port, self.metrics.refuse
        return (
            server(verbs, host, port, self._certificates, refuse),
            server(explain_app(explanations), _LOOPBACK, settings.explain_port, refused=refuse),
        )

    def _work(self, verbs: Server) -> dict[str, Coroutine[Any, Any, None]]:
        settings = self._settings
        work: dict[str, Coroutine[Any, Any, None]] = {
            "nodes": self._nodes.run(),
            "pods": self._pods.run(),
            "gridsignals": self._grid_signals.run(),
            "jobs": self._jobs.run(),
            "cronjobs": self._cron_jobs.run(),
            "greenpolicies": self._policies.run(),
            "configmaps": self._bundles.run(),
            "policy-bundles": self.choice.bundles.keep_loading(),
            "memory": settle_memory(self.watches),
            "provisional": keep_provisional(self.snapshot),
            "bundle": keep_bundle(self.choice, self.metrics),
        }
        if settings.prometheus_url:
            work["prometheus"] = keep_measured(
                self._reader,
                self.snapshot,
                self.metrics,
                self._clock,
                interval_s=settings.prometheus_interval_s,
            )
        if self._certificates is not None and verbs.config.ssl is not None:
            work["certificates"] = keep_certificates(verbs.config.ssl, self._certificates)
        return work


def _ended(task: asyncio.Task[None]) -> bool:
    if task.cancelled():
        return False
    return task.exception() is not None or task.get_name() not in _END_BY_THEMSELVES


async def _say_when_listening(verbs: Server, explanations: Server) -> None:
    while not (verbs.started and explanations.started):
        await asyncio.sleep(0.01)
    log.info("listening", port=verbs.port, explain_port=explanations.port)


def _certificates(settings: ExtenderSettings) -> Certificates | None:
    if settings.tls_cert_file is None or settings.tls_key_file is None:
        return None
    return Certificates(settings.tls_cert_file, settings.tls_key_file, settings.tls_client_ca_file)


async def serve(settings: ExtenderSettings) -> None:
    """Run an extender until SIGTERM or SIGINT; raise BadInput when it cannot start."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with (
        ApiClient(settings.api_access()) as client,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        await Process(settings, client, http, settings.clock).run(stop)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the extender; return 2 for a wrong setting, 1 if a task or a server ended."""
    try:
        settings = load_settings(ExtenderSettings, arguments)
        set_up_logs("extender", settings.log_level)
        raise_file_limit()
        load()
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they are half of all lines, and unused
        for name in unknown_variables(ExtenderSettings, os.environ):
            log.warning("unknown setting in the environment, ignored", variable=name)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings))
    except BadInput as fault:
        print(f"greensched_extender: {fault}", file=sys.stderr)
        return 2
    except TaskEnded as fault:
        log.error("a task ended, so the process ends", reason=str(fault))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
