"""Held work and the operator's state, as text for a terminal.

Text from users is printed as it is, never as markup.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from greensched_cli.explain.explanation import printable
from greensched_cli.reading.held_work import HeldWork, ReleasedWork
from greensched_cli.reading.local_times import NO_TIME, LocalTimes
from greensched_cli.reading.operator_state import ClusterPart, Leader, OperatorState
from greensched_cli.terminal import TableCell, TableRow, print_table
from greensched_core.custom_resources.policy_lookup import DEFAULT_NAME
from greensched_core.durations import format_duration
from greensched_core.units import signed_percent
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy

_LONGEST_NAME, _LONGEST_NARROW = 40, 24  # characters on a line
_NARROW_COLUMNS = 120
_MOST_RELEASED = 20
_LABEL_WIDTH = len("emergency release") + 2  # the longest of _state_lines
_HELD_HEAD: TableRow = (
    "WORK", "CORES", "SINCE", "PLANNED START", "LATEST START", "DEADLINE", "CARBON", "COST",
    "G/KWH", "POLICY",
)  # fmt: skip
_RELEASED_HEAD: TableRow = ("WORK", "STARTED", "REASON", "HELD FOR")


@dataclass(frozen=True, slots=True)
class StatusContent:
    """The content of one answer."""

    scope: str
    has_namespaces: bool  # more than one: names include their namespace
    held: Sequence[HeldWork]
    released: Sequence[ReleasedWork] | None  # None: not asked for
    state: OperatorState
    policies: Mapping[str, GreenPolicy]  # in force, by namespace
    advice: Sequence[str]
    unread: Mapping[ClusterPart, str]


def print_status(console: Console, content: StatusContent, times: LocalTimes) -> None:
    """Print the tables of held and of started work, and the operator's state with advice."""
    zone = times.zone_text
    if content.held:
        width = console.width
        rows = [_HELD_HEAD, *(_held_row(each, content, times, width) for each in content.held)]
        print_table(console, f"Held in {content.scope}; times in {zone}", rows)
        console.print()
    console.print(_summary(content), style="bold", soft_wrap=True)
    for each in content.held:
        for fault in each.faults:
            name = f"{each.work.namespace}/{each.name}"
            console.print(printable(f"{name}: {fault}"), style="yellow", soft_wrap=True)
    if content.released is not None:
        _print_released(console, content, times)
    console.print()
    print_state(console, content, times)


def print_state(console: Console, content: StatusContent, times: LocalTimes) -> None:
    """Print the operator's state, what could not be read, and the advice."""
    for what, text in _state_lines(content, times):
        console.print(printable(f"{what:<{_LABEL_WIDTH}}{text}"), soft_wrap=True)
    for text in content.advice:
        console.print(printable(f"! {text}."), style="yellow", soft_wrap=True)


def _summary(content: StatusContent) -> str:
    if not content.held:
        gap = (
            " that could be read"
            if content.unread.keys() & {ClusterPart.JOBS, ClusterPart.PODS}
            else ""
        )
        return f"Nothing{gap} is held in {content.scope}."
    cores = sum(each.work.cpu_cores for each in content.held)
    unplanned = sum(each.planned_s is None for each in content.held)
    more = f", {unplanned} without a plan yet" if unplanned else ""
    plural = "" if cores == 1.0 else "s"
    return f"{len(content.held)} held, {cores:g} core{plural}{more}."


def _held_row(held: HeldWork, content: StatusContent, times: LocalTimes, width: int) -> TableRow:
    decision = held.decision
    then, now = decision.carbonGramsPerKwh if decision else (None, None)
    carbon = NO_TIME if then is None or now is None else f"{then:.0f} (now {now:.0f})"
    return (
        folded(_name(held, content), width),
        f"{held.work.cpu_cores:g}",
        times.short(held.held_s),
        _with_distance(held.planned_s, times) if held.planned_s is not None else "no plan yet",
        _latest(held, times),
        times.short(held.deadline_s),
        _change(decision.carbonChange if decision else None),
        _change(decision.costChange if decision else None),
        carbon,
        printable(_policy(held)),
    )


def _change(share: float | None) -> str:
    return NO_TIME if share is None else signed_percent(share)


def _name(work: HeldWork | ReleasedWork, content: StatusContent) -> str:
    name = printable(work.name)
    return f"{work.work.namespace}/{name}" if content.has_namespaces else name


