"""Our gate in an annotation of Kueue's Jobs: while it is there, Kueue does not consider the Job.

Contract: KEP-6915 of kubernetes-sigs/kueue. The annotation is a comma-separated list of names. It
is set only at creation; later each owner removes its own name. A Job without names left goes
through the queue like any other.
"""

from collections.abc import Mapping

from greensched_core import labels

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"  # label: the LocalQueue that takes a Job
GATED_BY = "kueue.x-k8s.io/admission-gated-by"


def queue_gates(
    job_labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> str | None:
    """Return the gates of a Job as they are written; "" if ours is not among them.

    None means that the Job is not in a Kueue queue.
    """
    if KUEUE_QUEUE not in (job_labels or {}):
        return None
    text = (annotations or {}).get(GATED_BY, "")
    return text if is_ours_in(text) else ""


def is_ours_in(text: str) -> bool:
    """Return whether our gate is in a list of gates."""
    return labels.GATE in _names(text)


def with_ours(text: str) -> str:
    """Return the gates with ours at the end."""
    return ",".join((*_others(text), labels.GATE))


def without_ours(text: str) -> str:
    """Return the gates without ours; "" if there are no others."""
    return ",".join(_others(text))


def _others(text: str) -> tuple[str, ...]:
    return tuple(name for name in _names(text) if name != labels.GATE)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for each in text.split(",") if (name := each.strip()))
