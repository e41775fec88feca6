"""The extender's answers as text: a decision, and what the extender knows about nodes.

Text from users (names, annotations) is printed as it is, never as markup.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from greensched_cli.terminal import CellTone, TableRow, plain_console, print_table
from greensched_core.durations import format_duration
from greensched_core.units import SECONDS_PER_HOUR, chance_text
from greensched_extender.amounts import digits, scaled_amounts
from greensched_extender.why import TOO_LATE, as_cheap

_JOULES_PER_WH = SECONDS_PER_HOUR  # one watt for one hour
_NODE_HEAD = (
    "NODE", "ZONE", "HARDWARE", "BY", "CORES", "USED", "GPUS", "PODS", "WATTS", "METER", "IDLE",
    "FULL", "G/KWH", "PER MWH",
)  # fmt: skip
_NODE_TEXTS = ("ZONE", "HARDWARE", "BY", "METER")
_ZONE_HEAD = ("ZONE", "G/KWH OVER THE RUN", "FROM", "AGE", "PER MWH", "FROM", "AGE")
_CANDIDATE_HEAD = ("NODE", "SCORE", "ZONE", "POWER", "ENERGY", "CARBON", "COST", "RELATIVE")


def print_decision(decision: Mapping[str, Any], rows: int, known: int) -> None:
    """Print one of `known` remembered decisions, with its `rows` cheapest nodes."""
    console = plain_console()
    _print_pod(console, decision)
    print_table(console, "", _zone_rows(decision["zones"]), _ZONE_HEAD)
    print_table(console, "", _candidate_rows(decision, rows), ("ZONE",))
    rest = len(decision["candidates"]) - rows
    if rest > 0:
        console.print(f"… and {_rest(decision, rows)} (--rows {rows + rest} prints them)")
    if known > 1:
        console.print(f"{known} decisions are remembered; this is the latest (-o json has all)")


def print_nodes(nodes: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each node, then the faults found in nodes."""
    console = plain_console()
    print_table(console, "", [_NODE_HEAD, *map(_node_cells, nodes)], _NODE_TEXTS)
    for node in nodes:
        if node.get("faults"):
            faults = "; ".join(printable(fault) for fault in node["faults"])
            console.print(f"{node['name']}: {faults}", style="yellow")


def _node_cells(node: Mapping[str, Any]) -> Sequence[str]:
    return (
        node["name"],
        node["zone"] or "–",
        node["hardware"],
        node["curveSource"],
        _short(node["cpuCores"]),
        _percent(node["cpuUtilisation"]),
        _short(node["gpus"]),
        str(node["pods"]),
        _number(node["powerWatts"], 0),
        node.get("powerMeter") or "–",
        _number(node["idleWatts"], 0),
        _number(node["peakWatts"], 0),
        _number(node["carbonGramsPerKwh"], 0),
        _number(node["pricePerMwh"], 1),
    )


def _print_pod(console: Console, decision: Mapping[str, Any]) -> None:
    pod = decision["pod"]
    console.print(f"{pod['namespace']}/{pod['name']}{_asked(pod)}", style="bold")
    if decision.get("why"):
        console.print(printable(decision["why"]), soft_wrap=True)
    console.print(
        f"decided {_utc(decision['decidedAt'])} by {_policy(decision)} over {decision['offered']} "
        f"nodes (replica {decision['replica']}); {_went(decision)}",
        soft_wrap=True,
    )
    for words in (_risk(decision), _gpu_shares(decision["candidates"])):
        if words:
            console.print(words, soft_wrap=True)
    if decision["fallbackReason"]:
        console.print(f"the model did not answer: {decision['fallbackReason']}", style="yellow")
    for fault in pod["faults"]:
        console.print(f"not understood: {printable(fault)}", style="yellow")


