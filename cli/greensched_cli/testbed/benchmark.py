"""`greensched benchmark`: run the same fixed work by several strategies on the user's cluster.

The verb imports the code for the cluster when it runs, so that --help answers immediately.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from greensched_cli.explain.decisions import Context, Kubeconfig
from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output
from greensched_cli.reading.api_server import api_access
from greensched_core.errors import BadInput

Strategies = Annotated[
    str,
    typer.Option(
        help="Strategies separated by commas: default, greensched-at-once, greensched (may "
        "hold), scheduler:NAME. The first is the baseline."
    ),
]
OnCluster = Annotated[
    bool,
    typer.Option("--cluster", help="Run on the cluster. Without it, only print what would run."),
]
Rounds = Annotated[int, typer.Option(min=1, help="Number of times that each strategy runs.")]
SuiteJobs = Annotated[int, typer.Option(min=2, help="Number of Jobs in the suite.")]
SuiteSpan = Annotated[float, typer.Option(min=0.0, help="Seconds over which they arrive.")]
MeanRuntime = Annotated[
    float, typer.Option(min=1.0, help="Mean seconds that a Job runs on the reference core.")
]
LongestWait = Annotated[
    float, typer.Option(min=0.0, help="Seconds that a Job with a deadline may wait.")
]
GpuJobs = Annotated[
    int, typer.Option(min=0, help="Number of Jobs that use a GPU (NVIDIA's nbody).")
]
SuiteSeed = Annotated[int, typer.Option(help="Random seed of the suite.")]
Image = Annotated[str, typer.Option(help="Image of CPU and memory Jobs: busybox 1.30 or later.")]
GpuImage = Annotated[str, typer.Option(help="Image of GPU Jobs: NVIDIA's nbody sample.")]
PrometheusUrl = Annotated[
    str, typer.Option(help="URL of a Prometheus with Kepler, Scaphandre or the kubelet.")
]
ZoneMap = Annotated[
    list[str] | None,
    typer.Option(help="REGION=ZONE: grid zone of a topology region or zone; may be repeated."),
]
Results = Annotated[Path, typer.Option(help="Folder for the results.")]


@needs("testbed", "greensched benchmark")
def benchmark(
    strategies: Strategies = "default, greensched-at-once, greensched",
    cluster: OnCluster = False,
    rounds: Rounds = 3,
    jobs: SuiteJobs = 12,
    span_s: SuiteSpan = 120.0,
    runtime_s: MeanRuntime = 90.0,
    wait_s: LongestWait = 600.0,
    gpu_jobs: GpuJobs = 0,
    seed: SuiteSeed = 1,
    image: Image = "busybox:1.37",
    gpu_image: GpuImage = "nvcr.io/nvidia/k8s/cuda-sample:nbody",
    prometheus: PrometheusUrl = "",
    zone: ZoneMap = None,
    out: Results = Path("build/benchmark"),
    output: AsOutput = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Run a suite of stress Jobs by every strategy in turn, and compare energy, carbon and cost.

    Each run uses a new namespace, which is deleted afterwards. Exits with 1 if a Job did not
    complete.
    """
    from greensched_cli.testbed.benchmark_terminal import show_benchmark, show_intention
    from greensched_testbed.stress.job_objects import Images
    from greensched_testbed.stress.run import BenchmarkOptions
    from greensched_testbed.stress.strategies import parse_strategies
    from greensched_testbed.stress.suite import SuiteOptions

    options = BenchmarkOptions(
        strategies=parse_strategies(strategies),
        suite=SuiteOptions(jobs, seed, span_s, runtime_s, wait_s, gpu_jobs),
        rounds=rounds,
        images=Images(image, gpu_image),
        prometheus_url=prometheus,
        zone_map=zones(zone or ()),
    )
    access = api_access(kubeconfig, context)
    if not cluster:
        show_intention(access, options, output)
        return
    raise typer.Exit(show_benchmark(access, options, out, output))


def zones(pairs: Sequence[str]) -> Mapping[str, str]:
    """Return the grid zone of each topology label; raise BadInput for other than REGION=ZONE."""
    found = {}
    for pair in pairs:
        region, sign, zone = pair.partition("=")
        if not (region and sign and zone):
            raise BadInput(f"--zone {pair!r}: write REGION=ZONE, such as eu-central-1=DE")
        found[region] = zone
    return found
