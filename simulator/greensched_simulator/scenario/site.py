"""The site of a grid zone: its weather, panels and battery."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag

from greensched_simulator.scenario.fields import Duration, ScenarioPart, SeriesFile, one_source

_LARGEST_PUE = 5.0


class TemperatureFile(SeriesFile):
    """Outdoor temperatures in a file, in degrees Celsius."""


class TemperatureConstant(ScenarioPart):
    """One outdoor temperature for all time."""

    constant: float = Field(ge=-90, le=60, description="Degrees Celsius.")


class TemperatureShape(ScenarioPart):
    """Synthetic days in hours, drawn by the seed."""

    shape: Literal["daily"] = Field(description="A daily wave, with random weather on top.")
    mean: float = Field(ge=-40, le=40, description="Mean over all time, in degrees Celsius.")
    swing: float = Field(
        default=5.0,
        ge=0,
        le=20,
        description="Amplitude of the daily wave, in degrees.",
    )
    warmest: Duration = Field(
        default=54_000.0,
        lt=86_400,
        description="Time of day at which it is warmest, counted from 0 h UTC.",
    )
    noise: float = Field(
        default=2.0,
        ge=0,
        le=10,
        description="Standard deviation of the random weather, in degrees; a deviation halves in "
        "half a day.",
    )


class PuePoint(ScenarioPart):
    """A point of the curve of PUE by temperature."""

    celsius: float = Field(ge=-90, le=60, description="Outdoor temperature.")
    pue: float = Field(
        ge=1, le=_LARGEST_PUE, description="Power usage effectiveness at this temperature."
    )


# Partial PUE (servers and their cooling) of a production system with outside-air economisers, at
# both ends of the measured range: Xu, Feng and Li, "Temperature Aware Workload Management in
# Geo-distributed Datacenters", ICAC 2013.
_PUE_BY_WEATHER = [
    PuePoint.model_construct(celsius=-3.9, pue=1.05),
    PuePoint.model_construct(celsius=35.0, pue=1.30),
]

Temperature = Annotated[
    Annotated[TemperatureFile, Tag("from file")]
    | Annotated[TemperatureConstant, Tag("constant value")]
    | Annotated[TemperatureShape, Tag("synthetic shape")],
    one_source("{shape: daily, mean: 12}"),
]


def _rising(points: list[PuePoint]) -> list[PuePoint]:
    if any(after.celsius <= before.celsius for before, after in pairwise(points)):
        raise ValueError("celsius must grow from point to point")
    return points


class Weather(ScenarioPart):
    """Outdoor temperature, and the PUE that depends on it."""

    temperature: Temperature = Field(description="Outdoor temperature, in degrees Celsius.")
    pue: Annotated[list[PuePoint], AfterValidator(_rising)] = Field(
        default=_PUE_BY_WEATHER,
        min_length=1,
        description="PUE by temperature, linear between the points and constant beyond them; "
        "default: a cooling system with outside air (docs/simulator.md).",
    )


class SolarFile(SeriesFile):
    """Yield of panels in a file."""

    unit: Literal["kW/kWp", "W/m2"] = Field(
        description="Unit of the file: power per kWp, or irradiance on the panels."
    )


class SolarConstant(ScenarioPart):
    """One yield for all time."""

    constant: float = Field(ge=0, le=1.5, description="Power in kW per kWp.")


class SolarShape(ScenarioPart):
    """Synthetic days in quarter hours: a sine from sunrise to sunset, less clouds by the seed."""

    shape: Literal["days"] = Field(description="Clouds differ from day to day.")
    noon: Duration = Field(
        default=43_200.0, lt=86_400, description="Time of the site's noon, counted from 0 h UTC."
    )
    daylight: Duration = Field(
        default=43_200.0, gt=0, le=86_400, description="Time from sunrise to sunset."
    )
    best: float = Field(
        default=0.8, gt=0, le=1.2, description="Power in kW per kWp at noon without clouds."
    )
    clouds: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of the yield that the darkest day loses; the "
        "clearest day loses nothing.",
    )


Yield = Annotated[
    Annotated[SolarFile, Tag("from file")]
    | Annotated[SolarConstant, Tag("constant value")]
    | Annotated[SolarShape, Tag("synthetic shape")],
    one_source("{shape: days}"),
]


class Solar(ScenarioPart):
    """Panels on the site."""

    peak_kw: float = Field(
        gt=0, le=1e6, description="Peak power in kWp: kW at 1,000 W/m2 and 25 °C."
    )
    output: Yield = Field(description="Yield of the panels over time.")
    performance_ratio: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="For a file in W/m2: yield relative to that of the same panels without "
        "losses (IEC 61724-1).",
    )


class Storage(ScenarioPart):
    """A battery that stores the panels' surplus over the nodes' power."""

    capacity_kwh: float = Field(gt=0, le=1e6, description="Energy that a full battery gives.")
    charge_kw: float = Field(gt=0, le=1e6, description="Highest power at which it charges.")
    discharge_kw: float = Field(gt=0, le=1e6, description="Highest power at which it discharges.")
    efficiency: float = Field(
        default=0.85,
        gt=0,
        le=1,
        description="Energy given per energy taken, round trip (Cole, Frazier and Augustine, "
        "NREL/TP-6A20-79236, 2021).",
    )


class Site(ScenarioPart):
    """Weather, panels and battery of a zone."""

    weather: Weather | None = Field(
        default=None,
        description="Weather, which sets the PUE of all nodes of the zone; without it each node "
        "group has its own PUE.",
    )
    solar: Solar | None = Field(
        default=None,
        description="Solar panels; the zone's nodes use their power before that of the grid.",
    )
    battery: Storage | None = Field(
        default=None, description="Battery, charged only from the panels; needs `solar`."
    )
