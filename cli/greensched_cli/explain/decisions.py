"""`greensched explain` and `greensched nodes`: why a pod was placed on its node."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.reading.api_server import usual_namespace
from greensched_cli.reading.replicas import (
    ReplicaAnswer,
    Whereabouts,
    ask_replicas,
    decision_path,
    faults_of,
)
from greensched_core.errors import ApiUnavailable, GreenSchedError

Address = Annotated[
    str | None,
    typer.Option(
        envvar="GREENSCHED_EXPLAIN_ADDRESS",
        help="host:port of one extender's explain routes; by default every replica is "
        "asked through a port-forward.",
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        envvar="GREENSCHED_KUBECONFIG",
        help="Path of the kubeconfig; by default the one that kubectl uses.",
    ),
]
Context = Annotated[
    str | None, typer.Option(help="Context in the kubeconfig; by default the current one.")
]
InstallNamespace = Annotated[
    str | None,
    typer.Option(help="Namespace in which GreenSched is installed; by default it is looked for."),
]
ExplainPort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65_535,
        help="Explain port of the extender; by default the one in the pods' annotation, else 8889.",
    ),
]
Rows = Annotated[int, typer.Option(min=1, help="Print at most this many nodes.")]


def explain(
    pod: Annotated[str, typer.Argument(help="Name of the pod.")],
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of the pod; by default the context's."),
    ] = None,
    rows: Rows = 15,
    address: Address = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    install_namespace: InstallNamespace = None,
    explain_port: ExplainPort = None,
    output: AsOutput = Output.TABLE,
) -> None:
    """Show the nodes offered for a pod, what each would have cost, and why one was chosen.

    If no replica remembers a decision on the pod, show its state in the cluster and exit with 1.
    """
    where = Whereabouts(address, kubeconfig, context, install_namespace, explain_port)
    namespace = namespace or usual_namespace(kubeconfig, context)
    try:
        answers = ask_replicas(decision_path(namespace, pod), where)
        silent = faults_of(answers, fine=(200, 404))
    except ApiUnavailable as fault:
        answers, silent = [], [str(fault)]
    decisions = _known(answers)
    if output != Output.TABLE:
        print_document(decisions, output)
    if not decisions:
        was_asked = len(answers) > len(silent)
        _print_undecided(namespace, pod, where, silent, was_asked)
        raise typer.Exit(1)
    for message in silent:
        print(message, file=sys.stderr)
    if output == Output.TABLE:
        from greensched_cli.explain.explanation import print_decision

        latest = max(decisions, key=lambda decision: float(decision["decidedAt"]))
        print_decision(latest, rows, len(decisions))


def nodes(
    address: Address = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    install_namespace: InstallNamespace = None,
    explain_port: ExplainPort = None,
    output: AsOutput = Output.TABLE,
) -> None:
    """List what the extender knows about each node."""
    where = Whereabouts(address, kubeconfig, context, install_namespace, explain_port)
    answers = ask_replicas("/v1/nodes", where)
    good = [answer for answer in answers if answer.status == 200]
    if not good:
        raise ApiUnavailable(f"no extender answered: {'; '.join(faults_of(answers))}")
    known_nodes = _listed(good[0], "nodes")
    if output != Output.TABLE:
        print_document(good[0].body, output)
        return
    from greensched_cli.explain.explanation import print_nodes

    print_nodes(known_nodes)


def _print_undecided(
    namespace: str, pod: str, where: Whereabouts, silent: Sequence[str], was_asked: bool
) -> None:
    from greensched_cli.explain.explanation import printable
    from greensched_cli.explain.undecided import about, look_up

    name = f"{namespace}/{pod}"
    if was_asked:
        lines = [f"No replica remembers a decision on {name}.", *silent]
    else:
        lines = [f"No replica could be asked about {name}: {'; '.join(silent)}"]
    try:
        seen = look_up(namespace, pod, where.kubeconfig, where.context)
        lines += about(seen, name, where.namespace, was_asked).splitlines()
    except GreenSchedError as fault:
        lines.append(f"The pod itself could not be read: {fault}")
    for line in lines:
        print(printable(line), file=sys.stderr)


def _known(answers: Sequence[ReplicaAnswer]) -> list[dict[str, Any]]:
    """Return the decisions that any replica remembers, each once."""
    known: dict[tuple[str, float], dict[str, Any]] = {}
    for answer in answers:
        for decision in _listed(answer, "decisions") if answer.status == 200 else ():
            key = (decision["pod"]["uid"], decision["decidedAt"])
            known.setdefault(key, {**decision, "replica": answer.replica})
    return list(known.values())


def _listed(answer: ReplicaAnswer, key: str) -> list[dict[str, Any]]:
    found = answer.body.get(key) if isinstance(answer.body, dict) else None
    if not isinstance(found, list):
        raise ApiUnavailable(f"{answer.replica} does not answer like an extender: no {key}")
    return found
