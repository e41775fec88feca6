"""What the nodes of a group draw: busy, idle, asleep and while they wake."""

from collections.abc import Iterator
from typing import NamedTuple

from greensched_core import labels
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import shipped_catalogue
from greensched_simulator.scenario_model import NodeGroup


class NodePower(NamedTuple):
    """One node of a group; watts are the machine's, without PUE."""

    curve: PowerCurve  # without its boards
    speed: float
    boards: int
    board_idle_w: float
    board_peak_w: float
    sleep_w: float  # the idle watts where it cannot sleep
    wake_s: float
    wake_w: float


def power_of(group: NodeGroup) -> NodePower:
    """Return watts and speed: as given, else as the catalogue knows a node of so many CPUs."""
    curve, speed = None, 1.0
    if group.hardware is not None:
        power = PowerCatalogue().resolve(
            {labels.POWER_MODEL: group.hardware}, {}, group.cpu_cores, 0
        )
        curve, speed = power.curve, power.speed
    if group.curve_watts is not None:
        curve = PowerCurve(tuple(group.curve_watts))
    assert curve is not None, "load_scenario refuses a group with neither"
    boards = group.gpus.count if group.gpus else 0
    board = shipped_catalogue().boards[group.gpus.model] if group.gpus else None
    idle_w, peak_w = (board.idle_w, board.peak_w) if board else (0.0, 0.0)
    sleep_w, wake_s, wake_w = curve.watts[0] + boards * idle_w, 0.0, 0.0
    if group.sleep is not None:
        sleep_w, wake_s = group.sleep.watts, group.sleep.wake
        told_w = group.sleep.wake_watts
        wake_w = curve.watts[-1] + boards * idle_w if told_w is None else told_w
    return NodePower(
        curve, speed if group.speed is None else group.speed, boards, idle_w, peak_w,
        sleep_w, wake_s, wake_w,
    )  # fmt: skip


def sleep_faults(group: NodeGroup) -> Iterator[tuple[str, str]]:
    """Yield field of `sleep` and reason where its watts cannot be."""
    if group.sleep is None:
        return
    power = power_of(group)
    idle_w = power.curve.watts[0] + power.boards * power.board_idle_w
    if power.sleep_w >= idle_w:
        yield "watts", f"a node idles at {idle_w:g} W: give less, or leave `sleep` out"
    if power.wake_w < power.sleep_w:
        yield "wake_watts", f"less than the {power.sleep_w:g} W asleep: give more, or leave it out"
