"""An extender over a made-up cluster, without any server."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

import pytest

from greensched_core.clock import ManualClock
from greensched_core.declarations import Declarations
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.steps import SignalState, Step, ZoneSignal
from greensched_core.state import Node
from greensched_core.testing import make_node
from greensched_extender.decisions import Decisions
from greensched_extender.explain import Explanations
from greensched_extender.green_policies import GreenPolicies
from greensched_extender.grid import OutlookCache
from greensched_extender.metrics import ExtenderMetrics
from greensched_extender.policy_choice import PolicyChoice, PolicySettings
from greensched_extender.scoring import ScoringAssumptions
from greensched_extender.service import AnswerSettings, Extender, ExtenderReply, Knowledge
from greensched_extender.snapshot import Snapshot
from greensched_policies.encoding.weights import Weights

NOW = 1_800_000_000.0
CARBON: dict[str, float | None] = {"DE": 400.0, "FR": 50.0, "PL": 700.0}
PRICE: dict[str, float | None] = {"DE": 80.0, "FR": 60.0, "PL": 100.0}
WEIGHTS = Weights(1.0, 1.0, 0.1)  # of the settings


@dataclass
class World:
    """All parts of an extender, for tests to read and change."""

    clock: ManualClock
    snapshot: Snapshot
    decisions: Decisions
    metrics: ExtenderMetrics
    choice: PolicyChoice
    assumptions: ScoringAssumptions
    known: Knowledge
    extender: Extender
    carbon: dict[str, float | None]
    price: dict[str, float | None]
    age_s: list[float | None] = field(default_factory=lambda: [0.0])

    def add(self, *nodes: Node) -> None:
        for node in nodes:
            self.snapshot.put_node(node)

    def body(self, names: Sequence[str], pod: dict[str, Any] | None = None) -> bytes:
        return json.dumps(
            {"Pod": pod or make_pod(), "Nodes": None, "NodeNames": list(names)}
        ).encode()

    def scores(self, *names: str, pod: dict[str, Any] | None = None) -> dict[str, int]:
        answer = self.extender.prioritize(self.body(names, pod))
        assert answer.status == 200, answer
        return {entry["Host"]: entry["Score"] for entry in json.loads(answer.body)}

    def filtered(self, *names: str, pod: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: ExtenderReply = self.extender.filter(self.body(names, pod))
        assert answer.status == 200, answer
        return json.loads(answer.body)  # type: ignore[no-any-return]  # a JSON object

    def explanations(self) -> Explanations:
        return Explanations(
            known=self.known,
            choice=self.choice,
            decisions=self.decisions,
            assumptions=self.assumptions,
            watches=dict,
            clock=self.clock,
        )

    def counted(self, name: str, **labels: str) -> float:
        full = f"greensched_extender_{name}"
        return self.metrics.registry.get_sample_value(full, labels) or 0.0

    def fallbacks(self, reason: str) -> float:
        samples = (
            sample
            for metric in self.metrics.registry.collect()
            for sample in metric.samples
            if sample.name == "greensched_extender_fallbacks_total"
        )
        return sum(s.value for s in samples if s.labels["reason"] == reason)


def make_pod(
    name: str = "p1",
    *,
    cpu: str = "4",
    memory: str = "1Gi",
    gpus: str = "0",
    scheduler: str = "greensched",
    uid: str | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "annotations": annotations or {},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Pending"},
    }


def made_up_grid(
    carbon: Mapping[str, float | None], price: Mapping[str, float | None]
) -> OutlookCache:
    """Return a grid of constant values that tests can change."""

    def state_of(zone: str, now: float) -> ZoneSignal:
        return ZoneSignal(zone, _state(carbon.get(zone)), _state(price.get(zone)), "EUR")

    def means_over(
        zones: Sequence[str], now: float, runtime_s: float
    ) -> tuple[list[float], list[float]]:
        return _means(zones, carbon), _means(zones, price)

    return OutlookCache(state_of, means_over)


def _state(value: float | None) -> SignalState:
    return SignalState(value, Step.GRID_SIGNAL, 60.0, "test", is_estimated=False)


def _means(zones: Sequence[str], known: Mapping[str, float | None]) -> list[float]:
    values = (known.get(zone) for zone in zones)
    return [nan if value is None else value for value in values]


def snapshot_of(clock: ManualClock) -> Snapshot:
    return Snapshot(
        clock, utilisation_ratio=0.5, gpu_ratio=0.6, default_pue=1.2, provisional_ttl_s=10.0
    )


def make_world(
    *,
    policy: str = "weighted-cost",
    bundle: Path | None = None,
    filter_enabled: bool = True,
    decisions_max_bytes: int = 1 << 20,
    binder: ApiClient | None = None,
    empty_nodes_sleep: bool = False,
    weights: Weights = WEIGHTS,
    policies_are_listed: bool = True,
) -> World:
    clock, metrics = ManualClock(NOW), ExtenderMetrics()
    carbon, price = dict(CARBON), dict(PRICE)
    age_s: list[float | None] = [0.0]
    snapshot = snapshot_of(clock)
    choice = PolicyChoice(
        PolicySettings(policy, bundle, "weighted-cost", 10.0),
        monotonic=clock.monotonic,
        count=lambda reason: metrics.guard_fallbacks.labels(reason.value).inc(),
        count_load=lambda outcome: metrics.bundle_loads.labels(outcome).inc(),
    )
    assumptions = ScoringAssumptions(0.5, 0.6, empty_nodes_sleep, 3600.0)
    decisions = Decisions(decisions_max_bytes)
    grid = made_up_grid(carbon, price)
    policies = no_policies(weights, metrics, are_listed=policies_are_listed)
    known = Knowledge(snapshot, lambda: age_s[0], grid, Declarations(), policies)
    settings = AnswerSettings(frozenset({"greensched"}), assumptions, filter_enabled, 120.0)
    extender = Extender(
        settings,
        known,
        choice=choice,
        decisions=decisions,
        metrics=metrics,
        clock=clock,
        binder=binder,
    )
    return World(
        clock, snapshot, decisions, metrics, choice, assumptions, known, extender, carbon, price,
        age_s,
    )  # fmt: skip


def no_policies(weights: Weights, metrics: ExtenderMetrics, *, are_listed: bool) -> GreenPolicies:
    """Return the GreenPolicies of a cluster without any, or before they were listed."""
    policies = GreenPolicies(
        weights, "system", lambda part: metrics.policy_faults.labels(part).inc()
    )
    policies.list_began()
    if are_listed:
        policies.list_ended()
    return policies


@pytest.fixture
def new_world() -> Callable[..., World]:
    """Return a builder of extenders over an empty cluster."""
    return make_world


@pytest.fixture
def world() -> World:
    """Return an extender over an empty cluster with the prior's rule."""
    return make_world()


@pytest.fixture
def pod() -> Callable[..., dict[str, Any]]:
    """Return a builder of pods as kube-scheduler sends them."""
    return make_pod


@pytest.fixture
def wire(repository: Path) -> Path:
    """Return the folder of bodies that a real kube-scheduler 1.36 sent and accepted."""
    return repository / "tests" / "golden" / "extender"


@pytest.fixture(scope="session")
def shared_world() -> World:
    """Return an extender over eight unusual nodes, for tests that change nothing."""
    shared = make_world()
    for number in range(8):
        budget_w = 120.0 if number % 3 == 0 else None
        zone = ("DE", "FR", "", "XX")[number % 4]
        shared.add(
            make_node(f"n{number}", zone=zone, cpu_cores=float(number), power_budget_w=budget_w)
        )
    return shared
