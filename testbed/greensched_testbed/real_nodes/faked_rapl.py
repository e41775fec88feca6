"""Fakes RAPL's energy counters at their real path; they count known watts, for real meters.

Each node has an `intel-rapl:0` (the package) and an `intel-rapl:1` (psys, the whole platform) below
/sys/class/powercap, like many servers.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from greensched_testbed.real_nodes.node import RealNode

_ZONES = {"intel-rapl:0": ("package-0", 0.7), "intel-rapl:1": ("psys", 1.0)}  # name, share of watts
_EVERY_S = 0.02
_MOST_MICROJOULES = 10**15  # reached after months; real counters overflow within the hour


class FakedRapl:
    """Context manager in which nodes' counters count; `watts` may change meanwhile."""

    def __init__(self, nodes: Sequence[RealNode], watts: Mapping[str, float]) -> None:
        """`watts`: of the platform, by node."""
        self.watts = dict(watts)
        self._nodes = tuple(nodes)
        self._joules = dict.fromkeys(self.watts, 0.0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._count, name="faked-rapl", daemon=True)

    def __enter__(self) -> Self:
        for node in self._nodes:
            for zone, (name, _) in _ZONES.items():
                folder = _zone(node, zone)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "name").write_text(f"{name}\n")
                (folder / "max_energy_range_uj").write_text(f"{_MOST_MICROJOULES}\n")
                (folder / "energy_uj").write_text("0\n")
            # A bind mount is impossible if the kernel has no folder of that name.
            classes = _classes(node)
            node.namespaces.run(
                f"mount -t overlay -o ro,lowerdir={classes}:/sys/class overlay /sys/class"
            )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for node in self._nodes:
            node.namespaces.run("umount --lazy /sys/class")

    def _count(self) -> None:
        then = time.monotonic()
        while not self._stop.wait(_EVERY_S):
            now = time.monotonic()
            for node in self._nodes:
                self._joules[node.name] += self.watts[node.name] * (now - then)
                self._write(node)
            then = now

    def _write(self, node: RealNode) -> None:
        """Write a node's joules in place, so that no reader finds an empty file."""
        for zone, (_, share) in _ZONES.items():
            with (_zone(node, zone) / "energy_uj").open("r+b") as file:
                file.write(b"%d\n" % int(self._joules[node.name] * share * 1e6))


def _classes(node: RealNode) -> Path:
    return node.folder / "sys-class"


def _zone(node: RealNode, zone: str) -> Path:
    return _classes(node) / "powercap" / zone
