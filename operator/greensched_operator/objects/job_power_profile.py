"""JobPowerProfile: the power of a run by phase, and the checkpoints that save its work.

The phases are those of the simulator's job model (Opitz's thesis): startup, then work, each with a
constant power. A resumed run starts up again and repeats the work since the last checkpoint.
Powers are watts of one pod above its node's idle power, durations those on a reference node.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from greensched_core.custom_resources.fields import (
    FieldDefinition,
    SchemaRule,
    as_read,
    custom_field,
    duration,
    flag,
    group,
    many,
    number,
    text,
)
from greensched_core.errors import BadInput
from greensched_core.units import SAME_MOMENT_S
from greensched_operator.objects.resource_fields import decoded_object, read_meta

MOST_WATTS = 1e6
MOST_PHASES = 20
MOST_CHECKPOINTS = 1000  # more cost the planner time and hardly improve a plan
_NO_PHASE = "a phase needs duration and watts"
_IS_PHASE = SchemaRule("has(self.duration) && has(self.watts)", _NO_PHASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFields:
    """A phase before the work."""

    name: str | None = custom_field(
        "name", text(63, "text"), "What it does, for the reader.", unset=None, absent="none"
    )
    duration_s: float = custom_field(
        "duration",
        duration("a phase takes time; its duration must be above zero"),
        "How long it takes on a reference node.",
        needed=_NO_PHASE,
    )
    power_w: float = custom_field(
        "watts",
        number(
            MOST_WATTS,
            f"W, 0 to {MOST_WATTS:.0f}",
            SchemaRule("self >= 0.0", "watts cannot be negative"),
            SchemaRule(
                f"self <= {MOST_WATTS:.1f}",
                f"more than {MOST_WATTS:.0f} watts are too many for a pod; the unit is watts, not "
                "milliwatts",
            ),
        ),
        "Power that one pod draws above its node's idle power.",
        needed=_NO_PHASE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFields(PhaseFields):
    """A phase of work."""

    is_saved: bool = custom_field(
        "checkpoint",
        flag(),
        "Whether the phase ends with a checkpoint, which saves all work so far.",
        unset=False,
        absent="false",
    )


@dataclass(frozen=True, slots=True)
class CheckpointFields:
    """Checkpoints other than those at the ends of phases; each saves all work so far."""

    every_s: float | None = custom_field(
        "every",
        duration("every must be above zero"),
        "The work is saved each time it has run for this long.",
        unset=None,
        absent="never",
    )
    at_s: tuple[float, ...] = custom_field(
        "at",
        many(duration("a checkpoint must be above 0s"), 100, as_read, unit="durations"),
        "Durations of work, counted from its beginning; it is saved once after each.",
        unset=(),
        absent="never",
    )


_PHASES = many(group(PhaseFields, as_read, _IS_PHASE), MOST_PHASES, as_read)


@dataclass(frozen=True, slots=True)
class ProfileFields:
    """The spec of a JobPowerProfile."""

    startup: tuple[PhaseFields, ...] = custom_field(
        "startup",
        _PHASES,
        "Phases before the work, in order; checkpoints do not save them.",
        unset=(),
        absent="none",
    )
    work: tuple[WorkFields, ...] = custom_field(
        "work",
        many(group(WorkFields, as_read, _IS_PHASE), MOST_PHASES, as_read),
        "Phases of work, in order; at least one.",
        unset=(),
        absent="required",
    )
    resume: tuple[PhaseFields, ...] | None = custom_field(
        "resume",
        _PHASES,
        "Phases that a resumed run goes through before it works on, with the fields of `startup`. "
        "If the list is empty, resuming takes neither time nor energy.",
        unset=None,
        absent="`startup`",
    )
    checkpoints: CheckpointFields = custom_field(
        "checkpoints",
        group(CheckpointFields, as_read),
        "Checkpoints other than those at the ends of phases; each saves all work so far. Their "
        "times count work only, without startup and pauses.",
        unset=CheckpointFields(),
        absent="none",
    )


_PROFILE = group(ProfileFields, as_read)
SPEC = FieldDefinition("spec", _PROFILE, "")


@dataclass(frozen=True, slots=True)
class ProfilePhase:
    """A part of a run with constant power."""

    name: str
    duration_s: float
    power_w: float
    is_checkpoint: bool = False  # its end saves all work so far


@dataclass(frozen=True, slots=True)
class JobPowerProfile:
    """The phases of a run; each checkpoint ends a phase."""

    namespace: str
    name: str
    generation: int
    startup: tuple[ProfilePhase, ...]
    work: tuple[ProfilePhase, ...]
    restart: tuple[ProfilePhase, ...] | None = None  # startup of a resumed run; None: `startup`
    # Of the phases of startup and work, computed once: they may be a thousand, and every workload
    # that names the profile asks at each judgement. Ends in seconds, joules until each end, and
    # the ends that save.
    _ends_s: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _until_j: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _saves_s: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sum up the phases."""
        phases = (*self.startup, *self.work)
        ends_s = tuple(accumulate(phase.duration_s for phase in phases))
        until_j = tuple(accumulate(phase.duration_s * phase.power_w for phase in phases))
        saves_s = (
            end_s for end_s, phase in zip(ends_s, phases, strict=True) if phase.is_checkpoint
        )
        for name, sums in (("_ends_s", ends_s), ("_until_j", until_j), ("_saves_s", (*saves_s,))):
            object.__setattr__(self, name, sums)

    @property
    def runtime_s(self) -> float:
        """Return the duration of a run that is never suspended."""
        return self._ends_s[-1]

    @property
    def resume_s(self) -> float:
        """Return the duration of a resumed run's startup."""
        return _length_s(self._resumed)

    def mean_power_w(self, done_s: float = 0.0) -> float:
        """Return the mean watts of a run; of a resumed one if `done_s` of its runtime are done."""
        left_s = max(self.runtime_s - done_s, 0.0)
        left_j = self._until_j[-1] - self._joules_until(done_s)
        if done_s > 0.0:
            left_s += self.resume_s
            left_j += sum(phase.duration_s * phase.power_w for phase in self._resumed)
        return left_j / left_s if left_s else self.work[-1].power_w

    def saved_s(self, done_s: float) -> float:
        """Return how much of `done_s` seconds of a run a stop keeps: up to the last checkpoint.

        A profile without checkpoints is of work that saves when it is stopped: it keeps all.
        """
        if not self._saves_s:
            return done_s
        saves = bisect_right(self._saves_s, done_s + SAME_MOMENT_S)
        return self._saves_s[saves - 1] if saves else 0.0

    def _joules_until(self, done_s: float) -> float:
        """Return the energy of the first `done_s` seconds of startup and work."""
        whole = bisect_right(self._ends_s, done_s)
        if whole == len(self._ends_s):
            return self._until_j[-1]
        begin_s, begin_j = (self._ends_s[whole - 1], self._until_j[whole - 1]) if whole else (0, 0)
        phase = (*self.startup, *self.work)[whole]
        return begin_j + (done_s - begin_s) * phase.power_w

    @property
    def _resumed(self) -> tuple[ProfilePhase, ...]:
        return self.startup if self.restart is None else self.restart


