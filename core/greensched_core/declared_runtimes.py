"""The runtime of a pod that its Job, itself, or the CronJob of its Job declares.

We write nothing into a Job's template for this: see docs/decisions/0011.
"""

from dataclasses import dataclass

import msgspec

from greensched_core.objects import PodMeta, PodObject, declared_runtime

_LONGEST = 65  # characters; any longer text is an invalid duration all the same


class OwnerObject(msgspec.Struct):
    """A Job or CronJob as the API server writes it; only its metadata is decoded."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)


@dataclass(frozen=True, slots=True)
class _Owner:
    runtime: str | None
    cron_job: str  # uid of the CronJob that created it, or ""


class OwnerRuntimes:
    """Runtimes that Jobs or CronJobs declare, by uid; a sink for their watch.

    Objects with neither a runtime nor a CronJob are not kept.
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
        meta, runtime = item.metadata, declared_runtime(item.metadata)
        maker = meta.maker
        cron_job = maker.uid if maker is not None and maker.kind == "CronJob" else ""
        if runtime is None and not cron_job:
            self.remove(item)
            return
        self._gone.discard(meta.uid)
        self._owners[meta.uid] = _Owner(None if runtime is None else runtime[:_LONGEST], cron_job)

    def list_ended(self) -> None:
        """Drop the objects that were not in the list."""
        for uid in self._gone:
            self._owners.pop(uid, None)
        self._gone = set()

    def remove(self, item: OwnerObject) -> None:
        """Drop a deleted object."""
        self._owners.pop(item.metadata.uid, None)


class DeclaredRuntimes:
    """Finds the declared runtime of a pod."""

    def __init__(self) -> None:
        self.jobs = OwnerRuntimes()
        self.cron_jobs = OwnerRuntimes()

    def of(self, pod: PodObject) -> str | None:
        """Return a pod's runtime as declared by its Job, else by itself, else by its CronJob.

        Planning of held work uses the same order.
        """
        maker, own = pod.metadata.maker, declared_runtime(pod.metadata)
        job = None if maker is None else self.jobs.get(maker.uid)
        if job is None:
            return own
        cron_job = self.cron_jobs.get(job.cron_job)
        return job.runtime or own or (None if cron_job is None else cron_job.runtime)
