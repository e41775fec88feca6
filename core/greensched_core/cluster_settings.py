"""Settings shared by all programs that read a cluster and its grids, so that they agree."""

import re
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from greensched_core.clock import Clock, ScaledClock, WallClock
from greensched_core.events import EventSubject
from greensched_core.kubernetes_api import SERVICE_ACCOUNT_DIR, ApiAccess
from greensched_core.settings import CURRENCY, ComponentSettings, OptionalPath, Positive, Share
from greensched_core.signals.chain import CountFault, CountSteps, GridSignals
from greensched_core.signals.currencies import Currencies
from greensched_core.signals.static import load_static_zones
from greensched_core.signals.steps import AgeLimits


def _uncounted(*_: object) -> None:
    return None


class PowerAssumptions(NamedTuple):
    """What is assumed of power that nobody has measured."""

    utilisation_ratio: float
    gpu_ratio: float
    default_pue: float


class ClusterSettings(ComponentSettings):
    """Settings of API server, opt-in, and what is assumed about nodes, grids and money."""

    component: ClassVar[str] = "greensched"  # the source of its events

    kubeconfig: OptionalPath = Field(
        default=None,
        description="Kubeconfig of the API server. Empty: the process is in the cluster and uses "
        "serviceaccount_dir.",
    )
    serviceaccount_dir: Path = Field(
        default=SERVICE_ACCOUNT_DIR,
        description="Folder with token and ca.crt, used inside a cluster.",
    )
    pod_name: str = Field(
        default="",
        description="Name of this process's pod. If the process is not ready within 30 seconds, an "
        "event on the pod says why. If this is empty, only the log says so.",
    )
    pod_namespace: str = Field(default="", description="The namespace of that pod.")
    pod_uid: str = Field(default="", description="The UID of that pod.")
    scheduler_names: list[str] = Field(
        default=["greensched"],
        min_length=1,
        description="spec.schedulerName of work that opts in; other work is never touched.",
    )
    utilisation_ratio: Share = Field(
        default=0.5,
        description="Share of the requested CPU that counts as used, if it is not measured. "
        "Clusters use about half of what is requested.",
    )
    gpu_ratio: Share = Field(
        default=0.6,
        description="Share of a GPU's range from idle to peak watts that a pod draws, if not "
        "measured.",
    )
    default_pue: float = Field(
        default=1.2,
        ge=1.0,
        le=5.0,
        description="Power usage effectiveness of nodes without the label greensched.io/pue.",
    )
    static_zones_file: OptionalPath = Field(
        default=None,
        description="TOML table of carbon and price by zone, used where nothing newer is known. "
        "Empty: the shipped table.",
    )
    currency: str = Field(
        default="EUR", pattern=CURRENCY, description="Currency of all prices and costs (ISO 4217)."
    )
    exchange_rates: dict[str, Positive] = Field(
        default={},
        description="Worth of one unit of each other currency in `currency`, such as USD: 0.92; "
        "prices in a currency without a rate are ignored.",
    )
    signal_fresh_s: Positive = Field(
        default=5400.0,
        description="Seconds for which a GridSignal counts as fresh after its source was read; "
        "sources publish hourly.",
    )
    signal_max_stale_s: Positive = Field(
        default=86_400.0,
        description="Seconds for which last good values are used when nothing newer comes; after "
        "that the static table is used.",
    )
    zone_map: dict[str, str] = Field(
        default={},
        description="Grid zone by topology.kubernetes.io/zone or /region, for nodes without the "
        "label greensched.io/grid-zone.",
    )
    prometheus_url: str = Field(
        default="",
        pattern=r"^(https?://\S+)?$",
        description="Prometheus with the watts of nodes and the energy of pods; empty: load is "
        "requests times utilisation_ratio, and the ledger has estimates only.",
    )
    prometheus_timeout_s: Positive = Field(
        default=5.0, description="Timeout of a query to Prometheus, in seconds."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest severity that is logged."
    )
    clock_rate: Positive = Field(
        default=1.0,
        description="Speed of the clock, for tests and replays; 60 makes a minute last a second.",
    )
    clock_anchor_wall_s: float = Field(
        default=0.0,
        description="Wall time, in seconds since the epoch, at which the simulated clock started.",
    )
    clock_anchor_sim_s: float = Field(
        default=0.0,
        description="Simulated time at clock_anchor_wall_s, in seconds since the epoch.",
    )

    @model_validator(mode="after")
    def _signals_belong_together(self) -> Self:
        wrong = [code for code in self.exchange_rates if not re.match(CURRENCY, code)]
        if wrong:
            raise ValueError(f"exchange_rates: {wrong[0]!r} is not a currency such as USD")
        if self.signal_max_stale_s < self.signal_fresh_s:
            raise ValueError("signal_max_stale_s is shorter than signal_fresh_s")
        return self

    @model_validator(mode="after")
    def _clock_belongs_together(self) -> Self:
        if self.clock_rate != 1.0 and self.clock_anchor_wall_s == 0.0:
            raise ValueError("clock_rate needs clock_anchor_wall_s and clock_anchor_sim_s")
        return self

    @property
    def clock(self) -> Clock:
        """The clock of these settings: the wall clock, or a scaled one."""
        if self.clock_rate == 1.0:
            return WallClock()
        return ScaledClock(self.clock_anchor_wall_s, self.clock_anchor_sim_s, self.clock_rate)

    @property
    def power_assumptions(self) -> PowerAssumptions:
        """What is assumed of power that nobody has measured."""
        return PowerAssumptions(self.utilisation_ratio, self.gpu_ratio, self.default_pue)

    @property
    def age_limits(self) -> AgeLimits:
        """How long a GridSignal is used."""
        return AgeLimits(self.signal_fresh_s, self.signal_max_stale_s)

    def api_access(self) -> ApiAccess:
        """Return the access to the API server; raise BadInput when there is none."""
        if self.kubeconfig is not None:
            return ApiAccess.from_kubeconfig(self.kubeconfig)
        return ApiAccess.in_cluster(self.serviceaccount_dir)

    def own_pod(self) -> EventSubject | None:
        """Return the pod that this process runs in; None if the settings do not name it."""
        if not self.pod_name or not self.pod_namespace:
            return None
        return EventSubject("v1", "Pod", self.pod_namespace, self.pod_name, self.pod_uid)

    def grid_signals(
        self, count_steps: CountSteps = _uncounted, count_fault: CountFault = _uncounted
    ) -> GridSignals:
        """Return the signals' fallback chain, without any GridSignal yet.

        Raises BadInput that lists every fault of the static zones' file.
        """
        return GridSignals(
            load_static_zones(self.static_zones_file),
            currencies=Currencies(self.currency, self.exchange_rates),
            limits=self.age_limits,
            count_steps=count_steps,
            count_fault=count_fault,
        )