@dataclass(frozen=True, slots=True)
class ParsedProfile:
    """A profile, or None with error messages in `faults`."""

    profile: JobPowerProfile | None
    faults: tuple[str, ...] = ()


def parse_job_power_profile(raw: object) -> ParsedProfile:
    """Read a JobPowerProfile, JSON or decoded already; never raises.

    A workload without a profile counts as one phase of constant power.
    """
    try:
        whole = decoded_object(raw)
        meta, given = read_meta(whole), whole.get("spec")
        spec = _PROFILE.read({} if given is None else given, "spec")
        profile = JobPowerProfile(
            namespace=meta.namespace,
            name=meta.name,
            generation=meta.generation,
            startup=_phases(spec.startup, "startup"),
            work=_work(spec),
            restart=None if spec.resume is None else _phases(spec.resume, "resume"),
        )
    except BadInput as fault:
        return ParsedProfile(None, (str(fault),))
    return ParsedProfile(profile)


def _phases(items: Sequence[PhaseFields], part: str) -> tuple[ProfilePhase, ...]:
    return tuple(
        ProfilePhase(item.name or f"{part}[{place}]", item.duration_s, item.power_w)
        for place, item in enumerate(items)
    )


def _work(spec: ProfileFields) -> tuple[ProfilePhase, ...]:
    """Return the phases of work, split at the checkpoints."""
    if not spec.work:
        raise BadInput("spec.work: a profile needs at least one phase of work")
    phases = _phases(spec.work, "work")
    marks = _marks(spec.checkpoints, _length_s(phases))
    pieces: list[ProfilePhase] = []
    begin_s = 0.0
    for item, phase in zip(spec.work, phases, strict=True):
        pieces += _pieces(phase, begin_s, marks, is_saved=item.is_saved)
        begin_s += phase.duration_s
    return tuple(pieces)


def _marks(spec: CheckpointFields, whole_s: float) -> list[float]:
    """Return the sorted seconds of work at which it is saved; raise BadInput for one after it."""
    marks: set[float] = set()
    for at, mark in enumerate(spec.at_s):
        where = f"spec.checkpoints.at[{at}]"
        if mark > whole_s + SAME_MOMENT_S:
            raise BadInput(
                f"{where}: {mark:g} s is after the end of the work, which takes {whole_s:g} s"
            )
        marks.add(mark)
    if spec.every_s is not None:
        if whole_s > spec.every_s * (MOST_CHECKPOINTS + 1):
            fault = f"gives more than {MOST_CHECKPOINTS} checkpoints in {whole_s:g} s of work"
            raise BadInput(f"spec.checkpoints.every: {fault}")
        count = math.ceil((whole_s - SAME_MOMENT_S) / spec.every_s) - 1  # none at the end itself
        marks.update(spec.every_s * (done + 1) for done in range(count))
    if len(marks) > MOST_CHECKPOINTS:
        raise BadInput(f"spec.checkpoints: {len(marks)} checkpoints, at most {MOST_CHECKPOINTS}")
    return sorted(marks)


def _pieces(
    phase: ProfilePhase, begin_s: float, marks: Sequence[float], *, is_saved: bool
) -> Iterator[ProfilePhase]:
    """Yield a phase in pieces; each except the last ends at a mark within the phase."""
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
