"""The data that a releaser keeps of held work."""

from dataclasses import dataclass

from greensched_operator.objects.workloads import WorkKind


@dataclass(frozen=True, slots=True)
class HeldObject:
    """One held object and its latest start."""

    kind: WorkKind
    namespace: str
    name: str
    uid: str
    until_s: float  # minus infinity where it cannot be read
    queue_gates: str | None = None  # of a Job in a Kueue queue

    @property
    def title(self) -> str:
        """Return its name for messages."""
        return f"{self.kind} {self.namespace}/{self.name}"
