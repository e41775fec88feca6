"""How long a pod is said to run: by its Job, by itself, or by the CronJob that made its Job.

Nothing is written into a Job's template for it: see docs/decisions/0011.
"""

from dataclasses import dataclass

import msgspec

from greensched_core.objects import PodMeta, PodObject, declared_runtime

_LONGEST = 65  # characters: no duration has as many, and each such text is the same fault


class OwnerObject(msgspec.Struct):
    """A Job or CronJob as the API server writes it; all but its metadata is skipped unread."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)


@dataclass(frozen=True, slots=True)
class _Said:
    runtime: str | None
    cron_job: str  # uid of the CronJob that made it, "" for none


class OwnerRuntimes:
    """What Jobs, or CronJobs, say by uid; a sink for their watch. Who says nothing is not kept."""

    def __init__(self) -> None:
        self._said: dict[str, _Said] = {}
        self._gone: set[str] = set()  # during a list: not seen in it so far

    def __len__(self) -> int:
        return len(self._said)

    def get(self, uid: str) -> _Said | None:
        """Return what an object says; None where it says nothing."""
        return self._said.get(uid)

    def list_began(self) -> None:
        """A full list follows."""
        self._gone = set(self._said)

    def upsert(self, item: OwnerObject) -> None:
        """An object is there or has changed."""
        meta, runtime = item.metadata, declared_runtime(item.metadata)
        maker = meta.maker
        cron_job = maker.uid if maker is not None and maker.kind == "CronJob" else ""
        if runtime is None and not cron_job:
            self.remove(item)
            return
        self._gone.discard(meta.uid)
        self._said[meta.uid] = _Said(None if runtime is None else runtime[:_LONGEST], cron_job)

    def list_ended(self) -> None:
        """Whatever the list did not hold is gone."""
        for uid in self._gone:
            self._said.pop(uid, None)
        self._gone = set()

    def remove(self, item: OwnerObject) -> None:
        """An object is gone."""
        self._said.pop(item.metadata.uid, None)


class DeclaredRuntimes:
    """Looks up who says how long a pod runs."""

    def __init__(self) -> None:
        self.jobs = OwnerRuntimes()
        self.cron_jobs = OwnerRuntimes()

    def of(self, pod: PodObject) -> str | None:
        """Return what is said of a pod: by its Job, else by itself, else by its CronJob.

        That is the order in which held work is planned.
        """
        maker, own = pod.metadata.maker, declared_runtime(pod.metadata)
        job = None if maker is None else self.jobs.get(maker.uid)
        if job is None:
            return own
        cron_job = self.cron_jobs.get(job.cron_job)
        return job.runtime or own or (None if cron_job is None else cron_job.runtime)
