"""The two grids of end-to-end tests: one clean, and cleanest in two hours, one dirty."""

import json
import time
from collections.abc import Sequence
from typing import Any

from greensched_core.signals.grid import GridSlot, ZoneForecast, to_status
from greensched_testbed.end_to_end.clusters import ClusterAccess

CLEAN, DIRTY = "SE-SE3", "DE"
_SLOT_S = 900.0
# Grams of CO2 per kWh and price per MWh, by hour: waiting saves.
_GRIDS = {
    CLEAN: [*[(24.0, 41.0)] * 2, *[(5.0, 9.0)] * 3, *[(24.0, 41.0)] * 7],
    DIRTY: [(380.0, 92.0)] * 12,
}


def publish_grids(cluster: ClusterAccess) -> None:
    """Write both grids' forecasts from now on."""
    cluster.apply(*(_grid_signal(zone) for zone in _GRIDS))
    for zone, hourly in _GRIDS.items():
        patch = json.dumps({"status": _grid_status(zone, hourly)})
        options = ("--subresource=status", "--type=merge", "--patch", patch)
        cluster.kubectl("patch", "gridsignal", _name(zone), *options)


def _name(zone: str) -> str:
    return zone.lower().replace("_", "-")


def _grid_signal(zone: str) -> dict[str, Any]:
    """Return the GridSignal of a grid zone, without values."""
    metadata = {"name": _name(zone)}
    spec = {"zone": zone, "currency": "EUR"}
    made = {"apiVersion": "greensched.io/v1alpha1", "kind": "GridSignal"}
    return {**made, "metadata": metadata, "spec": spec}


def _grid_status(zone: str, hourly: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the status with grams of CO2 per kWh and price per MWh, by hour."""
    now_s = time.time()
    begin_s = now_s // _SLOT_S * _SLOT_S
    slots = tuple(
        GridSlot(begin_s + 3600.0 * hour, grams, price)
        for hour, (grams, price) in enumerate(hourly)
    )
    end_s = begin_s + 3600.0 * len(slots)
    return dict(to_status(ZoneForecast(zone, "EUR", now_s, "e2e", slots[0], slots, end_s)))
