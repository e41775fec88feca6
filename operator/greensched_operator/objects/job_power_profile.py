"""JobPowerProfile: what a run draws phase by phase, and where its work is saved.

The phases are those of the simulator's job model (Opitz's thesis): startup, then work, each with a
constant power; whoever resumes starts up again and repeats the work since the last checkpoint.
Powers are watts of one pod above its node's idle power, durations those on a reference node.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from greensched_core.errors import BadInput
from greensched_operator.objects.resource_fields import (
    CheckpointFields,
    PhaseFields,
    ProfileFields,
    decoded_object,
    read_duration,
    read_meta,
    read_part,
    within,
)

MOST_WATTS = 1e6
MOST_CHECKPOINTS = 1000  # more cost a planner more than they tell it
SAME_MOMENT_S = 1e-6  # sums of durations differ by less


@dataclass(frozen=True, slots=True)
class ProfilePhase:
    """A stretch of a run with constant power."""

    name: str
    duration_s: float
    power_w: float
    is_checkpoint: bool = False  # at its end all work so far is saved


@dataclass(frozen=True, slots=True)
class JobPowerProfile:
    """The phases of a run; each checkpoint is the end of one."""

    namespace: str
    name: str
    generation: int
    startup: tuple[ProfilePhase, ...]
    work: tuple[ProfilePhase, ...]
    restart: tuple[ProfilePhase, ...] | None = None  # startup of a resumed run; None: the same

    @property
    def runtime_s(self) -> float:
        """Return how long a run takes that is never suspended."""
        return _length_s(self.startup) + _length_s(self.work)

    @property
    def resume_s(self) -> float:
        """Return how long a resumed run starts up."""
        return _length_s(self._resumed)

    @property
    def resume_j(self) -> float:
        """Return what the startup of a resumed run takes."""
        return sum(phase.duration_s * phase.power_w for phase in self._resumed)

    @property
    def _resumed(self) -> tuple[ProfilePhase, ...]:
        return self.startup if self.restart is None else self.restart


@dataclass(frozen=True, slots=True)
class ParsedProfile:
    """A profile, or None and in `faults` what is wrong in words."""

    profile: JobPowerProfile | None
    faults: tuple[str, ...] = ()


def parse(raw: object) -> ParsedProfile:
    """Read a JobPowerProfile (JSON, or decoded); never raises.

    Without a profile a workload counts as one phase of constant power.
    """
    try:
        whole = decoded_object(raw)
        meta, spec = read_meta(whole), read_part(whole, "spec", ProfileFields)
        profile = JobPowerProfile(
            namespace=meta.namespace,
            name=meta.name,
            generation=meta.generation,
            startup=_phases(spec.startup or [], "spec.startup"),
            work=_work(spec),
            restart=None if spec.resume is None else _phases(spec.resume, "spec.resume"),
        )
    except BadInput as fault:
        return ParsedProfile(None, (str(fault),))
    return ParsedProfile(profile)


def _phases(items: Sequence[PhaseFields], where: str) -> tuple[ProfilePhase, ...]:
    return tuple(_phase(item, f"{where}[{number}]") for number, item in enumerate(items))


def _phase(item: PhaseFields, where: str) -> ProfilePhase:
    if item.duration is None or item.watts is None:
        raise BadInput(f"{where}: a phase needs duration and watts")
    return ProfilePhase(
        name=item.name or where.removeprefix("spec."),
        duration_s=read_duration(item.duration, f"{where}.duration", above_zero=True),
        power_w=within(item.watts, MOST_WATTS, f"{where}.watts"),
    )


def _work(spec: ProfileFields) -> tuple[ProfilePhase, ...]:
    """Return the phases of work, cut where it is saved."""
    items = spec.work or []
    if not items:
        raise BadInput("spec.work: a profile needs at least one phase of work")
    phases = _phases(items, "spec.work")
    marks = _marks(spec.checkpoints or CheckpointFields(), _length_s(phases))
    pieces: list[ProfilePhase] = []
    begin_s = 0.0
    for item, phase in zip(items, phases, strict=True):
        pieces += _pieces(phase, begin_s, marks, is_saved=bool(item.checkpoint))
        begin_s += phase.duration_s
    return tuple(pieces)


def _marks(spec: CheckpointFields, whole_s: float) -> list[float]:
    """Return after how many seconds of work it is saved, in order; raise BadInput beyond it."""
    marks: set[float] = set()
    for number, text in enumerate(spec.at or []):
        where = f"spec.checkpoints.at[{number}]"
        mark = read_duration(text, where, above_zero=True)
        if mark > whole_s + SAME_MOMENT_S:
            raise BadInput(f"{where}: the work takes {whole_s:g} s: no checkpoint after {mark:g} s")
        marks.add(mark)
    if spec.every is not None:
        every = read_duration(spec.every, "spec.checkpoints.every", above_zero=True)
        if whole_s > every * (MOST_CHECKPOINTS + 1):
            raise BadInput(f"spec.checkpoints.every: more than {MOST_CHECKPOINTS} in {whole_s:g} s")
        count = math.ceil((whole_s - SAME_MOMENT_S) / every) - 1  # none at the very end
        marks.update(every * (number + 1) for number in range(count))
    if len(marks) > MOST_CHECKPOINTS:
        raise BadInput(f"spec.checkpoints: {len(marks)} are more than {MOST_CHECKPOINTS}")
    return sorted(marks)


def _pieces(
    phase: ProfilePhase, begin_s: float, marks: Sequence[float], *, is_saved: bool
) -> Iterator[ProfilePhase]:
    """Yield a phase in pieces, each but the last ending at a mark within."""
    end_s, at_s = begin_s + phase.duration_s, begin_s
    for mark in marks:
        if at_s + SAME_MOMENT_S < mark < end_s - SAME_MOMENT_S:
            yield ProfilePhase(phase.name, mark - at_s, phase.power_w, is_checkpoint=True)
            at_s = mark
    ends_at_mark = any(abs(mark - end_s) <= SAME_MOMENT_S for mark in marks)
    left_s = end_s - at_s if at_s > begin_s else phase.duration_s  # sums are rounded
    yield ProfilePhase(phase.name, left_s, phase.power_w, is_saved or ends_at_mark)


def _length_s(phases: Sequence[ProfilePhase]) -> float:
    return sum(phase.duration_s for phase in phases)