def folded(name: str, columns: int) -> str:
    """Return a long name split into several lines, to leave room for figures."""
    longest = _LONGEST_NARROW if columns < _NARROW_COLUMNS else _LONGEST_NAME
    return "\n".join(name[at : at + longest] for at in range(0, len(name), longest))


def _policy(held: HeldWork) -> str:
    """Return a policy's name, with its namespace if it differs from the work's."""
    name = held.policy.removeprefix("GreenPolicy ").removeprefix("the ")
    return name.removeprefix(f"{held.work.namespace}/") or NO_TIME


def _with_distance(at_s: float, times: LocalTimes) -> str:
    return f"{times.short(at_s)} ({times.away(at_s)})"


def _latest(held: HeldWork, times: LocalTimes) -> TableCell:
    if held.latest_s is None:
        return "unknown", "worse"
    if held.is_overdue(times.now_s):
        return f"OVERDUE {format_duration(round(times.now_s - held.latest_s))}", "worse"
    return times.short(held.latest_s)


def _print_released(console: Console, content: StatusContent, times: LocalTimes) -> None:
    released = content.released or ()
    console.print()
    if not released:
        console.print(f"Nothing that still exists in {content.scope} was held and started.")
        return
    shown = released[:_MOST_RELEASED]
    rows = [_released_row(each, content, times, console.width) for each in shown]
    title = f"Started in {content.scope}, the latest first; times in {times.zone_text}"
    print_table(console, title, [_RELEASED_HEAD, *rows])
    more = len(released) - _MOST_RELEASED
    if more > 0:
        console.print(f"… and {more} earlier ones (--output json has all)")


def _released_row(
    each: ReleasedWork, content: StatusContent, times: LocalTimes, width: int
) -> TableRow:
    held_for = None if each.at_s is None or each.held_s is None else each.at_s - each.held_s
    return (
        folded(_name(each, content), width),
        times.short(each.at_s),
        printable(each.reason) or NO_TIME,
        NO_TIME if held_for is None else format_duration(round(max(held_for, 0.0))),
    )


def _state_lines(content: StatusContent, times: LocalTimes) -> Iterator[tuple[str, str]]:
    state = content.state
    if state.knows(ClusterPart.LEASE):
        yield "operator", f"{leader_words(state.leader)} (namespace {state.namespace})"
    if state.knows(ClusterPart.RELEASER):
        yield "releaser", f"{state.releasers[0]} of {state.releasers[1]} pods ready"
    if state.knows(ClusterPart.HEARTBEAT):
        age_s = state.heartbeat_age_s
        yield "heartbeat", "none" if age_s is None else f"last sign of life {_ago(age_s)}"
    if state.knows(ClusterPart.WEBHOOK):
        hooks = [
            f"{one.name}, {'has' if one.is_trusted else 'NO'} caBundle" for one in state.webhooks
        ]
        yield "webhook", "; ".join(hooks) or "not configured"
    if state.knows(ClusterPart.EMERGENCY_RELEASE):
        yield "emergency release", "ON: nothing is held" if state.is_emergency_release else "off"
    if state.knows(ClusterPart.SIGNALS):
        ages = [
            f"{one.zone} no data" if one.age_s is None
            else f"{one.zone} {format_duration(round(max(one.age_s, 0.0)))} old ({one.source})"
            for one in state.signals
        ]  # fmt: skip
        yield "signals", ", ".join(ages) or "none"
    if state.knows(ClusterPart.POLICIES):
        none = f" (no GreenPolicy {DEFAULT_NAME} in {state.namespace})"
        modes = sorted(
            {
                f"{policy.title}: {policy.mode}{none if policy == BUILT_IN else ''}"
                for policy in content.policies.values()
            }
        )
        yield "policies", "; ".join(modes) or "none in force"
    reasons: dict[str, list[str]] = {}
    for part, why in content.unread.items():
        reasons.setdefault(why, []).append(part)
    for why, parts in reasons.items():
        yield "not read", f"{', '.join(parts)}: {why}"


def leader_words(leader: Leader | None) -> str:
    """Return who leads, and the age of the Lease's last renewal."""
    if leader is None:
        return "none: there is no Lease"
    if not leader.holder:
        return "none: the last one gave its Lease up"
    silent = "never" if leader.silent_s is None else _ago(leader.silent_s)
    return f"{leader.holder} {'leads' if leader.is_alive else 'is dead'}, last renewal {silent}"


def _ago(seconds: float) -> str:
    return f"{format_duration(round(max(seconds, 0.0)))} ago"
