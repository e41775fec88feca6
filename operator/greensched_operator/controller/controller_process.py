"""The controller's process: waits to lead, then watches, plans and releases until stopped."""

import asyncio
import socket
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import httpx
import msgspec
import structlog
from starlette.applications import Starlette

from greensched_core.api_paths import (
    BOUND_AND_RUNNING,
    CRON_JOBS,
    NODES,
    PODS,
    UNBOUND,
    config_maps_path,
)
from greensched_core.clock import Clock, WallClock
from greensched_core.errors import TaskEnded
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.lateness import say_when_late
from greensched_core.objects import NodeObject
from greensched_core.serving import run_servers, server, until_set
from greensched_core.signals.watched import SignalSink
from greensched_core.watching import Watch
from greensched_operator.controller.arrivals import Arrivals
from greensched_operator.controller.controller import Controller, ControllerPace, Planning
from greensched_operator.controller.default_policy import DefaultPolicy
from greensched_operator.controller.handlers import JobEvents
from greensched_operator.controller.job_watch import JobWatch
from greensched_operator.controller.kept_budgets import KeptBudgets
from greensched_operator.controller.outputs import Outputs
from greensched_operator.controller.pauser import Pauser
from greensched_operator.controller.pod_watch import GatedPods
from greensched_operator.controller.policy_status import (
    PolicyStatus,
    policy_watch,
)
from greensched_operator.controller.recording import Recorder
from greensched_operator.holding.judging import HoldRules, MayWait
from greensched_operator.kueue.kueue_controller import KueueController
from greensched_operator.ledger.energy_service import EnergyService
from greensched_operator.ledger.ledger_service import LedgerService
from greensched_operator.objects import watched
from greensched_operator.objects.cron_jobs import CronJob, read_cron_job
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy, Resolved, resolve
from greensched_operator.objects.job_power_profile import JobPowerProfile, ParsedProfile
from greensched_operator.objects.placed_pods import PlacedPod
from greensched_operator.objects.policy_objects import PolicyObject, named_profile, profile_watch
from greensched_operator.planning.budgets import Budgets
from greensched_operator.planning.busy_cores import BusyCores
from greensched_operator.planning.cluster_state import ClusterNodes, RunningPod, RunningPods, Zone
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.planning.outlooks import outlooks_of
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_operator.planning.when_choice import BundleSink, WhenChoice
from greensched_operator.runtime.heartbeat import Heartbeat, speed_note
from greensched_operator.runtime.leader import Leadership
from greensched_operator.runtime.lease_renewal import LeaseRenewal
from greensched_operator.runtime.own_lease import OwnLease
from greensched_operator.runtime.process_watches import Followed, ProcessWatches
from greensched_operator.runtime.processes import Tasks
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.signals.grid_signal_controller import (
    GridSignalController,
    make_grid_signal_controller,
    signal_watch,
)
from greensched_operator.signals.metrics import SignalMetrics
from greensched_operator.signals.web import make_http
from greensched_operator.webhook.certificate_controller import CertificateController
from greensched_operator.webhook.webhook_app import health_app
from greensched_operator.writing.metrics import ControllerError, ControllerMetrics
from greensched_operator.writing.outbox import Outbox
from greensched_operator.writing.writing import Writer
from greensched_policies.learned.config_map import decode_config_map
from greensched_policies.planning.planning import Running

log = structlog.get_logger()

_NO_ZONES = (Zone("", 1e9, 0.0),)  # without nodes: an autoscaler creates them


