"""What the annotations of a pod's Job, of the pod, or of the CronJob of its Job declare.

We write nothing into a Job's template for this: see docs/decisions/0011.
"""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from greensched_core.objects import PodMeta, PodObject, declared_runtime

_LONGEST_RUNTIME = 65  # characters; any longer text is an invalid duration all the same
_LONGEST_NAME = 254  # characters; any longer text is the name of no object


class OwnerObject(msgspec.Struct):
    """A Job or CronJob as the API server writes it; only its metadata is decoded."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)


class Declared(NamedTuple):
    """Our annotations that placement reads, as text; None where there is none."""

    runtime: str | None = None
    policy: str | None = None


NOTHING = Declared()


@dataclass(frozen=True, slots=True)
class _Owner:
    declared: Declared
    cron_job: str  # uid of the CronJob that created it, or ""


class OwnerDeclarations:
    """What Jobs or CronJobs declare, by uid; a sink for their watch.

    Objects that declare nothing and have no CronJob are not kept.
    """

    def __init__(self) -> None:
        self._owners: dict[str, _Owner] = {}
        self._gone: set[str] = set()  # during a list: uids not seen in it yet

    def __len__(self) -> int:
        return len(self._owners)

    def get(self, uid: str) -> _Owner | None:
        """Return the entry of an object; None if there is none."""
        return self._owners.get(uid)

    def list_began(self) -> None:
        """Begin a full list."""
        self._gone = set(self._owners)

    def upsert(self, item: OwnerObject) -> None:
        """Take in an object that is new or has changed."""
        meta, declared = item.metadata, _limited(_declared(item.metadata))
        maker = meta.maker
        cron_job = maker.uid if maker is not None and maker.kind == "CronJob" else ""
        if declared == NOTHING and not cron_job:
            self.remove(item)
            return
        self._gone.discard(meta.uid)
        self._owners[meta.uid] = _Owner(declared, cron_job)

    def list_ended(self) -> None:
        """Drop the objects that were not in the list."""
        for uid in self._gone:
            self._owners.pop(uid, None)
        self._gone = set()

    def remove(self, item: OwnerObject) -> None:
        """Drop a deleted object."""
        self._owners.pop(item.metadata.uid, None)


class Declarations:
    """Finds what counts for a pod."""

    def __init__(self) -> None:
        self.jobs = OwnerDeclarations()
        self.cron_jobs = OwnerDeclarations()

    def of(self, pod: PodObject) -> Declared:
        """Return what a pod's Job declares, else the pod itself, else the CronJob of its Job.

        Planning of held work uses the same order.
        """
        maker, own = pod.metadata.maker, _declared(pod.metadata)
        job = None if maker is None else self.jobs.get(maker.uid)
        if job is None:
            return own
        maker_of_job = self.cron_jobs.get(job.cron_job)
        first, last = job.declared, NOTHING if maker_of_job is None else maker_of_job.declared
        policies = (each.policy for each in (first, own, last) if each.policy is not None)
        return Declared(first.runtime or own.runtime or last.runtime, next(policies, None))


def _declared(meta: PodMeta) -> Declared:
    found = meta.annotations
    return NOTHING if found is None else Declared(declared_runtime(meta), found.policy)


def _limited(declared: Declared) -> Declared:
    runtime, policy = declared
    return Declared(
        None if runtime is None else runtime[:_LONGEST_RUNTIME],
        None if policy is None else policy[:_LONGEST_NAME],
    )
