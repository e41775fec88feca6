"""Our gate in a Kueue Job's annotation: while it is there, Kueue does not consider the Job.

Contract: KEP-6915 of kubernetes-sigs/kueue. The annotation is a list of names with commas between;
it is set at creation alone, and later each owner takes its own name off. A Job whose last name is
gone goes through the queue like any other.
"""

from collections.abc import Mapping

from greensched_core import labels

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"  # label: the LocalQueue that takes a Job
GATED_BY = "kueue.x-k8s.io/admission-gated-by"


def queue_gates(
    said: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> str | None:
    """Return the gates of a Job with these labels, as they are written, "" without ours.

    None is for a Job that no queue takes.
    """
    if KUEUE_QUEUE not in (said or {}):
        return None
    text = (annotations or {}).get(GATED_BY, "")
    return text if is_ours_in(text) else ""


def is_ours_in(text: str) -> bool:
    """Tell whether our gate is one of those."""
    return labels.GATE in _names(text)


def with_ours(text: str) -> str:
    """Return the gates with ours, behind those of others."""
    return ",".join((*_others(text), labels.GATE))


def without_ours(text: str) -> str:
    """Return the gates of others; "" where there are none."""
    return ",".join(_others(text))


def _others(text: str) -> tuple[str, ...]:
    return tuple(name for name in _names(text) if name != labels.GATE)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for each in text.split(",") if (name := each.strip()))
