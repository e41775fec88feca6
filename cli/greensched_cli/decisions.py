"""`greensched explain` and `greensched nodes`: why a pod went where it went."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from greensched_cli.replicas import Answer, ask_replicas, decision_path
from greensched_core.durations import format_duration
from greensched_core.errors import ApiUnavailable

Address = Annotated[
    str | None,
    typer.Option(
        envvar="GREENSCHED_EXPLAIN_ADDRESS",
        help="http://host:port of one extender's explain routes; by default every replica is "
        "asked through a port-forward.",
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(envvar="GREENSCHED_KUBECONFIG", help="As kubectl's, which is the default."),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
ExtenderNamespace = Annotated[str, typer.Option(help="Namespace that GreenSched is installed in.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print what the replicas said, as JSON.")]
Rows = Annotated[int, typer.Option(min=1, help="Print at most this many nodes.")]


def explain(
    pod: Annotated[str, typer.Argument(help="Name of the pod.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n")] = "default",
    rows: Rows = 15,
    address: Address = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    extender_namespace: ExtenderNamespace = "greensched",
    as_json: AsJson = False,
) -> None:
    """Say which nodes a pod was offered, what each would have cost, and why it went where it did.

    Exits with 1 when no replica remembers a decision on that pod.
    """
    answers = ask_replicas(
        decision_path(namespace, pod),
        address=address,
        kubeconfig=kubeconfig,
        context=context,
        namespace=extender_namespace,
    )
    decisions = _known(answers)
    if as_json:
        print(json.dumps(decisions, indent=2))
    console = Console(highlight=False, width=None if Console().is_terminal else 160)
    if not decisions:
        for answer in answers:
            if answer.status != 404:
                console.print(f"{answer.replica}: {_fault(answer)}", style="red")
        console.print(
            f"No replica remembers a decision on {namespace}/{pod}. Does it say `schedulerName: "
            "greensched`? A pod with a single feasible node is never asked about, and decisions "
            "are kept in memory only: a restart forgets them."
        )
        raise typer.Exit(1)
    if not as_json:
        latest = max(decisions, key=lambda decision: float(decision["decidedAt"]))
        _print_decision(console, latest, rows, len(decisions))


def _known(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return what all replicas remember, what two of them remember alike only once."""
    known: dict[tuple[str, float], dict[str, Any]] = {}
    for answer in answers:
        for decision in answer.body["decisions"] if answer.status == 200 else ():
            key = (decision["pod"]["uid"], decision["decidedAt"])
            known.setdefault(key, {**decision, "replica": answer.replica})
    return list(known.values())


