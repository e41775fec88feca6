"""`greensched cluster`: start and stop the testbed's control plane.

Each verb imports the testbed when it runs, so that --help answers immediately.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.whole_summaries import WholeSummaries
from greensched_core.errors import BadInput

if TYPE_CHECKING:
    from greensched_testbed.cluster import ClusterRecord

app = typer.Typer(
    cls=WholeSummaries, help="A real control plane on this machine.", no_args_is_help=True
)
Folder = Annotated[
    Path | None, typer.Option(help="Folder of the cluster; by default in your state folder.")
]


@app.command()
@needs("testbed", "greensched cluster up")
def up(
    folder: Folder = None,
    nodes: Annotated[
        int,
        typer.Option(
            min=0, help="Number of simulated nodes; a running cluster gets the missing ones."
        ),
    ] = 0,
    real_nodes: Annotated[
        int,
        typer.Option(min=0, help="Number of nodes that run containers; needs Linux and root."),
    ] = 0,
    image: Annotated[
        list[Path] | None,
        typer.Option(
            help="Image archive for the real nodes, as `docker save` writes it; may be repeated."
        ),
    ] = None,
) -> None:
    """Start etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, and return.

    Each real node runs containerd, kubelet and kube-proxy. The cluster then has DNS and no kwok.
    """
    from greensched_testbed import cluster

    if nodes and real_nodes:
        raise BadInput("--nodes are simulated and --real-nodes are not: give one of them")
    if image and not real_nodes:
        raise BadInput("--image is for real nodes: simulated ones run no containers")
    if present := cluster.status(folder):
        _require_the_same(present, nodes, real_nodes, bool(image))
    record = cluster.up(folder, real_nodes=real_nodes, images=image or ())
    if nodes:
        asyncio.run(cluster.add_nodes(record, nodes))
    print(f"{record.url} is up: {', '.join(each.name for each in record.processes)}")
    print("\n".join(_how_to_use(record, asyncio.run(cluster.count_nodes(record)), folder)))


def _require_the_same(
    present: "ClusterRecord", nodes: int, real_nodes: int, has_images: bool
) -> None:
    """Raise BadInput if the running cluster cannot become the requested one."""
    from greensched_testbed import cluster

    if real_nodes and not present.run:
        raise BadInput("a cluster without real nodes is up; take it down first")
    if nodes and present.run:
        raise BadInput("a cluster of real nodes is up, to which no simulated ones are added")
    if not real_nodes:
        return
    there = asyncio.run(cluster.count_nodes(present))
    if has_images or real_nodes != there:
        raise BadInput(
            f"a cluster of {there} real nodes is up: their number and images are fixed at the "
            "start; take it down first"
        )


@app.command()
@needs("testbed", "greensched cluster down")
def down(folder: Folder = None) -> None:
    """Stop exactly what `up` started, and remove its folder."""
    from greensched_testbed import cluster

    stopped = cluster.down(folder)
    print(f"stopped {', '.join(stopped)}" if stopped else "no cluster is up")


@app.command()
@needs("testbed", "greensched cluster status")
def status(folder: Folder = None, output: AsOutput = Output.TABLE) -> None:
    """Print whether the cluster is up, and how to reach it; exit with 1 if it is not."""
    from greensched_testbed import cluster

    record = cluster.status(folder)
    nodes = asyncio.run(cluster.count_nodes(record)) if record else 0
    if output != Output.TABLE:
        print_document(_document(record, nodes), output)
    elif record is None:
        print("no cluster is up")
    else:
        print(f"{record.url} is up")
        print("\n".join(_how_to_use(record, nodes, folder)))
    if record is None:
        raise typer.Exit(1)


def _document(record: "ClusterRecord | None", nodes: int) -> dict[str, Any]:
    if record is None:
        return {"isUp": False}
    return {
        "isUp": True,
        "url": record.url,
        "nodes": nodes,
        "kubeconfig": str(record.kubeconfig),
        "programs": str(record.programs),
        "logs": str(record.logs),
    }


def _how_to_use(record: "ClusterRecord", nodes: int, folder: Path | None) -> Iterator[str]:
    where = f" --folder {folder}" if folder else ""
    yield f"logs: {record.logs}"
    if nodes:
        yield f"nodes: {nodes}"
    else:
        yield f"nodes: none yet; `greensched cluster up{where} --nodes 10` adds ten"
    if record.run:
        yield (
            "Nodes run containers, but reach no registry: they have busybox:1.37, pause, "
            "kube-scheduler\nand the images given by `--image`."
        )
    else:
        yield (
            "Nodes are simulated by kwok: pods are really scheduled and then marked Running and "
            "Succeeded,\nbut no container runs in them, so a chart installed here does nothing."
        )
    yield f"Take it down with `greensched cluster down{where}`. To use it, also kubectl and helm:"
    yield f"export KUBECONFIG={record.kubeconfig}"
    yield f"export PATH={record.programs}:$PATH"
