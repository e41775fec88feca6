"""One workload in full: why and until when it is held, and how to start it now; pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from greensched_cli.reading.held_work import HeldWork, ReleasedWork, short_name
from greensched_cli.reading.local_times import LocalTimes
from greensched_core import labels
from greensched_core.units import chance_text, percent_text, signed_percent
from greensched_operator.objects.workloads import Work

_RUNTIME_ORIGINS = {
    "annotation": f"from its annotation {labels.RUNTIME}",
    "past runs": "the median of past runs of its CronJob, on a reference node",
    "power profile": "the sum of the phases of its JobPowerProfile",
    "default": f"not given, so the policy's default; set it by {labels.RUNTIME}",
}


@dataclass(frozen=True, slots=True)
class WorkEvent:
    """An event about a workload."""

    at_s: float | None
    reason: str
    message: str
    is_warning: bool


def held_lines(held: HeldWork, times: LocalTimes) -> Iterator[str]:
    """Yield the details of held work."""
    work = held.work
    state = "paused" if work.is_paused else "held"
    cores = "1 core waits" if work.cpu_cores == 1.0 else f"{work.cpu_cores:g} cores wait"
    yield f"{work.namespace}/{held.name} is {state}: {cores}."
    yield _line(f"{state} since", times.whole(held.held_s))
    yield _line("why", held.reason or "no reason is recorded")
    yield _line("planned", _planned(held, times))
    yield _line("latest start", _latest(held, times))
    deadline = "none" if held.deadline_s is None else times.whole(held.deadline_s)
    yield _line("deadline", deadline)
    yield _line("runtime", _runtime(held.runtime))
    if held.decision is not None and held.decision.lateChance is not None:
        share = chance_text(held.decision.lateChance)
        yield _line("risk", f"{share} of runs planned like this end after the deadline")
    yield from _saving(held)
    yield _line("policy", held.policy or "could not be read")
    if work.gang:
        yield _line("gang", f"{work.gang}: all its members start together")
    for fault in held.faults:
        yield _line("wrong", fault)
    yield _line("start it now", f"greensched release {held.name} -n {work.namespace}")
    yield _line("or", f"kubectl -n {work.namespace} annotate {held.name} {labels.RUN_NOW}=true")


def released_lines(released: ReleasedWork, times: LocalTimes) -> Iterator[str]:
    """Yield when and why work was started."""
    work = released.work
    ended = " and has ended" if work.is_finished else ""
    yield f"{work.namespace}/{released.name} is not held: it was started{ended}."
    if released.held_s is not None:
        yield _line("held since", times.whole(released.held_s))
    yield _line("started", times.whole(released.at_s))
    yield _line("reason", released.reason or "no reason is recorded")


def unheld_lines(work: Work, why: str) -> Iterator[str]:
    """Yield that work was never held, and a possible reason."""
    name = f"{work.namespace}/{short_name(work)}"
    if work.is_stopped:
        yield f"{name} is suspended, but not by GreenSched, which never starts it."
        return
    yield f"{name} is not held by GreenSched, and never was{why}."


def event_lines(events: Sequence[WorkEvent], times: LocalTimes) -> Iterator[str]:
    """Yield the events of a workload, the oldest first."""
    if events:
        yield "events:"
    for each in sorted(events, key=lambda event: event.at_s or 0.0):
        warning = "Warning " if each.is_warning else ""
        yield f"  {times.short(each.at_s)}  {warning}{each.reason}: {each.message}"


def _planned(held: HeldWork, times: LocalTimes) -> str:
    if held.planned_s is None:
        return "no plan yet; without one it starts at its latest start"
    zone = held.decision.zone if held.decision else ""
    return times.whole(held.planned_s) + (f", by the forecast of zone {zone}" if zone else "")


def _latest(held: HeldWork, times: LocalTimes) -> str:
    if held.latest_s is None:
        return "not known"
    bound = f", by {held.bound}" if held.bound else ""
    late = "; overdue" if held.is_overdue(times.now_s) else ""
    return times.whole(held.latest_s) + bound + late


def _runtime(runtime: str) -> str:
    length, _, source = runtime.partition(" (")
    origin = _RUNTIME_ORIGINS.get(source.rstrip(")"))
    return f"{length}, {origin}" if origin else runtime or "no estimate is written"


def _saving(held: HeldWork) -> Iterator[str]:
    decision = held.decision
    if decision is None or decision.saving is None:
        yield _line("saving", "not known before it is planned")
        return
    for what, changed, (then, now), unit in (
        ("carbon", decision.carbonChange, decision.carbonGramsPerKwh, "g/kWh"),
        ("cost", decision.costChange, decision.pricePerMwh, "per MWh"),
    ):
        if then is not None and now is not None:
            before = "" if changed is None else f"{signed_percent(changed)}: "
            text = f"{then:.4g} {unit} over the planned run, {now:.4g} at the soonest start"
            yield _line(what, before + text)
    share = percent_text(decision.saving)
    yield _line("saving", f"{share} of its weighted cost, against the soonest start")


def _line(what: str, text: str) -> str:
    return f"  {what + ':':<14}{text}"
