"""Starts GreenSched on the testbed as the chart ships it.

Helm installs the chart, whose pods kwok simulates. The extender and the second kube-scheduler run
as local processes, with the configuration of the chart's ConfigMaps and the rights of its service
accounts.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx
import msgspec

from greensched_core import labels
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.grid import GridSlot, ZoneForecast, object_name, to_status
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_simulator.formats.synthetic_grid import SYNTHETIC_SLOT_S, SyntheticSlot
from greensched_testbed.chart import RELEASE, chart_folder, given_by_chart
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.billing import BillAssumptions
from greensched_testbed.ports import free_ports

CURRENCY = "EUR"
EXPLAIN_PORT = 8889  # on the extender's pods, the chart's default
EXTENDER = "extender"
SECOND_SCHEDULER = "greensched-scheduler"
_READY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class ServedPolicy:
    """The policy that the extender reports."""

    name: str
    bundle: str | None  # of the model; None for a rule
    is_untrained: bool

    def __str__(self) -> str:
        """Return a readable description."""
        if self.bundle is None:
            return f"the rule {self.name}"
        learned = "the weighted-cost rule, not trained yet" if self.is_untrained else "trained"
        return f"{self.name}, bundle {self.bundle}: {learned}"


class GreenSchedProcesses:
    """The extender and the second scheduler, run beside a control plane."""

    def __init__(self, plane: ControlPlane, assumed: BillAssumptions) -> None:
        self._plane = plane
        self._assumed = assumed
        self._port, self._explain_port = free_ports(2)
        self._is_forwarded = False

    @property
    def assumed(self) -> BillAssumptions:
        """The extender's assumptions, which bills must share."""
        return self._assumed

    @property
    def extender_url(self) -> str:
        """The URL that kube-scheduler calls."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def explain_url(self) -> str:
        """The URL that `greensched explain` calls."""
        return f"http://127.0.0.1:{self._explain_port}"

    def install_chart(self, *arguments: str) -> None:
        """Install or upgrade the chart without operator, with the extender's address.

        `arguments` go to Helm and override these values. `greensched explain` then reaches the
        extender as in any cluster, by a port-forward to the chart's pods.
        """
        if not self._is_forwarded:
            self._plane.forward_pod_port(RELEASE, EXPLAIN_PORT, self._explain_port)
            self._is_forwarded = True
        self._plane.helm(
            "upgrade", "--install", RELEASE, str(chart_folder()), "--namespace", RELEASE,
            "--create-namespace", "--set", f"scheduler.extenderUrl={self.extender_url}",
            "--set", "operator.enabled=false", *arguments,
        )  # fmt: skip

    def start(self, clock: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start the extender, wait until it is ready, and start the second scheduler.

        `clock`: the extender's clock settings; empty for the wall clock.
        """
        self.start_extender(clock)
        self.start_scheduler()

    def stop(self) -> None:
        """Stop both, the scheduler first; safe to repeat."""
        self._plane.stop(SECOND_SCHEDULER)
        self._plane.stop(EXTENDER)

    def start_extender(self, clock: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start the extender with the chart's environment, and wait until it is ready."""
        account = self._plane.service_account_dir(RELEASE, f"{RELEASE}-extender")
        process = self._plane.processes.start(
            EXTENDER,
            [sys.executable, "-m", "greensched_extender"],
            {
                **given_by_chart(self._plane, f"{RELEASE}-extender"),
                **self._plane.in_cluster_environment(),
                "PATH": str(Path(sys.executable).parent),
                "GREENSCHED_EXTENDER_LISTEN_HOST": "127.0.0.1",
                "GREENSCHED_EXTENDER_LISTEN_PORT": str(self._port),
                "GREENSCHED_EXTENDER_EXPLAIN_PORT": str(self._explain_port),
                "GREENSCHED_EXTENDER_SERVICEACCOUNT_DIR": str(account),
                "GREENSCHED_EXTENDER_UTILISATION_RATIO": str(self._assumed.utilisation_ratio),
                "GREENSCHED_EXTENDER_GPU_RATIO": str(self._assumed.gpu_ratio),
                "GREENSCHED_EXTENDER_DEFAULT_PUE": str(self._assumed.default_pue),
                "GREENSCHED_EXTENDER_EMPTY_NODES_SLEEP": str(self._assumed.empty_nodes_sleep),
                **{f"GREENSCHED_EXTENDER_{name}": value for name, value in clock.items()},
            },
        )
        process.wait_until(self.is_ready, "/readyz", _READY_TIMEOUT_S)

    def start_scheduler(self) -> None:
        """Start the second scheduler with the chart's configuration and rights."""
        self._plane.start_scheduler(
            SECOND_SCHEDULER,
            given_by_chart(self._plane, f"{RELEASE}-scheduler")["config.yaml"],
            self._plane.kubeconfig_for_service_account(RELEASE, f"{RELEASE}-scheduler"),
        )

    def is_ready(self) -> bool:
        """Return whether the extender reports that it is ready."""
        try:
            reply = httpx.get(f"{self.extender_url}/readyz", timeout=2.0, trust_env=False)
        except httpx.HTTPError:
            return False
        return reply.status_code == 200

    def policy(self) -> ServedPolicy:
        """Return the running extender's policy."""
        reply = httpx.get(f"{self.explain_url}/v1/policy", timeout=5.0, trust_env=False).json()
        bundle = reply["bundle"] or {"name": None, "untrained": False}
        return ServedPolicy(reply["policy"], bundle["name"], bundle["untrained"])


async def publish_grid(
    client: ApiClient,
    grid: Mapping[str, Sequence[SyntheticSlot]],
    *,
    starts_at: float,
    wall_s_per_workload_s: float,
    observed_at: float | None = None,
) -> None:
    """Write the GridSignal objects so that slot 0 starts at `starts_at`, seconds since the epoch.

    Their time of observation is `observed_at`, else `starts_at`. Workload time may be compressed,
    for readers on the wall clock.
    """
    for zone, slots in grid.items():
        name = object_name(zone)
        try:
            await client.get(f"{GRID_SIGNALS_PATH}/{name}")
        except ApiUnavailable as fault:
            if fault.status != 404:
                raise
            await client.create(GRID_SIGNALS_PATH, msgspec.json.encode(_signal(name, zone)))
        status = to_status(_forecast(zone, slots, starts_at, wall_s_per_workload_s, observed_at))
        await client.patch(
            f"{GRID_SIGNALS_PATH}/{name}/status", msgspec.json.encode({"status": status})
        )


def _signal(name: str, zone: str) -> dict[str, object]:
    return {
        "apiVersion": f"{labels.GROUP}/{labels.VERSION}",
        "kind": "GridSignal",
        "metadata": {"name": name},
        "spec": {"zone": zone, "currency": CURRENCY},
    }


def _forecast(
    zone: str,
    slots: Sequence[SyntheticSlot],
    starts_at: float,
    factor: float,
    observed_at: float | None,
) -> ZoneForecast:
    first, *later = (
        GridSlot(starts_at + slot.start_s * factor, slot.carbon_g_per_kwh, slot.price_per_mwh)
        for slot in slots
    )
    return ZoneForecast(
        zone=zone,
        currency=CURRENCY,
        observed_at=starts_at if observed_at is None else observed_at,
        source="synthetic",
        current=first,
        forecast=tuple(later),
        forecast_end=later[-1].start + SYNTHETIC_SLOT_S * factor,
    )
