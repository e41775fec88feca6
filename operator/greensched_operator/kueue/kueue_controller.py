"""Holds Kueue's Workloads: hands those that wait for our check to planning, and says what it said.

Level-triggered, as all else: a Workload's annotations tell what was planned, and its check follows.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import Watch
from greensched_operator.kueue.api import KueueWriter, served_path
from greensched_operator.kueue.workloads import (
    NO_JOB,
    WAITED,
    AdmissionCheck,
    AdmissionState,
    KueueWorkload,
    Wanted,
    decode_check,
    decode_workload,
    wanted_state,
    workload_work,
)
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.writing.writing import Writer

_AGAIN_AFTER_S = 2.0  # wall seconds; then what was refused is written again


Object = TypeVar("Object", bound=AdmissionCheck | KueueWorkload)


class ChangeSink(Generic[Object]):
    """Hands on what a watch brings, also what was gone when it began anew."""

    def __init__(
        self,
        put: Callable[[Object], None],
        drop: Callable[[Object], None],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._put = put
        self._drop = drop
        self._wake = wake
        self._known: dict[str, Object] = {}
        self._listed: set[str] = set()

    def list_began(self) -> None:
        """A full list follows."""
        self._listed = set()

    def upsert(self, item: Object) -> None:
        """An object is there or has changed."""
        self._listed.add(item.metadata.uid)
        self._known[item.metadata.uid] = item
        self._put(item)
        self._wake()

    def list_ended(self) -> None:
        """Whatever was not in the list is gone."""
        for uid in self._known.keys() - self._listed:
            self.remove(self._known[uid])

    def remove(self, item: Object) -> None:
        """An object is gone."""
        self._known.pop(item.metadata.uid, None)
        self._drop(item)


class KueueController:
    """The leader's part for Kueue; it does nothing in a cluster without."""

    def __init__(
        self,
        client: ApiClient,
        works: HeldWorks,
        writer: Writer,
        scheduler: str,
        may_write: Callable[[], bool],
    ) -> None:
        """`scheduler` is a name that opts in; `writer` is told which version is served."""
        self._may_write = may_write
        self._client = client
        self._works = works
        self._writer = writer
        self._scheduler = scheduler
        self._checks: dict[str, AdmissionCheck] = {}
        self._workloads: dict[str, KueueWorkload] = {}
        self._of_job: dict[str, set[str]] = {}  # uids of Workloads, by that of their Job
        self._jobs: dict[str, Work] = {}
        self._unsaid: set[str] = set()
        self._changed = asyncio.Event()

    def put_job(self, job: Work) -> None:
        """A Job that a queue takes is there or has changed."""
        self._jobs[job.uid] = job
        for uid in tuple(self._of_job.get(job.uid, ())):
            self._offer(self._workloads[uid])

    def drop_job(self, uid: str) -> None:
        """A Job is gone; Kueue deletes its Workload, which is then told of."""
        self._jobs.pop(uid, None)

    def put_workload(self, workload: KueueWorkload) -> None:
        """A Workload is there or has changed."""
        self._workloads[workload.metadata.uid] = workload
        self._of_job.setdefault(workload.job_uid, set()).add(workload.metadata.uid)
        self._offer(workload)

    def drop_workload(self, workload: KueueWorkload) -> None:
        """A Workload is gone."""
        uid = workload.metadata.uid
        known = self._workloads.pop(uid, workload)
        of_job = self._of_job.get(known.job_uid, set())
        of_job.discard(uid)
        if not of_job:
            self._of_job.pop(known.job_uid, None)
        self._works.drop(uid)

    def put_check(self, check: AdmissionCheck) -> None:
        """An AdmissionCheck is there or has changed."""
        if not check.is_ours:
            return
        self._checks[check.metadata.name] = check
        for workload in list(self._workloads.values()):
            self._offer(workload)
        self._changed.set()

    def drop_check(self, check: AdmissionCheck) -> None:
        """An AdmissionCheck is gone; Kueue takes it off the Workloads."""
        self._checks.pop(check.metadata.name, None)

    async def run(self, wake: Callable[[], None], follow: Callable[..., None]) -> None:
        """Hold until cancelled; `follow` is given the watches, to see how they do."""
        path = await served_path(self._client)
        self._writer.kueue_path = path
        writer = KueueWriter(self._client, path, WallClock(), self._may_write)
        checks = Watch(
            self._client, f"{path}/admissionchecks", decode_check,
            ChangeSink(self.put_check, self.drop_check, wake), WallClock(),
        )  # fmt: skip
        workloads = Watch(
            self._client, f"{path}/workloads", decode_workload,
            ChangeSink(self.put_workload, self.drop_workload, wake), WallClock(),
        )  # fmt: skip
        follow(checks, workloads)
        async with asyncio.TaskGroup() as group:
            group.create_task(checks.run())
            group.create_task(workloads.run())
            group.create_task(self._keep_saying(writer))

    def _offer(self, workload: KueueWorkload) -> None:
        """Have a Workload that waits for us held, by the requests on its Job."""
        checks, job = frozenset(self._checks), self._jobs.get(workload.job_uid)
        if job is not None and workload.has_check(checks):
            # The queue is its opt-in, whatever its scheduler: so is the Job's end told of.
            self._works.put(replace(job, scheduler=self._scheduler))
        if not workload.held_by(checks):
            self._works.drop(workload.metadata.uid)
            return
        self._unsaid.add(workload.metadata.uid)
        self._changed.set()
        if workload.is_started or job is None or _has_waited(job) or job.queue_gates:
            # A Job that is not seen yet comes; of other kinds of work we can read no requests. One
            # that waits, or has waited, by its gate does not wait a second time.
            self._works.drop(workload.metadata.uid)
            return
        self._works.put(workload_work(workload, job, self._scheduler))

    async def _keep_saying(self, writer: KueueWriter) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            unsaid, self._unsaid = self._unsaid, set()
            refused = {uid for uid in unsaid if not await self._say(uid, writer)}
            for check in list(self._checks.values()):
                if not check.is_active and not await writer.activate(check):
                    refused.add("")
            if refused:
                self._unsaid |= refused - {""}
                await asyncio.sleep(_AGAIN_AFTER_S)
                self._changed.set()

    async def _say(self, uid: str, writer: KueueWriter) -> bool:
        workload = self._workloads.get(uid)
        if workload is None:
            return True
        waited_for = workload.held_by(frozenset(self._checks))
        job = self._jobs.get(workload.job_uid)
        if not workload.job_uid:
            wanted = [Wanted(each.name, AdmissionState.READY, NO_JOB) for each in waited_for]
        elif job is not None and _has_waited(job) and not job.queue_gates:
            wanted = [Wanted(each.name, AdmissionState.READY, WAITED) for each in waited_for]
        else:
            found = (wanted_state(workload, each) for each in waited_for)
            wanted = [each for each in found if each is not None]
        return not wanted or await writer.say(workload, wanted)


def _has_waited(job: Work) -> bool:
    """Tell whether one of us started it; Kueue may have taken it over from our first hold."""
    reason = job.annotations.get(labels.RELEASE_REASON)
    return job.was_released and reason != ReleaseReason.OTHERS
