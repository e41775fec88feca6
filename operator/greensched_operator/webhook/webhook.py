"""The webhook's process: watches the inputs of its answers, and serves over TLS."""

import asyncio
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from greensched_core.api_paths import CONFIGURATIONS, CRON_JOBS, config_maps_path, leases_path
from greensched_core.clock import Clock, WallClock
from greensched_core.custom_resources.policy_lookup import GREEN_POLICIES_PATH
from greensched_core.kubernetes_api import ApiClient
from greensched_core.lateness import say_when_late
from greensched_core.serving import (
    Certificates,
    Server,
    keep_certificates,
    run_servers,
    server,
    until_set,
)
from greensched_core.watching import Watch
from greensched_operator.holding.judging import HoldRules
from greensched_operator.objects import watched
from greensched_operator.objects.cron_jobs import CronJob, read_cron_job
from greensched_operator.objects.green_policy import GreenPolicy, Resolved, resolve
from greensched_operator.objects.job_power_profile import ParsedProfile
from greensched_operator.objects.policy_objects import PolicyObject, named_profile, profile_watch
from greensched_operator.runtime.heartbeat import Lease, LeaseHeartbeat, decode_lease
from greensched_operator.runtime.process_watches import ProcessWatches
from greensched_operator.runtime.processes import Tasks
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.admission import ReviewSurroundings
from greensched_operator.webhook.certificate import Pair, read_secret
from greensched_operator.webhook.metrics import WebhookMetrics
from greensched_operator.webhook.trust import Configuration, Trust, decode_configuration
from greensched_operator.webhook.webhook_app import Webhook, health_app, webhook_app

log = structlog.get_logger()

SIGN_OF_LIFE = "a sign of life of the leader or a releaser"


class _PairSink:
    """Writes the newest pair to the files that the server reads."""

    def __init__(self, folder: Path) -> None:
        self.files = Certificates(folder / "tls.crt", folder / "tls.key")
        self.certificate = b""
        self.arrived = asyncio.Event()

    def list_began(self) -> None:
        """Do nothing at the begin of a list."""

    def list_ended(self) -> None:
        """Do nothing: without a Secret, the last pair stays in use."""

    def upsert(self, item: Pair | None) -> None:
        """Write the pair of an added or changed Secret."""
        if item is None:
            return
        for path, content in ((self.files.key, item.key), (self.files.cert, item.cert)):
            fresh = path.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_bytes(content)
            os.replace(fresh, path)
        self.certificate = item.cert
        self.arrived.set()

    def remove(self, item: Pair | None) -> None:
        """Do nothing: without a Secret, the last pair stays in use."""


