"""What a scenario file says of measurements that it lacks, and of weights."""

from typing import Literal

from pydantic import Field

from greensched_simulator.scenario.fields import ScenarioPart


class ScenarioWeights(ScenarioPart):
    """The weights of money, carbon and performance."""

    cost: float = Field(default=1.0, ge=0, le=1e6, description="Weight of money.")
    carbon: float = Field(default=1.0, ge=0, le=1e6, description="Weight of carbon.")
    performance: float = Field(default=0.1, ge=0, le=1e6, description="Weight of time to the end.")


class Assumptions(ScenarioPart):
    """Assumptions that replace measurements; the extender's defaults."""

    utilisation_ratio: float = Field(
        default=0.5, gt=0, le=1, description="CPU used per CPU requested."
    )
    gpu_ratio: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description="Share of a GPU's range of power that work draws which gives no other.",
    )
    cpu_caps: Literal["frequency", "package-power"] = Field(
        default="frequency",
        description="What power caps of CPUs limit: their frequency, or the watts of their "
        "packages above idle, which CPUs below full load may not reach. Services need `frequency`.",
    )
    empty_nodes_sleep: bool = Field(default=False, description="Empty nodes draw nothing.")
    share_gpus: bool = Field(
        default=False,
        description="Jobs that request a part of a GPU share it, as by time slicing or MPS; "
        "otherwise each gets a whole one, as from NVIDIA's device plugin.",
    )
