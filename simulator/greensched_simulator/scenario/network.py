"""Data of a scenario file's jobs, and the network over which it is brought from zone to zone."""

from typing import Annotated

from pydantic import Field

from greensched_simulator.scenario.fields import Bytes, Duration, ScenarioPart

# Aslan, Mayers, Koomey and France, "Electricity Intensity of Internet Data Transmission: Untangling
# the Estimates", Journal of Industrial Ecology 22(4), 2018: 0.06 kWh/GB for 2015, fixed lines.
KWH_PER_GB = 0.06


class DataKind(ScenarioPart):
    """Jobs that read data, which lies in one zone."""

    size: list[Annotated[Bytes, Field(gt=0, le=1e15)]] = Field(
        min_length=1, description="Of what each worker reads, each as likely as the others."
    )
    zones: list[str] = Field(
        default=[],
        description="Where it lies, each as likely as the others; without it in any of `grids`.",
    )
    share: float = Field(default=1.0, gt=0, le=1, description="Of the jobs, drawn by the seed.")


class Between(ScenarioPart):
    """What differs from the rest of the network between two zones, both ways."""

    zones: list[str] = Field(min_length=2, max_length=2, description="The two; of `grids`.")
    gbit_per_s: float | None = Field(default=None, ge=1e-6, le=1e6, description="Of one transfer.")
    latency: Duration | None = Field(default=None, description="Before the first byte.")
    kwh_per_gb: float | None = Field(default=None, ge=0, le=100, description="As in `network`.")
    price_per_gb: float | None = Field(default=None, ge=0, le=1e6, description="As in `network`.")


class Network(ScenarioPart):
    """What brings data from zone to zone; within a zone it takes nothing. A GB is 10⁹ bytes."""

    gbit_per_s: float = Field(
        default=1.0, ge=1e-6, le=1e6, description="Of one transfer, however many there are."
    )
    latency: Duration = Field(default=0.1, description="Before the first byte.")
    kwh_per_gb: float = Field(
        default=KWH_PER_GB, ge=0, le=100, description="That the network draws; no site's PUE."
    )
    price_per_gb: float = Field(
        default=0.0, ge=0, le=1e6, description="Paid for what leaves a zone, in `currency`."
    )
    links: list[Between] = Field(default=[], description="Pairs of zones that differ.")