class WebhookProcess:
    """All parts of the webhook, wired; nothing starts before `run`."""

    def __init__(self, settings: OperatorSettings, client: ApiClient, clock: Clock) -> None:
        self._settings = settings
        self._client = client
        self.metrics = WebhookMetrics()
        self.policies = watched.Objects[GreenPolicy]()
        self.cron_jobs = watched.Objects[CronJob]()
        self.profiles = watched.Objects[PolicyObject[ParsedProfile]]()
        self.emergency = watched.Objects[watched.EmergencyConfigMap]()
        self._heartbeat = LeaseHeartbeat()
        self._trust = Trust()
        self._pair: _PairSink | None = None
        wall = WallClock()
        self._watches: list[Watch[Any]] = [
            Watch(
                client,
                GREEN_POLICIES_PATH,
                watched.decode_green_policy,
                self.policies,
                WallClock(),
            ),
            Watch(client, CRON_JOBS, read_cron_job, self.cron_jobs, wall),
            profile_watch(client, self.profiles, wall),
            Watch(
                client,
                config_maps_path(settings.namespace),
                watched.decode_emergency_config_map,
                self.emergency,
                wall,
                field_selector=f"metadata.name={watched.EMERGENCY}",
            ),
            self._heartbeat_watch(),
            self._trust_watch(),
        ]
        self.followed = ProcessWatches([*self._watches], settings.lease_duration_s, wall)
        self._webhook = Webhook(self.surroundings, self.metrics, clock)
        self.tasks = Tasks()
        self.serving: Server | None = None
        self.health: Server | None = None

    def surroundings(self) -> ReviewSurroundings:
        """Return the current input of decisions."""
        return ReviewSurroundings(
            frozenset(self._settings.scheduler_names),
            HoldRules(
                self.policy_for,
                self.cron_jobs.get,
                is_emergency_release=len(self.emergency) > 0,
                profile=partial(named_profile, self.profiles),
                slowest_speed=self._heartbeat.slowest_speed,
            ),
            kueue_gated_by=self._settings.kueue_gated_by,
            is_releasable=self._heartbeat.is_heard,
        )

    def policy_for(self, namespace: str, name: str) -> Resolved:
        """Return the GreenPolicy for work in a namespace; `name` is the one it names, or ""."""
        return resolve(self.policies.by_name, namespace, name, self._settings.namespace)

    def ready(self) -> str:
        """Return "" once the webhook has its inputs and listens, else what it waits for."""
        missing = [each.path for each in self._watches if not each.health.synced]
        pair, settings = self._pair, self._settings
        if pair is not None and pair.arrived.is_set() and not self._trust.trusts(pair.certificate):
            missing.append(
                "the API server's trust in its certificate, which the controller writes into"
                f" MutatingWebhookConfiguration {settings.webhook_configuration}"
            )
        if self.serving is None or not self.serving.started:
            secret = f"{settings.namespace}/{settings.webhook_secret}"
            missing.append(f"the certificate in Secret {secret}, which the controller makes")
        # A new replica would hold nothing until it hears a heartbeat, even if others are alive.
        if not (self._heartbeat.is_heard or self._heartbeat.has_listened):
            missing.append(SIGN_OF_LIFE)
        return f"waits for {', '.join(missing)}" if missing else ""

    def alive(self) -> str:
        """Return "" while all tasks run and no watch is stuck."""
        return self.tasks.alive() or self.followed.stuck()

    async def run(self, stop: asyncio.Event) -> None:
        """Wait for a certificate, and serve until `stop` is set.

        Raises TaskEnded if a task or a server ended before; that also sets `stop`.
        """
        settings = self._settings
        self.health = server(
            health_app(self.metrics.registry, self.alive, self.ready),
            settings.health_host,
            settings.health_port,
            refused=self.metrics.refused,
        )
        with tempfile.TemporaryDirectory(prefix="greensched-webhook-") as folder:
            pair = self._pair = _PairSink(Path(folder))
            certificate = self._pair_watch(pair)
            self.followed.begin(self.metrics.watch_age)
            self.followed.follow(certificate)
            watches = enumerate(self._watches)
            self.tasks.start({f"{each.path}-{place}": each.run() for place, each in watches})
            self.tasks.start({"certificate": certificate.run()})
            serving = asyncio.create_task(run_servers([self.health], stop))
            serving.add_done_callback(lambda _: stop.set())
            late_report = asyncio.create_task(say_when_late(self.ready, self._client, settings))
            try:
                await until_set(pair.arrived, stop, self.tasks.failed)
                if pair.arrived.is_set():
                    await self._serve(pair.files, stop)
            finally:
                stop.set()
                late_report.cancel()
                await asyncio.wait([serving])
                await self.tasks.stop()
        serving.result()
        self.tasks.raise_failed()

    async def _serve(self, files: Certificates, stop: asyncio.Event) -> None:
        settings = self._settings
        app = webhook_app(self._webhook)
        host, port = settings.webhook_host, settings.webhook_port
        self.serving = server(app, host, port, files, self.metrics.refused)
        context = self.serving.config.ssl
        if context is not None:
            self.tasks.start({"rotation": keep_certificates(context, files)})
        await run_servers([self.serving], stop, self.tasks.failed)

    def _heartbeat_watch(self) -> Watch[Lease]:
        path = leases_path(self._settings.namespace)
        selector = f"metadata.name={self._settings.heartbeat_lease}"
        return Watch(
            self._client, path, decode_lease, self._heartbeat, WallClock(), field_selector=selector
        )

    def _trust_watch(self) -> Watch[Configuration]:
        selector = f"metadata.name={self._settings.webhook_configuration}"
        return Watch(
            self._client, CONFIGURATIONS, decode_configuration, self._trust, WallClock(),
            field_selector=selector,
        )  # fmt: skip

    def _pair_watch(self, sink: _PairSink) -> Watch[Pair | None]:
        path = f"/api/v1/namespaces/{self._settings.namespace}/secrets"
        selector = f"metadata.name={self._settings.webhook_secret}"
        return Watch(self._client, path, read_secret, sink, WallClock(), field_selector=selector)
