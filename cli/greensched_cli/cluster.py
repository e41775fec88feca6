"""`greensched cluster`: the testbed's control plane, up until it is taken down.

The testbed is imported where a verb runs, so that --help answers at once.
"""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="A real control plane on this machine.", no_args_is_help=True)
Folder = Annotated[Path | None, typer.Option(help="Where it lives; your state folder by default.")]


@app.command()
def up(folder: Folder = None) -> None:
    """Start etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, and return."""
    from greensched_testbed import cluster

    record = cluster.up(folder)
    print(f"{record.url} is up: {', '.join(each.name for each in record.processes)}")
    print(f"export KUBECONFIG={record.kubeconfig}")


@app.command()
def down(folder: Folder = None) -> None:
    """Stop exactly what `up` started, and remove its folder."""
    from greensched_testbed import cluster

    stopped = cluster.down(folder)
    print(f"stopped {', '.join(stopped)}" if stopped else "no cluster is up")


@app.command()
def status(folder: Folder = None) -> None:
    """Say whether it is up, and how to reach it; exit with 1 when it is not."""
    from greensched_testbed import cluster

    record = cluster.status(folder)
    if record is None:
        print("no cluster is up")
        raise typer.Exit(1)
    print(f"{record.url} is up")
    print(f"export KUBECONFIG={record.kubeconfig}")
