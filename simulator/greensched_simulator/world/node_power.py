"""The watts of a group's nodes: busy, idle, asleep and waking."""

from collections.abc import Iterator
from typing import NamedTuple

from greensched_core import labels
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import shipped_catalogue
from greensched_simulator.scenario.cluster import NodeGroup


class GroupNodePower(NamedTuple):
    """One node of a group; watts are the machine's, without PUE."""

    curve: PowerCurve  # without its GPUs
    speed: float
    gpus: int
    gpu_idle_w: float
    gpu_peak_w: float
    sleep_w: float  # the idle watts if it cannot sleep
    wake_s: float
    wake_w: float

    @property
    def idle_w(self) -> float:
        """Return the watts while empty and awake, GPUs included."""
        return self.curve.watts[0] + self.gpus * self.gpu_idle_w


def power_of(group: NodeGroup) -> GroupNodePower:
    """Return watts and speed: as given, else from the catalogue for that number of CPUs."""
    curve, speed = None, 1.0
    if group.hardware is not None:
        power = PowerCatalogue().resolve(
            {labels.POWER_MODEL: group.hardware}, {}, group.cpu_cores, 0
        )
        curve, speed = power.curve, power.speed
    if group.curve_watts is not None:
        curve = PowerCurve(tuple(group.curve_watts))
    assert curve is not None, "load_scenario refuses a group with neither"
    gpus = group.gpus.count if group.gpus else 0
    gpu = shipped_catalogue().gpus[group.gpus.model] if group.gpus else None
    idle_w, peak_w = (gpu.idle_w, gpu.peak_w) if gpu else (0.0, 0.0)
    speed = speed if group.speed is None else group.speed
    awake = GroupNodePower(curve, speed, gpus, idle_w, peak_w, sleep_w=0.0, wake_s=0.0, wake_w=0.0)
    if group.sleep is None:
        return awake._replace(sleep_w=awake.idle_w)
    wake_w = group.sleep.wake_watts
    if wake_w is None:
        wake_w = curve.watts[-1] + gpus * idle_w
    return awake._replace(sleep_w=group.sleep.watts, wake_s=group.sleep.wake, wake_w=wake_w)


def sleep_faults(group: NodeGroup) -> Iterator[tuple[str, str]]:
    """Yield field and reason of each fault in the watts of `sleep`."""
    if group.sleep is None:
        return
    power = power_of(group)
    if power.sleep_w >= power.idle_w:
        yield "watts", f"a node idles at {power.idle_w:g} W: give less, or leave `sleep` out"
    if group.sleep.wake_watts is not None and power.wake_w < power.sleep_w:
        yield "wake_watts", f"less than the {power.sleep_w:g} W asleep: give more, or leave it out"
