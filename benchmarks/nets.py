"""The time of a bundle's nets alone: in the compiled library and in onnxruntime, in turns.

Once call after call, and once as requests come: with a pause, in which other work takes the caches.
"""

import time
from statistics import median, quantiles
from typing import NamedTuple

import numpy as np

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_policies.learned.bundle import load_bundle
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_policies.learned.heads import WHEN, WHERE, Head
from greensched_policies.learned.onnx_policy import OnnxPolicy, open_session
from greensched_policies.learned.runners import HeadPolicy

ASKED = ((WHERE, 420), (WHERE, 5_000), (WHEN, 96), (WHEN, 672))  # heads, and their candidates
_PAUSE_S = 0.005  # 200 requests a second
_OTHERS_MEMORY = np.zeros(4 << 20, np.uint8)  # larger than a core's own caches
_KEPT_HEAP_BYTES = 31 << 20  # as the extender keeps it: see `upkeep.settle_memory`


class NetTimes(NamedTuple):
    """Microseconds of one call; p99 only where there are enough calls."""

    p50_us: float
    p99_us: float


def measure(calls: int) -> dict[str, NetTimes]:
    """Return the time of a call for each head, number of candidates, runner, and pause or none."""
    bytearray(_KEPT_HEAP_BYTES)
    bundle, found = load_bundle(SHIPPED_PRIOR), {}
    for head, count in ASKED:
        run = bundle.heads[head.name].run
        graph = (SHIPPED_PRIOR / head.file).read_bytes()
        session = OnnxPolicy(open_session(graph), head.candidates_input)
        both: dict[str, HeadPolicy] = {run.runner.value: run.policy, "onnxruntime": session}
        for kind, pause_s in (("in a row", 0.0), ("after a pause", _PAUSE_S)):
            for name, times in _in_turns(both, head, count, calls, pause_s).items():
                found[f"{head.name}, {count} candidates, {name}, {kind}"] = times
    return found


def _in_turns(
    runners: dict[str, HeadPolicy], head: Head, count: int, calls: int, pause_s: float
) -> dict[str, NetTimes]:
    dice = np.random.default_rng(1)
    rows = dice.random((1, head.features, count), np.float32)
    context = dice.random((1, len(CONTEXT_FEATURES)), np.float32)
    took_us: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(max(calls, 2)):
        for name, policy in runners.items():
            if pause_s:
                np.add(_OTHERS_MEMORY, 1, out=_OTHERS_MEMORY)
                time.sleep(pause_s)
                rows += np.float32(0.0)  # the observation has just been written
            began = time.perf_counter()
            policy(rows.transpose((0, 2, 1)), context)
            took_us[name].append((time.perf_counter() - began) * 1e6)
    return {
        name: NetTimes(median(each), quantiles(each, n=100, method="inclusive")[-1])
        for name, each in took_us.items()
    }
