"""Synthetic grid zones: carbon and price by quarter hour, seeded.

The shapes are given by `GridZone` and loosely follow real grids in 2024: a solar grid dips at noon
(California), a hydro grid is flat and clean (Norway), a coal grid is dirty with a small daily wave.
Nothing here is measured.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SYNTHETIC_SLOT_S = (
    900.0  # 15 minutes, the resolution of European day-ahead prices since October 2025
)
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class GridZone:
    """A grid by its daily shape: mean, daily swing (signed: noon against night), noise."""

    name: str
    carbon_mean: float  # g/kWh
    carbon_noon_swing: float  # g/kWh added at noon and subtracted at midnight
    price_mean: float  # EUR/MWh
    price_noon_swing: float  # EUR/MWh
    noise: float  # relative standard deviation of the slow noise


SHAPES: Mapping[str, GridZone] = {
    "solar": GridZone("SOLAR", 230.0, -120.0, 62.0, -45.0, 0.06),
    "hydro": GridZone("HYDRO", 34.0, 0.0, 48.0, 6.0, 0.05),
    "coal": GridZone("COAL", 660.0, -30.0, 88.0, 14.0, 0.03),
}


@dataclass(frozen=True, slots=True)
class SyntheticSlot:
    """Carbon and price from `start_s` until the next slot."""

    start_s: float  # seconds since the start of the workload
    carbon_g_per_kwh: float
    price_per_mwh: float


def synthetic_slots(
    zone: GridZone, *, seed: int, span_s: float, day_starts_s: float = 6 * 3600.0
) -> Sequence[SyntheticSlot]:
    """Return the zone's slots over `span_s` seconds; equal seeds give equal slots.

    `day_starts_s` is the time of day, in seconds after midnight, at which the span begins.
    """
    dice = random.Random(f"{zone.name}/{seed}")
    slots, drift = [], 0.0
    for number in range(math.ceil(span_s / SYNTHETIC_SLOT_S)):
        start_s = number * SYNTHETIC_SLOT_S
        noon = -math.cos(2 * math.pi * (start_s + day_starts_s) / _DAY_S)  # 1 at noon
        drift = 0.9 * drift + dice.gauss(0.0, zone.noise * math.sqrt(1 - 0.9**2))
        carbon = (zone.carbon_mean + zone.carbon_noon_swing * noon) * (1 + drift)
        price = (zone.price_mean + zone.price_noon_swing * noon) * (1 + drift)
        slots.append(SyntheticSlot(start_s, round(max(carbon, 1.0), 1), round(price, 2)))
    return slots