class ControllerProcess:
    """All parts of the controller, wired; nothing starts before `run`."""

    def __init__(
        self, settings: OperatorSettings, access: ApiAccess, client: ApiClient, clock: Clock
    ) -> None:
        self._settings, self._access, self._client, self._clock = settings, access, client, clock
        self.metrics, schedulers = ControllerMetrics(), frozenset(settings.scheduler_names)
        self._web, self._signal_controller = self._make_grid_signal_controller()
        self.works = HeldWorks(schedulers)
        self.nodes = ClusterNodes(settings.zone_map, settings.power_assumptions,
                                  lambda: self.controller.rejudge())  # fmt: skip
        self.signals = settings.grid_signals()
        self.outbox = Outbox(settings.releases_per_second)
        lost = self.metrics.fallbacks.labels(ControllerError.PLACEMENT_NOT_RECORDED).inc
        self.ledger = LedgerService(settings, access, client, clock, self.metrics.registry, lost)
        self._watches: list[Followed] = []
        self.followed = ProcessWatches(self._watches, settings.lease_duration_s, WallClock())
        self.lease = _lease_renewal(settings, access, self.followed)
        self.pods = RunningPods(
            schedulers, BUILT_IN.default_runtime_s, clock, self.ledger.placements.take,
            lambda uid, speed: self.works.expected_s(uid, self.rules(), speed), self.nodes.speed_of,
        )  # fmt: skip
        self.budgets, self._busy = Budgets(), BusyCores(clock.now())
        recorder = self._make_recorder()
        self.when = WhenChoice(lambda reason: self.metrics.fallbacks.labels(reason).inc())
        writer = Writer(client, clock, WallClock(), self.metrics,
                        may_write=self.lease.holds, gone=self.works.drop)  # fmt: skip
        self.kueue = KueueController(client, self.works, writer, settings.scheduler_names[0],
                                 self.lease.holds)  # fmt: skip
        self.controller = self._make_controller(writer, recorder)
        self.policies = watched.Objects[GreenPolicy](self.controller.rejudge)
        self.cron_jobs = watched.Objects[CronJob](self.controller.rejudge_runs)
        self.emergency = watched.Objects[watched.EmergencyConfigMap](self.controller.rejudge)
        self._policy_objects = watched.Objects[PolicyObject[GreenPolicy]]()
        self._seen_profiles: dict[tuple[str, str], JobPowerProfile | None] = {}
        self._profiles = watched.Objects[PolicyObject[ParsedProfile]](self._see_profile)
        self._own_watches = self._make_watches()
        self._events = JobEvents(self.works, self.controller.wake, self.metrics, self.kueue)
        identity = settings.identity or socket.gethostname()
        self._jobs = JobWatch(self._events, access, identity, WallClock())
        self._watches += [*self._own_watches, self._jobs]
        self._tasks, self._lease_tasks = Tasks(), Tasks()

    def _make_controller(self, writer: Writer, recorder: Recorder) -> Controller:
        settings, clock = self._settings, self._clock
        outputs = Outputs(self.outbox, writer, recorder, self.metrics)
        pauser = Pauser(
            self.works, self.pods.by_owner, self.nodes.zone_of, outputs, clock, self.rules
        )
        return Controller(
            self.works,
            Arrivals(outputs, WallClock(), self._pod_runs.speed),
            Planning(self.rules, self.situation, plan_starts),
            outputs,
            pauser,
            clock,
            ControllerPace(settings.clock_rate, settings.replan_every_s),
        )

    def _make_grid_signal_controller(self) -> tuple[httpx.AsyncClient, GridSignalController]:
        web, metrics = make_http(), SignalMetrics(self.metrics.registry)
        return web, make_grid_signal_controller(
            self._settings, self._client, self._clock, metrics, web
        )

    def _make_recorder(self) -> Recorder:
        """Return the recorder, and create the energy service that adds measurements."""
        settings, clock, write = self._settings, self._clock, self.ledger.write
        registry = self.metrics.registry
        self.energy = EnergyService(settings, self.nodes, self.signals, write, registry, clock)
        recorder = Recorder(
            write, self.budgets, clock, settings.currency, self.energy.ended, self.pods
        )
        self._pod_runs = self.energy.runs_before(self.pods, recorder.pod_ended)
        return recorder

    def rules(self) -> HoldRules:
        """Return the current rules for all workloads."""
        is_emergency_release = len(self.emergency) > 0
        return HoldRules(
            self._policy_for,
            self.cron_jobs.get,
            is_emergency_release,
            self._profile,
            self._settings.resume_s,
            self.nodes.slowest_speed,
        )

    def _see_profile(self, seen: PolicyObject[ParsedProfile]) -> None:
        """Judge all work again if a profile's phases have changed; ignore its status."""
        key, phases = (seen.namespace, seen.name), self._profile(seen.namespace, seen.name)
        if self._seen_profiles.get(key) != phases:
            self.controller.rejudge()
        self._seen_profiles[key] = phases

    def _profile(self, namespace: str, name: str) -> JobPowerProfile | None:
        return named_profile(self._profiles, namespace, name)

    def _policy_for(self, namespace: str, name: str) -> Resolved:
        return resolve(self.policies.by_name, namespace, name, self._settings.namespace)

    def situation(self, earlier_plans: Sequence[Planned]) -> Situation:
        """Return the current input of planning."""
        settings, now_s = self._settings, self._clock.now()
        zones = tuple(self.nodes.zones()) or _NO_ZONES
        names, pods = [zone.name for zone in zones], list(self.pods)
        running = self._running(names, pods)
        outlooks = outlooks_of(self.signals, names, now_s, settings.horizon_s)
        return Situation(
            now_s=now_s,
            zones=zones,
            outlooks=outlooks,
            running=running,
            earlier_plans=tuple(earlier_plans),
            zones_for=self._zones_for,
            when_for=self.when.at(now_s, outlooks.outlook, self.nodes.mean_memory_bytes()),
            opens_s=partial(self._opens_s, now_s),
            jitter_s=settings.release_jitter_s,
            busy_share=self._busy.note(zones, running, now_s),
            queued=self.works.queue.without({pod.owner for pod in pods}),
        )

    def _opens_s(self, now_s: float, waiting: MayWait) -> float:
        if waiting.work.is_paused:
            return float("-inf")  # its budget was spent when it first started
        return self.budgets.opens_s(waiting.work.namespace, waiting.policy.budget, now_s)

    def _running(self, zones: Sequence[str], pods: Sequence[RunningPod]) -> tuple[Running, ...]:
        places = {name: place for place, name in enumerate(zones)}
        placed = ((places.get(self.nodes.zone_of(pod.node) or ""), pod) for pod in pods)
        return tuple(
            Running(place, pod.until_s, pod.cpu_cores, pod.gpus, pod.memory_bytes)
            for place, pod in placed
            if place is not None
        )

    def _zones_for(self, waiting: MayWait) -> frozenset[str]:
        selector = tuple(sorted(waiting.work.node_selector.items()))
        return self.nodes.zones_with(selector) if selector else frozenset()

    def _make_watches(self) -> list[Watch[Any]]:
        wall, client, clock = WallClock(), self._client, self._clock
        changed = self.controller.replan
        configmaps = config_maps_path(self._settings.namespace)
        others = f"metadata.name!={self._settings.budgets_config_map}"
        return [
            policy_watch(client, self._policy_objects, self.policies, wall),
            profile_watch(client, self._profiles, wall),
            Watch(client, CRON_JOBS, read_cron_job, self.cron_jobs, wall),
            Watch(
                client, configmaps, watched.decode_emergency_config_map, self.emergency, wall,
                field_selector=f"metadata.name={watched.EMERGENCY}",
            ),
            Watch(
                client, configmaps, decode_config_map, BundleSink(self.when, changed), wall,
                field_selector=f"metadata.name!={watched.EMERGENCY},{others}",
            ),
            signal_watch(
                client, SignalSink(self.signals, clock, changed), self._signal_controller, wall
            ),
            Watch(client, NODES, msgspec.json.Decoder(NodeObject).decode, self.nodes, wall),
            Watch(
                client, PODS, msgspec.json.Decoder(PlacedPod).decode,
                self._pod_runs, wall, field_selector=BOUND_AND_RUNNING,
            ),
            Watch(
                client, PODS, bytes,
                GatedPods(self.works, self.controller.wake, self.metrics), wall,
                field_selector=UNBOUND,
            ),
        ]  # fmt: skip

    def ready(self) -> str:
        """Return "" while a leader sees all it must, or a standby can read the Lease."""
        return self.followed.unseen() if self.lease.leading.is_set() else self.lease.unread()

    async def run(self, stop: asyncio.Event) -> None:
        """Stand by, lead, and end when `stop` is set.

        Raises TaskEnded if a task or a server ended, also if it lost the Lease or may not watch.
        """
        settings = self._settings
        health = server(
            health_app(self.metrics.registry, self.alive, self.ready),
            settings.health_host,
            settings.health_port,
        )
        ledger = server(Starlette(routes=self.ledger.routes()), "127.0.0.1", settings.ledger_port)
        serving = asyncio.create_task(run_servers([health, ledger], stop))
        leading = asyncio.create_task(self._lead(stop))
        late_report = asyncio.create_task(say_when_late(self.ready, self._client, settings))
        try:
            await asyncio.wait([serving, leading], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            late_report.cancel()
            ended = await asyncio.gather(serving, leading, return_exceptions=True)
            await self._tasks.stop()
            await self._lease_tasks.stop()
        for fault in ended:
            if isinstance(fault, BaseException):
                raise fault
        self._lease_tasks.raise_failed()
        self._tasks.raise_failed()

    async def _lead(self, stop: asyncio.Event) -> None:
        """Wait for the Lease, and lead until it is lost; give it up last of all."""
        lease = self.lease
        self._lease_tasks.start({"lease": lease.run()})
        await until_set(stop, lease.leading, self._lease_tasks.failed)
        if lease.leading.is_set() and not stop.is_set():
            self.metrics.leading.set_function(lambda: float(lease.holds()))
            self.when.load_shipped()
            self.ledger.start()
            self.followed.begin(self.metrics.watch_age)
            self._tasks.start(self._work())
            ends = (lease.lost, self.followed.refused, self._tasks.failed, self._lease_tasks.failed)
            await until_set(stop, *ends)
            self.metrics.leading.set_function(lambda: 0.0)
            await self._tasks.stop()
            await self.ledger.stop()
        await self._lease_tasks.stop()
        if lease.lost.is_set():
            raise TaskEnded("ended: another replica holds the Lease now")
        if self.followed.refused.is_set():
            raise TaskEnded(
                "ended: the API server refuses this replica a watch; another may be allowed"
            )

    def alive(self) -> str:
        """Return "" while all tasks run; a stuck event loop does not answer at all."""
        still = self.followed.stuck() if self.lease.leading.is_set() else ""
        return self._lease_tasks.alive() or self._tasks.alive() or still

    def _work(self) -> dict[str, Coroutine[Any, Any, None]]:
        controller = CertificateController(self._settings, self._client, WallClock())
        watching = {
            f"{each.path}-{place}": each.run() for place, each in enumerate(self._own_watches)
        }
        status = PolicyStatus(
            self._client, WallClock(), self.when.fault_of,
            lambda: list(self._policy_objects), lambda: list(self._profiles),
        )  # fmt: skip
        return {
            **watching,
            "status": status.run(),
            **self._default_policy(),
            **self._kueue_tasks(),
            "kopf": self._jobs.run(),
            "gone": self._events.forget_gone(self._client),
            "watches": self.followed.run(is_blind=self.lease.is_blind),
            "heartbeat": self._heartbeat(),
            "certificate": controller.run(),
            "signals": self._update_signals(),
            "placements": self.ledger.placements.run(),
            "energy": self.energy.run(),
            "outbox": self.outbox.run(),
            "controller": self._decide(),
        }

    async def _update_signals(self) -> None:
        async with self._web:
            await self._signal_controller.run()

    def _heartbeat(self) -> Coroutine[Any, Any, None]:
        settings, name = self._settings, self._settings.heartbeat_lease
        identity = settings.identity or socket.gethostname()
        lease = OwnLease(self._client, settings.namespace, name, identity)
        noted = partial(speed_note, self.nodes.slowest_speed)
        beating = Heartbeat(lease, lambda: self.lease.holds() and self.followed.sees(), noted)
        return beating.run(self.metrics.heartbeat)

    def _kueue_tasks(self) -> dict[str, Coroutine[Any, Any, None]]:
        if not self._settings.kueue:
            return {}
        return {"kueue": self.kueue.run(self.controller.wake, self.followed.follow)}

    def _default_policy(self) -> dict[str, Coroutine[Any, Any, None]]:
        file = self._settings.default_policy_file
        if file is None:
            return {}
        return {"policy": DefaultPolicy(file, self._settings, self._client).run()}

    async def _decide(self) -> None:
        """Take turns once all watches have listed; budgets may be recalled later."""
        settings = self._settings
        path = f"{config_maps_path(settings.namespace)}/{settings.budgets_config_map}"
        kept = KeptBudgets(self.budgets, self._client, path, self._clock, self.lease.holds,
                           lambda error: self.metrics.fallbacks.labels(error).inc())  # fmt: skip
        async with asyncio.TaskGroup() as group:
            group.create_task(kept.run())
            await kept.recalled()
            while not all(each.health.synced for each in self._own_watches):
                await asyncio.sleep(0.05)
            await self.controller.run()


def _lease_renewal(
    settings: OperatorSettings, access: ApiAccess, followed: ProcessWatches
) -> LeaseRenewal:
    client = ApiClient(access, timeout_s=settings.lease_duration_s / 3)
    identity = settings.identity or socket.gethostname()
    leadership = Leadership(
        OwnLease(client, settings.namespace, settings.lease, identity),
        duration_s=settings.lease_duration_s,
        sees=partial(followed.may_see, client),
    )
    return LeaseRenewal(client, leadership, settings.lease_duration_s)
