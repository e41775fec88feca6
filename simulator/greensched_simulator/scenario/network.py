"""Data of a scenario file's jobs, and the network that moves it between zones."""

from typing import Annotated

from pydantic import Field

from greensched_simulator.scenario.fields import Bytes, Duration, ScenarioPart

# Aslan, Mayers, Koomey and France, "Electricity Intensity of Internet Data Transmission: Untangling
# the Estimates", Journal of Industrial Ecology 22(4), 2018: 0.06 kWh/GB for 2015, fixed lines.
KWH_PER_GB = 0.06


class DataKind(ScenarioPart):
    """Jobs that read data from one zone."""

    size: list[Annotated[Bytes, Field(gt=0, le=1e15)]] = Field(
        min_length=1,
        description="Possible sizes of the data that each worker reads; one is drawn for each job, "
        "all equally likely.",
    )
    zones: list[str] = Field(
        default=[],
        description="Zones of the data, each equally likely; default: all of `grids`.",
    )
    share: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the jobs that read such data, drawn by the seed.",
    )


class Between(ScenarioPart):
    """Values for two zones, both ways, that differ from the rest of the network."""

    zones: list[str] = Field(
        min_length=2, max_length=2, description="The two zones, both of `grids`."
    )
    gbit_per_s: float | None = Field(
        default=None, ge=1e-6, le=1e6, description="Rate of one transfer."
    )
    latency: Duration | None = Field(default=None, description="Time before the first byte.")
    kwh_per_gb: float | None = Field(default=None, ge=0, le=100, description="As in `network`.")
    price_per_gb: float | None = Field(default=None, ge=0, le=1e6, description="As in `network`.")


class Network(ScenarioPart):
    """Network that moves data between zones, within a zone for free. A GB is 10⁹ bytes."""

    gbit_per_s: float = Field(
        default=1.0,
        ge=1e-6,
        le=1e6,
        description="Rate of each transfer, regardless of how many run.",
    )
    latency: Duration = Field(default=0.1, description="Time before the first byte.")
    kwh_per_gb: float = Field(
        default=KWH_PER_GB,
        ge=0,
        le=100,
        description="Energy that the network uses; no site's PUE applies to it.",
    )
    price_per_gb: float = Field(
        default=0.0, ge=0, le=1e6, description="Price of data that leaves a zone, in `currency`."
    )
    links: list[Between] = Field(default=[], description="Pairs of zones whose values differ.")
