"""What a releaser keeps of held work."""

from dataclasses import dataclass

from greensched_operator.objects.workloads import WorkKind


@dataclass(frozen=True, slots=True)
class HeldObject:
    """One held object, and until when."""

    kind: WorkKind
    namespace: str
    name: str
    uid: str
    until_s: float  # minus infinity where it cannot be read
    queue_gates: str | None = None  # of a Job of Kueue's queues

    @property
    def title(self) -> str:
        """Return how a sentence names it."""
        return f"{self.kind} {self.namespace}/{self.name}"
