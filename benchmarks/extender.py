"""`make bench-extender`: all figures that the extender is judged by, in one run.

Prints workload, machine, median and spread, and writes build/bench/extender.json.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from benchmarks import latency, sampling, startup, throughput
from benchmarks.bench_cluster import (
    ROOT,
    groups,
    install_accounts,
    machine,
    options,
    write_json,
)
from greensched_core.kubernetes_api import ApiClient
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.nodes import create_nodes

RESULT = ROOT / "build/bench/extender.json"
Result = TypeVar("Result")
_RATIOS = (
    ("ratio_noop", "onnx", "noop"),
    ("ratio_none", "onnx", "none"),
    ("ratio_floor_noop", "floor", "noop"),
)


def main() -> None:
    """Run the parts named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="paired turns")
    parser.add_argument("--pods", type=int, default=1_000, help="pods per turn")
    parser.add_argument("--seconds", type=float, default=15.0, help="seconds per turn of latency")
    parser.add_argument(
        "--only",
        nargs="*",
        default=["throughput", "sampling", "latency", "startup"],
        metavar="PART",
    )
    given = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine(), "turns": given.turns, "pods": given.pods}
    print(f"machine: {figures['machine']}")
    if "throughput" in given.only:
        figures |= _throughput(given.turns, given.pods)
    if "sampling" in given.only:
        figures |= _sampling(min(3, given.turns), given.pods)
    if "latency" in given.only:
        figures |= _latency(given.turns, given.seconds)
    if "startup" in given.only:
        figures |= _startup(given.turns)
    write_json(RESULT, figures)
    print(f"written to {RESULT.relative_to(ROOT)}")


def _throughput(turns: int, pods: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with ControlPlane(options()) as plane:
        install_accounts(plane)
        previous = 0
        for size in (1_000, 5_000):
            _create(plane, previous, size)
            previous = size
            print(f"throughput, {size} nodes, {pods} pods of 100m/128Mi a turn:")
            found = throughput.measure(plane, turns, pods, lambda line: print(f"  {line}"))
            for kind, ran in found.by_kind.items():
                rates, cpu_ms = found.rates(kind), [turn.extender_cpu_ms for turn in ran]
                figures[f"pods_per_s_{kind}_{size}"] = median(rates)
                figures[f"extender_cpu_ms_per_pod_{kind}_{size}"] = median(cpu_ms)
                print(f"  {kind}: {throughput.spread(rates)} pods/s", end="")
                print(f", {throughput.spread(cpu_ms)} ms CPU of the extender a pod")
            for name, kind, other in _RATIOS:
                ratios = found.ratio(kind, other)
                figures[f"{name}_{size}"] = median(ratios)
                figures[f"{name}_{size}_turns"] = ratios
                print(f"  {kind}/{other}: {throughput.spread(ratios)}")
        figures["pods_per_s_hung"] = throughput.one_turn(plane, "hung", 50).pods_per_s
        print(f"  while the extender hangs: {figures['pods_per_s_hung']:.3g} pods/s (50 pods)")
    return figures


def _sampling(turns: int, pods: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with ControlPlane(options()) as plane:
        install_accounts(plane)
        _create(plane, 0, 1_000)
        print(f"effect of the scheduler's profile, 1000 nodes, {pods} pods, {turns} turns:")
        found: dict[str, list[sampling.Sampled]] = {name: [] for name in sampling.TURNS}
        for _ in range(turns):
            for name, values in found.items():
                values.append(sampling.measure(plane, name, pods))
        for name, values in found.items():
            for field in fields(sampling.Sampled):
                series = [float(getattr(value, field.name)) for value in values]
                figures[f"sampling_{name}_{field.name}"] = median(series)
                print(f"  {name}, {field.name}: {throughput.spread(series)}")
    return figures


def _latency(turns: int, seconds: float) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="greensched-bench-") as scratch:
        recording = Path(scratch) / "recording"
        with ControlPlane(options()) as plane:
            install_accounts(plane)
            names = _create(plane, 0, 5_000)
            latency.make_recording(plane, names, recording)
        for count, rate in ((5_000, 50.0), (420, 200.0)):
            print(f"prioritize, {count} names at {rate:.0f}/s, turns of {seconds:.0f} s:")
            found = latency.measure(
                recording, names[:count], rate_per_s=rate, turns=turns, seconds=seconds
            )
            for field in fields(latency.Percentiles):
                values = [float(getattr(turn, field.name)) for turn in found]
                name = f"{field.name.replace('handler', 'prioritize')}_{count}"
                figures |= {name: median(values), f"{name}_turns": values}
                print(f"  {field.name}: {throughput.spread(values)}")
    return figures


def _startup(turns: int) -> dict[str, Any]:
    with ControlPlane(options()) as plane:
        install_accounts(plane)
        names = _create(plane, 0, 5_000)
        sizes = startup.fill_now(plane, names, 20_000)
        starts = startup.measure(plane, turns)
    ready = [each.ready_s for each in starts]
    memory = [each.peak_rss_mib for each in starts]
    print(f"start to ready, 5000 nodes of {sizes['node']} B and 20000 pods of {sizes['pod']} B:")
    print(f"  {throughput.spread(ready)} s, peak {throughput.spread(memory)} MiB")
    return {
        "ready_s_5000": median(ready),
        "ready_s_5000_turns": ready,
        "rss_mib_5000": max(memory),
        "node_bytes": sizes["node"],
        "pod_bytes": sizes["pod"],
    }


def _create(plane: ControlPlane, first: int, last: int) -> Sequence[str]:
    return _run(plane, lambda client: create_nodes(client, groups(first, last), plain=True))


def _run(plane: ControlPlane, call: Callable[[ApiClient], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with ApiClient(plane.access) as client:
            return await call(client)

    return asyncio.run(run())


if __name__ == "__main__":
    main()
