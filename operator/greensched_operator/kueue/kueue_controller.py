"""Holds Kueue's Workloads: passes those that wait for our check to planning, and writes the checks.

Level-triggered like the whole controller: planning writes annotations on a Workload, and its check
follows from them.
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
    NOT_OF_A_JOB,
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

_AGAIN_AFTER_S = 2.0  # wall seconds, then failed writes are repeated


Object = TypeVar("Object", bound=AdmissionCheck | KueueWorkload)


class ChangeSink(Generic[Object]):
    """Passes on the changes of a watch, including objects that a new list lacks."""

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
        """Begin a full list."""
        self._listed = set()

    def upsert(self, item: Object) -> None:
        """Take an object that exists or has changed."""
        self._listed.add(item.metadata.uid)
        self._known[item.metadata.uid] = item
        self._put(item)
        self._wake()

    def list_ended(self) -> None:
        """Drop all objects that were not in the list."""
        for uid in self._known.keys() - self._listed:
            self.remove(self._known[uid])

    def remove(self, item: Object) -> None:
        """Drop an object that was deleted."""
        self._known.pop(item.metadata.uid, None)
        self._drop(item)


class KueueController:
    """The leader's controller for Kueue; it does nothing in a cluster without Kueue."""

    def __init__(
        self,
        client: ApiClient,
        works: HeldWorks,
        writer: Writer,
        scheduler: str,
        may_write: Callable[[], bool],
    ) -> None:
        """`scheduler` is a name that opts in; `run` sets the path of Kueue's API on `writer`."""
        self._may_write = may_write
        self._client = client
        self._works = works
        self._writer = writer
        self._scheduler = scheduler
        self._checks: dict[str, AdmissionCheck] = {}
        self._workloads: dict[str, KueueWorkload] = {}
        self._of_job: dict[str, set[str]] = {}  # UIDs of Workloads, by the UID of their Job
        self._jobs: dict[str, Work] = {}
        self._unwritten: set[str] = set()
        self._changed = asyncio.Event()

    def put_job(self, job: Work) -> None:
        """Take a Job of a Kueue queue that exists or has changed."""
        self._jobs[job.uid] = job
        for uid in tuple(self._of_job.get(job.uid, ())):
            self._offer(self._workloads[uid])

    def drop_job(self, uid: str) -> None:
        """Drop a deleted Job; Kueue then deletes its Workload, which `drop_workload` drops."""
        self._jobs.pop(uid, None)

    def put_workload(self, workload: KueueWorkload) -> None:
        """Take a Workload that exists or has changed."""
        self._workloads[workload.metadata.uid] = workload
        self._of_job.setdefault(workload.job_uid, set()).add(workload.metadata.uid)
        self._offer(workload)

    def drop_workload(self, workload: KueueWorkload) -> None:
        """Drop a Workload that was deleted."""
        uid = workload.metadata.uid
        known = self._workloads.pop(uid, workload)
        of_job = self._of_job.get(known.job_uid, set())
        of_job.discard(uid)
        if not of_job:
            self._of_job.pop(known.job_uid, None)
        self._works.drop(uid)

    def put_check(self, check: AdmissionCheck) -> None:
        """Take an AdmissionCheck that exists or has changed."""
        if not check.is_ours:
            return
        self._checks[check.metadata.name] = check
        for workload in list(self._workloads.values()):
            self._offer(workload)
        self._changed.set()

    def drop_check(self, check: AdmissionCheck) -> None:
        """Drop an AdmissionCheck that was deleted; Kueue removes it from the Workloads."""
        self._checks.pop(check.metadata.name, None)

    async def run(self, wake: Callable[[], None], follow: Callable[..., None]) -> None:
        """Hold until cancelled; `follow` takes the watches, whose health it reports."""
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
            group.create_task(self._keep_writing(writer))

    def _offer(self, workload: KueueWorkload) -> None:
        """Pass a Workload that waits for our check to planning, with its Job's annotations."""
        checks, job = frozenset(self._checks), self._jobs.get(workload.job_uid)
        if job is not None and workload.has_check(checks):
            # Its queue opts it in, whatever its scheduler; planning then reports the Job's end.
            self._works.put(replace(job, scheduler=self._scheduler))
        if not workload.held_by(checks):
            self._works.drop(workload.metadata.uid)
            return
        self._unwritten.add(workload.metadata.uid)
        self._changed.set()
        if workload.is_started or job is None or _has_waited(job) or job.queue_gates:
            # A Job may not have been seen yet; other kinds of work have no requests that we read.
            # A Job that waits, or has waited, by our gate does not wait a second time.
            self._works.drop(workload.metadata.uid)
            return
        self._works.put(workload_work(workload, job, self._scheduler))

    async def _keep_writing(self, writer: KueueWriter) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            unwritten, self._unwritten = self._unwritten, set()
            refused = {uid for uid in unwritten if not await self._write(uid, writer)}
            for check in list(self._checks.values()):
                if not check.is_active and not await writer.activate(check):
                    refused.add("")
            if refused:
                self._unwritten |= refused - {""}
                await asyncio.sleep(_AGAIN_AFTER_S)
                self._changed.set()

    async def _write(self, uid: str, writer: KueueWriter) -> bool:
        workload = self._workloads.get(uid)
        if workload is None:
            return True
        waited_for = workload.held_by(frozenset(self._checks))
        job = self._jobs.get(workload.job_uid)
        if not workload.job_uid:
            wanted = [Wanted(each.name, AdmissionState.READY, NOT_OF_A_JOB) for each in waited_for]
        elif job is not None and _has_waited(job) and not job.queue_gates:
            wanted = [Wanted(each.name, AdmissionState.READY, WAITED) for each in waited_for]
        else:
            found = (wanted_state(workload, each) for each in waited_for)
            wanted = [each for each in found if each is not None]
        return not wanted or await writer.say(workload, wanted)


def _has_waited(job: Work) -> bool:
    """Return whether GreenSched has started it, so that Kueue may have taken it after our hold."""
    reason = job.annotations.get(labels.RELEASE_REASON)
    return job.was_released and reason != ReleaseReason.OTHERS
