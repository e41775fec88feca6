"""The nodes of a scenario file: capacity, power, and embodied carbon."""

from typing import Annotated

from pydantic import AfterValidator, Field

from greensched_core.errors import BadInput
from greensched_core.power.curves import PowerCurve
from greensched_simulator.scenario.fields import (
    Bytes,
    Cores,
    Duration,
    GpuModel,
    Hardware,
    ScenarioPart,
)

SECONDS_PER_YEAR = 365.25 * 86_400.0


class Gpus(ScenarioPart):
    """The GPUs of each node of a group."""

    model: GpuModel = Field(description="Name of the GPU in the power catalogue.")
    count: int = Field(ge=1, le=64, description="GPUs in each node.")


def _curve(watts: list[float]) -> list[float]:
    try:
        PowerCurve(tuple(watts))
    except BadInput as fault:
        raise ValueError(str(fault)) from fault
    return watts


class Sleep(ScenarioPart):
    """Sleep of an empty node instead of idling; the policy decides whether it sleeps."""

    watts: float = Field(
        ge=0,
        le=1e6,
        description="Power of a sleeping node, its GPUs included; less than its idle power.",
    )
    wake: Duration = Field(le=86_400, description="Time from sleep until jobs can run.")
    wake_watts: float | None = Field(
        default=None,
        ge=0,
        le=1e6,
        description="Power of a node that wakes up; default: its power at full CPU load with "
        "idle GPUs (Gandhi et al., AutoScale, ACM TOCS 30(4), 2012).",
    )


class Autoscaling(ScenarioPart):
    """Start and removal of nodes by Kubernetes' Cluster Autoscaler; `count` is the most."""

    min: int = Field(
        ge=0,
        description="Least number of nodes that are up; a run begins with these. At most `count`.",
    )


class Embodied(ScenarioPart):
    """A node's embodied carbon, spread over its life and reported apart from energy's carbon."""

    kg: float = Field(
        gt=0,
        le=1e6,
        description="CO2e of making, shipping and scrapping one node with its GPUs.",
    )
    years: float = Field(default=5.0, gt=0, le=50, description="Years for which a node is used.")

    @property
    def g_per_s(self) -> float:
        """Return the grams per second of a node's life."""
        return 1000.0 * self.kg / (self.years * SECONDS_PER_YEAR)


class Failures(ScenarioPart):
    """How often an awake node fails, and for how long; both times are exponential."""

    every: Duration = Field(
        gt=0, description="Mean time from a repair to the next failure, such as 60d."
    )
    repair: Duration = Field(
        gt=0, description="Mean time from a failure until the node works again."
    )


class NodeGroup(ScenarioPart):
    """Equal nodes in one grid zone."""

    name: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,52}[a-z0-9])?$",
        description="First part of the nodes' names: lower-case letters, digits and -.",
    )
    count: int = Field(ge=1, le=1_000_000, description="Number of nodes.")
    hardware: Hardware | None = Field(
        default=None, description="Machine of the power catalogue; gives power by load, and speed."
    )
    curve_watts: Annotated[list[float], AfterValidator(_curve)] | None = Field(
        default=None,
        description="Power of a node without its GPUs at 0, 10 … 100 % CPU load; replaces the "
        "catalogue's.",
    )
    speed: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Work that a core does, relative to the reference core (docs/power.md); "
        "default: the hardware's, else 1.",
    )
    cpu_cores: Cores = Field(description="Logical CPUs of each node that jobs can request.")
    memory: Bytes = Field(description="Memory of each node that jobs can request.")
    gpus: Gpus | None = Field(default=None, description="GPUs of each node.")
    zone: str = Field(min_length=1, description="Grid zone, one of `grids`.")
    pue: float = Field(
        default=1.2,
        ge=1,
        le=5,
        description="Power usage effectiveness of the site; not allowed where `sites` gives its "
        "weather.",
    )
    sleep: Sleep | None = Field(
        default=None,
        description="Sleep of empty nodes; without it they stay on, or sleep at no "
        "cost under `empty_nodes_sleep`.",
    )
    autoscaling: Autoscaling | None = Field(
        default=None,
        description="The Cluster Autoscaler starts and removes the nodes; without it they stay "
        "on, or sleep. Needs `sleep`: what a node draws while it is off, and the time it takes to "
        "start.",
    )
    embodied: Embodied | None = Field(
        default=None, description="Embodied carbon of a node; without it none is reported."
    )
    failures: Failures | None = Field(
        default=None, description="Failures of the nodes; without it no node fails."
    )


class Cluster(ScenarioPart):
    """The nodes."""

    nodes: list[NodeGroup] = Field(min_length=1, description="Groups of equal nodes.")

    @property
    def nodes_sleep(self) -> bool:
        """Return whether any node can sleep if the policy allows it."""
        return any(group.sleep is not None and group.autoscaling is None for group in self.nodes)