def nodes(
    address: Address = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    extender_namespace: ExtenderNamespace = "greensched",
    as_json: AsJson = False,
) -> None:
    """List what the extender believes of each node."""
    answers = ask_replicas(
        "/v1/nodes",
        address=address,
        kubeconfig=kubeconfig,
        context=context,
        namespace=extender_namespace,
    )
    good = [answer for answer in answers if answer.status == 200]
    if not good:
        faults = "; ".join(f"{answer.replica}: {_fault(answer)}" for answer in answers)
        raise ApiUnavailable(f"no replica told its nodes: {faults}")
    if as_json:
        print(json.dumps(good[0].body, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, justify in _NODE_COLUMNS:
        table.add_column(column, justify="right" if justify else "left", no_wrap=True)
    for node in good[0].body["nodes"]:
        table.add_row(*_node_cells(node))
    console = Console(highlight=False, width=None if Console().is_terminal else 200)
    console.print(table)
    faulty = [node for node in good[0].body["nodes"] if node.get("faults")]
    for node in faulty:
        console.print(f"{node['name']}: {'; '.join(node['faults'])}", style="yellow")


_NODE_COLUMNS = (
    ("NODE", False),
    ("ZONE", False),
    ("HARDWARE", False),
    ("BY", False),
    ("CORES", True),
    ("USED", True),
    ("GPUS", True),
    ("PODS", True),
    ("WATTS", True),
    ("IDLE", True),
    ("FULL", True),
    ("G/KWH", True),
    ("PER MWH", True),
)


def _node_cells(node: dict[str, Any]) -> Sequence[str]:
    return (
        node["name"],
        node["zone"] or "–",
        node["hardware"],
        node["curveSource"],
        f"{node['cpuCores']:g}",
        f"{100 * node['cpuUtilisation']:.0f} %",
        f"{node['gpus']:g}",
        str(node["pods"]),
        _number(node["powerWatts"], 0),
        _number(node["idleWatts"], 0),
        _number(node["peakWatts"], 0),
        _number(node["carbonGramsPerKwh"], 0),
        _number(node["pricePerMwh"], 1),
    )


def _print_decision(console: Console, decision: dict[str, Any], rows: int, known: int) -> None:
    pod = decision["pod"]
    when = datetime.fromtimestamp(decision["decidedAt"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    runtime = format_duration(pod["runtimeSeconds"])
    said = " (not said: the default)" if pod["runtimeIsDefault"] else ""
    console.print(
        f"[bold]{pod['namespace']}/{pod['name']}[/bold]: {pod['cpuCores']:g} cores, "
        f"{pod['memoryBytes'] / 2**30:.2g} GiB, {pod['gpus']:g} GPUs for {runtime}{said}"
    )
    outcome = decision["outcome"]
    where = outcome.get("node") or outcome["state"]
    console.print(
        f"decided {when} by {decision['policy']} over {decision['offered']} nodes "
        f"(replica {decision['replica']}); expected on {decision['expectedNode'] or 'any'}, "
        f"went to {where}"
    )
    if decision["fallbackReason"]:
        console.print(f"the model did not answer: {decision['fallbackReason']}", style="yellow")
    for fault in pod["faults"]:
        console.print(f"not understood: {fault}", style="yellow")
    console.print(_zones(decision["zones"]))
    console.print(_candidates(decision, rows))
    rest = len(decision["candidates"]) - rows
    if rest > 0:
        console.print(f"… and {rest} dearer nodes (--rows {rows + rest} prints them)")
    if known > 1:
        console.print(f"{known} decisions are remembered; this is the latest (--json has all)")


def _zones(zones: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("ZONE", "G/KWH OVER THE RUN", "FROM", "AGE", "PER MWH", "FROM", "AGE"):
        table.add_column(column, no_wrap=True)
    for zone in zones:
        table.add_row(
            zone["zone"],
            _number(zone["carbonGramsPerKwh"], 1),
            zone["carbonFrom"],
            _age(zone["carbonAgeSeconds"]),
            f"{_number(zone['pricePerMwh'], 2)} {zone['currency'] or ''}",
            zone["priceFrom"],
            _age(zone["priceAgeSeconds"]),
        )
    return table


def _candidates(decision: dict[str, Any], rows: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("SCORE", "NODE", "ZONE", "WATTS", "WH", "CARBON G", "COST", "RELATIVE"):
        table.add_column(
            column, justify="left" if column in ("NODE", "ZONE") else "right", no_wrap=True
        )
    chosen = decision["outcome"].get("node")
    for candidate in decision["candidates"][:rows]:
        table.add_row(
            str(candidate["score"]),
            candidate["node"],
            candidate["zone"] or "–",
            _number(candidate["powerWatts"], 1),
            _number(candidate["energyJoules"] / 3600.0, 2),
            _number(candidate["carbonGrams"], 3),
            _number(candidate["cost"], 6),
            _number(candidate["relativeCost"], 3),
            style="bold green" if candidate["node"] == chosen else None,
        )
    return table


def _number(value: float | None, digits: int) -> str:
    return "no data" if value is None else f"{value:.{digits}f}"


def _age(seconds: float | None) -> str:
    return "–" if seconds is None else format_duration(seconds)


def _fault(answer: Answer) -> str:
    said = answer.body.get("error") if isinstance(answer.body, dict) else None
    return f"HTTP {answer.status}: {said or answer.body}"