def _utc(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _risk(decision: Mapping[str, Any]) -> str:
    """Return the chance that work that was held ends late on its node; "" without a deadline."""
    name = decision["outcome"].get("node") or decision["expectedNode"]
    share = next(
        (each.get("lateShare") for each in decision["candidates"] if each["node"] == name), None
    )
    if share is None:
        return ""
    return (
        f"risk: {chance_text(share)} of runs that begin then on {name} end after the deadline, "
        f"{_utc(decision['deadline'])}; the policy's target is at most "
        f"{chance_text(1.0 - decision['onTimeTargetShare'])}"
    )


def _gpu_shares(candidates: Sequence[Mapping[str, Any]]) -> str:
    """Return where the watts of GPUs come from; "" for a pod without GPUs."""
    sources = [each.get("gpuShareFrom") for each in candidates]
    measured, assumed = sources.count("measured"), sources.count("assumed")
    if not measured:
        return "watts of GPUs: assumed" if assumed else ""
    nodes = _counted(measured, "node") + (f", assumed on {assumed}" if assumed else "")
    return f"watts of GPUs: as measured on GPUs of that kind on {nodes}"


def _went(decision: Mapping[str, Any]) -> str:
    outcome, expected = decision["outcome"], decision["expectedNode"]
    node = outcome.get("node")
    expectation = f"expected on {expected}" if expected else "all nodes scored the same"
    if outcome["state"] == TOO_LATE:
        return (
            f"{expectation}, but the answer came too late: kube-scheduler placed the pod on {node} "
            "without our scores"
        )
    if not node:
        return f"{expectation}, {outcome['state']}"
    if node == expected:
        return f"went to {node}, as expected"
    cost_of = {each["node"]: each["relativeCost"] for each in decision["candidates"]}
    if expected and _cost_the_same(cost_of.get(node), cost_of.get(expected)):
        return f"went to {node}, as cheap as {expected}"
    return f"{expectation}, went to {node}"


def _rest(decision: Mapping[str, Any], rows: int) -> str:
    """Return how many nodes are not shown; call them dearer only if all of them are."""
    candidates = decision["candidates"]
    rest = len(candidates) - rows
    first, next_one = candidates[0]["relativeCost"], candidates[rows]["relativeCost"]
    is_dearer = None not in (first, next_one) and not as_cheap(first, next_one)
    return _counted(rest, "dearer node" if is_dearer else "other node")


def _cost_the_same(cost: float | None, other: float | None) -> bool:
    return cost is not None and other is not None and as_cheap(cost, other)


def _asked(pod: Mapping[str, Any]) -> str:
    memory = pod["memoryBytes"]
    gib = "no data" if memory is None else f"{memory / 2**30:.2g}"
    source = " (the default: none was given)" if pod["runtimeIsDefault"] else ""
    return (
        f": {_counted(pod['cpuCores'], 'core')}, {gib} GiB, {_counted(pod['gpus'], 'GPU')} "
        f"for {_runtime(pod['runtimeSeconds'])}{source}"
    )


def _policy(decision: Mapping[str, Any]) -> str:
    bundle, weights = decision.get("bundle"), decision.get("weights")
    name = f"{decision['policy']} (bundle {bundle})" if bundle else str(decision["policy"])
    if not weights:
        return name
    whose = f" of {printable(decision['weightsFrom'])}" if decision.get("weightsFrom") else ""
    shown = ", ".join(f"{what} {_short(weight)}" for what, weight in weights.items())
    return f"{name}, weights {shown}{whose}"


def _zone_rows(zones: Sequence[Mapping[str, Any]]) -> list[TableRow]:
    cells = (
        (
            zone["zone"],
            _number(zone["carbonGramsPerKwh"], 1),
            zone["carbonFrom"],
            _age(zone["carbonAgeSeconds"]),
            f"{_number(zone['pricePerMwh'], 2)} {zone['currency'] or ''}",
            zone["priceFrom"],
            _age(zone["priceAgeSeconds"]),
        )
        for zone in zones
    )
    return [_ZONE_HEAD, *cells]


def _candidate_rows(decision: Mapping[str, Any], rows: int) -> list[TableRow]:
    """Return a head and a line for each candidate; mark the line of the pod's node."""
    chosen = decision["outcome"].get("node")
    candidates = decision["candidates"][:rows]
    joules = [candidate["energyJoules"] for candidate in candidates]
    hours = [None if each is None else each / _JOULES_PER_WH for each in joules]
    power = _in_unit([candidate["powerWatts"] for candidate in candidates], "W")
    carbon = _in_unit([candidate["carbonGrams"] for candidate in candidates], "g")
    amounts = zip(candidates, power, _in_unit(hours, "Wh"), carbon, strict=True)
    found: list[TableRow] = [_CANDIDATE_HEAD]
    for candidate, power_text, energy_text, carbon_text in amounts:
        tone: CellTone = "better" if candidate["node"] == chosen else ""
        texts = (
            candidate["node"],
            _number(candidate["score"], 0),
            candidate["zone"] or "–",
            power_text,
            energy_text,
            carbon_text,
            _money(candidate["cost"], candidate["currency"]),
            _number(candidate["relativeCost"], 3),
        )
        found.append([(text, tone) for text in texts])
    return found


def _in_unit(values: Sequence[float | None], unit: str) -> list[str]:
    """Return a column's amounts, all in one unit, so that they can be compared."""
    shown, scaled_unit = scaled_amounts([value or 0.0 for value in values], unit)
    pairs = zip(values, shown, strict=True)
    return ["no data" if value is None else f"{text} {scaled_unit}" for value, text in pairs]


def _money(value: float | None, currency: str | None) -> str:
    return "no data" if value is None else f"{digits(value)} {currency or ''}".rstrip()


def _counted(count: float | None, noun: str) -> str:
    return f"{_short(count)} {noun}{'' if count == 1 else 's'}"


def _number(value: float | None, digits: int) -> str:
    return "no data" if value is None else f"{value:.{digits}f}"


def _short(value: float | None) -> str:
    return "no data" if value is None else f"{value:g}"


def _percent(share: float | None) -> str:
    return "no data" if share is None else f"{100 * share:.0f} %"


def _runtime(seconds: float | None) -> str:
    return f"{seconds * 1e3:.3g}ms" if seconds is not None and 0 < seconds < 1 else _age(seconds)


def _age(seconds: float | None) -> str:
    return "–" if seconds is None else format_duration(seconds)


def printable(text: str) -> str:
    """Return the text with a question mark for each character that could control a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)
