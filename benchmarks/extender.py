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
from typing import Any, NamedTuple, TypeVar

from benchmarks import latency, nets, sampling, startup, throughput
from benchmarks.bench_cluster import groups, install_accounts, machine, options
from benchmarks.command_line import parse, result_file, write_json
from greensched_core.kubernetes_api import ApiClient
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.nodes import create_nodes

Result = TypeVar("Result")
_RATIOS = (
    ("ratio_noop", "onnx", "noop"),
    ("ratio_none", "onnx", "none"),
    ("ratio_floor", "onnx", "floor"),
    ("ratio_unranked", "onnx", "unranked"),
)


class Size(NamedTuple):
    """How large a cluster each part has; nodes come in multiples of 16."""

    throughput_nodes: tuple[int, ...]
    sampling_nodes: int
    profiles: tuple[str, ...]  # of `sampling.TURNS`
    loads: tuple[tuple[int, float], ...]  # names, and requests a second; the most names first
    recorded_events: int
    startup_nodes: int
    startup_pods: int
    net_calls: int


_FULL = Size(
    throughput_nodes=(1_000, 5_000),
    sampling_nodes=1_000,
    profiles=tuple(sampling.TURNS),
    loads=((5_000, 50.0), (420, 200.0)),
    recorded_events=latency.RECORDED_EVENTS,
    startup_nodes=5_000,
    startup_pods=20_000,
    net_calls=300,
)
_SMALLEST = Size(
    throughput_nodes=(16,),
    sampling_nodes=16,
    profiles=("onnx_10pct",),
    loads=((16, 50.0),),
    recorded_events=200,
    startup_nodes=16,
    startup_pods=16,
    net_calls=2,
)


def main() -> None:
    """Run the parts named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15, help="paired turns of throughput")
    parser.add_argument("--pods", type=int, default=1_000, help="pods per turn")
    parser.add_argument("--seconds", type=float, default=15.0, help="seconds per turn of latency")
    parser.add_argument(
        "--only",
        nargs="*",
        default=["net", "throughput", "sampling", "latency", "startup"],
        metavar="PART",
    )
    parser.set_defaults(size=_FULL)
    given = parse(parser, {"turns": 1, "pods": 20, "seconds": 1.0, "size": _SMALLEST})
    figures: dict[str, Any] = {"machine": machine(), "turns": given.turns, "pods": given.pods}
    print(f"machine: {figures['machine']}")
    if "net" in given.only:
        figures |= _nets(given.size.net_calls)
    if "throughput" in given.only:
        figures |= _throughput(given.turns, given.pods, given.size)
    if "sampling" in given.only:
        figures |= _sampling(min(3, given.turns), given.pods, given.size)
    few = min(7, given.turns)  # these vary less
    if "latency" in given.only:
        figures |= _latency(few, given.seconds, given.size)
    if "startup" in given.only:
        figures |= _startup(few, given.size)
    write_json(result_file("extender", given), figures)


def _nets(calls: int) -> dict[str, Any]:
    print(f"the net alone, {calls} calls each:")
    found = nets.measure(calls)
    for name, times in found.items():
        print(f"  {name}: {times.p50_us:.0f} µs, p99 {times.p99_us:.0f} µs")
    return {f"net_us_{name}": times._asdict() for name, times in found.items()}


def _throughput(turns: int, pods: int, of: Size) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with ControlPlane(options()) as plane:
        install_accounts(plane)
        previous = 0
        for size in of.throughput_nodes:
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
        figures["pods_per_s_hung"] = throughput.one_turn(plane, "hung", min(50, pods)).pods_per_s
        print(f"  while the extender hangs: {figures['pods_per_s_hung']:.3g} pods/s")
    return figures


def _sampling(turns: int, pods: int, of: Size) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with ControlPlane(options()) as plane:
        install_accounts(plane)
        nodes = len(_create(plane, 0, of.sampling_nodes))
        print(f"effect of the scheduler's profile, {nodes} nodes, {pods} pods, {turns} turns:")
        found: dict[str, list[sampling.Sampled]] = {name: [] for name in of.profiles}
        for _ in range(turns):
            for name, values in found.items():
                values.append(sampling.measure(plane, name, pods))
        for name, values in found.items():
            for field in fields(sampling.Sampled):
                series = [float(getattr(value, field.name)) for value in values]
                figures[f"sampling_{name}_{field.name}"] = median(series)
                print(f"  {name}, {field.name}: {throughput.spread(series)}")
    return figures


def _latency(turns: int, seconds: float, of: Size) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="greensched-bench-") as scratch:
        recording = Path(scratch) / "recording"
        with ControlPlane(options()) as plane:
            install_accounts(plane)
            names = _create(plane, 0, of.loads[0][0])
            latency.make_recording(plane, names, recording, of.recorded_events)
        for count, rate in of.loads:
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


def _startup(turns: int, of: Size) -> dict[str, Any]:
    with ControlPlane(options()) as plane:
        install_accounts(plane)
        names = _create(plane, 0, of.startup_nodes)
        sizes = startup.fill_now(plane, names, of.startup_pods)
        starts = startup.measure(plane, turns)
    ready = [each.ready_s for each in starts]
    memory = [each.peak_rss_mib for each in starts]
    print(f"start to ready, {of.startup_nodes} nodes of {sizes['node']} B and {of.startup_pods} "
          f"pods of {sizes['pod']} B:")  # fmt: skip
    print(f"  {throughput.spread(ready)} s, peak {throughput.spread(memory)} MiB")
    return {
        f"ready_s_{of.startup_nodes}": median(ready),
        f"ready_s_{of.startup_nodes}_turns": ready,
        f"rss_mib_{of.startup_nodes}": max(memory),
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
